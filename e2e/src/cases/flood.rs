use crate::access_network::PASSWORD;
use crate::command::Sluice;
use crate::fixture::Fixture;
use crate::flood::{Flood, Side};
use crate::frames::{self, Line};
use crate::guard;
use crate::leak_check::nothing_left;
use crate::load_tool::{INTERFACE, LoadTool};
use crate::losses::Losses;
use crate::scenario::Scenario;
use crate::site::UP;
use anyhow::{Context, Result, ensure};
use lab::topology::{CORE_PORT, Lab, Place, SUBSCRIBERS_V4};
use northbound::{ListAlarmsResponse, Offender};
use std::net::Ipv4Addr;

/// Homes that connect meanwhile, and how many in a second.
const HOMES: u64 = 150;
const RATE: u64 = 50;
/// Addresses of a stranger who changes his own: so many that none of them exceeds the rate of an address.
const ADDRESSES: u32 = 65_536;
/// Where sessions that there are not come from, and are sent to.
const STRANGER: [u8; 6] = [2, 0x66, 0, 0, 0, 9];
const GATEWAY_MAC: [u8; 6] = [2, 0xaa, 0, 0, 0, 1];
/// What the rates of `protection` leave of the others' set-ups.
const SHARE: f64 = 0.97;
/// The same while the stranger takes a core of the machine, and the kernel drops frames before the user plane has seen them.
const FAST_SHARE: f64 = 0.5;

/// Frames that the user plane itself drops, at least.
const DROPPED: u64 = 10_000;

/// A flood: what it is, its frames, and whose rate it exceeds.
struct Kind {
    what: &'static str,
    side: Side,
    frames: Vec<Vec<u8>>,
    /// Where the user plane drops most of them.
    dropped: &'static str,
    /// Of the access line's rates, if one of them is exceeded.
    exceeds: Option<Exceeded>,
}

#[derive(Clone, Copy)]
struct Exceeded {
    level: &'static str,
    vlans: [Option<u32>; 2],
}

/// A PADI from one of a stranger's addresses.
fn padi(vlans: &[u16], address: u32) -> Vec<u8> {
    let [a, b, c, d] = address.to_be_bytes();
    frames::padi([2, 0x66, a, b, c, d], vlans)
}

/// Floods of discovery.
fn discovery() -> Vec<Kind> {
    let changing = |vlans: &[u16]| (0..ADDRESSES).map(|mac| padi(vlans, mac)).collect();
    let of = |what, frames, level, vlans, dropped| Kind {
        what,
        side: Side::Access,
        frames,
        dropped,
        exceeds: Some(Exceeded { level, vlans }),
    };
    vec![
        of(
            "one home on its line",
            vec![padi(&[300, 4001], 1)],
            "mac",
            [Some(300), Some(4001)],
            "held-down",
        ),
        of(
            "one line with changing addresses",
            changing(&[300, 4002]),
            "line",
            [Some(300), Some(4002)],
            "line-policed",
        ),
        of(
            "changing addresses on a VLAN of many lines",
            changing(&[900]),
            "vlan",
            [Some(900), None],
            "line-policed",
        ),
    ]
}

/// Other floods: of sessions that do not exist, and from the core.
fn others(lab: &Lab) -> Result<Vec<Kind>> {
    let macs = [
        mac_of(lab, Place::UserPlane(UP), CORE_PORT)?,
        mac_of(lab, Place::Internet, UP.core_link())?,
    ];
    let (gateway, host) = (UP.core_v4(), UP.internet_v4());
    let all = |frame: &dyn Fn([u8; 2]) -> Vec<u8>| -> Vec<Vec<u8>> {
        let numbers = (0..=u16::MAX).map(u16::to_be_bytes);
        numbers.map(frame).collect()
    };
    let of = |what, dropped, side, frames| Kind {
        what,
        side,
        frames,
        dropped,
        exceeds: None,
    };
    let echo = |to: Ipv4Addr, number| frames::icmp_echo(macs, host, to, number);
    let [a, b, ..] = SUBSCRIBERS_V4.network().octets();
    let [x, y, z, _] = gateway.octets();
    let no_session = |number| {
        let line = Line {
            gateway: GATEWAY_MAC,
            mac: STRANGER,
            tags: [300, 4003],
            session: u16::from_be_bytes(number),
        };
        line.udp4(Ipv4Addr::new(a, b, 200, 1), host, 9, "")
    };
    Ok(vec![
        of(
            "packets of sessions that there are not",
            "unknown-session",
            Side::Access,
            all(&no_session),
        ),
        of(
            "ARP requests of changing addresses",
            "line-policed",
            Side::Core,
            all(&|[high, low]| frames::arp_request([2, 0x77, 0, 0, high, low], host, gateway)),
        ),
        of(
            "ICMP echoes to the gateway",
            "line-policed",
            Side::Core,
            all(&|number| echo(gateway, u16::from_be_bytes(number))),
        ),
        of(
            "TCP connections to port 179 of the gateway",
            "line-policed",
            Side::Core,
            all(&|number| {
                frames::tcp_syn(macs, (host, u16::from_be_bytes(number)), (gateway, 179))
            }),
        ),
        of(
            "packets to a pool's addresses that nobody has",
            "discard-route",
            Side::Core,
            all(&|[_, low]| echo(Ipv4Addr::new(a, b, 0, low.max(200)), 1)),
        ),
        of(
            "packets to hosts on the core's network that there are not",
            "no-adjacency",
            Side::Core,
            all(&|[_, low]| echo(Ipv4Addr::new(x, y, z, low.clamp(10, 250)), 1)),
        ),
    ])
}

