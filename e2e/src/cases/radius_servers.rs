use crate::access_network::AccessNetwork;
use crate::accounting::AccountingRecords;
use crate::cut::Cut;
use crate::fixture::Fixture;
use crate::guard::PATIENCE;
use crate::radius::{Forger, FreeRadius, PAIR, SECRET};
use crate::site::{Aaa, Setup, Site};
use crate::sniff::{Capture, tshark};
use anyhow::{Context, Result, ensure};
use lab::topology::{Lab, Place};
use northbound::{AaaRole, AaaServer, AaaServerState};
use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// How many seconds a request waits before it is sent again. With the longer time a server that is well is not passed over, however
/// slow the machine is: it is waited for as long as for everything else.
const LONG: u32 = 20;
const SHORT: u32 = 1;
/// A request that has not been answered this long after it was last sent has been given up: 2 s, a tenth less.
const GIVEN_UP: f64 = 1.8;

pub fn run(fixture: &mut Fixture) -> Result<()> {
    let (lab, site) = fixture.site(&Setup {
        aaa: Aaa::Two,
        ..Setup::default()
    })?;
    let netns = lab.netns(Place::ControlPlane);
    for server in PAIR {
        netns.ip(&format!("addr replace {}/32 dev lo", server.address))?;
        server.forget(lab)?;
    }
    let capture = Capture::start(lab, Place::ControlPlane, "lo", "radius")?;
    let [first, second] = PAIR;
    let mut one = FreeRadius::start(lab, &first, SECRET)?;
    let _two = FreeRadius::start(lab, &second, SECRET)?;
    let mut round = Round { lab, sessions: 0 };
    for server in 0..PAIR.len() {
        timeout(site, server, LONG)?;
    }

    // More requests than a server has identifiers on one socket.
    let took = round.dial(site, 300, 0)?;
    println!("        both well: 300 homes online after {took:.2?}");
    balanced(&mut round, site)?;
    one.stop()?;
    timeout(site, 0, SHORT)?;
    let took = round.dial(site, 40, 1)?;
    let next = round.dial(site, 40, 1)?;
    println!(
        "        the first dead: 40 homes online after {took:.2?}, the next 40 after {next:.2?}"
    );
    shown(site, true)?;
    one = FreeRadius::start(lab, &first, SECRET)?;
    round.well_again(site)?;
    shown(site, false)?;
    records(lab)?.check()?;
    lossy(&mut round, site)?;
    // A server whose answer is lost has the record all the same, and gets it again, or the other one does.
    let with_repeated = records(lab)?;
    round.well_again(site)?;

    one.stop()?;
    one = FreeRadius::start(lab, &first, "another-secret")?;
    let took = round.dial(site, 40, 1)?;
    println!("        the first has another secret: 40 homes online after {took:.2?}");
    let log = std::fs::read_to_string(one.process().log())?;
    ensure!(
        log.contains("Shared secret is incorrect"),
        "the first server does not complain: {log}"
    );
    one.stop()?;
    wait_on_trial(site)?;
    forged(&mut round, site)?;
    let _one = FreeRadius::start(lab, &first, SECRET)?;
    round.well_again(site)?;
    records(lab)?.without(&with_repeated).check()?;
    judge_wire(&capture.finish()?)
}

/// Each of the two gets its share of authentications and of records. The one with fewer open requests is asked, so a server that this
/// machine lets stand still for a moment may get none in a round.
fn balanced(round: &mut Round, site: &mut Site) -> Result<()> {
    let selection = "aaa server-groups radius selection";
    site.sluice()
        .configure(&format!("set {selection} balanced"))?;
    let begun = Instant::now();
    while !shared(round, site)? {
        ensure!(begun.elapsed() < PATIENCE, "one of the two gets no share");
    }
    site.sluice().configure(&format!("delete {selection}"))
}

/// Lets homes come and go; whether each server got a share.
fn shared(round: &mut Round, site: &mut Site) -> Result<bool> {
    let (before, others) = (round.accepted()?, PAIR[1].records(round.lab)?.len());
    let took = round.come_and_go(site, 60)?;
    let (after, all) = (round.accepted()?, PAIR[1].records(round.lab)?.len());
    let recorded = all - others;
    let accepted = [after[0] - before[0], after[1] - before[1]];
    println!(
        "        balanced: 60 homes online after {took:.2?}, accepted {accepted:?}, the second has {recorded} of 120 records"
    );
    let is_share = |count: usize, of: usize| (of / 4..=of * 3 / 4).contains(&count);
    Ok(is_share(accepted[0], 60) && is_share(accepted[1], 60) && is_share(recorded, 120))
}

