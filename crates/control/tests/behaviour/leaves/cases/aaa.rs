//! Cases of the settings of RADIUS: servers, groups, changes of authorization and mappings.

use super::super::Case;
use super::super::probes::*;
use super::{RADIUS, beside, case};

const COA: &[&str] = &[
    "set aaa dynamic-authorization clients one address 192.0.2.9",
    "set aaa dynamic-authorization clients one secret-key first-key",
];
const MAPPED: &[&str] = &[
    "set access-profiles pppoe server-group radius",
    "set aaa mappings rate attribute Huawei-Input-Peak-Rate",
    "set aaa mappings rate setting vlan-priority",
];
const PAIRED: &[&str] = &[
    "set access-profiles pppoe server-group radius",
    "set aaa mappings rate attribute Huawei-AVpair",
    "set aaa mappings rate setting rate-up",
    "set aaa mappings rate unit kbit/s",
];
const TIMED: &[&str] = &[
    "set access-profiles pppoe server-group radius",
    "set aaa mappings rate attribute Huawei-Input-Peak-Rate",
    "set aaa mappings rate setting idle-timeout",
];
const TLS: &[&str] = &[
    "set access-profiles pppoe server-group radius",
    "set aaa servers one transport tls",
    "set aaa servers one tls authority /ca.pem",
    "set aaa servers one tls certificate /own.pem",
    "set aaa servers one tls key /own.key",
    "set aaa servers one tls server-name radius.example",
];

