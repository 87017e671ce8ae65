//! The elements that carry identities, addresses and tunnels.
use super::codec::{Cursor, Fault, Outcome, Value};
use super::ethernet::VlanTag;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Seconds since 1900 (RFC 5905 era 0) of a Unix time, as PFCP's time stamps count them; it wraps in 2036.
pub const fn ntp_seconds(unix: u64) -> u32 {
    unix.wrapping_add(2_208_988_800) as u32
}

/// Node ID (§8.2.38).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum NodeId {
    /// By IPv4 address.
    Ipv4(Ipv4Addr),
    /// By IPv6 address.
    Ipv6(Ipv6Addr),
    /// By name.
    Fqdn(String),
}

impl Default for NodeId {
    fn default() -> Self {
        NodeId::Ipv4(Ipv4Addr::UNSPECIFIED)
    }
}

impl From<IpAddr> for NodeId {
    fn from(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => NodeId::Ipv4(address),
            IpAddr::V6(address) => NodeId::Ipv6(address),
        }
    }
}

impl core::fmt::Display for NodeId {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            NodeId::Ipv4(address) => address.fmt(f),
            NodeId::Ipv6(address) => address.fmt(f),
            NodeId::Fqdn(name) => name.fmt(f),
        }
    }
}

/// Names are the labels of RFC 1035 §3.1 without the root's empty one, which is accepted all the same.
fn read_name(mut cursor: Cursor<'_>) -> Outcome<String> {
    let mut name = String::with_capacity(cursor.0.len());
    while !cursor.0.is_empty() {
        let length = cursor.u8()?;
        if length == 0 && cursor.0.is_empty() && !name.is_empty() {
            break;
        }
        let label = cursor.take(usize::from(length))?;
        let valid =
            matches!(length, 1..=63) && label.iter().all(|c| c.is_ascii_graphic() && *c != b'.');
        if !valid {
            return Err(Fault::INCORRECT);
        }
        if !name.is_empty() {
            name.push('.');
        }
        name.extend(label.iter().map(|c| char::from(*c)));
    }
    if name.is_empty() {
        Err(Fault::SHORT)
    } else {
        Ok(name)
    }
}

fn write_name(name: &str, out: &mut Vec<u8>) {
    for label in name.split('.').filter(|label| !label.is_empty()) {
        let label = &label.as_bytes()[..label.len().min(63)];
        out.push(label.len() as u8);
        out.extend_from_slice(label);
    }
}

impl Value for NodeId {
    fn read(payload: &[u8], _ignored: &mut u32) -> Outcome<Self> {
        let mut cursor = Cursor(payload);
        match cursor.u8()? & 0x0f {
            0 => Ok(NodeId::Ipv4(cursor.array::<4>()?.into())),
            1 => Ok(NodeId::Ipv6(cursor.array::<16>()?.into())),
            2 => read_name(cursor).map(NodeId::Fqdn),
            _ => Err(Fault::INCORRECT),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            NodeId::Ipv4(address) => {
                out.push(0);
                out.extend_from_slice(&address.octets());
            }
            NodeId::Ipv6(address) => {
                out.push(1);
                out.extend_from_slice(&address.octets());
            }
            NodeId::Fqdn(name) => {
                out.push(2);
                write_name(name, out);
            }
        }
    }
}

fn read_v4(cursor: &mut Cursor<'_>, present: bool) -> Outcome<Option<Ipv4Addr>> {
    if present {
        Ok(Some(cursor.array::<4>()?.into()))
    } else {
        Ok(None)
    }
}

fn read_v6(cursor: &mut Cursor<'_>, present: bool) -> Outcome<Option<Ipv6Addr>> {
    if present {
        Ok(Some(cursor.array::<16>()?.into()))
    } else {
        Ok(None)
    }
}

fn write_addresses(ipv4: Option<Ipv4Addr>, ipv6: Option<Ipv6Addr>, out: &mut Vec<u8>) {
    if let Some(address) = ipv4 {
        out.extend_from_slice(&address.octets());
    }
    if let Some(address) = ipv6 {
        out.extend_from_slice(&address.octets());
    }
}

