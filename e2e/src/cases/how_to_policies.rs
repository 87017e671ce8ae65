use crate::command::Sluice;
use crate::fixture::Fixture;
use crate::guard::PATIENCE;
use crate::page;
use crate::radius::radclient;
use crate::scenario::{Newcomer, Scenario};
use anyhow::{Context, Result, ensure};
use lab::topology::{CP_MANAGEMENT_V4, UserPlane};
use northbound::SubscriberState;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The secret that the page chooses for changes.
const CHANGES: &str = "changes-of-authorization";

/// What `explain --json` says of sessions.
#[derive(serde::Deserialize)]
struct Explained {
    sessions: Vec<SubscriberState>,
}

pub fn run(fixture: &mut Fixture) -> Result<()> {
    let blocks = page::of_how_to("policies.md")?;
    let of = |language: &str| -> Vec<&str> {
        let blocks = blocks.iter().filter(|block| block.language == language);
        blocks.map(|block| block.commands.as_str()).collect()
    };
    let lab = fixture.without_site()?;
    let users = lab.dir().join("users");
    std::fs::write(&users, of("users").join("\n"))?;
    let scenario = Scenario::open_with(lab, &users)?;
    let sluice = Sluice::of(lab);
    for commands in of("sluice") {
        let edits: Vec<&str> = commands.lines().filter(|l| l.starts_with("set ")).collect();
        sluice.configure(&edits.join("\n"))?;
    }
    let frank = Newcomer::dial_as(lab, UserPlane::One, 1, 1, ("frank", "flute"))?;
    frank.wait_online(PATIENCE)?;
    has(&sluice, "policy_up", "walled", "aaa")?;
    has(&sluice, "policy_down", "home-down", "profile")?;
    let [change] = of("coa")[..] else {
        anyhow::bail!("one change is on the page");
    };
    let to = CP_MANAGEMENT_V4.into();
    let said = radclient(lab, to, "coa", CHANGES, change, PATIENCE)?;
    ensure!(said.contains("Received CoA-ACK"), "{said}");
    has(&sluice, "policy_up", "home-up", "aaa")?;
    let grace = Newcomer::dial_as(lab, UserPlane::One, 2, 2, ("grace", "harp"))?;
    grace.wait_online(PATIENCE)?;
    let rules = "deny in tcp from any to any 22; permit in ip from any to any; deny out tcp from any to assigned 80,443";
    has_of(&sluice, "grace", ("filter_rules", rules, "aaa"))?;
    grace.hang_up(PATIENCE)?;
    frank.hang_up(PATIENCE)?;
    scenario.close()
}

/// Waits until a setting of Frank has a value of an origin.
fn has(sluice: &Sluice, name: &str, value: &str, origin: &str) -> Result<()> {
    has_of(sluice, "frank", (name, value, origin))
}

/// Waits until a setting of a user has a value of an origin.
fn has_of(sluice: &Sluice, user: &str, (name, value, origin): (&str, &str, &str)) -> Result<()> {
    let begun = Instant::now();
    loop {
        let text = sluice.run(&["explain", user, "--json"])?;
        let explained: Explained = serde_json::from_str(&text).context(text.clone())?;
        let state = explained.sessions.first().context("nobody is there")?;
        let setting = state.policy.iter().find(|setting| setting.name == name);
        if setting.is_some_and(|own| own.value == value && own.origin == origin) {
            return Ok(());
        }
        ensure!(
            begun.elapsed() < PATIENCE,
            "{name} of {user} is not {value}: {setting:?}"
        );
        sleep(Duration::from_millis(100));
    }
}
