use crate::fixture::Fixture;
use crate::frames::{Line, mac};
use crate::guard::PATIENCE;
use crate::home::{Home, S_TAG};
use crate::internet::Listener;
use crate::probe::Probe;
use crate::site::{Setup, Site};
use anyhow::{Result, ensure};
use lab::topology::{INTERNET_V4, INTERNET_V6};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Where the internet host listens.
const PORT: u16 = 4321;
/// How often each frame is sent.
const TIMES: u64 = 5;

/// The frame that a home could send, and everything that a cheat would change in it.
struct Honest {
    line: Line,
    ipv4: Ipv4Addr,
    ipv6: Ipv6Addr,
}

pub fn run(fixture: &mut Fixture) -> Result<()> {
    let stage = fixture.stage(&Setup::default())?;
    let (home, victim) = (Home::build(stage.vm, 7)?, Home::build(stage.vm, 8)?);
    let honest = line_of(&home, "alice", "wonderland", stage.site)?;
    let other = line_of(&victim, "bob", "builder", stage.site)?;
    let internet = Listener::open(stage.lab, PORT)?;
    let probe = Probe::join(stage.lab)?;
    let send = |frame: Vec<u8>| (0..TIMES).try_for_each(|_| probe.send(&frame));

    // The way is open, so nothing waits for a neighbour's MAC address when the few frames below come.
    home.reach(&INTERNET_V4.to_string())?;
    home.reach(&INTERNET_V6.to_string())?;
    // What the home may send arrives: the frames are right but for what each of the following cases changes.
    for (family, frame) in [
        ("IPv4", honest.udp4(honest.ipv4, "honest")),
        ("IPv6", honest.udp6(honest.ipv6, "honest")),
    ] {
        let before = stage.site.drops()?;
        send(frame)?;
        let arrived = internet.expect(TIMES)?;
        ensure!(
            arrived == vec!["honest"; TIMES as usize],
            "of {TIMES} honest {family} packets arrived {arrived:?}; dropped meanwhile: {:?}",
            stage.site.drops()?.since(&before)
        );
    }
    let with = |change: fn(&mut Line, &Line)| {
        let mut line = honest.line.clone();
        change(&mut line, &other.line);
        Honest { line, ..honest }
    };
    let forgeries = [
        (
            "IPv4 source of another subscriber",
            "spoofed-source-v4",
            honest.udp4(other.ipv4, "forged"),
        ),
        (
            "IPv4 source of nobody",
            "spoofed-source-v4",
            honest.udp4(Ipv4Addr::new(203, 0, 113, 5), "forged"),
        ),
        (
            "IPv6 source of another subscriber",
            "spoofed-source-v6",
            honest.udp6(other.ipv6, "forged"),
        ),
        (
            "MAC address",
            "wrong-mac",
            with(|line, _| line.mac[5] ^= 0x40).udp4(honest.ipv4, "forged"),
        ),
        (
            "another subscriber's session id",
            "wrong-mac",
            with(|line, other| line.session = other.session).udp4(other.ipv4, "forged"),
        ),
        (
            "another subscriber's session id and MAC address",
            "wrong-tag",
            with(|line, other| (line.session, line.mac) = (other.session, other.mac))
                .udp4(other.ipv4, "forged"),
        ),
        (
            "inner tag",
            "wrong-tag",
            with(|line, _| line.tags[1] = 9).udp4(honest.ipv4, "forged"),
        ),
        (
            "outer tag",
            "wrong-tag",
            with(|line, _| line.tags[0] = 101).udp4(honest.ipv4, "forged"),
        ),
        (
            "session id of nobody",
            "unknown-session",
            with(|line, _| line.session = 0xfff0).udp4(honest.ipv4, "forged"),
        ),
    ];
    for (what, counter, frame) in forgeries {
        let before = stage.site.drops()?;
        send(frame)?;
        stage.site.wait_for(counter, PATIENCE, |site| {
            Ok(site.drops()?.count(counter)? >= before.count(counter)? + TIMES)
        })?;
        let arrived = internet.expect(0)?;
        ensure!(
            arrived.is_empty(),
            "{what}: {} forged packets reached the internet",
            arrived.len()
        );
        let after = stage.site.drops()?;
        let counted = after.count(counter)? - before.count(counter)?;
        ensure!(
            counted == TIMES,
            "{what}: {counter} grew by {counted}, not {TIMES}; all: {:?}",
            after.since(&before)
        );
    }
    home.ping(&INTERNET_V4.to_string(), 2)?;
    home.hang_up()?;
    victim.hang_up()
}

fn line_of(home: &Home, user: &str, password: &str, site: &Site) -> Result<Honest> {
    let granted = home.dial(user, password)?;
    let ipv6 = home.wait_ipv6()?;
    let session = site.session_of(home.c_tag())?;
    let line = Line {
        gateway: mac(&granted.gateway_mac)?,
        mac: mac(&home.mac())?,
        tags: [S_TAG, home.c_tag()],
        session: session.pppoe_session_id.try_into()?,
    };
    Ok(Honest {
        line,
        ipv4: granted.local,
        ipv6,
    })
}

impl Honest {
    fn udp4(&self, from: Ipv4Addr, text: &str) -> Vec<u8> {
        self.line.udp4(from, INTERNET_V4, PORT, text)
    }

    fn udp6(&self, from: Ipv6Addr, text: &str) -> Vec<u8> {
        self.line.udp6(from, INTERNET_V6, PORT, text)
    }
}
