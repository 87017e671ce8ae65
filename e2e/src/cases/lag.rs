use crate::fixture::{Fixture, Stage};
use crate::guard::PATIENCE;
use crate::home::Home;
use crate::site::{CONFIGURED_AS, Setup, UP};
use crate::sniff::{Capture, tshark};
use crate::vm::LINKS;
use anyhow::{Context, Result, ensure};
use lab::topology::{INTERNET_V4, Place};
use serde_json::Value;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The port whose members are the machine's two links.
const PORT: &str = "lag0";
/// Its members' driver.
const DRIVER: &str = "net_af_xdp";
/// Linux's end of the links.
const BOND: &str = "bond7";
/// Between two pings, in milliseconds.
const EACH: u32 = 20;
/// Pings of the home while a link fails.
const PINGS: u32 = 200;
/// Answers that may be missing then: half a second's. LACP alone would need three seconds; the rest is for a busy machine.
const MISSING: u32 = 25;
/// By then both ends have agreed, or have noticed that the other one is silent (3 s, and as much again until it is forgotten).
const AGREED: Duration = Duration::from_secs(20);

/// By then both ends have sent three LACPDUs by each link.
const SEEN: Duration = Duration::from_secs(3);

/// A home behind Linux's bonding reaches the internet by a port with two members. Each of them fails once, and one is taken out of the bond
/// while its link stays up.
pub fn run(fixture: &mut Fixture) -> Result<()> {
    let stage = fixture.stage(&Setup::default())?;
    let links = Links::lay(&stage)?;
    // Captures see what passes packet sockets only, and homes' tags pass AF_XDP only.
    links.use_driver("net_af_packet")?;
    let capture = Capture::start(stage.lab, Place::UserPlane(UP), LINKS[0], "lacp")?;
    links.wait(["used", "used"])?;
    sleep(SEEN);
    judge(&capture.finish()?)?;
    links.use_driver(DRIVER)?;
    links.wait(["used", "used"])?;
    ensure!(alarms(&stage)?.is_empty(), "{:?}", alarms(&stage)?);

    let home = Home::build_on(stage.vm, 7, BOND, &[("802.1ad", 100), ("802.1q", 7)])?;
    home.dial("alice", "wonderland")?;
    home.reach(&INTERNET_V4.to_string())?;
    for link in 0..2 {
        let missing = links.fail(&home, link)?;
        println!(
            "        link {link} fails: {missing} of {PINGS} pings, one each {EACH} ms, without an answer"
        );
        ensure!(missing <= MISSING, "{missing} pings without an answer");
        let mut states = ["used"; 2];
        states[link] = "link-down";
        links.wait(states)?;
        let device = device(DRIVER, link);
        links.wait_alarm(&format!(
            "lag-member-unused {CONFIGURED_AS}/{PORT} {device}"
        ))?;
        links.set(link, "up")?;
        links.wait(["used", "used"])?;
    }

    // One is taken out of the bond: its link is up, and nobody speaks there.
    stage
        .vm
        .must("ip link set eth2 nomaster; ip link set eth2 up")?;
    links.wait(["used", "silent"])?;
    strangers(&stage)?;
    home.ping(&INTERNET_V4.to_string(), 10)?;
    stage.vm.must(&format!(
        "ip link set eth2 down; ip link set eth2 master {BOND}"
    ))?;
    links.wait(["used", "used"])?;

    both_fail(&links, &home)?;
    home.hang_up()?;
    links.take_away()
}

/// Nobody is served by a link that is not used: what comes by it is dropped and counted.
fn strangers(stage: &Stage<'_>) -> Result<()> {
    let padi = "timeout 5 pppoe -A -I eth2 -t 1 2>&1; true";
    let answers = stage.vm.must(padi)?;
    ensure!(!answers.contains("Access-Concentrator"), "{answers}");
    let dropped = stage.site.drops()?.count("not-aggregated")?;
    ensure!(dropped > 0, "nothing is counted: {answers}");
    Ok(())
}