/// F-SEID (§8.2.37): a session at one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FSeid {
    /// Session endpoint identifier, unique at the node.
    pub seid: u64,
    /// Where the node is reached.
    pub ipv4: Option<Ipv4Addr>,
    /// Where the node is reached.
    pub ipv6: Option<Ipv6Addr>,
}

impl FSeid {
    /// A session at a node with one address.
    pub const fn new(seid: u64, address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => FSeid {
                seid,
                ipv4: Some(address),
                ipv6: None,
            },
            IpAddr::V6(address) => FSeid {
                seid,
                ipv4: None,
                ipv6: Some(address),
            },
        }
    }
}

impl Value for FSeid {
    fn read(payload: &[u8], _ignored: &mut u32) -> Outcome<Self> {
        let mut cursor = Cursor(payload);
        let flags = cursor.u8()?;
        let seid = cursor.u64()?;
        let ipv4 = read_v4(&mut cursor, flags & 2 != 0)?;
        let ipv6 = read_v6(&mut cursor, flags & 1 != 0)?;
        if ipv4.is_none() && ipv6.is_none() {
            return Err(Fault::INCORRECT);
        }
        Ok(FSeid { seid, ipv4, ipv6 })
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(u8::from(self.ipv4.is_some()) << 1 | u8::from(self.ipv6.is_some()));
        out.extend_from_slice(&self.seid.to_be_bytes());
        write_addresses(self.ipv4, self.ipv6, out);
    }
}

/// F-TEID (§8.2.3): a GTP-U tunnel's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FTeid {
    /// This tunnel.
    Given {
        /// Tunnel endpoint identifier.
        teid: u32,
        /// Where the packets go.
        ipv4: Option<Ipv4Addr>,
        /// Where the packets go.
        ipv6: Option<Ipv6Addr>,
    },
    /// The user plane shall choose (CHOOSE).
    Choose {
        /// An IPv4 address is wanted.
        ipv4: bool,
        /// An IPv6 address is wanted.
        ipv6: bool,
        /// Elements with the same id get the same tunnel.
        id: Option<u8>,
    },
}

impl FTeid {
    /// A tunnel that ends at one address.
    pub const fn new(teid: u32, address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => FTeid::Given {
                teid,
                ipv4: Some(address),
                ipv6: None,
            },
            IpAddr::V6(address) => FTeid::Given {
                teid,
                ipv4: None,
                ipv6: Some(address),
            },
        }
    }
}

impl Default for FTeid {
    fn default() -> Self {
        FTeid::Choose {
            ipv4: true,
            ipv6: false,
            id: None,
        }
    }
}

impl Value for FTeid {
    fn read(payload: &[u8], _ignored: &mut u32) -> Outcome<Self> {
        let mut cursor = Cursor(payload);
        let flags = cursor.u8()?;
        let (v4, v6) = (flags & 1 != 0, flags & 2 != 0);
        if !v4 && !v6 {
            return Err(Fault::INCORRECT);
        }
        if flags & 4 != 0 {
            let id = if flags & 8 != 0 {
                Some(cursor.u8()?)
            } else {
                None
            };
            return Ok(FTeid::Choose {
                ipv4: v4,
                ipv6: v6,
                id,
            });
        }
        let teid = cursor.u32()?;
        let ipv4 = read_v4(&mut cursor, v4)?;
        let ipv6 = read_v6(&mut cursor, v6)?;
        Ok(FTeid::Given { teid, ipv4, ipv6 })
    }

    fn write(&self, out: &mut Vec<u8>) {
        match *self {
            FTeid::Given { teid, ipv4, ipv6 } => {
                out.push(u8::from(ipv4.is_some()) | u8::from(ipv6.is_some()) << 1);
                out.extend_from_slice(&teid.to_be_bytes());
                write_addresses(ipv4, ipv6, out);
            }
            FTeid::Choose { ipv4, ipv6, id } => {
                out.push(u8::from(ipv4) | u8::from(ipv6) << 1 | 4 | u8::from(id.is_some()) << 3);
                out.extend(id);
            }
        }
    }
}

