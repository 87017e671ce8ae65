//! What the policies of a session deny, in sentences.

use crate::{
    Denial, DenialReason, DirectionPolicy, FILTER_RULES, QueueState, SessionPolicy,
    TrafficPolicyState,
};

impl SessionPolicy {
    /// The directions that have a policy or a rate, with their names.
    pub fn directions(
        &self,
    ) -> impl Iterator<Item = (&'static str, &'static str, &DirectionPolicy)> {
        let up = self.up.as_ref().map(|up| ("up", "from", up));
        let down = self.down.as_ref().map(|down| ("down", "to", down));
        up.into_iter().chain(down)
    }
}

impl QueueState {
    /// Name of its class.
    pub fn name(&self) -> &str {
        match &*self.class {
            "" => "of no class",
            class => class,
        }
    }
}

/// What the policies drop, in sentences. Nothing, if they drop nothing.
pub(super) fn sentences(policy: &SessionPolicy) -> Vec<String> {
    let mut said = Vec::new();
    for (_, way, did) in policy.directions() {
        let packets = format!("packets {way} the subscriber");
        if did.drops_all {
            let why = why_missing(did);
            said.push(format!("All {packets} are dropped (policy-missing): {why}"));
        } else {
            said.extend(not_in_force(did));
        }
        if did.denied_packets > 0 {
            let total = did.denied_packets;
            said.push(match last_one(did) {
                Some(last) => {
                    format!(
                        "Packets {way} the subscriber are denied: {total} so far, the last one {last}."
                    )
                }
                None => format!(
                    "{total} packets {way} the subscriber were denied before the policy was changed, and none since then."
                ),
            });
        }
        if did.exceeded_packets > 0 {
            said.push(format!(
                "{} {packets} were above the rate and were dropped.",
                did.exceeded_packets
            ));
        }
        let exceeded = did
            .classes
            .iter()
            .filter(|class| class.exceeded_packets > 0);
        said.extend(exceeded.map(|class| {
            format!(
                "{} {packets} in class {} were above the rate of the class and were dropped.",
                class.exceeded_packets, class.name
            )
        }));
        for queue in &did.queues {
            let name = queue.name();
            if queue.full_drops > 0 {
                said.push(format!(
                    "{} {packets} found no room in queue {name} and were dropped (queue-full or …-queues-full).",
                    queue.full_drops
                ));
            }
            if queue.delay_drops > 0 {
                said.push(format!(
                    "{} {packets} were dropped since queue {name} was long for some time (queue-delay): more is sent than the rate lets pass.",
                    queue.delay_drops
                ));
            }
        }
        if did.subscriber_exceeded_packets > 0 {
            said.push(format!(
                "{} {packets} were above the rate of all its sessions together and were dropped.",
                did.subscriber_exceeded_packets
            ));
        }
    }
    said
}

/// What denied the last packet; `None` if it was not the present policy.
fn last_one(did: &DirectionPolicy) -> Option<String> {
    let denial = did.last_denial.as_ref()?;
    let Denial {
        acl, rule, text, ..
    } = denial;
    Some(match denial.reason() {
        DenialReason::Rule if acl.is_empty() => {
            format!("by rule {rule} of its {FILTER_RULES} from RADIUS (`{text}`)")
        }
        DenialReason::Rule => format!("by rule {rule} of ACL {acl} (`{text}`)"),
        DenialReason::Unmatched if did.name == FILTER_RULES => format!(
            "because no rule of its {FILTER_RULES} from RADIUS matches it, and the last rule permits (RFC 6733 §4.3.1)"
        ),
        DenialReason::Unmatched => format!(
            "because no rule of policy {} matches it (`unmatched`)",
            did.name
        ),
        DenialReason::Replaced | DenialReason::Unspecified => return None,
    })
}

/// Why the workers have no form of a policy, and what to do.
fn why_missing(did: &DirectionPolicy) -> String {
    let name = &did.name;
    match did.state() {
        TrafficPolicyState::Missing => format!(
            "policy {name} is not defined. Define it under `policies`, or change who names it (profile, user or RADIUS)."
        ),
        TrafficPolicyState::TooLarge => {
            format!("policy {name} cannot be compiled ({}).", did.trouble)
        }
        _ => format!(
            "policy {name} is being compiled. That takes seconds at most; `sluice show policies` says when it is in force."
        ),
    }
}

