use super::rates::{count, is_all, lost};
use crate::command::Sluice;
use crate::fixture::Fixture;
use crate::guard::PATIENCE;
use crate::radius::{ALONE, SECRET, radclient};
use crate::scenario::{Crowd, Newcomer, Scenario};
use crate::sniff::{Capture, tshark};
use anyhow::{Context, Result, ensure};
use cpe::State;
use lab::daemon::Daemon;
use lab::topology::{CP_MANAGEMENT_V4, CP_MANAGEMENT_V6, Lab, Place, UserPlane};
use northbound::Session;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::thread::sleep;
use std::time::{Duration, Instant};

const HOMES: u16 = 10;
/// Packets a second of all homes.
const TRAFFIC: u32 = 4000;
/// Changes that radclient asks for at once, some at a time.
const CHANGES: usize = 5000;
const COUNTER: &str = "rate-exceeded-down";
/// Begin of the addresses in pools from which nobody gets one by itself.
const WALLED: &str = "100.96.0.";
const WALLED6: &str = "2001:db8:f000:";
const NEXT_POOLS: &str = "Framed-Pool = walled, Framed-IPv6-Pool = walled6";

/// What radclient is told was done is done to packets, also after a restart; what it is told was rejected has changed nothing.
pub fn run(fixture: &mut Fixture) -> Result<()> {
    let lab = fixture.without_site()?;
    let scenario = Scenario::open(lab)?;
    let sluice = Sluice::of(lab);
    for (client, address) in [
        ("ipv4", IpAddr::from(CP_MANAGEMENT_V4)),
        ("ipv6", IpAddr::from(CP_MANAGEMENT_V6)),
    ] {
        let client = format!("set aaa dynamic-authorization clients {client}");
        sluice.configure(&format!(
            "{client} address {address}\n{client} secret-key {SECRET}"
        ))?;
    }
    sluice.configure("set subscriber-profiles slow rate-down 8")?;
    let wire = Capture::of(lab, Place::ControlPlane, "lo", "coa", "udp port 3799")?;
    let mut crowd = Crowd::dial(lab, HOMES, TRAFFIC)?;
    crowd.wait_online(&scenario, PATIENCE)?;
    let ids: Vec<String> = sessions(&sluice)?.into_iter().map(|s| s.id).collect();
    ensure!(ids.len() == usize::from(HOMES), "{} sessions", ids.len());

    let none = lost(&mut crowd, COUNTER, &sluice, |_| Ok(true))?;
    ensure!(none == (0, 0), "before: {none:?} are lost");
    let began = Instant::now();
    change(lab, &ids, "Filter-Id = slow")?;
    println!(
        "        {} changes acknowledged in {:?}",
        ids.len(),
        began.elapsed()
    );
    limited(&mut crowd, &sluice).context("after the change")?;
    scenario.gateway.kill(Daemon::ControlPlane)?;
    scenario
        .gateway
        .wait_ready(Daemon::ControlPlane, PATIENCE)?;
    limited(&mut crowd, &sluice).context("after a restart")?;
    change(lab, &ids, "Filter-Id = home, Session-Timeout = 86400")?;
    let none = lost(&mut crowd, COUNTER, &sluice, |_| Ok(true))?;
    ensure!(none == (0, 0), "after the change back: {none:?} are lost");
    smaller(lab, &sluice, &ids)?;
    let has = addresses(&sluice)?;
    sluice.configure(&format!(
        "set ipv4-pools walled prefix {WALLED}0/24\nset ipv6-pools walled6 prefix {WALLED6}:/48"
    ))?;
    let none = lost(&mut crowd, COUNTER, &sluice, |_| {
        change(lab, &ids, NEXT_POOLS)?;
        Ok(true)
    })?;
    ensure!(
        none == (0, 0),
        "with other pools to come: {none:?} are lost"
    );
    ensure!(addresses(&sluice)? == has, "sessions have other addresses");
    reconnected(lab, &scenario, &sluice)?;

    hurried(lab, &ids)?;
    rejected(lab, &ids)?;
    let none = lost(&mut crowd, COUNTER, &sluice, |_| Ok(true))?;
    ensure!(none == (0, 0), "after rejected changes: {none:?} are lost");
    crowd.check()?;
    reauthenticated(lab, &sluice)?;
    disconnected(lab, &sluice)?;
    sluice.ledger()?;
    let events = sluice.run(&["show", "events", "home1"])?;
    ensure!(
        events.contains("RADIUS server"),
        "the history says nothing:\n{events}"
    );
    crowd.hang_up(&scenario, PATIENCE)?;
    scenario.close()?;
    judged(&wire.finish()?)
}

fn sessions(sluice: &Sluice) -> Result<Vec<Session>> {
    let text = sluice.run(&["show", "sessions", "--json"])?;
    serde_json::from_str(&text).with_context(|| format!("not sessions: {text}"))
}

