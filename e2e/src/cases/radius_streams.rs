use super::accounting_on;
use crate::access_network::AccessNetwork;
use crate::accounting::{AccountingRecords, is};
use crate::certificates;
use crate::fixture::Fixture;
use crate::guard::PATIENCE;
use crate::radius::{FreeRadius, Over, PAIR, SECRET, Server};
use crate::site::{Aaa, Setup, Site};
use crate::sniff::{Capture, tshark};
use anyhow::{Context, Result, ensure};
use lab::topology::{Lab, Place};
use northbound::AaaServer;
use serde_json::Value;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The server over TCP, and the one over TLS: there, authentication and accounting have one port.
const TCP: Server = PAIR[0];
const TLS: Server = Server {
    authentication: 2083,
    accounting: 2083,
    ..PAIR[1]
};
/// The secret of RADIUS over TLS (RFC 6614 §2.3).
const RADSEC: &str = "radsec";
/// The name in the server's certificate.
const NAME: &str = "radius.example";
/// Where the gateway's requests come from.
const SOURCE: &str = "192.0.2.13";

pub fn run(fixture: &mut Fixture) -> Result<()> {
    let (lab, site) = fixture.site(&Setup {
        aaa: Aaa::Two,
        ..Setup::default()
    })?;
    let netns = lab.netns(Place::ControlPlane);
    for server in [TCP, TLS] {
        netns.ip(&format!("addr replace {}/32 dev lo", server.address))?;
        server.forget(lab)?;
    }
    let folder = lab.dir().join("certificates");
    certificates::write(&folder, &[("server", NAME), ("client", "bng.example")])?;
    certificates::write(&lab.dir().join("foreign"), &[])?;
    let capture = Capture::start(lab, Place::ControlPlane, "lo", "streams")?;
    let mut homes = Homes { lab, sessions: 0 };

    source_address(lab, site)?;
    let tcp = FreeRadius::start_over(lab, &TCP, SECRET, Over::Tcp)?;
    configure(site, &["set aaa servers server0 transport tcp"])?;
    // more requests than a connection has identifiers
    let took = homes.come_and_go(site, &TCP, 300)?;
    println!("        TCP: 300 homes online after {took:.2?}");
    tcp.stop()?;

    let mut tls = FreeRadius::start_over(lab, &TLS, RADSEC, Over::Tls(&folder))?;
    change_to_tls(site, &folder)?;
    homes.sessions = 0;
    let took = homes.come_and_go(site, &TLS, 300)?;
    println!("        TLS: 300 homes online after {took:.2?}");
    let before = site.drops()?.count("radius-unauthentic-reply")?;
    tls = killed(&mut homes, site, tls, &folder)?;
    wrong_authority(&mut homes, site, lab, &folder)?;
    ensure!(site.drops()?.count("radius-unauthentic-reply")? == before);
    planned_end(lab, site)?;
    tls.stop()?;
    AccountingRecords::of(TCP.records(lab)?.into_iter().chain(TLS.records(lab)?))?.check()?;
    judge_wire(&capture.finish()?)
}

fn configure(site: &Site, edits: &[&str]) -> Result<()> {
    site.sluice().configure(&edits.join("\n"))
}

/// An address that the machine does not have is told, and used as soon as the machine has it.
fn source_address(lab: &Lab, site: &mut Site) -> Result<()> {
    configure(
        site,
        &[
            "delete aaa server-groups radius servers server1",
            &format!("set aaa server-groups radius source-ipv4 {SOURCE}"),
        ],
    )?;
    site.wait_for("the alarm about the source address", PATIENCE, |site| {
        let text = alarm(site, "aaa-sockets-missing")?;
        Ok(text.is_some_and(|text| text.contains(&format!("Give {SOURCE} to an interface"))))
    })?;
    let netns = lab.netns(Place::ControlPlane);
    netns.ip(&format!("addr replace {SOURCE}/32 dev lo"))?;
    site.wait_for("the alarm to be cleared", PATIENCE, |site| {
        Ok(alarm(site, "aaa-sockets-missing")?.is_none())
    })
}

fn change_to_tls(site: &Site, folder: &Path) -> Result<()> {
    let file = |leaf: &str, name: &str| {
        let path = folder.join(name);
        format!("set aaa servers server1 tls {leaf} {}", path.display())
    };
    let edits = [
        "set aaa servers server1 transport tls".to_owned(),
        file("authority", "ca.pem"),
        file("certificate", "client.pem"),
        file("key", "client.key"),
        format!("set aaa servers server1 tls server-name {NAME}"),
        "delete aaa servers server1 secret-key".to_owned(),
        "delete aaa servers server1 auth-port".to_owned(),
        "delete aaa servers server1 acct-port".to_owned(),
        "set aaa server-groups radius servers server1".to_owned(),
        "delete aaa server-groups radius servers server0".to_owned(),
    ];
    let edits: Vec<&str> = edits.iter().map(String::as_str).collect();
    configure(site, &edits)
}