/// Without a link the port is down; the session is still there when they come back.
fn both_fail(links: &Links<'_>, home: &Home) -> Result<()> {
    for link in 0..2 {
        links.set(link, "down")?;
    }
    links.wait(["link-down", "link-down"])?;
    links.wait_alarm(&format!("lag-down {CONFIGURED_AS}/{PORT}"))?;
    for link in 0..2 {
        links.set(link, "up")?;
    }
    links.wait(["used", "used"])?;
    home.reach(&INTERNET_V4.to_string())
}

/// What both ends have sent is LACP without a fault, to the address that no bridge forwards.
fn judge(file: &std::path::Path) -> Result<()> {
    let fields = ["lacp.actor.sysid", "lacp.partner.sysid", "eth.dst"];
    let sent = tshark(file, "lacp", &fields)?;
    ensure!(sent.len() >= 4, "{} LACPDUs", sent.len());
    let wrong = tshark(file, "_ws.malformed || (slow && !lacp)", &["frame.number"])?;
    ensure!(wrong.is_empty(), "tshark finds faults in {wrong:?}");
    let stray = sent
        .iter()
        .find(|line| !line.ends_with("01:80:c2:00:00:02"));
    ensure!(stray.is_none(), "{stray:?}");
    let systems: std::collections::BTreeSet<&str> = sent
        .iter()
        .filter_map(|line| line.split('\t').next())
        .collect();
    ensure!(systems.len() == 2, "the systems of both ends: {systems:?}");
    Ok(())
}

/// Devargs of a link at the user plane.
fn device(driver: &str, link: usize) -> String {
    // A capture sees what is sent only if it passes the kernel's queue.
    let queued = if driver == DRIVER {
        ""
    } else {
        ",qdisc_bypass=0"
    };
    format!("{driver}{},iface={}{queued}", link + 5, LINKS[link])
}

/// The two links between the machine and the user plane.
struct Links<'s> {
    stage: &'s Stage<'s>,
}

impl<'s> Links<'s> {
    /// Gives the user plane one end of each, and Linux's bonding the other.
    fn lay(stage: &'s Stage<'s>) -> Result<Self> {
        let (access, up) = (
            stage.lab.netns(Place::Access(UP)),
            stage.lab.netns(Place::UserPlane(UP)),
        );
        for link in LINKS {
            access.ip(&format!("link set {link} netns {}", up.name()))?;
            up.silence(&[link])?;
            up.offloads_off(link)?;
            up.ip(&format!("link set {link} up"))?;
        }
        stage.vm.must(&format!(
            "set -e
             ip link add {BOND} type bond mode 802.3ad miimon 20 lacp_rate fast xmit_hash_policy layer2
             echo 1 > /proc/sys/net/ipv6/conf/{BOND}/disable_ipv6
             ip link set eth1 master {BOND}
             ip link set eth2 master {BOND}
             ip link set {BOND} up"
        ))?;
        Ok(Links { stage })
    }

    /// Makes the port, or changes the driver of its members.
    fn use_driver(&self, driver: &str) -> Result<()> {
        let port = format!("set user-planes {CONFIGURED_AS} ports {PORT}");
        let members = format!("user-planes {CONFIGURED_AS} ports {PORT} lag members");
        let delete = match driver {
            DRIVER => format!("delete {members}"),
            _ => String::new(),
        };
        self.stage.site.sluice().configure(&format!(
            "{delete}
{port} role access
{port} segments all access-profile pppoe
set {members} {}
set {members} {}",
            device(driver, 0),
            device(driver, 1)
        ))
    }

    /// Cuts a link, or mends it, as it is seen at both ends.
    fn set(&self, link: usize, state: &str) -> Result<()> {
        let up = self.stage.lab.netns(Place::UserPlane(UP));
        up.ip(&format!("link set {} {state}", LINKS[link]))?;
        self.stage
            .vm
            .must(&format!("ip link set eth{} {state}", link + 1))
            .map(drop)
    }

