//! Every setting that concerns the control plane is set, changed and deleted at run time, and looked at where it takes
//! effect. Each of these cases must fail when its own setting does not reach the control plane.

use crate::world::World;
use config::schema;
use core::time::Duration;
use cpe::State;
use std::collections::BTreeSet;
use wire::eth::{Frame, PPPOE_DISCOVERY, PPPOE_SESSION};
use wire::radius::{Code, Kind, Packet, Value};

const SECOND: Duration = Duration::from_secs(1);

/// What takes effect elsewhere: on user planes, and in the daemon around the control plane.
const ELSEWHERE: [&str; 15] = [
    "logging level",
    "network-instances * interface",
    "user-planes * hold-sessions",
    "user-planes * management",
    "user-planes * ports * addresses",
    "user-planes * ports * device",
    "user-planes * ports * egress-rate",
    "user-planes * ports * mtu",
    "user-planes * ports * network-instance",
    "user-planes * ports * subinterfaces * addresses",
    "user-planes * ports * subinterfaces * mtu",
    "user-planes * ports * subinterfaces * network-instance",
    "user-planes * ports * subinterfaces * tap",
    "user-planes * ports * subinterfaces * vlan-id",
    "user-planes * ports * tap",
];

const DOCUMENT: &str = "
network-instances:
  default: {gateway: [100.64.0.1]}
  red: {gateway: [10.1.0.1]}
  blue: {gateway: [10.2.0.1]}
user-planes:
  up1:
    address: 192.0.2.2
    management: /run/up1.sock
    ports:
      access0: {role: access, device: a, segments: {all: {access-profile: pppoe}}}
subscriber-groups: {east: {}, west: {}}
access-profiles:
  pppoe: {subscriber-profile: home}
  other: {subscriber-profile: slow}
  third: {subscriber-profile: slower}
subscriber-profiles:
  home: {}
  slow: {mtu: 1300}
  slower: {mtu: 1200}
ipv4-pools:
  homes: {prefix: 100.64.0.0/24}
  more: {prefix: 100.80.0.0/24}
  most: {prefix: 100.81.0.0/24}
  reds: {prefix: 10.1.1.0/24, network-instance: red}
  blues: {prefix: 10.2.1.0/24, network-instance: blue}
ipv6-pools:
  homes: {prefix: '2001:db8:100::/48'}
  more: {prefix: '2001:db8:180::/48'}
  most: {prefix: '2001:db8:181::/48'}
aaa:
  servers:
    one: {address: 192.0.2.9, secret-key: testing123}
    two: {address: 192.0.2.10, secret-key: testing123}
    three: {address: 192.0.2.11, secret-key: testing123}
  server-groups:
    radius: {servers: [one]}
    second: {servers: [two]}
    third: {servers: [three]}
users:
  home0: {password: secret0}
  home1: {password: secret1}
  home2: {password: secret2}
  home3: {password: secret3}
";

