//! [`wire::pfcp`] and [`pfcp`]: any datagrams for a node of either role, and what a user plane makes of any rules.
use crate::{Step, script, steps};
use core::net::SocketAddr;
use core::time::Duration;
use pfcp::bng::{
    Circuit, DefaultSpec, Family, PoolNet, RuleSet, SessionSpec, Tunnel, delete, query_usage,
};
use pfcp::{Config, Event, Features, Node, Output, Role};
use policy::{
    Access, Bindings, FilterRules, Forwarding, Name, PacketSettings, TrafficPolicies, Treatment,
};
use wire::eth::{MacAddr, Tags};
use wire::pfcp::*;

/// What a step does, by `op % 8`; 7 is a message that is only read.
mod op {
    /// A datagram for the user plane, from one of two control planes.
    pub const TO_UP: u8 = 0;
    /// A datagram for the control plane, from its user plane.
    pub const TO_CP: u8 = 1;
    /// A body for the user plane behind an association: type of the message, then elements.
    pub const BODY_TO_UP: u8 = 2;
    /// An answer to the control plane's last request: type of the message, then elements.
    pub const ANSWER_TO_CP: u8 = 3;
    /// The control plane asks for something.
    pub const REQUEST: u8 = 4;
    /// Timers expire.
    pub const TIMERS: u8 = 5;
    /// Seconds pass.
    pub const WAIT: u8 = 6;
    /// An answer to the user plane's last heartbeat request to the first control plane: type of the message, then elements.
    pub const ANSWER_TO_UP: u8 = 7;
}

fn address(last: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, last], PORT))
}

/// Type of a Heartbeat Request (TS 29.244 §7.3).
const HEARTBEAT_REQUEST: u8 = 1;

struct World {
    now: Duration,
    up: Node,
    cp: Node,
    /// The user plane's sessions: the rules of each.
    sessions: Vec<RuleSet>,
    /// The number of the last request of the control plane.
    asked: u32,
    /// The number of the last heartbeat request of the user plane to the first control plane.
    up_asked: u32,
    /// The number of the next request to the user plane.
    next: u32,
}

/// Takes one input.
pub fn run(input: &[u8]) {
    let mut world = World::new();
    for step in steps(input) {
        world.step(step);
    }
}

impl World {
    fn new() -> Self {
        let mut up = Config::new(Role::User, NodeId::Fqdn("up1".into()), 3_900_000_000);
        up.features = Features {
            up: Some(UpFunctionFeatures::TRAFFIC_ENDPOINTS | UpFunctionFeatures::PACKET_COUNTS),
            bbf: Some(BbfUpFeatures::PPPOE),
            sluice: Some(SluiceFeatures::DEFAULT_CP_TO_UP_RULE),
            ..Features::default()
        };
        up.response_cache = 10_000;
        let mut cp = Config::new(Role::Control, NodeId::Fqdn("cp1".into()), 3_900_000_000);
        (cp.window, cp.queue) = (4, 8);
        let mut world = World {
            now: Duration::from_secs(100),
            up: Node::new(up),
            cp: Node::new(cp),
            sessions: Vec::new(),
            asked: 0,
            up_asked: 0,
            next: 1000,
        };
        world.cp.add_peer(world.now, address(2));
        for control_plane in [1, 2].map(address) {
            world.up.add_peer(world.now, control_plane);
        }
        world.timers();
        world
    }

    fn step(&mut self, step: Step<'_>) {
        match step.op & 7 {
            op::TO_UP => self.tell_up(1 + (step.op >> 3 & 1), step.data),
            op::TO_CP => self.tell_cp(step.data),
            op::BODY_TO_UP => {
                self.next += 1;
                let message = message(step, u64::from(step.op >> 3), self.next);
                self.tell_up(1, &message);
            }
            op::ANSWER_TO_CP => {
                let message = message(step, 7, self.asked);
                self.tell_cp(&message);
            }
            op::REQUEST => self.request(step.octet(0)),
            op::TIMERS => (0..step.octet(0) % 16).for_each(|_| {
                self.now = self
                    .up
                    .poll_at()
                    .into_iter()
                    .chain(self.cp.poll_at())
                    .min()
                    .unwrap_or(self.now)
                    .max(self.now);
                self.timers();
            }),
            op::WAIT => {
                self.now += Duration::from_secs(step.number().into());
                self.timers();
            }
            _ => {
                let message = message(step, 0, self.up_asked);
                self.tell_up(1, &message);
            }
        }
    }

