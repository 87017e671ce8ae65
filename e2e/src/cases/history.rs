use crate::command::Sluice;
use crate::fixture::{Fixture, Stage};
use crate::guard::PATIENCE;
use crate::home::Home;
use crate::radius::{ALONE, FreeRadius, SECRET};
use crate::site::{Setup, UP, daemon};
use anyhow::{Context, Result, ensure};
use lab::topology::{INTERNET_V4, Place};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::net::UnixStream;
use std::process::Command;

pub fn run(fixture: &mut Fixture) -> Result<()> {
    let mut stage = fixture.stage(&Setup::default())?;
    let sluice = stage.site.sluice();
    refused(&mut stage, &sluice)?;
    let alice = Home::build(stage.vm, 42)?;
    let address = alice.dial("alice", "wonderland")?.local;
    let began = online(&mut stage, &sluice, &alice, address)?;
    die(&mut stage)?;
    ensure!(
        holder(&sluice, address, None)?["from"] == began["from"],
        "a crash changed since when alice has {address}"
    );
    alice.ping(&INTERNET_V4.to_string(), 2)?;
    servers_out(&mut stage, &sluice)?;
    alice.hang_up()?;
    stage.site.wait_empty(PATIENCE)?;
    die(&mut stage)?;
    ended(&sluice, address, &began)?;
    acknowledged(&mut stage, &sluice)?;
    copied(&sluice)?;
    let all = sluice.run(&["show", "events", "--json"])?;
    for secret in ["wonderland", "guess", SECRET] {
        ensure!(
            !all.contains(secret),
            "`{secret}` is in the history:\n{all}"
        );
    }
    Ok(())
}

/// A copy of the history can be read by others while the daemon works: it is sound, and has as many events as are shown.
fn copied(sluice: &Sluice) -> Result<()> {
    const READ: &str = "import sqlite3, sys
copy = sqlite3.connect(f'file:{sys.argv[1]}?mode=ro', uri=True)
print(copy.execute('pragma integrity_check').fetchone()[0])
print(copy.execute('select count(*) from event').fetchone()[0])";
    let count = || -> Result<usize> {
        let shown = sluice.run(&["show", "events", "--last", "100000", "--json"])?;
        Ok(serde_json::from_str::<Vec<Value>>(&shown)?.len())
    };
    let before = count()?;
    let said = sluice.run(&["backup", "history"])?;
    let path = said.split_whitespace().next().unwrap_or_default();
    let read = Command::new("/usr/bin/python3")
        .args(["-c", READ, path])
        .output()?;
    let read = String::from_utf8_lossy(&read.stdout).into_owned();
    let is_whole = (before..=count()?).any(|events| read == format!("ok\n{events}\n"));
    ensure!(is_whole, "{said}: {read}, and {before} events are shown");
    Ok(())
}

/// A wrong password: the answer is in the events, and `explain` says so.
fn refused(stage: &mut Stage<'_>, sluice: &Sluice) -> Result<()> {
    let home = Home::build(stage.vm, 41)?;
    home.start_pppd("mallory", "guess")?;
    home.wait_exit(PATIENCE)?;
    stage
        .site
        .wait_for("the refusal in the history", PATIENCE, |_| {
            let events = events(sluice, "mallory")?;
            Ok(events.iter().any(|event| event["kind"] == "refused"))
        })?;
    let said = sluice.run(&["explain", "mallory"])?;
    ensure!(
        said.contains("mallory is not online: RADIUS server group radius refused it at"),
        "{said}"
    );
    let unknown = sluice.run(&["explain", "malory"])?;
    ensure!(unknown.contains("Nothing is known of malory"), "{unknown}");
    Ok(())
}

