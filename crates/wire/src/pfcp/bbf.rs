//! The elements of the Broadband Forum (TR-459, enterprise 3561).
use super::codec::{Cursor, Fault, IeId, Outcome, Value, group};
use super::ie;

/// The BBF's private enterprise number.
pub const ENTERPRISE: u16 = 3561;

macro_rules! bbf {
    ($( $value:literal $name:ident, )*) => {
        $(
            #[doc = concat!("Type ", $value, ".")]
            pub const $name: IeId = IeId::vendor($value, ENTERPRISE);
        )*
    };
}

bbf! {
    32768 UP_FUNCTION_FEATURES,
    32769 LOGICAL_PORT,
    32770 OUTER_HEADER_CREATION,
    32771 OUTER_HEADER_REMOVAL,
    32772 PPPOE_SESSION_ID,
    32773 PPP_PROTOCOL,
    32774 VERIFICATION_TIMERS,
    32775 PPP_LCP_MAGIC_NUMBER,
    32776 MTU,
    32780 PPP_LCP_CONNECTIVITY,
}

/// Where in BBF UP Function Features the feature octet is sent. TR-459 gives the element four octets; readers up to
/// Wireshark 4.0 take the first of them, later ones the last. Both are accepted.
pub const FEATURES_IN_FIRST_OCTET: bool = true;

/// BBF UP Function Features.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BbfUpFeatures(pub u8);

impl BbfUpFeatures {
    /// PPPoE sessions.
    pub const PPPOE: Self = BbfUpFeatures(0x01);
    /// IPoE sessions.
    pub const IPOE: Self = BbfUpFeatures(0x02);
    /// L2TP access concentrator.
    pub const LAC: Self = BbfUpFeatures(0x04);
    /// L2TP network server.
    pub const LNS: Self = BbfUpFeatures(0x08);
    /// LCP keepalive by the user plane.
    pub const LCP_KEEPALIVE: Self = BbfUpFeatures(0x10);

    /// Are all bits of `other` set?
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

impl Value for BbfUpFeatures {
    fn read(payload: &[u8], _ignored: &mut u32) -> Outcome<Self> {
        let [first, _, _, last] = Cursor(payload).array()?;
        Ok(BbfUpFeatures(first | last))
    }

    fn write(&self, out: &mut Vec<u8>) {
        let octets = if FEATURES_IN_FIRST_OCTET {
            [self.0, 0, 0, 0]
        } else {
            [0, 0, 0, self.0]
        };
        out.extend_from_slice(&octets);
    }
}

/// BBF Outer Header Creation: a bit mask, then a tunnel id and a session id (for L2TP, else 0). The ids may be left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BbfOuterHeaderCreation {
    /// Which headers.
    pub description: u16,
    /// L2TP tunnel id.
    pub tunnel_id: u16,
    /// L2TP session id.
    pub session_id: u16,
}

impl BbfOuterHeaderCreation {
    /// The control packet redirection interface's NSH with logical port.
    pub const CPR_NSH: Self = Self::of(0x0100);
    /// Whatever the linked traffic endpoint needs: tags, MAC, PPPoE and PPP.
    pub const TRAFFIC_ENDPOINT: Self = Self::of(0x0200);

    const fn of(description: u16) -> Self {
        BbfOuterHeaderCreation {
            description,
            tunnel_id: 0,
            session_id: 0,
        }
    }
}

impl Value for BbfOuterHeaderCreation {
    fn read(payload: &[u8], _ignored: &mut u32) -> Outcome<Self> {
        let mut cursor = Cursor(payload);
        let description = cursor.u16()?;
        if cursor.0.is_empty() {
            return Ok(Self::of(description));
        }
        Ok(BbfOuterHeaderCreation {
            description,
            tunnel_id: cursor.u16()?,
            session_id: cursor.u16()?,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        for half in [self.description, self.tunnel_id, self.session_id] {
            half.write(out);
        }
    }
}

/// BBF Outer Header Removal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BbfOuterHeaderRemoval(pub u8);

impl BbfOuterHeaderRemoval {
    /// Ethernet.
    pub const ETHERNET: Self = BbfOuterHeaderRemoval(1);
    /// PPPoE and Ethernet.
    pub const PPPOE: Self = BbfOuterHeaderRemoval(2);
    /// PPP, PPPoE and Ethernet.
    pub const PPP: Self = BbfOuterHeaderRemoval(3);
}

impl Value for BbfOuterHeaderRemoval {
    fn read(payload: &[u8], _ignored: &mut u32) -> Outcome<Self> {
        Cursor(payload).u8().map(BbfOuterHeaderRemoval)
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(self.0);
    }
}

/// PPP Protocol: which PPP packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PppProtocol {
    /// The one with this number.
    Specific(u16),
    /// What travels in the network-layer protocols, 0x0000 to 0x3fff.
    Data,
    /// Everything else: LCP, authentication, NCPs.
    Control,
}

impl Value for PppProtocol {
    fn read(payload: &[u8], _ignored: &mut u32) -> Outcome<Self> {
        let mut cursor = Cursor(payload);
        match cursor.u8()? & 7 {
            1 => cursor.u16().map(PppProtocol::Specific),
            2 => Ok(PppProtocol::Data),
            4 => Ok(PppProtocol::Control),
            _ => Err(Fault::INCORRECT),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            PppProtocol::Specific(number) => {
                out.push(1);
                number.write(out);
            }
            PppProtocol::Data => out.push(2),
            PppProtocol::Control => out.push(4),
        }
    }
}

/// Verification Timers of a keepalive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct VerificationTimers {
    /// Seconds between echoes.
    pub interval: u16,
    /// Echoes missed before the link is down.
    pub count: u8,
}

impl Value for VerificationTimers {
    fn read(payload: &[u8], _ignored: &mut u32) -> Outcome<Self> {
        let mut cursor = Cursor(payload);
        Ok(VerificationTimers {
            interval: cursor.u16()?,
            count: cursor.u8()?,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.interval.write(out);
        self.count.write(out);
    }
}

/// PPP LCP Magic Number of both ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MagicNumbers {
    /// The gateway's.
    pub transmitted: u32,
    /// The subscriber's.
    pub received: u32,
}

impl Value for MagicNumbers {
    fn read(payload: &[u8], _ignored: &mut u32) -> Outcome<Self> {
        let mut cursor = Cursor(payload);
        Ok(MagicNumbers {
            transmitted: cursor.u32()?,
            received: cursor.u32()?,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.transmitted.write(out);
        self.received.write(out);
    }
}

group! {
    /// PPP LCP Connectivity: the user plane keeps the link alive.
    pub struct PppLcpConnectivity {
        /// Over which endpoint.
        optional traffic_endpoint: u8 = ie::TRAFFIC_ENDPOINT_ID,
        /// How often.
        optional timers: VerificationTimers = VERIFICATION_TIMERS,
        /// With which magic numbers.
        optional magic_numbers: MagicNumbers = PPP_LCP_MAGIC_NUMBER,
    }
}
