use crate::fixture::{Fixture, Stage};
use crate::guard::PATIENCE;
use crate::home::Home;
use crate::iperf::{self, Server};
use crate::site::{CONFIGURED_AS, Setup, Site, UP};
use crate::sniff::{Capture, tshark};
use anyhow::{Context, Result, ensure};
use lab::gateway::{SUBSCRIBER_GATEWAY_V4, SUBSCRIBER_GATEWAY_V6};
use lab::topology::{CORE_PORT, INTERNET_V4, INTERNET_V6, Lab, Place};
use std::net::IpAddr;
use std::path::Path;

/// What a session has from the start, and what it and the core link are lowered to.
const PPPOE: u16 = 1492;
const SESSION: u16 = 1400;
const CORE: u16 = 1300;
/// The core link's other end.
const LINK: &str = "core-up1";
const LINK_MTU: u16 = 1500;
/// Of a thousand segments so many are sent again at most: the first ones, until an end has learned the path's MTU.
const AGAIN: f64 = 15.0;

/// Both ends are Linux's kernels: what is too large is fragmented or reported, and TCP knows beforehand.
pub fn run(fixture: &mut Fixture) -> Result<()> {
    let stage = fixture.stage(&Setup::default())?;
    let lab = stage.lab;
    let done = lowered(&stage);
    set_link(lab, LINK_MTU)?;
    forget(lab)?;
    done?;
    set_port(stage.site, LINK_MTU)?;
    set_session(stage.site, PPPOE)
}

fn lowered(stage: &Stage<'_>) -> Result<()> {
    let (lab, site) = (stage.lab, &*stage.site);
    let home = Home::build(stage.vm, 7)?;
    let v4 = home.dial("alice", "wonderland")?.local.into();
    let v6 = home.wait_ipv6()?.into();
    let before = site.drops()?;
    let count = |name| Ok::<_, anyhow::Error>(site.drops()?.count(name)? - before.count(name)?);
    for address in [v4, v6].map(|address: IpAddr| address.to_string()) {
        let internet = lab.netns(Place::Internet);
        let said = internet.run(&["tracepath", "-n", "-m", "5", &address])?;
        ensure!(said.contains(&format!("Resume: pmtu {PPPOE} ")), "{said}");
    }
    towards_the_home(lab, v4, v6, PPPOE)?;
    ensure!(
        count("fragmented")? >= 6,
        "3 pings of two that are too large"
    );
    ensure!(count("too-big")? >= 2, "one packet of each family");

    set_session(site, SESSION)?;
    towards_the_home(lab, v4, v6, SESSION)?;
    for own in [
        SUBSCRIBER_GATEWAY_V4.to_string(),
        SUBSCRIBER_GATEWAY_V6.to_string(),
    ] {
        // The kernel's answer is larger than the session takes: of IPv6's it has to learn that.
        large_pings(&home, &own, 2000)?;
    }
    let refused = count("too-big")?;
    connections(stage, &home)?;
    ensure!(
        count("too-big")? == refused,
        "TCP sent more than the session takes"
    );

    set_port(site, CORE)?;
    set_link(lab, CORE)?;
    let whole = count("fragmented")?;
    large_pings(&home, &INTERNET_V4.to_string(), 3000)?;
    ensure!(count("fragmented")? > whole, "nothing was fragmented");
    for (address, header) in [(INTERNET_V4.to_string(), 28), (INTERNET_V6.to_string(), 48)] {
        large_pings(&home, &address, SESSION - header)?;
        let route = home.must(&format!("ip route get {address}"))?;
        let learned = route.contains(&format!("mtu {CORE}"));
        ensure!(learned, "the home learned no path MTU of {CORE}: {route}");
        for options in ["-n 1M", "-n 1M -R"] {
            transfer(lab, &home, &address, options)?;
        }
    }
    home.hang_up()
}

/// The internet host is told what the home takes, and what it may cut arrives in fragments.
fn towards_the_home(lab: &Lab, v4: IpAddr, v6: IpAddr, mtu: u16) -> Result<()> {
    let ping = |address: IpAddr, options: &str| -> Result<String> {
        let (address, mut command) = (
            address.to_string(),
            lab.netns(Place::Internet).command("ping"),
        );
        command.args(["-n", "-c", "3", "-i", "0.2", "-W", "2"]);
        let done = command.args(options.split(' ')).arg(address).output()?;
        Ok(String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned())
    };
    let gateways = [
        SUBSCRIBER_GATEWAY_V4.to_string(),
        SUBSCRIBER_GATEWAY_V6.to_string(),
    ];
    let words = [format!("(mtu = {mtu})"), format!("mtu={mtu}")];
    forget(lab)?;
    // As long as it knows nothing of the path, it cuts for its own link alone.
    let said = ping(v4, "-M dont -s 3000")?;
    ensure!(said.contains(" 3 received"), "{said}");
    for (address, header, gateway, word) in [
        (v4, 28, &gateways[0], &words[0]),
        (v6, 48, &gateways[1], &words[1]),
    ] {
        let said = ping(address, &format!("-M do -s {}", mtu + 1 - header))?;
        let told = said.contains(&format!("From {gateway} ")) && said.contains(word);
        ensure!(told && said.contains(" 0 received"), "{said}");
        for options in [
            format!("-M do -s {}", mtu - header),
            "-M dont -s 3000".into(),
        ] {
            let said = ping(address, &options)?;
            ensure!(said.contains(" 3 received"), "{options}: {said}");
        }
    }
    Ok(())
}

