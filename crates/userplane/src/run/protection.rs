//! The senders above a rate of `protection`, as the workers report them.

use std::collections::BTreeMap;
use std::time::Duration;

use dataplane::{Offence, PortIndex};
use northbound::Offender;
use tracing::warn;

use super::UserPlane;

/// Maximum number of offenders in `show protection`.
const SHOWN: usize = 64;
/// Maximum number of offenders that are kept.
const MOST: usize = 1024;
/// Time for which an offender is shown after its last report.
const REMEMBERED: Duration = Duration::from_secs(60);
/// Minimum time between two log lines about hold-downs.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// The last report about an offender.
#[derive(Debug)]
struct Report {
    what: Offence,
    at: Duration,
}

impl Report {
    /// Time until its hold-down ends.
    fn held(&self, now: Duration) -> Duration {
        (self.at + self.what.held_for).saturating_sub(now)
    }

    fn is_fresh(&self, now: Duration) -> bool {
        now < self.at + REMEMBERED || !self.held(now).is_zero()
    }
}

/// See the top of the file.
#[derive(Debug, Default)]
pub(super) struct Offenders {
    /// By worker and the key that it gave.
    all: BTreeMap<(u16, u64), Report>,
    /// When a hold-down was logged last, and how many were not since.
    logged: Option<Duration>,
    silent: u64,
}

impl Offenders {
    /// Keeps a worker's report. Returns whether it is the first of a hold-down.
    fn note(&mut self, worker: u16, what: Offence, now: Duration) -> bool {
        if self.all.len() >= MOST {
            self.all.retain(|_, report| report.is_fresh(now));
        }
        let key = (worker, what.key);
        let before = self.all.get(&key).map_or(0, |report| report.what.strikes);
        if self.all.len() < MOST || self.all.contains_key(&key) {
            self.all.insert(key, Report { what, at: now });
        }
        what.strikes > before
    }

    /// Number of lines left out since the last one, if a log line is due.
    fn log(&mut self, now: Duration) -> Option<u64> {
        if self.logged.is_some_and(|at| now < at + LOG_INTERVAL) {
            self.silent += 1;
            return None;
        }
        self.logged = Some(now);
        Some(std::mem::take(&mut self.silent))
    }
}

/// Circuit id without the zeros behind it.
fn circuit(what: &Offence) -> &[u8] {
    let length = what.circuit.iter().rposition(|octet| *octet != 0);
    &what.circuit[..length.map_or(0, |last| last + 1)]
}

impl UserPlane {
    /// Takes the workers' reports.
    pub(super) fn note_offences(&mut self) {
        let now = self.clock.now().monotonic;
        while let Some((worker, what)) = self.controller.poll_offence() {
            if self.offenders.note(worker, what, now)
                && let Some(silent) = self.offenders.log(now)
            {
                let row = self.offender(&self.interface_names(), &Report { what, at: now }, now);
                warn!(
                    port = row.port,
                    s_tag = row.s_tag,
                    c_tag = row.c_tag,
                    mac = row.mac,
                    circuit = row.circuit_id,
                    seconds = row.held_seconds,
                    others = silent,
                    "discovery of a MAC address on its access line is held down: it exceeds its rate (`show protection`)"
                );
            }
        }
    }

    /// The offenders, the held down and the worst first.
    pub(super) fn show_offenders(&self) -> Vec<Offender> {
        let (now, names) = (self.clock.now().monotonic, self.interface_names());
        let fresh = self
            .offenders
            .all
            .values()
            .filter(|report| report.is_fresh(now));
        let mut rows: Vec<Offender> = fresh
            .map(|report| self.offender(&names, report, now))
            .collect();
        rows.sort_by_key(|row| std::cmp::Reverse((row.held_seconds > 0, row.dropped)));
        rows.truncate(SHOWN);
        rows
    }

    fn offender(
        &self,
        names: &BTreeMap<PortIndex, String>,
        report: &Report,
        now: Duration,
    ) -> Offender {
        let what = &report.what;
        let since = what.since + now.saturating_sub(report.at);
        Offender {
            user_plane: self.name.clone(),
            port: names.get(&what.port).cloned().unwrap_or_default(),
            s_tag: what.vlans[0].map(u32::from),
            c_tag: what.vlans[1].map(u32::from),
            mac: what.mac.to_string(),
            circuit_id: circuit(what).escape_ascii().to_string(),
            kind: what.class.name.to_owned(),
            level: what.level.name().to_owned(),
            dropped: what.dropped,
            since_seconds: since.as_secs(),
            holds: what.strikes,
            held_seconds: report.held(now).as_millis().div_ceil(1000) as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dataplane::{CIRCUIT, Level, PuntKind};
    use wire::eth::MacAddr;

    fn offence(mac: u8, strikes: u32, held: u64) -> Offence {
        Offence {
            key: mac.into(),
            class: PuntKind::Discovery.class(),
            level: Level::Mac,
            port: PortIndex(1),
            vlans: [Some(100), Some(7)],
            mac: MacAddr([2, 0, 0, 0, 0, mac]),
            circuit: [0; CIRCUIT],
            dropped: 5,
            since: Duration::from_secs(3),
            strikes,
            held_for: Duration::from_secs(held),
        }
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_hold_down_is_new_once() {
        let mut offenders = Offenders::default();
        let news = [(0, 0, 1), (1, 10, 2), (1, 9, 3), (1, 0, 13), (2, 20, 14)]
            .map(|(strikes, held, now)| offenders.note(0, offence(9, strikes, held), at(now)));
        assert_eq!(news, [false, true, false, false, true]);
        assert!(
            offenders.note(1, offence(9, 1, 10), at(14)),
            "another worker"
        );
        assert_eq!(offenders.all.len(), 2);
    }

    #[test]
    fn the_log_has_a_line_for_many_hold_downs_and_says_how_many() {
        let mut offenders = Offenders::default();
        let said = [1, 2, 3, 11, 12, 30].map(|now| offenders.log(at(now)));
        assert_eq!(said, [Some(0), None, None, Some(2), None, Some(1)]);
    }

    #[test]
    fn there_is_room_for_so_many_and_it_is_given_back() {
        let mut offenders = Offenders::default();
        for number in 0..MOST as u16 + 100 {
            let mut what = offence(9, 0, 0);
            what.key = number.into();
            offenders.note(0, what, at(1));
        }
        assert_eq!(offenders.all.len(), MOST);
        offenders.note(0, offence(10, 1, 300), at(100));
        assert_eq!(offenders.all.len(), 1);
        let report = offenders.all.values().next().unwrap();
        assert!(report.is_fresh(at(399)) && !report.is_fresh(at(400)));
    }
}
