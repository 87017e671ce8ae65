use crate::accounting::text;
use crate::command::Sluice;
use crate::fixture::Fixture;
use crate::guard::PATIENCE;
use crate::scenario::{Crowd, Newcomer, Scenario};
use anyhow::{Context, Result, ensure};
use cpe::{End, State};
use lab::daemon::Daemon;
use lab::topology::{Lab, UserPlane};
use northbound::{
    AaaRole, AaaServer, AaaServerState, Association, AssociationState, Pool, Session,
};
use northbound::{RouteKind, UserPlane as Plane};
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::thread::sleep;
use std::time::{Duration, Instant};

const HOMES: u16 = 1000;
/// Of them at the user plane that is drained.
const HALF: usize = 500;
/// Packets a second, of all homes together.
const TRAFFIC: u32 = 2000;
/// How many sessions are to end in a second.
const RATE: u32 = 50;
/// By how much the measured rate may be higher.
const TOLERANCE: f64 = 0.2;
/// How long at least nobody answers a home that dials in at a user plane that is drained.
const UNANSWERED: Duration = Duration::from_secs(3);
/// So many times what it took the home that was answered there before.
const TIMES_UNANSWERED: u32 = 4;

/// One of two user planes is emptied at the wanted rate; the other one does not notice.
pub fn run(fixture: &mut Fixture) -> Result<()> {
    let lab = fixture.without_site()?;
    let scenario = Scenario::open(lab)?;
    let crowd = Crowd::dial(lab, HOMES, TRAFFIC)?;
    crowd.wait_online(&scenario, PATIENCE)?;
    let sluice = Sluice::of(lab);
    tables(&sluice)?;
    let [ones, others] = [UserPlane::One, UserPlane::Two].map(|up| at(&scenario, up));
    let (ones, others) = (ones?, others?);
    ensure!(
        (ones.len(), others.len()) == (HALF, HALF),
        "not {HALF} sessions each"
    );
    // Without a drain somebody who dials in there is online: what follows shows the drain and nothing else.
    let took = answered(lab, UserPlane::One, 0)?;
    println!("        a home that dials in at up1 is online after {took:.2?}");
    let silence = UNANSWERED.max(TIMES_UNANSWERED * took);
    let said = sluice.run(&["drain", "user-plane", "up1", "--end-sessions", "50"])?;
    ensure!(
        said.contains("takes no new sessions and ends its 500 sessions: 50 a second"),
        "{said}"
    );
    answered(lab, UserPlane::Two, 0).context("the other user plane takes who is turned away")?;
    let rate = watch(&sluice)?;
    println!("        {rate:.1} sessions ended in a second, {RATE} were wanted");
    ensure!(
        rate <= f64::from(RATE) * (1.0 + TOLERANCE),
        "{rate:.1} sessions ended in a second, {RATE} were wanted"
    );
    let shown = sluice.run(&["show", "user-planes"])?;
    ensure!(
        shown.contains("up1 is drained: no session is left"),
        "{shown}"
    );
    unanswered(lab, 1, silence)?;
    scenario.gateway.kill(Daemon::ControlPlane)?;
    scenario
        .gateway
        .wait_ready(Daemon::ControlPlane, PATIENCE)?;
    unanswered(lab, 2, silence)?;
    ensure!(
        at(&scenario, UserPlane::One)?.is_empty() && at(&scenario, UserPlane::Two)? == others,
        "a restarted control plane did not go on draining, or others were touched"
    );
    stops(&scenario, lab)?;
    let [one, two] = crowd.statuses();
    let told = one.ends.get(&End::Terminated.to_string());
    ensure!(
        one.at(State::Online) == 0 && told == Some(&(HALF as u32)),
        "homes were not told that their sessions end: {:?}, {:?}",
        one.states,
        one.ends
    );
    ensure!(
        two.ends.is_empty(),
        "homes of the other one: {:?}",
        two.ends
    );

    sluice.run(&["drain", "user-plane", "up1", "--stop"])?;
    crowd.wait_online(&scenario, PATIENCE)?;
    let again = at(&scenario, UserPlane::One)?;
    ensure!(
        again.len() == HALF && again.is_disjoint(&ones),
        "{} sessions are at up1 again",
        again.len()
    );
    sluice.ledger()?;
    crowd.hang_up(&scenario, PATIENCE)?;
    scenario.close()
}

/// The ids of a user plane's sessions.
fn at(scenario: &Scenario, up: UserPlane) -> Result<BTreeSet<String>> {
    let sessions = scenario.gateway.sessions()?.into_iter();
    let there = sessions.filter(|session| session.user_plane == up.name());
    Ok(there.map(|session| session.id).collect())
}

/// Looks at the drained user plane until it is empty; how many sessions ended in a second between the first tenth and the
/// last.
fn watch(sluice: &Sluice) -> Result<f64> {
    let (begun, mut marks) = (Instant::now(), [None; 2]);
    loop {
        let planes: Vec<Plane> = shown(sluice, &["user-planes"])?;
        let plane = planes.iter().find(|plane| plane.node_id == "up1");
        let plane = plane.context("up1 is not shown")?;
        let drain = plane.drain.as_ref().context("no drain is shown")?;
        ensure!(
            drain.rate == RATE && drain.sessions_before == HALF as u64,
            "{drain:?}"
        );
        let (left, now) = (plane.sessions as usize, begun.elapsed());
        for (mark, tenths) in marks.iter_mut().zip([9, 1]) {
            if mark.is_none() && left <= HALF * tenths / 10 {
                *mark = Some((now, left));
            }
        }
        if let (0, [Some((from, first)), Some((to, last))]) = (left, marks) {
            return Ok((first - last) as f64 / (to - from).as_secs_f64());
        }
        ensure!(now < PATIENCE, "{left} sessions are left after {now:?}");
        sleep(Duration::from_millis(100));
    }
}

