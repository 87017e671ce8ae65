mod kinds;

use crate::access_network::PASSWORD;
use crate::command::Sluice;
use crate::fixture::Fixture;
use crate::flood::Flood;
use crate::frames;
use crate::guard;
use crate::guard::PATIENCE;
use crate::leak_check::nothing_left;
use crate::load_tool::{INTERFACE, LoadTool};
use crate::losses::Losses;
use crate::probe::Probe;
use crate::scenario::{Crowd, Scenario};
use crate::site::UP;
use anyhow::{Context, Result, ensure};
use kinds::{Exceeded, Kind};
use lab::topology::{Lab, Place};
use northbound::{ListAlarmsResponse, Offender, Session};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Homes that connect meanwhile, and how many in a second.
const HOMES: u64 = 150;
const RATE: u64 = 50;
/// Number of the first of them. Their names and MAC addresses differ from those of the homes that stay online.
const FIRST: u32 = 1001;
/// Homes that stay online, half of them at the flooded user plane, and packets per second of all of them in both directions.
const ONLINE: u16 = 20;
const PACKETS: u32 = 1000;
/// What the rates of `protection` leave of the others' set-ups.
const SHARE: f64 = 0.97;
/// The same while the stranger takes a core of the machine, and the kernel drops frames before the user plane has seen them.
const FAST_SHARE: f64 = 0.5;
/// Frames per second of a flood: above every rate that it exceeds, and as many as one core can send.
const SPEED: u64 = 30_000;
const FAST: u64 = 1_000_000;
/// Interface of the homes that stay online.
const HOMES_PORT: &str = "homes0";
/// Percentage of packets of online homes that may be lost: the kernel drops some before the user plane receives them.
const LOST: u64 = 3;
/// Frames that the user plane itself drops, at least.
const DROPPED: u64 = 10_000;

/// MAC address of an interface.
pub(super) fn mac_of(lab: &Lab, place: Place, interface: &str) -> Result<[u8; 6]> {
    let netns = lab.netns(place);
    let text = netns.run(&["ip", "-o", "link", "show", "dev", interface])?;
    let mut words = text.split_whitespace();
    words.find(|word| *word == "link/ether");
    frames::mac(words.next().with_context(|| text.clone())?)
}

pub fn run(fixture: &mut Fixture) -> Result<()> {
    let lab = fixture.without_site()?;
    let mut world = World::open(lab)?;
    let session = world.session()?;
    for kind in kinds::discovery()
        .iter()
        .chain(&kinds::in_session(world.gateway, &session)?)
    {
        world.flood(kind, SPEED, SHARE)?;
    }
    world.close()
}

/// All kinds, also as fast as frames can be sent here.
pub fn fast(fixture: &mut Fixture) -> Result<()> {
    let lab = fixture.without_site()?;
    let mut world = World::open(lab)?;
    let session = world.session()?;
    let mut all = kinds::discovery();
    all.extend(kinds::in_session(world.gateway, &session)?);
    all.extend(kinds::others(world.gateway, lab)?);
    for kind in &all {
        world.flood(kind, SPEED, SHARE)?;
        world.flood(kind, FAST, FAST_SHARE)?;
    }
    world.close()
}

/// The daemons, homes that stay online, and the set-ups per second without a flood.
struct World<'a> {
    lab: &'a Lab,
    scenario: Scenario,
    online: Crowd,
    /// The gateway's MAC address at the homes.
    gateway: [u8; 6],
    alone: f64,
}

impl<'a> World<'a> {
    fn open(lab: &'a Lab) -> Result<Self> {
        let scenario = Scenario::open(lab)?;
        let mut online = Crowd::dial(lab, ONLINE, PACKETS)?;
        online.wait_online(&scenario, PATIENCE)?;
        online.hush(); // what was sent before they were online is not counted
        online.speak();
        // The homes need not read the flood's broadcasts.
        deafen(lab, HOMES_PORT)?;
        let alone = set_ups(lab)?;
        println!("        alone: {alone:.1} set-ups a second");
        Ok(World {
            lab,
            scenario,
            online,
            gateway: gateway_mac(lab)?,
            alone,
        })
    }

