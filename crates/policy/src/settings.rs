//! The declaration of every setting.

use crate::FilterRules;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::time::Duration;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// One setting, as declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Number in stored policies. Never given to another setting.
    pub id: u8,
    /// Name in JSON, with underscores.
    pub name: &'static str,
    /// What people read.
    pub label: &'static str,
}

/// Where the value of a setting came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// The built-in default.
    #[default]
    Default,
    /// The subscriber profile.
    Profile,
    /// The access profile.
    AccessProfile,
    /// The server group of the access profile.
    ServerGroup,
    /// What subscriber and gateway agreed on for their link.
    Link,
    /// What the access node says of the access line (TR-101).
    Line,
    /// AAA's answer.
    Aaa,
}

impl Origin {
    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Origin::Default => "default",
            Origin::Profile => "profile",
            Origin::AccessProfile => "access-profile",
            Origin::ServerGroup => "server-group",
            Origin::Link => "link",
            Origin::Line => "line",
            Origin::Aaa => "aaa",
        }
    }
}

/// A setting of one session, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The setting.
    pub setting: &'static Setting,
    /// Its value. Empty: none.
    pub value: String,
    /// Where the value came from.
    pub origin: Origin,
}

/// Declares settings. From the declaration follow the struct that holds their values, what differs, the stored form, and
/// the rows for people. A line is: number, name, type, label. The value without a declaration is the type's default.
macro_rules! settings {
    ($($(#[$about:meta])* $holder:ident { $($(#[$doc:meta])* $id:literal $name:ident: $type:ty, $label:literal;)* })*) => {
        /// Where the value of each setting came from.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Origins { $($($(#[$doc])* pub $name: Origin,)*)* }

        /// Values that somebody asks for in place of those of the configuration, such as AAA in its answer.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
        pub struct Overrides { $($($(#[$doc])* pub $name: Option<$type>,)*)* }

        impl Overrides {
            /// These values, and those of `before` where there are none.
            pub fn over(&self, before: &Self) -> Self {
                Overrides { $($($name: self.$name.clone().or_else(|| before.$name.clone()),)*)* }
            }

            /// The values that are asked for, by the numbers of their settings.
            pub fn encoded(&self) -> Vec<(u8, Vec<u8>)> {
                let values = [$($(self.$name.as_ref().map(|value| ($id, encode(value))),)*)*];
                values.into_iter().flatten().collect()
            }

            /// The values that [`Overrides::encoded`] has written.
            ///
            /// # Errors
            /// What is wrong: octets that are none of ours, or a setting that only a later version knows.
            pub fn decoded(values: &[(u8, Vec<u8>)]) -> Result<Self, String> {
                let mut overrides = Overrides::default();
                for (id, value) in values {
                    let set = match id {
                        $($($id => decode(value).map(|value| overrides.$name = Some(value)),)*)*
                        _ => return Err(unknown(*id)),
                    };
                    set.map_err(|why| format!("setting {id}: {why}"))?;
                }
                Ok(overrides)
            }
        }

        $(
            $(#[$about])*
            pub struct $holder { $($(#[$doc])* pub $name: $type,)* }

            impl $holder {
                /// The settings of this part, in the order of their declaration.
                pub const SETTINGS: &'static [Setting] = &[$(
                    Setting { id: $id, name: stringify!($name), label: $label },
                )*];

                /// The settings that differ.
                pub fn differences(&self, other: &Self) -> impl Iterator<Item = &'static Setting> + use<> {
                    let differs = [$(self.$name != other.$name),*];
                    let all = Self::SETTINGS.iter().zip(differs);
                    all.filter_map(|(setting, differs)| differs.then_some(setting))
                }

                /// The settings that are not at their defaults, each with its value in octets.
                pub fn encoded(&self) -> Vec<(&'static Setting, Vec<u8>)> {
                    let default = Self::default();
                    let values = [$((self.$name != default.$name).then(|| encode(&self.$name))),*];
                    let all = Self::SETTINGS.iter().zip(values);
                    all.filter_map(|(setting, value)| Some((setting, value?))).collect()
                }

                /// Sets the setting with a number. `None`: this part has none with that number.
                pub fn decode(&mut self, id: u8, value: &[u8]) -> Option<Result<(), String>> {
                    match id {
                        $($id => Some(decode(value).map(|value| self.$name = value)),)*
                        _ => None,
                    }
                }

                pub(crate) fn rows(&self, origins: &Origins) -> Vec<Row> {
                    let rows = [$((Value::text(&self.$name), origins.$name)),*];
                    let all = Self::SETTINGS.iter().zip(rows);
                    all.map(|(setting, (value, origin))| Row { setting, value, origin }).collect()
                }
            }
        )*
    };
}

settings! {
    /// Settings that change what happens to packets. Small, since the packet path has a copy for each session.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    PacketSettings {
        /// Largest IP packet sent to the subscriber, in octets. `None`: [`PPPOE_MTU`](crate::PPPOE_MTU).
        1 mtu: Option<u16>, "MTU";
        /// Priority (IEEE 802.1Q PCP, 0 to 7) in the VLAN tags of what is sent to the subscriber, control packets included.
        5 vlan_priority: u8, "VLAN priority";
        /// Time without packets from the subscriber after which the session is idle and ends. `None`: it may be idle.
        6 idle_timeout: Option<Duration>, "idle timeout";
        /// Packets to the subscriber keep the session from being idle, too.
        7 idle_both_ways: bool, "direction of the idle timeout";
        /// Rate of IP packets from the subscriber above which packets are dropped. `None`: no limit.
        8 rate_up: Option<Rate>, "rate up";
        /// Rate of IP packets to the subscriber above which packets are dropped. `None`: no limit.
        9 rate_down: Option<Rate>, "rate down";
        /// How the user plane watches the subscriber with LCP echo requests. `None`: it does not.
        11 keepalive: Option<Keepalive>, "keepalive";
        /// Rate of IP packets from all sessions of the subscriber together. `None`: no limit.
        15 subscriber_rate_up: Option<Rate>, "home rate up";
        /// Rate of IP packets to all sessions of the subscriber together. `None`: no limit.
        16 subscriber_rate_down: Option<Rate>, "home rate down";
        /// Where the priority in the VLAN tags of IP packets to the subscriber comes from.
        17 priority_source: PrioritySource, "priority source";
        /// Committed rate of IP packets from the subscriber: that of its policy's policer of two rates. `None`: the policer's own.
        18 committed_rate_up: Option<Rate>, "committed rate up";
        /// The same for packets to the subscriber.
        19 committed_rate_down: Option<Rate>, "committed rate down";
    }

    /// What packets pass: policies of the user plane's own configuration, by name for each direction, and rules of the subscriber.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
    TrafficPolicies {
        /// Policy of packets from the subscriber. `None`: all of them pass.
        12 policy_up: Option<Name>, "policy up";
        /// Policy of packets to the subscriber. `None`: all of them pass.
        13 policy_down: Option<Name>, "policy down";
        /// Rules of the subscriber alone, which are tried before those of the policies. `None`: there are none.
        14 filter_rules: Option<FilterRules>, "filter rules";
    }

    /// Settings that the control plane alone carries out.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
    ControlSettings {
        /// How long the session may last. `None`: no limit.
        2 session_timeout: Option<Duration>, "session timeout";
        /// What happens when the session time-out has passed.
        10 timeout_action: TimeoutAction, "action at the session timeout";
        /// Time between interim accounting records. `None`: no such records.
        3 interim_interval: Option<Duration>, "interval of interim records";
        /// Name servers, the preferred ones first.
        4 dns: Vec<IpAddr>, "name servers";
    }
}

/// Name of something that the configuration defines: 1 to [`Name::MOST`] octets. Copies share the text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(
    // a thin pointer: most sessions name few policies, and all have room for them
    Arc<Box<str>>,
);

impl Name {
    /// Length of the longest name, in octets.
    pub const MOST: usize = 253;

    /// The name with this text; `None` if it is empty or too long.
    pub fn new(text: &str) -> Option<Self> {
        (1..=Name::MOST)
            .contains(&text.len())
            .then(|| Name(Arc::new(text.into())))
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl core::fmt::Debug for Name {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(f)
    }
}

impl core::fmt::Display for Name {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Name {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        let wrong = || serde::de::Error::custom("a name has 1 to 253 octets");
        Name::new(&text).ok_or_else(wrong)
    }
}

/// Where the VLAN priority of an IP packet comes from. Control packets always have the fixed one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PrioritySource {
    /// It is fixed.
    #[default]
    Fixed,
    /// The first three bits of the packet's code point (RFC 2474 §4.2.2: the class selector), as it is sent.
    Dscp,
}

/// What happens when the session time-out has passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TimeoutAction {
    /// The session ends.
    #[default]
    End,
    /// The subscriber is authenticated again, and the session goes on with what AAA then says.
    Reauthenticate,
}

/// Bit rate in kbit/s (1,000 bits a second), from 1 to [`Rate::MOST`]: eight octets, also if it may be missing, or not be asked for. Each
/// session has many of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct Rate {
    low: u32,
    high: u8,
    there: There,
}

/// An octet with one value: its others stand for what is not there.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
enum There {
    Yes = 1,
}

const _: () = assert!(size_of::<Option<Option<Rate>>>() == 8);

impl Rate {
    /// Largest rate: one less than the largest number of an MBR (TS 29.244 §8.2.8), which stands for no limit.
    pub const MOST: Rate = Rate::kbps((1 << 40) - 2);

    /// So many kbit/s. `None`: no rate is 0, or above [`Rate::MOST`].
    pub const fn new(kbps: u64) -> Option<Self> {
        if kbps == 0 || kbps >= (1 << 40) - 1 {
            return None;
        }
        Some(Rate {
            low: kbps as u32,
            high: (kbps >> 32) as u8,
            there: There::Yes,
        })
    }

    /// The same of a number that is one.
    ///
    /// # Panics
    /// No rate has it.
    pub const fn kbps(kbps: u64) -> Self {
        Rate::new(kbps).expect("a rate")
    }

    /// In kbit/s.
    pub const fn get(self) -> u64 {
        (self.high as u64) << 32 | self.low as u64
    }
}

impl core::fmt::Debug for Rate {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Rate({})", self.get())
    }
}

impl PartialOrd for Rate {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Rate {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        self.get().cmp(&other.get())
    }
}

impl TryFrom<u64> for Rate {
    type Error = &'static str;

    fn try_from(kbps: u64) -> Result<Self, Self::Error> {
        Rate::new(kbps).ok_or("no rate has this number")
    }
}

impl From<Rate> for u64 {
    fn from(rate: Rate) -> u64 {
        rate.get()
    }
}

/// How somebody is watched with LCP echo requests (RFC 1661 §5.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Keepalive {
    /// Seconds without a packet of the subscriber after which it is asked, and between two questions; at least 1.
    pub interval: u16,
    /// Questions without an answer after which the subscriber is gone, if it does not answer in one more interval; at least 1.
    pub failures: u8,
}

/// The shortest time after which a session can be idle.
const SHORTEST_IDLE: Duration = Duration::from_secs(1);

impl PacketSettings {
    /// Default settings with an MTU in octets.
    pub fn with_mtu(mtu: u16) -> Self {
        PacketSettings {
            mtu: Some(mtu),
            ..PacketSettings::default()
        }
    }

    /// Whether each value is one that packets can have.
    ///
    /// # Errors
    /// The setting that is not.
    pub fn check(&self) -> Result<(), &'static Setting> {
        let sound = |setting: &&'static Setting| match setting.name {
            "vlan_priority" => self.vlan_priority <= 7,
            "idle_timeout" => self.idle_timeout.is_none_or(|time| time >= SHORTEST_IDLE),
            "keepalive" => self
                .keepalive
                .is_none_or(|keepalive| keepalive.interval > 0 && keepalive.failures > 0),
            _ => true,
        };
        match Self::SETTINGS.iter().find(|setting| !sound(setting)) {
            Some(setting) => Err(setting),
            None => Ok(()),
        }
    }

    /// The same settings without those that somebody does not know; these are at their defaults.
    pub fn limited_to(&self, is_known: impl Fn(&Setting) -> bool) -> Self {
        if Self::SETTINGS.iter().all(&is_known) {
            return *self;
        }
        let mut limited = PacketSettings::default();
        for (setting, value) in self.encoded() {
            if is_known(setting) {
                let decoded = limited.decode(setting.id, &value);
                debug_assert_eq!(decoded, Some(Ok(())));
            }
        }
        limited
    }

    /// Size of the largest IP packet sent to the subscriber, in octets.
    pub fn largest_packet(&self) -> u16 {
        self.mtu.unwrap_or(crate::PPPOE_MTU)
    }
}

