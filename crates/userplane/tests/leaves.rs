//! Every setting that concerns a user plane is set, changed and deleted at run time, and looked at where it takes effect: in the
//! worker and in the kernel. Each of these cases must fail when its own setting does not reach the user plane.

// The namespace is shared with other tests, which use more of it.
#[allow(dead_code)]
mod namespace;

use std::collections::BTreeSet;
use std::time::Duration;

use config::{Edit, Path, schema};
use namespace::{Asking, End, ip};
use serde_json::Value;

const DOCUMENT: &str = "
network-instances:
  default: {gateway: [100.64.0.1]}
access-profiles: {a: {trust-line-tags: false}, b: {trust-line-tags: false}}
user-planes:
  up1:
    address: 127.0.0.1
    management: /run/up1.sock
    ports:
      core0:
        role: core
        device: net_af_packet0,iface=core0
        addresses: [198.51.100.1/24]
        subinterfaces:
          v300: {vlan-id: 300, addresses: [203.0.113.1/24], mtu: 1280}
      access0: {role: access, device: 'net_af_xdp1,iface=acc0', segments: {all: {}}}
      access1: {role: access, lag: {members: ['net_af_packet7,iface=lag0', 'net_af_packet8,iface=lag1']}}
";

/// A setting, two values of it, a part of what is seen then, and where.
#[derive(Clone, Copy)]
struct Case {
    place: &'static str,
    values: [&'static str; 2],
    seen: [&'static str; 2],
    probe: fn(&Asking) -> String,
}

fn cases() -> Vec<Case> {
    let case = |place, values, seen, probe| Case {
        place,
        values,
        seen,
        probe,
    };
    // a rate of `protection`, and how the worker's table begins the line with it
    let rate = |kind: &str, rate: &str| {
        let leak = |text: String| -> &'static str { text.leak() };
        let values = ["1011", "1012"];
        let seen = values.map(|value| match (kind, rate) {
            (_, "session") => leak(format!("passes on {value} of a session")),
            (_, "total") => leak(format!("total {value}")),
            _ => leak(format!("{rate} {value},")),
        });
        case(
            leak(format!("protection {kind} {rate}")),
            values,
            seen,
            tables,
        )
    };
    let of_redirected = ["mac", "line", "port", "total"];
    let of_port = |kind| ["mac", "port", "total"].map(|level| rate(kind, level));
    const CORE: &str = "user-planes up1 ports core0";
    const SEGMENT: &str = "user-planes up1 ports access0 segments all";
    const LAG: &str = "user-planes up1 ports access1 lag";
    const PART: &str = "user-planes up1 ports core0 subinterfaces v300";
    let of = |above: &str, leaf: &str| -> &'static str { format!("{above} {leaf}").leak() };
    let mut rates = Vec::new();
    rates.extend(["mac", "line", "vlan", "port", "total"].map(|level| rate("discovery", level)));
    rates.extend(["session", "total"].map(|level| rate("session", level)));
    rates.push(rate("echo", "total"));
    rates.extend(of_redirected.map(|level| rate("redirect", level)));
    for kind in ["local", "resolution", "routing", "multicast", "for-us"] {
        rates.extend(of_port(kind));
    }
    let others = vec![
        case(
            "protection hold-down after",
            ["7", "8"],
            ["after 7 packets", "after 8 packets"],
            tables,
        ),
        case(
            "protection hold-down first",
            ["7", "8"],
            ["first 7 s", "first 8 s"],
            tables,
        ),
        case(
            "protection hold-down longest",
            ["700", "800"],
            ["longest 700 s", "longest 800 s"],
            tables,
        ),
        case(
            "logging level",
            ["debug", "error"],
            ["Debug", "Error"],
            level,
        ),
        case(
            "user-planes up1 hold-sessions",
            ["30", "60"],
            ["held for 30 s", "held for 60 s"],
            tables,
        ),
        case(
            "user-planes up1 ipv4-options",
            ["forward", "drop"],
            ["IPv4 options Forward", "IPv4 options Drop\n"],
            tables,
        ),
        case(
            "network-instances default interface",
            ["sl-a", "sl-b"],
            ["sl-a ", "sl-b "],
            links,
        ),
        case(
            "network-instances default gateway",
            ["100.64.0.8", "100.64.0.9"],
            ["100.64.0.8/32", "100.64.0.9/32"],
            links,
        ),
        case(
            of(CORE, "addresses"),
            ["192.0.2.1/25", "192.0.2.129/25"],
            ["192.0.2.1/25", "192.0.2.129/25"],
            links,
        ),
        case(
            of(CORE, "device"),
            ["net_af_packet5,iface=acc1", "net_af_packet6,iface=acc1"],
            ["acc1", "acc1"],
            sockets,
        ),
        case(
            of(CORE, "mtu"),
            ["1300", "1400"],
            [
                "core0 vlan 0 instance 0 mtu 1300",
                "core0 vlan 0 instance 0 mtu 1400",
            ],
            tables,
        ),
        case(
            of(CORE, "egress-rate"),
            ["1000", "2000"],
            ["rate 1000 of core0", "rate 2000 of core0"],
            tables,
        ),
        case(
            of(SEGMENT, "egress-rate"),
            ["1000", "2000"],
            [
                "rate 1000 of a segment of access0",
                "rate 2000 of a segment of access0",
            ],
            tables,
        ),
        case(
            of(SEGMENT, "vlan-egress-rate"),
            ["1000", "2000"],
            ["1000 of each VLAN", "2000 of each VLAN"],
            tables,
        ),
        case(
            of(CORE, "source-check"),
            ["loose", "strict"],
            [
                "core0 vlan 0 instance 0 mtu 1500 sources Loose",
                "core0 vlan 0 instance 0 mtu 1500 sources Strict",
            ],
            tables,
        ),
        case(
            of(CORE, "tap"),
            ["outer", "other"],
            ["outer ", "other "],
            links,
        ),
        case(
            of(PART, "addresses"),
            ["192.0.2.1/25", "192.0.2.129/25"],
            ["192.0.2.1/25", "192.0.2.129/25"],
            links,
        ),
        case(
            of(PART, "mtu"),
            ["1300", "1400"],
            [
                "vlan 300 instance 0 mtu 1300",
                "vlan 300 instance 0 mtu 1400",
            ],
            tables,
        ),
        case(
            of(PART, "source-check"),
            ["loose", "strict"],
            [
                "vlan 300 instance 0 mtu 1280 sources Loose",
                "vlan 300 instance 0 mtu 1280 sources Strict",
            ],
            tables,
        ),
        case(
            of(PART, "priority-source"),
            ["dscp", "dscp"],
            ["sources Off priority Dscp", "sources Off priority Dscp"],
            tables,
        ),
        case(
            of(PART, "tap"),
            ["outer", "other"],
            ["outer ", "other "],
            links,
        ),
        case(
            of(PART, "vlan-id"),
            ["301", "302"],
            ["vlan 301", "vlan 302"],
            tables,
        ),
        // and the tags
        case(
            "user-planes up1 ports access0 mtu",
            ["1600", "1700"],
            ["mtu 1608", "mtu 1708"],
            access_link,
        ),
        case(
            of(LAG, "members"),
            ["net_af_packet9,iface=lag2", "net_af_packet10,iface=lag2"],
            ["lag2", "lag2"],
            sockets,
        ),
        case(
            of(LAG, "lacp"),
            ["passive", "off"],
            ["LACP of access1 Passive", "LACP of access1 Off"],
            tables,
        ),
        case(
            of(LAG, "lacp-rate"),
            ["slow", "slow"],
            ["Active fast false", "Active fast false"],
            tables,
        ),
        case(
            of(LAG, "minimum-links"),
            ["1", "2"],
            ["minimum 1 ", "minimum 2 "],
            tables,
        ),
        case(
            of(LAG, "system-priority"),
            ["100", "200"],
            ["minimum 1 priority 100", "minimum 1 priority 200"],
            tables,
        ),
        // what profiles say of ids is told with the segments that have them
        case(
            of(SEGMENT, "access-profile"),
            ["a", "b"],
            ["of access0 are segment all, where ids name no lines"; 2],
            tables,
        ),
        case(
            "user-planes up1 ports access0 segments all s-vlans",
            ["1-9", "10-20"],
            ["vlans 1-9 of access0", "vlans 10-20 of access0"],
            tables,
        ),
    ];
    [others, rates].concat()
}

/// What has its effect on the control plane's way to the user plane.
const ELSEWHERE: &str = "user-planes * management";

/// The instances of ports: a user plane serves one, and refuses others where they are named.
const INSTANCES: [&str; 2] = [
    "user-planes up1 ports core0 network-instance",
    "user-planes up1 ports core0 subinterfaces v300 network-instance",
];

fn level(ask: &Asking) -> String {
    format!("{:?}", ask.level())
}

fn links(_: &Asking) -> String {
    ip("-br addr show")
}

fn access_link(_: &Asking) -> String {
    ip("link show acc0")
}

fn tables(ask: &Asking) -> String {
    Vec::from_iter(ask.tables()).join("\n")
}

/// The interfaces that packet sockets are bound to.
fn sockets(_: &Asking) -> String {
    let index = |line: &str| line.split_whitespace().nth(4).map(str::to_owned);
    let table = std::fs::read_to_string("/proc/thread-self/net/packet").unwrap_or_default();
    let bound: BTreeSet<String> = table.lines().skip(1).filter_map(index).collect();
    let links = ip("-o link show");
    let of = |line: &str| line.split(": ").next().is_some_and(|n| bound.contains(n));
    links
        .lines()
        .filter(|line| of(line))
        .collect::<Vec<_>>()
        .join("\n")
}

fn tree() -> Value {
    config::check::read(DOCUMENT).unwrap().tree
}

/// The document of the user plane; what is wrong with the configuration.
fn document(tree: &Value) -> Result<config::UserPlaneDocument, String> {
    let checked = config::check::check(tree).map_err(|faults| faults[0].to_string())?;
    Ok(checked.configuration.document_for("up1").unwrap())
}

/// Tells the user plane a tree, and looks until it shows what is wanted, for a while.
fn told(
    ask: &Asking,
    tree: &Value,
    case: &Case,
    wanted: impl Fn(&str) -> bool,
) -> Result<(), String> {
    let done = ask.reconfigure(&document(tree)?);
    done.map_err(|faults| format!("{}: {}", case.place, faults[0]))?;
    let mut shown = String::new();
    for _ in 0..20 {
        shown = (case.probe)(ask);
        if wanted(&shown) {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Err(format!("{} is not seen:\n{shown}", case.place))
}

/// Sets, changes and deletes; `frozen`: none of it reaches the user plane.
fn run(ask: &Asking, case: &Case, frozen: bool) -> Result<(), String> {
    let before = tree();
    ask.reconfigure(&document(&before)?)
        .map_err(|faults| faults[0].to_string())?;
    let set = |value| {
        let mut tree = before.clone();
        // of a list the value is the only one
        for line in [
            format!("delete {}", case.place),
            format!("set {} {value}", case.place),
        ] {
            if !frozen {
                let _ = Edit::parse(&line).unwrap().apply(&mut tree); // there may be nothing to delete
            }
        }
        tree
    };
    let [a, b] = case.values.map(set);
    told(ask, &a, case, |shown| shown.contains(case.seen[0]))?;
    told(ask, &b, case, |shown| {
        shown.contains(case.seen[1])
            && (case.seen[0] == case.seen[1] || !shown.contains(case.seen[0]))
    })?;
    let mut gone = before.clone();
    let delete = Edit::parse(&format!("delete {}", case.place)).unwrap();
    let _ = delete.apply(&mut gone); // there may be none at the beginning
    if document(&gone).is_err() {
        gone = before; // it is needed: what was first comes back
    }
    told(ask, &gone, case, |shown| !shown.contains(case.seen[1]))
}

#[test]
fn every_setting_takes_effect_at_run_time_and_its_case_would_notice_if_not() {
    namespace::run(|ask: &Asking, _: &[End; 3]| {
        let mut wrong = Vec::new();
        let _links = ["lag0", "lag1", "lag2"].map(End::open);
        for case in cases() {
            wrong.extend(run(ask, &case, false).err());
            if run(ask, &case, true).is_ok() {
                wrong.push(format!("{}: its case does not notice", case.place));
            }
        }
        let refused = |place: &&str| is_refused_while_it_is_set(ask, place);
        wrong.extend(
            INSTANCES
                .iter()
                .filter(|p| !refused(p))
                .map(|p| format!("{p} is not refused")),
        );
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    });
}

/// Whether the user plane refuses, at this place, a tree with another instance that was edited so.
fn is_refused(ask: &Asking, place: &str, edits: &[String]) -> bool {
    let mut tree = tree();
    let red = "set network-instances red gateway 192.0.2.200".to_owned();
    for line in [red].iter().chain(edits) {
        Edit::parse(line).unwrap().apply(&mut tree).unwrap();
    }
    let faults = ask.reconfigure(&document(&tree).unwrap()).unwrap_err();
    let place = place.trim_start_matches("user-planes up1 ");
    let said = format!("{place}: the user plane does not support `red`");
    faults.iter().any(|f| f.to_string().contains(&said))
}

/// Set, changed and deleted; and what is not set is not refused there.
fn is_refused_while_it_is_set(ask: &Asking, place: &str) -> bool {
    let [red, default] = ["red", "default"].map(|name| format!("set {place} {name}"));
    let delete = format!("delete {place}");
    is_refused(ask, place, std::slice::from_ref(&red))
        && !is_refused(ask, place, &[red.clone(), default])
        && !is_refused(ask, place, &[red, delete])
        && !is_refused(ask, place, &[])
}

#[test]
fn every_setting_that_a_user_plane_is_told_has_a_case() {
    let pattern = |place: &str| {
        schema::root()
            .pattern(&Path::parse(place).unwrap())
            .to_string()
    };
    let places = cases().into_iter().map(|case| case.place).chain(INSTANCES);
    let cases: BTreeSet<String> = places.map(pattern).collect();
    let told = |leaf: &String| {
        ["logging", "network-instances", "protection", "user-planes"]
            .iter()
            .any(|top| leaf.starts_with(top))
    };
    // those of the control plane have their cases there, and that of commits in `config::check`
    let of_control = [
        "address",
        "admin-state",
        "end-sessions",
        "role",
        "access-profile",
        "subscriber-group",
        "worker-rate",
    ];
    let leaves = schema::root()
        .leaves()
        .into_iter()
        .map(|(path, _)| path.to_string());
    let without: Vec<String> = leaves
        .filter(told)
        .filter(|leaf| {
            !of_control
                .iter()
                .any(|own| leaf.ends_with(&format!(" {own}")))
        })
        .filter(|leaf| !cases.contains(leaf) && leaf != ELSEWHERE)
        .collect();
    assert!(without.is_empty(), "settings without a case: {without:#?}");
}
