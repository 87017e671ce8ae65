//! What leaves the packet path for the control thread: each kind is declared once, here, with its name and its rates. The node
//! that punts names the kind, and `userplane::run::packets` says who gets it.
use crate::api::{InstanceIndex, PortIndex, PuntRate, SessionIndex};
use crate::protection::{HoldDown, Levels};

/// What has become of a packet that the control thread is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// The packet itself has left the path.
    Packet,
    /// The packet was dropped; its sender may be told.
    Notice,
    /// The packet went on. Copies have a rate of their own ([`SampleRate`](crate::SampleRate)).
    Copy,
}

/// What the packets of a kind have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PuntClass {
    /// The name, as `sluice-up check` prints it.
    pub name: &'static str,
    /// What has become of the packet.
    pub shown: Shown,
    /// How many a worker punts unless [`PuntLimits`] says otherwise.
    pub rate: PuntRate,
    /// How many it punts of one MAC address, line, VLAN and port.
    pub levels: Levels,
}

/// The next hop that a packet was too large for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextHop {
    /// The network instance.
    pub instance: InstanceIndex,
    /// The largest IP packet that it takes, in octets.
    pub mtu: u16,
}

/// Whom or what a punted packet is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Nobody in particular.
    None,
    /// A session.
    Session(SessionIndex),
    /// A core port or subinterface.
    Interface(PortIndex),
    /// A network instance.
    Instance(InstanceIndex),
    /// A next hop.
    NextHop(NextHop),
}

/// A subject as one word, in which form it travels with the packet.
trait Word: Copy {
    fn word(self) -> u32;
    fn of(word: u32) -> Self;
    fn subject(self) -> Subject;
}

impl Word for SessionIndex {
    fn word(self) -> u32 {
        self.0
    }
    fn of(word: u32) -> Self {
        SessionIndex(word)
    }
    fn subject(self) -> Subject {
        Subject::Session(self)
    }
}

impl Word for PortIndex {
    fn word(self) -> u32 {
        self.0.into()
    }
    fn of(word: u32) -> Self {
        PortIndex(word as u16)
    }
    fn subject(self) -> Subject {
        Subject::Interface(self)
    }
}

impl Word for InstanceIndex {
    fn word(self) -> u32 {
        self.0.into()
    }
    fn of(word: u32) -> Self {
        InstanceIndex(word as u16)
    }
    fn subject(self) -> Subject {
        Subject::Instance(self)
    }
}

impl Word for NextHop {
    fn word(self) -> u32 {
        u32::from(self.mtu) << 16 | self.instance.word()
    }
    fn of(word: u32) -> Self {
        NextHop {
            instance: InstanceIndex::of(word),
            mtu: (word >> 16) as u16,
        }
    }
    fn subject(self) -> Subject {
        Subject::NextHop(self)
    }
}

macro_rules! punts {
    ($(
        $(#[doc = $doc:literal])+
        $variant:ident $(($field:ident: $subject:ty))? $name:literal $shown:ident $per_second:literal at once $burst:literal
            $([$($level:ident $of_level:literal),+])?,
    )*) => {
        /// Why a packet was punted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum PuntKind {
            $($(#[doc = $doc])+ $variant $(($subject))?,)*
        }

        /// The kinds, without what a packet is about.
        #[repr(u8)]
        enum Number {
            $($variant,)*
        }

        impl PuntKind {
            /// All kinds, by their numbers.
            #[allow(clippy::needless_update, reason = "some kinds have every level")]
            pub const ALL: &'static [PuntClass] = &[$(PuntClass {
                name: $name,
                shown: Shown::$shown,
                rate: PuntRate { per_second: $per_second, burst: $burst },
                levels: Levels { $($($level: Some($of_level),)+)? ..Levels::NONE },
            },)*];

            /// The place of the kind in [`PuntKind::ALL`].
            pub const fn number(self) -> usize {
                match self { $(PuntKind::$variant { .. } => Number::$variant as usize,)* }
            }

            /// Whom or what the packet is about.
            pub fn subject(self) -> Subject {
                match self {
                    $(PuntKind::$variant $(($field))? => {
                        #[allow(unused_variables)]
                        let subject = Subject::None;
                        $(let subject = $field.subject();)?
                        subject
                    })*
                }
            }

            fn word(self) -> u32 {
                match self {
                    $(PuntKind::$variant $(($field))? => {
                        #[allow(unused_variables)]
                        let word = 0;
                        $(let word = $field.word();)?
                        word
                    })*
                }
            }

            fn of(number: u32, word: u32) -> Option<Self> {
                $(if number == Number::$variant as u32 {
                    $(let $field = <$subject>::of(word);)?
                    return Some(PuntKind::$variant $(($field))?);
                })*
                let _ = word;
                None
            }
        }
    };
}

