//! Copies of subscribers' packets for readers of the management interface.
//!
//! Only this module knows which lines are sampled: port, VLAN ids and MAC address. The worker knows their sessions only, and is
//! told whenever one appears. Every second, samples without a reader end.

use dataplane::{SampleRate, SessionEntry, SessionIndex};
use mi::{Response, SampleResponse, Sampling};
use northbound::Refusal;
use std::time::{SystemTime, UNIX_EPOCH};
use wire::eth::Frame;
use wire::pppoe;

use super::packets::port_name;
use super::{ForWorker, UserPlane, WorkerCommand};

/// Maximum number of readers.
const MOST: usize = 16;
/// Maximum number of sampled sessions per reader.
const MOST_SESSIONS: usize = 8;
const _: () = assert!(
    MOST * MOST_SESSIONS <= dataplane::MAX_SAMPLED,
    "the worker samples all of them"
);

/// Readers of samples.
#[derive(Default)]
pub(super) struct Samples(Vec<Reader>);

struct Reader {
    sampling: Sampling,
    sessions: Vec<SessionIndex>,
    missed: u64,
}

impl Reader {
    /// Whether a session at a port is on the reader's line.
    fn is_its(&self, port: &str, entry: &SessionEntry) -> bool {
        let wanted = &self.sampling;
        wanted.port == port && wanted.vids == entry.tags.vids() && wanted.mac == entry.peer_mac.0
    }
}

impl Samples {
    /// Number of sampled sessions.
    pub fn sessions(&self) -> u32 {
        let mut sessions: Vec<SessionIndex> = self.all().collect();
        sessions.sort_unstable();
        sessions.dedup();
        sessions.len() as u32
    }

    fn all(&self) -> impl Iterator<Item = SessionIndex> {
        self.0.iter().flat_map(|reader| reader.sessions.clone())
    }

    /// Sample rate of a session: the highest that a reader wants.
    fn rate(&self, index: SessionIndex) -> Option<SampleRate> {
        let readers = self.0.iter().filter(|r| r.sessions.contains(&index));
        readers
            .map(|reader| SampleRate {
                one_in: reader.sampling.one_in,
                per_second: reader.sampling.per_second,
            })
            .reduce(|a, b| SampleRate {
                one_in: a.one_in.min(b.one_in),
                per_second: a.per_second.max(b.per_second),
            })
    }

    /// Passes a copy to the readers of the session.
    pub fn show(&mut self, index: SessionIndex, port: &str, octets: &[u8], down: bool) {
        for reader in &mut self.0 {
            if !reader.sessions.contains(&index) {
                continue;
            }
            let copy = SampleResponse {
                at_nanoseconds: nanoseconds(),
                down,
                port: port.to_owned(),
                octets: octets.to_vec(),
                length: length(octets),
                missed: reader.missed,
            };
            reader.missed += u64::from(!reader.sampling.to.show(copy));
        }
    }

    /// Handles a session that is set at a port. Returns its sample rate if it is sampled.
    fn set(&mut self, port: &str, entry: &SessionEntry) -> Option<SampleRate> {
        for reader in &mut self.0 {
            let known = reader.sessions.contains(&entry.index);
            if !reader.is_its(port, entry) {
                reader.sessions.retain(|index| *index != entry.index);
            } else if !known && reader.sessions.len() < MOST_SESSIONS {
                reader.sessions.push(entry.index);
            }
        }
        self.rate(entry.index)
    }

    fn removed(&mut self, index: SessionIndex) {
        for reader in &mut self.0 {
            reader.sessions.retain(|known| *known != index);
        }
    }
}

impl UserPlane {
    pub(super) fn begin_samples(&mut self, sampling: Sampling) -> Result<Response, Refusal> {
        self.end_samples();
        if self.samples.0.len() >= MOST {
            return Err(Refusal::Busy(format!(
                "copies of packets are shown to {MOST} readers already"
            )));
        }
        let mut reader = Reader {
            sampling,
            sessions: Vec::new(),
            missed: 0,
        };
        let is_its = |e: &&SessionEntry| reader.is_its(port_name(&self.ports, e.port), e);
        let sessions = self.engine.subscribers().filter(is_its);
        let sessions: Vec<SessionIndex> = sessions.map(|e| e.index).take(MOST_SESSIONS).collect();
        reader.sessions.clone_from(&sessions);
        self.samples.0.push(reader);
        self.sample(sessions);
        Ok(Response::Sampling)
    }

    /// Ends samples without a reader.
    pub(super) fn end_samples(&mut self) {
        let ended = self.samples.0.extract_if(.., |r| r.sampling.to.is_closed());
        let ended: Vec<SessionIndex> = ended.flat_map(|reader| reader.sessions).collect();
        self.sample(ended);
    }

    /// Tells the worker the current sample rate of these sessions.
    fn sample(&mut self, sessions: Vec<SessionIndex>) {
        for index in sessions {
            let rate = self.samples.rate(index);
            self.for_worker(ForWorker::Sample(index, rate));
        }
    }