/// Who has the address now is who was given it; by any name it is found.
fn online(
    stage: &mut Stage<'_>,
    sluice: &Sluice,
    home: &Home<'_>,
    address: Ipv4Addr,
) -> Result<Value> {
    // The other family, too, and the way to the disk.
    home.wait_ipv6()?;
    stage
        .site
        .wait_for("both families in the history", PATIENCE, |_| {
            let known = events(sluice, &address.to_string())?;
            Ok(known.iter().any(|event| !event["ipv6_prefix"].is_null()))
        })?;
    let held = holder(sluice, address, None)?;
    let who = &held["subscriber"];
    ensure!(
        held["now"] == true && who["user"] == "alice" && who["mac"] == home.mac().as_str(),
        "{held:#}"
    );
    let id = who["session"].as_str().context("no session")?;
    for subject in ["alice", &home.mac(), id, &address.to_string()] {
        let found = events(sluice, subject)?;
        ensure!(
            found
                .iter()
                .any(|e| e["kind"] == "online" || e["kind"] == "changed"),
            "`{subject}` finds {found:#?}"
        );
        let said = sluice.run(&["explain", subject])?;
        ensure!(
            said.contains("alice is online since") && said.contains("has the session's rules"),
            "`{subject}`: {said}"
        );
    }
    Ok(held)
}

/// A user plane ends. Who has acknowledged the alarm is known after a kill of the control plane, until the user plane is back.
fn acknowledged(stage: &mut Stage<'_>, sluice: &Sluice) -> Result<()> {
    const ALARM: &str = "user-plane-lost";
    stage.site.up.stop()?;
    let wait = |stage: &mut Stage<'_>, there| {
        let what = match there {
            true => "the alarm",
            false => "the alarm to be cleared",
        };
        stage.site.cp.wait_until(what, PATIENCE, || {
            raised(sluice).is_ok_and(|all| all.iter().any(|name| name == ALARM) == there)
        })
    };
    wait(stage, true)?;
    let words = ["acknowledge", "alarm", ALARM, "--comment", "power cut"];
    sluice.run(&words)?;
    let known = || -> Result<Value> {
        let found: Value = serde_json::from_str(&sluice.run(&["show", "alarms", "--json"])?)?;
        let alarms = found["alarms"].as_array().into_iter().flatten();
        let own = alarms.clone().find(|alarm| alarm["name"] == ALARM);
        Ok(own.context("it is not raised")?["acknowledged"].clone())
    };
    let before = known()?;
    ensure!(
        before["by"] == "root" && before["comment"] == "power cut",
        "{before}"
    );
    let page = sluice.run(&["show", "alarms"])?;
    ensure!(page.contains("root: power cut"), "{page}");
    kill(Pid::from_raw(stage.site.cp.id()), Signal::SIGKILL)?;
    restart_control_plane(stage)?;
    ensure!(known()? == before, "after a kill: {}", known()?);
    stage.site.up = daemon(
        stage.lab,
        Place::UserPlane(UP),
        "sluice-up",
        &stage.lab.dir().join("up.yaml"),
    )?;
    wait(stage, false)?;
    // what became of an alarm is written a moment later
    let expected = [
        ("alarm-raised", ""),
        ("alarm-acknowledged", "root"),
        ("alarm-cleared", ""),
    ];
    stage
        .site
        .wait_for("the events of the alarm", PATIENCE, |_| {
            let printed = sluice.run(&["show", "events", "--json"])?;
            let events: Vec<Value> = serde_json::from_str(&printed)?;
            let own = events.iter().filter(|event| event["alarm"] == ALARM);
            let told = own.map(|event| {
                let of = |field: &str| event[field].as_str().unwrap_or_default();
                (of("kind"), of("by"))
            });
            Ok(told.collect::<Vec<_>>().ends_with(&expected))
        })
}

/// The control plane dies with kill -9 and is started again.
fn die(stage: &mut Stage<'_>) -> Result<()> {
    kill(Pid::from_raw(stage.site.cp.id()), Signal::SIGKILL)?;
    restart_control_plane(stage)?;
    let log = stage.site.cp.log().to_owned();
    stage
        .site
        .cp
        .wait_until("its access port to be open", PATIENCE, || {
            std::fs::read_to_string(&log)
                .is_ok_and(|text| text.contains("access port is open for subscribers"))
        })
}

/// The control plane is started, and answers.
fn restart_control_plane(stage: &mut Stage<'_>) -> Result<()> {
    let (site, dir) = (&mut *stage.site, stage.lab.dir());
    site.cp.stop()?;
    site.cp = daemon(
        stage.lab,
        Place::ControlPlane,
        "sluice-cp",
        &dir.join("cp.yaml"),
    )?;
    let socket = dir.join("cp.sock");
    site.cp
        .wait_until("its API", PATIENCE, || UnixStream::connect(&socket).is_ok())
}

