use crate::access_network::PASSWORD;
use crate::fixture::Fixture;
use crate::guard::{self, PATIENCE};
use crate::leak_check::{balanced, complete_records, nothing_left};
use crate::radius::FreeRadius;
use crate::scenario::{Crowd, Scenario};
use crate::silent_homes::SilentHomes;
use anyhow::{Context, Result, ensure};
use ipnet::Ipv6Net;
use lab::access_network::Status;
use lab::topology::Lab;
use northbound::{Session, SessionState};
use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::time::Duration;

/// Homes with fixed addresses, whose routers reboot all at once.
const FIXED: u32 = 20;
/// How often they do.
const ROUNDS: u32 = 50;
/// Every so many rounds they reboot once more before the new sessions are online.
const HURRIED: u32 = 3;
/// How soon: a multiple of this, of which there are so many.
const HURRY: Duration = Duration::from_millis(2);
const HURRIES: u32 = 16;
/// Everybody is online again within this time of a reboot. A goodbye to the session before would be repeated for longer.
const AT_ONCE: Duration = Duration::from_secs(5);
/// Homes with traffic beside them, at both user planes.
const BESIDE: u16 = 500;
const RATE: u32 = 4_000;

/// What RADIUS gives a home: an address, a prefix, and networks behind its router.
struct Fixed {
    address: Ipv4Addr,
    prefix: Ipv6Net,
    routes: [String; 2],
}

fn fixed(home: u32) -> Fixed {
    let number = home as u8 + 1;
    let prefix = [0x2001, 0xdb8, 0x7600, number.into(), 0, 0, 0, 0].into();
    Fixed {
        address: [203, 0, 113, number].into(),
        prefix: Ipv6Net::new_assert(prefix, 64),
        routes: [
            format!("198.18.{number}.0/24"),
            format!("2001:db8:77{number:02x}::/48"),
        ],
    }
}

/// FreeRADIUS' users, and those with fixed addresses before them.
fn users(lab: &Lab) -> Result<PathBuf> {
    let entry = |home| {
        let Fixed {
            address,
            prefix,
            routes: [ipv4, ipv6],
        } = fixed(home);
        format!(
            "fixed{home} Cleartext-Password := \"{PASSWORD}\"
\tFramed-IP-Address = {address},
\tFramed-IPv6-Prefix = {prefix},
\tFramed-Route = \"{ipv4} 0.0.0.0 1\",
\tFramed-IPv6-Route = \"{ipv6} :: 1\"

"
        )
    };
    let all: String = (0..FIXED).map(entry).collect();
    let file = lab.dir().join("users");
    fs::write(&file, all + &fs::read_to_string(FreeRadius::users())?)?;
    Ok(file)
}

/// No two sessions have an address.
fn one_owner_each(sessions: &[Session]) -> Result<()> {
    let mut owners = BTreeMap::new();
    for session in sessions {
        let addresses = [&session.ipv4, &session.ipv6_prefix];
        for address in addresses.into_iter().flatten() {
            if let Some(other) = owners.insert(address, &session.id) {
                anyhow::bail!("{address} is at {other} and {}", session.id);
            }
        }
    }
    Ok(())
}

/// Every home has what RADIUS gives it, and both planes know it as its only session that is online.
fn own_addresses(scenario: &Scenario, status: &Status) -> Result<()> {
    let sessions = scenario.gateway.sessions()?;
    one_owner_each(&sessions)?;
    for (home, row) in (0..).zip(&status.rows) {
        let Fixed {
            address, prefix, ..
        } = fixed(home);
        let [ipv4, ipv6] = row.addresses;
        let is_own = ipv4 == Some(address.into())
            && matches!(ipv6, Some(IpAddr::V6(own)) if prefix.contains(&own));
        ensure!(is_own, "fixed{home} has {:?}", row.addresses);
        let own = sessions.iter().filter(|s| s.user == row.user);
        let online: Vec<_> = own.filter(|s| s.state() == SessionState::Online).collect();
        let [session] = online[..] else {
            anyhow::bail!("fixed{home} is online in {} sessions", online.len());
        };
        let (ipv4, ipv6) = (address.to_string(), prefix.to_string());
        ensure!(
            session.ipv4.as_ref() == Some(&ipv4) && session.ipv6_prefix.as_ref() == Some(&ipv6),
            "fixed{home} is online with {session:?}"
        );
    }
    Ok(())
}

/// A thousand times a router with fixed addresses and routes reboots without a goodbye and connects again: it has the same at
/// once, nobody else ever does, and others lose no packet.
pub fn run(fixture: &mut Fixture) -> Result<()> {
    guard::limit("takeovers");
    let lab = fixture.without_site()?;
    let scenario = Scenario::open_with(lab, &users(lab)?)?;
    let mut beside = Crowd::dial(lab, BESIDE, RATE)?;
    beside.wait_online(&scenario, PATIENCE)?;
    let before = beside.hush();
    beside.speak();
    let fixed = SilentHomes::dial(lab, "fixed", FIXED)?;
    own_addresses(&scenario, &fixed.status())?;

    let (mut took, mut longest) = (Duration::ZERO, Duration::ZERO);
    let mut reboots = 0;
    for round in 1..=ROUNDS {
        // once more while the new session is being set up: earlier and later in that
        let again = (round % HURRIED == 0).then(|| HURRY * (1 + round % HURRIES));
        fixed.reboot(again);
        reboots += 1 + u32::from(again.is_some());
        one_owner_each(&scenario.gateway.sessions()?)?;
        let status =
            fixed.wait(|status| status.reboots == reboots && status.back_online.is_some())?;
        let back = status.back_online.context("it is there")?;
        (took, longest) = (took + back, longest.max(back));
        own_addresses(&scenario, &status)?;
        ensure!(back <= AT_ONCE, "all are online again after {back:?}");
        scenario.check()?;
    }
    let after = beside.hush();
    beside.check()?;
    let lost: u64 = [0, 1]
        .iter()
        .map(|up| after[*up].since(&before[*up]).1)
        .sum();
    ensure!(lost == 0, "the others lost {lost} packets");
    balanced(lab)?;
    println!(
        "        {} takeovers of fixed addresses in {ROUNDS} rounds, {} of them hurried: online again after {:.2} s on the average, \
         {:.2} s at most; {BESIDE} homes beside them lost nothing",
        FIXED * ROUNDS,
        FIXED * (ROUNDS / HURRIED),
        took.as_secs_f64() / f64::from(ROUNDS),
        longest.as_secs_f64()
    );

    fixed.hang_up()?;
    beside.hang_up(&scenario, PATIENCE)?;
    nothing_left(lab, &scenario)?;
    let sessions = complete_records(lab, &scenario)?.sessions();
    let least = (FIXED * (1 + ROUNDS) + u32::from(BESIDE)) as usize;
    ensure!(
        sessions >= least,
        "{sessions} sessions on record, not {least} or more"
    );
    scenario.close()
}
