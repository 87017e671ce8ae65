//! The access concentrator's side of PPPoE discovery (RFC 2516), without state: what has to be remembered between a
//! PADI and its PADR travels in the AC-Cookie, which is a keyed hash of the circuit and the time.
use crate::types::{Cause, Circuit, Discarded};
use core::time::Duration;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use wire::pppoe::{self, Discovery as Packet, Tag};

/// The largest tag that we echo; a PADO has to fit into a frame whatever a PADI says.
const MAX_ECHOED: usize = 256;

/// How we present ourselves.
#[derive(Clone)]
pub struct DiscoveryConfig {
    /// AC-Name.
    pub ac_name: String,
    /// Services that we offer; none means that any name is served.
    pub service_names: Vec<String>,
    /// Key of the cookies, drawn at start.
    pub cookie_key: [u8; 32],
    /// How long a cookie is good for, at least; at most twice as long.
    pub cookie_lifetime: Duration,
    /// The largest PPP payload that access ports carry, for PPP-Max-Payload (RFC 4638); `None` without jumbo frames.
    pub max_payload: Option<u16>,
}

/// What to do about a discovery packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nothing, for this reason.
    Ignore(Discarded),
    /// Send this (from the PPPoE header on) back to the circuit.
    Reply(Vec<u8>),
    /// A valid PADR: make a session and answer by [`Discovery::pads`] or [`Discovery::refuse`].
    Admit(Padr),
    /// The subscriber ends this session, if it is its own.
    Terminate {
        /// The session's id.
        session_id: u16,
    },
}

/// A valid PADR. A repeated one is equal to the first: answer it with the first one's session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Padr {
    /// The service asked for.
    pub service_name: Vec<u8>,
    /// The subscriber's mark.
    pub host_uniq: Option<Vec<u8>>,
    /// The relay's mark.
    pub relay_session_id: Option<Vec<u8>>,
    /// The PPP payload above 1492 that both sides can carry.
    pub max_payload: Option<u16>,
    /// Agent circuit id (TR-101), put in by the access node.
    pub circuit_id: Option<Vec<u8>>,
    /// Agent remote id (TR-101).
    pub remote_id: Option<Vec<u8>>,
    /// The cookie that came with it.
    pub cookie: [u8; 16],
}

/// Why a valid PADR gets no session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// We do not offer that service.
    ServiceName,
    /// No session id, memory or user plane is left; a text.
    System(&'static str),
}

/// A discovery server; one serves all ports.
pub struct Discovery {
    config: DiscoveryConfig,
    /// The hash with the key already in it.
    keyed: Hmac<Sha256>,
}

/// The tags that matter, each at most once.
#[derive(Default)]
struct Tags<'a> {
    service_name: Option<&'a [u8]>,
    host_uniq: Option<&'a [u8]>,
    relay_session_id: Option<&'a [u8]>,
    cookie: Option<&'a [u8]>,
    max_payload: Option<u16>,
}

impl<'a> Tags<'a> {
    fn of(packet: &Packet<'a>) -> Result<Self, Discarded> {
        let mut tags = Tags::default();
        for tag in &packet.tags {
            let (slot, value) = match *tag {
                Tag::ServiceName(v) => (&mut tags.service_name, v),
                Tag::HostUniq(v) => (&mut tags.host_uniq, v),
                Tag::RelaySessionId(v) => (&mut tags.relay_session_id, v),
                Tag::AcCookie(v) => (&mut tags.cookie, v),
                Tag::MaxPayload(octets) => {
                    tags.max_payload = Some(octets);
                    continue;
                }
                _ => continue,
            };
            if slot.replace(value).is_some() {
                return Err(Discarded("discovery packet with a tag twice"));
            }
            if value.len() > MAX_ECHOED {
                return Err(Discarded(
                    "discovery packet with a tag of unreasonable length",
                ));
            }
        }
        Ok(tags)
    }
}

impl Discovery {
    /// A server with this configuration.
    pub fn new(config: DiscoveryConfig) -> Self {
        // HMAC fills a key up with zeros to the block length of its hash (RFC 2104 §2).
        let mut key = [0; 64];
        key[..32].copy_from_slice(&config.cookie_key);
        let keyed = <Hmac<Sha256> as KeyInit>::new(&key.into());
        Discovery { config, keyed }
    }

