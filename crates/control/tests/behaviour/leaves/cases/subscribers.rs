//! Cases of the settings of subscriber profiles and pools.

use super::super::Case;
use super::super::probes::*;
use super::{POLICIES, beside, case};

pub(super) fn cases() -> Vec<Case> {
    vec![
        case(
            "subscriber-profiles home network-instance",
            ["red", "blue"],
            ["10.1.1.0", "10.2.1.0"],
            gets,
        ),
        case(
            "subscriber-profiles home address-families",
            ["ipv4-only", "ipv6-only"],
            ["ipv6=None", "ipv4=None"],
            gets,
        ),
        case(
            "subscriber-profiles home ipv4-pools",
            ["more", "most"],
            ["100.80.0.0", "100.81.0.0"],
            gets,
        ),
        case(
            "subscriber-profiles home ipv6-pools",
            ["more", "most"],
            ["db8:180::", "db8:181::"],
            gets,
        ),
        case(
            "subscriber-profiles home delegated-pools",
            ["lans", "sites"],
            [
                "Delegated 2001:db8:4000::/56",
                "Delegated 2001:db8:4001::/60",
            ],
            holds,
        ),
        case(
            "subscriber-profiles home ipv6-address-pools",
            ["routers", "uplinks"],
            ["Host 2001:db8:5000::", "Host 2001:db8:5001::"],
            holds,
        ),
        case(
            "subscriber-profiles home sticky-addresses",
            ["true", "false"],
            ["the same", "another"],
            returns,
        ),
        case(
            "subscriber-profiles home dns",
            ["192.0.2.53", "192.0.2.54"],
            ["192.0.2.53", "192.0.2.54"],
            gets,
        ),
        case(
            "subscriber-profiles home mtu",
            ["1400", "1380"],
            ["mtu=1400", "mtu=1380"],
            has,
        ),
        case(
            "subscriber-profiles home vlan-priority",
            ["3", "6"],
            ["priority=3", "priority=6"],
            has,
        ),
        case(
            "subscriber-profiles home idle-timeout",
            ["300", "600"],
            ["idle=Some(300s)", "idle=Some(600s)"],
            has,
        ),
        case(
            "subscriber-profiles home idle-both-ways",
            ["true", "false"],
            ["both=true", "both=false"],
            has,
        ),
        case(
            "subscriber-profiles home rate-up",
            ["10000", "20000"],
            ["up=Some(Rate(10000))", "up=Some(Rate(20000))"],
            has,
        ),
        case(
            "subscriber-profiles home rate-down",
            ["50000", "90000"],
            ["down=Some(Rate(50000))", "down=Some(Rate(90000))"],
            has,
        ),
        case(
            "subscriber-profiles home line-rate-percent",
            ["50", "75"],
            ["down=Some(Rate(20000))", "down=Some(Rate(30000))"],
            on_a_line,
        ),
        case(
            "subscriber-profiles home committed-rate-up",
            ["5000", "6000"],
            ["committed={Some(Rate(5000))", "committed={Some(Rate(6000))"],
            has,
        ),
        case(
            "subscriber-profiles home committed-rate-down",
            ["7000", "8000"],
            ["Some(Rate(7000))}", "Some(Rate(8000))}"],
            has,
        ),
        case(
            "subscriber-profiles home subscriber-rate-up",
            ["30000", "40000"],
            ["home={Some(Rate(30000))", "home={Some(Rate(40000))"],
            has,
        ),
        case(
            "subscriber-profiles home subscriber-rate-down",
            ["60000", "70000"],
            ["Some(Rate(60000))}", "Some(Rate(70000))}"],
            has,
        ),
        case(
            "subscriber-profiles home priority-source",
            ["dscp", "fixed"],
            ["source=Dscp", "source=Fixed"],
            has,
        ),
        beside(
            POLICIES,
            case(
                "subscriber-profiles home policy-up",
                ["open", "filtered"],
                ["policy_up: Some(\"open\")", "policy_up: Some(\"filtered\")"],
                has,
            ),
        ),
        beside(
            POLICIES,
            case(
                "subscriber-profiles home policy-down",
                ["open", "filtered"],
                [
                    "policy_down: Some(\"open\")",
                    "policy_down: Some(\"filtered\")",
                ],
                has,
            ),
        ),
        case(
            "subscriber-profiles home session-timeout",
            ["30", "60"],
            ["30", "60"],
            lasts,
        ),
        case(
            "ipv4-pools homes network-instance",
            ["red", "default"],
            ["100.80.0.0", "100.64.0.0"],
            gets,
        ),
        case(
            "ipv4-pools homes prefix",
            ["100.70.0.0/24", "100.71.0.0/24"],
            ["100.70.0.0", "100.71.0.0"],
            gets,
        ),
        case(
            "ipv4-pools homes net-length",
            ["26", "28"],
            ["26", "28"],
            nets,
        ),
        case(
            "ipv4-pools homes exclude",
            ["100.64.0.0/29", "100.64.0.1-100.64.0.99"],
            ["100.64.0.8", "100.64.0.100"],
            address,
        ),
        beside(
            &[
                "set ipv4-pools homes prefix 100.64.0.0/28",
                "set ipv4-pools homes net-length 28",
            ],
            case(
                "ipv4-pools homes alarm-threshold",
                ["30", "31"],
                ["pool-almost-exhausted", ""],
                alarms,
            ),
        ),
        case(
            "ipv6-pools homes network-instance",
            ["red", "default"],
            ["db8:180::", "db8:100::"],
            gets,
        ),
        case(
            "ipv6-pools homes prefix",
            ["2001:db8:170::/48", "2001:db8:171::/48"],
            ["db8:170::", "db8:171::"],
            gets,
        ),
        case(
            "ipv6-pools homes net-length",
            ["60", "62"],
            ["60", "62"],
            nets,
        ),
        beside(
            &["set subscriber-profiles home delegated-pools lans"],
            case(
                "ipv6-pools lans prefix-length",
                ["52", "60"],
                [
                    "Delegated 2001:db8:4000::/52",
                    "Delegated 2001:db8:4000::/60",
                ],
                holds,
            ),
        ),
        case(
            "ipv6-pools homes exclude",
            ["2001:db8:100::1", "2001:db8:100::-2001:db8:100:fe::"],
            ["Link 2001:db8:100:1::/64", "Link 2001:db8:100:ff::/64"],
            link,
        ),
        beside(
            &[
                "set ipv6-pools homes prefix 2001:db8:100::/60",
                "set ipv6-pools homes net-length 60",
                "set subscriber-profiles home ipv6-pools homes",
            ],
            case(
                "ipv6-pools homes alarm-threshold",
                ["25", "26"],
                ["pool-almost-exhausted", ""],
                alarms,
            ),
        ),
    ]
}
