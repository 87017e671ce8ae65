//! What those hear who watch the gateway: what the control plane's loop knows, and what the user planes told over their
//! management interfaces.

use crate::configuration::{ToPlane, ask};
use crate::history;
use crate::management::{Standing, Standings};
use crate::topology::AccessLine;
use crate::trace::{self, Reader};
use core::time::Duration;
use mi::{Client, SampleRequest, SampleResponse, State};
use northbound::{
    LiveCall, LiveRequest, LiveResponse, Port, Process, Refusal, TraceRequest, TracedPacket,
    TracedPath, Tracing, WatchedPort, WatchedUserPlane,
};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep};

/// How long a user plane that does not answer is left alone.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// See the module's page.
pub(crate) struct Live {
    plane: mpsc::Sender<ToPlane>,
    standings: watch::Receiver<Standings>,
    calls: mpsc::Receiver<LiveCall>,
    /// Where the clock of states begins.
    origin: Instant,
}

impl Live {
    pub fn new(
        plane: mpsc::Sender<ToPlane>,
        standings: watch::Receiver<Standings>,
        calls: mpsc::Receiver<LiveCall>,
    ) -> Self {
        Live {
            plane,
            standings,
            calls,
            origin: Instant::now(),
        }
    }

    /// Serves until nobody can ask any more.
    pub async fn run(mut self) {
        while let Some((request, reply)) = self.calls.recv().await {
            let answer = match request {
                LiveRequest::GetState => self.state().await,
                LiveRequest::Trace(request) => self.trace(request).await,
            };
            let _ = reply.send(answer); // whoever asked may have gone
        }
    }

    async fn state(&self) -> Result<LiveResponse, Refusal> {
        let mut state = ask(&self.plane, ToPlane::Overview).await?;
        state.at_milliseconds = self.milliseconds(Instant::now());
        state.process = Some(Process::own());
        let standings = self.standings.borrow().clone();
        for plane in &mut state.user_planes {
            if let Some((_, standing)) = standings.get(&plane.node_id) {
                self.add(plane, &standing.borrow());
            }
        }
        Ok(LiveResponse::State(Box::new(state)))
    }

    /// Follows a subscriber: the control plane's loop copies control messages, and the line's user plane shows packets.
    async fn trace(&self, request: TraceRequest) -> Result<LiveResponse, Refusal> {
        let subject = self.subject(&request.subject).await?;
        let (reader, packets, missed) = Reader::new();
        let follow = |reply| ToPlane::Trace(subject, reader.clone(), reply);
        let begun = ask(&self.plane, follow).await??;
        if request.samples_per_second > 0 {
            let standings = self.standings.clone();
            tokio::spawn(sample(standings, begun.line, request, reader));
        }
        Ok(LiveResponse::Tracing(Tracing {
            followed: begun.subject.to_string(),
            packets,
            missed,
        }))
    }

    /// Subject of a trace, which is looked for in parts.
    async fn subject(&self, text: &str) -> Result<trace::Subject, Refusal> {
        let named = Arc::new(history::Subject::parse(text));
        let (mut found, mut next) = (Vec::new(), Some(0));
        while let Some(from) = next {
            let part = |reply| ToPlane::Lines(named.clone(), from, reply);
            let (lines, after) = ask(&self.plane, part).await?;
            found.extend(lines);
            next = after;
        }
        trace::subject(text, found)
    }

    fn milliseconds(&self, at: Instant) -> u64 {
        let since = at.saturating_duration_since(self.origin).as_millis();
        u64::try_from(since).unwrap_or(u64::MAX)
    }

    /// Adds what a user plane told.
    fn add(&self, plane: &mut WatchedUserPlane, standing: &Standing) {
        let (Some(state), Some(told_at)) = (&standing.state, standing.told_at) else {
            return;
        };
        let State {
            ports,
            drops,
            workers,
            sessions,
            sampled,
            offenders,
            queue_aggregates,
            lag_members,
            process,
            ..
        } = state;
        let drops = drops.iter().filter(|drop| drop.count > 0);
        plane.reached = standing.reached;
        plane.at_milliseconds = self.milliseconds(told_at);
        plane.sessions = *sessions;
        plane.sampled = *sampled;
        plane.ports = ports.iter().map(port).collect();
        plane.drops = drops.cloned().collect();
        plane.workers.clone_from(workers);
        plane.offenders.extend(offenders.iter().cloned());
        plane.queue_aggregates.clone_from(queue_aggregates);
        plane.lag_members.clone_from(lag_members);
        plane.process = *process;
    }
}

/// Passes copies of a line's packets on, from when the line is known until nobody reads them.
async fn sample(
    standings: watch::Receiver<Standings>,
    line: oneshot::Receiver<AccessLine>,
    request: TraceRequest,
    reader: Reader,
) {
    let copies = async {
        let Ok(line) = line.await else {
            return; // the trace ends
        };
        let known = standings.borrow().get(&line.user_plane).cloned();
        if let Some((client, _)) = known {
            pass_copies(client, &line, &request, &reader).await;
        }
    };
    tokio::select! {
        () = copies => {}
        () = reader.closed() => {}
    }
}

/// Asks for copies for ever: a user plane that goes away is asked again.
async fn pass_copies(
    mut client: Client,
    line: &AccessLine,
    request: &TraceRequest,
    reader: &Reader,
) {
    let (s_tag, c_tag) = line.vids;
    let wanted = SampleRequest {
        mac: line.mac.to_string(),
        port: line.port.clone(),
        s_tag: s_tag.map(u32::from),
        c_tag: c_tag.map(u32::from),
        one_in: request.sample_one_in,
        per_second: request.samples_per_second,
        seconds: request.seconds,
    };
    loop {
        let mut missed = 0;
        if let Ok(mut copies) = client.sample(wanted.clone()).await {
            while let Ok(Some(copy)) = copies.message().await {
                reader.count_missed(copy.missed.saturating_sub(missed));
                missed = copy.missed;
                reader.sampled(traced(&line.user_plane, copy));
            }
        }
        sleep(ASK_AGAIN).await;
    }
}

fn traced(user_plane: &str, copy: SampleResponse) -> TracedPacket {
    TracedPacket {
        at_nanoseconds: copy.at_nanoseconds,
        path: TracedPath::Sample.into(),
        sent: copy.down,
        user_plane: user_plane.to_owned(),
        port: copy.port,
        octets: copy.octets,
        length: copy.length,
        ..TracedPacket::default()
    }
}

fn port(port: &Port) -> WatchedPort {
    WatchedPort {
        name: port.name.clone(),
        role: port.role.clone(),
        rx_packets: port.rx_packets,
        rx_octets: port.rx_octets,
        tx_packets: port.tx_packets,
        tx_octets: port.tx_octets,
        tx_dropped: port.tx_dropped,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_plane_s_process_is_told_as_it_told_it() {
        let live = Live::new(
            mpsc::channel(1).0,
            watch::channel(Standings::default()).1,
            mpsc::channel(1).1,
        );
        let process = Process {
            threads: 7,
            ..Process::default()
        };
        let mut standing = Standing::default();
        standing.reached = true;
        standing.told_at = Some(Instant::now());
        standing.state = Some(State {
            process: Some(process),
            ..State::default()
        });
        let mut plane = WatchedUserPlane::default();
        live.add(&mut plane, &standing);
        assert!(plane.reached);
        assert_eq!(plane.process, Some(process));
    }
}