    fn tell_up(&mut self, from: u8, bytes: &[u8]) {
        check(bytes);
        self.up.handle_datagram(self.now, address(from), bytes);
        self.drain();
    }

    fn tell_cp(&mut self, bytes: &[u8]) {
        check(bytes);
        self.cp.handle_datagram(self.now, address(2), bytes);
        self.drain();
    }

    fn timers(&mut self) {
        self.up.on_timeout(self.now);
        self.cp.on_timeout(self.now);
        let due = |node: &Node| node.poll_at().is_some_and(|at| at <= self.now);
        assert!(
            !due(&self.up) && !due(&self.cp),
            "a timer that does not stop"
        );
        self.drain();
    }

    fn request(&mut self, kind: u8) {
        let to = address(2);
        let _ = match kind % 4 {
            0 => self
                .cp
                .request(self.now, to, 0, spec().establish_control(), 1),
            1 => self.cp.request(
                self.now,
                to,
                9,
                spec().add_family(Family::Ipv4).expect("an address"),
                2,
            ),
            2 => self.cp.request(self.now, to, 9, query_usage(1), 3),
            _ => self.cp.request(self.now, to, 9, delete(), 4),
        };
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(output) = self.cp.poll_output() {
            if let Output::Transmit { bytes, .. } = output {
                self.asked = own(&bytes).sequence;
            }
        }
        while let Some(output) = self.up.poll_output() {
            match output {
                Output::Transmit { to, bytes } => {
                    let header = own(&bytes);
                    if to == address(1) && bytes[1] == HEARTBEAT_REQUEST {
                        self.up_asked = header.sequence;
                    }
                }
                Output::Event(Event::Request { id, seid, message }) => {
                    let answer = self.serve(seid, message);
                    self.up.respond(id, 1, answer);
                }
                Output::Event(_) => {}
            }
        }
    }

    /// A small user plane: it has rules, but forwards nothing.
    fn serve(&mut self, seid: u64, message: Message) -> Message {
        let cause = |accepted| {
            if accepted {
                Cause::REQUEST_ACCEPTED
            } else {
                Cause::RULE_CREATION_FAILURE
            }
        };
        let index = usize::try_from(seid).unwrap_or(usize::MAX);
        match message {
            Message::SessionEstablishmentRequest(request) => {
                let rules = RuleSet::establish(request).ok().filter(sound);
                let accepted = rules.is_some();
                self.sessions.extend(rules);
                self.sessions.truncate(8);
                SessionEstablishmentResponse {
                    node_id: NodeId::Fqdn("up1".into()),
                    cause: cause(accepted),
                    ..Default::default()
                }
                .into()
            }
            Message::SessionModificationRequest(request) => {
                let rules = self.sessions.get_mut(index);
                let changed = rules
                    .as_ref()
                    .and_then(|old| old.modify(&request).ok())
                    .filter(sound);
                let accepted = changed.is_some();
                if let (Some(rules), Some(changed)) = (rules, changed) {
                    *rules = changed;
                }
                SessionModificationResponse {
                    cause: cause(accepted),
                    ..Default::default()
                }
                .into()
            }
            Message::SessionDeletionRequest(_) => {
                let accepted = index < self.sessions.len();
                if accepted {
                    self.sessions.remove(index);
                }
                SessionDeletionResponse {
                    cause: cause(accepted),
                    ..Default::default()
                }
                .into()
            }
            _ => SessionReportResponse {
                cause: cause(true),
                ..Default::default()
            }
            .into(),
        }
    }
}

/// Do the rules come to something? Those that do are the same after they were kept.
fn sound(rules: &RuleSet) -> bool {
    match rules.clone().pack() {
        Ok(packed) => {
            let unpacked = RuleSet::unpack(&packed);
            assert_eq!(unpacked.as_ref(), Some(rules), "rules that keep badly");
            rules.decode().is_ok()
        }
        Err(whole) => {
            assert_eq!(&*whole, rules, "rules that come back otherwise");
            false
        }
    }
}

