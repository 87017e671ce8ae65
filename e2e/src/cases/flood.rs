use crate::access_network::PASSWORD;
use crate::command::Sluice;
use crate::fixture::Fixture;
use crate::flood::Flood;
use crate::frames;
use crate::guard;
use crate::leak_check::nothing_left;
use crate::load_tool::{INTERFACE, LoadTool};
use crate::scenario::Scenario;
use crate::site::UP;
use anyhow::{Context, Result, ensure};
use lab::topology::{Lab, Place};
use northbound::{ListAlarmsResponse, Offender};

/// Homes that connect meanwhile, and how many in a second.
const HOMES: u64 = 150;
const RATE: u64 = 50;
/// Addresses of a stranger who changes his own: so many that none of them exceeds the rate of an address.
const ADDRESSES: u32 = 65_536;
/// What the rates of `protection` leave of the others' set-ups.
const SHARE: f64 = 0.97;
/// The same while the stranger takes a core of the machine, and the kernel drops frames before the user plane has seen them.
const FAST_SHARE: f64 = 0.5;

/// A flood: what it is, its frames, and whose rate it exceeds.
struct Kind {
    what: &'static str,
    frames: Vec<Vec<u8>>,
    level: &'static str,
    vlans: [Option<u32>; 2],
}

/// A PADI from one of a stranger's addresses.
fn padi(vlans: &[u16], address: u32) -> Vec<u8> {
    let [a, b, c, d] = address.to_be_bytes();
    frames::padi([2, 0x66, a, b, c, d], vlans)
}

fn kinds() -> [Kind; 3] {
    let changing = |vlans: &[u16]| (0..ADDRESSES).map(|mac| padi(vlans, mac)).collect();
    [
        Kind {
            what: "one home on its line",
            frames: vec![padi(&[300, 4001], 1)],
            level: "mac",
            vlans: [Some(300), Some(4001)],
        },
        Kind {
            what: "one line with changing addresses",
            frames: changing(&[300, 4002]),
            level: "line",
            vlans: [Some(300), Some(4002)],
        },
        Kind {
            what: "changing addresses on a VLAN of many lines",
            frames: changing(&[900]),
            level: "vlan",
            vlans: [Some(900), None],
        },
    ]
}

pub fn run(fixture: &mut Fixture) -> Result<()> {
    at(fixture, 30_000, SHARE)
}

/// As fast as frames can be sent here.
pub fn fast(fixture: &mut Fixture) -> Result<()> {
    at(fixture, 1_000_000, FAST_SHARE)
}

fn at(fixture: &mut Fixture, per_second: u64, share: f64) -> Result<()> {
    let lab = fixture.without_site()?;
    let scenario = Scenario::open(lab)?;
    let alone = set_ups(lab)?;
    println!("        alone: {alone:.1} set-ups a second");
    for kind in kinds() {
        guard::limit("set-ups beside a flood");
        let flood = Flood::start(lab, kind.frames.clone(), per_second)?;
        let beside = set_ups(lab)?;
        let shown = offender(lab, &kind)?;
        let flooded = flood.end()?;
        println!(
            "        {}: {beside:.1} set-ups a second beside {flooded:.0} frames; {} dropped, held down for {} s",
            kind.what, shown.dropped, shown.held_seconds
        );
        ensure!(beside >= alone * share, "others are slower");
        ensure!(
            (shown.held_seconds > 0) == (kind.level == "mac"),
            "held down: {shown:?}"
        );
        is_told(lab, &shown)?;
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
fn offender(lab: &Lab, kind: &Kind) -> Result<Offender> {
    let text = Sluice::of(lab).run(&["show", "protection", "--json"])?;
    let all: Vec<Offender> = serde_json::from_str(&text).with_context(|| text.clone())?;
    let mut all = all.into_iter();
    let found = all.find(|row| {
        row.level == kind.level && [row.s_tag, row.c_tag] == kind.vlans && row.port == "access0"
    });
    found.with_context(|| format!("{} is not shown:\n{text}", kind.what))
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