    /// Judges a packet of EtherType 0x8863 (from the PPPoE header on) that came from this circuit.
    pub fn on_frame(&self, now: Duration, circuit: &Circuit, payload: &[u8]) -> Answer {
        self.judge(now, circuit, payload)
            .unwrap_or_else(Answer::Ignore)
    }

    fn judge(&self, now: Duration, circuit: &Circuit, payload: &[u8]) -> Result<Answer, Discarded> {
        if !circuit.mac.is_station() {
            return Err(Discarded(
                "discovery packet from a MAC address that no station has",
            ));
        }
        let packet = Packet::parse(payload)?;
        match (packet.code, packet.session_id) {
            (pppoe::PADI, 0) => self.on_padi(now, circuit, &packet),
            (pppoe::PADR, 0) => self.on_padr(now, circuit, &packet),
            (pppoe::PADI | pppoe::PADR, _) => Err(Discarded("PADI or PADR with a session id")),
            (pppoe::PADT, 0) => Err(Discarded("PADT without a session id")),
            (pppoe::PADT, session_id) => Ok(Answer::Terminate { session_id }),
            (pppoe::PADO | pppoe::PADS, _) => Err(Discarded("PADO or PADS from a subscriber")),
            _ => Err(Discarded("unknown discovery code")),
        }
    }

    /// A service that we do not have gets no offer (RFC 2516 §5.2); neither does a packet without Service-Name.
    fn on_padi(
        &self,
        now: Duration,
        circuit: &Circuit,
        packet: &Packet<'_>,
    ) -> Result<Answer, Discarded> {
        let tags = Tags::of(packet)?;
        let asked = tags
            .service_name
            .ok_or(Discarded("PADI without Service-Name"))?;
        if !self.serves(asked) {
            return Err(Discarded("PADI for a service that is not offered"));
        }
        let cookie = self.cookie(self.slot(now), circuit);
        let mut offer = vec![
            Tag::AcName(self.config.ac_name.as_bytes()),
            Tag::ServiceName(asked),
        ];
        let others = self
            .config
            .service_names
            .iter()
            .map(String::as_bytes)
            .filter(|name| *name != asked);
        offer.extend(others.map(Tag::ServiceName));
        offer.push(Tag::AcCookie(&cookie));
        offer.extend(tags.host_uniq.map(Tag::HostUniq));
        offer.extend(tags.relay_session_id.map(Tag::RelaySessionId));
        offer.extend(self.agreed_payload(tags.max_payload).map(Tag::MaxPayload));
        Ok(Answer::Reply(emit(pppoe::PADO, 0, offer)))
    }

    fn on_padr(
        &self,
        now: Duration,
        circuit: &Circuit,
        packet: &Packet<'_>,
    ) -> Result<Answer, Discarded> {
        let tags = Tags::of(packet)?;
        let asked = tags
            .service_name
            .ok_or(Discarded("PADR without Service-Name"))?;
        let cookie = tags.cookie.ok_or(Discarded("PADR without AC-Cookie"))?;
        let cookie = self.check_cookie(now, circuit, cookie)?;
        let line = packet.access_line().unwrap_or_default();
        let padr = Padr {
            service_name: asked.to_vec(),
            host_uniq: tags.host_uniq.map(<[u8]>::to_vec),
            relay_session_id: tags.relay_session_id.map(<[u8]>::to_vec),
            max_payload: self.agreed_payload(tags.max_payload),
            circuit_id: line.circuit_id.map(<[u8]>::to_vec),
            remote_id: line.remote_id.map(<[u8]>::to_vec),
            cookie,
        };
        if !self.serves(asked) {
            return Ok(Answer::Reply(self.refuse(&padr, Refusal::ServiceName)));
        }
        Ok(Answer::Admit(padr))
    }

    /// The PADS that confirms a session.
    pub fn pads(&self, padr: &Padr, session_id: u16) -> Vec<u8> {
        let mut tags = echoed(padr);
        tags.extend(padr.max_payload.map(Tag::MaxPayload));
        emit(pppoe::PADS, session_id, tags)
    }