punts! {
    /// PPPoE discovery outside of any session (frame): for the default tunnel.
    Discovery "discovery" Packet 20_000 at once 4_000 [mac 10, line 20, vlan 5_000, port 15_000],
    /// A control packet of a session (frame): a PADT, PPP's own protocols, ICMPv6 133–137, DHCPv6. Each session has a rate of its
    /// own besides ([`PuntLimits::per_session`]).
    Session(session: SessionIndex) "session" Packet 100_000 at once 10_000,
    /// An LCP echo of a session (frame). That a session lives competes neither with what others have to say nor with what else it says
    /// itself: each session has the same rate for its echoes once more.
    Echo(session: SessionIndex) "echo" Packet 50_000 at once 5_000,
    /// A packet of a session that a rule redirects (frame). The control thread answers it in the place of its destination.
    Redirect(session: SessionIndex) "redirect" Packet 10_000 at once 2_000 [mac 100, line 200, port 8_000],
    /// ARP and neighbour discovery of a core port or subinterface (frame without a subinterface's tag, as in the three that
    /// follow).
    Resolution(interface: PortIndex) "resolution" Packet 10_000 at once 2_000 [mac 2_000, port 8_000],
    /// Slow protocols of the link (frame, without a tag): LACP. Each member of a port sends one a second, some more while they change.
    SlowProtocol "slow-protocol" Packet 1_000 at once 200 [mac 20, port 200],
    /// Routing protocols, to the gateway or to a group: BGP, OSPF, IS-IS, BFD, LDP, PIM, RIP.
    Routing(interface: PortIndex) "routing" Packet 50_000 at once 4_000 [mac 20_000, port 40_000],
    /// Whatever else goes to a group or to all.
    Multicast(interface: PortIndex) "multicast" Packet 2_000 at once 500 [mac 500, port 1_500],
    /// Whatever else is addressed to the gateway itself.
    ForUs(interface: PortIndex) "for-us" Packet 20_000 at once 2_000 [mac 10_000, port 15_000],
    /// From a subscriber to the gateway itself (IP packet), for the TUN of the instance.
    Local(instance: InstanceIndex) "local" Packet 20_000 at once 1_000 [mac 100, port 15_000],
    /// A packet that was dropped because its time to live ended (IP packet).
    TtlExpired(instance: InstanceIndex) "ttl-expired" Notice 1_000 at once 100,
    /// A packet that was dropped because its next hop does not take packets of its size, and it may not be fragmented (IP
    /// packet).
    TooBig(next_hop: NextHop) "too-big" Notice 1_000 at once 100,
    /// The same of a packet that the gateway itself sent.
    OwnTooBig(next_hop: NextHop) "own-too-big" Notice 1_000 at once 100,
    /// A copy of the first octets of a subscriber's packet on its way up (frame, as it came in).
    SampledUp(session: SessionIndex) "sampled-up" Copy 0 at once 0,
    /// A copy of the first octets of a packet on its way down to a subscriber (frame, as it goes out).
    SampledDown(session: SessionIndex) "sampled-down" Copy 0 at once 0,
}

impl PuntKind {
    /// Is it the IP packet alone, without a frame around it? So are those that an instance answers.
    pub fn is_ip(self) -> bool {
        matches!(self.subject(), Subject::Instance(_) | Subject::NextHop(_))
    }

    /// What the kind has in common with others of its name.
    pub const fn class(self) -> &'static PuntClass {
        &PuntKind::ALL[self.number()]
    }
}

/// Something for each kind.
pub(crate) type EachKind<T> = [T; PuntKind::ALL.len()];

/// How much a worker punts, by kind; the excess is dropped and counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PuntLimits {
    rates: EachKind<PuntRate>,
    levels: EachKind<Levels>,
    /// Control packets of one session, and as many of its echoes.
    pub per_session: PuntRate,
    /// When whoever exceeds a rate is not listened to at all.
    pub hold_down: HoldDown,
}

