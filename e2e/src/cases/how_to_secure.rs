use crate::access_network::{AccessNetwork, impatient};
use crate::fixture::Fixture;
use crate::frames;
use crate::guard::{self, PATIENCE};
use crate::page::{self, Block};
use crate::probe::Probe;
use crate::site::{CONFIGURED_AS, Setup, Site, UP};
use crate::sniff::{Capture, tshark};
use crate::tunnel::{Machine, Underlay};
use anyhow::{Context, Result, ensure};
use lab::topology::{Lab, Place};
use northbound::{Association, AssociationState};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The addresses of the page on the network between the machines.
const OUTSIDE: [&str; 2] = ["10.0.0.1", "10.0.0.2"];
/// The homes' numbers: the names of all begin with [`NAMES`].
const HOMES: std::ops::RangeInclusive<u16> = 1010..=1029;
const NAMES: &str = "home10";
/// What the planes say to each other, and names that they say.
const PLAIN: &str = "pfcp || gtp || udp.port == 8805 || udp.port == 2152";
/// What may be on the network between the machines: the tunnel and what finds neighbours.
const TUNNEL: &str = "udp.port == 51820 || arp || icmpv6";
/// Octets of a tag that nobody knows: the PADI is as large as a PADI may be (RFC 2516 §5.1).
const FILLING: u16 = 1484 - 6 - 4 - 4;
/// How often the home asks.
const AGAIN: Duration = Duration::from_secs(1);
/// What counts messages of strangers in either plane.
const UNKNOWN: &str = "pfcp-unknown-peer";
/// The supervisor's pause before it starts the tunnel again.
const PAUSE: Duration = Duration::from_secs(1);

pub fn run(fixture: &mut Fixture) -> Result<()> {
    let page = page::of_how_to("secure-the-planes.md")?;
    let lab = fixture.without_site()?.part("tunnel")?;
    let done = secured(&lab, &page);
    guard::limit("how-to-secure");
    match done {
        Ok(()) => lab.close(),
        Err(error) => {
            lab.close_keeping_logs()?;
            Err(error)
        }
    }
}

/// The page, and what its blocks are for.
struct HowTo<'l> {
    blocks: &'l [Block],
    cp: Machine<'l>,
    up: Machine<'l>,
}

impl HowTo<'_> {
    /// The blocks of a language.
    fn of<const N: usize>(&self, language: &str) -> Result<[&Block; N]> {
        let blocks = self
            .blocks
            .iter()
            .filter(|block| block.language == language);
        let blocks: Vec<&Block> = blocks.collect();
        let count = blocks.len();
        let blocks = blocks.try_into().ok();
        blocks.with_context(|| format!("{count} blocks of {language}"))
    }

    /// Makes a key as the page says; the public one.
    fn key(&self, machine: &Machine<'_>) -> Result<String> {
        let [keys, ..] = self.of::<4>("sh")?;
        Ok(machine.run(&keys.commands)?.trim().to_owned())
    }

    /// Fills the keys in where the page has their names.
    fn configure(&self, public: &[String; 2]) -> Result<()> {
        let [[cp], [up]] = [self.of("control-plane")?, self.of("user-plane")?];
        for (machine, block, theirs, public) in [
            (&self.cp, cp, "PUBLIC-KEY-OF-UP1", &public[1]),
            (&self.up, up, "PUBLIC-KEY-OF-THE-CONTROL-PLANE", &public[0]),
        ] {
            let private = machine.private_key()?;
            let text = block
                .commands
                .replace("PRIVATE-KEY-OF-THIS-MACHINE", &private);
            let text = text.replace(theirs, public);
            ensure!(!text.contains("-KEY-"), "a key is missing:\n{text}");
            machine.configure(&text)?;
        }
        Ok(())
    }

    /// A block that both machines get.
    fn both(&self, block: &Block) -> Result<()> {
        for machine in [&self.cp, &self.up] {
            machine.run(&block.commands)?;
        }
        Ok(())
    }

    /// What operators look at.
    fn checks(&self, site: &Site) -> Result<()> {
        let [associations] = self.of("sluice")?;
        for line in associations.commands.lines() {
            let shown = site.sluice().run(&line.split(' ').collect::<Vec<_>>())?;
            let page = associations.shows.as_deref().unwrap_or_default();
            page::compare(&shown, &page.replace("up1", CONFIGURED_AS))?;
        }
        for block in self.of::<3>("cp-sh")? {
            let shown = self.cp.run(&block.commands)?;
            match &block.shows {
                Some(page) => page::compare(&shown, page)?,
                None => ensure!(shown.trim().is_empty(), "{}: {shown}", block.commands),
            }
        }
        Ok(())
    }
}

