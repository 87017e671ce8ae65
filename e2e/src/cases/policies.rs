mod of_subscribers;

use super::rates::{count, lost};
use crate::command::Sluice;
use crate::fixture::Fixture;
use crate::guard::PATIENCE;
use crate::radius::{SECRET, radclient};
use crate::scenario::{Crowd, Scenario};
use crate::sniff::{Capture, tshark};
use anyhow::{Context, Result, ensure};
use lab::access_network::PORT;
use lab::daemon::Daemon;
use lab::topology::{CP_MANAGEMENT_V4, Lab, Place, UserPlane};
use northbound::Session;
use std::net::IpAddr;
use std::thread::sleep;
use std::time::{Duration, Instant};

const HOMES: u16 = 10;
/// Packets a second of all homes.
const TRAFFIC: u32 = 2000;
const UP: UserPlane = UserPlane::One;

/// What ACLs deny is lost and counted by its name, and nothing else is, while configuration and RADIUS change them and daemons die. What
/// nobody has configured is refused.
pub fn run(fixture: &mut Fixture) -> Result<()> {
    let lab = fixture.without_site()?;
    let scenario = Scenario::open(lab)?;
    let sluice = Sluice::of(lab);
    let client = "set aaa dynamic-authorization clients tests";
    sluice.configure(&format!(
        "{client} address {CP_MANAGEMENT_V4}\n{client} secret-key {SECRET}
set acls open count true
set acls open rules 10 permit udp from any to any {PORT} mark af41
set acls open rules 20 deny ip from any to any
set acls closed rules 10 deny udp from any to any {PORT}
set acls extra
set policies open acls open
set policies both acls extra
set policies both acls open
set policies closed acls closed
set policies closed acls open
set subscriber-profiles home policy-up both
set subscriber-profiles home policy-down open"
    ))?;
    let mut crowd = Crowd::dial(lab, HOMES, TRAFFIC)?;
    crowd.wait_online(&scenario, PATIENCE)?;
    let ids: Vec<String> = sessions(&sluice)?.into_iter().map(|s| s.id).collect();
    let mut judge = Judge {
        crowd: &mut crowd,
        sluice: &sluice,
    };
    judge.nothing_is_lost("a policy that permits everything")?;
    marked(lab)?;

    // the rules change beneath the sessions
    let deny = format!("set acls extra rules 5 deny udp from any to any {PORT}");
    sluice.configure(&deny)?;
    judge.is_lost("denied-up", "a rule that denies everything")?;
    sluice.configure("delete acls extra rules 5")?;
    judge.nothing_is_lost("the rule is deleted")?;

    // RADIUS says otherwise, for one direction
    change(lab, &ids, "Filter-Id = closed.out")?;
    judge.is_lost("denied-down", "Filter-Id closed.out")?;
    for daemon in [Daemon::ControlPlane, Daemon::UserPlane(UP)] {
        scenario.gateway.kill(daemon)?;
        scenario.gateway.wait_ready(daemon, PATIENCE)?;
        judge.settles("denied-down")?;
        judge.is_lost("denied-down", "after a death")?;
    }
    change(lab, &ids, "Filter-Id = open.out")?;
    judge.nothing_is_lost("Filter-Id open.out")?;

    policed(&mut judge)?;
    classified(lab, &mut judge)?;
    queued(lab, &scenario, &mut judge, &ids)?;
    refused(lab, &sluice, &ids)?;
    judge.nothing_is_lost("what was refused changes nothing")?;
    crowd.check()?;
    sluice.ledger()?;
    crowd.hang_up(&scenario, PATIENCE)?;
    of_subscribers::run(lab, scenario)?.close()
}

/// Looks at what is lost.
struct Judge<'a> {
    crowd: &'a mut Crowd,
    sluice: &'a Sluice,
}

