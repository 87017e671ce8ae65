//! The cases: settings, two values of each, and what is seen with them.

use super::Case;
use super::probes::*;
use crate::world::World;

const fn case(
    place: &'static str,
    values: [&'static str; 2],
    seen: [&'static str; 2],
    probe: fn(&mut World) -> String,
) -> Case {
    Case {
        place,
        values,
        seen,
        probe,
        beside: &[],
    }
}

const fn beside(lines: &'static [&'static str], case: Case) -> Case {
    Case {
        beside: lines,
        ..case
    }
}

const RADIUS: &[&str] = &["set access-profiles pppoe server-group radius"];
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
        case(
            "access-profiles pppoe ac-name",
            ["alpha", "beta"],
            ["alpha", "beta"],
            offer,
        ),
        case(
            "access-profiles pppoe service-names",
            ["gamma", "delta"],
            ["gamma", "delta"],
            offer,
        ),
        case(
            "access-profiles pppoe service-profiles",
            ["slow", "slower"],
            ["slow: 1300 slower: 1492", "slow: 1492 slower: 1200"],
            chooses,
        ),
        case(
            "access-profiles pppoe pado-delay",
            ["200", "1000"],
            ["[200, 200, 200]", "[1000, 1000, 1000]"],
            offered_after,
        ),
        beside(
            &["set limits sessions 4"],
            case(
                "access-profiles pppoe pado-delay-full",
                ["1000", "4000"],
                ["[0, 250, 500]", "[0, 1000, 2000]"],
                offered_after,
            ),
        ),
        case(
            "access-profiles pppoe max-mru",
            ["1400", "1300"],
            ["[1, 4, 5, 120", "[1, 4, 5, 20"],
            wants,
        ),
        case(
            "access-profiles pppoe authentication",
            ["pap", "chap"],
            ["192, 35", "194, 35"],
            authentication,
        ),
        case(
            "access-profiles pppoe echo-interval",
            ["5", "1"],
            ["often", "always"],
            echoes,
        ),
        case(
            "access-profiles pppoe echo-failures",
            ["1", "9"],
            ["soon", "late"],
            gives_up,
        ),
        case(
            "access-profiles pppoe restart-interval",
            ["1", "9"],
            ["every 1 s", "every 9 s"],
            connects_in_silence,
        ),
        case(
            "access-profiles pppoe max-configure",
            ["2", "4"],
            ["2 requests", "4 requests"],
            connects_in_silence,
        ),
        beside(
            &["set access-profiles pppoe setup-timeout 5"],
            case(
                "access-profiles pppoe max-terminate",
                ["1", "4"],
                ["1 goodbyes", "4 goodbyes"],
                connects_in_silence,
            ),
        ),
        case(
            "access-profiles pppoe max-failure",
            ["1", "3"],
            ["1 naks", "3 naks"],
            insists,
        ),
        case(
            "access-profiles pppoe setup-timeout",
            ["5", "10"],
            ["goodbye after 5 s", "goodbye after 10 s"],
            connects_in_silence,
        ),
        case(
            "access-profiles pppoe router-advertisements interval",
            ["60", "4"],
            ["seldom", "often"],
            advertised_often,
        ),
        case(
            "access-profiles pppoe router-advertisements router-lifetime",
            ["900", "0"],
            ["router 900", "router 0"],
            advertised,
        ),
        case(
            "access-profiles pppoe router-advertisements valid-lifetime",
            ["20000", "30000"],
            ["valid 20000", "valid 30000"],
            advertised,
        ),
        case(
            "access-profiles pppoe router-advertisements preferred-lifetime",
            ["2000", "3000"],
            ["preferred 2000", "preferred 3000"],
            advertised,
        ),
        case(
            "access-profiles pppoe server-group",
            ["second", "third"],
            ["192.0.2.10:1812", "192.0.2.11:1812"],
            asks,
        ),
        beside(
            &["set access-profiles pppoe server-group radius"],
            case(
                "access-profiles pppoe fallback",
                ["local-users", "last-policy"],
                [
                    "[\"local-users\", \"local-users\"]",
                    "[\"last-policy\", \"no\"]",
                ],
                falls_back,
            ),
        ),
        beside(
            &[
                "set access-profiles pppoe server-group radius",
                "set access-profiles pppoe fallback last-policy",
            ],
            case(
                "access-profiles pppoe fallback-time",
                ["2", "1"],
                ["110 minutes", "50 minutes"],
                falls_back_after,
            ),
        ),
        case(
            "access-profiles pppoe subscriber-profile",
            ["slow", "slower"],
            ["mtu=1300", "mtu=1200"],
            has,
        ),
        case(
            "access-profiles pppoe subscriber-identity",
            ["user-name", "line"],
            ["4", "1"],
            subscribers,
        ),
        case(
            "access-profiles pppoe sessions-per-mac",
            ["2", "3"],
            ["2", "3"],
            behind_one_mac,
        ),
        case(
            "access-profiles pppoe trust-line-tags",
            ["false", "true"],
            ["access0.100.1", "olt1"],
            names_itself,
        ),
        case(
            "access-profiles pppoe sessions-per-vlan",
            ["1", "3"],
            ["1", "3"],
            from_one_line,
        ),
        case(
            "access-profiles pppoe sessions-per-port",
            ["1", "2"],
            ["1", "2"],
            come_in,
        ),
        case(
            "access-profiles pppoe sessions-per-subscriber",
            ["1", "3"],
            ["1", "3"],
            from_one_line,
        ),
        beside(
            &["set subscriber-profiles home delegated-pools lans"],
            case(
                "access-profiles pppoe dhcpv6-preferred-lifetime",
                ["600", "1200"],
                ["preferred 600", "preferred 1200"],
                leases,
            ),
        ),
        beside(
            &["set subscriber-profiles home delegated-pools lans"],
            case(
                "access-profiles pppoe dhcpv6-valid-lifetime",
                ["20000", "30000"],
                ["valid 20000", "valid 30000"],
                leases,
            ),
        ),
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
