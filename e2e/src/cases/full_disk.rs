use super::commits::commit;
use crate::access_network::AccessNetwork;
use crate::accounting::is;
use crate::disk;
use crate::fixture::Fixture;
use crate::frames::{ac_name, padi};
use crate::guard::PATIENCE;
use crate::probe::Probe;
use crate::radius::ALONE;
use crate::site::{CONFIGURED_AS, Setup, Site};
use anyhow::{Context, Result, ensure};
use control::store::check;
use cpe::State;
use lab::topology::Lab;
use northbound::{CommitRequest, ConfigurationClient};
use serde_json::Value;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

const HOMES: u16 = 8;
/// The folder of the disk in the lab's, and on it that of the state folders, which the daemons make.
const DISK: &str = "disk";
const BELOW: &str = "disk/state";
/// What fits on it.
const SIZE: &str = "size=32m";
/// Who only asks whether somebody is there, on a line of its own. Where no offer may come it has another MAC address each time:
/// a late offer is not taken for one of now.
const MAC: [u8; 6] = [2, 0, 0, 0, 9, 0];
const TAGS: [u16; 2] = [300, 9];
/// How long an offer is waited for before it is asked again.
const ANSWER: Duration = Duration::from_millis(500);
/// How long it is waited where no offer may come: so many times what it took when one came.
const TIMES_UNANSWERED: u32 = 4;
/// For how long it is looked at what goes on while the disk is full.
const FULL: Duration = Duration::from_secs(4);

/// While the disk is full nobody gets in, everybody who is online stays and talks, nothing is committed, and what ends is
/// written down later.
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
        network.wait_online(PATIENCE)?;
        let probe = Probe::join(lab)?;
        let silence = ANSWER.max(TIMES_UNANSWERED * offered(&probe)?);

        let ballast = fill(&at)?;
        let ended = site.sessions()?.swap_remove(0);
        let state = lab.dir().join(BELOW);
        ensure!(!is_over(&state, &ended.id)?, "the store lacks a session");
        site.sluice().run(&["clear", "session", &ended.id])?;
        site.wait_for("the alarm", PATIENCE, |site| is_alarmed(site))?;
        while_full(&mut site, &network, &probe, silence)?;
        let request = refused(lab)?;
        // the last page of the store's log may have room for it
        let written = stops(lab, &ended.id)? > 0;
        ensure!(
            !written || is_over(&state, &ended.id)?,
            "its end is with RADIUS before it is on the disk"
        );
        if written {
            println!("        its end found room on the disk");
        }

        fs::remove_file(ballast)?;
        site.wait_for("the alarm's end", PATIENCE, |site| Ok(!is_alarmed(site)?))?;
        accepted(lab, request)?;
        offered(&probe).context("now that there is room")?;
        network.wait("every home to be online again", PATIENCE, |status| {
            status.at(State::Online) == u32::from(HOMES)
        })?;
        site.wait_for("its Accounting-Stop", PATIENCE, |_| {
            Ok(stops(lab, &ended.id)? == 1)
        })?;
        ensure!(is_over(&state, &ended.id)?, "the store has it still");
        network.hang_up(PATIENCE)?;
        site.wait_empty(PATIENCE)?;
        site.stop()
    })
}

/// All but one home stay online and hear the internet; a newcomer hears nothing, and it is counted why.
fn while_full(
    site: &mut Site,
    network: &AccessNetwork,
    probe: &Probe,
    silence: Duration,
) -> Result<()> {
    let (since, before) = (Instant::now(), network.hush());
    network.speak();
    let mut mac = MAC;
    while since.elapsed() < FULL {
        mac[5] += 1;
        ensure!(!is_offered(probe, mac, silence)?, "a PADI is answered");
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

/// Nothing is committed, the reason is said, and all is as it was on both planes. What was asked for.
fn refused(lab: &Lab) -> Result<CommitRequest> {
    let before = state(lab)?;
    let base = client(lab)?.get(None)?.version;
    let hold = ["user-planes", CONFIGURED_AS, "hold-sessions", "120"];
    let user = ["users", "nobody", "password", "secret"];
    let request = commit(base, &[&hold, &user]);
    let done = client(lab)?.commit(request.clone())?;
    let [fault] = &done.faults[..] else {
        anyhow::bail!("expected one fault: {done:?}");
    };
    let file = format!("{:06}.yaml", base + 1);
    ensure!(
        fault.message.contains(&file) && fault.message.contains("No space left on device"),
        "{fault:?}"
    );
    let after = state(lab)?;
    ensure!(after == before, "before:\n{before}\nafter:\n{after}");
    println!("        a commit: {}", fault.message);
    Ok(request)
}

/// What was refused while the disk was full is done now that there is room.
fn accepted(lab: &Lab, request: CommitRequest) -> Result<()> {
    let before = client(lab)?.get(None)?.version;
    let done = client(lab)?.commit(request)?;
    ensure!(
        done.version == before + 1 && done.faults.is_empty() && done.pending.is_empty(),
        "{done:?}"
    );
    let now = client(lab)?.get(None)?;
    ensure!(
        now.version == done.version && now.document.contains("hold-sessions"),
        "{now:?}"
    );
    Ok(())
}

/// What is in force and kept on either plane.
fn state(lab: &Lab) -> Result<String> {
    let mut client = client(lab)?;
    let (current, managed) = (client.get(None)?, client.managed()?);
    let document = fs::read_to_string(lab.dir().join(BELOW).join("up/document"))?;
    let versions = client.versions()?;
    Ok(format!(
        "{current:?}\n{managed:?}\n{document}\n{versions:?}"
    ))
}

fn client(lab: &Lab) -> Result<ConfigurationClient> {
    let socket = lab.dir().join("cp.sock");
    Ok(ConfigurationClient::connect(&socket, PATIENCE)?)
}

/// Asks until the gateway offers a session; how long that took.
fn offered(probe: &Probe) -> Result<Duration> {
    let begun = Instant::now();
    while !is_offered(probe, MAC, ANSWER)? {
        ensure!(begun.elapsed() < PATIENCE, "nobody answers a PADI");
    }
    Ok(begun.elapsed())
}

/// Whether the gateway offers a session within this time to somebody who asks now.
fn is_offered(probe: &Probe, mac: [u8; 6], within: Duration) -> Result<bool> {
    probe.send(&padi(mac, &TAGS))?;
    let begun = Instant::now();
    while begun.elapsed() < within {
        while let Some(frame) = probe.receive()? {
            if ac_name(&frame, mac).is_some() {
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

/// Whether a session's end is on the disk: it is written together with its Accounting-Stop.
fn is_over(state: &Path, session: &str) -> Result<bool> {
    let seid = u64::from_str_radix(session, 16)?.to_be_bytes();
    let key = [b"session/", &seid[..]].concat();
    let live = check(&state.join("store"))?.live;
    Ok(live.iter().all(|(of, _)| *of != key))
}

/// How many Accounting-Stops of a session are with RADIUS.
fn stops(lab: &Lab, session: &str) -> Result<usize> {
    let records = ALONE.accounting_of(lab, session)?;
    Ok(records.iter().filter(|record| is(record, "Stop")).count())
}