/// Everybody gets these attributes; half of the requests come by IPv6.
fn change(lab: &Lab, ids: &[String], attributes: &str) -> Result<()> {
    for (n, id) in ids.iter().enumerate() {
        let request = format!("Acct-Session-Id = \"{id}\", {attributes}");
        let to = match n % 2 {
            0 => IpAddr::from(CP_MANAGEMENT_V4),
            _ => IpAddr::from(CP_MANAGEMENT_V6),
        };
        let said = radclient(lab, to, "coa", SECRET, &request, PATIENCE)?;
        ensure!(said.contains("Received CoA-ACK"), "{request}: {said}");
    }
    Ok(())
}

fn limited(crowd: &mut Crowd, sluice: &Sluice) -> Result<()> {
    let (lost, dropped) = lost(crowd, COUNTER, sluice, |n| Ok(n > 100))?;
    println!("        {lost} packets lost, {dropped} {COUNTER}");
    ensure!(
        is_all(COUNTER, lost, dropped),
        "{lost} packets are lost, {dropped} are {COUNTER}"
    );
    Ok(())
}

/// Some packets are larger than the MTU that RADIUS sets, and no longer so when it takes it back.
fn smaller(lab: &Lab, sluice: &Sluice, ids: &[String]) -> Result<()> {
    let before = count(sluice, "too-big")?;
    change(lab, ids, "Framed-MTU = 1400")?;
    let shown = sluice.run(&["explain", "home1"])?;
    ensure!(shown.contains("1400"), "no MTU of 1400:\n{shown}");
    let begun = Instant::now();
    while count(sluice, "too-big")? == before {
        ensure!(begun.elapsed() < PATIENCE, "every packet is small enough");
        sleep(Duration::from_millis(100));
    }
    change(lab, ids, "Framed-MTU = 1492")
}

/// Sessions with their addresses.
fn addresses(sluice: &Sluice) -> Result<BTreeMap<String, [Option<String>; 2]>> {
    let all = sessions(sluice)?.into_iter();
    Ok(all.map(|s| (s.id, [s.ipv4, s.ipv6_prefix])).collect())
}

/// A home has addresses of the pools that RADIUS has named when it connects again, although the control plane dies meanwhile, twice.
fn reconnected(lab: &Lab, scenario: &Scenario, sluice: &Sluice) -> Result<()> {
    let own = || {
        let mut all = sessions(sluice)?.into_iter();
        let own = all.find(|session| session.user == "home10003");
        own.context("home10003 has no session")
    };
    let has = |session: &Session| (session.ipv4.clone(), session.ipv6_prefix.clone());
    let restart = || {
        scenario.gateway.kill(Daemon::ControlPlane)?;
        scenario.gateway.wait_ready(Daemon::ControlPlane, PATIENCE)
    };
    let home = Newcomer::dial_on(lab, UserPlane::One, 3, 3)?;
    home.wait_online(PATIENCE)?;
    let before = own()?;
    change(lab, std::slice::from_ref(&before.id), NEXT_POOLS)?;
    restart()?;
    let after = own()?;
    ensure!(has(&after) == has(&before), "{after:?} after {before:?}");
    let shown = sluice.run(&["show", "session", &before.id])?;
    let to_come = "next connection   IPv4 pool walled, IPv6 pool walled6";
    ensure!(shown.contains(to_come), "it does not say:\n{shown}");
    home.hang_up(PATIENCE)?;
    restart()?;
    for _ in 0..2 {
        let home = Newcomer::dial_on(lab, UserPlane::One, 3, 3)?;
        home.wait_online(PATIENCE)?;
        let (ipv4, ipv6) = has(&own()?);
        let is_of =
            |address: Option<String>, prefix| address.is_some_and(|a| a.starts_with(prefix));
        ensure!(
            is_of(ipv4.clone(), WALLED) && is_of(ipv6.clone(), WALLED6),
            "it has {ipv4:?} and {ipv6:?}"
        );
        home.hang_up(PATIENCE)?;
    }
    Ok(())
}

/// Many changes at once, each of which has to be acknowledged; how fast, is printed.
fn hurried(lab: &Lab, ids: &[String]) -> Result<()> {
    let request = |n: usize| {
        let (id, mtu) = (&ids[n % ids.len()], 1490 + n / ids.len() % 2);
        format!("Acct-Session-Id = \"{id}\", Framed-MTU = {mtu}\n")
    };
    let requests: Vec<String> = (0..CHANGES).map(request).collect();
    let begun = Instant::now();
    let to = CP_MANAGEMENT_V4.into();
    let said = radclient(lab, to, "coa", SECRET, &requests.join("\n"), PATIENCE)?;
    let (took, acks) = (begun.elapsed(), said.matches("Received CoA-ACK").count());
    ensure!(
        acks == CHANGES,
        "{acks} of {CHANGES} are acknowledged:\n{said}"
    );
    let rate = CHANGES as f64 / took.as_secs_f64();
    println!("        {CHANGES} changes acknowledged in {took:?}: {rate:.0} a second");
    Ok(())
}