fn secured(lab: &Lab, blocks: &[Block]) -> Result<()> {
    let underlay = Underlay::build(lab, OUTSIDE)?;
    let how_to = HowTo {
        blocks,
        cp: Machine::new(lab, Place::ControlPlane, "machine-cp")?,
        up: Machine::new(lab, Place::UserPlane(UP), "machine-up")?,
    };
    let [_, start, firewall, reload] = how_to.of("sh")?;
    let mut public = [how_to.key(&how_to.cp)?, how_to.key(&how_to.up)?];
    how_to.configure(&public)?;
    let (place, port) = underlay.tap();
    let outside = Capture::start(lab, place, port, "outside")?;
    how_to.both(start)?;
    let inside = Capture::start(lab, Place::ControlPlane, "wg0", "inside")?;
    let [rules] = how_to.of("nft")?;
    for machine in [&how_to.cp, &how_to.up] {
        machine.set_firewall(&rules.commands)?;
    }
    how_to.both(firewall)?;

    let mut site = Site::start(lab, &Setup::default())?;
    let done = (|| {
        let homes = AccessNetwork::dial_as(lab, HOMES.map(impatient).collect())?;
        homes.wait_online(PATIENCE)?;
        how_to.checks(&site).context("step 5 of the page")?;
        offered(lab)?;
        inner(&inside.finish()?)?;

        let sessions = ids(&site)?;
        ensure!(sessions.len() == HOMES.len(), "{} sessions", sessions.len());
        let killed = || restart(lab, &how_to.cp, start, || Ok(()));
        lossless(&homes, killed).context("the control plane's tunnel is killed")?;
        let lost = || {
            wait_association(&site, AssociationState::Down)?;
            wait_alarm(&site)
        };
        let killed = || restart(lab, &how_to.up, start, lost);
        lossless(&homes, killed).context("the user plane's tunnel is killed")?;
        wait_association(&site, AssociationState::Up)?;
        let replaced = || {
            public[1] = how_to.key(&how_to.up)?;
            how_to.configure(&public)?;
            how_to.both(reload)?;
            let shown = how_to.cp.run("wg show wg0 peers")?;
            ensure!(
                shown.trim() == public[1],
                "the peer has its old key: {shown}"
            );
            offered(lab)
        };
        lossless(&homes, replaced).context("step 6 of the page")?;
        outer(&outside.finish()?)?;
        ensure!(ids(&site)? == sessions, "other sessions than before");

        knock(&underlay, &how_to, &mut site).context("a stranger")?;
        site.sluice().ledger()?;
        let (homes, _) = homes.hang_up(PATIENCE)?;
        ensure!(homes.ends.is_empty(), "sessions ended: {:?}", homes.ends);
        site.wait_empty(PATIENCE)
    })();
    let done = done.with_context(|| site.tails());
    site.stop().and(done)
}

fn ids(site: &Site) -> Result<Vec<String>> {
    let mut ids: Vec<String> = site
        .sessions()?
        .into_iter()
        .map(|session| session.id)
        .collect();
    ids.sort();
    Ok(ids)
}

fn association(site: &Site) -> Result<Association> {
    let text = site.sluice().run(&["show", "associations", "--json"])?;
    let associations: Vec<Association> = serde_json::from_str(&text)?;
    associations.into_iter().next().context("no association")
}

/// A home asks who is there until it is answered: in frames that do not fit into the tunnel's MTU, and by way of both planes.
fn offered(lab: &Lab) -> Result<()> {
    let probe = Probe::join(lab)?;
    let mac = [2, 0, 0x5d, 0, 0, 1];
    let mut padi = frames::padi(mac, &[300, 1]);
    let length = padi.len();
    padi[length - 6..length - 4].copy_from_slice(&(4 + 4 + FILLING).to_be_bytes());
    padi.extend([0x01, 0x05]); // Vendor-Specific
    padi.extend(FILLING.to_be_bytes());
    padi.resize(padi.len() + usize::from(FILLING), 0);
    let begun = Instant::now();
    let mut asked = None;
    loop {
        if asked.is_none_or(|asked: Instant| asked.elapsed() > AGAIN) {
            probe.send(&padi)?;
            asked = Some(Instant::now());
        }
        match probe.receive()? {
            Some(frame) if frames::ac_name(&frame, mac).is_some() => return Ok(()),
            Some(_) => {}
            None => sleep(Duration::from_millis(5)),
        }
        ensure!(begun.elapsed() < PATIENCE, "no PADO");
    }
}

