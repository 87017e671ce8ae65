//! Link aggregation of a port: what LACP decides (`lacp`), for the workers, who spread frames over the members (`dpdk::Lag`).

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use lacp::{Counters, Group, Settings, Standing};
use tracing::{info, warn};
use wire::eth::{Frame, Header, MacAddr, SLOW_PROTOCOLS, Tags};
use wire::lacp::{DESTINATION, Party};

/// How often the members' links are looked at. A member that fails is left that soon.
const LOOK: Duration = Duration::from_millis(50);

/// Members of a port, and which of them are used.
pub struct Lag {
    group: Group,
    shared: Arc<dpdk::Lag>,
    /// When the links are looked at next.
    look_at: Duration,
    /// Payloads that are sent back, by member.
    answers: Vec<(u16, Vec<u8>)>,
    /// As it was told to the log.
    standings: Vec<Standing>,
}

impl Lag {
    /// A LAG of so many members, whose links are down until they are looked at.
    pub(crate) fn new(settings: Settings, shared: Arc<dpdk::Lag>, members: usize) -> Self {
        Self {
            group: Group::new(settings, members),
            shared,
            look_at: Duration::ZERO,
            answers: Vec::new(),
            standings: vec![Standing::LinkDown; members],
        }
    }

    /// What is configured.
    pub(crate) fn settings(&self) -> &Settings {
        self.group.settings()
    }

    /// Changes the settings.
    pub(crate) fn set(&mut self, now: Duration, settings: Settings) {
        self.group.set(now, settings);
    }

    /// When [`Lag::drive`] has something to do.
    pub(crate) fn poll_at(&self) -> Duration {
        self.group
            .poll_at()
            .map_or(self.look_at, |at| at.min(self.look_at))
    }

    /// Takes a frame that came by a member.
    pub(crate) fn receive(&mut self, now: Duration, member: u16, frame: &[u8]) {
        let Ok(Frame { payload, .. }) = Frame::parse(frame) else {
            return;
        };
        let answer = self.group.receive(now, member.into(), payload);
        self.answers.extend(answer.map(|answer| (member, answer)));
    }

    /// Looks at the links, lets time pass, tells the workers, and says what is to be sent by which member.
    pub(crate) fn drive(
        &mut self,
        now: Duration,
        port: &str,
        device: &dpdk::Port,
    ) -> Vec<(u16, Vec<u8>)> {
        if self.look_at <= now {
            self.look_at = now + LOOK;
            for (number, member) in device.members().iter().enumerate() {
                let link = member.link();
                self.group.set_speed(number, link.mbps);
                self.group.set_link(now, number, link.up);
            }
        }
        self.group.on_timeout(now);
        let mut payloads = std::mem::take(&mut self.answers);
        while let Some((member, pdu)) = self.group.poll_transmit(now) {
            let mut payload = Vec::new();
            pdu.emit(&mut payload);
            payloads.push((member as u16, payload));
        }
        self.shared.set(self.group.receives(), self.group.sends());
        self.log(port, device);
        let wrap = |(member, payload): (u16, Vec<u8>)| {
            let mac = device.members()[usize::from(member)].mac();
            (member, frame(mac, &payload))
        };
        payloads.into_iter().map(wrap).collect()
    }

    fn log(&mut self, port: &str, device: &dpdk::Port) {
        let standings = self.group.members().map(|(standing, ..)| standing);
        let all = self
            .standings
            .iter_mut()
            .zip(standings)
            .zip(device.members());
        for ((told, standing), member) in all.filter(|((told, standing), _)| *told != standing) {
            *told = standing;
            let (member, standing) = (member.name(), standing.name());
            match *told {
                Standing::Used => info!(port, member, standing, "member of the LAG"),
                _ => warn!(
                    port,
                    member, standing, "member of the LAG: nothing is sent by it"
                ),
            }
        }
    }

    /// How each member stands, whom it leads to, and what was counted.
    pub(crate) fn members(&self) -> impl Iterator<Item = (Standing, Option<Party>, Counters)> + '_ {
        self.group.members()
    }

    /// The speed of each member's link, in Mbit/s, if it is known.
    pub(crate) fn speeds(&self) -> impl Iterator<Item = Option<NonZeroU32>> + '_ {
        self.group.speeds()
    }
}

/// A frame of the slow protocols. Its source is the member's own address (IEEE 802.1AX §6.2.11.2).
fn frame(mac: [u8; 6], payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    Header {
        destination: DESTINATION,
        source: MacAddr(mac),
        tags: Tags::NONE,
        ethertype: SLOW_PROTOCOLS,
    }
    .emit(&mut frame);
    frame.extend(payload);
    frame
}
