use super::commits::commit;
use crate::access_network::{AccessNetwork, home};
use crate::fixture::Fixture;
use crate::guard::PATIENCE;
use crate::site::{CONFIGURED_AS, Setup, Site};
use crate::strace::{Call, Strace, Trace};
use anyhow::{Context, Result, ensure};
use control::store::check;
use northbound::ConfigurationClient;
use std::collections::BTreeSet;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

const HOMES: u16 = 3;
const TICK: Duration = Duration::from_millis(200);
/// PPP's protocols, and what leads to them in a frame: PPPoE's ethertype, version and code (RFC 2516 section 4).
const PPPOE: [u8; 4] = [0x88, 0x64, 0x11, 0];
const IPCP_ACK: [u8; 3] = [0x80, 0x21, 2];
const IPV6: [u8; 2] = [0, 0x57];

/// As the kernel sees it: what releases a subscriber, and each record of accounting, leaves when the store is on the disk; a
/// commit is acknowledged and a document is in force when the files and their names are.
pub fn run(fixture: &mut Fixture) -> Result<()> {
    let (lab, site) = fixture.site(&Setup::default())?;
    let cp = Strace::attach(lab, &site.cp)?;
    let up = Strace::attach(lab, &site.up)?;
    let network = AccessNetwork::dial(lab, HOMES)?;
    network.wait_online(PATIENCE)?;
    let mut client = ConfigurationClient::connect(&lab.dir().join("cp.sock"), PATIENCE)?;
    let base = client.versions()?.last().context("no version")?.version;
    let hold = (100 + base).to_string();
    let hold = ["user-planes", CONFIGURED_AS, "hold-sessions", &hold];
    let done = client.commit(commit(base, &[&hold]))?;
    let committed = SystemTime::now();
    ensure!(
        done.faults.is_empty() && done.pending.is_empty(),
        "{done:?}"
    );
    let sessions = site.sessions()?.into_iter().map(|session| session.id);
    let sessions: Vec<String> = sessions.collect();
    ensure!(sessions.len() == usize::from(HOMES), "{sessions:?}");
    network.hang_up(PATIENCE)?;
    site.wait_empty(PATIENCE)?;
    let (store, documents) = (lab.dir().join("store"), lab.dir().join("up"));
    site.wait_for("the store to rest", PATIENCE, |site| {
        rests(site, &store, &sessions)
    })?;
    for (daemon, folder) in [(&cp, &store), (&up, &documents)] {
        wait_synced(daemon, folder)?;
    }
    let (cp, up) = (cp.end()?, up.end()?);
    for number in 1..=HOMES {
        released(&cp, &store, number)?;
        accounted(&cp, &store, number)?;
    }
    let version = format!("{:06}.yaml", done.version);
    named(&cp, &store.join("configuration"), &version, committed)?;
    named(&up, &documents, "document", committed)?;
    println!(
        "        {} calls of the control plane and {} of the user plane",
        cp.calls.len(),
        up.calls.len()
    );
    Ok(())
}

