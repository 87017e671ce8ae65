//! What a change may not bring, and a stored configuration may have: earlier versions took it, and a gateway that does not start is worse.

use super::MAX_FAULTS;
use super::whole::Found;
use crate::model::{AccessProfile, Configuration, Policer, UserPlane};
use crate::{Fault, Path};
use std::collections::HashSet;

/// What contradicts itself in a configuration that can be used, and not already in the one before it.
pub fn new_contradictions(before: &Configuration, after: &Configuration) -> Vec<Fault> {
    let known = contradictions(before);
    let known: HashSet<String> = known.iter().map(Fault::to_string).collect();
    let new = contradictions(after).into_iter();
    let new = new.filter(|fault| !known.contains(&fault.to_string()));
    new.take(MAX_FAULTS).collect()
}

fn contradictions(configuration: &Configuration) -> Vec<Fault> {
    let mut found = Found::default();
    for (name, profile) in &configuration.subscriber_profiles {
        let here = Path::from_iter(["subscriber-profiles", name]);
        let up = [profile.rate_up, profile.committed_rate_up].map(Some);
        let down = [profile.rate_down, profile.committed_rate_down].map(Some);
        found.committed_rate(&here, "up", up);
        found.committed_rate(&here, "down", down);
    }
    for (name, user) in &configuration.users {
        let here = Path::from_iter(["users", name]);
        found.committed_rate(&here, "up", [user.rate_up, user.committed_rate_up]);
        found.committed_rate(&here, "down", [user.rate_down, user.committed_rate_down]);
    }
    let largest = largest_packet(configuration);
    for (name, policer) in &configuration.policers {
        found.bursts(&Path::from_iter(["policers", name]), policer, &largest);
    }
    for (name, plane) in &configuration.user_planes {
        found.aggregates(&Path::from_iter(["user-planes", name]), plane);
    }
    found.0
}

/// The largest packet that a session may have, and what says so.
fn largest_packet(configuration: &Configuration) -> (u16, String) {
    let profiles = configuration.access_profiles.iter();
    let largest = profiles.max_by_key(|(_, profile)| profile.max_mru);
    match largest {
        Some((name, profile)) => (
            profile.max_mru,
            format!("`max-mru` of access profile `{name}`"),
        ),
        None => (
            AccessProfile::default().max_mru,
            "the default `max-mru`".into(),
        ),
    }
}

impl Found {
    /// A committed rate is no more than the rate, where both are said. 0 is none.
    fn committed_rate(&mut self, here: &Path, direction: &str, rates: [Option<u32>; 2]) {
        let [Some(rate @ 1..), Some(committed)] = rates else {
            return;
        };
        if committed > rate {
            let why = format!(
                "{committed} kbit/s is above `rate-{direction}`, {rate} kbit/s: expected no more than that"
            );
            self.at(here, &format!("committed-rate-{direction}"), why);
        }
    }

    /// One worker can send what an aggregate may get.
    fn aggregates(&mut self, here: &Path, plane: &UserPlane) {
        let most = plane.worker_rate;
        for (port, settings) in &plane.ports {
            for (segment, settings) in &settings.segments {
                let here = here.join("ports").join(port);
                let here = here.join("segments").join(segment);
                for (leaf, rate) in [
                    ("egress-rate", settings.egress_rate),
                    ("vlan-egress-rate", settings.vlan_egress_rate),
                ] {
                    if let Some(rate) = rate.filter(|rate| *rate > most) {
                        let why = format!(
                            "{rate} kbit/s is above `worker-rate` of the user plane, {most} kbit/s, and one worker sends all of it: \
                                expected no more than that, or a higher `worker-rate` where more was measured"
                        );
                        self.at(&here, leaf, why);
                    }
                }
            }
        }
    }

