//! A policy as it is stored: each setting by its number, so that one more needs no new layout.

use crate::settings::unknown;
use crate::{Binding, Bindings, Policy, Role};
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The stored form. Settings at their defaults are left out.
#[derive(Serialize, Deserialize)]
struct Stored {
    network_instance: String,
    /// Which of them are announced is not stored: it follows from the pools.
    bindings: Vec<(Role, IpNet)>,
    settings: Vec<(u8, Vec<u8>)>,
}

/// Metrics of routes, which follow [`Stored`] where there are any. A policy without one is as earlier versions write it.
type Metrics = Vec<(IpNet, u32)>;

impl Policy {
    /// The policy in octets.
    pub fn to_bytes(&self) -> Vec<u8> {
        let packets = self.forwarding.packets.encoded().into_iter();
        let policies = self.forwarding.policies.encoded();
        let all = packets.chain(policies).chain(self.control.encoded());
        let bindings = self.forwarding.bindings.iter();
        let stored = Stored {
            network_instance: self.forwarding.network_instance.clone(),
            bindings: bindings.map(|b| (b.role, b.prefix)).collect(),
            settings: all.map(|(setting, value)| (setting.id, value)).collect(),
        };
        let stored =
            postcard::to_stdvec(&stored).expect("a policy has a size that serde can state");
        let bindings = self.forwarding.bindings.iter();
        let metrics: Metrics = bindings
            .filter_map(|b| Some((b.prefix, b.metric?)))
            .collect();
        match metrics.is_empty() {
            true => stored,
            false => postcard::to_extend(&metrics, stored).expect("metrics have such a size, too"),
        }
    }

    /// The policy that [`Policy::to_bytes`] wrote.
    ///
    /// # Errors
    /// What is wrong: octets that are none of ours, or a setting that only a later version knows.
    pub fn from_bytes(octets: &[u8]) -> Result<Policy, String> {
        let (stored, rest): (Stored, _) =
            postcard::take_from_bytes(octets).map_err(|error| format!("policy: {error}"))?;
        let metrics = read_metrics(rest)?;
        let mut policy = Policy::default();
        policy.forwarding.network_instance = stored.network_instance;
        let binding = |(role, prefix)| Binding {
            metric: metrics.iter().find(|(of, _)| *of == prefix).map(|m| m.1),
            ..Binding::new(role, prefix)
        };
        let bindings = Bindings::new(stored.bindings.into_iter().map(binding));
        policy.forwarding.bindings = bindings.map_err(|why| format!("policy: {why}"))?;
        for (id, value) in stored.settings {
            let set = policy.forwarding.packets.decode(id, &value);
            let set = set.or_else(|| policy.forwarding.policies.decode(id, &value));
            let set = set.or_else(|| Arc::make_mut(&mut policy.control).decode(id, &value));
            match set {
                Some(Ok(())) => {}
                Some(Err(why)) => return Err(format!("policy: setting {id}: {why}")),
                None => return Err(format!("policy: {}", unknown(id))),
            }
        }
        let checked = policy.forwarding.packets.check();
        checked.map_err(|setting| format!("policy: no packet can have this {}", setting.label))?;
        Ok(policy)
    }
}

