//! Sluice's own elements, for what neither 3GPP nor the BBF has.
//!
//! No private enterprise number has been assigned to the project yet. Until one is, [`ENTERPRISE`] is 32473, the number
//! that RFC 5612 reserves for documentation: no vendor can ever hold it, so it cannot collide with a real one, and a
//! foreign peer skips the elements as those of an unknown enterprise. It is written here and nowhere else.
use super::codec::{Cursor, IeId, Outcome, Value, flags};

/// The enterprise of our own elements: a placeholder, see above.
pub const ENTERPRISE: u16 = 32473;

/// Type of [`SluiceFeatures`].
pub const FEATURES: IeId = IeId::vendor(0x8001, ENTERPRISE);
/// Type of the outer tag's TPID in a traffic endpoint: two octets. 3GPP's S-TAG and C-TAG have none, but access networks
/// use 0x8100 as well as 0x88a8 outside. Without it the outer one of two tags has 0x88a8, a single one 0x8100.
pub const OUTER_TPID: IeId = IeId::vendor(0x8002, ENTERPRISE);

flags! {
    /// What this implementation can do beyond TR-459, in both directions of an association's setup.
    pub struct SluiceFeatures(u32), least 1 {
        /// The default session may have a rule from the control plane to the access side, whose packets carry CPR-NSH
        /// with the logical port and whole frames: answers to discovery without per-subscriber state.
        DEFAULT_CP_TO_UP_RULE = 0x01,
        /// Forwarding parameters may carry [`Settings`]; [`KnownSettings`] says which.
        SETTINGS = 0x02,
        /// A session may have any bindings: beside an IPv4 address and a /64, delegated prefixes (IPv6D) and framed routes.
        /// What is named as a framed route is announced as long as the session is there; of its own addresses, too.
        BINDINGS = 0x04,
        /// PPP LCP Connectivity with magic numbers and without timers: the user plane answers the subscriber's LCP echo requests.
        ECHO_REPLIES = 0x08,
        /// A framed route that is a route may have a metric (RFC 2865 §5.22), with which it is announced.
        METRICS = 0x10,
        /// A datagram of GTP-U may have several packets, one after the other, each with a header of its own.
        FRAMES = 0x20,
    }
}

/// Type of [`Audit`], in a Session Modification Request about a default session.
pub const AUDIT: IeId = IeId::vendor(0x8003, ENTERPRISE);
/// Type of [`AuditResult`], in the response.
pub const AUDIT_RESULT: IeId = IeId::vendor(0x8004, ENTERPRISE);

/// Type of [`Settings`], in (Update) Forwarding Parameters.
pub const SETTINGS: IeId = IeId::vendor(0x8005, ENTERPRISE);

/// Settings of a policy that no element of 3GPP or the BBF carries. In an update they replace all that were there.
///
/// Payload: for each setting its number (1 octet), the length of its value (1 octet), and the value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings(pub Vec<(u8, Vec<u8>)>);

/// Type of IPv6's part of a usage report's Volume Measurement, in a Usage Report: a Volume Measurement (TS 29.244 §8.2.44). The
/// rest is IPv4.
pub const IPV6_VOLUME: IeId = IeId::vendor(0x8008, ENTERPRISE);

/// Type of the number of LCP echo requests that a subscriber has not answered, in a Session Report Request about inactivity: two octets.
/// The user plane says by it that the subscriber is gone.
pub const UNANSWERED_ECHOES: IeId = IeId::vendor(0x8009, ENTERPRISE);

/// Type of the sender's next sequence number, in a Heartbeat Response: four octets, of which the low 24 bits count. The sender counts
/// all its requests with one counter, and takes a number when it first sends the request.
pub const NEXT_SEQUENCE: IeId = IeId::vendor(0x800a, ENTERPRISE);

/// Type of the rules of one subscriber, in a (Create or Update) QER: texts of IPFilterRule (RFC 6733 §4.3.1), separated by NUL as in
/// NAS-Filter-Rule (RFC 4849 §2). In an update they replace all that were there, and NUL alone takes them away.
pub const FILTER_RULES: IeId = IeId::vendor(0x800b, ENTERPRISE);

/// Type of [`KnownSettings`], in an association's setup.
pub const KNOWN_SETTINGS: IeId = IeId::vendor(0x8007, ENTERPRISE);

/// Numbers of the policy settings that a user plane can carry out, whatever element carries them.
///
/// Payload: the numbers in ascending order (1 octet each).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KnownSettings([u64; 4]);

impl KnownSettings {
    /// These numbers.
    pub fn of(numbers: impl IntoIterator<Item = u8>) -> Self {
        let mut known = KnownSettings::default();
        for number in numbers {
            known.0[usize::from(number / 64)] |= 1 << (number % 64);
        }
        known
    }

    /// Whether a number is among them.
    pub fn contains(&self, number: u8) -> bool {
        self.0[usize::from(number / 64)] >> (number % 64) & 1 == 1
    }
}

/// Type of [`Lanes`], in an association's setup.
pub const LANES: IeId = IeId::vendor(0x8006, ENTERPRISE);