impl Judge<'_> {
    fn nothing_is_lost(&mut self, what: &str) -> Result<()> {
        for counter in ["denied-up", "denied-down"] {
            let (lost, dropped) = lost(self.crowd, counter, self.sluice, |_| Ok(true))?;
            ensure!(
                (lost, dropped) == (0, 0),
                "{what}: {lost} lost, {dropped} {counter}"
            );
        }
        Ok(())
    }

    /// All that is lost was dropped for this reason.
    fn is_lost(&mut self, counter: &str, what: &str) -> Result<()> {
        let (lost, dropped) = lost(self.crowd, counter, self.sluice, |n| Ok(n > 100))?;
        println!("        {what}: {lost} packets lost, {dropped} {counter}");
        ensure!(
            lost == dropped,
            "{what}: {lost} are lost, {dropped} are {counter}"
        );
        Ok(())
    }

    /// Each home is sent so many kbit/s of IP, within 5 %, once what came at first is used up.
    fn has_rate(&mut self, kbps: u64) -> Result<()> {
        let rates = self.rates();
        println!("        {kbps} kbit/s: {rates:.1?}");
        let is_near = |rate: &f64| (rate / kbps as f64 - 1.0).abs() <= 0.05;
        ensure!(rates.iter().all(is_near), "{kbps} kbit/s: {rates:?}");
        Ok(())
    }

    /// What each home is sent, in kbit/s of IP.
    fn rates(&mut self) -> Vec<f64> {
        let (rates, _) = self.rates_and(|| Ok(())).expect("nothing else is read");
        rates
    }

    /// The same, and what else was read before and after that time, with the seconds between.
    fn rates_and<T>(&mut self, read: impl Fn() -> Result<T>) -> Result<(Vec<f64>, (T, T, f64))> {
        const BURST: Duration = Duration::from_secs(4);
        const LONG: Duration = Duration::from_secs(10);
        sleep(BURST);
        let (before, read_before) = (self.crowd.carried(), read()?);
        let begun = Instant::now();
        sleep(LONG);
        let (after, read_after) = (self.crowd.carried(), read()?);
        let took = begun.elapsed();
        let rates = before.iter().zip(&after).map(|(before, after)| {
            let octets = (after.down - before.down) as f64;
            octets * 8.0 / 1000.0 / took.as_secs_f64()
        });
        let read = (read_before, read_after, took.as_secs_f64());
        Ok((rates.collect(), read))
    }

    /// Waits until no packet finds its session or its policy missing any more, and all that is lost is denied.
    fn settles(&mut self, counter: &str) -> Result<()> {
        let missing = [
            "policy-missing",
            "unknown-session",
            "no-route",
            "discard-route",
        ];
        let all = |sluice: &Sluice| -> Result<u64> {
            missing.iter().map(|reason| count(sluice, reason)).sum()
        };
        let begun = Instant::now();
        loop {
            let before = all(self.sluice)?;
            let (lost, denied) = lost(self.crowd, counter, self.sluice, |_| Ok(true))?;
            if all(self.sluice)? == before && denied > 0 && lost == denied {
                return Ok(());
            }
            ensure!(
                begun.elapsed() < PATIENCE,
                "packets go on missing their policies"
            );
        }
    }
}

/// A policer lets its peak rate pass, and the session's own rate instead if it has one; all that is lost was dropped by it.
fn policed(judge: &mut Judge<'_>) -> Result<()> {
    let sluice = judge.sluice;
    let rates = "set policers slow committed-rate 8\nset policers slow peak-rate 32";
    sluice.configure(&format!("{rates}\nset policies open policer slow"))?;
    judge.has_rate(32)?;
    judge.is_lost("rate-exceeded-down", "a policer")?;
    sluice.configure("set subscriber-profiles home rate-down 48")?;
    judge.has_rate(48)?;
    sluice.configure("delete policies open policer\ndelete subscriber-profiles home rate-down")?;
    judge.nothing_is_lost("the policer is deleted")
}