    /// The PADS with session id 0 that refuses one (RFC 2516 §5.4).
    pub fn refuse(&self, padr: &Padr, refusal: Refusal) -> Vec<u8> {
        let mut tags = echoed(padr);
        tags.push(match refusal {
            Refusal::ServiceName => Tag::ServiceNameError(b"service is not offered"),
            Refusal::System(text) => Tag::AcSystemError(text.as_bytes()),
        });
        emit(pppoe::PADS, 0, tags)
    }

    fn serves(&self, asked: &[u8]) -> bool {
        let names = &self.config.service_names;
        asked.is_empty() || names.is_empty() || names.iter().any(|name| name.as_bytes() == asked)
    }

    /// PPP-Max-Payload means something only above 1492 (RFC 4638 §4); we promise no more than our ports carry.
    fn agreed_payload(&self, asked: Option<u16>) -> Option<u16> {
        let agreed = asked?.min(self.config.max_payload?);
        (agreed > crate::lcp::PPPOE_MRU).then_some(agreed)
    }

    fn slot(&self, now: Duration) -> u64 {
        let length = self.config.cookie_lifetime.as_millis().max(1);
        (now.as_millis() / length) as u64
    }

    fn mac(&self, slot: u64, circuit: &Circuit) -> Hmac<Sha256> {
        let mut mac = self.keyed.clone();
        mac.update(&slot.to_be_bytes());
        mac.update(&circuit.mac.0);
        for tag in [circuit.tags.outer, circuit.tags.inner] {
            // Priorities may change from frame to frame, the rest of a tag may not.
            let key = tag.map_or([0xff; 4], |t| {
                let ([a, b], [c, d]) = (t.tpid.to_be_bytes(), t.vid.to_be_bytes());
                [a, b, c, d]
            });
            mac.update(&key);
        }
        mac.update(&circuit.logical_port);
        mac
    }

    fn cookie(&self, slot: u64, circuit: &Circuit) -> [u8; 16] {
        let digest = self.mac(slot, circuit).finalize().into_bytes();
        core::array::from_fn(|i| digest[i])
    }

    /// The cookie must be of this time slot or the one before; the comparison takes the same time for all.
    fn check_cookie(
        &self,
        now: Duration,
        circuit: &Circuit,
        cookie: &[u8],
    ) -> Result<[u8; 16], Discarded> {
        let cookie: [u8; 16] = cookie
            .try_into()
            .map_err(|_| Discarded("PADR with a cookie that is not ours"))?;
        let slot = self.slot(now);
        let matches = |slot| {
            self.mac(slot, circuit)
                .verify_truncated_left(&cookie)
                .is_ok()
        };
        if matches(slot) || slot.checked_sub(1).is_some_and(matches) {
            return Ok(cookie);
        }
        Err(Discarded(
            "PADR with a cookie that is old, forged, or from another line",
        ))
    }
}

/// The PADT that ends a session, with a text for people (Generic-Error).
pub fn padt(session_id: u16, reason: &str) -> Vec<u8> {
    emit(
        pppoe::PADT,
        session_id,
        vec![Tag::GenericError(reason.as_bytes())],
    )
}

/// The PADT for a session that ended for this cause.
pub fn padt_for(session_id: u16, cause: Cause) -> Vec<u8> {
    padt(session_id, cause.text())
}

/// What every PADS gives back as it was.
fn echoed(padr: &Padr) -> Vec<Tag<'_>> {
    let mut tags = vec![Tag::ServiceName(&padr.service_name)];
    tags.extend(padr.host_uniq.as_deref().map(Tag::HostUniq));
    tags.extend(padr.relay_session_id.as_deref().map(Tag::RelaySessionId));
    tags
}

fn emit(code: u8, session_id: u16, tags: Vec<Tag<'_>>) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    Packet {
        code,
        session_id,
        tags,
    }
    .emit(&mut out);
    out
}

#[cfg(test)]
#[path = "discovery_tests.rs"]
mod tests;
