//! Evaluates the policy of a session: a pure function of the configuration, the access line and AAA's answer.

use crate::users;
use aaa::AccessAccept;
use aaa::mapping::{Setting, UnusableRate};
use config::Configuration;
use config::model::{AccessProfile, SubscriberProfile, User};
use core::net::IpAddr;
use core::ops::RangeInclusive;
use core::time::Duration;
use policy::{
    Bindings, ControlSettings, Forwarding, Keepalive, Name, Origin, Origins, Overrides,
    PacketSettings, Policy, PrioritySource, Rate, TimeoutAction, TrafficPolicies, Treatment,
};
use std::sync::{Arc, LazyLock};

static SUBSCRIBER_DEFAULTS: LazyLock<SubscriberProfile> = LazyLock::new(SubscriberProfile::default);

/// What AAA said about a subscriber, as far as the policy follows from it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct AaaAnswer {
    /// Name of the subscriber profile.
    pub profile: Option<Box<str>>,
    /// Settings in place of the profile's.
    pub overrides: Overrides,
}

/// AAA's value of an MTU is used in this range, in octets: that of the setting `mtu` of subscriber profiles.
const MTUS: RangeInclusive<u32> = 576..=9216;

impl AaaAnswer {
    /// This answer after a change, which says less than an answer.
    pub fn changed_by(&self, change: &AaaAnswer) -> Self {
        AaaAnswer {
            profile: change.profile.clone().or_else(|| self.profile.clone()),
            overrides: change.overrides.over(&self.overrides),
        }
    }

    /// What an Access-Accept says of a session that has lasted so long: its Session-Timeout counts from the accept (RFC 2865 §5.27), the
    /// setting from the session's start, in whole seconds and as many as the stored record has room for.
    pub fn of(accept: &AccessAccept, lasted: Duration) -> Self {
        let longest = Duration::from_secs(u32::MAX.into());
        let lasted = Duration::from_secs(lasted.as_secs());
        // zero is no limit
        let limit = |time: Duration| (!time.is_zero()).then_some(time);
        let timeout = accept.session_timeout.map(limit);
        let timeout = timeout.map(|granted| granted.map(|time| longest.min(lasted + time)));
        let mtu = accept.framed_mtu.filter(|mtu| MTUS.contains(mtu));
        AaaAnswer {
            profile: accept.filter_id.clone().map(Into::into),
            overrides: Overrides {
                mtu: mtu.map(|mtu| Some(mtu as u16)),
                session_timeout: timeout,
                timeout_action: accept.reauthenticates.map(|again| match again {
                    true => TimeoutAction::Reauthenticate,
                    false => TimeoutAction::End,
                }),
                idle_timeout: accept.idle_timeout.map(limit),
                interim_interval: accept.acct_interim.map(limit),
                rate_up: accept.rate_up.map(Some),
                rate_down: accept.rate_down.map(Some),
                committed_rate_up: accept.committed_rate_up.map(Some),
                committed_rate_down: accept.committed_rate_down.map(Some),
                subscriber_rate_up: accept.subscriber_rate_up.map(Some),
                subscriber_rate_down: accept.subscriber_rate_down.map(Some),
                dns: (!accept.dns.is_empty()).then(|| accept.dns.clone()),
                policy_up: accept.policy_up.as_deref().map(Name::new),
                policy_down: accept.policy_down.as_deref().map(Name::new),
                filter_rules: accept.filter_rules.clone().map(Some),
                vlan_priority: accept.vlan_priority,
                ..Overrides::default()
            },
        }
    }
}

/// What a policy is evaluated from.
#[derive(Clone, Copy)]
pub(crate) struct PolicyInputs<'a> {
    pub configuration: &'a Configuration,
    /// Access profile of the session's segment.
    pub access: &'a AccessProfile,
    /// PPPoE service name that the subscriber asked for.
    pub service: &'a [u8],
    /// Group of the server that accepted the subscriber.
    pub servers: Option<&'a str>,
    /// Largest IP packet that the link carries to the subscriber, in octets.
    pub link_mtu: u16,
    /// Actual data rate of the access line to the subscriber, in kbit/s, if the access node says it.
    pub line_rate_down: Option<u32>,
    pub answer: &'a AaaAnswer,
    /// Local user who was accepted. What its entry in the configuration says now counts; the answer has what was changed since.
    pub user: Option<&'a User>,
}