    /// The largest packet is within a burst, as the policer charges it. Otherwise it would always be above the rate.
    fn bursts(&mut self, here: &Path, policer: &Policer, (largest, whose): &(u16, String)) {
        let charged = policy::Overhead::from(policer.overhead).charged((*largest).into());
        let bursts = [
            ("committed-burst", policer.committed_burst),
            ("peak-burst", policer.peak_burst),
            ("excess-burst", policer.excess_burst),
        ];
        for (leaf, burst) in bursts {
            if let Some(burst) = burst.filter(|burst| *burst < charged) {
                let why = format!(
                    "{burst} octets are less than a packet of {largest} ({whose}) is charged, which would never be within the burst: \
                        expected at least {charged}"
                );
                self.at(here, leaf, why);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check;

    fn read(text: &str) -> Configuration {
        let text = format!("network-instances: {{default: {{}}}}\n{text}");
        let checked = check::read(&text).expect("it can be used");
        (*checked.configuration).clone()
    }

    fn found(text: &str) -> Vec<String> {
        let faults = new_contradictions(&Configuration::default(), &read(text));
        faults.iter().map(Fault::to_string).collect()
    }

    #[test]
    fn a_committed_rate_is_no_more_than_the_rate() {
        let profile = |text: &str| found(&format!("subscriber-profiles: {{home: {{{text}}}}}\n"));
        assert_eq!(
            profile("rate-down: 1000, committed-rate-down: 1001"),
            [
                "subscriber-profiles home committed-rate-down: 1001 kbit/s is above `rate-down`, 1000 kbit/s: expected no more than that"
            ]
        );
        assert_eq!(profile("rate-up: 9, committed-rate-up: 10").len(), 1);
        for right in [
            "rate-down: 1000, committed-rate-down: 1000",
            "committed-rate-down: 1000",
            "rate-up: 1000, committed-rate-down: 1001",
        ] {
            assert_eq!(profile(right), [""; 0], "{right}");
        }
        let users = "users: {alice: {password: secret, rate-up: 5, committed-rate-up: 6}}\n";
        assert_eq!(found(users).len(), 1);
    }

    #[test]
    fn the_largest_packet_is_within_every_burst() {
        let policer = |overhead: &str, burst: u32| {
            found(&format!(
                "access-profiles: {{small: {{}}, large: {{max-mru: 9000}}}}
policers: {{video: {{algorithm: single-rate, committed-rate: 1000, committed-burst: {burst}, overhead: {overhead}}}}}
"
            ))
        };
        assert_eq!(
            policer("ip", 8_999),
            [
                "policers video committed-burst: 8999 octets are less than a packet of 9000 (`max-mru` of access profile `large`) is \
                charged, which would never be within the burst: expected at least 9000"
            ]
        );
        assert_eq!(policer("ip", 9_000), [""; 0]);
        assert_eq!(policer("ethernet", 9_053).len(), 1);
        assert_eq!(policer("ethernet", 9_054), [""; 0]);
    }

    #[test]
    fn an_aggregate_is_no_more_than_one_worker_sends() {
        let rates = |plane: &str, segment: &str| {
            found(&format!(
                "user-planes:
  up1:
    address: 127.0.0.1
    management: /run/up1.sock
    {plane}
    ports: {{access0: {{role: access, device: net_null0, segments: {{olt1: {{s-vlans: 100, {segment}}}}}}}}}
"
            ))
        };
        assert_eq!(
            rates("", "egress-rate: 25000001"),
            [
                "user-planes up1 ports access0 segments olt1 egress-rate: 25000001 kbit/s is above `worker-rate` of the user plane, \
                25000000 kbit/s, and one worker sends all of it: expected no more than that, or a higher `worker-rate` where more was measured"
            ]
        );
        assert_eq!(rates("", "egress-rate: 25000000"), [""; 0]);
        assert_eq!(
            rates("worker-rate: 90000000", "egress-rate: 40000000"),
            [""; 0]
        );
        assert_eq!(rates("worker-rate: 9", "vlan-egress-rate: 10").len(), 1);
    }

    #[test]
    fn what_was_there_before_is_no_reason_to_refuse_a_change() {
        let text = "subscriber-profiles: {home: {rate-up: 9, committed-rate-up: 10}}\n";
        let (before, changed) = (read(text), read(&text.replace("10", "11")));
        assert_eq!(new_contradictions(&before, &before), []);
        assert_eq!(new_contradictions(&before, &changed).len(), 1);
    }
}