/// MAC address of an interface.
pub(super) fn mac_of(lab: &Lab, place: Place, interface: &str) -> Result<[u8; 6]> {
    let netns = lab.netns(place);
    let text = netns.run(&["ip", "-o", "link", "show", "dev", interface])?;
    let mut words = text.split_whitespace();
    words.find(|word| *word == "link/ether");
    frames::mac(words.next().with_context(|| text.clone())?)
}

pub fn run(fixture: &mut Fixture) -> Result<()> {
    at(fixture, 30_000, SHARE, false)
}

/// As fast as frames can be sent here.
pub fn fast(fixture: &mut Fixture) -> Result<()> {
    at(fixture, 1_000_000, FAST_SHARE, true)
}

fn at(fixture: &mut Fixture, per_second: u64, share: f64, all: bool) -> Result<()> {
    let lab = fixture.without_site()?;
    let scenario = Scenario::open(lab)?;
    let alone = set_ups(lab)?;
    println!("        alone: {alone:.1} set-ups a second");
    let mut kinds = discovery();
    if all {
        kinds.extend(others(lab)?);
    }
    for kind in kinds {
        guard::limit("set-ups beside a flood");
        let losses = Losses::of(lab)?;
        let flood = Flood::start(lab, kind.side, kind.frames, per_second)?;
        let beside = set_ups(lab)?;
        let shown = kind.exceeds.map(|exceeds| offender(lab, exceeds));
        let flooded = flood.end()?;
        println!(
            "        {}: {beside:.1} set-ups a second beside {flooded:.0} frames",
            kind.what
        );
        let now = Losses::of(lab)?;
        now.print_since(&losses);
        let dropped = now.since(&losses, &format!("up1: {}", kind.dropped));
        ensure!(dropped > DROPPED, "{dropped} frames {}", kind.dropped);
        ensure!(beside >= alone * share, "others are slower");
        if let Some(shown) = shown.transpose()? {
            println!(
                "        {} dropped, held down {} times",
                shown.dropped, shown.holds
            );
            ensure!(
                (shown.holds > 0) == (shown.level == "mac"),
                "held down: {shown:?}"
            );
            is_told(lab, &shown)?;
        }
    }
    nothing_left(lab, &scenario)?;
    scenario.close()
}

/// How many homes get online in a second, until 99 % are: of so few, one that loses a frame would decide. None of them fails.
fn set_ups(lab: &Lab) -> Result<f64> {
    let options = format!(
        "--homes {HOMES} --rate {RATE} --duration 1 --pps 0 --vlan 300-301.1-4000 --password {PASSWORD}"
    );
    let tool = LoadTool::start(lab, &options)?;
    // What a stranger sends to all does not reach it: it would have to read all of that.
    let deaf = format!("link set dev {INTERFACE}-far flood off mcast_flood off bcast_flood off");
    let words: Vec<&str> = ["bridge"].into_iter().chain(deaf.split(' ')).collect();
    lab.netns(Place::Access(UP)).run(&words)?;
    let (passed, report) = tool.finish()?;
    ensure!(passed, "the exit status is not 0");
    ensure!(report.number("/online")? == HOMES, "{report:?}");
    report.float("/set_ups/per_second_of_most")
}

/// What `show protection` says of a flood.
fn offender(lab: &Lab, exceeds: Exceeded) -> Result<Offender> {
    let text = Sluice::of(lab).run(&["show", "protection", "--json"])?;
    let all: Vec<Offender> = serde_json::from_str(&text).with_context(|| text.clone())?;
    let mut all = all.into_iter();
    let found = all.find(|row| {
        let place = [row.s_tag, row.c_tag];
        row.level == exceeds.level && place == exceeds.vlans && row.port == "access0"
    });
    found.with_context(|| format!("not shown:\n{text}"))
}

/// There is an alarm with line and MAC address.
fn is_told(lab: &Lab, shown: &Offender) -> Result<()> {
    let text = Sluice::of(lab).run(&["show", "alarms", "--json"])?;
    let told: ListAlarmsResponse = serde_json::from_str(&text).with_context(|| text.clone())?;
    let vlans = [shown.s_tag, shown.c_tag].into_iter().flatten();
    let mut place = format!("{}/{}", shown.user_plane, shown.port);
    vlans.for_each(|vid| place.push_str(&format!(".{vid}")));
    let told = told.alarms.iter().any(|alarm| {
        alarm.name == "line-flooding"
            && alarm.resource.starts_with(&place)
            && alarm.text.contains(&place)
            && (shown.level != "mac" || alarm.text.contains(&shown.mac))
    });
    ensure!(told, "no alarm for {place}:\n{text}");
    Ok(())
}