/// A message of a type, with these elements behind its header.
fn message(step: Step<'_>, seid: u64, sequence: u32) -> Vec<u8> {
    let Some((&kind, elements)) = step.data.split_first() else {
        return Vec::new();
    };
    let about_session = is_about_session(kind);
    let mut body = Vec::new();
    if about_session {
        body.extend(seid.to_be_bytes());
    }
    body.extend((sequence << 8).to_be_bytes());
    body.extend(elements);
    let length = u16::try_from(body.len()).unwrap_or(u16::MAX).to_be_bytes();
    [
        &[
            VERSION << 5 | u8::from(about_session),
            kind,
            length[0],
            length[1],
        ][..],
        &body,
    ]
    .concat()
}

/// What a node sends can be read.
fn own(bytes: &[u8]) -> Packet {
    let received = parse(bytes).expect("a message of our own");
    assert_eq!(received.ignored, 0, "an element of our own that we skip");
    received.packet
}

/// A message that can be read is the same after it was written.
fn check(bytes: &[u8]) {
    let Ok(Received { packet, .. }) = parse(bytes) else {
        return;
    };
    let mut written = Vec::new();
    if packet.emit(&mut written).is_ok() {
        assert_eq!(parse(&written).map(|r| r.packet), Ok(packet));
    } else {
        assert!(
            bytes.len() > 30_000,
            "a short message that cannot be written"
        );
    }
}

fn spec() -> SessionSpec {
    let tunnel = |teid, last| Tunnel {
        teid,
        address: address(last).ip(),
    };
    SessionSpec {
        node_id: NodeId::Fqdn("cp1".into()),
        cp_f_seid: FSeid::new(7, address(1).ip()),
        circuit: Circuit {
            logical_port: b"access0".to_vec(),
            tags: Tags::qinq(100, 7),
            mac: MacAddr([2, 0, 0, 0, 0, 7]),
            gateway_mac: MacAddr([2, 0, 0, 0, 0, 0xfe]),
        },
        access: Access::Pppoe(0x1001),
        subscriber: Some(77),
        uplink: tunnel(0x10, 1),
        downlink: tunnel(0x20, 2),
        forwarding: Forwarding::new(
            Bindings::of(
                Some([100, 64, 0, 7].into()),
                Some("2001:db8:0:7::/64".parse().expect("a prefix")),
            ),
            Treatment {
                network_instance: "default".into(),
                packets: PacketSettings::with_mtu(1492),
                policies: TrafficPolicies {
                    policy_up: Name::new("home-up"),
                    policy_down: Name::new("home-down"),
                    filter_rules: FilterRules::new("deny in ip from any to any"),
                },
            },
        ),
        urr_id: 1,
        usage_period: Some(600),
        echo_magic: None,
    }
}

fn default_spec() -> DefaultSpec {
    let net = |slot, net: &str| PoolNet {
        slot,
        network_instance: "default".into(),
        net: net.parse().expect("a net"),
    };
    DefaultSpec {
        node_id: NodeId::Fqdn("cp1".into()),
        cp_f_seid: FSeid::new(1, address(1).ip()),
        logical_port: Some(b"access0".to_vec()),
        uplink: spec().uplink,
        downlink: Some(spec().downlink),
        nets: vec![net(0, "100.64.0.0/24"), net(1, "2001:db8::/56")],
    }
}

