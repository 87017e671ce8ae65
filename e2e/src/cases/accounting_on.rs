use crate::access_network::{AccessNetwork, impatient};
use crate::accounting::{AccountingRecords, is, text};
use crate::fixture::Fixture;
use crate::guard::PATIENCE;
use crate::radius::{ALONE, Entry};
use crate::site::{Setup, Site, daemon};
use crate::sniff::{Capture, tshark};
use anyhow::{Result, ensure};
use lab::topology::{Lab, Place};
use std::os::unix::net::UnixStream;
use std::thread::sleep;
use std::time::Duration;
use wire::pppoe::AccessLine;

const HOMES: u16 = 3;
/// Rates that the access node says, in kbit/s.
const UP: u32 = 20_000;
const DOWN: u32 = 100_000;
/// Time in which a record that must not be sent would arrive.
const QUIET: Duration = Duration::from_secs(2);

/// A start and a planned end are told to FreeRADIUS only while no session lives on. What the access node says of a line is in all
/// requests about its sessions, in the units of RADIUS.
pub fn run(fixture: &mut Fixture) -> Result<()> {
    let lab = fixture.without_site()?;
    let (known, heard) = (ALONE.records(lab)?.len(), ALONE.announcements(lab)?.len());
    let expression = "udp port 1812 or udp port 1813";
    let wire = Capture::of(lab, Place::ControlPlane, "lo", "radius", expression)?;
    let (lab, site) = fixture.site(&Setup::default())?;
    announced(lab, site, heard, &["Accounting-On"])?;

    let homes = (1..=HOMES).map(|number| {
        let mut home = impatient(number);
        describe_line(number, &mut home.access_line);
        home
    });
    let homes = AccessNetwork::dial_as(lab, homes.collect())?;
    homes.wait_online(PATIENCE)?;
    started(lab, site, known)?;
    restart(lab, site)?;
    ensure!(
        site.sessions()?.len() == usize::from(HOMES),
        "sessions are lost"
    );
    announced(lab, site, heard, &["Accounting-On"])?;
    limited(site)?;

    homes.hang_up(PATIENCE)?;
    site.wait_empty(PATIENCE)?;
    site.wait_for("every Stop", PATIENCE, |_| {
        let records = ALONE.records(lab)?.split_off(known);
        Ok(AccountingRecords::of(records)?.with("Stop") == usize::from(HOMES))
    })?;
    restart(lab, site)?;
    let all = ["Accounting-On", "Accounting-Off", "Accounting-On"];
    announced(lab, site, heard, &all)?;
    recorded(&ALONE.records(lab)?.split_off(known))?;
    judged(wire)
}

/// Data of the access node's tag.
fn describe_line(number: u16, out: &mut Vec<u8>) {
    let (circuit_id, up, down) = (
        format!("olt1 1/2/{number}"),
        UP.to_be_bytes(),
        DOWN.to_be_bytes(),
    );
    let line = AccessLine {
        circuit_id: Some(circuit_id.as_bytes()),
        remote_id: None,
        others: vec![(0x81, &up), (0x82, &down), (0x90, &[2, 2, 1]), (0xfe, &[])],
    };
    line.emit(out);
}

/// The rate of a session is a part of that of its line, if the profile says so.
fn limited(site: &Site) -> Result<()> {
    let sluice = site.sluice();
    sluice.configure("set subscriber-profiles standard line-rate-percent 90")?;
    for session in site.sessions()? {
        let page = sluice.run(&["show", "session", &session.id])?;
        let row = page
            .lines()
            .find(|line| line.starts_with("rate down"))
            .unwrap_or_default();
        let rate = format!("{} kbit/s", DOWN / 10 * 9);
        ensure!(row.contains(&rate) && row.contains("line"), "{page}");
    }
    sluice.configure("delete subscriber-profiles standard line-rate-percent")
}

/// Waits until FreeRADIUS has the Start of every home.
fn started(lab: &Lab, site: &mut Site, known: usize) -> Result<()> {
    site.wait_for("every Start", PATIENCE, |_| {
        let records = ALONE.records(lab)?.split_off(known);
        Ok(AccountingRecords::of(records)?.with("Start") == usize::from(HOMES))
    })
}

/// The control plane is asked to end, and started again.
fn restart(lab: &Lab, site: &mut Site) -> Result<()> {
    site.cp.stop()?;
    start(lab, site)
}

/// Starts a control plane that was stopped.
pub fn start(lab: &Lab, site: &mut Site) -> Result<()> {
    let place = Place::ControlPlane;
    site.cp = daemon(lab, place, "sluice-cp", &lab.dir().join("cp.yaml"))?;
    let socket = lab.dir().join("cp.sock");
    site.cp
        .wait_until("its API", PATIENCE, || UnixStream::connect(&socket).is_ok())
}

/// FreeRADIUS was told this of the gateway itself, after what it had heard before, and nothing more.
fn announced(lab: &Lab, site: &mut Site, heard: usize, expected: &[&str]) -> Result<()> {
    site.wait_for(&expected.join(", "), PATIENCE, |_| {
        Ok(ALONE.announcements(lab)?.len() >= heard + expected.len())
    })?;
    sleep(QUIET);
    let found = ALONE.announcements(lab)?.split_off(heard);
    let same = found
        .iter()
        .zip(expected)
        .all(|(entry, kind)| is(entry, kind));
    ensure!(
        same && found.len() == expected.len(),
        "expected {expected:?}, not {found:#?}"
    );
    Ok(())
}

/// FreeRADIUS reads in the records what the access node has said.
fn recorded(records: &[Entry]) -> Result<()> {
    let (up, down) = ((UP * 1000).to_string(), (DOWN * 1000).to_string());
    for record in records {
        let rates = text(record, "Connect-Info")?.trim_matches('"').to_owned();
        ensure!(
            text(record, "Actual-Data-Rate-Upstream")? == up
                && text(record, "Actual-Data-Rate-Downstream")? == down
                && rates == format!("{down}/{up}")
                && text(record, "Access-Loop-Encapsulation")? == "0x020201",
            "{record:#?}"
        );
        text(record, "Acct-Multi-Session-Id")?;
    }
    Ok(())
}

/// tshark reads the same in every request about a session, and complains about nothing.
fn judged(wire: Capture) -> Result<()> {
    let file = wire.finish()?;
    let fields = [
        "radius.Actual_Data_Rate_Upstream",
        "radius.Actual_Data_Rate_Downstream",
    ];
    let about_sessions = "radius.User_Name && (radius.code == 1 || radius.code == 4)";
    let rates = tshark(&file, about_sessions, &fields)?;
    let right = format!("{}\t{}", UP * 1000, DOWN * 1000);
    ensure!(
        rates.len() >= 3 * usize::from(HOMES) && rates.iter().all(|found| *found == right),
        "{rates:?}"
    );
    let wrong = "_ws.malformed || radius && _ws.expert.severity >= 0x600000";
    let wrong = tshark(&file, wrong, &["frame.number", "_ws.expert.message"])?;
    ensure!(wrong.is_empty(), "tshark complains: {wrong:?}");
    Ok(())
}
