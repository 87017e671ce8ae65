//! What was carried for each home, held against what RADIUS was told. Nothing may be missing but what user planes that were
//! killed had not reported.

use crate::accounting::{AccountingRecords, Records, is, octets};
use crate::load::{HOMES, Measured};
use crate::scenario::{INTERIM, Octets};
use anyhow::{Result, ensure};
use lab::topology::UserPlane;

/// Octets of a verified packet on the average: the lab's sizes in turn.
const MEAN_SIZE: u64 = (96 + 128 + 576 + 1492) / 4;
/// The largest of them.
const LARGEST: u64 = 1492;
/// Seconds between two interim records at most: they are spread over a tenth more or less, and take a moment.
const LONGEST_INTERIM: u64 = INTERIM + INTERIM / 10 + 3;

/// The two ways, of both address families and of IPv6: their names in records, and how each is taken out.
type Way = (&'static str, fn(&Octets) -> u64);
const WAYS: [Way; 4] = [
    ("Acct-Input", |octets| octets.up),
    ("Acct-Output", |octets| octets.down),
    ("ERX-IPv6-Acct-Input", |octets| octets.up_v6),
    ("ERX-IPv6-Acct-Output", |octets| octets.down_v6),
];

/// What RADIUS has on record of each home: the most of each of its sessions, all together.
pub fn recorded(records: &AccountingRecords) -> Result<Vec<Octets>> {
    let mut homes = vec![Octets::default(); HOMES.into()];
    for session in records.by_session() {
        let user = session.first().and_then(|record| record.get("User-Name"));
        let number = user.and_then(|user| user.strip_prefix("home")?.parse().ok());
        let place = number.and_then(|number: usize| homes.get_mut(number.checked_sub(1)?));
        if let Some(home) = place {
            *home = home.with(most(session)?, |all, more| all + more);
        }
    }
    Ok(homes)
}

/// The most that is on record of a session.
fn most(session: &Records) -> Result<Octets> {
    let mut most = Octets::default();
    for record in session.iter().filter(|record| !is(record, "Start")) {
        let [up, down, up_v6, down_v6] = WAYS.map(|(way, _)| octets(record, way));
        let said = Octets {
            up: up?,
            down: down?,
            up_v6: up_v6?,
            down_v6: down_v6?,
        };
        most = most.with(said, u64::max);
    }
    Ok(most)
}

/// What a user plane had counted for each of its homes and not reported when it was last killed, with all that it lost before.
#[derive(Clone, Debug)]
pub struct Unreported {
    /// Octets a second that are carried for a home.
    rate: Octets,
    kills: u64,
    homes: Vec<Octets>,
}

impl Unreported {
    /// Nothing so far, of homes that all together send and are sent so many packets a second, two fifths of them up.
    pub fn at(rate: u32) -> Self {
        let each = u64::from(rate) * MEAN_SIZE / u64::from(HOMES);
        // How much of it is IPv6 depends on the sizes: at most all.
        let (up, down) = (each * 2 / 5, each * 3 / 5);
        let rate = Octets {
            up,
            down,
            up_v6: up,
            down_v6: down,
        };
        Unreported {
            rate,
            kills: 0,
            homes: Vec::new(),
        }
    }

    /// The user plane is about to be killed. Counters that are older than an interval are not explained by the kill.
    pub fn note(&mut self, up: UserPlane, carried: &[Octets], recorded: &[Octets]) -> Result<()> {
        let homes = carried
            .iter()
            .zip(recorded)
            .map(|(carried, recorded)| carried.with(*recorded, u64::saturating_sub));
        let homes: Vec<Octets> = homes.collect();
        let its = its(up);
        for (way, of) in WAYS {
            let sum = |homes: &[Octets]| {
                homes
                    .iter()
                    .skip(its.start)
                    .take(its.len())
                    .map(of)
                    .sum::<u64>()
            };
            let more = sum(&homes).saturating_sub(sum(&self.homes));
            let second = its.len() as u64 * of(&self.rate);
            println!(
                "        {} has not reported {:.1} MB of {way}-Octets: {:.1} s of each session",
                up.name(),
                more as f64 / 1e6,
                more as f64 / second as f64
            );
            ensure!(
                more <= LONGEST_INTERIM * second,
                "sessions were not asked for their counters for longer than {LONGEST_INTERIM} s"
            );
        }
        self.kills += 1;
        self.homes = homes;
        Ok(())
    }

    fn of(&self, home: usize) -> Octets {
        self.homes.get(home).copied().unwrap_or_default()
    }

    /// What may be missing of a home beyond that: a second for each kill, which is not struck the moment that is looked.
    fn more(&self) -> Octets {
        let octets = |rate, _| self.kills * (rate + 2 * LARGEST);
        self.rate.with(self.rate, octets)
    }
}

/// The homes of a user plane.
fn its(up: UserPlane) -> std::ops::Range<usize> {
    let half = usize::from(HOMES) / 2;
    match up {
        UserPlane::One => 0..half,
        UserPlane::Two => half..HOMES.into(),
    }
}

/// Every home's octets are on record, both ways, but for what was not reported.
pub fn check(
    carried: &[Octets],
    recorded: &[Octets],
    unreported: &[Unreported; 2],
    faults: &[Measured],
) -> Result<()> {
    for up in UserPlane::ALL {
        let (its, unreported) = (its(up), &unreported[up as usize]);
        let lost: u64 = faults.iter().map(|m| m.lost[up as usize].1).sum();
        for (way, of) in WAYS {
            let (mut short, mut caught, mut longest) = (0, 0, 0);
            let (mut all, mut explained) = (0, 0);
            for home in its.clone() {
                let (carried, recorded) = (of(&carried[home]), of(&recorded[home]));
                // What was lost behind the user plane was forwarded.
                ensure!(
                    recorded <= carried + lost * LARGEST,
                    "home{}: {way}-Octets {recorded}, but {carried} were carried",
                    home + 1
                );
                let missing = carried.saturating_sub(recorded);
                let known = of(&unreported.of(home));
                all += carried;
                short += missing;
                explained += known;
                if missing > known + of(&unreported.more()) {
                    caught += 1;
                    longest = longest.max((missing - known) / of(&unreported.rate));
                }
            }
            println!(
                "        {}: {way}-Octets lack {:.1} MB of {:.1}, of which {:.1} were not reported before {} kills; {caught} sessions lack more, {longest} s of it at most",
                up.name(),
                short as f64 / 1e6,
                all as f64 / 1e6,
                explained as f64 / 1e6,
                unreported.kills
            );
            ensure!(all > 0, "nothing was carried: the case shows nothing");
            ensure!(
                caught == 0,
                "{}: {way}-Octets of {caught} sessions lack more than is explained, up to {longest} s",
                up.name()
            );
            // Of all together hardly more: packets are large beside what a session carries in a second.
            let seconds = unreported.kills * its.len() as u64;
            ensure!(
                short <= explained + seconds * of(&unreported.rate),
                "{}: {way}-Octets lack {short}, of which {explained} are explained",
                up.name()
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{Fault, RATE};
    use crate::radius::Entry;
    use std::time::Duration;

    /// What every home carried so far.
    const CARRIED: Octets = Octets {
        up: 200_000,
        down: 300_000,
        up_v6: 120_000,
        down_v6: 80_000,
    };
    /// What a user plane had not reported of it.
    const OPEN: Octets = Octets {
        up: 10_000,
        down: 15_000,
        up_v6: 7_000,
        down_v6: 8_000,
    };

    fn all(octets: Octets) -> Vec<Octets> {
        vec![octets; HOMES.into()]
    }

    fn nothing() -> [Unreported; 2] {
        [Unreported::at(RATE), Unreported::at(RATE)]
    }

    fn less(octets: Octets, by: Octets) -> Octets {
        octets.with(by, |all, part| all - part)
    }

    fn dealt(fault: Fault) -> Measured {
        Measured {
            fault,
            echo: None,
            newcomer: None,
            traffic: None,
            ready: Duration::ZERO,
            lost: [(1000, 0); 2],
        }
    }

    #[test]
    fn a_home_has_what_all_of_its_sessions_have() {
        let record = |session: &str, kind: &str, octets: u32| -> Entry {
            let pairs = [
                ("User-Name", "home7".to_owned()),
                ("Acct-Session-Id", session.to_owned()),
                ("Acct-Status-Type", kind.to_owned()),
                ("Acct-Input-Octets", octets.to_string()),
                ("Acct-Output-Octets", (2 * octets).to_string()),
                ("ERX-IPv6-Acct-Input-Octets", "1".to_owned()),
                ("ERX-IPv6-Acct-Output-Octets", octets.to_string()),
            ];
            pairs.map(|(name, value)| (name.to_owned(), value)).into()
        };
        let records = AccountingRecords::of([
            record("1", "Start", 0),
            record("1", "Interim-Update", 5),
            record("1", "Stop", 7),
            record("2", "Stop", 4),
        ]);
        let homes = recorded(&records.unwrap()).unwrap();
        assert_eq!(homes[6], Octets::of([9, 2], [11, 11]));
        assert_eq!(homes.iter().map(|home| home.up).sum::<u64>(), 11);
    }

    #[test]
    fn without_a_kill_every_octet_is_on_record_each_way() {
        let (carried, none) = (all(CARRIED), nothing());
        let good = |recorded: &[Octets]| check(&carried, recorded, &none, &[]).is_ok();
        assert!(good(&carried));
        let swapped = Octets {
            up: CARRIED.down,
            down: CARRIED.up,
            ..CARRIED
        };
        assert!(!good(&all(swapped)));
        let of_v4 = Octets {
            up_v6: CARRIED.up - CARRIED.up_v6,
            down_v6: CARRIED.down - CARRIED.down_v6,
            ..CARRIED
        };
        assert!(!good(&all(of_v4)));
        let one = |part: usize| {
            let part = |place| u64::from(part == place);
            Octets {
                up: part(0),
                down: part(1),
                up_v6: part(2),
                down_v6: part(3),
            }
        };
        for octet in (0..4).map(one) {
            let mut recorded = carried.clone();
            recorded[1999] = less(CARRIED, octet);
            assert!(!good(&recorded), "an octet is missing");
            let mut recorded = carried.clone();
            recorded[0] = CARRIED.with(octet, |all, more| all + more);
            assert!(!good(&recorded), "an octet too many");
        }
        assert!(check(&all(Octets::default()), &all(Octets::default()), &none, &[]).is_err());
    }

    #[test]
    fn a_kill_explains_what_was_not_reported_and_no_more() {
        let (carried, mut unreported) = (all(CARRIED), nothing());
        let before = all(less(CARRIED, OPEN));
        unreported[0]
            .note(UserPlane::One, &carried, &before)
            .unwrap();
        let good = |recorded: &[Octets], faults: &[Measured]| {
            check(&carried, recorded, &unreported, faults).is_ok()
        };
        let mut recorded = carried.clone();
        recorded[..1000].fill(less(CARRIED, OPEN));
        assert!(good(&recorded, &[]));
        let mut other = carried.clone();
        other[1000] = less(CARRIED, OPEN);
        assert!(!good(&other, &[]), "its user plane was not killed");
        let twice = OPEN.with(OPEN, |one, other| one + other);
        recorded[7] = less(CARRIED, twice);
        assert!(!good(&recorded, &[]), "it lacks more than was open");
        let killed = [dealt(Fault::KillControlPlane)];
        assert!(
            !good(&recorded, &killed),
            "a control plane takes nothing along"
        );
        // Two packets of one session are none of it; of all together they are.
        let packets = OPEN.with(OPEN, |open, _| open + 2 * LARGEST);
        recorded[..1000].fill(less(CARRIED, OPEN));
        recorded[0] = less(CARRIED, packets);
        assert!(good(&recorded, &[]));
        recorded[..1000].fill(less(CARRIED, packets));
        assert!(!good(&recorded, &[]));
    }

    #[test]
    fn counters_that_nobody_asked_for_are_not_explained_by_a_kill() {
        let [mut unreported, mut other] = nothing();
        let rate = other.rate;
        let open = |seconds: u64| rate.with(rate, |rate, _| seconds * rate);
        let note = |unreported: &mut Unreported, seconds| {
            unreported.note(UserPlane::Two, &all(open(seconds)), &all(Octets::default()))
        };
        assert!(note(&mut unreported, LONGEST_INTERIM).is_ok());
        // What a kill before took away is not looked for again.
        assert!(note(&mut unreported, 2 * LONGEST_INTERIM).is_ok());
        assert!(note(&mut other, LONGEST_INTERIM + 1).is_err());
    }
}
