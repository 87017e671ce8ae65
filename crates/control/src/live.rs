//! What those hear who watch the gateway: what the control plane's loop knows, and what the user planes told over their
//! management interfaces.

use crate::configuration::ToPlane;
use crate::management::{Standing, Standings};
use mi::{Port, State, Worker};
use northbound::{
    LiveCall, LiveRequest, LiveResponse, Refusal, WatchedPort, WatchedUserPlane, WatchedWorker,
};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

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
            };
            let _ = reply.send(answer); // whoever asked may have gone
        }
    }

    async fn state(&self) -> Result<LiveResponse, Refusal> {
        let (reply, answer) = oneshot::channel();
        let gone = || Refusal::Failed("the control plane ends".into());
        let sent = self.plane.send(ToPlane::Overview(reply)).await;
        sent.map_err(|_| gone())?;
        let mut state = answer.await.map_err(|_| gone())?;
        state.at_milliseconds = self.milliseconds(Instant::now());
        let standings = self.standings.borrow().clone();
        for plane in &mut state.user_planes {
            if let Some(standing) = standings.get(&plane.node_id) {
                self.add(plane, &standing.borrow());
            }
        }
        Ok(LiveResponse::State(Box::new(state)))
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
            ..
        } = state;
        let drops = drops.iter().filter(|drop| drop.count > 0);
        plane.reached = standing.reached;
        plane.at_milliseconds = self.milliseconds(told_at);
        plane.sessions = *sessions;
        plane.ports = ports.iter().map(port).collect();
        plane.drops = drops.cloned().collect();
        plane.workers = workers.iter().map(worker).collect();
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

fn worker(worker: &Worker) -> WatchedWorker {
    WatchedWorker {
        number: worker.number,
        punted: worker.punted,
        injected: worker.injected,
    }
}