/// A home that dials in there comes online, and leaves again; how long it took.
fn answered(lab: &Lab, up: UserPlane, number: u16) -> Result<Duration> {
    let (number, dialled) = (3000 + number + 10 * up as u16, Instant::now());
    let newcomer = Newcomer::dial_on(lab, up, 3000, number)?;
    let online = newcomer.wait_online(PATIENCE)?;
    newcomer.hang_up(PATIENCE)?;
    Ok(online - dialled)
}

/// Nobody answers a home that dials in there, on a line on which another one was answered before.
fn unanswered(lab: &Lab, number: u16, silence: Duration) -> Result<()> {
    let newcomer = Newcomer::dial_on(lab, UserPlane::One, 3000, 3000 + number)?;
    sleep(silence);
    let status = newcomer.status();
    let looking = status.at(State::Discovery) + status.at(State::Offline);
    let unheard = End::Silence(State::Discovery).to_string();
    ensure!(
        looking == 1 && status.ends.keys().all(|end| *end == unheard),
        "a home that dialled in at a user plane that is drained was answered: {:?}, {:?}",
        status.states,
        status.ends
    );
    Ok(())
}

/// Accounting says why the sessions ended.
fn stops(scenario: &Scenario, lab: &Lab) -> Result<()> {
    let begun = Instant::now();
    loop {
        let records = scenario.records(lab)?;
        let mut causes = BTreeMap::new();
        for stop in records.stops() {
            let cause = text(stop, "Acct-Terminate-Cause")?;
            *causes.entry(cause).or_insert(0) += 1;
        }
        // Besides, two homes had dialled in and left.
        let stops: Vec<(&str, usize)> = causes.into_iter().collect();
        if stops == [("Admin-Reboot", HALF), ("User-Request", 2)] {
            return Ok(());
        }
        ensure!(
            begun.elapsed() < PATIENCE,
            "sessions ended for these reasons: {stops:?}"
        );
        sleep(Duration::from_millis(200));
    }
}

/// What the control plane shows beside its sessions is what there is.
fn tables(sluice: &Sluice) -> Result<()> {
    let homes = u64::from(HOMES);
    let pools: Vec<Pool> = shown(sluice, &["pools"])?;
    let half = |pool: &Pool| pool.shares.iter().all(|share| share.used == HALF as u64);
    ensure!(
        pools.len() == 3
            && pools
                .iter()
                .all(|p| p.used == homes && p.shares.len() == 2 && half(p)),
        "{pools:#?}"
    );
    let associations: Vec<Association> = shown(sluice, &["associations"])?;
    let up = |a: &Association| a.state() == AssociationState::Up && a.heard_seconds.is_some();
    ensure!(
        associations.len() == 2 && associations.iter().all(up),
        "{associations:#?}"
    );
    let servers: Vec<AaaServer> = shown(sluice, &["aaa-servers"])?;
    // the last answers about Starts may be under way
    let asked = |s: &AaaServer| s.requests >= homes && s.answers > 0;
    let well = |s: &AaaServer| s.state() == AaaServerState::Up && asked(s);
    let roles: Vec<AaaRole> = servers.iter().map(AaaServer::role).collect();
    ensure!(
        roles == [AaaRole::Authentication, AaaRole::Accounting] && servers.iter().all(well),
        "{servers:#?}"
    );
    let ports: Vec<northbound::Port> = shown(sluice, &["ports"])?;
    let flows = |p: &northbound::Port| p.link_up && p.rx_packets > 0;
    ensure!(ports.len() == 4 && ports.iter().all(flows), "{ports:#?}");
    ensure!(shown::<northbound::Port>(sluice, &["ports", "up2"])?.len() == 2);
    let routes: Vec<northbound::Route> = shown(sluice, &["routes", "up1"])?;
    let has = |kind| routes.iter().any(|route| route.kind() == kind);
    let default = routes.iter().find(|route| route.prefix == "0.0.0.0/0");
    let resolved = default.is_some_and(|route| route.mac.is_some() && route.next_hop.is_some());
    ensure!(
        resolved && has(RouteKind::Subscribers) && has(RouteKind::Local),
        "{routes:#?}"
    );
    let neighbours: Vec<northbound::Neighbour> = shown(sluice, &["neighbours", "up1"])?;
    ensure!(
        neighbours.iter().any(|n| n.routes > 0 && n.mac.is_some()),
        "{neighbours:#?}"
    );
    let subscribers = sluice.run(&["show", "subscribers"])?;
    ensure!(
        subscribers.contains(&format!("{homes} subscribers, {homes} online")),
        "{subscribers}"
    );
    let sessions: Vec<Session> = shown(sluice, &["sessions"])?;
    ensure!(
        sessions.len() == usize::from(HOMES) && sessions.iter().all(|s| s.profile == "home"),
        "no profile is shown"
    );
    let unknown = sluice.run(&["show", "routes", "up9"]);
    ensure!(
        unknown.is_err_and(|error| error
            .to_string()
            .contains("user plane `up9` does not exist")),
        "a user plane that is not there is not missed"
    );
    Ok(())
}

fn shown<T: DeserializeOwned>(sluice: &Sluice, words: &[&str]) -> Result<Vec<T>> {
    let text = sluice.run(&[&["show"], words, &["--json"]].concat())?;
    serde_json::from_str(&text).with_context(|| format!("not what was expected: {text}"))
}