/// A class has a rate of its own, and a home one for all its sessions; what is above them is lost and counted by its name. Tags of what a
/// home is sent have the priority of its code point.
fn classified(lab: &Lab, judge: &mut Judge<'_>) -> Result<()> {
    let sluice = judge.sluice;
    sluice.configure(&format!(
        "set policers few algorithm single-rate
set policers few committed-rate 16
set acls open rules 10 permit udp from any to any {PORT} class talk
set policies both classes talk
set policies closed classes talk
set policies open classes talk policer few
set policies open classes talk mark cs5
set subscriber-profiles home priority-source dscp"
    ))?;
    judge.has_rate(16)?;
    judge.is_lost("class-exceeded-down", "a class")?;
    let on_access = Capture::of(lab, Place::Access(UP), "access", "tags", "vlan")?;
    sleep(Duration::from_secs(1));
    let file = on_access.finish()?;
    let to_homes = format!("ip.dsfield.dscp == 40 && udp.dstport == {PORT}");
    let priorities = tshark(&file, &to_homes, &["vlan.priority"])?;
    ensure!(!priorities.is_empty(), "no packet to a home is captured");
    let is_five = |told: &String| told.split(',').all(|priority| priority == "5");
    ensure!(priorities.iter().all(is_five), "{priorities:?}");
    let sessions = sessions(sluice)?;
    let first = sessions.first().context("a session")?;
    let page = sluice.run(&["show", "session", &first.id])?;
    ensure!(page.contains("class talk down"), "{page}");
    // the same packets by their priority: they come without a tag
    sluice.configure(&format!(
        "set acls open rules 10 permit udp from any to any {PORT}
set policies open classes talk policer twice
set policies open classes talk vlan-priority 0
set policers twice algorithm single-rate
set policers twice committed-rate 32"
    ))?;
    judge.has_rate(32)?;

    sluice.configure("delete policies open classes talk policer")?;
    sluice.configure("set subscriber-profiles home subscriber-rate-down 24")?;
    judge.has_rate(24)?;
    judge.is_lost("subscriber-exceeded-down", "all sessions of a home")?;
    sluice.configure(&format!(
        "delete subscriber-profiles home subscriber-rate-down
delete subscriber-profiles home priority-source
set acls open rules 10 permit udp from any to any {PORT} mark af41
delete policies both classes
delete policies closed classes
delete policies open classes"
    ))?;
    judge.nothing_is_lost("classes are deleted")
}

/// With queues, packets above the rate wait, and what is lost found its queue full. A rate that RADIUS changes holds at once. A user plane
/// that is killed makes the queues again.
fn queued(lab: &Lab, scenario: &Scenario, judge: &mut Judge<'_>, ids: &[String]) -> Result<()> {
    let sluice = judge.sluice;
    sluice.configure(
        "set policies open above-rate wait
set policies open queue limit 2000
set policies open queue target-delay 0
set subscriber-profiles home rate-down 48",
    )?;
    judge.has_rate(48)?;
    judge.is_lost("queue-full", "queues of 2,000 octets")?;
    change(lab, ids, "WISPr-Bandwidth-Max-Down = 32000")?;
    judge.has_rate(32)?;
    scenario.gateway.kill(Daemon::UserPlane(UP))?;
    (scenario.gateway).wait_ready(Daemon::UserPlane(UP), PATIENCE)?;
    judge.settles("queue-full")?;
    judge.is_lost("queue-full", "after a death")?;
    let page = sluice.run(&["show", "session", &ids[0]])?;
    ensure!(page.contains("queue of no class"), "{page}");
    let queues = sluice.run(&["show", "qos", "session", &ids[0], "--json"])?;
    let queues: serde_json::Value = serde_json::from_str(&queues)?;
    let full = queues[0]["full_drops"].as_u64();
    ensure!(
        queues[0]["queue"] == "of no class" && full.is_some_and(|full| full > 0),
        "{queues}"
    );
    change(lab, ids, "WISPr-Bandwidth-Max-Down = 1000000000")?;
    sluice.configure("delete subscriber-profiles home rate-down")?;
    shared(lab, judge)?;
    sluice.configure("delete policies open above-rate\ndelete policies open queue")?;
    judge.nothing_is_lost("queues are deleted")
}

