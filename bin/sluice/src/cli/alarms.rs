//! What is wrong, and what was.

use super::ask::{Failure, Sockets};
use super::history::events;
use super::show::{Answer, terminal_width};
use super::table::{Column, Table};
use super::time::moment;
use northbound::{AlarmSeverity, EventKind, ListAlarmsResponse, ListEventsRequest};

/// How many of the latest changes are shown.
const LATEST: u32 = 100;

/// `sluice show alarms`.
#[derive(Debug, clap::Args)]
pub struct Alarms {
    /// `history`: those that were raised and cleared
    #[arg(value_parser = ["history"])]
    history: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Alarms {
    /// What is wrong.
    pub fn answer(&self, sockets: &Sockets) -> Result<Answer, Failure> {
        if self.history.is_some() {
            return self.past(sockets);
        }
        let found = sockets.history(|history| history.alarms())?;
        if self.json {
            return Answer::json(&found);
        }
        let mut answer = match found.alarms.is_empty() {
            true => Answer::default(),
            false => Answer::table(table(&found).render(terminal_width())),
        };
        answer.total = Some(total(&found));
        Ok(answer)
    }

    fn past(&self, sockets: &Sockets) -> Result<Answer, Failure> {
        let request = ListEventsRequest {
            alarms: true,
            last: Some(LATEST),
            ..ListEventsRequest::default()
        };
        let rows = events(sockets, request)?;
        if self.json {
            return Answer::json(&rows);
        }
        if rows.is_empty() {
            return Ok(Answer::of(vec!["no alarm was raised".into()]));
        }
        let mut table = Table::new(&[
            Column::words("TIME (UTC)", 0),
            Column::words("ALARM", 0),
            Column::words("SEVERITY", 1),
            Column::words("OF", 0),
            Column::words("TEXT", 0),
        ]);
        for row in &rows {
            let raised = row.kind() == EventKind::AlarmRaised;
            table.push([
                moment(row.at).trim_end_matches('Z').to_owned(),
                row.alarm.clone().unwrap_or_default(),
                if raised {
                    word(row.severity())
                } else {
                    "cleared"
                }
                .into(),
                row.resource.clone(),
                row.text.clone(),
            ]);
        }
        Ok(Answer::table(table.render(terminal_width())))
    }
}

/// How many alarms of which severity are raised.
fn total(found: &ListAlarmsResponse) -> String {
    let counts = [
        (found.critical, "critical"),
        (found.major, "major"),
        (found.minor, "minor"),
        (found.warning, "warning"),
    ];
    let there = counts.into_iter().filter(|(count, _)| *count > 0);
    let there: Vec<String> = there
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    match there.is_empty() {
        true => "no alarm is raised".into(),
        false => there.join(", "),
    }
}

fn table(found: &ListAlarmsResponse) -> Table {
    let mut table = Table::new(&[
        Column::words("SEVERITY", 0),
        Column::words("ALARM", 0),
        Column::words("OF", 0),
        Column::words("SINCE (UTC)", 1),
        Column::words("TEXT", 0),
    ]);
    for alarm in &found.alarms {
        table.push([
            word(alarm.severity()).into(),
            alarm.name.clone(),
            alarm.resource.clone(),
            moment(alarm.raised_at).trim_end_matches('Z').to_owned(),
            alarm.text.clone(),
        ]);
    }
    table
}

/// A word for it.
pub fn word(severity: AlarmSeverity) -> &'static str {
    match severity {
        AlarmSeverity::Unspecified => "unknown",
        AlarmSeverity::Critical => "critical",
        AlarmSeverity::Major => "major",
        AlarmSeverity::Minor => "minor",
        AlarmSeverity::Warning => "warning",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use northbound::Alarm;

    #[test]
    fn alarms_are_counted_by_severity_and_fit_eighty_columns() {
        let found = ListAlarmsResponse {
            critical: 1,
            warning: 2,
            alarms: vec![Alarm {
                name: "user-plane-lost".into(),
                severity: AlarmSeverity::Critical.into(),
                resource: "up1".into(),
                text: "up1 at 192.0.2.2 is not associated; 12 sessions are on it".into(),
                raised_at: 1_795_331_730,
            }],
            ..ListAlarmsResponse::default()
        };
        assert_eq!(total(&found), "1 critical, 2 warning");
        assert_eq!(total(&ListAlarmsResponse::default()), "no alarm is raised");
        let lines = table(&found).render(Some(80));
        assert!(
            lines.iter().all(|line| line.chars().count() <= 80),
            "{lines:#?}"
        );
        assert!(
            lines[1].starts_with("critical  user-plane-lost  up1"),
            "{lines:#?}"
        );
    }
}