impl PuntLimits {
    /// The same rate for every kind and session, and none below, for tests.
    pub fn all(rate: PuntRate) -> Self {
        PuntLimits {
            rates: [rate; PuntKind::ALL.len()],
            levels: [Levels::NONE; PuntKind::ALL.len()],
            per_session: rate,
            ..PuntLimits::default()
        }
    }

    /// With another rate for the kind of this name; `None` if there is no such kind.
    pub fn with(mut self, name: &str, rate: PuntRate) -> Option<Self> {
        let number = PuntKind::ALL.iter().position(|class| class.name == name)?;
        self.rates[number] = rate;
        Some(self)
    }

    /// With other rates below that of the kind of this name; `None` if there is no such kind.
    pub fn with_levels(mut self, name: &str, levels: Levels) -> Option<Self> {
        let number = PuntKind::ALL.iter().position(|class| class.name == name)?;
        self.levels[number] = levels;
        Some(self)
    }

    /// Each kind with its rate and the rates below.
    pub fn each(&self) -> impl Iterator<Item = (&'static PuntClass, PuntRate, Levels)> {
        let rates = self.rates.into_iter().zip(self.levels);
        let kinds = PuntKind::ALL.iter().zip(rates);
        kinds.map(|(class, (rate, levels))| (class, rate, levels))
    }

    /// The rates below the kinds', by the kinds' numbers.
    pub(crate) fn levels(&self) -> EachKind<Levels> {
        self.levels
    }

    /// The rates, by the kinds' numbers.
    pub(crate) fn rates(&self) -> EachKind<PuntRate> {
        self.rates
    }
}

impl Default for PuntLimits {
    fn default() -> Self {
        PuntLimits {
            rates: core::array::from_fn(|number| PuntKind::ALL[number].rate),
            levels: core::array::from_fn(|number| PuntKind::ALL[number].levels),
            hold_down: HoldDown::default(),
            per_session: PuntRate {
                per_second: 50,
                burst: 40,
            },
        }
    }
}

/// Both words of a punted packet: kind and port, and what the kind is about.
pub(crate) fn pack(kind: PuntKind, port: PortIndex) -> [u32; 2] {
    [
        (kind.number() as u32) << 16 | u32::from(port.0),
        kind.word(),
    ]
}

/// What [`pack`] wrote.
pub(crate) fn unpack([head, word]: [u32; 2]) -> Option<(PuntKind, PortIndex)> {
    Some((PuntKind::of(head >> 16, word)?, PortIndex(head as u16)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn what_is_packed_is_unpacked() {
        for number in 0..PuntKind::ALL.len() as u32 {
            for word in [0, 7, 0xffff, 0x0500_0001] {
                let kind = PuntKind::of(number, word).unwrap();
                assert_eq!(kind.number() as u32, number);
                let packed = pack(kind, PortIndex(65535));
                assert_eq!(unpack(packed), Some((kind, PortIndex(65535))));
            }
        }
        let next_hop = NextHop {
            instance: InstanceIndex(0xffff),
            mtu: 1280,
        };
        assert_eq!(NextHop::of(next_hop.word()), next_hop);
        let session = PuntKind::Session(SessionIndex(u32::MAX));
        assert_eq!(
            unpack(pack(session, PortIndex(0))),
            Some((session, PortIndex(0)))
        );
        assert_eq!(unpack([(PuntKind::ALL.len() as u32) << 16, 0]), None);
    }

    #[test]
    fn names_differ_and_find_their_rates() {
        let names: HashSet<_> = PuntKind::ALL.iter().map(|class| class.name).collect();
        assert_eq!(names.len(), PuntKind::ALL.len());
        let rate = PuntRate {
            per_second: 1,
            burst: 2,
        };
        let limits = PuntLimits::default().with("routing", rate).unwrap();
        let routing = PuntKind::Routing(PortIndex(0)).number();
        for (number, found) in limits.rates().into_iter().enumerate() {
            let usual = PuntKind::ALL[number].rate;
            assert_eq!(found, if number == routing { rate } else { usual });
        }
        assert_eq!(limits.with("no-such-kind", rate), None);
    }
}