/// UE IP Address (§8.2.62).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct UeIpAddress {
    /// The address is the packets' destination (S/D bit), not their source. Without meaning in a traffic endpoint.
    pub destination: bool,
    /// An IPv4 address.
    pub ipv4: Option<Ipv4Addr>,
    /// An IPv6 prefix, of 64 bits unless one of the next two says otherwise.
    pub ipv6: Option<Ipv6Addr>,
    /// A delegated prefix: this many bits shorter than 64 (IPv6D). Only together with `ipv6`.
    pub delegation_bits: Option<u8>,
    /// The length of the prefix (IP6PL). Only together with `ipv6`.
    pub prefix_length: Option<u8>,
    /// The user plane shall choose the IPv4 address.
    pub choose_ipv4: bool,
    /// The user plane shall choose the IPv6 prefix.
    pub choose_ipv6: bool,
}

impl UeIpAddress {
    /// An IPv4 address.
    pub fn v4(address: Ipv4Addr) -> Self {
        UeIpAddress {
            ipv4: Some(address),
            ..Self::default()
        }
    }

    /// An IPv6 prefix. Its length is sent (IP6PL) unless it is the default of 64.
    pub fn v6(prefix: Ipv6Addr, length: u8) -> Self {
        let prefix_length = (length != 64).then_some(length);
        UeIpAddress {
            ipv6: Some(prefix),
            prefix_length,
            ..Self::default()
        }
    }

    /// The length of the IPv6 prefix that the element names.
    pub fn ipv6_length(&self) -> u8 {
        match (self.prefix_length, self.delegation_bits) {
            (Some(length), _) => length,
            (None, Some(bits)) => 64u8.saturating_sub(bits),
            (None, None) => 64,
        }
    }
}

impl Value for UeIpAddress {
    fn read(payload: &[u8], _ignored: &mut u32) -> Outcome<Self> {
        let mut cursor = Cursor(payload);
        let flags = cursor.u8()?;
        let is = |bit: u8| flags & bit != 0;
        // CHOOSE asks for an address, so it cannot come with one; IPv6D and IP6PL exclude each other.
        if (is(2) && is(16)) || (is(1) && is(32)) || (is(8) && is(64)) {
            return Err(Fault::INCORRECT);
        }
        let ipv4 = read_v4(&mut cursor, is(2))?;
        let ipv6 = read_v6(&mut cursor, is(1))?;
        let delegation_bits = if is(8) { Some(cursor.u8()?) } else { None };
        let prefix_length = if is(64) { Some(cursor.u8()?) } else { None };
        if delegation_bits.is_some_and(|bits| bits > 64)
            || prefix_length.is_some_and(|length| length > 128)
        {
            return Err(Fault::INCORRECT);
        }
        let (destination, choose_ipv4, choose_ipv6) = (is(4), is(16), is(32));
        Ok(UeIpAddress {
            destination,
            ipv4,
            ipv6,
            delegation_bits,
            prefix_length,
            choose_ipv4,
            choose_ipv6,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        let bits = [
            self.ipv6.is_some(),
            self.ipv4.is_some(),
            self.destination,
            self.delegation_bits.is_some(),
            self.choose_ipv4,
            self.choose_ipv6,
            self.prefix_length.is_some(),
        ];
        out.push(
            bits.iter()
                .rev()
                .fold(0, |flags, bit| flags << 1 | u8::from(*bit)),
        );
        write_addresses(self.ipv4, self.ipv6, out);
        out.extend(self.delegation_bits);
        out.extend(self.prefix_length);
    }
}

/// Outer Header Creation (§8.2.56). Which headers follows from which fields are there: an address with a TEID is
/// GTP-U/UDP/IP, with a port UDP/IP, alone IP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct OuterHeaderCreation {
    /// The tunnel at the other end.
    pub teid: Option<u32>,
    /// The other end.
    pub ipv4: Option<Ipv4Addr>,
    /// The other end.
    pub ipv6: Option<Ipv6Addr>,
    /// The other end's UDP port (not for GTP-U).
    pub port: Option<u16>,
    /// A C-tag to put on.
    pub c_tag: Option<VlanTag>,
    /// An S-tag to put on.
    pub s_tag: Option<VlanTag>,
}

impl OuterHeaderCreation {
    /// GTP-U to one tunnel.
    pub fn gtpu(teid: u32, address: IpAddr) -> Self {
        let mut header = OuterHeaderCreation {
            teid: Some(teid),
            ..Self::default()
        };
        match address {
            IpAddr::V4(address) => header.ipv4 = Some(address),
            IpAddr::V6(address) => header.ipv6 = Some(address),
        }
        header
    }