/// Waits until the association is in this state.
fn wait_association(site: &Site, state: AssociationState) -> Result<()> {
    let begun = Instant::now();
    loop {
        let association = association(site)?;
        if association.state() == state {
            return Ok(());
        }
        ensure!(begun.elapsed() < PATIENCE, "not {state:?}: {association:?}");
        sleep(Duration::from_millis(100));
    }
}

/// Waits until the alarm of the page is raised.
fn wait_alarm(site: &Site) -> Result<()> {
    let begun = Instant::now();
    loop {
        let alarms = site.sluice().run(&["show", "alarms"])?;
        if alarms.contains("user-plane-lost") {
            return Ok(());
        }
        ensure!(begun.elapsed() < PATIENCE, "no alarm: {alarms}");
        sleep(Duration::from_millis(100));
    }
}

/// Lets something happen under traffic, of which nothing may be lost.
fn lossless(homes: &AccessNetwork, happens: impl FnOnce() -> Result<()>) -> Result<()> {
    let before = homes.hush();
    homes.speak();
    happens()?;
    let now = homes.hush();
    homes.speak();
    let (sent, arrived) = (now.0 - before.0, now.1 - before.1);
    ensure!(
        sent > 0 && sent == arrived,
        "{arrived} of {sent} packets arrived"
    );
    Ok(())
}

/// The process that keeps the tunnel is killed; a supervisor starts it again.
fn restart(
    lab: &Lab,
    machine: &Machine<'_>,
    start: &Block,
    meanwhile: impl FnOnce() -> Result<()>,
) -> Result<()> {
    machine.kill_tunnel()?;
    sleep(PAUSE);
    meanwhile()?;
    machine.run(&start.commands)?;
    offered(lab)
}

/// How many packets of a capture match.
fn count(file: &Path, filter: &str) -> Result<usize> {
    Ok(tshark(file, filter, &["frame.number"])?.len())
}

/// What is looked for outside of the tunnel is inside.
fn inner(file: &Path) -> Result<()> {
    let mut counts = Vec::new();
    for filter in ["pfcp", "gtp", &named(), "ip.flags.mf == 1"] {
        let count = count(file, filter)?;
        ensure!(count > 0, "no {filter} inside of the tunnel");
        counts.push(format!("{count} {filter}"));
    }
    println!("        inside: {}", counts.join(", "));
    Ok(())
}

/// Nothing of it is outside, and nothing but the tunnel.
fn outer(file: &Path) -> Result<()> {
    let tunnel = count(file, "wg.type == 4")?;
    ensure!(tunnel > 0, "no tunnel");
    println!("        outside: {tunnel} packets of the tunnel");
    for filter in [PLAIN, &named(), &format!("!({TUNNEL})")] {
        let fields = ["frame.number", "_ws.col.Protocol", "_ws.col.Info"];
        let found = tshark(file, filter, &fields)?;
        let first = &found[..found.len().min(5)];
        ensure!(
            found.is_empty(),
            "{} packets match {filter} outside of the tunnel, the first: {first:#?}",
            found.len()
        );
    }
    Ok(())
}

fn named() -> String {
    format!("frame contains \"{NAMES}\"")
}

/// A stranger's messages do not come to the planes; it is the firewall that keeps them away.
fn knock(underlay: &Underlay<'_>, how_to: &HowTo<'_>, site: &mut Site) -> Result<()> {
    let [cp, up] = OUTSIDE;
    let (cp, up) = (
        [UP.control_plane(), cp.parse()?],
        [UP.management(), up.parse()?],
    );
    let (before, drops) = (dropped(how_to)?, site.drops()?);
    let sent = underlay.knock(&[cp, up].concat())?;
    let forged = underlay.knock_as_control_plane(&up)?;
    let counted = dropped(how_to)? - before;
    ensure!(
        counted == sent + forged,
        "the firewalls dropped {counted} of the {sent} + {forged} packets of the stranger"
    );
    let now = site.drops()?;
    let mut noticed = now.since(&drops);
    noticed.retain(|(_, name, _)| name.starts_with("pfcp"));
    ensure!(
        noticed.is_empty(),
        "the planes noticed the stranger: {noticed:?}"
    );

    how_to.up.run("nft delete table inet planes")?;
    underlay.knock(&up)?;
    site.wait_for("the stranger to be noticed", PATIENCE, |site| {
        Ok(site.drops()?.count(UNKNOWN)? > now.count(UNKNOWN)?)
    })
}

/// What the firewalls have dropped before the planes.
fn dropped(how_to: &HowTo<'_>) -> Result<u64> {
    Ok(how_to.cp.dropped()?[0] + how_to.up.dropped()?[0])
}
