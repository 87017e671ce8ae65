//! Stateless PPPoE discovery of the access concentrator (RFC 2516). The AC-Cookie links a PADI with its PADR: the time of the offer, and a
//! keyed hash of that time and the access line.
use crate::types::{Circuit, Discarded};
use core::time::Duration;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use wire::access_loop::AccessLoop;
use wire::pppoe::{self, Discovery as Packet, Tag};

/// Largest tag that we echo, so that a PADO fits into a frame for every PADI.
const MAX_ECHOED: usize = 256;

/// Configuration of discovery.
#[derive(Clone)]
pub struct DiscoveryConfig {
    /// AC-Name.
    pub ac_name: String,
    /// Offered service names.
    pub service_names: Vec<String>,
    /// Whether other service names are accepted, too.
    pub accepts_any_service: bool,
    /// Key of the cookies, random at each start.
    pub cookie_key: [u8; 32],
    /// Lifetime of a cookie: the longest time between PADO and PADR.
    pub cookie_lifetime: Duration,
    /// Whether the ids and characteristics of the access line in a PADR are the access node's (TR-101). Otherwise they are ignored.
    pub trusts_access_line: bool,
    /// Largest PPP payload of the access ports, for PPP-Max-Payload (RFC 4638); `None` without jumbo frames.
    pub max_payload: Option<u16>,
}

/// Answer to a discovery packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Ignore it, for this reason.
    Ignore(Discarded),
    /// PADO: send this packet (from the PPPoE header on) to the access line, if a session can be served (RFC 2516 §5.2).
    Offer(Vec<u8>),
    /// Send this packet (from the PPPoE header on) to the access line.
    Reply(Vec<u8>),
    /// Valid PADR: create a session and answer with [`Discovery::pads`] or [`Discovery::refuse`].
    Admit(Padr),
    /// PADT: end this session if it belongs to the subscriber.
    Terminate {
        /// PPPoE session id.
        session_id: u16,
    },
}

/// Length of a cookie in octets: time of the offer and hash.
const COOKIE_LEN: usize = 16;
/// Octets of the time, in microseconds, which is unique for nine years. The hash has 80 bits (RFC 2104 §5).
const TIME_LEN: usize = 6;

/// Valid PADR.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Padr {
    /// Requested service name.
    pub service_name: Vec<u8>,
    /// Host-Uniq of the subscriber.
    pub host_uniq: Option<Vec<u8>>,
    /// Relay-Session-Id of the relay.
    pub relay_session_id: Option<Vec<u8>>,
    /// PPP payload above 1492 that both sides support.
    pub max_payload: Option<u16>,
    /// Agent circuit id (TR-101) from the access node.
    pub circuit_id: Option<Vec<u8>>,
    /// Agent remote id (TR-101).
    pub remote_id: Option<Vec<u8>>,
    /// Characteristics of the access loop (TR-101), if the access node adds any.
    pub access_loop: Option<Box<AccessLoop>>,
    /// Number of the offer that it accepts, from its cookie. Each offer to an access line has another one.
    pub offer: u64,
}

/// Reason for which a valid PADR gets no session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The service is not offered.
    ServiceName,
    /// No resource is left, with a text.
    System(&'static str),
}

/// Discovery server for all ports.
pub struct Discovery {
    config: DiscoveryConfig,
    /// Hash that is initialised with the key.
    keyed: Hmac<Sha256>,
}