/// Half of a request that cannot be done as a whole is not done, and why is said.
fn rejected(lab: &Lab, ids: &[String]) -> Result<()> {
    let own = format!("Acct-Session-Id = \"{}\"", ids[0]);
    for (request, cause) in [
        (
            format!("{own}, Filter-Id = nowhere, Framed-MTU = 1000"),
            "Invalid-Attribute-Value",
        ),
        (
            format!("{own}, Framed-MTU = 1000, Framed-Pool = nowhere"),
            "Invalid-Attribute-Value",
        ),
        (
            format!("{own}, Filter-Id = slow, Login-TCP-Port = 23"),
            "Unsupported-Attribute",
        ),
        (
            format!("{own}, Filter-Id = slow, NAS-Identifier = other"),
            "NAS-Identification-Mismatch",
        ),
        (
            format!("{own}, User-Name = nobody, Filter-Id = slow"),
            "Session-Context-Not-Found",
        ),
        ("Filter-Id = slow".into(), "Missing-Attribute"),
    ] {
        let said = radclient(
            lab,
            CP_MANAGEMENT_V4.into(),
            "coa",
            SECRET,
            &request,
            PATIENCE,
        )?;
        let is_rejected = said.contains("Received CoA-NAK") && said.contains(cause);
        ensure!(is_rejected, "{request}: expected {cause}:\n{said}");
    }
    let slow = format!("{own}, Filter-Id = slow");
    let said = radclient(
        lab,
        CP_MANAGEMENT_V4.into(),
        "coa",
        "another",
        &slow,
        Duration::from_secs(2),
    )?;
    ensure!(said.contains("No reply"), "with another secret:\n{said}");
    Ok(())
}

/// A session whose time is over is authenticated again by CHAP, and stays the same one.
fn reauthenticated(lab: &Lab, sluice: &Sluice) -> Result<()> {
    let frank = Newcomer::dial_as(lab, UserPlane::One, 2, 2, ("frank", "again"))?;
    frank.wait_online(PATIENCE)?;
    let own = || {
        let mut all = sessions(sluice)?.into_iter();
        let own = all.find(|session| session.user == "frank");
        own.context("frank has no session")
    };
    let (before, first) = (ALONE.accepted(lab)?, own()?);
    let begun = Instant::now();
    while ALONE.accepted(lab)? < before + 2 {
        ensure!(begun.elapsed() < PATIENCE, "the server is not asked again");
        sleep(Duration::from_millis(100));
    }
    let last = own()?;
    ensure!(
        (&last.id, last.ipv4) == (&first.id, first.ipv4),
        "it is another session: {} after {}",
        last.id,
        first.id
    );
    let online = frank.status().at(State::Online);
    ensure!(online == 1, "the home has noticed");
    frank.hang_up(PATIENCE)
}

fn disconnected(lab: &Lab, sluice: &Sluice) -> Result<()> {
    let newcomer = Newcomer::dial_on(lab, UserPlane::One, 1, 1)?;
    newcomer.wait_online(PATIENCE)?;
    let user = "User-Name = home10001";
    let to = CP_MANAGEMENT_V4.into();
    let ask = || radclient(lab, to, "disconnect", SECRET, user, PATIENCE);
    let said = ask()?;
    ensure!(said.contains("Received Disconnect-ACK"), "{said}");
    let left = sessions(sluice)?
        .into_iter()
        .filter(|s| s.user == "home10001");
    ensure!(
        left.count() == 0,
        "it is acknowledged, and the session is there"
    );
    let begun = Instant::now();
    while newcomer.status().at(State::Online) > 0 {
        ensure!(begun.elapsed() < PATIENCE, "the home does not know");
        sleep(Duration::from_millis(20));
    }
    let said = ask()?;
    let is_gone = said.contains("Received Disconnect-NAK") || said.contains("Disconnect-ACK");
    ensure!(is_gone, "{said}");
    newcomer.hang_up(PATIENCE)
}

/// tshark reads every message and verifies the answers.
fn judged(file: &std::path::Path) -> Result<()> {
    let codes = tshark(file, "radius", &["radius.code"])?;
    for (code, what) in [
        ("40", "Disconnect-Request"),
        ("41", "Disconnect-ACK"),
        ("43", "CoA-Request"),
        ("44", "CoA-ACK"),
        ("45", "CoA-NAK"),
    ] {
        ensure!(codes.iter().any(|seen| seen == code), "no {what}");
    }
    let wrong = tshark(
        file,
        "_ws.malformed || _ws.expert.severity >= 0x600000",
        &["frame.number", "_ws.col.Info", "_ws.expert.message"],
    )?;
    ensure!(wrong.is_empty(), "tshark complains:\n{}", wrong.join("\n"));
    Ok(())
}
