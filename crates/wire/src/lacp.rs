//! Link Aggregation Control Protocol, and the marker protocol beside it (IEEE 802.1AX-2020 §6.4.2, §6.5.3): payloads of frames of the
//! slow protocols ([`SLOW_PROTOCOLS`](crate::eth::SLOW_PROTOCOLS)).
//!
//! ```
//! use wire::lacp::{Lacpdu, Party, State};
//!
//! let actor = Party { key: 7, port: 1, state: State::ACTIVITY | State::AGGREGATION, ..Party::default() };
//! let sent = Lacpdu { actor, partner: Party::default(), max_delay: 0 };
//! let mut bytes = Vec::new();
//! sent.emit(&mut bytes);
//! assert_eq!(Lacpdu::parse(&bytes), Ok(sent));
//! ```
use crate::eth::MacAddr;
use crate::{Malformed, Result};

/// Destination of the frames: bridges do not forward it (IEEE 802.3 Annex 57A.3).
pub const DESTINATION: MacAddr = MacAddr([1, 0x80, 0xc2, 0, 0, 2]);

/// First octet of a LACPDU.
pub const LACP: u8 = 1;
/// First octet of a marker PDU.
pub const MARKER: u8 = 2;

/// Octets of a LACPDU and of a marker PDU.
const LENGTH: usize = 110;
/// Octets of the information about a party, with its two of type and length.
const INFORMATION: u8 = 20;
const COLLECTOR: u8 = 16;

bitflags::bitflags! {
    /// What a party says of its port (§6.4.2.3, Figure 6-8).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct State: u8 {
        /// It speaks without being spoken to.
        const ACTIVITY = 1;
        /// It forgets what it heard after 3 seconds, not 90.
        const TIMEOUT = 2;
        /// The link may be aggregated with others.
        const AGGREGATION = 4;
        /// The port is in the right group.
        const SYNCHRONIZATION = 8;
        /// Frames are received.
        const COLLECTING = 16;
        /// Frames are sent.
        const DISTRIBUTING = 32;
        /// What it knows of its partner was configured, not heard.
        const DEFAULTED = 64;
        /// What it heard of its partner is too old.
        const EXPIRED = 128;
    }
}

/// A port at one end of a link, with the system that it is part of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Party {
    /// Priority of the system, the lowest first.
    pub system_priority: u16,
    /// The system.
    pub system: MacAddr,
    /// Ports of a system with the same key may be aggregated.
    pub key: u16,
    /// Priority of the port, the lowest first.
    pub port_priority: u16,
    /// The port in its system.
    pub port: u16,
    /// What it says of itself.
    pub state: State,
}

/// A LACPDU (§6.4.2.3), version 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lacpdu {
    /// Who sends.
    pub actor: Party,
    /// What the sender knows of whom it is for.
    pub partner: Party,
    /// How long the sender may hold received frames back, in tens of microseconds.
    pub max_delay: u16,
}

impl Lacpdu {
    /// Reads the payload of a frame. A later version is read as far as version 1 goes; what follows is ignored (§6.4.2.4).
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let (fixed, _) = bytes
            .split_first_chunk::<LENGTH>()
            .ok_or(Malformed("LACPDU cut off"))?;
        let [LACP, 1..=255, ..] = fixed else {
            return Err(Malformed("not a LACPDU"));
        };
        Ok(Lacpdu {
            actor: Party::parse(fixed, 2, 1)?,
            partner: Party::parse(fixed, 22, 2)?,
            max_delay: match fixed[42..44] {
                [3, COLLECTOR] => u16::from_be_bytes([fixed[44], fixed[45]]),
                _ => return Err(Malformed("LACPDU without collector information")),
            },
        })
    }

    /// Appends the 110 octets to `out`.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let end = out.len() + LENGTH;
        out.extend([LACP, 1]);
        self.actor.emit(1, out);
        self.partner.emit(2, out);
        out.extend([3, COLLECTOR]);
        out.extend(self.max_delay.to_be_bytes());
        // Reserved octets, and the terminator, whose type and length are 0.
        out.resize(end, 0);
    }
}

impl Party {
    fn parse(pdu: &[u8; LENGTH], at: usize, kind: u8) -> Result<Self> {
        if pdu[at..at + 2] != [kind, INFORMATION] {
            return Err(Malformed("LACPDU without actor or partner information"));
        }
        let word = |offset: usize| u16::from_be_bytes([pdu[at + offset], pdu[at + offset + 1]]);
        Ok(Party {
            system_priority: word(2),
            system: MacAddr(core::array::from_fn(|i| pdu[at + 4 + i])),
            key: word(10),
            port_priority: word(12),
            port: word(14),
            state: State::from_bits_retain(pdu[at + 16]),
        })
    }

    fn emit(&self, kind: u8, out: &mut Vec<u8>) {
        out.extend([kind, INFORMATION]);
        out.extend(self.system_priority.to_be_bytes());
        out.extend(self.system.0);
        out.extend(self.key.to_be_bytes());
        out.extend(self.port_priority.to_be_bytes());
        out.extend(self.port.to_be_bytes());
        out.extend([self.state.bits(), 0, 0, 0]);
    }
}

/// The answer to a marker, which says that no frame that was sent before it is still on its way (§6.5.3.3): the same, with another type.
/// `None` if the payload is no marker that asks for one.
pub fn marker_response(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut response = bytes.get(..LENGTH)?.to_vec();
    let [MARKER, 1, kind @ 1, 16, ..] = &mut response[..] else {
        return None;
    };
    *kind = 2;
    Some(response)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn party() -> impl Strategy<Value = Party> {
        any::<(u16, [u8; 6], u16, u16, u16, u8)>().prop_map(
            |(system_priority, system, key, port_priority, port, state)| Party {
                system_priority,
                system: MacAddr(system),
                key,
                port_priority,
                port,
                state: State::from_bits_retain(state),
            },
        )
    }

    proptest! {
        #[test]
        fn emit_then_parse(actor in party(), partner in party(), max_delay: u16, version in 1u8.., more: Vec<u8>) {
            let pdu = Lacpdu { actor, partner, max_delay };
            let mut bytes = Vec::new();
            pdu.emit(&mut bytes);
            prop_assert!((0..bytes.len()).all(|n| Lacpdu::parse(&bytes[..n]).is_err()));
            bytes[1] = version;
            bytes.extend(more);
            prop_assert_eq!(Lacpdu::parse(&bytes), Ok(pdu));
            prop_assert_eq!(marker_response(&bytes), None);
        }

        #[test]
        fn parse_never_panics(bytes: Vec<u8>) {
            let _ = Lacpdu::parse(&bytes);
            let answer = marker_response(&bytes);
            prop_assert!(answer.is_none_or(|answer| marker_response(&answer).is_none()), "answers to answers");
        }
    }

    #[test]
    fn a_marker_is_answered_with_what_it_says() {
        let mut marker = vec![MARKER, 1, 1, 16, 0, 3, 2, 0, 0, 0, 0, 1, 9, 9, 9, 9];
        assert_eq!(marker_response(&marker), None, "cut off");
        marker.resize(112, 0);
        let mut answer = marker[..110].to_vec();
        answer[2] = 2;
        assert_eq!(marker_response(&marker), Some(answer));
    }
}
