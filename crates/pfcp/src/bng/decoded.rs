//! Rules of a PFCP session, decoded: what they mean for the user plane.
use super::{Circuit, PoolNet, Tunnel, settings};
use core::net::IpAddr;
use policy::{Access, Binding, Bindings, Forwarding, PacketSettings, Role, TrafficPolicies};

/// Both ends of a tunnel for control packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ControlTunnel {
    /// The control plane's end, to which the user plane sends.
    pub uplink: Tunnel,
    /// The user plane's end, to which the control plane sends; `None` if it may not send.
    pub downlink: Option<Tunnel>,
}

/// Rules of a session, decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecodedRules {
    /// Default session of an access port.
    Default(DefaultRules),
    /// Session of a subscriber.
    Session(Box<SubscriberRules>),
}

/// Rules of a default session, decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefaultRules {
    /// Access port whose discovery packets the session takes; `None` for all.
    pub logical_port: Option<Vec<u8>>,
    /// Tunnel for discovery packets, with CPR-NSH.
    pub tunnel: ControlTunnel,
    /// Prefix blocks to announce, sorted. Packets to addresses in them that no session has are dropped. `slot` is the rule id.
    pub nets: Vec<PoolNet>,
}

/// Usage reporting rule (URR) of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UsageRule {
    /// URR ID.
    pub urr_id: u32,
    /// Whether octets are counted.
    pub volume: bool,
    /// Whether packets are counted.
    pub packets: bool,
    /// Whether time is counted.
    pub duration: bool,
    /// Seconds between periodic reports.
    pub period: Option<u32>,
}

/// Rules of a subscriber's session, decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscriberRules {
    /// Access line and MAC addresses.
    pub circuit: Circuit,
    /// How it is attached to the line.
    pub access: Access,
    /// Tunnel for the session's control packets, as plain frames.
    pub tunnel: ControlTunnel,
    /// Subscriber handle (QER Correlation ID).
    pub subscriber: Option<u32>,
    /// Usage reporting rule, if usage is measured.
    pub usage: Option<UsageRule>,
    /// Forwarding part of the policy: the bindings of open address families, and the packet settings.
    pub forwarding: Forwarding,
    /// Whether neighbour discovery (ICMPv6 133 to 137) inside PPP goes to the control plane.
    pub redirect_nd: bool,
    /// Whether DHCPv6 (UDP to port 547) inside PPP goes to the control plane.
    pub redirect_dhcpv6: bool,
    /// Magic number with which the user plane answers LCP echo requests; `None`: they go to the control plane, as always without an open
    /// address family.
    pub echo_magic: Option<u32>,
}

impl SubscriberRules {
    /// Digest of the session's rules. Both planes compute the same value, and an audit compares it.
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
        match self.access {
            Access::Pppoe(id) => hash.bytes(&id.to_be_bytes()),
        }
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
        hash.settings(&self.forwarding.packets);
        hash.policies(&self.forwarding.policies);
        hash.0
    }
}

/// FNV-1a hash. Its result is the same in every build; the standard library's hashes do not guarantee that.
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

    /// Hashes a value so that an absent one differs from an empty one.
    fn optional(&mut self, value: Option<impl AsRef<[u8]>>) {
        match value {
            Some(value) => {
                self.bytes(&[1]);
                self.bytes(value.as_ref());
            }
            None => self.bytes(&[0]),
        }
    }

    /// Hashes the forwarding part as user planes of the first version do.
    fn forwarding(&mut self, forwarding: &Forwarding) {
        let instance = &forwarding.network_instance;
        self.optional(Some(instance).filter(|name| !name.is_empty()));
        let (bindings, packets) = (&forwarding.bindings, &forwarding.packets);
        self.optional(packets.mtu.map(u16::to_be_bytes));
        self.optional(bindings.ipv4().map(|address| address.octets()));
        self.optional(bindings.ipv6().map(|net| net.addr().octets()));
        self.optional(bindings.ipv6().map(|net| [net.prefix_len()]));
    }

    /// Hashes the bindings that the first version did not know, and the metrics that the second did not know. Without such bindings, or
    /// metrics, the digest stays the same.
    fn further(&mut self, bindings: &Bindings) {
        let first = [
            bindings.ipv4().map(|address| Binding::host(address.into())),
            bindings.ipv6().map(Binding::link),
        ];
        for binding in bindings.iter().filter(|b| !first.contains(&Some(**b))) {
            const METRIC: u8 = 5;
            let role = match binding.role {
                Role::Host => 1,
                Role::Link => 2,
                Role::Delegated => 3,
                Role::Route => 4,
            };
            let length = binding.prefix.prefix_len();
            self.bytes(&[role, length, binding.is_announced.into()]);
            self.address(Some(binding.prefix.addr()));
            if let Some(metric) = binding.metric {
                let [a, b, c, d] = metric.to_be_bytes();
                self.bytes(&[METRIC, a, b, c, d]); // no role has this number
            }
        }
    }

    /// Hashes all settings but the MTU, as far as they differ from their defaults, so that a new setting at its default leaves the digest unchanged.
    fn settings(&mut self, packets: &PacketSettings) {
        let others = packets.encoded().into_iter();
        for (setting, value) in others.filter(|(setting, _)| setting.id != settings::MTU) {
            self.bytes(&[setting.id]);
            self.bytes(&value);
        }
    }

    /// Hashes the names of policies. Without one the digest stays the same.
    fn policies(&mut self, policies: &TrafficPolicies) {
        for (setting, value) in policies.encoded() {
            self.bytes(&[setting.id]);
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