pub(super) fn cases() -> Vec<Case> {
    vec![
        beside(
            COA,
            case(
                "aaa dynamic-authorization clients one address",
                ["192.0.2.10", "192.0.2.11"],
                ["192.0.2.10", "192.0.2.11"],
                client,
            ),
        ),
        beside(
            COA,
            case(
                "aaa dynamic-authorization clients one secret-key",
                ["second-key", "third-key"],
                ["second-key", "third-key"],
                client_secret,
            ),
        ),
        beside(
            COA,
            case(
                "aaa dynamic-authorization clients one require-message-authenticator",
                ["true", "false"],
                ["without: false", "without: true"],
                unsigned_order,
            ),
        ),
        beside(
            COA,
            case(
                "aaa dynamic-authorization port",
                ["1700", "3798"],
                ["1700", "3798"],
                dynamic_port,
            ),
        ),
        beside(
            COA,
            case(
                "aaa dynamic-authorization time-window",
                ["600", "10"],
                ["5 100 400", "5"],
                timely_orders,
            ),
        ),
        beside(
            COA,
            case(
                "aaa dynamic-authorization require-event-timestamp",
                ["true", "false"],
                ["without: false", "without: true"],
                timeless_order,
            ),
        ),
        beside(
            RADIUS,
            case(
                "aaa servers one address",
                ["192.0.2.19", "192.0.2.20"],
                ["192.0.2.19", "192.0.2.20"],
                asks,
            ),
        ),
        beside(
            RADIUS,
            case(
                "aaa servers one secret-key",
                ["first", "second"],
                ["first", "second"],
                secret,
            ),
        ),
        beside(
            RADIUS,
            case(
                "aaa servers one transport",
                ["tcp", "udp"],
                ["1 over tcp, Some(None)", "1 over udp, None"],
                connects,
            ),
        ),
        beside(
            TLS,
            case(
                "aaa servers one tls authority",
                ["/a.pem", "/b.pem"],
                ["/a.pem", "/b.pem"],
                connects,
            ),
        ),
        beside(
            TLS,
            case(
                "aaa servers one tls certificate",
                ["/c.pem", "/d.pem"],
                ["/c.pem", "/d.pem"],
                connects,
            ),
        ),
        beside(
            TLS,
            case(
                "aaa servers one tls key",
                ["/e.pem", "/f.pem"],
                ["/e.pem", "/f.pem"],
                connects,
            ),
        ),
        beside(
            TLS,
            case(
                "aaa servers one tls server-name",
                ["one.example", "two.example"],
                ["one.example", "two.example"],
                connects,
            ),
        ),
        beside(
            RADIUS,
            case(
                "aaa servers one auth-port",
                ["1645", "1646"],
                [":1645", ":1646"],
                asks,
            ),
        ),
        beside(
            RADIUS,
            case(
                "aaa servers one acct-port",
                ["1700", "1701"],
                [":1700", ":1701"],
                asks,
            ),
        ),
        beside(
            RADIUS,
            case(
                "aaa servers one timeout",
                ["6", "12"],
                ["after 6 ", "after 12 "],
                unanswered,
            ),
        ),
        beside(
            RADIUS,
            case(
                "aaa servers one retransmit-attempts",
                ["0", "4"],
                ["1 times", "5 times"],
                unanswered,
            ),
        ),
        beside(
            &[
                "set access-profiles pppoe server-group radius",
                "set aaa server-groups radius servers two",
            ],
            case(
                "aaa servers one dead-time",
                ["5", "20"],
                ["[true, true]", "[false, true]"],
                passed_over,
            ),
        ),
        beside(
            RADIUS,
            case(
                "aaa servers one require-message-authenticator",
                ["false", "true"],
                ["1", "0"],
                unsigned,
            ),
        ),
        beside(
            RADIUS,
            case(
                "aaa servers one status-server",
                ["true", "false"],
                ["6 Status-Server", "0 Status-Server"],
                probed,
            ),
        ),
        beside(
            &[
                "set access-profiles pppoe server-group radius",
                "set aaa servers one status-server true",
            ],
            case(
                "aaa servers one status-interval",
                ["20", "50"],
                ["3 Status-Server", "1 Status-Server"],
                probed,
            ),
        ),
        beside(
            RADIUS,
            case(
                "aaa server-groups radius servers",
                ["two", "three"],
                ["192.0.2.10", "192.0.2.11"],
                all_asked,
            ),
        ),
        beside(
            &[
                "set access-profiles pppoe server-group radius",
                "set aaa server-groups radius servers two",
            ],
            case(
                "aaa server-groups radius selection",
                ["balanced", "ordered"],
                ["192.0.2.10", "{\"192.0.2.9\"}"],
                all_that_answer,
            ),
        ),
        beside(
            RADIUS,
            case(
                "aaa server-groups radius source-ipv4",
                ["192.0.2.77", "192.0.2.78"],
                [
                    "from Some(192.0.2.77), NAS 192.0.2.77",
                    "from Some(192.0.2.78), NAS 192.0.2.78",
                ],
                comes_from,
            ),
        ),
        beside(
            &[
                "set access-profiles pppoe server-group radius",
                "set aaa servers one address 2001:db8::9",
            ],
            case(
                "aaa server-groups radius source-ipv6",
                ["2001:db8::77", "2001:db8::78"],
                ["from Some(2001:db8::77)", "from Some(2001:db8::78)"],
                comes_from,
            ),
        ),
        beside(
            RADIUS,
            case(
                "aaa server-groups radius vrf",
                ["mgmt", "oam"],
                ["mgmt", "oam"],
                comes_from,
            ),
        ),
        beside(
            RADIUS,
            case(
                "aaa server-groups radius nas-identifier",
                ["alpha", "beta"],
                ["alpha", "beta"],
                identifier,
            ),
        ),
        beside(
            RADIUS,
            case(
                "aaa server-groups radius interim-interval",
                ["60", "100"],
                ["3", "2"],
                interims,
            ),
        ),
        beside(
            &[
                "set access-profiles pppoe server-group radius",
                "set aaa server-groups radius interim-interval 60",
            ],
            case(
                "aaa server-groups radius interim-jitter",
                ["0", "50"],
                ["regular", "irregular by more than a tenth"],
                interim_times,
            ),
        ),
        beside(
            RADIUS,
            case(
                "aaa server-groups radius accounting-on",
                ["false", "true"],
                ["not announced", "Accounting-On"],
                announced,
            ),
        ),
        beside(
            &[
                "set access-profiles pppoe server-group radius",
                "set aaa server-groups radius interim-interval 60",
            ],
            case(
                "aaa server-groups radius family-counters",
                ["erx", "redback"],
                [
                    "6 of vendor 4874, IPv6 7 14",
                    "12 of vendor 2352, IPv6 7 14",
                ],
                families,
            ),
        ),
        beside(
            RADIUS,
            case(
                "aaa server-groups radius not-enforced",
                ["reject", "accept"],
                ["up=None", "up=Some(Rate(20000))"],
                mapped,
            ),
        ),
        beside(
            RADIUS,
            case(
                "aaa server-groups radius templates user-name",
                ["{user}@one.example", "{user}@{service}two"],
                ["@one.example", "@two"],
                names,
            ),
        ),
        beside(
            RADIUS,
            case(
                "aaa server-groups radius templates nas-port-id",
                ["{port}:{svlan}.{cvlan}", "{node}/{user-plane}"],
                ["access0:100.", "cp1/up1"],
                names,
            ),
        ),
        beside(
            RADIUS,
            case(
                "aaa server-groups radius templates calling-station-id",
                ["{mac:aabb.ccdd.eeff}", "{mac:AA-BB-CC-DD-EE-FF}"],
                ["0200.0000.", "02-00-00-00-00-"],
                names,
            ),
        ),
        beside(
            RADIUS,
            case(
                "aaa server-groups radius templates called-station-id",
                ["{realm}here", "{port}"],
                [" here", " access0"],
                names,
            ),
        ),
        beside(
            MAPPED,
            case(
                "aaa mappings rate attribute",
                ["Huawei-Output-Peak-Rate", "Huawei-Reduced-CIR"],
                ["priority=2", "priority=5"],
                mapped,
            ),
        ),
        beside(
            PAIRED,
            case(
                "aaa mappings rate key",
                ["slow", "fast"],
                ["up=Some(Rate(9000))", "up=Some(Rate(90000))"],
                mapped,
            ),
        ),
        beside(
            MAPPED,
            case(
                "aaa mappings rate setting",
                ["mtu", "none"],
                ["mtu=1300", "mtu=1492"],
                mapped,
            ),
        ),
        beside(
            TIMED,
            case(
                "aaa mappings rate unit",
                ["minutes", "seconds"],
                ["idle=Some(78000s)", "idle=Some(1300s)"],
                mapped,
            ),
        ),
    ]
}
