//! What a classifier knows of a packet.

/// Place of a packet among the fragments of its datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Fragment {
    /// The packet is a whole datagram.
    #[default]
    None,
    /// First fragment: offset 0.
    First,
    /// Any other fragment. Its [`Upper`] is [`Upper::Unread`].
    Later,
}

/// How much of the upper-layer header could be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Upper {
    /// Nothing: `source_port`, `destination_port` and `tcp_flags` mean nothing.
    #[default]
    Unread,
    /// The first four octets: ports of protocols that have them, type and code of ICMP and ICMPv6.
    Ports,
    /// Ports and flags of TCP.
    Flags,
}

/// An IPv4 packet as rules see it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packet4 {
    /// Source address.
    pub source: u32,
    /// Destination address.
    pub destination: u32,
    /// Octets 0 and 1 of the upper-layer header: the source port, or ICMP's type and code, with the type in the upper octet.
    pub source_port: u16,
    /// Octets 2 and 3 of the upper-layer header: the destination port.
    pub destination_port: u16,
    /// Octets of the IP packet with its header.
    pub length: u16,
    /// IP protocol number.
    pub protocol: u8,
    /// Differentiated services code point, 0 to 63. Higher bits are ignored.
    pub dscp: u8,
    /// Octet 13 of the TCP header. Only the lowest six flags are used.
    pub tcp_flags: u8,
    /// Place among the fragments of the datagram.
    pub fragment: Fragment,
    /// Which of ports and flags could be read.
    pub upper: Upper,
}

/// An IPv6 packet as rules see it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packet6 {
    /// Source address.
    pub source: u128,
    /// Destination address.
    pub destination: u128,
    /// Octets 0 and 1 of the upper-layer header: the source port, or ICMPv6's type and code, with the type in the upper octet.
    pub source_port: u16,
    /// Octets 2 and 3 of the upper-layer header: the destination port.
    pub destination_port: u16,
    /// Octets of the IP packet with its header; 65,535 for longer ones.
    pub length: u16,
    /// Protocol number of the upper-layer header, or of the last header that could be read.
    pub protocol: u8,
    /// Differentiated services code point, 0 to 63. Higher bits are ignored.
    pub dscp: u8,
    /// Octet 13 of the TCP header. Only the lowest six flags are used.
    pub tcp_flags: u8,
    /// Place among the fragments of the datagram.
    pub fragment: Fragment,
    /// Which of ports and flags could be read.
    pub upper: Upper,
}