/// Inputs to begin with.
pub fn seeds() -> Vec<Vec<u8>> {
    let datagram = |packet: Packet| {
        let mut bytes = Vec::new();
        packet.emit(&mut bytes).expect("a message");
        bytes
    };
    let node = |message: Message| datagram(Packet::node(1, message));
    // Type and elements, for a step that makes the header.
    let body = |message: Message| {
        let bytes = datagram(Packet::session(0, 1, message));
        [&bytes[1..2], &bytes[16..]].concat()
    };
    let setup = node(Message::AssociationSetupRequest(AssociationSetupRequest {
        node_id: NodeId::Fqdn("cp1".into()),
        recovery_time_stamp: 3_900_000_001,
        cp_features: Some(CpFunctionFeatures::default()),
        session_retention: Some(SessionRetentionInformation::default()),
        ..Default::default()
    }));
    let accepted = AssociationSetupResponse {
        node_id: NodeId::Fqdn("up1".into()),
        cause: Cause::REQUEST_ACCEPTED,
        recovery_time_stamp: 3_900_000_002,
        bbf_features: Some(BbfUpFeatures::PPPOE),
        ..Default::default()
    };
    let accepted = [
        vec![6],
        node(Message::AssociationSetupResponse(accepted))[8..].to_vec(),
    ]
    .concat();
    let heartbeat = node(Message::HeartbeatRequest(HeartbeatRequest {
        recovery_time_stamp: 3_900_000_001,
    }));
    let alive = node(Message::HeartbeatResponse(HeartbeatResponse {
        recovery_time_stamp: 3_900_000_001,
        ..Default::default()
    }));
    let alive = [vec![2], alive[8..].to_vec()].concat();
    let release = node(Message::AssociationReleaseRequest(
        AssociationReleaseRequest {
            node_id: NodeId::Fqdn("cp1".into()),
        },
    ));
    let established = SessionEstablishmentResponse {
        node_id: NodeId::Fqdn("up1".into()),
        cause: Cause::REQUEST_ACCEPTED,
        up_f_seid: Some(FSeid::new(9, address(2).ip())),
        ..Default::default()
    };
    let report = SessionDeletionResponse {
        cause: Cause::REQUEST_ACCEPTED,
        usage_reports: vec![UsageReport {
            urr_id: 1,
            volume: Some(VolumeMeasurement {
                total_octets: Some(5),
                uplink_packets: Some(3),
                ..Default::default()
            }),
            ..Default::default()
        }],
        ..Default::default()
    };
    let spec = spec();
    let modify = |request: SessionModificationRequest| (op::BODY_TO_UP, body(request.into()));
    vec![
        script([
            (op::TO_UP, setup.clone()),
            (op::TO_UP, heartbeat.clone()),
            (op::TO_UP | 8, setup.clone()),
            (op::TO_UP, release),
        ]),
        script([
            (op::TO_UP, setup.clone()),
            (op::ANSWER_TO_UP, alive.clone()),
            (op::BODY_TO_UP, body(spec.establish_control().into())),
            modify(spec.add_family(Family::Ipv4).expect("an address")),
            modify(spec.add_family(Family::Ipv6).expect("a prefix")),
            modify(query_usage(1)),
            modify(spec.remove_family(Family::Ipv4)),
            (op::BODY_TO_UP, body(delete().into())),
        ]),
        script([
            (op::TO_UP, setup.clone()),
            (op::ANSWER_TO_UP, alive.clone()),
            (op::BODY_TO_UP, body(spec.establish().into())),
        ]),
        script([
            (op::TO_UP, setup),
            (op::ANSWER_TO_UP, alive),
            (op::BODY_TO_UP, body(default_spec().establish().0.into())),
            modify(DefaultSpec::remove_nets(&[0]).remove(0)),
        ]),
        script([
            (op::ANSWER_TO_CP, accepted),
            (op::REQUEST, vec![0]),
            (op::ANSWER_TO_CP, body(established.into())),
            (op::REQUEST, vec![2]),
            (op::TIMERS, vec![3]),
            (op::REQUEST, vec![3]),
            (op::ANSWER_TO_CP, body(report.into())),
            (op::TO_CP, heartbeat),
            (op::WAIT, vec![0, 60]),
        ]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(seed: usize, steps_of_it: usize) -> World {
        let mut world = World::new();
        steps(&seeds()[seed])
            .take(steps_of_it)
            .for_each(|step| world.step(step));
        world
    }

    #[test]
    fn the_seeds_reach_rules_and_answers() {
        let world = after(1, 5);
        let [rules] = &world.sessions[..] else {
            panic!("{} sessions", world.sessions.len())
        };
        let Ok(pfcp::bng::DecodedRules::Session(decoded)) = rules.decode() else {
            panic!("not decoded")
        };
        assert_eq!(decoded.forwarding, spec().forwarding);
        assert!(after(1, 99).sessions.is_empty(), "deleted");
        assert_eq!(after(3, 99).sessions.len(), 1, "the default session");
        assert!(after(4, 1).cp.is_associated(address(2)));
        assert_eq!(after(4, 2).cp.pending(address(2)), 1);
        assert_eq!(after(4, 3).cp.pending(address(2)), 0);
    }
}