impl ControlSettings {
    /// The first two name servers with IPv4 addresses: as many as IPCP takes (RFC 1877).
    pub fn dns_ipv4(&self) -> [Option<Ipv4Addr>; 2] {
        let mut found = self.dns.iter().filter_map(|address| match address {
            IpAddr::V4(address) => Some(*address),
            IpAddr::V6(_) => None,
        });
        [found.next(), found.next()]
    }

    /// The name servers with IPv6 addresses, for Router Advertisements (RFC 8106).
    pub fn dns_ipv6(&self) -> Vec<Ipv6Addr> {
        let v6 = |address: &IpAddr| match address {
            IpAddr::V6(address) => Some(*address),
            IpAddr::V4(_) => None,
        };
        self.dns.iter().filter_map(v6).collect()
    }
}

fn encode(value: &impl serde::Serialize) -> Vec<u8> {
    postcard::to_stdvec(value).expect("a setting has a size that serde can state")
}

/// Why a stored setting is refused that no line declares.
pub(crate) fn unknown(id: u8) -> String {
    format!("setting {id} is unknown: a later version stored it")
}

fn decode<'a, T: serde::Deserialize<'a>>(octets: &'a [u8]) -> Result<T, String> {
    match postcard::take_from_bytes(octets) {
        Ok((value, [])) => Ok(value),
        Ok(_) => Err("octets are left over".into()),
        Err(error) => Err(error.to_string()),
    }
}

