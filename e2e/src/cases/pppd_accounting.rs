use crate::accounting::{is, octets, text};
use crate::fixture::Fixture;
use crate::guard::PATIENCE;
use crate::home::{Counted, Home};
use crate::iperf::{self, Server};
use crate::radius::ALONE;
use crate::site::Setup;
use anyhow::{Context, Result, ensure};
use lab::topology::{INTERNET_V4, INTERNET_V6};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Within this time Linux sends what it repeats of its own accord (MLD), and the gateway what nobody has acknowledged.
const QUIET: Duration = Duration::from_millis(1500);

/// Octets of a Router Advertisement with its IPv6 header, a prefix and a name server (RFC 4861 section 4.2, RFC 8106 section 5.1).
const ADVERTISEMENT: u64 = 40 + 16 + 32 + 24;

/// What is counted: octets of IP packets, headers included, of packets that were forwarded.
///
/// Linux counts the same on `ppp0`, and beside it NCP frames (IPCP, IPV6CP), Router Solicitations and
/// Advertisements, and the multicast that it sends of its own accord (MLD). All of that is over when the home is
/// online, so the interface is read then and again before it hangs up.
pub fn run(fixture: &mut Fixture) -> Result<()> {
    let stage = fixture.stage(&Setup::default())?;
    let lab = stage.lab;
    let home = Home::build(stage.vm, 7)?;
    let granted = home.dial("alice", "wonderland")?;
    home.wait_ipv6()?;
    let (before, advertised) = (at_rest(&home)?, advertisements(&home)?);
    let already = stage.site.session_of(7)?.traffic.unwrap_or_default();
    let server = Server::start(stage.lab)?;
    home.ping(&INTERNET_V4.to_string(), 3)?;
    // A small window: what overflows a queue between the interface and the gateway only one of them has counted.
    iperf::run(&home, &INTERNET_V4.to_string(), "-t 1 -w 128K")?;
    iperf::run(&home, &INTERNET_V6.to_string(), "-t 1 -w 128K -R")?;
    drop(server);
    let after = at_rest(&home)?;
    // A case that takes long on a busy machine hears another one, which is the gateway's own and is not counted.
    let advertised = (advertisements(&home)? - advertised) * ADVERTISEMENT;
    let id = stage.site.session_of(7)?.id;
    home.hang_up()?;

    stage.site.wait_for("Accounting-Stop", PATIENCE, |_| {
        let entries = ALONE.accounting_of(lab, &id)?;
        Ok(entries.iter().any(|entry| is(entry, "Stop")))
    })?;
    // A record that was sent twice would follow within the retransmission time.
    sleep(QUIET);
    let entries = ALONE.accounting_of(lab, &id)?;
    let [start, stop] = &entries[..] else {
        anyhow::bail!("expected one Start and one Stop: {entries:#?}");
    };
    ensure!(is(start, "Start") && is(stop, "Stop"), "{entries:#?}");
    for entry in [start, stop] {
        ensure!(text(entry, "User-Name")? == "alice", "{entry:#?}");
        ensure!(
            text(entry, "Class")? == "0x616c696365",
            "Class is not echoed: {entry:#?}"
        );
        ensure!(
            text(entry, "Framed-IP-Address")? == granted.local.to_string(),
            "{entry:#?}"
        );
        ensure!(
            entry.contains_key("Event-Timestamp"),
            "no Event-Timestamp: {entry:#?}"
        );
    }
    ensure!(
        text(stop, "Acct-Terminate-Cause")? == "User-Request",
        "{stop:#?}"
    );
    let sent = octets(stop, "Acct-Input")? - already.up_octets;
    let received = octets(stop, "Acct-Output")? - already.down_octets;
    println!(
        "        the interface counted {before:?} to {after:?}, accounting {sent} up, {received} down"
    );
    ensure!(
        sent == after.sent - before.sent,
        "up: {sent}, but ppp0 sent {}",
        after.sent - before.sent
    );
    ensure!(
        received == after.received - before.received - advertised,
        "down: {received}, but ppp0 received {}, {advertised} of it in Router Advertisements",
        after.received - before.received
    );
    Ok(())
}

/// Router Advertisements that the home has heard.
fn advertisements(home: &Home) -> Result<u64> {
    let said = home.must("grep Icmp6InRouterAdvertisements /proc/net/snmp6")?;
    let count = said.split_whitespace().nth(1).context("no counter")?;
    Ok(count.parse()?)
}

/// What the interface has counted once it counts nothing more.
fn at_rest(home: &Home) -> Result<Counted> {
    let (start, mut last) = (Instant::now(), home.counted()?);
    loop {
        sleep(QUIET);
        let now = home.counted()?;
        if now == last {
            return Ok(now);
        }
        ensure!(start.elapsed() < PATIENCE, "the interface does not rest");
        last = now;
    }
}
