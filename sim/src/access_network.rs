//! The access network: homes, their lines, and what their subscribers do.

use crate::plan::HOMES;
use core::time::Duration;
use cpe::{Auth, Delegation, Family, Home, HomeConfig};
use dataplane::PortIndex;
use rand::Rng;
use rand::rngs::StdRng;
use session::Circuit;
use std::net::IpAddr;
use wire::eth::Frame;

/// Where a home is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Line {
    /// The user plane.
    pub plane: usize,
    /// Its port.
    pub port: u16,
    /// The home's number there: its C-VLAN, and the end of its MAC address. The same on every port.
    pub place: u8,
}

/// The home that is granted 40 seconds at a time, and is never online for long.
pub const RESTLESS: usize = 4;
/// The home whose address RADIUS chooses within a pool: it has no IPv4 if another home has that already.
pub const CHOOSY: usize = 34;

/// Homes whose address RADIUS chooses, outside of all pools, with a prefix and networks behind the router; on every port. Their
/// routers reboot often.
pub const FIXED: [usize; 8] = [3, 7, 12, 21, 25, 31, 38, 46];

/// Whether a session is the first household's of its line: others have routers of their own.
pub fn is_first(circuit: &Circuit) -> bool {
    circuit.mac.0[4] == 0
}

/// How many homes are on each port of each user plane.
const CROWDS: [(usize, u16, usize); 4] = [(0, 0, 20), (0, 1, 10), (1, 0, 15), (1, 1, 5)];
const S_VLAN: u16 = 100;

impl Line {
    /// Every home's, by number.
    pub fn all() -> impl Iterator<Item = Line> {
        CROWDS.into_iter().flat_map(|(plane, port, homes)| {
            (1..=homes as u8).map(move |place| Line { plane, port, place })
        })
    }

    /// The home's number.
    pub fn home(self) -> Option<usize> {
        Line::all().position(|line| line == self)
    }

    /// The line that a frame to a home is for.
    pub fn of_frame(plane: usize, port: PortIndex, bytes: &[u8]) -> Option<Line> {
        let header = Frame::parse(bytes).ok()?.header;
        let place = header.destination.0[5];
        let line = Line {
            plane,
            port: port.0,
            place,
        };
        (header.tags.vids() == (Some(S_VLAN), Some(place.into()))).then_some(line)
    }

    /// The line that a session's circuit is.
    pub fn of_circuit(plane: usize, circuit: &Circuit) -> Option<Line> {
        let port = crate::user_plane::PORTS
            .iter()
            .position(|p| p.as_bytes() == &*circuit.logical_port)?;
        Some(Line {
            plane,
            port: port as u16,
            place: circuit.mac.0[5],
        })
    }
}

/// Next action of a subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubscriberAction {
    /// Be online.
    Dial,
    /// Dial with a password that is not its own.
    Guess,
    /// End the session in good order.
    HangUp,
    /// Lose power: whatever it knew is gone, and nobody is told.
    Vanish,
    /// Lose power for a moment: dial again at once.
    Reboot,
    /// Stay as it is.
    Stay,
}

/// A home and its line.
pub struct House {
    /// Its router.
    pub home: Home,
    /// Where it is.
    pub line: Line,
    config: HomeConfig,
    /// Households that lived here before.
    former: u8,
    /// How many of its next PPP control packets come once more with flipped bits.
    pub noise: u32,
    /// Whether such a packet was part of its session: the gateway may believe something else of it than it does.
    pub is_misunderstood: bool,
    /// Packets sent, by family.
    pub sent: [u64; 2],
    /// Replies received since everything is calm, by family.
    pub heard: [u64; 2],
}

impl House {
    /// House `number`, whose habits are drawn.
    pub fn draw(number: usize, random: &mut StdRng) -> Self {
        let line = Line::all().nth(number).unwrap_or(Line {
            plane: 0,
            port: 0,
            place: 0,
        });
        let mac = [2, 0, 0, 0, 0, line.place].into();
        let (user, password) = (format!("home{number}"), format!("secret{number}"));
        let mut config = HomeConfig::new(mac, S_VLAN, line.place.into(), user, password);
        config.auth = [Auth::Any, Auth::Pap, Auth::Chap, Auth::MsChapV2][random.random_range(0..4)];
        match random.random_range(0..8) {
            0 => config.ipv4 = false,
            1 => config.ipv6 = false,
            _ => {}
        }
        config.echo_interval =
            [None, Some(10), Some(30)][random.random_range(0..3)].map(Duration::from_secs);
        config.delegation = [None, Some(false), Some(true)][random.random_range(0..3)]
            .map(|rapid_commit| Delegation { rapid_commit });
        House {
            home: Home::new(config.clone(), random.random()),
            line,
            config,
            former: 0,
            noise: 0,
            is_misunderstood: false,
            sent: [0; 2],
            heard: [0; 2],
        }
    }

    /// All of them.
    pub fn draw_all(random: &mut StdRng) -> Vec<House> {
        (0..HOMES)
            .map(|number| House::draw(number, random))
            .collect()
    }

    /// Forgets everything, as a router that lost its power.
    pub fn reset(&mut self, random: &mut StdRng, right_password: bool) {
        let mut config = self.config.clone();
        if !right_password {
            config.password.push('?');
        }
        self.home = Home::new(config, random.random());
    }

    /// Another household, with its own router and its own name.
    pub fn move_in(&mut self, random: &mut StdRng) {
        self.former += 1;
        self.config.mac.0[4] = self.former;
        self.config.user.push('x');
        self.config.password.push('x');
        self.reset(random, true);
    }

    /// Whether a frame is for this household's router.
    pub fn is_for(&self, frame: &[u8]) -> bool {
        frame.starts_with(&self.config.mac.0)
    }

    /// Whether it wants a family.
    pub fn wants(&self, family: Family) -> bool {
        match family {
            Family::V4 => self.config.ipv4,
            Family::V6 => self.config.ipv6,
        }
    }

    /// Whether it asks for a delegated prefix.
    pub fn wants_prefix(&self) -> bool {
        self.config.ipv6 && self.config.delegation.is_some()
    }

    /// Whether the first household still lives here: RADIUS gives nothing special to others.
    pub fn is_first(&self) -> bool {
        self.former == 0
    }

    /// The address that it has of a family.
    pub fn address(&self, family: Family) -> Option<IpAddr> {
        match family {
            Family::V4 => self.home.ipv4().map(IpAddr::from),
            Family::V6 => self.home.ipv6().map(IpAddr::from),
        }
    }

    /// Online, with every family that it wants.
    pub fn has_all(&self) -> bool {
        let families = Family::ALL.into_iter();
        let mut wanted = families.filter(|family| self.wants(*family));
        self.home.state() == cpe::State::Online
            && wanted.all(|family| self.address(family).is_some())
    }

    /// Whether it is set up with its own password.
    pub fn is_honest(&self) -> bool {
        self.home.config().password == self.config.password
    }

    /// Draws the subscriber's next action while faults happen, of one whose router often reboots or of another.
    pub fn next_action(&self, random: &mut StdRng, reboots: bool) -> SubscriberAction {
        if self.home.state() == cpe::State::Offline {
            return match random.random_range(0..8) {
                0 => SubscriberAction::Guess,
                _ => SubscriberAction::Dial,
            };
        }
        match random.random_range(0..10) {
            2.. if reboots => SubscriberAction::Reboot,
            0..4 => SubscriberAction::HangUp,
            4..7 => SubscriberAction::Vanish,
            _ => SubscriberAction::Stay,
        }
    }
}