/// Homes share the rate of their segment, in octets of the wire, as the kernel counts them at the other end of the access link.
fn shared(lab: &Lab, judge: &mut Judge<'_>) -> Result<()> {
    const EACH: f64 = 40.0;
    let sluice = judge.sluice;
    // half of them are at each
    let planes = ["up1", "up2"];
    let segment = |plane: &str| format!("user-planes {plane} ports access0 segments all");
    let rate = EACH * f64::from(HOMES / 2);
    let set = planes.map(|plane| format!("set {} egress-rate {rate:.0}", segment(plane)));
    sluice.configure(&set.join("\n"))?;
    let wires =
        || -> Result<Vec<f64>> { UserPlane::ALL.map(|up| wire(lab, up)).into_iter().collect() };
    let (rates, (before, after, seconds)) = judge.rates_and(wires)?;
    let wire = before.iter().zip(&after);
    let wire: Vec<f64> = wire
        .map(|(before, after)| (after - before) * 8.0 / 1000.0 / seconds)
        .collect();
    println!("        {rate} kbit/s of their segment: {wire:.1?} on the wire, {rates:.1?}");
    let is_kept = |wire: &f64| (wire / rate - 1.0).abs() <= 0.05;
    ensure!(wire.iter().all(is_kept), "{rate} kbit/s: {wire:?}");
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    let is_near = |rate: &f64| (rate / mean - 1.0).abs() <= 0.05;
    ensure!(rates.iter().all(is_near), "{rates:?}");
    // small packets have large headers
    ensure!((0.4..0.95).contains(&(mean / EACH)), "{rates:?}");
    judge.is_lost("queue-full", "a segment")?;
    // each plane tells that its homes wait for the segment, of which all is used
    let start = Instant::now();
    while !planes.iter().all(|plane| tells_limit(sluice, plane)) {
        ensure!(
            start.elapsed() < PATIENCE,
            "{}",
            sluice.run(&["show", "qos", "aggregates"])?
        );
        sleep(Duration::from_millis(200));
    }
    let delete = planes.map(|plane| format!("delete {} egress-rate", segment(plane)));
    sluice.configure(&delete.join("\n"))?;
    judge.nothing_is_lost("the rate of the segment is deleted")
}

/// Octets on the wire that have come by the access link of a user plane, with preamble, gap and frame check sequence.
fn wire(lab: &Lab, up: UserPlane) -> Result<f64> {
    let counter = |name: &str| -> Result<f64> {
        let path = format!("/sys/class/net/access/statistics/{name}");
        Ok(lab
            .netns(Place::Access(up))
            .run(&["cat", &path])?
            .trim()
            .parse()?)
    };
    Ok(counter("rx_bytes")? + 24.0 * counter("rx_packets")?)
}

/// Whether the segment of a user plane is what its homes wait for, and is used up.
fn tells_limit(sluice: &Sluice, plane: &str) -> bool {
    let asked = sluice.run(&["show", "qos", "aggregates", plane, "--json"]);
    let rows: serde_json::Value = asked
        .ok()
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    let mut rows = rows.as_array().into_iter().flatten();
    let number = |row: &serde_json::Value, field: &str| row[field].as_f64().unwrap_or_default();
    rows.any(|row| {
        let used = number(row, "bits_per_second") / number(row, "rate_bits_per_second");
        row["segment"] == "all"
            && row["limited_by"] == "aggregate"
            && (0.8..1.1).contains(&used)
            && number(row, "subscribers") == f64::from(HOMES / 2)
            && number(row, "drops") > 0.0
    })
}

/// What homes send reaches the core with the mark of the rule, in both families.
fn marked(lab: &Lab) -> Result<()> {
    let wire = Capture::of(lab, Place::Internet, UP.core_link(), "marks", "udp")?;
    sleep(Duration::from_secs(1));
    let file = wire.finish()?;
    for (field, dscp) in [("ip.dsfield.dscp", "34"), ("ipv6.tclass.dscp", "34")] {
        let from_homes = format!("udp.dstport == {PORT} && eth.dst == {}", core_mac(lab)?);
        let marks = tshark(&file, &format!("{field} && {from_homes}"), &[field])?;
        ensure!(!marks.is_empty(), "no packet with {field}");
        ensure!(marks.iter().all(|mark| mark == dscp), "{field}: {marks:?}");
    }
    Ok(())
}

/// MAC address of the internet host towards the user plane.
fn core_mac(lab: &Lab) -> Result<String> {
    let path = format!("/sys/class/net/{}/address", UP.core_link());
    let mac = lab.netns(Place::Internet).run(&["cat", &path])?;
    Ok(mac.trim().to_owned())
}