    fn description(&self) -> u16 {
        let plain = self.teid.is_none() && self.port.is_none();
        let mut bits = 0;
        for (present, v4_bit) in [
            (self.teid.is_some(), 0x0100),
            (self.port.is_some(), 0x0400),
            (plain, 0x1000),
        ] {
            if present {
                bits |= if self.ipv4.is_some() { v4_bit } else { 0 };
                bits |= if self.ipv6.is_some() { v4_bit << 1 } else { 0 };
            }
        }
        bits | u16::from(self.c_tag.is_some()) << 14 | u16::from(self.s_tag.is_some()) << 15
    }
}

impl Value for OuterHeaderCreation {
    fn read(payload: &[u8], ignored: &mut u32) -> Outcome<Self> {
        let mut cursor = Cursor(payload);
        let bits = cursor.u16()?;
        // The second octet (N19, N6, LLSSM) and "no header at all" are not for us.
        if bits & 0x00ff != 0 || bits == 0 {
            return Err(Fault::INCORRECT);
        }
        let teid = if bits & 0x0300 != 0 {
            Some(cursor.u32()?)
        } else {
            None
        };
        let ipv4 = read_v4(&mut cursor, bits & 0x1500 != 0)?;
        let ipv6 = read_v6(&mut cursor, bits & 0x2a00 != 0)?;
        let port = if bits & 0x0c00 != 0 {
            Some(cursor.u16()?)
        } else {
            None
        };
        let mut tag = |bit: u16| {
            if bits & bit != 0 {
                VlanTag::read(cursor.take(3)?, ignored).map(Some)
            } else {
                Ok(None)
            }
        };
        let c_tag = tag(0x4000)?;
        let s_tag = tag(0x8000)?;
        Ok(OuterHeaderCreation {
            teid,
            ipv4,
            ipv6,
            port,
            c_tag,
            s_tag,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.description().to_be_bytes());
        if let Some(teid) = self.teid {
            out.extend_from_slice(&teid.to_be_bytes());
        }
        write_addresses(self.ipv4, self.ipv6, out);
        if let Some(port) = self.port {
            out.extend_from_slice(&port.to_be_bytes());
        }
        for tag in [self.c_tag, self.s_tag].into_iter().flatten() {
            tag.write(out);
        }
    }
}

/// CP PFCP Entity IP Address (§8.2.131).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct EntityAddress {
    /// An address of the control plane.
    pub ipv4: Option<Ipv4Addr>,
    /// An address of the control plane.
    pub ipv6: Option<Ipv6Addr>,
}

impl Value for EntityAddress {
    fn read(payload: &[u8], _ignored: &mut u32) -> Outcome<Self> {
        let mut cursor = Cursor(payload);
        let flags = cursor.u8()?;
        let ipv4 = read_v4(&mut cursor, flags & 2 != 0)?;
        let ipv6 = read_v6(&mut cursor, flags & 1 != 0)?;
        Ok(EntityAddress { ipv4, ipv6 })
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(u8::from(self.ipv4.is_some()) << 1 | u8::from(self.ipv6.is_some()));
        write_addresses(self.ipv4, self.ipv6, out);
    }
}