/// What is to be said of a policy whose earlier version is in force.
fn not_in_force(did: &DirectionPolicy) -> Option<String> {
    let name = &did.name;
    match did.state() {
        TrafficPolicyState::TooLarge => Some(format!(
            "An earlier version of policy {name} is in force, because the present one cannot be compiled ({}).",
            did.trouble
        )),
        TrafficPolicyState::Compiling => Some(format!(
            "An earlier version of policy {name} is in force until the present one is compiled."
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ClassCounts;

    fn denied(packets: u64, reason: DenialReason) -> DirectionPolicy {
        DirectionPolicy {
            name: "home-up".into(),
            state: TrafficPolicyState::InForce.into(),
            denied_packets: packets,
            denied_octets: 64 * packets,
            last_denial: Some(Denial {
                reason: reason.into(),
                acl: "base".into(),
                rule: 20,
                text: "deny tcp from any to any 25".into(),
            }),
            ..DirectionPolicy::default()
        }
    }

    fn without(state: TrafficPolicyState) -> DirectionPolicy {
        DirectionPolicy {
            name: "home-down".into(),
            state: state.into(),
            drops_all: true,
            trouble: "8193 rules, 8192 are permitted: give it fewer or simpler rules".into(),
            ..DirectionPolicy::default()
        }
    }

    fn said(up: Option<DirectionPolicy>, down: Option<DirectionPolicy>) -> String {
        let policy = SessionPolicy {
            up,
            down,
            ..SessionPolicy::default()
        };
        sentences(&policy).join("\n")
    }

    #[test]
    fn the_rule_that_denies_is_named() {
        let rule = said(Some(denied(133, DenialReason::Rule)), None);
        let expected = "Packets from the subscriber are denied: 133 so far, the last one by rule 20 of ACL base \
                        (`deny tcp from any to any 25`).";
        assert_eq!(rule, expected);
        let unmatched = said(None, Some(denied(1, DenialReason::Unmatched)));
        let expected = "Packets to the subscriber are denied: 1 so far, the last one because no rule of policy home-up matches it \
                        (`unmatched`).";
        assert_eq!(unmatched, expected);
        let own = |reason| {
            let mut did = denied(3, reason);
            did.name = FILTER_RULES.into();
            did.last_denial.as_mut().unwrap().acl.clear();
            said(Some(did), None)
        };
        let expected = "Packets from the subscriber are denied: 3 so far, the last one by rule 20 of its NAS-Filter-Rule from RADIUS \
                        (`deny tcp from any to any 25`).";
        assert_eq!(own(DenialReason::Rule), expected);
        let expected = "Packets from the subscriber are denied: 3 so far, the last one because no rule of its NAS-Filter-Rule from \
                        RADIUS matches it, and the last rule permits (RFC 6733 §4.3.1).";
        assert_eq!(own(DenialReason::Unmatched), expected);
        let before = said(Some(denied(2, DenialReason::Replaced)), None);
        let expected = "2 packets from the subscriber were denied before the policy was changed, and none since then.";
        assert_eq!(before, expected);
        let nothing = DirectionPolicy {
            name: "home-up".into(),
            state: TrafficPolicyState::InForce.into(),
            ..DirectionPolicy::default()
        };
        assert_eq!(said(Some(nothing.clone()), Some(nothing)), "");
    }

    #[test]
    fn a_policy_that_is_not_there_is_named_with_what_to_do() {
        let missing = said(None, Some(without(TrafficPolicyState::Missing)));
        let expected = "All packets to the subscriber are dropped (policy-missing): policy home-down is not defined. Define it under \
                        `policies`, or change who names it (profile, user or RADIUS).";
        assert_eq!(missing, expected);
        let compiling = said(None, Some(without(TrafficPolicyState::Compiling)));
        assert!(
            compiling.contains("policy home-down is being compiled."),
            "{compiling}"
        );
        let large = said(None, Some(without(TrafficPolicyState::TooLarge)));
        assert!(
            large.contains("cannot be compiled (8193 rules, 8192 are permitted"),
            "{large}"
        );
        let former = DirectionPolicy {
            drops_all: false,
            ..without(TrafficPolicyState::TooLarge)
        };
        let former = said(Some(former), None);
        assert!(
            former.starts_with("An earlier version of policy home-down is in force"),
            "{former}"
        );
    }

    #[test]
    fn what_was_above_rates_and_in_queues_is_said_with_its_class() {
        let down = DirectionPolicy {
            exceeded_packets: 7,
            yellow_packets: 30,
            subscriber_exceeded_packets: 9,
            classes: vec![
                ClassCounts {
                    name: "video".into(),
                    ..ClassCounts::default()
                },
                ClassCounts {
                    name: "voice".into(),
                    passed_packets: 50,
                    yellow_packets: 20,
                    exceeded_packets: 3,
                },
            ],
            queues: vec![
                QueueState {
                    waiting_octets: 3_000,
                    most_octets: 6_000,
                    packets: 70,
                    marks: 2,
                    waits: vec![0, 3, 2, 0, 0, 0, 0, 1],
                    ..QueueState::default()
                },
                QueueState {
                    class: "video".into(),
                    full_drops: 4,
                    delay_drops: 5,
                    ..QueueState::default()
                },
            ],
            ..DirectionPolicy::default()
        };
        let sentences = said(None, Some(down));
        assert!(
            sentences.contains("3 packets to the subscriber in class voice were above the rate of the class and were dropped.")
                && sentences.contains("4 packets to the subscriber found no room in queue video and were dropped (queue-full or …-queues-full).")
                && sentences.contains("5 packets to the subscriber were dropped since queue video was long for some time (queue-delay)")
                && sentences.contains("9 packets to the subscriber were above the rate of all its sessions together and were dropped."),
            "{sentences}"
        );
    }
}
