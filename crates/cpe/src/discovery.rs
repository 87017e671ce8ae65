//! PADI, PADO, PADR, PADS and PADT from the home's side (RFC 2516 §5).

use crate::home::{End, Home, Received, Timer};
use crate::progress::State;
use core::time::Duration;
use wire::eth::{self, MacAddr};
use wire::pppoe::{self, Discovery, Tag};

/// PADIs before we give up.
const MAX_PADIS: u8 = 8;
/// PADRs before we give up: an AC-Cookie grows old, and only another PADI gets a new one (RFC 2516 §8).
const MAX_PADRS: u8 = 4;
/// The longest pause between two of them: each waits twice as long as the one before (RFC 2516 §5).
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

impl Home {
    pub(crate) fn discover(&mut self, now: Duration) {
        self.state = State::Discovery;
        self.concentrator = MacAddr::ZERO;
        self.offer.clear();
        self.host_uniq = self.random.next();
        self.tries = 0;
        self.ask(now);
    }

    pub(crate) fn ask_again(&mut self, now: Duration) {
        let most = match self.concentrator {
            MacAddr::ZERO => MAX_PADIS,
            _ => MAX_PADRS,
        };
        match self.tries < most {
            true => self.ask(now),
            false => self.end(End::Silence(State::Discovery)),
        }
    }

    /// PADI while nobody has offered, else PADR.
    fn ask(&mut self, now: Duration) {
        let host_uniq = self.host_uniq.to_be_bytes();
        let (to, code) = match self.concentrator {
            MacAddr::ZERO => (MacAddr::BROADCAST, pppoe::PADI),
            concentrator => (concentrator, pppoe::PADR),
        };
        let mut tags = Vec::with_capacity(64);
        Tag::ServiceName(self.config.service.as_bytes()).emit(&mut tags);
        Tag::HostUniq(&host_uniq).emit(&mut tags);
        tags.extend_from_slice(&self.offer);
        if !self.config.access_line.is_empty() {
            Tag::Vendor(pppoe::VENDOR_BBF, &self.config.access_line).emit(&mut tags);
        }
        self.send(to, eth::PPPOE_DISCOVERY, |out| {
            pppoe::Packet {
                code,
                session_id: 0,
                payload: &tags,
            }
            .emit(out);
        });
        let pause = self.config.restart.saturating_mul(1 << self.tries.min(8));
        self.tries += 1;
        self.arm(
            Timer::Answer,
            now + pause.min(LONGEST_PAUSE.max(self.config.restart)),
        );
    }

    pub(crate) fn handle_discovery<'f>(
        &mut self,
        now: Duration,
        from: MacAddr,
        payload: &[u8],
    ) -> Received<'f> {
        let Ok(packet) = Discovery::parse(payload) else {
            return Received::Stray("not a PPPoE discovery packet");
        };
        match packet.code {
            pppoe::PADO => self.offered(now, from, &packet),
            pppoe::PADS => self.confirmed(now, from, &packet),
            pppoe::PADT => {
                if self.session_id != 0
                    && packet.session_id == self.session_id
                    && from == self.concentrator
                {
                    let end = self.ending.take().unwrap_or(End::Terminated);
                    self.end(end);
                }
            }
            _ => return Received::Stray("a discovery packet that only access concentrators get"),
        }
        Received::Quiet
    }

    /// Is it an answer to our question, not to an earlier one?
    fn is_ours(&self, packet: &Discovery) -> bool {
        let host_uniq = self.host_uniq.to_be_bytes();
        self.state == State::Discovery && packet.tags.contains(&Tag::HostUniq(&host_uniq))
    }

    fn offered(&mut self, now: Duration, from: MacAddr, packet: &Discovery) {
        let wanted = Tag::ServiceName(self.config.service.as_bytes());
        let named = packet.tags.iter().any(|tag| matches!(tag, Tag::AcName(_)));
        let first = self.concentrator == MacAddr::ZERO;
        if !first
            || !named
            || !self.is_ours(packet)
            || !packet.tags.contains(&wanted)
            || !from.is_station()
        {
            return;
        }
        self.concentrator = from;
        for tag in &packet.tags {
            if matches!(tag, Tag::AcCookie(_) | Tag::RelaySessionId(_)) {
                tag.emit(&mut self.offer);
            }
        }
        self.tries = 0;
        self.ask(now);
    }

    fn confirmed(&mut self, now: Duration, from: MacAddr, packet: &Discovery) {
        if !self.is_ours(packet) || from != self.concentrator {
            return;
        }
        let wanted = Tag::ServiceName(self.config.service.as_bytes());
        let refusal = packet.tags.iter().find_map(|tag| match tag {
            Tag::ServiceNameError(text) | Tag::AcSystemError(text) | Tag::GenericError(text) => {
                Some(*text)
            }
            _ => None,
        });
        match (refusal, packet.session_id) {
            (Some(text), _) => self.end(End::Refused(String::from_utf8_lossy(text).into_owned())),
            (None, 0) => self.end(End::Refused("a PADS without session".into())),
            // Exactly one Service-Name, the one that was asked for (RFC 2516 §5.4).
            _ if !packet.tags.contains(&wanted) => {
                self.end(End::Refused("a PADS without the service".into()));
            }
            (None, id) => {
                self.session_id = id;
                self.progress.session = Some(now);
                self.disarm(Timer::Answer);
                self.open_link(now);
            }
        }
    }

    /// Tells the concentrator that the session is over.
    pub(crate) fn send_padt(&mut self) {
        let packet = Discovery {
            code: pppoe::PADT,
            session_id: self.session_id,
            tags: Vec::new(),
        };
        self.send(self.concentrator, eth::PPPOE_DISCOVERY, |out| {
            packet.emit(out)
        });
    }
}
