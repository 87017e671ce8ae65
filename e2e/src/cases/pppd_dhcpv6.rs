use crate::fixture::Fixture;
use crate::guard::PATIENCE;
use crate::home::Home;
use crate::lan::{Client, Lan};
use crate::site::{Setup, UP};
use crate::sniff::{Capture, tshark};
use crate::vm::TAP;
use anyhow::{Context, Result, ensure};
use lab::topology::{INTERNET_V6, Place};
use std::net::Ipv6Addr;

/// What RADIUS gives grace: a prefix for her network, and an address for her router.
const PREFIX: &str = "2001:db8:9100::/56";
const ADDRESS: &str = "2001:db8:91ff::7";
/// A host on her network, in the first /64 of the prefix.
const HOST: &str = "2001:db8:9100::2";

pub fn wide(fixture: &mut Fixture) -> Result<()> {
    with(fixture, Client::Wide)
}

pub fn dhcpcd(fixture: &mut Fixture) -> Result<()> {
    with(fixture, Client::Dhcpcd)
}

fn with(fixture: &mut Fixture, client: Client) -> Result<()> {
    let stage = fixture.stage(&Setup::default())?;
    let capture = Capture::start(stage.lab, Place::Access(UP), TAP, "dhcpv6")?;
    let home = Home::build(stage.vm, 7)?;
    let lan = Lan::build(&home, client)?;
    home.dial("grace", "behind")?;
    home.wait_ipv6()?;
    lan.ask()?;
    let router = lan.wait()?;
    let prefix: ipnet::Ipv6Net = PREFIX.parse()?;
    ensure!(prefix.contains(&router), "{router} is not in {PREFIX}");
    lan.wait_address(ADDRESS)?;

    // A host behind reaches the internet, and it reaches the host.
    let host: Ipv6Addr = HOST.parse()?;
    lan.settle_host(host, router)?;
    lan.reach(&INTERNET_V6.to_string())?;
    let limit = PATIENCE.as_secs().to_string();
    let internet = stage.lab.netns(Place::Internet);
    internet
        .run(&["ping", "-c", "3", "-i", "0.2", "-w", &limit, HOST])
        .context("from the internet to the host")?;

    let session = stage.site.session_of(7)?;
    let found = stage.site.sluice().run(&["explain", HOST])?;
    ensure!(found.contains("grace"), "explain {HOST}:\n{found}");
    lan.give_back()?;
    // The leases are the session's, which goes on.
    let now = stage.site.session_of(7)?.id;
    ensure!(now == session.id, "another session after a Release");
    home.hang_up()?;
    stage.site.wait_empty(PATIENCE)?;
    judge(&capture.finish()?, client)
}

/// What tshark reads: the messages of both sides, what they carry, and nothing to complain about.
fn judge(file: &std::path::Path, client: Client) -> Result<()> {
    let kinds = tshark(file, "dhcpv6", &["dhcpv6.msgtype"])?;
    let wanted: &[(&str, &str)] = &[
        ("1", "Solicit"),
        ("2", "Advertise"),
        ("3", "Request"),
        ("7", "Reply"),
        ("8", "Release"),
    ];
    for (kind, name) in wanted {
        let seen = kinds.iter().any(|seen| seen == kind);
        ensure!(seen, "no {name} of {client:?}: {kinds:?}");
    }
    let leases = "dhcpv6.msgtype == 7 && dhcpv6.iaprefix.pref_addr";
    let fields = [
        "dhcpv6.iaprefix.pref_addr",
        "dhcpv6.iaprefix.pref_len",
        "dhcpv6.iaaddr.ip",
        "dhcpv6.dns_server",
    ];
    let replies = tshark(file, leases, &fields)?;
    let told = format!("2001:db8:9100::\t56\t{ADDRESS}\t2001:db8::53");
    ensure!(replies.first() == Some(&told), "{replies:?}, not {told}");
    let complaints =
        "dhcpv6 && (_ws.malformed || _ws.expert.severity >= 0x600000 || udp.checksum.status == 0)";
    let wrong = tshark(file, complaints, &["frame.number", "_ws.expert.message"])?;
    ensure!(wrong.is_empty(), "tshark complains:\n{}", wrong.join("\n"));
    Ok(())
}