impl<'a> PolicyInputs<'a> {
    /// Name of the subscriber profile: AAA's, or else the one that the subscriber may choose by its service name, or else that of the
    /// access profile.
    pub fn profile_name(&self) -> Option<&'a str> {
        let mut permitted = self.access.service_profiles.iter();
        let chosen = permitted.find(|name| name.as_bytes() == self.service);
        let of_access = self.access.subscriber_profile.as_ref();
        let own = chosen.or(of_access).map(String::as_str);
        self.aaa_profile_name().or(own)
    }

    /// Name of the subscriber profile that AAA names.
    pub fn aaa_profile_name(&self) -> Option<&'a str> {
        let of_user = || self.user?.subscriber_profile.as_deref();
        self.answer.profile.as_deref().or_else(of_user)
    }

    /// Subscriber profile, and whether it is a configured one.
    pub fn profile(&self) -> (&'a SubscriberProfile, Origin) {
        profile(self.configuration, self.profile_name())
    }

    /// Whether the subscriber profile has a rate in place of each that AAA should say and does not. Otherwise the subscriber would have no
    /// limit where AAA wants one.
    pub fn check_rates(&self, accept: &AccessAccept) -> Result<(), String> {
        let (profile, _) = self.profile();
        let is_without = |unusable: &&UnusableRate| {
            0 == match unusable.setting {
                Setting::RateUp => profile.rate_up,
                Setting::RateDown => profile.rate_down,
                Setting::SubscriberRateUp => profile.subscriber_rate_up,
                _ => profile.subscriber_rate_down,
            }
        };
        match accept.unusable_rates.iter().find(is_without) {
            Some(UnusableRate {
                attribute, value, ..
            }) => Err(format!(
                "AAA's answer cannot be carried out: `{value}` of {attribute} is no rate, and the subscriber profile has none in its place"
            )),
            None => Ok(()),
        }
    }

    /// The part of the access line's rate that the session may have. A rate of 0 says nothing of the line: an access node that does not know it
    /// may send that. A part that is too small for a rate is the smallest one, as none would be no limit.
    fn line_rate(&self, profile: &SubscriberProfile) -> Option<Rate> {
        let percent = u64::from(profile.line_rate_percent);
        let line = self.line_rate_down.filter(|line| *line > 0)?;
        match percent {
            0 => None,
            percent => Rate::new((u64::from(line) * percent / 100).max(1)),
        }
    }

    /// The policy of a session that holds these bindings in this network instance, and where each value came from.
    pub fn evaluate(&self, network_instance: &str, bindings: &Bindings) -> (Policy, Origins) {
        let (profile, of_profile) = self.profile();
        let groups = &self.configuration.aaa.server_groups;
        let group = self.servers.and_then(|name| groups.get(name));
        let of_user = self.user.map(users::overrides);
        let answer = self.answer.overrides.over(&of_user.unwrap_or_default());
        let (session_timeout, timeout_origin) = chosen(
            &answer.session_timeout,
            (seconds(profile.session_timeout), of_profile),
        );
        let (timeout_action, action_origin) = chosen(
            &answer.timeout_action,
            (TimeoutAction::End, Origin::Default),
        );
        let (interim_interval, interim_origin) = chosen(
            &answer.interim_interval,
            (
                seconds(group.map_or(0, |group| group.interim_interval)),
                group.map_or(Origin::Default, |_| Origin::ServerGroup),
            ),
        );
        let (mut dns, dns_origin) = chosen(&answer.dns, (profile.dns.clone(), of_profile));
        dns.extend(missing_families(&dns, &profile.dns));
        let (vlan_priority, priority_origin) =
            chosen(&answer.vlan_priority, (profile.vlan_priority, of_profile));
        let (idle_timeout, idle_origin) = chosen(
            &answer.idle_timeout,
            (seconds(profile.idle_timeout), of_profile),
        );
        let (idle_both_ways, both_origin) =
            chosen(&answer.idle_both_ways, (profile.idle_both_ways, of_profile));
        let (rate_up, rate_up_origin) =
            chosen(&answer.rate_up, (rate(profile.rate_up), of_profile));
        let (rate_down, rate_down_origin) = least([
            chosen(&answer.rate_down, (rate(profile.rate_down), of_profile)),
            (self.line_rate(profile), Origin::Line),
        ]);
        let (committed_rate_up, committed_up_origin) = chosen(
            &answer.committed_rate_up,
            (rate(profile.committed_rate_up), of_profile),
        );
        let (committed_rate_down, committed_down_origin) = chosen(
            &answer.committed_rate_down,
            (rate(profile.committed_rate_down), of_profile),
        );
        let (subscriber_rate_up, subscriber_up_origin) = chosen(
            &answer.subscriber_rate_up,
            (rate(profile.subscriber_rate_up), of_profile),
        );
        let (subscriber_rate_down, subscriber_down_origin) = chosen(
            &answer.subscriber_rate_down,
            (rate(profile.subscriber_rate_down), of_profile),
        );
        let (priority_source, source_origin) = chosen(
            &answer.priority_source,
            (priority_source(profile.priority_source), of_profile),
        );
        let (policy_up, policy_up_origin) =
            chosen(&answer.policy_up, (name(&profile.policy_up), of_profile));
        let (policy_down, policy_down_origin) = chosen(
            &answer.policy_down,
            (name(&profile.policy_down), of_profile),
        );
        let (filter_rules, rules_origin) = chosen(&answer.filter_rules, (None, Origin::Default));
        let (mtu, mtu_origin) = least([
            chosen(&answer.mtu, (profile.mtu, of_profile)),
            (Some(self.link_mtu), Origin::Link),
        ]);
        let policy = Policy {
            forwarding: Forwarding::new(
                bindings.clone(),
                Treatment {
                    network_instance: network_instance.to_owned(),
                    packets: PacketSettings {
                        mtu,
                        vlan_priority,
                        idle_timeout,
                        idle_both_ways,
                        rate_up,
                        rate_down,
                        keepalive: keepalive(self.access),
                        subscriber_rate_up,
                        subscriber_rate_down,
                        priority_source,
                        committed_rate_up,
                        committed_rate_down,
                    },
                    policies: TrafficPolicies {
                        policy_up,
                        policy_down,
                        filter_rules,
                    },
                },
            ),
            control: Arc::new(ControlSettings {
                session_timeout,
                interim_interval,
                dns,
                timeout_action,
            }),
        };
        let origins = Origins {
            mtu: mtu_origin,
            vlan_priority: priority_origin,
            idle_timeout: idle_origin,
            idle_both_ways: both_origin,
            rate_up: rate_up_origin,
            rate_down: rate_down_origin,
            keepalive: Origin::AccessProfile,
            subscriber_rate_up: subscriber_up_origin,
            subscriber_rate_down: subscriber_down_origin,
            priority_source: source_origin,
            committed_rate_up: committed_up_origin,
            committed_rate_down: committed_down_origin,
            policy_up: policy_up_origin,
            policy_down: policy_down_origin,
            filter_rules: rules_origin,
            session_timeout: timeout_origin,
            interim_interval: interim_origin,
            dns: dns_origin,
            timeout_action: action_origin,
        };
        (policy, origins)
    }
}