/// Relevant tags, each at most once.
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
    /// Creates a server with this configuration.
    pub fn new(config: DiscoveryConfig) -> Self {
        // HMAC fills a key up with zeros to the block length of its hash (RFC 2104 §2).
        let mut key = [0; 64];
        key[..32].copy_from_slice(&config.cookie_key);
        let keyed = <Hmac<Sha256> as KeyInit>::new(&key.into());
        Discovery { config, keyed }
    }

    /// Handles a packet of EtherType 0x8863 (from the PPPoE header on) from this access line.
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

    /// Answers a PADI. A PADI for another service, or without Service-Name, gets no PADO (RFC 2516 §5.2).
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
        let cookie = self.cookie(now, circuit);
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
        Ok(Answer::Offer(emit(pppoe::PADO, 0, offer)))
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
        let offer = self.check_cookie(now, circuit, cookie)?;
        let line = packet.access_line();
        let line = line.filter(|_| self.config.trusts_access_line);
        let line = line.unwrap_or_default();
        let padr = Padr {
            service_name: asked.to_vec(),
            host_uniq: tags.host_uniq.map(<[u8]>::to_vec),
            relay_session_id: tags.relay_session_id.map(<[u8]>::to_vec),
            max_payload: self.agreed_payload(tags.max_payload),
            circuit_id: line.circuit_id.map(<[u8]>::to_vec),
            remote_id: line.remote_id.map(<[u8]>::to_vec),
            access_loop: AccessLoop::read(line.others).map(Box::new),
            offer,
        };
        if !self.serves(asked) {
            return Ok(Answer::Reply(self.refuse(&padr, Refusal::ServiceName)));
        }
        Ok(Answer::Admit(padr))
    }

    /// PADS that confirms a session.
    pub fn pads(&self, padr: &Padr, session_id: u16) -> Vec<u8> {
        let mut tags = echoed(padr);
        tags.extend(padr.max_payload.map(Tag::MaxPayload));
        emit(pppoe::PADS, session_id, tags)
    }

    /// PADS with session id 0 that rejects a session (RFC 2516 §5.4).
    pub fn refuse(&self, padr: &Padr, refusal: Refusal) -> Vec<u8> {
        let mut tags = echoed(padr);
        tags.push(match refusal {
            Refusal::ServiceName => Tag::ServiceNameError(b"service is not offered"),
            Refusal::System(text) => Tag::AcSystemError(text.as_bytes()),
        });
        emit(pppoe::PADS, 0, tags)
    }

    fn serves(&self, asked: &[u8]) -> bool {
        let mut names = self.config.service_names.iter();
        asked.is_empty()
            || self.config.accepts_any_service
            || names.any(|name| name.as_bytes() == asked)
    }

    /// Agreed PPP-Max-Payload. It has a meaning only above 1492 (RFC 4638 §4), and is limited by our ports.
    fn agreed_payload(&self, asked: Option<u16>) -> Option<u16> {
        let agreed = asked?.min(self.config.max_payload?);
        (agreed > crate::lcp::PPPOE_MRU).then_some(agreed)
    }

    fn mac(&self, time: &[u8], circuit: &Circuit) -> Hmac<Sha256> {
        let mut mac = self.keyed.clone();
        mac.update(time);
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

    /// A cookie is different for each offer to a line, so that a PADR says which offer it accepts.
    fn cookie(&self, now: Duration, circuit: &Circuit) -> [u8; COOKIE_LEN] {
        let [_, _, time @ ..] = number(now).to_be_bytes();
        let digest = self.mac(&time, circuit).finalize().into_bytes();
        let mut cookie = [0; COOKIE_LEN];
        cookie[..TIME_LEN].copy_from_slice(&time);
        cookie[TIME_LEN..].copy_from_slice(&digest[..COOKIE_LEN - TIME_LEN]);
        cookie
    }

    /// Checks that a cookie is ours (in constant time) and of an offer to the line that is not too old, and returns the offer's number.
    fn check_cookie(
        &self,
        now: Duration,
        circuit: &Circuit,
        cookie: &[u8],
    ) -> Result<u64, Discarded> {
        let (time, hash) = cookie
            .split_first_chunk::<TIME_LEN>()
            .filter(|_| cookie.len() == COOKIE_LEN)
            .ok_or(Discarded("PADR with a cookie that is not ours"))?;
        let offer = time
            .iter()
            .fold(0, |offer, octet| offer << 8 | u64::from(*octet));
        let age = Duration::from_micros(number(now).wrapping_sub(offer) & LAST_OFFER);
        let mac = self.mac(time, circuit);
        if mac.verify_truncated_left(hash).is_err() || age > self.config.cookie_lifetime {
            return Err(Discarded(
                "PADR with a cookie that is old, forged, or from another line",
            ));
        }
        Ok(offer)
    }
}

/// Number of the last offer. After it the numbers begin again.
const LAST_OFFER: u64 = (1 << (8 * TIME_LEN)) - 1;

/// Number of the offers at this time.
fn number(now: Duration) -> u64 {
    now.as_micros() as u64 & LAST_OFFER
}

/// PADT that ends a session, with a text (Generic-Error).
pub fn padt(session_id: u16, reason: &str) -> Vec<u8> {
    emit(
        pppoe::PADT,
        session_id,
        vec![Tag::GenericError(reason.as_bytes())],
    )
}

/// Tags that every PADS returns unchanged.
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