/// Nobody has the address any more; who had it then is known, and why no longer.
fn ended(sluice: &Sluice, address: Ipv4Addr, began: &Value) -> Result<()> {
    let now = who(sluice, address, None)?;
    // The second in which the session ended is still the session's.
    let found = ["holders", "others"].map(|key| now[key].as_array().map(Vec::as_slice));
    let found = found.into_iter().flatten().flatten();
    let last = found.last().context("no holder, and none before")?;
    ensure!(
        last["now"] == false && last["subscriber"]["session"] == began["subscriber"]["session"],
        "{now:#}"
    );
    let from = began["from"].as_u64().context("since when?")?;
    let ago = now["at"].as_u64().context("no time")? - from;
    let then = holder(sluice, address, Some(&format!("-{ago}s")))?;
    ensure!(
        then["subscriber"]["session"] == began["subscriber"]["session"]
            && then["from"] == began["from"]
            && then["ended_because"] == "user request",
        "{then:#}"
    );
    let said = sluice.run(&["explain", "alice"])?;
    ensure!(
        said.contains("alice is not online: its session ended at"),
        "{said}"
    );
    Ok(())
}

/// The server ends: an alarm is raised when somebody is asked about in vain, and cleared when it answers again.
fn servers_out(stage: &mut Stage<'_>, sluice: &Sluice) -> Result<()> {
    let server = stage.site.radius.take().context("no server")?;
    server.stop()?;
    let bob = Home::build(stage.vm, 43)?;
    bob.start_pppd("alice", "wonderland")?;
    stage.site.wait_for("the alarm", PATIENCE, |_| {
        Ok(raised(sluice)?.iter().any(|name| name == "aaa-group-out"))
    })?;
    bob.wait_exit(PATIENCE)?;
    stage.site.radius = Some(FreeRadius::start(stage.lab, &ALONE, SECRET)?);
    let again = Home::build(stage.vm, 44)?;
    again.dial("alice", "wonderland")?;
    stage
        .site
        .wait_for("the alarm to be cleared", PATIENCE, |_| {
            Ok(!raised(sluice)?.iter().any(|name| name.starts_with("aaa-")))
        })?;
    again.hang_up()?;
    // What is not wrong any more is written down a moment later.
    let mut kinds = Vec::new();
    let cleared = stage.site.wait_for("the alarm's end", PATIENCE, |_| {
        kinds = past_of(sluice, "aaa-group-out")?;
        Ok(kinds == ["alarm-raised", "alarm-cleared"])
    });
    cleared.with_context(|| format!("raised and cleared once each: {kinds:?}"))
}

/// What became of an alarm, in order.
fn past_of(sluice: &Sluice, alarm: &str) -> Result<Vec<String>> {
    let printed = sluice.run(&["show", "alarms", "history", "--json"])?;
    let past: Vec<Value> = serde_json::from_str(&printed)?;
    let own = past.iter().filter(|event| event["alarm"] == alarm);
    let kinds = own.filter_map(|event| event["kind"].as_str());
    Ok(kinds.map(str::to_owned).collect())
}

fn raised(sluice: &Sluice) -> Result<Vec<String>> {
    let found: Value = serde_json::from_str(&sluice.run(&["show", "alarms", "--json"])?)?;
    let alarms = found["alarms"].as_array().context("no alarms")?;
    let names = alarms.iter().filter_map(|alarm| alarm["name"].as_str());
    Ok(names.map(str::to_owned).collect())
}

fn events(sluice: &Sluice, subject: &str) -> Result<Vec<Value>> {
    let printed = sluice.run(&["show", "events", subject, "--json"])?;
    Ok(serde_json::from_str(&printed)?)
}

fn who(sluice: &Sluice, address: impl Into<IpAddr>, at: Option<&str>) -> Result<Value> {
    let address = address.into().to_string();
    let mut words = vec!["who", &address, "--json"];
    words.extend(at.map(|time| ["at", time]).iter().flatten());
    Ok(serde_json::from_str(&sluice.run(&words)?)?)
}

/// The one who has, or had, the address.
fn holder(sluice: &Sluice, address: Ipv4Addr, at: Option<&str>) -> Result<Value> {
    let found = who(sluice, address, at)?;
    match found["holders"].as_array().map(Vec::as_slice) {
        Some([one]) => Ok(one.clone()),
        _ => anyhow::bail!("not one holder of {address}: {found:#}"),
    }
}