/// The worker of each lane of PPPoE session ids. An id's low octet is its lane, and its sessions are this worker's.
///
/// Payload: the number of a worker (1 octet) for each of the 256 lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lanes(pub [u8; 256]);

impl Lanes {
    /// The lanes in turn to so many workers, at most 256.
    pub fn even(workers: u16) -> Self {
        Lanes(core::array::from_fn(|lane| {
            (lane % usize::from(workers)) as u8
        }))
    }

    /// The lane of a PPPoE session id.
    pub fn of(id: u16) -> u8 {
        id as u8
    }

    /// The worker of a PPPoE session id.
    pub fn worker(&self, id: u16) -> u8 {
        self.0[usize::from(Self::of(id))]
    }
}

/// The most sessions of one [`Audit`] or [`AuditResult`], so that a message stays well within 1,500 octets.
pub const AUDIT_BLOCK: usize = 80;

/// What the control plane believes that the user plane has: a block of sessions, of one audit.
///
/// Payload: epoch (4 octets), flags (1 octet; bit 0: the last block), then 16 octets for each session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// Tells this audit from others.
    pub epoch: u32,
    /// What was not named in this audit up to here is unknown to the control plane.
    pub last: bool,
    /// The user plane's SEID of each session, and the digest of its rules.
    pub sessions: Vec<(u64, u64)>,
}

/// What is otherwise than the control plane believes.
///
/// Payload: number of wrong sessions (2 octets), 2 octets for each; then 16 octets for each unknown session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditResult {
    /// Sessions of the block, by their place in it, that are not there or have other rules.
    pub wrong: Vec<u16>,
    /// After the last block: sessions that were not named, by the control plane's and the user plane's SEID. When there
    /// are [`AUDIT_BLOCK`] of them there may be more: another last block asks for them.
    pub unknown_sessions: Vec<(u64, u64)>,
}

fn pairs(cursor: &mut Cursor<'_>) -> Outcome<Vec<(u64, u64)>> {
    let mut pairs = Vec::with_capacity(cursor.0.len() / 16);
    while !cursor.0.is_empty() {
        pairs.push((cursor.u64()?, cursor.u64()?));
    }
    Ok(pairs)
}

fn emit_pairs(pairs: &[(u64, u64)], out: &mut Vec<u8>) {
    for (a, b) in pairs {
        out.extend_from_slice(&a.to_be_bytes());
        out.extend_from_slice(&b.to_be_bytes());
    }
}

impl Value for Audit {
    fn read(payload: &[u8], _ignored: &mut u32) -> Outcome<Self> {
        let mut cursor = Cursor(payload);
        Ok(Audit {
            epoch: cursor.u32()?,
            last: cursor.u8()? & 1 != 0,
            sessions: pairs(&mut cursor)?,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.epoch.to_be_bytes());
        out.push(self.last.into());
        emit_pairs(&self.sessions, out);
    }
}

impl Value for Lanes {
    fn read(payload: &[u8], _ignored: &mut u32) -> Outcome<Self> {
        Ok(Lanes(Cursor(payload).array()?))
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }
}

impl Value for KnownSettings {
    fn read(payload: &[u8], _ignored: &mut u32) -> Outcome<Self> {
        Ok(KnownSettings::of(payload.iter().copied()))
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend((0..=u8::MAX).filter(|number| self.contains(*number)));
    }
}

impl Value for Settings {
    fn read(payload: &[u8], _ignored: &mut u32) -> Outcome<Self> {
        let mut cursor = Cursor(payload);
        let mut settings = Vec::new();
        while !cursor.0.is_empty() {
            let (number, length) = (cursor.u8()?, cursor.u8()?);
            settings.push((number, cursor.take(length.into())?.to_vec()));
        }
        Ok(Settings(settings))
    }

    fn write(&self, out: &mut Vec<u8>) {
        for (number, value) in &self.0 {
            out.extend([*number, value.len() as u8]);
            out.extend_from_slice(value);
        }
    }
}

impl Value for AuditResult {
    fn read(payload: &[u8], _ignored: &mut u32) -> Outcome<Self> {
        let mut cursor = Cursor(payload);
        let count = cursor.u16()?;
        let wrong = (0..count).map(|_| cursor.u16());
        Ok(AuditResult {
            wrong: wrong.collect::<Outcome<_>>()?,
            unknown_sessions: pairs(&mut cursor)?,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.wrong.len() as u16).to_be_bytes());
        self.wrong
            .iter()
            .for_each(|place| out.extend_from_slice(&place.to_be_bytes()));
        emit_pairs(&self.unknown_sessions, out);
    }
}

#[cfg(test)]
mod tests {
    use super::Lanes;

    #[test]
    fn the_low_octet_of_a_session_id_names_its_worker() {
        let lanes = Lanes::even(3);
        let workers = [1, 2, 3, 255, 256, 0x0105].map(|id| lanes.worker(id));
        assert_eq!(workers, [1, 2, 0, 0, 0, 2]);
    }
}