/// The subscriber profile of a name. Without one in the configuration it is the built-in one.
pub(crate) fn profile<'a>(
    configuration: &'a Configuration,
    name: Option<&str>,
) -> (&'a SubscriberProfile, Origin) {
    let named = name.and_then(|name| configuration.subscriber_profiles.get(name));
    named.map_or((&SUBSCRIBER_DEFAULTS, Origin::Default), |profile| {
        (profile, Origin::Profile)
    })
}

/// The profile's DNS servers of each address family of which AAA names none.
fn missing_families(dns: &[IpAddr], of_profile: &[IpAddr]) -> Vec<IpAddr> {
    let is_missing =
        |address: &&IpAddr| !dns.iter().any(|other| other.is_ipv4() == address.is_ipv4());
    of_profile.iter().filter(is_missing).copied().collect()
}

/// AAA's value, if it said one.
fn chosen<T: Clone>(answer: &Option<T>, otherwise: (T, Origin)) -> (T, Origin) {
    match answer {
        Some(value) => (value.clone(), Origin::Aaa),
        None => otherwise,
    }
}

/// The smaller value; of equal ones the first. None is the largest.
fn least<T: Ord>([a, b]: [(Option<T>, Origin); 2]) -> (Option<T>, Origin) {
    let is_smaller = match (&a.0, &b.0) {
        (Some(a), Some(b)) => b < a,
        (None, b) => b.is_some(),
        (Some(_), None) => false,
    };
    if is_smaller { b } else { a }
}

