//! Two PFCP entities and a network between them that can lose, double, delay and reorder datagrams.
#![allow(dead_code, reason = "each test binary uses its part")]

use core::net::SocketAddr;
use core::time::Duration;
use pfcp::{Config, Event, Features, Node, Output, Role};
use std::collections::BTreeMap;
use wire::pfcp::{BbfUpFeatures, CpFunctionFeatures, NodeId, SluiceFeatures, UpFunctionFeatures};

pub const CP: SocketAddr = SocketAddr::new(
    core::net::IpAddr::V4(core::net::Ipv4Addr::new(192, 0, 2, 1)),
    8805,
);
pub const UP: SocketAddr = SocketAddr::new(
    core::net::IpAddr::V4(core::net::Ipv4Addr::new(192, 0, 2, 2)),
    8805,
);

/// Where another control plane may be.
pub const ELSEWHERE: SocketAddr = SocketAddr::new(
    core::net::IpAddr::V4(core::net::Ipv4Addr::new(192, 0, 2, 9)),
    8805,
);

pub fn control_config() -> Config {
    let mut config = Config::new(Role::Control, NodeId::from(CP.ip()), 3_900_000_000);
    config.features.cp = Some(CpFunctionFeatures::default());
    config.first_sequence = 0xff_fffa;
    config
}

pub fn user_config() -> Config {
    let mut config = Config::new(Role::User, NodeId::from(UP.ip()), 3_900_000_100);
    config.features = Features {
        up: Some(
            UpFunctionFeatures::TRAFFIC_ENDPOINTS
                | UpFunctionFeatures::FRAMED_ROUTES
                | UpFunctionFeatures::PACKET_COUNTS
                | UpFunctionFeatures::PREFIX_LENGTHS,
        ),
        bbf: Some(BbfUpFeatures::PPPOE),
        sluice: Some(SluiceFeatures::DEFAULT_CP_TO_UP_RULE),
        ..Default::default()
    };
    config
}

/// A user plane whose configuration names its control plane.
pub fn user_plane(now: Duration, config: Config) -> Node {
    let mut up = Node::new(config);
    up.add_peer(now, CP);
    up
}

/// How the network treats datagrams, in percent.
#[derive(Clone, Copy, Default)]
pub struct Weather {
    pub lost: u64,
    pub doubled: u64,
    pub delayed: u64,
}

/// A datagram that was sent: when, from, to, octets.
pub type Sent = (Duration, SocketAddr, SocketAddr, Vec<u8>);

pub struct World {
    pub now: Duration,
    pub nodes: BTreeMap<SocketAddr, Node>,
    pub events: Vec<(SocketAddr, Event)>,
    pub sent: Vec<Sent>,
    pub weather: Weather,
    under_way: BTreeMap<(Duration, u64), (SocketAddr, SocketAddr, Vec<u8>)>,
    count: u64,
    random: u64,
}

impl World {
    pub fn new(seed: u64) -> Self {
        let up = user_plane(Duration::ZERO, user_config());
        let nodes = BTreeMap::from([(CP, Node::new(control_config())), (UP, up)]);
        World {
            now: Duration::ZERO,
            nodes,
            events: Vec::new(),
            sent: Vec::new(),
            weather: Weather::default(),
            under_way: BTreeMap::new(),
            count: 0,
            random: seed,
        }
    }

    /// With an association.
    pub fn associated(seed: u64) -> Self {
        let mut world = World::new(seed);
        world.node(CP).add_peer(Duration::ZERO, UP);
        world.run(Duration::from_millis(100));
        assert!(world.node(CP).is_associated(UP) && world.node(UP).is_associated(CP));
        world.events.clear();
        world
    }

    pub fn node(&mut self, at: SocketAddr) -> &mut Node {
        self.nodes.get_mut(&at).unwrap()
    }

    /// splitmix64
    pub fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.random() % 100 < percent
    }

    pub fn deliver(&mut self, from: SocketAddr, to: SocketAddr, bytes: Vec<u8>, after: Duration) {
        self.count += 1;
        self.under_way
            .insert((self.now + after, self.count), (from, to, bytes));
    }

    fn send(&mut self, from: SocketAddr, to: SocketAddr, bytes: Vec<u8>) {
        self.sent.push((self.now, from, to, bytes.clone()));
        if self.chance(self.weather.lost) {
            return;
        }
        let copies = if self.chance(self.weather.doubled) {
            2
        } else {
            1
        };
        for _ in 0..copies {
            let slow = if self.chance(self.weather.delayed) {
                self.random() % 3000
            } else {
                0
            };
            self.deliver(from, to, bytes.clone(), Duration::from_millis(1 + slow));
        }
    }

    /// Takes out of the nodes what is in them.
    pub fn drain(&mut self) {
        let mut outputs = Vec::new();
        for (at, node) in &mut self.nodes {
            outputs.extend(core::iter::from_fn(|| node.poll_output()).map(|output| (*at, output)));
        }
        for (at, output) in outputs {
            match output {
                Output::Transmit { to, bytes } => self.send(at, to, bytes),
                Output::Event(event) => self.events.push((at, event)),
            }
        }
    }

    /// The next thing that happens, unless it is later than `until`.
    pub fn step(&mut self, until: Duration) -> bool {
        self.drain();
        let timers = self.nodes.values().filter_map(Node::poll_at);
        let arrival = self.under_way.first_key_value().map(|((at, _), _)| *at);
        let Some(next) = timers.chain(arrival).min().filter(|next| *next <= until) else {
            return false;
        };
        self.now = self.now.max(next);
        let now = self.now;
        if arrival.is_some_and(|arrival| arrival <= now) {
            let (_, (from, to, bytes)) = self.under_way.pop_first().unwrap();
            if let Some(node) = self.nodes.get_mut(&to) {
                node.handle_datagram(now, from, &bytes);
            }
        }
        for node in self.nodes.values_mut() {
            node.on_timeout(now);
        }
        self.drain();
        true
    }

    /// Lets time pass.
    pub fn run(&mut self, time: Duration) {
        let until = self.now + time;
        while self.step(until) {}
        self.now = until;
    }

    pub fn take_events(&mut self, at: SocketAddr) -> Vec<Event> {
        let (mine, others) = core::mem::take(&mut self.events)
            .into_iter()
            .partition(|(node, _)| *node == at);
        self.events = others;
        let mine: Vec<(SocketAddr, Event)> = mine;
        mine.into_iter().map(|(_, event)| event).collect()
    }
}