/// A setting, two values of it, what is seen then, and where.
struct Case {
    place: &'static str,
    values: [&'static str; 2],
    seen: [&'static str; 2],
    probe: fn(&mut World) -> String,
    /// What else is configured.
    beside: &'static [&'static str],
}

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
const EAST: &[&str] = &["set user-planes up1 ports access0 subscriber-group east"];

fn cases() -> Vec<Case> {
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
            "access-profiles pppoe sessions-per-subscriber",
            ["1", "3"],
            ["1", "3"],
            from_one_line,
        ),
        case(
            "subscriber-profiles home network-instance",
            ["red", "blue"],
            ["10.1.1.0", "10.2.1.0"],
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
            RADIUS,
            case(
                "aaa server-groups radius not-enforced",
                ["reject", "accept"],
                ["up=None", "up=Some(Rate(20000))"],
                mapped,
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

// ---- where settings take effect

/// Everybody hangs up.
fn quiet(w: &mut World) {
    (0..4).for_each(|n| w.hang_up(n));
    w.run(30 * SECOND);
    w.heard.clear();
    w.asked.clear();
    w.radius.records.clear();
}

/// The first home dials in anew.
fn dial(w: &mut World) {
    quiet(w);
    w.dial(0);
    w.run(10 * SECOND);
}

fn online(w: &World) -> usize {
    w.homes
        .iter()
        .filter(|home| home.state() == State::Online)
        .count()
}

fn comes_in(w: &mut World) -> String {
    dial(w);
    online(w).to_string()
}

fn come_in(w: &mut World) -> String {
    quiet(w);
    (0..4).for_each(|n| w.dial(n));
    w.run(10 * SECOND);
    online(w).to_string()
}

/// How many of four come in that share a line.
fn from_one_line(w: &mut World) -> String {
    quiet(w);
    for home in &mut w.homes {
        let tags = wire::eth::Tags::qinq(100, 1);
        let config = cpe::HomeConfig {
            tags,
            ..home.config().clone()
        };
        *home = cpe::Home::new(config, 1);
    }
    come_in(w)
}

/// How many subscribers four homes are that share a line.
fn subscribers(w: &mut World) -> String {
    from_one_line(w);
    let sessions = w.sessions().into_iter();
    let handles: BTreeSet<u32> = sessions.filter_map(|s| s.subscriber_handle).collect();
    handles.len().to_string()
}

/// How many of four are left after 1.2 s on a user plane that is drained.
fn left(w: &mut World) -> String {
    let set = |w: &mut World, state: &str| {
        let line = format!("set user-planes up1 admin-state {state}");
        w.configure(&[&line]).unwrap();
    };
    set(w, "unlocked");
    come_in(w);
    set(w, "shutting-down");
    w.run(Duration::from_millis(1200));
    online(w).to_string()
}

fn half_open(w: &mut World) -> String {
    quiet(w);
    w.disk_stalls = true;
    (0..4).for_each(|n| w.dial(n));
    w.run(2 * SECOND);
    let count = w.plane.session_count();
    w.disk_recovers();
    w.run(10 * SECOND);
    count.to_string()
}

fn owed(w: &mut World) -> String {
    quiet(w);
    w.radius.full = true;
    (0..4).for_each(|n| w.dial(n));
    w.run(10 * SECOND);
    let owed = w.stored_records();
    w.radius.full = false;
    w.run(200 * SECOND);
    owed.to_string()
}

fn gateway(w: &mut World) -> String {
    dial(w);
    format!("{:?}", requests(w, 0x8021))
}

fn plane(w: &mut World) -> String {
    w.run(10 * SECOND);
    let to = w.told.last().map(|to| to.ip());
    format!("{to:?}")
}

fn ports(w: &mut World) -> String {
    w.run(40 * SECOND);
    w.up.default_sessions().to_string()
}

/// What the first home gets when it dials in anew.
fn gets(w: &mut World) -> String {
    dial(w);
    describe(w)
}

/// What the first home has; it dials in only if it is not online.
fn has(w: &mut World) -> String {
    if w.homes[0].state() != State::Online {
        dial(w);
    }
    w.run(2 * SECOND);
    describe(w)
}

fn describe(w: &World) -> String {
    let rules = w.up.subscribers();
    let rules = rules.first();
    let packets = rules.map(|rules| rules.forwarding.packets);
    let net = |net: Option<ipnet::IpNet>| net.map(|net| net.trunc());
    let ipv4 = w.homes[0]
        .ipv4()
        .and_then(|a| ipnet::IpNet::new(a.into(), 24).ok());
    let ipv6 = w.homes[0]
        .ipv6()
        .and_then(|a| ipnet::IpNet::new(a.into(), 48).ok());
    let dns: Vec<_> = w.homes[0].dns().collect();
    format!(
        "mtu={} priority={} idle={:?} both={} up={:?} down={:?} mac={:?} ipv4={:?} ipv6={:?} dns={dns:?}",
        packets.and_then(|packets| packets.mtu).unwrap_or_default(),
        packets.map_or(0, |packets| packets.vlan_priority),
        packets.and_then(|packets| packets.idle_timeout),
        packets.is_some_and(|packets| packets.idle_both_ways),
        packets.and_then(|packets| packets.rate_up),
        packets.and_then(|packets| packets.rate_down),
        rules.map(|rules| rules.circuit.gateway_mac.to_string()),
        net(ipv4),
        net(ipv6),
    )
}

/// What the first home gets of a server that sends a vendor's attributes.
fn mapped(w: &mut World) -> String {
    let vendor = |number, value: Vec<u8>| {
        let kind = Kind {
            vendor: 2011, // Huawei
            number,
        };
        (kind, value.into())
    };
    let number = |number, value: u32| vendor(number, value.to_be_bytes().into());
    w.radius.accept = vec![
        number(3, 1300),
        number(6, 2),
        number(79, 5),
        vendor(188, b"slow=9000".into()),
        vendor(188, b"fast=90000".into()),
        number(2, 20_000_000), // the average rate, which a shipped mapping says
    ];
    dial(w);
    w.radius.accept.clear();
    describe(w)
}

/// How long the nets are that are announced for the first home.
fn nets(w: &mut World) -> String {
    dial(w);
    let length = |net: &String| net.split('/').next_back().unwrap_or_default().to_owned();
    let mut lengths: Vec<String> = w.up.nets().iter().map(length).collect();
    lengths.sort();
    lengths.join(" ")
}

fn offer(w: &mut World) -> String {
    dial(w);
    let frames = w.heard.iter().map(|bytes| Frame::parse(bytes).unwrap());
    let mut offers = frames.filter(|frame| {
        frame.header.ethertype == PPPOE_DISCOVERY && frame.payload[1] == wire::pppoe::PADO
    });
    let offer = offers.next().expect("a PADO").payload.to_vec();
    let names: Vec<String> = wire::pppoe::Discovery::parse(&offer)
        .unwrap()
        .tags
        .iter()
        .filter_map(|tag| match tag {
            wire::pppoe::Tag::AcName(name) | wire::pppoe::Tag::ServiceName(name) => {
                Some(name.escape_ascii().to_string())
            }
            _ => None,
        })
        .collect();
    format!("{names:?}")
}

/// The options of the gateway's Configure-Requests of a protocol, the magic number left out.
fn requests(w: &World, protocol: u16) -> Vec<Vec<u8>> {
    let frames = w.heard.iter().map(|bytes| Frame::parse(bytes).unwrap());
    let sessions = frames.filter(|frame| frame.header.ethertype == PPPOE_SESSION);
    let ppp = sessions.map(|frame| frame.payload[6..].to_vec());
    let requests = ppp.filter(|ppp| ppp[..2] == protocol.to_be_bytes() && ppp[2] == 1);
    let mut requests: Vec<Vec<u8>> = requests.map(|ppp| options(&ppp[6..])).collect();
    requests.dedup();
    requests
}

fn options(mut bytes: &[u8]) -> Vec<u8> {
    let mut kept = Vec::new();
    while let [kind, length, ..] = *bytes {
        let (option, rest) = bytes.split_at(usize::from(length).clamp(2, bytes.len()));
        if kind != 5 {
            kept.extend_from_slice(option);
        }
        bytes = rest;
    }
    kept
}

fn wants(w: &mut World) -> String {
    dial(w);
    format!("{:?}", requests(w, 0xc021))
}

/// Which proof is asked for.
fn authentication(w: &mut World) -> String {
    dial(w);
    format!("{:?}", requests(w, 0xc021).first())
}

/// How much of the history is kept.
fn kept(w: &mut World) -> String {
    w.settle();
    format!("{:?}", w.history_bounds)
}

fn echoes(w: &mut World) -> String {
    if w.homes[0].state() != State::Online {
        dial(w);
    }
    w.heard.clear();
    w.run(60 * SECOND);
    let echo = |bytes: &&Vec<u8>| {
        let frame = Frame::parse(bytes).unwrap();
        frame.header.ethertype == PPPOE_SESSION && frame.payload[6..9] == [0xc0, 0x21, 9]
    };
    match w.heard.iter().filter(echo).count() {
        0..6 => "seldom",
        6..30 => "often",
        _ => "always",
    }
    .into()
}

fn gives_up(w: &mut World) -> String {
    dial(w);
    let config = w.homes[0].config().clone();
    w.homes[0] = cpe::Home::new(config, 99); // it hears nothing of it
    let begin = w.now;
    while w.plane.session_count() > 0 && w.now - begin < 600 * SECOND {
        w.run(SECOND);
    }
    match (w.now - begin).as_secs() {
        0..80 => "soon",
        80..160 => "usual",
        _ => "late",
    }
    .into()
}

fn lasts(w: &mut World) -> String {
    dial(w);
    let begin = w.now - 10 * SECOND;
    while w.plane.session_count() > 0 && w.now - begin < 200 * SECOND {
        w.run(SECOND);
    }
    let tens = ((w.now - begin).as_secs_f64() / 10.0).round() * 10.0;
    tens.to_string()
}

/// Whom the control plane asks for RADIUS, and what for.
fn asks(w: &mut World) -> String {
    dial(w);
    let asked: BTreeSet<String> = w.asked.iter().map(|(_, to, _)| to.to_string()).collect();
    format!("{asked:?}")
}

/// The same, when none answers.
fn all_asked(w: &mut World) -> String {
    w.radius.dead = true;
    let asked = {
        dial(w);
        w.run(60 * SECOND);
        let asked: BTreeSet<String> = w.asked.iter().map(|(_, to, _)| to.to_string()).collect();
        format!("{asked:?}")
    };
    w.radius.dead = false;
    w.run(300 * SECOND);
    asked
}

/// By which fallback the first and the second home come in when no server answers. A server has accepted the first one before.
fn falls_back(w: &mut World) -> String {
    dial(w);
    w.radius.dead = true;
    let comes_in = |w: &mut World, n: usize| {
        quiet(w);
        w.dial(n);
        w.run(60 * SECOND);
        match online(w) {
            0 => "no".to_owned(),
            _ => w.sessions().remove(0).fallback,
        }
    };
    let both = [comes_in(w, 0), comes_in(w, 1)];
    w.radius.dead = false;
    quiet(w);
    w.run(100 * SECOND);
    format!("{both:?}")
}

/// For how long the first home comes in by the last policy.
fn falls_back_after(w: &mut World) -> String {
    dial(w);
    quiet(w);
    w.radius.dead = true;
    let mut longest = "not at all".to_owned();
    for (wait, after) in [(50, 50), (60, 110), (90, 200)] {
        w.run(wait * 60 * SECOND);
        if falls_back_now(w) {
            longest = format!("{after} minutes");
        }
    }
    w.radius.dead = false;
    quiet(w);
    w.run(100 * SECOND);
    longest
}

fn falls_back_now(w: &mut World) -> bool {
    w.dial(0);
    w.run(60 * SECOND);
    let is_in = online(w) == 1;
    quiet(w);
    is_in
}

fn secret(w: &mut World) -> String {
    dial(w);
    w.radius.secret.escape_ascii().to_string()
}

/// Whether a Disconnect-Request about nobody gets an answer.
fn is_obeyed(w: &mut World, host: &str, bytes: &[u8]) -> bool {
    w.obeyed.clear();
    w.order(host, bytes);
    !w.obeyed.is_empty()
}

fn order(w: &World, age: Option<u32>, secret: &str) -> Vec<u8> {
    let identifier = (w.said % 251) as u8;
    let mut packet = Packet::new(Code::DISCONNECT_REQUEST, identifier, [0; 16]);
    packet.push(Kind::USER_NAME, b"nobody");
    if let Some(age) = age {
        packet.push(Kind::EVENT_TIMESTAMP, Value::Time(w.moment().unix - age));
    }
    packet.emit_dynamic_request(secret.as_bytes()).unwrap()
}

fn client(w: &mut World) -> String {
    let bytes = order(w, None, "first-key");
    let hosts = ["192.0.2.9", "192.0.2.10", "192.0.2.11"];
    let obeyed = hosts.into_iter().filter(|host| is_obeyed(w, host, &bytes));
    obeyed.collect::<Vec<_>>().join(" ")
}

fn client_secret(w: &mut World) -> String {
    let secrets = ["first-key", "second-key", "third-key"];
    let obeyed = secrets.into_iter().filter(|secret| {
        let bytes = order(w, None, secret);
        is_obeyed(w, "192.0.2.9", &bytes)
    });
    obeyed.collect::<Vec<_>>().join(" ")
}

fn unsigned_order(w: &mut World) -> String {
    let mut packet = Packet::new(Code::DISCONNECT_REQUEST, 1, [0; 16]);
    packet.push(Kind::USER_NAME, w.said.to_string().as_str());
    let mut bytes = Vec::new();
    packet.emit(&mut bytes).unwrap();
    wire::radius::sign_accounting_request(&mut bytes, b"first-key");
    format!("without: {}", is_obeyed(w, "192.0.2.9", &bytes))
}

fn dynamic_port(w: &mut World) -> String {
    format!("{:?}", w.dynamic_port)
}

fn timely_orders(w: &mut World) -> String {
    w.run(3 * SECOND);
    let obeyed = [5, 100, 400].into_iter().filter(|age| {
        let bytes = order(w, Some(*age), "first-key");
        is_obeyed(w, "192.0.2.9", &bytes)
    });
    let obeyed: Vec<String> = obeyed.map(|age| age.to_string()).collect();
    obeyed.join(" ")
}

fn timeless_order(w: &mut World) -> String {
    w.run(700 * SECOND); // what is known is forgotten
    let bytes = order(w, None, "first-key");
    format!("without: {}", is_obeyed(w, "192.0.2.9", &bytes))
}

fn unanswered(w: &mut World) -> String {
    quiet(w);
    w.run(100 * SECOND); // whoever was thought dead is asked again
    w.asked.clear();
    w.radius.dead = true;
    w.dial(0);
    let begin = w.now;
    w.run(59 * SECOND); // the session is given up
    while w.now - begin < 150 * SECOND {
        w.run(SECOND);
    }
    w.radius.dead = false;
    let times: Vec<Duration> = w
        .asked
        .iter()
        .filter(|(_, _, code)| *code == 1)
        .map(|(at, ..)| *at)
        .collect();
    let after = times.get(1).map_or(0, |second| {
        (*second - times[0]).as_secs_f64().round() as u64
    });
    // the first timeout is up to a tenth off
    let after = [2, 6, 12]
        .into_iter()
        .find(|n: &u64| n.abs_diff(after) <= 1);
    let answer = format!(
        "after {} seconds, {} times",
        after.unwrap_or(0),
        times.len()
    );
    w.run(100 * SECOND);
    answer
}

/// Whether a server that has not answered is asked again after 10 and after 30 seconds.
fn passed_over(w: &mut World) -> String {
    quiet(w);
    w.run(100 * SECOND);
    w.radius.dead_at = Some("192.0.2.9".parse().unwrap());
    let asks_it = |w: &mut World, n: usize| {
        w.asked.clear();
        w.dial(n);
        w.run(SECOND);
        w.asked
            .iter()
            .any(|(_, to, code)| *code == 1 && to.ip().to_string() == "192.0.2.9")
    };
    asks_it(w, 0);
    while online(w) == 0 {
        w.run(SECOND);
    }
    w.run(9 * SECOND);
    let soon = asks_it(w, 1);
    w.run(21 * SECOND);
    let later = asks_it(w, 2);
    w.radius.dead_at = None;
    format!("{:?}", [soon, later])
}

fn unsigned(w: &mut World) -> String {
    w.radius.unsigned = true;
    let came = comes_in(w);
    w.radius.unsigned = false;
    w.run(100 * SECOND);
    came
}

/// How often a server that has just died is asked for its status within 65 seconds.
fn probed(w: &mut World) -> String {
    dial(w); // it answers requests
    quiet(w);
    w.run(100 * SECOND);
    w.radius.dead = true;
    w.dial(0);
    let begin = w.now;
    let is_out = |w: &mut World| w.aaa_servers().iter().any(|s| s.out_seconds.is_some());
    while !is_out(w) && w.now - begin < 60 * SECOND {
        w.run(SECOND);
    }
    w.asked.clear();
    w.run(65 * SECOND);
    let count = w.asked.iter().filter(|(_, _, code)| *code == 12).count();
    w.radius.dead = false;
    w.run(100 * SECOND);
    format!("{count} Status-Server")
}

fn identifier(w: &mut World) -> String {
    dial(w);
    format!("{:?}", w.radius.records[0].get(Kind::NAS_IDENTIFIER))
}

fn interims(w: &mut World) -> String {
    dial(w);
    w.run(210 * SECOND);
    w.radius
        .kinds()
        .iter()
        .filter(|kind| **kind == 3)
        .count()
        .to_string()
}

/// How often interim records come of a user that the local users let in because no server answered.
fn interims_by_fallback(w: &mut World) -> String {
    quiet(w);
    w.radius.dead = true;
    w.dial(0);
    w.run(60 * SECOND);
    w.radius.dead = false;
    w.run(600 * SECOND);
    let kinds = w.radius.kinds().into_iter();
    match kinds.filter(|kind| *kind == 3).count() {
        0..4 => "seldom",
        4..8 => "often",
        _ => "always",
    }
    .into()
}

/// The networks behind the first home.
fn routes(w: &mut World) -> String {
    dial(w);
    let sessions = w.sessions().into_iter();
    let routes: Vec<String> = sessions.flat_map(|session| session.routes).collect();
    format!("{routes:?}")
}

// ---- the cases

/// What is seen at first, with one value, with another, and without (again).
fn run(case: &Case, frozen: bool) -> Vec<String> {
    let mut w = World::of(4, DOCUMENT);
    if !case.beside.is_empty() {
        w.configure(case.beside).unwrap();
    }
    let place = config::Path::parse(case.place).unwrap();
    let leaf = schema::root().find(&place).expect(case.place);
    let is_list = matches!(leaf.kind, schema::Kind::LeafList(_));
    let before = config::edit::get(&w.tree, &place).cloned();
    w.frozen = frozen.then(|| place.clone());
    let mut seen = vec![(case.probe)(&mut w)];
    for value in case.values {
        quiet_for_pools(&mut w, case.place);
        let mut lines = Vec::new();
        if is_list && config::edit::get(&w.tree, &place).is_some() {
            lines.push(format!("delete {}", case.place));
        }
        lines.push(format!("set {} {value}", case.place));
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        w.configure(&lines)
            .unwrap_or_else(|faults| panic!("{lines:?}: {faults:?}"));
        seen.push((case.probe)(&mut w));
    }
    quiet_for_pools(&mut w, case.place);
    let mut lines = Vec::new();
    if !leaf.required && config::edit::get(&w.tree, &place).is_some() {
        lines.push(format!("delete {}", case.place));
    }
    match before {
        Some(serde_json::Value::Array(values)) => {
            let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
            lines.extend(
                values
                    .iter()
                    .filter_map(text)
                    .map(|v| format!("set {} {v}", case.place)),
            );
        }
        Some(value) => {
            let text = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            lines.push(format!("set {} {text}", case.place));
        }
        None => {}
    }
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    w.configure(&lines)
        .unwrap_or_else(|faults| panic!("{lines:?}: {faults:?}"));
    seen.push((case.probe)(&mut w));
    seen
}

/// A pool in use, or a gateway in one, is not changed.
fn quiet_for_pools(w: &mut World, place: &str) {
    if place.contains("-pools") || place.contains("gateway") {
        quiet(w);
    }
}

/// Whether what was seen is what is to be seen.
fn verdict(case: &Case, seen: &[String]) -> Result<(), String> {
    let [first, one, other, last] = seen else {
        return Err("four looks".into());
    };
    let differs = first != one && one != other;
    let found = one.contains(case.seen[0]) && other.contains(case.seen[1]);
    match first == last && differs && found {
        true => Ok(()),
        false => Err(format!("{}: {seen:#?}", case.place)),
    }
}

#[test]
fn every_setting_takes_effect_at_run_time_and_its_case_would_notice_if_not() {
    let mut wrong = Vec::new();
    for case in cases() {
        wrong.extend(verdict(&case, &run(&case, false)).err());
        if verdict(&case, &run(&case, true)).is_ok() {
            wrong.push(format!("{}: its case does not notice", case.place));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_setting_has_a_case() {
    let pattern = |place: &str| {
        let mut schema = schema::root();
        let mut pattern = config::Path::default();
        for step in config::Path::parse(place).unwrap().steps() {
            let entries = matches!(schema.kind, schema::Kind::Entries { .. });
            pattern.push(if entries { "*" } else { step });
            schema = schema.step(step).expect(place);
        }
        pattern.to_string()
    };
    let cases: BTreeSet<String> = cases().iter().map(|case| pattern(case.place)).collect();
    let leaves = schema::root()
        .leaves()
        .into_iter()
        .map(|(path, _)| path.to_string());
    let without: Vec<String> = leaves
        .filter(|leaf| !cases.contains(leaf) && !ELSEWHERE.contains(&&**leaf))
        .collect();
    assert!(without.is_empty(), "settings without a case: {without:#?}");
}
