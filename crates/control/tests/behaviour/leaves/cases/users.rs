//! Cases of the settings of local users.

use super::super::Case;
use super::super::probes::*;
use super::{POLICIES, beside, case};

pub(super) fn cases() -> Vec<Case> {
    vec![
        case(
            "users home0 password",
            ["wrong", "secret0"],
            ["0", "1"],
            comes_in,
        ),
        beside(
            &[
                "set access-profiles pppoe authentication pap",
                "delete users home0 password",
                "set users home0 password-hash $argon2id$v=19$m=8,t=1,p=1$FGlR94HPfinQU2dzFhSyaQ$5snSihf56S7STeBMShxiTQ15t3LjxRQE4z0sOzVONFQ",
            ],
            case(
                "users home0 password-hash",
                [
                    "$argon2id$v=19$m=8,t=1,p=1$m3fS+3JNDiDoHDd7AqvGMg$a3OO4ycXpTQVL12zqkX+LyhJpfLPOczeUnka138qrA8",
                    "$argon2id$v=19$m=8,t=1,p=1$FGlR94HPfinQU2dzFhSyaQ$5snSihf56S7STeBMShxiTQ15t3LjxRQE4z0sOzVONFQ",
                ],
                ["0", "1"],
                comes_in,
            ),
        ),
        case(
            "users home0 subscriber-profile",
            ["slow", "slower"],
            ["mtu=1300", "mtu=1200"],
            has,
        ),
        case(
            "users home0 ipv4-pools",
            ["more", "most"],
            ["100.80.0.0", "100.81.0.0"],
            gets,
        ),
        case(
            "users home0 ipv6-pools",
            ["more", "most"],
            ["db8:180::", "db8:181::"],
            gets,
        ),
        case(
            "users home0 delegated-pools",
            ["lans", "sites"],
            [
                "Delegated 2001:db8:4000::/56",
                "Delegated 2001:db8:4001::/60",
            ],
            holds,
        ),
        case(
            "users home0 ipv6-address-pools",
            ["routers", "uplinks"],
            ["Host 2001:db8:5000::", "Host 2001:db8:5001::"],
            holds,
        ),
        case(
            "users home0 delegated-prefixes",
            ["2001:db8:9100::/56", "2001:db8:4000:500::/56"],
            [
                "Delegated 2001:db8:9100::/56",
                "Delegated 2001:db8:4000:500::/56",
            ],
            holds,
        ),
        case(
            "users home0 ipv6-address",
            ["2001:db8:9::2", "2001:db8:5000::9"],
            ["Host 2001:db8:9::2", "Host 2001:db8:5000::9"],
            holds,
        ),
        case(
            "users home0 dns",
            ["192.0.2.53", "192.0.2.54"],
            ["192.0.2.53", "192.0.2.54"],
            gets,
        ),
        case(
            "users home0 mtu",
            ["1400", "1380"],
            ["mtu=1400", "mtu=1380"],
            has,
        ),
        case(
            "users home0 vlan-priority",
            ["3", "6"],
            ["priority=3", "priority=6"],
            has,
        ),
        case(
            "users home0 idle-timeout",
            ["300", "600"],
            ["idle=Some(300s)", "idle=Some(600s)"],
            has,
        ),
        case(
            "users home0 idle-both-ways",
            ["true", "false"],
            ["both=true", "both=false"],
            has,
        ),
        case(
            "users home0 rate-up",
            ["10000", "20000"],
            ["up=Some(Rate(10000))", "up=Some(Rate(20000))"],
            has,
        ),
        case(
            "users home0 rate-down",
            ["50000", "90000"],
            ["down=Some(Rate(50000))", "down=Some(Rate(90000))"],
            has,
        ),
        case(
            "users home0 committed-rate-up",
            ["5000", "6000"],
            ["committed={Some(Rate(5000))", "committed={Some(Rate(6000))"],
            has,
        ),
        case(
            "users home0 committed-rate-down",
            ["7000", "8000"],
            ["Some(Rate(7000))}", "Some(Rate(8000))}"],
            has,
        ),
        case(
            "users home0 subscriber-rate-up",
            ["30000", "40000"],
            ["home={Some(Rate(30000))", "home={Some(Rate(40000))"],
            has,
        ),
        case(
            "users home0 subscriber-rate-down",
            ["60000", "70000"],
            ["Some(Rate(60000))}", "Some(Rate(70000))}"],
            has,
        ),
        beside(
            POLICIES,
            case(
                "users home0 policy-up",
                ["open", "filtered"],
                ["policy_up: Some(\"open\")", "policy_up: Some(\"filtered\")"],
                has,
            ),
        ),
        beside(
            POLICIES,
            case(
                "users home0 policy-down",
                ["open", "filtered"],
                [
                    "policy_down: Some(\"open\")",
                    "policy_down: Some(\"filtered\")",
                ],
                has,
            ),
        ),
        case(
            "users home0 session-timeout",
            ["30", "60"],
            ["30", "60"],
            lasts,
        ),
        beside(
            &[
                "set access-profiles pppoe server-group radius",
                "set access-profiles pppoe fallback local-users",
            ],
            case(
                "users home0 interim-interval",
                ["60", "100"],
                ["always", "often"],
                interims_by_fallback,
            ),
        ),
        case(
            "users home0 routes",
            ["203.0.113.0/28", "2001:db8:77::/48"],
            ["203.0.113.0/28", "2001:db8:77::/48"],
            routes,
        ),
        case(
            "users home0 ipv4-address",
            ["203.0.113.7", "203.0.114.7"],
            ["203.0.113.0", "203.0.114.0"],
            gets,
        ),
        case(
            "users home0 ipv6-prefix",
            ["2001:db8:7::/64", "2001:db8:8::/64"],
            ["db8:7::", "db8:8::"],
            gets,
        ),
    ]
}