/// A type of values.
trait Value {
    /// For people. Empty: none.
    fn text(&self) -> String;
}

/// Whether both directions are meant.
impl Value for bool {
    fn text(&self) -> String {
        if *self { "both ways" } else { "" }.to_owned()
    }
}

/// A priority.
impl Value for u8 {
    fn text(&self) -> String {
        Some(*self)
            .filter(|n| *n > 0)
            .map_or(String::new(), |n| n.to_string())
    }
}

impl Value for PrioritySource {
    fn text(&self) -> String {
        match self {
            PrioritySource::Fixed => String::new(),
            PrioritySource::Dscp => "DSCP".to_owned(),
        }
    }
}

impl Value for TimeoutAction {
    fn text(&self) -> String {
        match self {
            TimeoutAction::End => String::new(),
            TimeoutAction::Reauthenticate => "re-authentication".to_owned(),
        }
    }
}

impl Value for Option<u16> {
    fn text(&self) -> String {
        self.map_or(String::new(), |n| n.to_string())
    }
}

impl Value for Option<Rate> {
    fn text(&self) -> String {
        self.map_or(String::new(), |rate| format!("{} kbit/s", rate.get()))
    }
}

impl Value for Option<Name> {
    fn text(&self) -> String {
        self.as_ref().map_or(String::new(), Name::to_string)
    }
}