/// How long the control plane waits for one of the servers before it asks again; it has two tries.
fn timeout(site: &Site, server: usize, seconds: u32) -> Result<()> {
    let edit = format!("set aaa servers server{server} timeout {seconds}");
    site.sluice().configure(&edit)
}

/// Waits until no server is passed over any more.
fn wait_on_trial(site: &mut Site) -> Result<()> {
    site.wait_for("every server's dead time to be over", PATIENCE, |site| {
        let all = servers(site)?;
        Ok(all.iter().all(|s| s.state() != AaaServerState::Out))
    })
}

fn servers(site: &Site) -> Result<Vec<AaaServer>> {
    let text = site.sluice().run(&["show", "aaa-servers", "--json"])?;
    serde_json::from_str(&text).context(text)
}

/// What `show aaa-servers` says of the two for authentication, of which the first is out or not.
fn shown(site: &Site, is_out: bool) -> Result<()> {
    let all = servers(site)?;
    let asked = all.iter().filter(|s| s.role() == AaaRole::Authentication);
    let asked: Vec<&AaaServer> = asked.collect();
    ensure!(asked.len() == 2, "{all:#?}");
    let (first, second) = (asked[0], asked[1]);
    let out = |s: &AaaServer| s.out_seconds.is_some() && s.state() != AaaServerState::Up;
    let timed_out = first.timeouts > 0 && second.timeouts == 0;
    let answered = |s: &AaaServer| s.answers > 0 && s.round_trip_microseconds > Some(0);
    ensure!(
        out(first) == is_out && !out(second) && timed_out && answered(first) && answered(second),
        "{all:#?}"
    );
    Ok(())
}

/// The first server, which is well, hears and is heard less than half the time.
fn lossy(round: &mut Round, site: &mut Site) -> Result<()> {
    let address = PAIR[0].address;
    let lost = ["saddr", "daddr"]
        .map(|end| format!("ip {end} {address} meta l4proto udp numgen random mod 100 < 60"));
    let netns = round.lab.netns(Place::ControlPlane);
    let cut = Cut::arriving(netns, &lost.each_ref().map(String::as_str))?;
    let before = round.accepted()?;
    let took = round.come_and_go(site, 40)?;
    let (after, lost) = (round.accepted()?, cut.dropped()?);
    ensure!(lost > 0, "nothing was lost: the case shows nothing");
    println!(
        "        the first loses 60 % each way: 40 homes online after {took:.2?}, {lost} datagrams lost, accepted {} and {}",
        after[0] - before[0],
        after[1] - before[1]
    );
    Ok(())
}

/// In the first server's place somebody answers who does not know the secret.
fn forged(round: &mut Round, site: &mut Site) -> Result<()> {
    let unauthentic = |site: &Site| site.drops()?.count("radius-unauthentic-reply");
    let forger = Forger::start(round.lab, &PAIR[0])?;
    let before = unauthentic(site)?;
    let took = round.dial(site, 40, 1)?;
    site.wait_for("forged replies, and each counted", PATIENCE, |site| {
        let counted = unauthentic(site)? - before;
        Ok(counted > 0 && counted == forger.answered())
    })?;
    println!(
        "        the first signs wrongly: 40 homes online after {took:.2?}, {} forged replies ignored",
        forger.answered()
    );
    Ok(())
}

/// Homes that dial in and leave again, and what the servers have of them.
struct Round<'l> {
    lab: &'l Lab,
    /// Sessions so far.
    sessions: usize,
}

