use super::{HOMES, Judge, TRAFFIC, UP, change, sessions};
use crate::command::Sluice;
use crate::guard::PATIENCE;
use crate::radius::{FreeRadius, SECRET, radclient};
use crate::scenario::{Crowd, Newcomer, Scenario};
use anyhow::{Context, Result, ensure};
use lab::access_network::PORT;
use lab::daemon::Daemon;
use lab::topology::{CP_MANAGEMENT_V4, Lab};
use northbound::Session;
use std::net::IpAddr;
use std::thread::sleep;
use std::time::{Duration, Instant};

const UNREADABLE: &str = "deny in tcp from any to any http";

/// Rules that FreeRADIUS sends of each subscriber (NAS-Filter-Rule) hold from the Access-Accept on, through deaths, and change while packets
/// pass. A rule that cannot be read lets nobody in.
pub fn run(lab: &Lab, scenario: Scenario) -> Result<Scenario> {
    let users = lab.dir().join("users-with-rules");
    let before = std::fs::read_to_string(FreeRadius::users())?;
    let rules = format!(
        "{before}\tNAS-Filter-Rule = \"deny in udp from assigned to any {PORT}\",
\tNAS-Filter-Rule += \"permit in ip from any to any\"

unreadable\tCleartext-Password := \"rule\"
\tNAS-Filter-Rule = \"{UNREADABLE}\"
"
    );
    std::fs::write(&users, rules)?;
    let scenario = scenario.with_users(lab, &users)?;
    let sluice = Sluice::of(lab);
    let mut crowd = Crowd::dial(lab, HOMES, TRAFFIC)?;
    crowd.wait_online(&scenario, PATIENCE)?;
    let mut judge = Judge {
        crowd: &mut crowd,
        sluice: &sluice,
    };
    judge.is_lost("denied-up", "NAS-Filter-Rule in the Access-Accept")?;
    is_explained(&sluice)?;
    for daemon in [Daemon::ControlPlane, Daemon::UserPlane(UP)] {
        scenario.gateway.kill(daemon)?;
        scenario.gateway.wait_ready(daemon, PATIENCE)?;
        judge.settles("denied-up")?;
        judge.is_lost("denied-up", "after a death")?;
    }
    changes(lab, &mut judge)?;
    is_refused(lab, &sluice)?;
    judge.nothing_is_lost("what was refused changes nothing")?;
    crowd.check()?;
    sluice.ledger()?;
    crowd.hang_up(&scenario, PATIENCE)?;
    Ok(scenario)
}

/// Who asks is told which rule drops the packets, and where it comes from.
fn is_explained(sluice: &Sluice) -> Result<()> {
    let said = sluice.run(&["explain", "home1"])?;
    for part in [
        "rule 1 of its NAS-Filter-Rule from RADIUS",
        &format!("deny in udp from assigned to any {PORT}"),
    ] {
        ensure!(said.contains(part), "no `{part}`:\n{said}");
    }
    let all = sessions(sluice)?.into_iter();
    let mut own = all.filter(|session| session.user == "home1");
    let id = own.next().context("home1 is not there")?.id;
    let shown = sluice.run(&["show", "session", &id])?;
    let rules =
        format!("deny in udp from assigned to any {PORT}; permit in ip from any to any (aaa)");
    ensure!(shown.contains(&rules), "no `{rules}`:\n{shown}");
    is_watched(sluice, &id)
}

/// Who asks for it is shown how many packets of a session each rule matches, and nobody else's.
fn is_watched(sluice: &Sluice, id: &str) -> Result<()> {
    sluice.run(&["watch", "session", id, "--seconds", "600"])?;
    let hits = format!(": NAS-Filter-Rule 1: deny in udp from assigned to any {PORT}");
    let begun = Instant::now();
    loop {
        let shown = sluice.run(&["show", "session", id])?;
        if shown.contains(&hits) && shown.contains("hits up") {
            break;
        }
        ensure!(begun.elapsed() < PATIENCE, "no `{hits}`:\n{shown}");
        sleep(Duration::from_millis(200));
    }
    sluice.run(&["watch", "session", id, "--seconds", "0"])?;
    let shown = sluice.run(&["show", "session", id])?;
    ensure!(!shown.contains("hits up"), "it is watched still:\n{shown}");
    Ok(())
}

/// A change replaces the rules of both directions.
fn changes(lab: &Lab, judge: &mut Judge<'_>) -> Result<()> {
    let all: Vec<Session> = sessions(judge.sluice)?;
    let ids: Vec<String> = all.into_iter().map(|session| session.id).collect();
    let deny = format!("NAS-Filter-Rule = \"deny out udp from any to assigned {PORT}\"");
    change(lab, &ids, &deny)?;
    judge.is_lost("denied-down", "a change to rules of the other direction")?;
    // what comes behind the rules does not count for what they permit
    change(lab, &ids, "Filter-Id = closed.in")?;
    let permit = "NAS-Filter-Rule = \"permit in ip from any to any\", NAS-Filter-Rule += \"permit out ip from any to any\"";
    change(lab, &ids, permit)?;
    judge.nothing_is_lost("rules that permit everything, before a policy that denies everything")
}

/// A rule that cannot be read is refused with its text: in a change, and of a subscriber that connects.
fn is_refused(lab: &Lab, sluice: &Sluice) -> Result<()> {
    let request = format!("User-Name = home1, NAS-Filter-Rule = \"{UNREADABLE}\"");
    let to = IpAddr::from(CP_MANAGEMENT_V4);
    let said = radclient(lab, to, "coa", SECRET, &request, PATIENCE)?;
    let is_nak = said.contains("Received CoA-NAK") && said.contains("Invalid-Attribute-Value");
    ensure!(is_nak, "{request}: {said}");
    let newcomer = Newcomer::dial_as(lab, UP, 1, 1, ("unreadable", "rule"))?;
    let begun = Instant::now();
    loop {
        let said = sluice.run(&["explain", "unreadable"])?;
        if said.contains(&format!("NAS-Filter-Rule `{UNREADABLE}`")) {
            break;
        }
        ensure!(begun.elapsed() < PATIENCE, "the rule is not named:\n{said}");
        sleep(Duration::from_millis(200));
    }
    newcomer.hang_up(PATIENCE)
}