impl Value for Option<FilterRules> {
    fn text(&self) -> String {
        self.as_ref().map_or(String::new(), FilterRules::to_string)
    }
}

impl Value for Option<Keepalive> {
    fn text(&self) -> String {
        self.map_or(String::new(), |Keepalive { interval, failures }| {
            format!("{interval} s, {failures} failures")
        })
    }
}

impl Value for Option<Duration> {
    fn text(&self) -> String {
        self.map_or(String::new(), |time| format!("{} s", time.as_secs()))
    }
}

impl Value for Vec<IpAddr> {
    fn text(&self) -> String {
        let all: Vec<String> = self.iter().map(IpAddr::to_string).collect();
        all.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Policy;
    use std::collections::BTreeSet;

    #[test]
    fn numbers_and_names_are_distinct() {
        let all = || {
            let packets = PacketSettings::SETTINGS.iter();
            packets
                .chain(TrafficPolicies::SETTINGS)
                .chain(ControlSettings::SETTINGS)
        };
        let ids: BTreeSet<u8> = all().map(|setting| setting.id).collect();
        let names: BTreeSet<&str> = all().map(|setting| setting.name).collect();
        assert_eq!((ids.len(), names.len()), (all().count(), all().count()));
    }

    #[test]
    fn a_rate_is_a_number_from_1_on() {
        assert_eq!(Rate::new(0), None);
        assert_eq!(Rate::new(Rate::MOST.get() + 1), None);
        for kbps in [1, 1000, u32::MAX.into(), 1 << 32, (1 << 40) - 2] {
            let rate = Rate::new(kbps).unwrap();
            assert_eq!((rate.get(), u64::from(rate)), (kbps, kbps));
            assert_eq!(decode::<Rate>(&encode(&rate)), Ok(rate));
            assert_eq!(
                encode(&rate),
                encode(&kbps),
                "as the version before stored it"
            );
            assert!(rate >= Rate::kbps(1) && rate <= Rate::MOST);
        }
        assert!(Rate::kbps(1 << 32) > Rate::kbps(u32::MAX.into()));
        assert!(decode::<Rate>(&encode(&0u64)).is_err());
    }

    #[test]
    fn what_is_asked_for_is_stored_by_number() {
        let all = Overrides {
            mtu: Some(Some(1400)),
            vlan_priority: Some(5),
            idle_timeout: Some(Some(Duration::from_secs(600))),
            idle_both_ways: Some(true),
            rate_up: Some(Some(Rate::kbps(20_000))),
            rate_down: Some(Some(Rate::MOST)),
            keepalive: Some(None),
            session_timeout: Some(None),
            interim_interval: Some(Some(Duration::from_secs(60))),
            dns: Some(vec![[192, 0, 2, 53].into()]),
            timeout_action: Some(TimeoutAction::Reauthenticate),
            policy_up: Some(Name::new("home-up")),
            policy_down: Some(None),
            filter_rules: Some(FilterRules::new("deny in ip from any to any")),
            subscriber_rate_up: Some(Some(Rate::kbps(40_000))),
            subscriber_rate_down: Some(None),
            priority_source: Some(PrioritySource::Dscp),
            committed_rate_up: Some(Some(Rate::kbps(2_000))),
            committed_rate_down: Some(None),
        };
        let stored = all.encoded();
        let settings = [
            PacketSettings::SETTINGS,
            TrafficPolicies::SETTINGS,
            ControlSettings::SETTINGS,
        ];
        assert_eq!(stored.len(), settings.concat().len());
        assert_eq!(Overrides::decoded(&stored), Ok(all));
        assert_eq!(Overrides::default().encoded(), []);
        let why = Overrides::decoded(&[(200, vec![])]).unwrap_err();
        assert_eq!(why, "setting 200 is unknown: a later version stored it");
        assert!(Overrides::decoded(&[(1, vec![9])]).is_err());
    }

    #[test]
    fn what_is_asked_for_later_replaces_what_was_asked_for_before() {
        let before = Overrides {
            mtu: Some(Some(1400)),
            vlan_priority: Some(5),
            ..Overrides::default()
        };
        let later = Overrides {
            mtu: Some(None),
            session_timeout: Some(None),
            ..Overrides::default()
        };
        let both = Overrides {
            mtu: Some(None),
            vlan_priority: Some(5),
            session_timeout: Some(None),
            ..Overrides::default()
        };
        assert_eq!(later.over(&before), both);
    }

    #[test]
    fn settings_that_somebody_does_not_know_are_at_their_defaults() {
        let packets = PacketSettings {
            vlan_priority: 5,
            rate_down: Some(Rate::kbps(1000)),
            ..PacketSettings::with_mtu(1400)
        };
        let without = |name| packets.limited_to(|setting| setting.name != name);
        assert_eq!(without("idle_timeout"), packets);
        let limited = PacketSettings {
            rate_down: None,
            ..packets
        };
        assert_eq!(without("rate_down"), limited);
        let none = packets.limited_to(|_| false);
        assert_eq!(none, PacketSettings::default());
    }

    #[test]
    fn rows_say_value_and_origin() {
        let mut policy = Policy::default();
        policy.forwarding.packets.mtu = Some(1480);
        policy.forwarding.packets.keepalive = Some(Keepalive {
            interval: 30,
            failures: 3,
        });
        policy.forwarding.packets.priority_source = PrioritySource::Dscp;
        policy.forwarding.policies.policy_up = Name::new("home-up");
        policy.control = Arc::new(ControlSettings {
            session_timeout: Some(Duration::from_secs(3600)),
            dns: vec![[192, 0, 2, 53].into(), "2001:db8::53".parse().unwrap()],
            ..ControlSettings::default()
        });
        let origins = Origins {
            mtu: Origin::Profile,
            policy_up: Origin::Profile,
            priority_source: Origin::Profile,
            keepalive: Origin::AccessProfile,
            session_timeout: Origin::Aaa,
            ..Origins::default()
        };
        let rows = policy.rows(&origins).into_iter();
        let rows: Vec<_> = rows
            .map(|row| (row.setting.name, row.value, row.origin.name()))
            .collect();
        let row = |name, value: &str, origin| (name, value.to_owned(), origin);
        assert_eq!(
            rows,
            [
                row("mtu", "1480", "profile"),
                row("vlan_priority", "", "default"),
                row("idle_timeout", "", "default"),
                row("idle_both_ways", "", "default"),
                row("rate_up", "", "default"),
                row("rate_down", "", "default"),
                row("keepalive", "30 s, 3 failures", "access-profile"),
                row("subscriber_rate_up", "", "default"),
                row("subscriber_rate_down", "", "default"),
                row("priority_source", "DSCP", "profile"),
                row("committed_rate_up", "", "default"),
                row("committed_rate_down", "", "default"),
                row("policy_up", "home-up", "profile"),
                row("policy_down", "", "default"),
                row("filter_rules", "", "default"),
                row("session_timeout", "3600 s", "aaa"),
                row("timeout_action", "", "default"),
                row("interim_interval", "", "default"),
                row("dns", "192.0.2.53, 2001:db8::53", "default"),
            ]
        );
    }
}