    /// Cuts a link while the home pings; how many answers are missing.
    fn fail(&self, home: &Home, link: usize) -> Result<u32> {
        let (vm, name) = (self.stage.vm, home.name());
        let seconds = f64::from(EACH) / 1000.0;
        vm.must(&format!(
            "( /usr/sbin/ip netns exec {name} ping -c {PINGS} -i {seconds} -W 2 {INTERNET_V4} > /run/{name}.ping 2>&1 & )
             usleep 1000000"
        ))?;
        self.set(link, "down")?;
        let told = vm.must(&format!(
            "for i in $(seq 300); do grep -q received /run/{name}.ping && break; usleep 100000; done; cat /run/{name}.ping"
        ))?;
        let received = told.lines().find_map(|line| {
            line.split(" packets received")
                .next()?
                .rsplit(", ")
                .next()?
                .trim()
                .parse()
                .ok()
        });
        let received: u32 = received.with_context(|| told.clone())?;
        Ok(PINGS - received)
    }

    /// Waits until the members stand like this.
    fn wait(&self, states: [&str; 2]) -> Result<()> {
        let begun = Instant::now();
        loop {
            let rows: Value = serde_json::from_str(&self.stage.site.sluice().run(&[
                "show",
                "lag-members",
                "--json",
            ])?)?;
            let rows = rows.as_array().context("no members")?;
            let found: Vec<&str> = rows
                .iter()
                .filter_map(|row| row["state"].as_str())
                .collect();
            if found == states {
                return Ok(());
            }
            ensure!(
                begun.elapsed() < AGREED,
                "{rows:?}, not {states:?}: {}",
                self.bond()?
            );
            sleep(Duration::from_millis(50));
        }
    }

    /// Waits until this alarm is raised.
    fn wait_alarm(&self, wanted: &str) -> Result<()> {
        let begun = Instant::now();
        loop {
            let found = alarms(self.stage)?;
            if found.iter().any(|alarm| alarm == wanted) {
                return Ok(());
            }
            ensure!(begun.elapsed() < PATIENCE, "{found:?}, not {wanted:?}");
            sleep(Duration::from_millis(200));
        }
    }

    /// What Linux says.
    fn bond(&self) -> Result<String> {
        self.stage.vm.must(&format!("cat /proc/net/bonding/{BOND}"))
    }

    /// Everything is as before.
    fn take_away(self) -> Result<()> {
        self.stage.vm.must(&format!(
            "ip link del {BOND}; ip link set eth1 down; ip link set eth2 down"
        ))?;
        let delete = format!("delete user-planes {CONFIGURED_AS} ports {PORT}");
        let sluice = self.stage.site.sluice();
        // The session may still be on its way out.
        sluice.tell(
            &[],
            &format!("configure\n{delete}\ncommit ending-sessions\n"),
        )?;
        let up = self.stage.lab.netns(Place::UserPlane(UP));
        let access = self.stage.lab.netns(Place::Access(UP));
        for link in LINKS {
            up.ip(&format!("link set {link} netns {}", access.name()))?;
        }
        sluice.ledger().map(drop)
    }
}

/// The alarms that are raised and about LAGs: name and resource.
fn alarms(stage: &Stage<'_>) -> Result<Vec<String>> {
    let found: Value =
        serde_json::from_str(&stage.site.sluice().run(&["show", "alarms", "--json"])?)?;
    let alarms = found["alarms"].as_array().context("no alarms")?;
    let of_lags = alarms.iter().filter_map(|alarm| {
        let (name, resource) = (alarm["name"].as_str()?, alarm["resource"].as_str()?);
        name.starts_with("lag-")
            .then(|| format!("{name} {resource}"))
    });
    Ok(of_lags.collect())
}