/// The internet host forgets what it learned of paths.
fn forget(lab: &Lab) -> Result<()> {
    let both = "ip route flush cache && ip -6 route flush cache";
    lab.netns(Place::Internet)
        .run(&["sh", "-c", both])
        .map(drop)
}

/// Pings with so many octets; all but the first are answered, from which an end may learn the path's MTU.
fn large_pings(home: &Home<'_>, address: &str, octets: u16) -> Result<()> {
    let command = format!("ping -c 6 -i 0.2 -W 2 -s {octets} {address}");
    let done = home.run(&command, PATIENCE)?;
    let words: Vec<&str> = done.output.split_whitespace().collect();
    let place = words.iter().position(|word| *word == "received,");
    let received = place.and_then(|place| words.get(place.checked_sub(2)?)?.parse().ok());
    let received: u32 = received.with_context(|| done.output.clone())?;
    ensure!(received >= 4, "{command}: {}", done.output);
    Ok(())
}

/// Neither end of a connection is offered more than the session carries, whoever begins, and data flows.
fn connections(stage: &Stage<'_>, home: &Home<'_>) -> Result<()> {
    forget(stage.lab)?;
    let core = Capture::start(stage.lab, Place::Internet, LINK, "syn-core")?;
    let access = Capture::start(stage.lab, Place::Access(UP), "vm0", "syn-access")?;
    for address in [INTERNET_V4.to_string(), INTERNET_V6.to_string()] {
        for options in ["-n 1M", "-n 1M -R"] {
            transfer(stage.lab, home, &address, options)?;
        }
    }
    let (core, access) = (core.finish()?, access.finish()?);
    for (version, header) in [("ip", 40), ("ipv6", 60)] {
        let fits = SESSION - header;
        let syn = format!("{version} && tcp.flags.syn == 1 && tcp.flags.ack == 0");
        let answer = format!("{version} && tcp.flags.syn == 1 && tcp.flags.ack == 1");
        // What left each end, and what arrived at the other.
        let (sent, arrived) = (offers(&access, &syn)?, offers(&core, &syn)?);
        let (answered, got) = (offers(&core, &answer)?, offers(&access, &answer)?);
        println!(
            "        {version}: home {sent:?} -> {arrived:?}, internet {answered:?} -> {got:?}"
        );
        ensure!(
            arrived.len() >= 4 && arrived.iter().chain(&got).all(|mss| *mss == fits),
            "not all offers are {fits}"
        );
        ensure!(
            answered.iter().all(|mss| *mss > fits),
            "nothing to be clamped"
        );
    }
    Ok(())
}

fn offers(file: &Path, filter: &str) -> Result<Vec<u16>> {
    let lines = tshark(file, filter, &["tcp.options.mss_val"])?;
    let numbers = lines.iter().map(|line| line.trim().parse());
    numbers
        .collect::<Result<_, _>>()
        .with_context(|| format!("no MSS: {lines:?}"))
}

fn transfer(lab: &Lab, home: &Home<'_>, address: &str, options: &str) -> Result<()> {
    let _server = Server::start(lab)?;
    let sent = iperf::run(home, address, options)?;
    println!(
        "        {address} {options}: {:.0} Mbit/s, {:.2} of a thousand segments sent again",
        sent.rate / 1e6,
        sent.again
    );
    sent.check(AGAIN)
        .with_context(|| format!("with {address} ({options})"))
}

/// What a session takes, while it lasts.
fn set_session(site: &Site, mtu: u16) -> Result<()> {
    site.sluice()
        .configure(&format!("set subscriber-profiles standard mtu {mtu}"))
}

fn set_port(site: &Site, mtu: u16) -> Result<()> {
    let port = format!("user-planes {CONFIGURED_AS} ports {CORE_PORT}");
    site.sluice().configure(&format!("set {port} mtu {mtu}"))
}

fn set_link(lab: &Lab, mtu: u16) -> Result<()> {
    let (internet, mtu) = (lab.netns(Place::Internet), mtu.to_string());
    internet
        .run(&["ip", "link", "set", LINK, "mtu", &mtu])
        .map(drop)
}