    /// Sample rate of the session that the worker is about to get, if it is sampled.
    pub(super) fn newly_sampled(
        &mut self,
        command: &WorkerCommand,
    ) -> Option<(SessionIndex, SampleRate)> {
        if self.samples.0.is_empty() {
            return None;
        }
        match command {
            WorkerCommand::Set(entry) => {
                let port = port_name(&self.ports, entry.port);
                Some((entry.index, self.samples.set(port, entry)?))
            }
            WorkerCommand::Remove(index) => {
                self.samples.removed(*index);
                None
            }
            WorkerCommand::Read(_) | WorkerCommand::Forget(_) => None,
        }
    }
}

fn nanoseconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    })
}

/// Length of a whole frame from its first octets. The PPPoE header has it.
fn length(octets: &[u8]) -> u32 {
    let whole = Frame::parse(octets).ok().and_then(|frame| {
        let length = frame.payload.get(4..6)?;
        let header = octets.len() - frame.payload.len() + pppoe::HEADER_LEN;
        Some(header + usize::from(u16::from_be_bytes([length[0], length[1]])))
    });
    whole.unwrap_or_default().max(octets.len()) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use dataplane::{InstanceIndex, PortIndex};
    use mi::SampleRequest;
    use policy::PacketSettings;
    use wire::eth::{MacAddr, Tags};

    fn entry(index: u32, home: u8) -> SessionEntry {
        SessionEntry {
            index: SessionIndex(index),
            port: PortIndex(0),
            tags: Tags::single(100),
            peer_mac: MacAddr([2, 0, 0, 0, 0, home]),
            gateway_mac: MacAddr([2; 6]),
            pppoe_session_id: 5,
            instance: InstanceIndex(0),
            packets: PacketSettings::with_mtu(1492),
            policies: Default::default(),
            subscriber: 1,
            ipv4: None,
            ipv6: None,
            routed: Box::default(),
        }
    }

    fn reader(home: u8, one_in: u32, per_second: u32) -> Reader {
        let request = SampleRequest {
            mac: MacAddr([2, 0, 0, 0, 0, home]).to_string(),
            port: "access0".into(),
            s_tag: Some(100),
            c_tag: None,
            one_in,
            per_second,
            seconds: 60,
        };
        let (sampling, _) = Sampling::of(&request).unwrap();
        Reader {
            sampling,
            sessions: Vec::new(),
            missed: 0,
        }
    }

    #[test]
    fn a_homes_sessions_are_sampled_as_they_come_and_go() {
        let mut samples = Samples(vec![reader(7, 10, 5), reader(7, 1, 2), reader(8, 3, 3)]);
        let rate = |one_in, per_second| Some(SampleRate { one_in, per_second });
        assert_eq!(samples.set("access0", &entry(1, 9)), None, "nobody asked");
        assert_eq!(
            samples.set("access0", &entry(2, 7)),
            rate(1, 5),
            "the most of both"
        );
        assert_eq!(samples.set("access0", &entry(2, 7)), rate(1, 5), "changed");
        assert_eq!(samples.set("access0", &entry(3, 8)), rate(3, 3));
        assert_eq!(samples.sessions(), 2);
        // Another line's session now has its index.
        samples.removed(SessionIndex(2));
        assert_eq!(samples.set("access0", &entry(2, 9)), None);
        assert_eq!(samples.set("access0", &entry(3, 7)), rate(1, 5));
        assert_eq!(samples.sessions(), 1);
        let all = (10..30).filter(|n| samples.set("access0", &entry(*n, 8)).is_some());
        assert_eq!(all.count(), MOST_SESSIONS);
    }

    #[test]
    fn another_home_with_the_same_mac_address_is_not_sampled() {
        let mut samples = Samples(vec![reader(7, 1, 5)]);
        let own = entry(1, 7);
        let at = |tags| SessionEntry {
            tags,
            ..own.clone()
        };
        for (port, other) in [
            ("access1", own.clone()),
            ("access0", at(Tags::NONE)),
            ("access0", at(Tags::single(101))),
            ("access0", at(Tags::qinq(100, 7))),
        ] {
            assert_eq!(samples.set(port, &other), None, "{port} {}", other.tags);
        }
        assert!(samples.set("access0", &own).is_some());
        // A session of a line at another port now has its index.
        assert_eq!(samples.set("access1", &own), None);
        assert_eq!(samples.sessions(), 0);
    }

    #[test]
    fn a_frame_is_as_long_as_pppoe_says() {
        let mut octets = vec![0; 12];
        octets.extend([0x88, 0x64, 0x11, 0, 0, 5, 0x05, 0xd6]);
        octets.resize(96, 0);
        assert_eq!(length(&octets), 14 + 6 + 0x5d6);
        assert_eq!(length(&octets[..15]), 15);
    }
}
