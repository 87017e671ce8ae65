//! Cases of the settings of limits, the history, network instances, user planes and access segments.

use super::super::Case;
use super::super::probes::*;
use super::{RADIUS, beside, case};

const EAST: &[&str] = &["set user-planes up1 ports access0 subscriber-group east"];

pub(super) fn cases() -> Vec<Case> {
    vec![
        case("limits sessions", ["1", "2"], ["1", "2"], come_in),
        case("limits half-open", ["1", "2"], ["1", "2"], half_open),
        case("history keep", ["7", "30"], ["604800", "2592000"], kept),
        case("history size", ["64", "32"], ["67108864", "33554432"], kept),
        beside(
            RADIUS,
            case("limits accounting-records", ["1", "2"], ["1", "2"], owed),
        ),
        case(
            "network-instances default gateway",
            ["100.64.0.9", "100.64.0.8"],
            ["", ""],
            gateway,
        ),
        case(
            "user-planes up1 address",
            ["192.0.2.3", "192.0.2.4"],
            ["192.0.2.3", "192.0.2.4"],
            plane,
        ),
        case(
            "user-planes up1 admin-state",
            ["shutting-down", "unlocked"],
            ["0", "1"],
            comes_in,
        ),
        case("user-planes up1 end-sessions", ["1", "2"], ["2", "1"], left),
        beside(
            &["delete user-planes up1 ports access0 segments"],
            case(
                "user-planes up1 ports access0 role",
                ["core", "access"],
                ["0", "1"],
                ports,
            ),
        ),
        case(
            "user-planes up1 ports access0 segments all s-vlans",
            ["200", "100-199"],
            ["0", "1"],
            comes_in,
        ),
        case(
            "user-planes up1 ports access0 segments all access-profile",
            ["other", "third"],
            ["mtu=1300", "mtu=1200"],
            has,
        ),
        case(
            "user-planes up1 ports access0 subscriber-group",
            ["east", "west"],
            ["", ""],
            gets,
        ),
        beside(
            EAST,
            case(
                "subscriber-groups east virtual-mac",
                ["02:00:00:00:00:11", "02:00:00:00:00:12"],
                ["00:11", "00:12"],
                gets,
            ),
        ),
    ]
}