impl Round<'_> {
    /// `homes` dial in and leave; this server accepts them all, the other one none. How long the last home took.
    fn dial(&mut self, site: &mut Site, homes: u16, server: usize) -> Result<Duration> {
        let before = self.accepted()?;
        let took = self.come_and_go(site, homes)?;
        let after = self.accepted()?;
        let accepted = [after[0] - before[0], after[1] - before[1]];
        // A home that waited too long on a slow machine has dialled again.
        ensure!(
            accepted[server] >= usize::from(homes) && accepted[1 - server] == 0,
            "the servers accepted {accepted:?}, not {homes} at {server}"
        );
        Ok(took)
    }

    /// The first server has been well for as long as it is passed over: it is asked again.
    fn well_again(&mut self, site: &mut Site) -> Result<()> {
        wait_on_trial(site)?;
        timeout(site, 0, LONG)?;
        let took = self.dial(site, 20, 0)?;
        println!("        the first well again: 20 homes online after {took:.2?}");
        timeout(site, 0, SHORT)
    }

    fn come_and_go(&mut self, site: &mut Site, homes: u16) -> Result<Duration> {
        let network = AccessNetwork::dial(self.lab, homes)?;
        let took = network.wait_online(PATIENCE)?;
        network.hang_up(PATIENCE)?;
        site.wait_empty(PATIENCE)?;
        self.sessions += usize::from(homes);
        site.wait_recorded(self.lab, &PAIR, self.sessions)?;
        Ok(took)
    }

    fn accepted(&self) -> Result<[usize; 2]> {
        let [first, second] = PAIR;
        Ok([first.accepted(self.lab)?, second.accepted(self.lab)?])
    }
}

/// What both servers have on record.
fn records(lab: &Lab) -> Result<AccountingRecords> {
    let [first, second] = PAIR;
    AccountingRecords::of(first.records(lab)?.into_iter().chain(second.records(lab)?))
}

/// A datagram to or from a server.
struct Seen {
    at: f64,
    /// The client's port, the server's address and port, and the identifier.
    exchange: (String, String, String, String),
    code: u8,
    authenticator: String,
    octets: String,
}

/// Holds what passed between control plane and servers against RFC 2865 section 2.5 and RFC 5080 section 2.2.
fn judge_wire(capture: &Path) -> Result<()> {
    let unsigned = tshark(
        capture,
        "radius.code == 1 && !radius.Message_Authenticator",
        &["frame.number"],
    )?;
    ensure!(
        unsigned.is_empty(),
        "Access-Requests without Message-Authenticator: {unsigned:?}"
    );
    let mut open: HashMap<_, (Seen, bool)> = HashMap::new();
    let (mut requests, mut repeated, mut reused) = (0, 0, 0);
    for seen in read(capture)? {
        let known = open.get_mut(&seen.exchange);
        if !matches!(seen.code, 1 | 4) {
            if let Some((_, answered)) = known {
                *answered = true;
            }
            continue;
        }
        match known {
            Some((last, _)) if last.authenticator == seen.authenticator => {
                ensure!(
                    last.octets == seen.octets,
                    "sent again, but not the same: {:?}",
                    seen.exchange
                );
                last.at = seen.at;
                repeated += 1;
                continue;
            }
            Some((last, answered)) => {
                ensure!(
                    *answered || seen.at - last.at > GIVEN_UP,
                    "an identifier is used again {:.3} s after an open request had it: {:?}",
                    seen.at - last.at,
                    seen.exchange
                );
                reused += 1;
            }
            None => {}
        }
        requests += 1;
        open.insert(seen.exchange.clone(), (seen, false));
    }
    println!(
        "        {requests} requests, {repeated} sent again as they were, {reused} identifiers used again once free"
    );
    ensure!(
        repeated > 0 && reused > 0,
        "nothing was sent again, or no identifier was used twice: the capture shows nothing"
    );
    Ok(())
}

fn read(capture: &Path) -> Result<Vec<Seen>> {
    let fields = [
        "frame.time_relative",
        "ip.src",
        "udp.srcport",
        "ip.dst",
        "udp.dstport",
        "radius.code",
        "radius.id",
        "radius.authenticator",
        "udp.payload",
    ];
    let parse = |line: &String| -> Option<Seen> {
        let words: Vec<&str> = line.split('\t').collect();
        let &[
            at,
            from,
            from_port,
            to,
            to_port,
            code,
            id,
            authenticator,
            octets,
        ] = &words[..]
        else {
            return None;
        };
        let code = code.parse().ok()?;
        let own = |text: &str| text.to_owned();
        let exchange = match code {
            1 | 4 => (own(from_port), own(to), own(to_port), own(id)),
            _ => (own(to_port), own(from), own(from_port), own(id)),
        };
        Some(Seen {
            at: at.parse().ok()?,
            exchange,
            code,
            authenticator: own(authenticator),
            octets: own(octets),
        })
    };
    let lines = tshark(capture, "radius", &fields)?;
    let seen: Option<Vec<Seen>> = lines.iter().map(parse).collect();
    seen.context("tshark prints RADIUS in another way than expected")
}
