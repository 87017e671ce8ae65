//! What the rules of a session come to.
use super::{Circuit, PoolNet, Tunnel, settings};
use core::net::IpAddr;
use policy::{Binding, Bindings, Forwarding, PacketSettings, Role};

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
    /// What its policy says about packets: the bindings whose family passes, and what holds for them.
    pub forwarding: Forwarding,
    /// Neighbour discovery (ICMPv6 133 to 137) inside PPP data goes to the control plane.
    pub redirect_nd: bool,
    /// DHCPv6 (UDP to port 547) inside PPP data goes to the control plane.
    pub redirect_dhcpv6: bool,
}

impl SessionFacts {
    /// A hash of everything that the user plane does for the session, the same on both planes: an audit compares it.
    pub fn digest(&self) -> u64 {
        let mut hash = Fnv::default();
        let Circuit {
            logical_port,
            tags,
            mac,
            gateway_mac,
        } = &self.circuit;
        hash.bytes(logical_port);
        for tag in [tags.outer, tags.inner] {
            hash.bytes(&tag.map_or([0; 4], |t| {
                (u32::from(t.tpid) << 16 | u32::from(t.vid)).to_be_bytes()
            }));
        }
        hash.bytes(&mac.0);
        hash.bytes(&gateway_mac.0);
        hash.bytes(&self.pppoe_session_id.to_be_bytes());
        for tunnel in [Some(self.tunnel.uplink), self.tunnel.downlink] {
            hash.optional(tunnel.map(|t| t.teid.to_be_bytes()));
            hash.address(tunnel.map(|t| t.address));
        }
        hash.optional(self.subscriber.map(u32::to_be_bytes));
        let flags = |u: UsageRule| [u.volume, u.packets, u.duration].map(u8::from);
        hash.optional(self.usage.map(flags));
        let period = self.usage.and_then(|usage| usage.period);
        hash.optional(period.map(u32::to_be_bytes));
        hash.forwarding(&self.forwarding);
        hash.bytes(&[self.redirect_nd.into(), self.redirect_dhcpv6.into()]);
        hash.further(&self.forwarding.bindings);
        hash.numbered(&self.forwarding.packets);
        hash.0
    }
}

/// FNV-1a: the same in every build, which the standard library's hashes do not promise.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes.iter().chain(&[0xff]) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    /// What is absent differs from what is there, be it empty.
    fn optional(&mut self, value: Option<impl AsRef<[u8]>>) {
        match value {
            Some(value) => {
                self.bytes(&[1]);
                self.bytes(value.as_ref());
            }
            None => self.bytes(&[0]),
        }
    }

    /// As the user planes of the first version have it.
    fn forwarding(&mut self, forwarding: &Forwarding) {
        let instance = &forwarding.network_instance;
        self.optional(Some(instance).filter(|name| !name.is_empty()));
        let Forwarding {
            bindings, packets, ..
        } = forwarding;
        self.optional(packets.mtu.map(u16::to_be_bytes));
        self.optional(bindings.ipv4().map(|address| address.octets()));
        self.optional(bindings.ipv6().map(|net| net.addr().octets()));
        self.optional(bindings.ipv6().map(|net| [net.prefix_len()]));
    }

    /// What the first version did not know of bindings; nothing if there is nothing of it.
    fn further(&mut self, bindings: &Bindings) {
        let first = [
            bindings.ipv4().map(|address| Binding::host(address.into())),
            bindings.ipv6().map(Binding::link),
        ];
        for binding in bindings.iter().filter(|b| !first.contains(&Some(**b))) {
            let role = match binding.role {
                Role::Host => 1,
                Role::Link => 2,
                Role::Delegated => 3,
                Role::Route => 4,
            };
            let length = binding.prefix.prefix_len();
            self.bytes(&[role, length, binding.is_announced.into()]);
            self.address(Some(binding.prefix.addr()));
        }
    }

    /// Settings that are at their defaults leave the digest as it was before they were known.
    fn numbered(&mut self, packets: &PacketSettings) {
        for (number, value) in settings::numbered(packets).0 {
            self.bytes(&[number]);
            self.bytes(&value);
        }
    }

    fn address(&mut self, address: Option<IpAddr>) {
        match address {
            Some(IpAddr::V4(address)) => self.optional(Some(address.octets())),
            Some(IpAddr::V6(address)) => self.optional(Some(address.octets())),
            None => self.optional(None::<[u8; 0]>),
        }
    }
}