fn read_metrics(octets: &[u8]) -> Result<Metrics, String> {
    if octets.is_empty() {
        return Ok(Metrics::new());
    }
    match postcard::take_from_bytes(octets) {
        Ok((metrics, [])) => Ok(metrics),
        _ => Err("policy: octets are left over".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ControlSettings, FilterRules, Keepalive, Name, PrioritySource, Rate, TimeoutAction,
    };
    use core::time::Duration;
    use proptest::prelude::*;

    fn full() -> Policy {
        let mut policy = Policy::default();
        policy.forwarding.network_instance = "default".into();
        let prefix = "2001:db8:0:7::/64".parse().unwrap();
        policy.forwarding.bindings = Bindings::of(Some([100, 64, 0, 7].into()), Some(prefix));
        policy.forwarding.packets.mtu = Some(1480);
        policy.forwarding.packets.vlan_priority = 5;
        policy.forwarding.packets.idle_timeout = Some(Duration::from_secs(600));
        policy.forwarding.packets.idle_both_ways = true;
        policy.forwarding.packets.rate_up = Some(Rate::kbps(10_000));
        policy.forwarding.packets.rate_down = Some(Rate::kbps(50_000));
        policy.forwarding.packets.subscriber_rate_up = Some(Rate::kbps(20_000));
        policy.forwarding.packets.subscriber_rate_down = Some(Rate::kbps(100_000));
        policy.forwarding.packets.priority_source = PrioritySource::Dscp;
        policy.forwarding.packets.committed_rate_up = Some(Rate::kbps(1_000));
        policy.forwarding.packets.committed_rate_down = Some(Rate::kbps(5_000));
        policy.forwarding.packets.keepalive = Some(Keepalive {
            interval: 30,
            failures: 3,
        });
        policy.forwarding.policies.policy_up = Name::new("home-up");
        policy.forwarding.policies.policy_down = Name::new("home-down");
        policy.forwarding.policies.filter_rules = FilterRules::new("deny in ip from any to any");
        policy.control = Arc::new(ControlSettings {
            session_timeout: Some(Duration::from_secs(3600)),
            timeout_action: TimeoutAction::Reauthenticate,
            interim_interval: Some(Duration::from_secs(60)),
            dns: vec![[192, 0, 2, 53].into()],
        });
        policy
    }

    #[test]
    fn every_setting_is_stored_and_seen_to_differ() {
        let policy = full();
        assert_eq!(Policy::from_bytes(&policy.to_bytes()), Ok(policy.clone()));
        let differences = policy.differences(&Policy::default()).count();
        let settings = [
            crate::PacketSettings::SETTINGS,
            crate::TrafficPolicies::SETTINGS,
            crate::ControlSettings::SETTINGS,
        ];
        let settings = settings.concat().len();
        assert_eq!(differences, settings, "a setting is missing in `full`");
    }

    #[test]
    fn metrics_and_further_link_prefixes_are_stored() {
        let mut policy = full();
        let bindings = policy.forwarding.bindings.iter().copied();
        let further = Binding::link("2001:db8:0:9::/64".parse().unwrap());
        let route = |net: &str, metric| Binding::route(net.parse().unwrap(), metric);
        let routes = [
            route("192.0.2.0/28", Some(0)),
            route("2001:db8:ff::/48", None),
        ];
        let all = bindings.chain([further]).chain(routes);
        policy.forwarding.bindings = Bindings::new(all).unwrap();
        let stored = policy.to_bytes();
        assert_eq!(Policy::from_bytes(&stored), Ok(policy.clone()));
        assert!(Policy::from_bytes(&[&stored[..], &[0]].concat()).is_err());
        // without a metric it is as the version before writes it
        policy.forwarding.bindings = Bindings::new(
            policy
                .forwarding
                .bindings
                .iter()
                .map(|b| Binding { metric: None, ..*b }),
        )
        .unwrap();
        let shorter = policy.to_bytes();
        assert_eq!(shorter, stored[..shorter.len()]);
    }

    #[test]
    fn what_a_later_version_stored_is_refused_by_name() {
        let stored = Stored {
            network_instance: "default".into(),
            bindings: Vec::new(),
            settings: vec![(200, vec![1])],
        };
        let octets = postcard::to_stdvec(&stored).unwrap();
        let why = Policy::from_bytes(&octets).unwrap_err();
        assert_eq!(
            why,
            "policy: setting 200 is unknown: a later version stored it"
        );
    }

    #[test]
    fn a_priority_that_no_tag_has_is_refused_by_name() {
        let mut policy = full();
        policy.forwarding.packets.vlan_priority = 8;
        let why = Policy::from_bytes(&policy.to_bytes()).unwrap_err();
        assert_eq!(why, "policy: no packet can have this VLAN priority");
    }

    #[test]
    fn bindings_that_contradict_each_other_are_refused_by_name() {
        let hosts = [[100, 64, 0, 7], [100, 64, 0, 8]];
        let stored = Stored {
            network_instance: "default".into(),
            bindings: hosts
                .map(|host| (Role::Host, Binding::host(host.into()).prefix))
                .into(),
            settings: Vec::new(),
        };
        let octets = postcard::to_stdvec(&stored).unwrap();
        assert_eq!(
            Policy::from_bytes(&octets).unwrap_err(),
            "policy: two host addresses of one family, 100.64.0.7/32 and 100.64.0.8/32"
        );
    }

    proptest! {
        #[test]
        fn any_octets_are_read_or_refused(octets in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(policy) = Policy::from_bytes(&octets) {
                prop_assert_eq!(Policy::from_bytes(&policy.to_bytes()), Ok(policy));
            }
        }

        #[test]
        fn damaged_octets_never_panic(at in 0usize..64, bit in 0u8..8) {
            let mut octets = full().to_bytes();
            let at = at % octets.len();
            octets[at] ^= 1 << bit;
            let _ = Policy::from_bytes(&octets);
        }
    }
}
