//! Keepalive with LCP echo requests (RFC 1661 §5.8).
use crate::layer::Core;
use crate::time::Deadline;
use crate::types::Discarded;
use core::time::Duration;
use wire::lcp::{ECHO_REPLY, ECHO_REQUEST, Echo};
use wire::ppp;

/// Number of echo requests that ask for a sign of life at once.
const PROBES: u8 = 3;
/// Time between them.
const PROBE_INTERVAL: Duration = Duration::from_millis(300);

pub(crate) struct Keepalive {
    pub(crate) at: Deadline,
    id: u8,
    /// Echo requests since the last reply.
    missed: u8,
    /// Number of echo requests to send in quick succession. They do not count as missed.
    probes: u8,
}

/// The peer has missed too many echo requests.
pub(crate) struct Lost;

impl Keepalive {
    pub(crate) const fn off() -> Self {
        Keepalive {
            at: Deadline::NEVER,
            id: 0,
            missed: 0,
            probes: 0,
        }
    }

    pub(crate) fn start(&mut self, core: &mut Core) {
        (self.missed, self.probes) = (0, 0);
        self.arm(core);
    }

    /// Starts at a random time: after a restart, 100,000 sessions must not send echo requests at once.
    pub(crate) fn resume(&mut self, core: &mut Core) {
        if !core.config.echo_interval.is_zero() {
            let delay = core.rng.between(Duration::ZERO, core.config.echo_interval);
            self.at = Deadline::after(core.now(), delay);
        }
    }

    /// Asks for a sign of life at once, and again until one comes, a few times.
    pub(crate) fn probe(&mut self, core: &mut Core, magic: u32) {
        self.probes = PROBES;
        self.send_probe(core, magic);
    }

    fn send_probe(&mut self, core: &mut Core, magic: u32) {
        self.probes -= 1;
        self.send(core, magic);
        self.at = Deadline::after(core.now(), PROBE_INTERVAL);
    }

    /// Restarts the count of missed replies: the peer's silence so far proves nothing.
    pub(crate) fn excuse(&mut self, core: &mut Core) {
        self.missed = 0;
        if self.at.take_if_due(core.now()) {
            self.probes = 0;
            self.arm(core);
        }
    }

    /// Lets an echo request pass that is due, unless it is one of those that ask for a sign of life at once.
    pub(crate) fn leave_to_user_plane(&mut self, core: &mut Core) {
        if self.probes == 0 {
            self.excuse(core);
        }
    }

    pub(crate) fn stop(&mut self) {
        self.at = Deadline::NEVER;
    }

    pub(crate) fn on_timeout(&mut self, core: &mut Core, magic: u32) -> Result<(), Lost> {
        if !self.at.take_if_due(core.now()) {
            return Ok(());
        }
        if self.probes > 0 {
            self.send_probe(core, magic);
            return Ok(());
        }
        if core.config.echo_interval.is_zero() {
            return Ok(()); // no probe was answered: whoever asked for them decides
        }
        if self.missed >= core.config.echo_failures {
            return Err(Lost);
        }
        self.missed += 1;
        self.send(core, magic);
        self.arm(core);
        Ok(())
    }

    fn send(&mut self, core: &mut Core, magic: u32) {
        self.id = self.id.wrapping_add(1);
        core.send(ppp::LCP, ECHO_REQUEST, self.id, &magic.to_be_bytes());
    }

    /// Answers an echo request with our magic number and the peer's data.
    pub(crate) fn on_request(
        core: &mut Core,
        magic: u32,
        id: u8,
        data: &[u8],
    ) -> Result<(), Discarded> {
        let request = Echo::parse(data)?;
        if magic != 0 && request.magic == magic {
            return Err(Discarded(
                "our own echo request came back: the line is looped",
            ));
        }
        let mut reply = Vec::with_capacity(data.len());
        Echo {
            magic,
            data: request.data,
        }
        .emit(&mut reply);
        core.send(ppp::LCP, ECHO_REPLY, id, &reply);
        Ok(())
    }

    /// Takes any reply as a sign of life. Many peers return our own magic number in it, although they must send theirs (RFC 1661 §5.8). It
    /// does not prove a loop: a looped line returns requests, which nobody answers.
    pub(crate) fn on_reply(&mut self, core: &mut Core, data: &[u8]) -> Result<(), Discarded> {
        Echo::parse(data)?;
        self.missed = 0;
        if std::mem::take(&mut self.probes) > 0 {
            self.at = Deadline::NEVER;
            self.arm(core);
        }
        Ok(())
    }

    fn arm(&mut self, core: &mut Core) {
        let interval = core.config.echo_interval;
        if !interval.is_zero() {
            let delay = core
                .rng
                .between(interval.mul_f64(0.9), interval.mul_f64(1.1));
            self.at = Deadline::after(core.now(), delay);
        }
    }
}