fn priority_source(source: config::model::PrioritySource) -> PrioritySource {
    match source {
        config::model::PrioritySource::Fixed => PrioritySource::Fixed,
        config::model::PrioritySource::Dscp => PrioritySource::Dscp,
    }
}

/// A rate in kbit/s; none if it is 0.
pub(crate) fn rate(kbps: u32) -> Option<Rate> {
    Rate::new(kbps.into())
}

/// A name of the configuration.
pub(crate) fn name(text: &Option<String>) -> Option<Name> {
    text.as_deref().and_then(Name::new)
}

/// How subscribers of an access profile are watched; `None` if they are not.
pub(crate) fn keepalive(access: &AccessProfile) -> Option<Keepalive> {
    (access.echo_interval > 0).then_some(Keepalive {
        interval: access.echo_interval,
        failures: access.echo_failures,
    })
}

/// A time in seconds; none if it is 0.
pub(crate) fn seconds(seconds: u32) -> Option<Duration> {
    (seconds > 0).then(|| Duration::from_secs(seconds.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configuration() -> Arc<Configuration> {
        let text = "
            network-instances: {default: {}}
            subscriber-profiles:
              gold: {mtu: 1480, vlan-priority: 6, idle-timeout: 300, rate-up: 20000, rate-down: 100000, session-timeout: 3600, dns: [192.0.2.53]}
            aaa:
              servers: {a: {address: 192.0.2.9, secret-key: abcdefgh}}
              server-groups: {isp: {servers: [a], interim-interval: 600}}";
        config::check::read(text).unwrap().configuration
    }

    /// The rows of a session that a server of the group accepted, over a link with an MTU.
    fn rows(
        configuration: &Configuration,
        link_mtu: u16,
        answer: &AaaAnswer,
    ) -> Vec<(String, &'static str)> {
        rows_on_a_line(configuration, (link_mtu, Some(40_000)), answer)
    }

    /// The same where the access node says this of the line's rate.
    fn rows_on_a_line(
        configuration: &Configuration,
        (link_mtu, line_rate_down): (u16, Option<u32>),
        answer: &AaaAnswer,
    ) -> Vec<(String, &'static str)> {
        let policy_inputs = PolicyInputs {
            configuration,
            access: &AccessProfile::default(),
            service: b"",
            servers: Some("isp"),
            link_mtu,
            line_rate_down,
            answer,
            user: None,
        };
        let (policy, origins) = policy_inputs.evaluate("default", &Bindings::default());
        let rows = policy.rows(&origins).into_iter();
        rows.map(|row| {
            (
                format!("{} {}", row.setting.name, row.value),
                row.origin.name(),
            )
        })
        .collect()
    }

    /// The row of the rate to the subscriber.
    fn rate_down(rows: Vec<(String, &'static str)>) -> (String, &'static str) {
        let is_rate = |(text, _): &(String, _)| text.starts_with("rate_down");
        rows.into_iter().find(is_rate).unwrap()
    }

    /// The configuration with another percentage of the line.
    fn with_percent(configuration: &Configuration, percent: u8) -> Configuration {
        let mut configuration = configuration.clone();
        let gold = configuration.subscriber_profiles.get_mut("gold").unwrap();
        gold.line_rate_percent = percent;
        configuration
    }

    #[test]
    fn a_rate_is_no_more_than_its_part_of_the_line() {
        let configuration = configuration();
        let part = |percent: u8, of_aaa: Option<u64>| {
            let configuration = with_percent(&configuration, percent);
            let mut answer = AaaAnswer {
                profile: Some("gold".into()),
                ..AaaAnswer::default()
            };
            answer.overrides.rate_down = of_aaa.map(Rate::new);
            rate_down(rows(&configuration, 1492, &answer))
        };
        // of 40,000 kbit/s
        for (percent, of_aaa, rate, origin) in [
            (0, None, "100000 kbit/s", "profile"),
            (90, None, "36000 kbit/s", "line"),
            (90, Some(30_000), "30000 kbit/s", "aaa"),
            (90, Some(50_000), "36000 kbit/s", "line"),
            (90, Some(0), "36000 kbit/s", "line"),
            (200, Some(0), "80000 kbit/s", "line"),
        ] {
            assert_eq!(part(percent, of_aaa), (format!("rate_down {rate}"), origin));
        }
    }

    /// A line that has hardly any rate left does not make its session unlimited; 0 is what an access node says that does not know the rate.
    #[test]
    fn a_line_that_is_slow_is_a_limit_and_one_without_a_rate_is_none() {
        let answer = AaaAnswer {
            profile: Some("gold".into()),
            ..AaaAnswer::default()
        };
        let part = |line, percent, of_profile| {
            let mut configuration = with_percent(&configuration(), percent);
            let gold = configuration.subscriber_profiles.get_mut("gold").unwrap();
            gold.rate_down = of_profile;
            rate_down(rows_on_a_line(&configuration, (1492, Some(line)), &answer))
        };
        for (line, percent, of_profile, rate, origin) in [
            (1, 90, 0, "1 kbit/s", "line"),
            (1, 90, 100_000, "1 kbit/s", "line"),
            (99, 1, 0, "1 kbit/s", "line"),
            (u32::MAX, 200, 0, "8589934590 kbit/s", "line"),
            (0, 90, 0, "", "profile"),
            (0, 90, 100_000, "100000 kbit/s", "profile"),
            (1, 0, 100_000, "100000 kbit/s", "profile"),
        ] {
            let expected = (format!("rate_down {rate}"), origin);
            assert_eq!(
                part(line, percent, of_profile),
                expected,
                "{line} {percent}"
            );
        }
    }

    #[test]
    fn each_rate_of_an_answer_is_that_setting() {
        let rate = Rate::new;
        let accept = AccessAccept {
            rate_up: rate(1),
            rate_down: rate(2),
            committed_rate_up: rate(3),
            committed_rate_down: rate(4),
            subscriber_rate_up: rate(5),
            subscriber_rate_down: rate(6),
            ..AccessAccept::default()
        };
        let expected = Overrides {
            rate_up: Some(rate(1)),
            rate_down: Some(rate(2)),
            committed_rate_up: Some(rate(3)),
            committed_rate_down: Some(rate(4)),
            subscriber_rate_up: Some(rate(5)),
            subscriber_rate_down: Some(rate(6)),
            ..Overrides::default()
        };
        assert_eq!(AaaAnswer::of(&accept, Duration::ZERO).overrides, expected);
    }

    #[test]
    fn a_service_name_selects_a_permitted_profile_unless_aaa_names_one() {
        let configuration = configuration();
        let access = |service_profiles: &[&str]| AccessProfile {
            service_profiles: service_profiles.iter().map(|s| s.to_string()).collect(),
            subscriber_profile: Some("standard".into()),
            ..AccessProfile::default()
        };
        let name = |access: &AccessProfile, service: &[u8], profile: Option<&str>| {
            let answer = AaaAnswer {
                profile: profile.map(Into::into),
                ..AaaAnswer::default()
            };
            let inputs = PolicyInputs {
                configuration: &configuration,
                access,
                service,
                servers: None,
                link_mtu: 1492,
                line_rate_down: None,
                answer: &answer,
                user: None,
            };
            inputs.profile_name().map(str::to_owned)
        };
        let (open, closed) = (access(&["gold"]), access(&[]));
        assert_eq!(name(&open, b"gold", None).as_deref(), Some("gold"));
        assert_eq!(name(&open, b"gold", Some("home")).as_deref(), Some("home"));
        for (access, service) in [(&open, &b""[..]), (&open, b"silver"), (&closed, b"gold")] {
            assert_eq!(name(access, service, None).as_deref(), Some("standard"));
        }
    }

    #[test]
    fn aaa_comes_before_the_profile_and_that_before_the_defaults() {
        let configuration = configuration();
        let hours = |h: u64| Some(Duration::from_secs(h * 3600));
        let mut answer = AaaAnswer::default();
        let row = |text: &str, origin| (text.to_owned(), origin);
        let defaults = [
            row("mtu 1492", "link"),
            row("vlan_priority ", "default"),
            row("idle_timeout ", "default"),
            row("idle_both_ways ", "default"),
            row("rate_up ", "default"),
            row("rate_down ", "default"),
            row("keepalive 30 s, 3 failures", "access-profile"),
            row("subscriber_rate_up ", "default"),
            row("subscriber_rate_down ", "default"),
            row("priority_source ", "default"),
            row("committed_rate_up ", "default"),
            row("committed_rate_down ", "default"),
            row("policy_up ", "default"),
            row("policy_down ", "default"),
            row("filter_rules ", "default"),
            row("session_timeout ", "default"),
            row("timeout_action ", "default"),
            row("interim_interval 600 s", "server-group"),
            row("dns ", "default"),
        ];
        assert_eq!(rows(&configuration, 1492, &answer), defaults);
        // PPP-Max-Payload was agreed (RFC 4638)
        let large = &rows(&configuration, 1500, &answer)[0];
        assert_eq!(large, &row("mtu 1500", "link"));
        answer.profile = Some("gold".into());
        let gold = [
            row("mtu 1480", "profile"),
            row("vlan_priority 6", "profile"),
            row("idle_timeout 300 s", "profile"),
            row("idle_both_ways ", "profile"),
            row("rate_up 20000 kbit/s", "profile"),
            row("rate_down 100000 kbit/s", "profile"),
            row("keepalive 30 s, 3 failures", "access-profile"),
            row("subscriber_rate_up ", "profile"),
            row("subscriber_rate_down ", "profile"),
            row("priority_source ", "profile"),
            row("committed_rate_up ", "profile"),
            row("committed_rate_down ", "profile"),
            row("policy_up ", "profile"),
            row("policy_down ", "profile"),
            row("filter_rules ", "default"),
            row("session_timeout 3600 s", "profile"),
            row("timeout_action ", "default"),
            row("interim_interval 600 s", "server-group"),
            row("dns 192.0.2.53", "profile"),
        ];
        assert_eq!(rows(&configuration, 1492, &answer), gold);
        answer.overrides.session_timeout = Some(hours(2));
        answer.overrides.policy_up = Some(Name::new("filtered"));
        answer.overrides.interim_interval = Some(hours(1));
        let of_aaa = [
            row("mtu 1400", "link"),
            row("vlan_priority 6", "profile"),
            row("idle_timeout 300 s", "profile"),
            row("idle_both_ways ", "profile"),
            row("rate_up 20000 kbit/s", "profile"),
            row("rate_down 100000 kbit/s", "profile"),
            row("keepalive 30 s, 3 failures", "access-profile"),
            row("subscriber_rate_up ", "profile"),
            row("subscriber_rate_down ", "profile"),
            row("priority_source ", "profile"),
            row("committed_rate_up ", "profile"),
            row("committed_rate_down ", "profile"),
            row("policy_up filtered", "aaa"),
            row("policy_down ", "profile"),
            row("filter_rules ", "default"),
            row("session_timeout 7200 s", "aaa"),
            row("timeout_action ", "default"),
            row("interim_interval 3600 s", "aaa"),
            row("dns 192.0.2.53", "profile"),
        ];
        assert_eq!(rows(&configuration, 1400, &answer), of_aaa);
        for (of_aaa, dns) in [
            ("192.0.2.1", "dns 192.0.2.1"),
            ("2001:db8::53", "dns 2001:db8::53, 192.0.2.53"),
        ] {
            answer.overrides.dns = Some(vec![of_aaa.parse().unwrap()]);
            let rows = rows(&configuration, 1400, &answer);
            assert_eq!(rows.last(), Some(&row(dns, "aaa")));
        }
    }
}
