//! What the rules of a session come to.
use super::{Circuit, PoolNet, Tunnel};
use core::net::Ipv4Addr;
use ipnet::Ipv6Net;

/// A control packet tunnel: both of its ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ControlTunnel {
    /// Where the user plane sends to.
    pub uplink: Tunnel,
    /// Where the control plane sends to, if it may: the user plane's own end.
    pub downlink: Option<Tunnel>,
}

/// A session that the user plane has rules for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Facts {
    /// The default session.
    Default(DefaultFacts),
    /// A subscriber's.
    Session(Box<SessionFacts>),
}

/// The default session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefaultFacts {
    /// The access port whose discovery packets it takes; `None` for all.
    pub logical_port: Option<Vec<u8>>,
    /// Discovery packets travel here, with CPR-NSH.
    pub tunnel: ControlTunnel,
    /// Nets to announce and to discard what no session owns; `slot` is the id of the rule. Sorted.
    pub nets: Vec<PoolNet>,
}

/// How a session is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UsageRule {
    /// The URR.
    pub urr_id: u32,
    /// Octets are counted.
    pub volume: bool,
    /// Packets are counted as well.
    pub packets: bool,
    /// Time is counted.
    pub duration: bool,
    /// Seconds between periodic reports.
    pub period: Option<u32>,
}

/// A subscriber's session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionFacts {
    /// Where the subscriber is.
    pub circuit: Circuit,
    /// Its PPPoE session.
    pub pppoe_session_id: u16,
    /// Its control packets travel here, as plain frames.
    pub tunnel: ControlTunnel,
    /// The subscriber handle.
    pub subscriber: Option<u32>,
    /// How it is measured.
    pub usage: Option<UsageRule>,
    /// Where its addresses live; with the first family.
    pub network_instance: Option<String>,
    /// The largest IP packet that the subscriber takes; with the first family.
    pub mtu: Option<u16>,
    /// Its IPv4 address, when IPv4 passes.
    pub ipv4: Option<Ipv4Addr>,
    /// Its IPv6 prefix, when IPv6 passes.
    pub ipv6: Option<Ipv6Net>,
    /// Neighbour discovery (ICMPv6 133 to 137) inside PPP data goes to the control plane.
    pub redirect_nd: bool,
    /// DHCPv6 (UDP to port 547) inside PPP data goes to the control plane.
    pub redirect_dhcpv6: bool,
}