/// RADIUS has every record, the history has the end of each session, and the store has its seal.
fn rests(site: &Site, store: &Path, sessions: &[String]) -> Result<bool> {
    let checked = check(store)?;
    let mut keys = checked.live.iter().map(|(key, _)| key);
    if !checked.sealed || keys.any(|key| key.starts_with(b"accounting/")) {
        return Ok(false);
    }
    for session in sessions {
        let events = site.sluice().run(&["show", "events", session, "--json"])?;
        let events: Vec<serde_json::Value> = serde_json::from_str(&events)?;
        if events.iter().all(|event| event["kind"] != "ended") {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Waits until all that a daemon has changed below a folder is synced.
fn wait_synced(daemon: &Strace, folder: &Path) -> Result<()> {
    let begun = Instant::now();
    loop {
        let trace = daemon.so_far()?;
        let left = trace.not_synced(folder, trace.end());
        if left.is_empty() {
            return Ok(());
        }
        ensure!(begun.elapsed() < PATIENCE, "never synced: {left:?}");
        sleep(TICK);
    }
}

/// Each packet that releases a home follows a sync of the record with the addresses that it is about.
fn released(cp: &Trace, store: &Path, number: u16) -> Result<()> {
    let mac = home(number, number).mac.0;
    let sent = cp.calls.iter().filter(|call| call.name.starts_with("send"));
    let mut families = BTreeSet::new();
    for call in sent {
        for address in released_addresses(&call.octets(), &mac) {
            stored(cp, store, &[b"session/", &address], number, 1, call)?;
            families.insert(address.len());
        }
    }
    ensure!(
        families.len() == 2,
        "home{number} was not released in both families"
    );
    Ok(())
}

/// What is acknowledged in Configure-Acks of IPCP (RFC 1332 section 3.3), and the prefixes of Router Advertisements (RFC 4861
/// section 4.6.2), to this MAC address.
fn released_addresses(datagrams: &[u8], mac: &[u8; 6]) -> Vec<Vec<u8>> {
    let to_home = |at: &usize| datagrams[*at..].starts_with(mac);
    let frames = (0..datagrams.len()).filter(to_home);
    let released = frames.filter_map(|at| {
        let head = datagrams.get(at..at + 26)?;
        let pppoe = head.windows(4).position(|part| part == PPPOE)?;
        // Behind PPPoE's session id and length there is PPP.
        let ppp = datagrams.get(at + pppoe + 8..)?;
        if ppp.starts_with(&IPCP_ACK) {
            let option = behind(ppp, &[3, 6])?;
            return Some(option.get(..4)?.to_vec());
        }
        let advertises =
            ppp.starts_with(&IPV6) && ppp.get(8) == Some(&58) && ppp.get(42) == Some(&134);
        let option = behind(ppp.get(42..).filter(|_| advertises)?, &[3, 4, 64])?;
        Some(option.get(13..21)?.to_vec())
    });
    released.collect()
}

/// What stands behind these octets.
fn behind<'a>(octets: &'a [u8], these: &[u8]) -> Option<&'a [u8]> {
    let at = octets.windows(these.len()).position(|part| part == these)?;
    octets.get(at + these.len()..)
}

/// A home's Start and Stop follow a sync of theirs.
fn accounted(cp: &Trace, store: &Path, number: u16) -> Result<()> {
    // Accounting-Request (RFC 2866 section 4.1) and Acct-Status-Type (section 5.1)
    for (status, records) in [(1, 1), (2, 2)] {
        let name = format!("home{number}");
        let is_one = |call: &&Call| {
            let octets = call.octets();
            let parts = [name.as_bytes(), &[40, 6, 0, 0, 0, status]];
            call.name == "sendto" && octets.first() == Some(&4) && has(&octets, &parts)
        };
        let sent: Vec<&Call> = cp.calls.iter().filter(is_one).collect();
        ensure!(!sent.is_empty(), "{name}: no record {status} was sent");
        for call in sent {
            stored(cp, store, &[b"accounting/"], number, records, call)?;
        }
    }
    Ok(())
}

/// Before a datagram at least so many records of a home with these parts were written and synced.
fn stored(
    cp: &Trace,
    store: &Path,
    parts: &[&[u8]],
    number: u16,
    records: usize,
    before: &Call,
) -> Result<()> {
    let log = store.join("sessions.log");
    let name = format!("home{number}");
    let parts = [parts, &[name.as_bytes()]].concat();
    let mut synced = 0;
    for call in &cp.calls {
        let is_one = call.changes() == Some(&log) && has(&call.octets(), &parts);
        synced += usize::from(is_one && cp.is_synced(&log, call.ends, before.begins));
    }
    let parts: Vec<String> = parts.iter().map(|p| p.escape_ascii().to_string()).collect();
    ensure!(
        synced >= records,
        "{name}: {synced} of {records} records with {parts:?} are synced before the datagram that waits for them"
    );
    Ok(())
}

/// Whether octets have all of these parts.
fn has(octets: &[u8], parts: &[&[u8]]) -> bool {
    parts.iter().all(|part| behind(octets, part).is_some())
}

/// By this moment a file has got its name, and everything in its folder is synced.
fn named(trace: &Trace, folder: &Path, name: &str, moment: SystemTime) -> Result<()> {
    let (path, at) = (folder.join(name), trace.at(moment));
    let mut calls = trace.calls.iter().filter(|call| call.ends < at);
    ensure!(
        calls.any(|call| call.name.starts_with("rename") && call.names().contains(&path)),
        "{} has not got its name",
        path.display()
    );
    let left = trace.not_synced(folder, at);
    ensure!(left.is_empty(), "acknowledged and not synced: {left:?}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_releases_a_home_is_found_in_a_datagram_around_it() {
        let mac = [2, 0, 0, 0, 0, 7];
        let frame = |ppp: &[u8]| {
            let tags = [0x81, 0, 0, 100, 0x81, 0, 0, 7];
            [
                &[9; 30][..],
                &mac,
                &[2; 6],
                &tags,
                &PPPOE,
                &[0, 1, 0, 0],
                ppp,
            ]
            .concat()
        };
        let ack = [0x80, 0x21, 2, 7, 0, 10, 3, 6, 100, 64, 0, 2];
        assert_eq!(released_addresses(&frame(&ack), &mac), [[100, 64, 0, 2]]);
        let request = [&[0x80, 0x21, 1], &ack[3..]].concat();
        assert!(released_addresses(&frame(&request), &mac).is_empty());
        assert!(released_addresses(&frame(&ack), &[3; 6]).is_empty());

        let mut advertisement = [0; 58];
        advertisement[..2].copy_from_slice(&IPV6);
        (advertisement[8], advertisement[42]) = (58, 134);
        let prefix = [0x20, 1, 0xd, 0xb8, 1, 0, 0, 7];
        let option = [&[3, 4, 64, 0xc0][..], &[0; 12], &prefix, &[0; 8]].concat();
        let packet = [&advertisement[..], &option].concat();
        assert_eq!(released_addresses(&frame(&packet), &mac), [prefix]);
    }
}
