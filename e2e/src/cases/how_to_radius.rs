use crate::command::Sluice;
use crate::fixture::Fixture;
use crate::guard::PATIENCE;
use crate::page::{self, Block};
use crate::radius::radclient;
use crate::scenario::{Newcomer, Scenario};
use anyhow::{Context, Result, ensure};
use lab::topology::{CP_MANAGEMENT_V4, Lab, UserPlane};
use northbound::{Session, SubscriberState};
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The secret that the page chooses for changes.
const CHANGES: &str = "changes-of-authorization";

pub fn run(fixture: &mut Fixture) -> Result<()> {
    let blocks = page::of_how_to("radius.md")?;
    let lab = fixture.without_site()?;
    let entries = [of(&blocks, "users-first"), of(&blocks, "users")].concat();
    let users = users_file(lab, &entries)?;
    let scenario = Scenario::open_with(lab, &users)?;
    let sluice = Sluice::of(lab);
    for commands in of(&blocks, "sluice") {
        let edits: Vec<&str> = commands.lines().filter(|l| l.starts_with("set ")).collect();
        sluice.configure(&edits.join("\n"))?;
    }
    let [test] = &blocks
        .iter()
        .filter(|b| b.language == "sh")
        .collect::<Vec<_>>()[..]
    else {
        anyhow::bail!("one test of AAA is on the page");
    };
    let said = sluice.tell(&["test", "aaa", "carol@example.net"], "singer\n")?;
    ensure!(
        test.commands == "sluice test aaa carol@example.net\n",
        "{test:?}"
    );
    page::compare(&said, test.shows.as_deref().unwrap_or_default())?;
    let dial = |number: u16, user: &str, password: &str| {
        let newcomer = Newcomer::dial_as(lab, UserPlane::One, number, number, (user, password))?;
        newcomer.wait_online(PATIENCE).context(user.to_owned())?;
        anyhow::Ok(newcomer)
    };
    let alice = dial(1, "alice@example.net", "wonderland")?;
    let bob = dial(2, "bob@business.example.net", "builder")?;
    let carol = dial(3, "carol@example.net", "singer")?;
    let dave = dial(4, "dave@example.net", "sleeper")?;
    let erin = dial(5, "erin@example.net", "painter")?;

    let session = session(&sluice, "alice@example.net")?;
    ensure!(session.ipv4.as_deref() == Some("198.18.7.1"), "{session:?}");
    let routes = ["198.18.7.8/29 metric 1", "2001:db8:77::/48 metric 1"];
    let has = |route: &&str| session.routes.iter().any(|own| own == route);
    ensure!(routes.iter().all(has), "{session:?}");
    pool(&sluice, "bob@business.example.net", "100.80.0.")?;
    rates(&sluice, ["2000 kbit/s", "8000 kbit/s"])?;

    let [change] = &of(&blocks, "coa")[..] else {
        anyhow::bail!("one change is on the page");
    };
    asked(lab, "coa", change, "Received CoA-ACK")?;
    rates(&sluice, ["4000 kbit/s", "16000 kbit/s"])?;

    let [again] = &of(&blocks, "authorize")[..] else {
        anyhow::bail!("one request to be asked is on the page");
    };
    asked(lab, "coa", again, "Request-Initiated")?;
    let begun = Instant::now();
    while let Err(why) = rates(&sluice, ["2000 kbit/s", "8000 kbit/s"]) {
        ensure!(begun.elapsed() < PATIENCE, "{why:#}");
        sleep(Duration::from_millis(100));
    }

    pool(&sluice, "dave@example.net", "100.96.0.")?;
    let paid = entries
        .join("\n")
        .replace("\tFramed-Pool = \"walled\"\n", "");
    let paid = users_file(lab, &[paid])?;
    let scenario = scenario.with_users(lab, &paid)?;
    let [end] = &of(&blocks, "disconnect")[..] else {
        anyhow::bail!("one disconnection is on the page");
    };
    asked(lab, "disconnect", end, "Received Disconnect-ACK")?;
    // its router tries again
    dave.hang_up(PATIENCE)?;
    let dave = dial(4, "dave@example.net", "sleeper")?;
    pool(&sluice, "dave@example.net", "100.64.")?;

    let [next] = &of(&blocks, "coa-next")[..] else {
        anyhow::bail!("one change for the next connection is on the page");
    };
    asked(lab, "coa", next, "Received CoA-ACK")?;
    pool(&sluice, "carol@example.net", "100.64.")?;
    carol.hang_up(PATIENCE)?;
    let carol = dial(3, "carol@example.net", "singer")?;
    pool(&sluice, "carol@example.net", "100.96.0.")?;
    for newcomer in [alice, bob, carol, dave, erin] {
        newcomer.hang_up(PATIENCE)?;
    }
    scenario.close()
}

/// The blocks of a language.
fn of(blocks: &[Block], language: &str) -> Vec<String> {
    let blocks = blocks.iter().filter(|block| block.language == language);
    blocks.map(|block| block.commands.clone()).collect()
}

/// A file with these entries.
fn users_file(lab: &Lab, entries: &[String]) -> Result<PathBuf> {
    let file = lab.dir().join("users");
    std::fs::write(&file, entries.join("\n"))?;
    Ok(file)
}

fn session(sluice: &Sluice, user: &str) -> Result<Session> {
    let text = sluice.run(&["show", "sessions", "--json"])?;
    let sessions: Vec<Session> = serde_json::from_str(&text)?;
    let own = sessions.into_iter().find(|session| session.user == user);
    own.with_context(|| format!("{user} has no session:\n{text}"))
}

fn pool(sluice: &Sluice, user: &str, prefix: &str) -> Result<()> {
    let session = session(sluice, user)?;
    let is_of_pool = session
        .ipv4
        .as_ref()
        .is_some_and(|own| own.starts_with(prefix));
    ensure!(is_of_pool, "expected {prefix}…: {session:?}");
    Ok(())
}

/// What `explain --json` says of sessions.
#[derive(serde::Deserialize)]
struct Explained {
    sessions: Vec<SubscriberState>,
}

/// Carol's rates, up and down.
fn rates(sluice: &Sluice, expected: [&str; 2]) -> Result<()> {
    let text = sluice.run(&["explain", "carol@example.net", "--json"])?;
    let explained: Explained = serde_json::from_str(&text).context(text.clone())?;
    let state = explained.sessions.first().context("carol is not there")?;
    let value = |name: &str| {
        let setting = state.policy.iter().find(|setting| setting.name == name);
        setting.map(|setting| setting.value.clone())
    };
    let has = [value("rate_up"), value("rate_down")];
    let expected = expected.map(|rate| Some(rate.to_owned()));
    ensure!(has == expected, "{has:?}, expected {expected:?}");
    Ok(())
}

fn asked(lab: &Lab, kind: &str, request: &str, answer: &str) -> Result<()> {
    let said = radclient(
        lab,
        CP_MANAGEMENT_V4.into(),
        kind,
        CHANGES,
        request,
        PATIENCE,
    )?;
    ensure!(said.contains(answer), "{request}: {said}");
    Ok(())
}