/// What cannot be carried out is refused, and names why.
fn refused(lab: &Lab, sluice: &Sluice, ids: &[String]) -> Result<()> {
    for attributes in [
        "Filter-Id = nowhere.in",
        "Filter-Id = open.in, Filter-Id += closed.in",
    ] {
        let request = format!("Acct-Session-Id = \"{}\", {attributes}", ids[0]);
        let to = IpAddr::from(CP_MANAGEMENT_V4);
        let said = radclient(lab, to, "coa", SECRET, &request, PATIENCE)?;
        ensure!(
            said.contains("Received CoA-NAK") && said.contains("Invalid-Attribute-Value"),
            "{request}: {said}"
        );
    }
    for (edit, says) in [
        (
            "set acls open rules 7 deny tcp from any to 192.0.2.1/24",
            "192.0.2.0/24",
        ),
        ("set acls open rules 7 deny icmp from any to any 80", "80"),
        (
            "set acls open rules 7 deny in tcp from any to any",
            "no direction",
        ),
        (
            "set acls open rules 7 deny tcp from any to assigned",
            "expected `any`",
        ),
        (
            "set acls open rules 0 deny ip from any to any",
            "from 1 to 4294967295",
        ),
        (
            "set subscriber-profiles home policy-up nowhere",
            "`policies` has no `nowhere`",
        ),
        ("set policies open acls nowhere", "`acls` has no `nowhere`"),
        ("set policers p committed-rate 0", "1 to 1000000000"),
        ("set policers p committed-rate 9", "`peak-rate` is missing"),
        (
            "set policers p committed-rate 9\nset policers p peak-rate 8",
            "below `committed-rate`",
        ),
        (
            "set policers p committed-rate 9\nset policers p committed-burst 1000",
            "1600 to 1000000000",
        ),
        ("delete acls closed", "`acls` has no `closed`"),
        (
            "set acls open rules 7 permit tcp from any to any class talk",
            "rule 7 of `open` names class `talk`, which this policy does not have",
        ),
        (
            "set policies open classes a dscp ef\nset policies open classes b dscp ef",
            "class `a` has ef, too",
        ),
        (
            "set policies open classes a vlan-priority 5\nset policies open classes b vlan-priority 5",
            "class `a` has 5, too: expected each priority in one class",
        ),
        ("set policies open classes a vlan-priority 8", "0 to 7"),
        (
            "set policies open classes a\nset policies open classes b\nset policies open classes c\nset policies open classes d
set policies open classes e\nset policies open classes f\nset policies open classes g\nset policies open classes h",
            "class `h` is beyond the 7 that a policy may have: 8 classes",
        ),
        ("set policies open classes a!b", "1 to 32 letters"),
        (
            "set policies open queue weight 2",
            "has no effect where `above-rate` is `drop`",
        ),
        (
            "set policies open overhead atm",
            "has no effect where `above-rate` is `drop`",
        ),
        (
            "set policies open above-rate wait\nset policies open queue strict true",
            "a strict queue without a rate may starve the others: add `rate`",
        ),
        (
            "set policers p algorithm single-rate\nset policers p committed-rate 9\nset policies open policer p\nset policies open above-rate wait",
            "limits the session beside `above-rate: wait`",
        ),
        ("set policies open queue weight 0", "1 to 255"),
        (
            "set user-planes up1 ports access0 segments all egress-rate 100\nset user-planes up1 ports access0 segments all vlan-egress-rate 101",
            "101 kbit/s is above `egress-rate`, 100 kbit/s",
        ),
    ] {
        let why = sluice.configure(edit).err().map(|why| format!("{why:#}"));
        let why = why.with_context(|| format!("{edit} is accepted"))?;
        ensure!(why.contains(says), "{edit}: {why}");
    }
    Ok(())
}

pub(super) fn sessions(sluice: &Sluice) -> Result<Vec<Session>> {
    let text = sluice.run(&["show", "sessions", "--json"])?;
    serde_json::from_str(&text).with_context(|| format!("not sessions: {text}"))
}

/// Everybody gets these attributes.
pub(super) fn change(lab: &Lab, ids: &[String], attributes: &str) -> Result<()> {
    let requests = ids
        .iter()
        .map(|id| format!("Acct-Session-Id = \"{id}\", {attributes}\n"));
    let requests: Vec<String> = requests.collect();
    let to = CP_MANAGEMENT_V4.into();
    let said = radclient(lab, to, "coa", SECRET, &requests.join("\n"), PATIENCE)?;
    let acks = said.matches("Received CoA-ACK").count();
    ensure!(acks == ids.len(), "{attributes}: {said}");
    Ok(())
}
