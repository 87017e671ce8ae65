use super::flood::mac_of;
use super::policies::sessions;
use super::rates::{count, lost};
use crate::command::Sluice;
use crate::fixture::Fixture;
use crate::flood::{Sender, Side};
use crate::frames::{icmp_echo, with_option};
use crate::guard::PATIENCE;
use crate::scenario::{Crowd, Scenario};
use crate::site::UP;
use anyhow::{Context, Result, ensure};
use lab::gateway::SUBSCRIBER_GATEWAY_V4;
use lab::topology::{CORE_PORT, Lab, Place};
use std::net::Ipv4Addr;
use std::thread::sleep;
use std::time::{Duration, Instant};

const HOMES: u16 = 10;
/// Packets a second of all homes.
const TRAFFIC: u32 = 2000;
/// How often each frame is sent.
const TIMES: u64 = 5;
/// A loose source route by 192.0.2.99 (RFC 791 section 3.1), and the end of the list.
const SOURCE_ROUTE: [u8; 8] = [131, 7, 4, 192, 0, 2, 99, 0];
/// How long the setting of a port may take to reach the user plane.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// The core port, and a network on a subinterface of it: what comes untagged from there does not come back by the way of the route.
const PORT: &str = "user-planes up1 ports core0";
const NETWORK: &str = "203.0.113.1/24";
const BEHIND_SUBINTERFACE: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 9);

/// What a stranger on the core link sends.
struct Forged {
    /// The counter of its drops, with a strict check.
    counter: &'static str,
    frame: Vec<u8>,
}

/// Strict, loose and no check, while homes talk: whatever cannot be is dropped and counted by name, and no packet of a home is lost.
pub fn run(fixture: &mut Fixture) -> Result<()> {
    let lab = fixture.without_site()?;
    let scenario = Scenario::open(lab)?;
    let mut crowd = Crowd::dial(lab, HOMES, TRAFFIC)?;
    crowd.wait_online(&scenario, PATIENCE)?;
    let sluice = Sluice::of(lab);
    sluice.configure(&format!(
        "set {PORT} subinterfaces v300 vlan-id 300\nset {PORT} subinterfaces v300 addresses {NETWORK}"
    ))?;
    let forged = forged(lab, &sluice)?;
    let mut core = Core {
        sender: Sender::open(lab, Side::Core)?,
        sluice: &sluice,
    };
    // With each setting, which of the frames are dropped.
    let none = ["martian-source", "source-route"];
    let loose = ["martian-source", "source-route", "inside-source"];
    let strict = [
        "martian-source",
        "source-route",
        "inside-source",
        "reverse-path",
    ];
    for (edit, dropped) in [
        (format!("set {PORT} source-check strict"), &strict[..]),
        (format!("set {PORT} source-check loose"), &loose),
        (format!("delete {PORT} source-check"), &none),
        (
            "set user-planes up1 ipv4-options forward".to_owned(),
            &none[..1],
        ),
        (
            format!("set {PORT} source-check strict"),
            &["martian-source", "inside-source", "reverse-path"],
        ),
    ] {
        sluice.configure(&edit)?;
        for Forged { counter, frame } in &forged {
            let is_dropped = dropped.contains(counter);
            core.settles(counter, frame, is_dropped)
                .context(edit.clone())?;
            let counted = core.counted(counter, frame, is_dropped)?;
            let expected = if is_dropped { TIMES } else { 0 };
            ensure!(counted == expected, "{edit}: {counter} grew by {counted}");
        }
        let (lost, _) = lost(&mut crowd, "reverse-path", &sluice, |_| Ok(true))?;
        ensure!(lost == 0, "{edit}: homes lost {lost} packets");
    }
    crowd.check()?;
    sluice.ledger()?;
    crowd.hang_up(&scenario, PATIENCE)?;
    scenario.close()
}

/// Frames to a home of the first user plane.
fn forged(lab: &Lab, sluice: &Sluice) -> Result<Vec<Forged>> {
    let macs = [
        mac_of(lab, Place::UserPlane(UP), CORE_PORT)?,
        mac_of(lab, Place::Internet, UP.core_link())?,
    ];
    let homes = sessions(sluice)?.into_iter();
    let homes = homes.filter(|session| session.user_plane == UP.name());
    let homes = homes.filter_map(|session| session.ipv4?.parse().ok());
    let homes: Vec<Ipv4Addr> = homes.take(2).collect();
    let [home, other] = homes[..] else {
        anyhow::bail!("fewer than two homes are online at {}", UP.name());
    };
    let echo = |from| icmp_echo(macs, from, home, 1);
    let of = |counter, frame| Forged { counter, frame };
    let honest = echo(UP.internet_v4());
    Ok(vec![
        of("reverse-path", echo(BEHIND_SUBINTERFACE)),
        of("inside-source", echo(other)),
        of("inside-source", echo(SUBSCRIBER_GATEWAY_V4)),
        of("martian-source", echo(Ipv4Addr::LOCALHOST)),
        of("martian-source", echo(Ipv4Addr::new(240, 0, 0, 1))),
        of("source-route", with_option(&honest, &SOURCE_ROUTE)),
    ])
}

/// A stranger on the core link.
struct Core<'a> {
    sender: Sender,
    sluice: &'a Sluice,
}

impl Core<'_> {
    /// Sends a frame a few times; by how much its counter has grown, as soon as that is what it should be.
    fn counted(&mut self, counter: &str, frame: &[u8], is_dropped: bool) -> Result<u64> {
        let (before, begun) = (count(self.sluice, counter)?, Instant::now());
        for _ in 0..TIMES {
            ensure!(self.sender.send(frame)?, "the core link takes no frame");
        }
        loop {
            sleep(LOOK_AGAIN);
            let grown = count(self.sluice, counter)? - before;
            if !is_dropped || grown >= TIMES || begun.elapsed() > PATIENCE {
                return Ok(grown);
            }
        }
    }

    /// Waits until the user plane has the setting by which the frame is dropped, or is not.
    fn settles(&mut self, counter: &str, frame: &[u8], is_dropped: bool) -> Result<()> {
        let begun = Instant::now();
        loop {
            let before = count(self.sluice, counter)?;
            ensure!(self.sender.send(frame)?, "the core link takes no frame");
            sleep(LOOK_AGAIN);
            if (count(self.sluice, counter)? > before) == is_dropped {
                return Ok(());
            }
            ensure!(begun.elapsed() < PATIENCE, "{counter} does not change");
        }
    }
}
