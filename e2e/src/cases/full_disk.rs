use crate::access_network::AccessNetwork;
use crate::accounting::is;
use crate::disk;
use crate::fixture::Fixture;
use crate::frames::{ac_name, padi};
use crate::probe::Probe;
use crate::radius::ALONE;
use crate::site::{Setup, Site};
use anyhow::{Context, Result, ensure};
use cpe::State;
use lab::topology::Lab;
use serde_json::Value;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

const HOMES: u16 = 8;
const SOON: Duration = Duration::from_secs(20);
/// The folder of the disk in the lab's, and on it that of the state folders, which the daemons make.
const DISK: &str = "disk";
const BELOW: &str = "disk/state";
/// What fits on it.
const SIZE: &str = "size=32m";
/// Who only asks whether somebody is there, on a line of its own.
const MAC: [u8; 6] = [2, 0, 0, 0, 9, 9];
const TAGS: [u16; 2] = [300, 9];
/// A PADO is there long before.
const ANSWER: Duration = Duration::from_millis(500);
/// For how long it is looked at what goes on while the disk is full.
const FULL: Duration = Duration::from_secs(4);

/// While the disk is full nobody gets in, everybody who is online stays and talks, and what ends is written down later.
pub fn run(fixture: &mut Fixture) -> Result<()> {
    let lab = fixture.without_site()?;
    disk::apart(|| {
        let at = lab.dir().join(DISK);
        fs::create_dir_all(&at)?;
        disk::memory(&at, Some(SIZE))?;
        let mut site = Site::start(
            lab,
            &Setup {
                state: BELOW,
                ..Setup::default()
            },
        )?;
        let network = AccessNetwork::dial(lab, HOMES)?;
        network.wait_online(SOON)?;
        let probe = Probe::join(lab)?;
        ensure!(is_offered(&probe)?, "nobody answers a PADI");

        let ballast = fill(&at)?;
        let ended = site.sessions()?.swap_remove(0);
        site.sluice().run(&["clear", "session", &ended.id])?;
        site.wait_for("the alarm", SOON, |site| is_alarmed(site))?;
        while_full(&mut site, &network, &probe)?;
        let written = stops(lab, &ended.id)?;
        ensure!(
            written == 0,
            "its end is with RADIUS before it is on the disk"
        );

        fs::remove_file(ballast)?;
        site.wait_for("the alarm's end", SOON, |site| Ok(!is_alarmed(site)?))?;
        ensure!(
            is_offered(&probe)?,
            "nobody answers a PADI now that there is room"
        );
        network.wait("every home to be online again", SOON, |status| {
            status.at(State::Online) == u32::from(HOMES)
        })?;
        site.wait_for("its Accounting-Stop", SOON, |_| {
            Ok(stops(lab, &ended.id)? == 1)
        })?;
        network.hang_up(SOON)?;
        site.wait_empty(SOON)?;
        site.stop()
    })
}

/// All but one home stay online and hear the internet; a newcomer hears nothing, and it is counted why.
fn while_full(site: &mut Site, network: &AccessNetwork, probe: &Probe) -> Result<()> {
    let (since, before) = (Instant::now(), network.hush());
    network.speak();
    while since.elapsed() < FULL {
        ensure!(!is_offered(probe)?, "a PADI is answered");
        let online = network.status().at(State::Online);
        ensure!(online == u32::from(HOMES) - 1, "{online} homes are online");
    }
    let after = network.hush();
    network.speak();
    let (sent, arrived) = (after.0 - before.0, after.1 - before.1);
    println!("        {arrived} of {sent} packets arrived while the disk was full");
    ensure!(
        sent > 0 && arrived == sent,
        "of {sent} packets {arrived} arrived"
    );
    let refused = site.drops()?.count("store-behind")?;
    ensure!(refused > 0, "nobody was refused because of the store");
    Ok(())
}

/// Writes until nothing fits any more: the file.
fn fill(at: &Path) -> Result<std::path::PathBuf> {
    let ballast = at.join("ballast");
    let mut file = File::create(&ballast)?;
    let mut block: &[u8] = &[0; 1 << 16];
    while !block.is_empty() {
        match file.write(block) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::StorageFull => {
                block = &block[..block.len() / 2]
            }
            Err(error) => return Err(error).context("cannot fill the disk"),
        }
    }
    Ok(ballast)
}

/// Whether the gateway offers a session to somebody who asks now.
fn is_offered(probe: &Probe) -> Result<bool> {
    probe.send(&padi(MAC, TAGS))?;
    let begun = Instant::now();
    while begun.elapsed() < ANSWER {
        while let Some(frame) = probe.receive()? {
            if ac_name(&frame, MAC).is_some() {
                return Ok(true);
            }
        }
        sleep(Duration::from_millis(20));
    }
    Ok(false)
}

fn is_alarmed(site: &Site) -> Result<bool> {
    let found: Value = serde_json::from_str(&site.sluice().run(&["show", "alarms", "--json"])?)?;
    let alarms = found["alarms"].as_array().context("no alarms")?;
    Ok(alarms
        .iter()
        .any(|alarm| alarm["name"] == "store-not-written"))
}

/// How many Accounting-Stops of a session are with RADIUS.
fn stops(lab: &Lab, session: &str) -> Result<usize> {
    let records = ALONE.accounting_of(lab, session)?;
    Ok(records.iter().filter(|record| is(record, "Stop")).count())
}