    /// A session of a home that is online at the flooded user plane.
    fn session(&self) -> Result<Session> {
        let text = Sluice::of(self.lab).run(&["show", "sessions", "--json"])?;
        let all: Vec<Session> = serde_json::from_str(&text).with_context(|| text.clone())?;
        let mut all = all.into_iter();
        let found = all.find(|session| session.user == "home1");
        found.with_context(|| format!("home1 is not there:\n{text}"))
    }

    /// Fails if a flood affects other homes twice. A set-up waits until it is stored on disk, and a few writes take this machine 230 ms.
    fn flood(&mut self, kind: &Kind, per_second: u64, share: f64) -> Result<()> {
        let enough = self.alone * share;
        ensure!(
            !self.is_affected(kind, per_second, enough)?
                || !self.is_affected(kind, per_second, enough)?,
            "twice, fewer than {enough:.1} homes connected per second, or more than {LOST} % of the packets were lost"
        );
        Ok(())
    }

    /// Whether fewer than `enough` homes connect per second beside a flood, or too many packets of others are lost.
    fn is_affected(&mut self, kind: &Kind, per_second: u64, enough: f64) -> Result<bool> {
        guard::limit("set-ups beside a flood");
        let [was, _] = self.online.hush();
        self.online.speak();
        let losses = Losses::of(self.lab)?;
        let flood = Flood::start(self.lab, kind.side, kind.frames.clone(), per_second)?;
        let beside = set_ups(self.lab)?;
        let shown = kind.exceeds.map(|exceeds| offender(self.lab, exceeds));
        let flooded = flood.end()?;
        let [is, _] = self.online.hush();
        self.online.speak();
        let (sent, lost) = is.since(&was);
        println!(
            "        {}: {beside:.1} set-ups a second beside {flooded:.0} frames, {lost} of {sent} packets of others lost",
            kind.what
        );
        let now = Losses::of(self.lab)?;
        now.print_since(&losses);
        let dropped = now.since(&losses, &format!("up1: {}", kind.dropped));
        ensure!(dropped > DROPPED, "{dropped} frames {}", kind.dropped);
        self.online.check()?;
        if let Some(shown) = shown.transpose()? {
            println!(
                "        {} dropped, held down {} times",
                shown.dropped, shown.holds
            );
            let is_held = shown.holds > 0;
            ensure!(is_held == (kind.dropped == "held-down"), "{shown:?}");
            is_told(self.lab, &shown)?;
        }
        Ok(beside < enough || lost * 100 > sent * LOST)
    }

    fn close(self) -> Result<()> {
        self.online.hang_up(&self.scenario, PATIENCE)?;
        nothing_left(self.lab, &self.scenario)?;
        self.scenario.close()
    }
}

/// Source address of a PADO.
fn gateway_mac(lab: &Lab) -> Result<[u8; 6]> {
    const ASKS: [u8; 6] = [2, 0x66, 0, 0, 0, 1];
    let (probe, begun) = (Probe::join(lab)?, Instant::now());
    probe.send(&frames::padi(ASKS, &[300, 4000]))?;
    loop {
        let frame = probe.receive()?.unwrap_or_default();
        if frames::ac_name(&frame, ASKS).is_some() {
            return frames::source(&frame);
        }
        ensure!(begun.elapsed() < PATIENCE, "nobody offers a session");
        sleep(Duration::from_millis(1));
    }
}

/// Keeps broadcasts and unknown unicast from an interface of the access network.
fn deafen(lab: &Lab, interface: &str) -> Result<()> {
    let deaf = format!("link set dev {interface} flood off mcast_flood off bcast_flood off");
    let words: Vec<&str> = ["bridge"].into_iter().chain(deaf.split(' ')).collect();
    lab.netns(Place::Access(UP)).run(&words).map(drop)
}

/// How many homes get online in a second, until 99 % are: of so few, one that loses a frame would decide. None of them fails.
fn set_ups(lab: &Lab) -> Result<f64> {
    let options = format!(
        "--homes {HOMES} --first {FIRST} --rate {RATE} --duration 1 --pps 0 --vlan 300-301.1-4000 --password {PASSWORD}"
    );
    let tool = LoadTool::start(lab, &options)?;
    // The tool need not read the flood's broadcasts.
    deafen(lab, &format!("{INTERFACE}-far"))?;
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