/// The server is killed under sessions. They stay, what is to be recorded waits, and it comes back to new homes.
fn killed(
    homes: &mut Homes,
    site: &mut Site,
    tls: FreeRadius,
    folder: &Path,
) -> Result<FreeRadius> {
    let lab = homes.lab;
    let network = AccessNetwork::dial(lab, 40)?;
    network.wait_online(PATIENCE)?;
    tls.stop()?;
    let stay = site.sessions()?.len();
    ensure!(stay == 40, "{stay} sessions stay");
    network.hang_up(PATIENCE)?;
    site.wait_empty(PATIENCE)?;
    let stops = AccountingRecords::of(TLS.records(lab)?)?.with("Stop");
    ensure!(stops == homes.sessions, "somebody recorded {stops} ends");
    let network = AccessNetwork::dial(lab, 40)?;
    sleep(Duration::from_secs(2));
    let online = site.sessions()?.iter().filter(|s| s.ipv4.is_some()).count();
    ensure!(online == 0, "{online} homes are online without a server");
    ensure!(
        trouble(site)?.contains("Connection refused"),
        "{}",
        trouble(site)?
    );

    let tls_again = FreeRadius::start_over(lab, &TLS, RADSEC, Over::Tls(folder))?;
    let took = network.wait_online(PATIENCE)?;
    println!("        the server killed: the last of 40 homes online {took:.2?} after it dialled");
    network.hang_up(PATIENCE)?;
    site.wait_empty(PATIENCE)?;
    homes.sessions += 80;
    site.wait_recorded(lab, &[TLS], homes.sessions)?;
    Ok(tls_again)
}

/// The control plane is stopped without sessions: Accounting-Off goes over TLS, and is answered before it has been waited for in vain.
fn planned_end(lab: &Lab, site: &mut Site) -> Result<()> {
    let begun = Instant::now();
    site.cp.stop()?;
    let took = begun.elapsed();
    ensure!(took < Duration::from_secs(2), "the end took {took:?}");
    let told = TLS.announcements(lab)?;
    let off = told.iter().any(|entry| is(entry, "Accounting-Off"));
    ensure!(off, "no Accounting-Off among {told:#?}");
    accounting_on::start(lab, site)
}

/// The server's certificate is signed by another authority than the one that is configured: nothing is sent.
fn wrong_authority(homes: &mut Homes, site: &mut Site, lab: &Lab, folder: &Path) -> Result<()> {
    let authority = |folder: &Path| {
        let path = folder.join("ca.pem");
        format!("set aaa servers server1 tls authority {}", path.display())
    };
    configure(site, &[&authority(&lab.dir().join("foreign"))])?;
    let accepted = TLS.accepted(lab)?;
    let network = AccessNetwork::dial(lab, 1)?;
    site.wait_for("the reason to be told", PATIENCE, |site| {
        let alarm = alarm(site, "aaa-server-out")?.unwrap_or_default();
        Ok([trouble(site)?, alarm]
            .iter()
            .all(|text| text.contains("invalid peer certificate")))
    })?;
    println!("        wrong authority: {}", trouble(site)?);
    ensure!(TLS.accepted(lab)? == accepted, "the server was asked");
    configure(site, &[&authority(folder)])?;
    network.wait_online(PATIENCE)?;
    network.hang_up(PATIENCE)?;
    site.wait_empty(PATIENCE)?;
    homes.sessions += 1;
    site.wait_recorded(lab, &[TLS], homes.sessions)
}

/// Text of an alarm that is raised.
fn alarm(site: &Site, name: &str) -> Result<Option<String>> {
    let found: Value = serde_json::from_str(&site.sluice().run(&["show", "alarms", "--json"])?)?;
    let alarms = found["alarms"].as_array().context("no alarms")?;
    let alarm = alarms.iter().find(|alarm| alarm["name"] == name);
    Ok(alarm
        .and_then(|alarm| alarm["text"].as_str())
        .map(str::to_owned))
}

/// Why the server could not be connected to, as the table says.
fn trouble(site: &Site) -> Result<String> {
    let text = site.sluice().run(&["show", "aaa-servers", "--json"])?;
    let servers: Vec<AaaServer> = serde_json::from_str(&text).context(text)?;
    let found = servers.into_iter().find_map(|server| server.trouble);
    Ok(found.unwrap_or_default())
}

/// Homes that dial in and leave again.
struct Homes<'l> {
    lab: &'l Lab,
    /// Sessions so far with the server.
    sessions: usize,
}

impl Homes<'_> {
    fn come_and_go(&mut self, site: &mut Site, server: &Server, homes: u16) -> Result<Duration> {
        let network = AccessNetwork::dial(self.lab, homes)?;
        let took = network.wait_online(PATIENCE)?;
        network.hang_up(PATIENCE)?;
        site.wait_empty(PATIENCE)?;
        self.sessions += usize::from(homes);
        site.wait_recorded(self.lab, &[*server], self.sessions)?;
        Ok(took)
    }
}

/// Everything went over connections from the source address, and nothing in the open to the server over TLS.
fn judge_wire(capture: &Path) -> Result<()> {
    let seen =
        |filter: &str| Ok::<_, anyhow::Error>(tshark(capture, filter, &["frame.number"])?.len());
    // Accounting-On, and its answer, went before the servers were ones with connections
    let datagrams = seen("udp && radius && !(radius.Acct_Status_Type == 7 || radius.code == 5)")?;
    ensure!(datagrams == 0, "{datagrams} datagrams");
    let elsewhere = seen(&format!(
        "tcp.flags.syn == 1 && tcp.flags.ack == 0 && tcp.dstport in {{1812, 1813, 2083}} && ip.src != {SOURCE}"
    ))?;
    ensure!(elsewhere == 0, "{elsewhere} connections from elsewhere");
    let (tcp, tls) = (
        seen("tcp.port == 1812 || tcp.port == 1813")?,
        seen("tcp.port == 2083 && tls")?,
    );
    let open = seen("tcp.port == 2083 && tcp.len > 0 && tcp contains \"home1\"")?;
    ensure!(
        tcp > 0 && tls > 0 && open == 0,
        "{tcp} over TCP, {tls} over TLS, {open} in the open"
    );
    println!("        {tcp} segments over TCP, {tls} over TLS");
    Ok(())
}
