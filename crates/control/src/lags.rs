//! Alarms `lag-member-unused` and `lag-down`: ports with several devices of which some carry nothing, as the user planes report them.

use crate::alarms::{Condition, Fault};
use northbound::{LagMember, LagMemberState, units};

/// A condition for each member that is not used, or one for a port of which no member is.
pub(crate) fn unused(members: &[LagMember]) -> Vec<Condition> {
    let ports = members.chunk_by(|a, b| (&a.user_plane, &a.port) == (&b.user_plane, &b.port));
    let conditions = ports.flat_map(|members| match members.iter().any(is_used) {
        true => members
            .iter()
            .filter(|member| !is_used(member))
            .map(one)
            .collect(),
        false => vec![down(members)],
    });
    conditions.collect()
}

fn is_used(member: &LagMember) -> bool {
    member.state() == LagMemberState::Used
}

fn one(member: &LagMember) -> Condition {
    let LagMember {
        user_plane,
        port,
        device,
        ..
    } = member;
    Condition {
        fault: Fault::LagMemberUnused,
        resource: format!("{user_plane}/{port} {device}"),
        text: format!(
            "member `{device}` of {user_plane}/{port} carries nothing: {}. Its subscribers use the other members",
            why(member)
        ),
    }
}

fn down(members: &[LagMember]) -> Condition {
    let LagMember {
        user_plane, port, ..
    } = &members[0];
    let each = members
        .iter()
        .map(|member| format!("`{}`: {}", member.device, why(member)));
    Condition {
        fault: Fault::LagDown,
        resource: format!("{user_plane}/{port}"),
        text: format!(
            "{user_plane}/{port} carries nothing, as no member of its LAG does. {}",
            each.collect::<Vec<_>>().join("; ")
        ),
    }
}

/// Why a member is not used, and where to look.
fn why(member: &LagMember) -> String {
    match member.state() {
        LagMemberState::LinkDown => {
            "its link is down: check cable, optics and the port at the other end".into()
        }
        LagMemberState::Silent => {
            "its link is up, and nobody speaks LACP there: check that the port at the other end belongs to a LAG with LACP".into()
        }
        LagMemberState::Looped => "it leads back to this port: check the cabling".into(),
        LagMemberState::OtherPartner => format!(
            "it leads to another system or group ({}) than the other members do: check the cabling, and the LAG at the other end",
            member.partner
        ),
        LagMemberState::OtherSpeed => format!(
            "the speed of its link ({}) is not that of the other members: check what both ends negotiate, and optics and cable",
            speed(member)
        ),
        LagMemberState::Waiting => format!(
            "{} does not agree: check the LAG at the other end",
            member.partner
        ),
        LagMemberState::TooFew => {
            "fewer members are usable than `minimum-links` says".into()
        }
        LagMemberState::Used | LagMemberState::Unspecified => {
            "the reason is not known: see `sluice show lag-members`".into()
        }
    }
}

/// The speed of a member's link in words.
fn speed(member: &LagMember) -> String {
    match member.speed_bits_per_second {
        Some(speed) => units::bits_per_second(speed as f64 / 8.0),
        None => "not known".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(port: &str, device: &str, state: LagMemberState) -> LagMember {
        LagMember {
            user_plane: "up1".into(),
            port: port.into(),
            device: device.into(),
            state: state.into(),
            partner: "02:00:00:00:00:09".into(),
            ..LagMember::default()
        }
    }

    #[test]
    fn each_member_that_is_not_used_is_told_or_the_port_if_none_is() {
        let members = [
            member("access0", "a", LagMemberState::Used),
            member("access0", "b", LagMemberState::OtherPartner),
            member("access0", "c", LagMemberState::LinkDown),
            member("core0", "d", LagMemberState::Silent),
            member("core0", "e", LagMemberState::TooFew),
            member("core1", "f", LagMemberState::Used),
            LagMember {
                speed_bits_per_second: Some(1_000_000_000),
                ..member("core1", "g", LagMemberState::OtherSpeed)
            },
        ];
        let told = unused(&members);
        let named: Vec<(Fault, &str)> = told
            .iter()
            .map(|c| (c.fault, c.resource.as_str()))
            .collect();
        assert_eq!(
            named,
            [
                (Fault::LagMemberUnused, "up1/access0 b"),
                (Fault::LagMemberUnused, "up1/access0 c"),
                (Fault::LagDown, "up1/core0"),
                (Fault::LagMemberUnused, "up1/core1 g"),
            ]
        );
        assert!(told[3].text.contains("1.0 Gbit/s"), "{}", told[3].text);
        assert!(
            told[0].text.contains("02:00:00:00:00:09"),
            "{}",
            told[0].text
        );
        assert!(
            told[2].text.contains("`d`: its link is up")
                && told[2].text.contains("`minimum-links`")
        );
        assert_eq!(unused(&[]), []);
    }
}
