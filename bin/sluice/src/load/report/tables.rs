//! The report for people.

use super::{FamilyReport, Quantiles, Report, TrafficReport};
use crate::cli::table::{Column, Table};
use crate::cli::units::{counted, duration};

/// Reasons that are shown, the most frequent first.
const REASONS: usize = 8;
/// Failed homes that are shown.
const HOMES: usize = 8;

impl Report {
    /// Lines of at most `width` columns.
    pub(in crate::load) fn lines(&self, width: Option<usize>) -> Vec<String> {
        let mut lines = vec![self.summary()];
        let mut add = |table: Table| {
            lines.push(String::new());
            lines.extend(table.render(width));
        };
        if self.set_ups.count > 0 {
            add(self.steps());
        }
        if let Some(traffic) = &self.traffic {
            add(traffic.table());
        }
        if !self.reasons.is_empty() {
            add(self.reasons());
        }
        if !self.failed_homes.is_empty() {
            add(self.homes());
        }
        lines.push(String::new());
        lines.extend(self.notes.iter().map(|note| format!("note: {note}")));
        lines.extend(self.problems.iter().map(|what| format!("FAILED: {what}")));
        if self.is_good() {
            lines.push("passed".into());
        }
        lines
    }

    fn summary(&self) -> String {
        let set_ups = &self.set_ups;
        let mut text = format!(
            "{} of {} homes online after {}, {:.1} a second",
            self.online,
            self.homes,
            duration(self.seconds as u64),
            set_ups.per_second,
        );
        if let Some(delegated) = self.delegated {
            text.push_str(&format!("; {delegated} with a delegated prefix"));
        }
        if self.flaps > 0 {
            text.push_str(&format!("; {} left and came back", self.flaps));
        }
        if set_ups.attempts_failed > 0 {
            let failed = counted(set_ups.attempts_failed, "attempt");
            text.push_str(&format!("; {failed} failed"));
        }
        if self.interrupted {
            text.push_str("; interrupted");
        }
        text
    }

    fn steps(&self) -> Table {
        let mut table = Table::new(&[
            Column::words("SET-UP, ms", 0),
            Column::numbers("COUNT", 1),
            Column::numbers("P50", 0),
            Column::numbers("P90", 2),
            Column::numbers("P99", 0),
            Column::numbers("MAX", 0),
        ]);
        for (name, step) in [
            ("discovery (PADI to PADS)", "discovery"),
            ("LCP", "lcp"),
            ("authentication", "authentication"),
            ("IPCP", "ipcp"),
            ("IPv6CP and RA", "ipv6"),
            ("altogether", "total"),
        ] {
            let times = self.set_ups.milliseconds.get(step);
            let times = times.copied().unwrap_or_default();
            if times.count > 0 {
                let [p50, p90, p99, max] = shown(&times);
                table.push([name.into(), times.count.to_string(), p50, p90, p99, max]);
            }
        }
        table
    }

    fn reasons(&self) -> Table {
        let mut table = Table::new(&[Column::words("FAILURE", 0), Column::numbers("TIMES", 0)]);
        let mut reasons: Vec<(&String, &u32)> = self.reasons.iter().collect();
        reasons.sort_by_key(|(_, times)| std::cmp::Reverse(**times));
        for (why, times) in reasons.into_iter().take(REASONS) {
            table.push([why.clone(), times.to_string()]);
        }
        table
    }

    fn homes(&self) -> Table {
        let mut table = Table::new(&[
            Column::words("FAILED HOME", 0),
            Column::words("LINE", 1),
            Column::words("LAST FAILURE", 0),
        ]);
        for home in self.failed_homes.iter().take(HOMES) {
            let reason = home.reason.as_deref().unwrap_or("not online in time");
            table.push([home.user.clone(), home.line.clone(), reason.to_owned()]);
        }
        let more = (self.failed as usize).saturating_sub(HOMES);
        if more > 0 {
            table.push([format!("and {more} more"), String::new(), String::new()]);
        }
        table
    }
}

impl TrafficReport {
    fn table(&self) -> Table {
        let delay = match self.to {
            "reflector" => "ROUND TRIP P50, ms",
            _ => "ONE WAY P50, ms",
        };
        let mut columns = vec![
            Column::words("TRAFFIC", 0),
            Column::numbers("SENT", 0),
            Column::numbers("LOST", 0),
        ];
        if self.to == "reflector" {
            columns.push(Column::numbers("UP", 3));
            columns.push(Column::numbers("DOWN", 3));
        }
        columns.extend([
            Column::numbers("REORDERED", 2),
            Column::numbers("TWICE", 2),
            Column::numbers(delay, 1),
            Column::numbers("P99", 1),
            Column::numbers("MAX", 4),
        ]);
        let families = [("IPv4", &self.ipv4), ("IPv6", &self.ipv6)];
        let families = families.into_iter().filter(|(_, family)| family.sent > 0);
        Table::of(
            columns,
            families.map(|(name, f)| self.row(name, f)).collect(),
        )
    }

    fn row(&self, name: &str, family: &FamilyReport) -> Vec<String> {
        let [p50, _, p99, max] = shown(&family.delay_milliseconds);
        let lost = format!("{} ({} %)", family.lost, family.lost_percent);
        let mut row = vec![name.to_owned(), family.sent.to_string(), lost];
        if self.to == "reflector" {
            let known = |lost: Option<u64>| lost.map_or("-".into(), |lost| lost.to_string());
            row.extend([family.lost_up, family.lost_down].map(known));
        }
        row.extend([family.reordered.to_string(), family.duplicated.to_string()]);
        row.extend([p50, p99, max]);
        row
    }
}

fn shown(times: &Quantiles) -> [String; 4] {
    let Quantiles {
        p50, p90, p99, max, ..
    } = *times;
    [p50, p90, p99, max].map(|millis| match millis {
        millis if millis < 10.0 => format!("{millis:.2}"),
        millis if millis < 100.0 => format!("{millis:.1}"),
        millis => format!("{millis:.0}"),
    })
}
