//! DHCPv6 (RFC 8415): messages between clients and servers with the options for addresses, delegated prefixes and name servers
//! (RFC 3646). Messages of relays are not read.
//!
//! ```
//! use wire::dhcpv6::{self, Ia, Message, Opt};
//!
//! let solicit = Message {
//!     kind: dhcpv6::SOLICIT,
//!     transaction: 0x01_0203,
//!     options: vec![Opt::ClientId(&[0, 3, 0, 1, 2, 0, 0, 0, 0, 9]), Opt::IaPd(Ia::new(1))],
//! };
//! let mut bytes = Vec::new();
//! solicit.emit(&mut bytes);
//! assert_eq!(Message::parse(&bytes), Ok(solicit));
//! ```
use crate::{Malformed, Result};
use core::net::Ipv6Addr;

mod options;
pub mod reconfigure;
pub use options::{Auth, Ia, IaAddress, IaPrefix, Opt, Status, status};

/// UDP port of clients.
pub const CLIENT_PORT: u16 = 546;
/// UDP port of servers and relays.
pub const SERVER_PORT: u16 = 547;
/// ff02::1:2, every server and relay of a link (All_DHCP_Relay_Agents_and_Servers).
pub const ALL_SERVERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 1, 2);

/// A client looks for servers.
pub const SOLICIT: u8 = 1;
/// A server offers.
pub const ADVERTISE: u8 = 2;
/// A client asks one server for leases.
pub const REQUEST: u8 = 3;
/// A client asks whether its addresses still fit the link.
pub const CONFIRM: u8 = 4;
/// A client extends its leases at the server that it has them from.
pub const RENEW: u8 = 5;
/// A client extends its leases at any server.
pub const REBIND: u8 = 6;
/// A server's answer.
pub const REPLY: u8 = 7;
/// A client gives leases back.
pub const RELEASE: u8 = 8;
/// A client has found an address in use.
pub const DECLINE: u8 = 9;
/// A server tells a client to ask again.
pub const RECONFIGURE: u8 = 10;
/// A client asks for settings without leases.
pub const INFORMATION_REQUEST: u8 = 11;

/// DUID based on a UUID (RFC 6355).
pub const DUID_UUID: u16 = 4;
/// Length of the shortest and the longest DUID: the type, and 1 to 128 octets (RFC 8415 §11.1).
pub const DUID_LENGTHS: core::ops::RangeInclusive<usize> = 3..=130;

/// Name of a message type.
pub const fn name(kind: u8) -> Option<&'static str> {
    Some(match kind {
        SOLICIT => "Solicit",
        ADVERTISE => "Advertise",
        REQUEST => "Request",
        CONFIRM => "Confirm",
        RENEW => "Renew",
        REBIND => "Rebind",
        REPLY => "Reply",
        RELEASE => "Release",
        DECLINE => "Decline",
        RECONFIGURE => "Reconfigure",
        INFORMATION_REQUEST => "Information-request",
        _ => return None,
    })
}

/// A message between client and server (RFC 8415 §8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Message type: [`SOLICIT`] to [`INFORMATION_REQUEST`].
    pub kind: u8,
    /// Transaction id: 24 bits.
    pub transaction: u32,
    /// Options in their order.
    pub options: Vec<Opt<'a>>,
}

impl<'a> Message<'a> {
    /// Reads a message. A message type that is none between client and server, an option beyond the message, and a known option
    /// of a wrong length refuse the whole.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let (&[kind, t1, t2, t3], options) = bytes
            .split_first_chunk()
            .ok_or(Malformed("DHCPv6 header cut off"))?;
        if name(kind).is_none() {
            return Err(Malformed("DHCPv6 message type is unknown"));
        }
        Ok(Message {
            kind,
            transaction: u32::from_be_bytes([0, t1, t2, t3]),
            options: options::parse_message(options)?,
        })
    }

    /// Appends the message to `out`. Each option must fit into 65,535 octets.
    pub fn emit(&self, out: &mut Vec<u8>) {
        debug_assert!(self.transaction < 1 << 24);
        let word = u32::from(self.kind) << 24 | self.transaction & 0xff_ffff;
        out.extend_from_slice(&word.to_be_bytes());
        self.options.iter().for_each(|option| option.emit(out));
    }

    /// DUID of the client.
    pub fn client_id(&self) -> Option<&'a [u8]> {
        self.options.iter().find_map(|option| match option {
            Opt::ClientId(duid) => Some(*duid),
            _ => None,
        })
    }

    /// DUID of the server.
    pub fn server_id(&self) -> Option<&'a [u8]> {
        self.options.iter().find_map(|option| match option {
            Opt::ServerId(duid) => Some(*duid),
            _ => None,
        })
    }

    /// Whether the client asks for an option by its code (Option Request, RFC 8415 §21.7).
    pub fn requests(&self, code: u16) -> bool {
        self.options
            .iter()
            .any(|option| matches!(option, Opt::OptionRequest(codes) if codes.contains(&code)))
    }
}

#[cfg(test)]
#[path = "dhcpv6_tests.rs"]
mod tests;
