//! Metrics in Prometheus' text format. Which columns of which tables are metrics, the catalogue says; names follow from it:
//!
//! - `sluice_TABLE_COLUMN`, counters with `_total`. A column `count` is the table itself: `sluice_drops_total`.
//! - A table that has labels only is one metric: the number of its rows by their labels, `sluice_alarms`.
//! - Times are in seconds, as Prometheus wants its units.
//! - A word is a label of a series of value 1: `sluice_associations_state{node_id="up1",state="up"} 1`.

use crate::api::Site;
use crate::gateway::Page;
use crate::query::Query;
use northbound::catalogue::{Column, DESTINATIONS, Kind, Metric, TABLES, Table, Unit};
use northbound::time;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;
use tokio::time::timeout;
use tonic::Status;

/// How long a table may take. A user plane that hangs does not take the other tables with it.
const PATIENCE: Duration = Duration::from_secs(3);

/// The media type of the format.
pub const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// All metrics, read now.
pub async fn read(site: &Site) -> String {
    let query = Query::all();
    let asked = TABLES.iter().filter(|table| table.has_metrics());
    let asked = asked.map(|table| async {
        let page = timeout(PATIENCE, site.gateway.page(table, &query)).await;
        let late = |_| Err(Status::deadline_exceeded("it takes too long"));
        (*table, page.unwrap_or_else(late))
    });
    let told = futures_util::future::join_all(asked).await;
    let mut text = String::new();
    for (table, page) in &told {
        match page {
            Ok(page) => write_table(&mut text, table, &page.rows),
            Err(status) => tracing::debug!(table = table.name, %status, "no metrics of it"),
        }
    }
    let complete = |page: &Result<Page, Status>| {
        let whole = page.as_ref().is_ok_and(|page| page.missing.is_empty());
        f64::from(u8::from(whole))
    };
    let complete = told.iter().map(|(table, page)| {
        let labels = vec![("table", table.name.to_owned())];
        (labels, complete(page))
    });
    family(
        &mut text,
        "sluice_scrape_complete",
        "Whether this table was read, from every plane",
        "gauge",
        complete,
    );
    write_table(
        &mut text,
        &DESTINATIONS,
        &site.destinations.page(&query).rows,
    );
    own(&mut text, site);
    text
}

/// This server's own.
fn own(text: &mut String, site: &Site) {
    let (refused, wrong) = site.limits.counts();
    let refused = refused.map(|(reason, count)| {
        let labels = vec![("reason", reason.word().to_owned())];
        (labels, count as f64)
    });
    family(
        text,
        "sluice_web_refused_total",
        "Connections and requests that were refused for a limit of their address",
        "counter",
        refused,
    );
    let (sign_ins, displaced) = site.sign_ins.counts(&site.users, time::now());
    for (name, help, kind, value) in [
        (
            "sluice_web_wrong_tokens_total",
            "Requests with a token, password or link that is not in force",
            "counter",
            wrong as f64,
        ),
        (
            "sluice_web_sign_ins",
            "Sign-ins in force",
            "gauge",
            sign_ins as f64,
        ),
        (
            "sluice_web_sign_ins_displaced_total",
            "Sign-ins that ended because there was no room for them",
            "counter",
            displaced as f64,
        ),
    ] {
        family(text, name, help, kind, [(Vec::new(), value)]);
    }
}

/// Labels with their values, in the order of the columns.
type Labels<'a> = Vec<(&'a str, String)>;

fn write_table(text: &mut String, table: &Table, rows: &[Value]) {
    let all = table.columns.iter();
    let labels: Vec<_> = all.clone().filter(|c| c.metric == Metric::Label).collect();
    let labels_of = |row: &Value| -> Labels<'_> {
        let of = |column: &&Column| (column.field, word(field(row, column.field)));
        labels.iter().map(of).collect()
    };
    let values = all.filter(|c| matches!(c.metric, Metric::Counter | Metric::Gauge));
    let values: Vec<_> = values.collect();
    for column in &values {
        let kind = match column.metric {
            Metric::Counter => "counter",
            _ => "gauge",
        };
        let series = rows.iter().filter_map(|row| {
            let (mut labels, value) = (labels_of(row), field(row, column.field));
            let value = match column.kind {
                Kind::Number(unit) => value.as_u64()? as f64 / per_second(unit).unwrap_or(1.0),
                Kind::Flag(..) => f64::from(u8::from(value.as_bool()?)),
                _ => {
                    labels.push((column.field, word(value)));
                    1.0
                }
            };
            Some((labels, value))
        });
        family(text, &name(table, column), column.about, kind, sums(series));
    }
    if values.is_empty() {
        let series = rows.iter().map(|row| (labels_of(row), 1.0));
        family(text, &table_name(table), table.about, "gauge", sums(series));
    }
}

/// The values of equal labels, added up.
fn sums<'a>(series: impl Iterator<Item = (Labels<'a>, f64)>) -> BTreeMap<Labels<'a>, f64> {
    let mut sums = BTreeMap::new();
    for (labels, value) in series {
        *sums.entry(labels).or_default() += value;
    }
    sums
}

fn table_name(table: &Table) -> String {
    format!("sluice_{}", table.name.replace(['-', ' '], "_"))
}

/// The name of a column's metric.
pub fn name(table: &Table, column: &Column) -> String {
    let mut name = table_name(table);
    if column.field != "count" {
        name += "_";
        name += &column.field.replace('.', "_");
    }
    if let Kind::Number(unit) = column.kind
        && per_second(unit).is_some()
        && let Some((quantity, _)) = name.rsplit_once('_')
    {
        name = format!("{quantity}_seconds");
    }
    if column.metric == Metric::Counter {
        name += "_total";
    }
    name
}

/// How many of a unit of time are a second, if it is a smaller one.
fn per_second(unit: Unit) -> Option<f64> {
    match unit {
        Unit::Nanoseconds => Some(1e9),
        Unit::Microseconds => Some(1e6),
        _ => None,
    }
}

fn field<'r>(row: &'r Value, path: &str) -> &'r Value {
    path.split('.').fold(row, |row, name| &row[name])
}

/// A value as that of a label.
fn word(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Writes a metric with its series.
fn family<'a>(
    text: &mut String,
    name: &str,
    help: &str,
    kind: &str,
    series: impl IntoIterator<Item = (Labels<'a>, f64)>,
) {
    let help = help.replace('\\', "\\\\").replace('\n', "\\n");
    // writing to a text does not fail
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    for (labels, value) in series {
        let labels: Vec<String> = labels
            .into_iter()
            .map(|(label, value)| format!("{label}=\"{}\"", escaped(&value)))
            .collect();
        let _ = match labels.is_empty() {
            true => writeln!(text, "{name} {value}"),
            false => writeln!(text, "{name}{{{}}} {value}", labels.join(",")),
        };
    }
}

fn escaped(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '\\' => escaped.push_str("\\\\"),
            '"' => escaped.push_str("\\\""),
            '\n' => escaped.push_str("\\n"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use northbound::catalogue::{AAA_SERVERS, ALARMS, DROPS, PORTS, WORKERS};
    use serde_json::json;
    use std::collections::BTreeSet;

    fn written(table: &Table, rows: Value) -> String {
        let mut text = String::new();
        write_table(&mut text, table, rows.as_array().unwrap());
        text
    }

    #[test]
    fn counters_and_flags_have_the_labels_of_their_row() {
        let port = json!({"user_plane": "up1", "name": "core\"0", "role": "core", "link_up": true,
            "rx_octets": 9_007_199_254_740_991u64, "rx_packets": 7});
        let text = written(&PORTS, json!([port]));
        let labels = r#"{user_plane="up1",name="core\"0",role="core"}"#;
        for line in [
            "# TYPE sluice_ports_rx_octets_total counter".to_owned(),
            format!("sluice_ports_rx_octets_total{labels} 9007199254740991"),
            format!("sluice_ports_link_up{labels} 1"),
        ] {
            assert!(text.lines().any(|l| l == line), "{line}: {text}");
        }
        // a field that a plane of an older version does not have
        assert!(!text.contains("sluice_ports_tx_octets_total{"), "{text}");
    }

    #[test]
    fn times_are_in_seconds_and_a_count_is_its_table() {
        let worker =
            json!({"user_plane": "up1", "number": 0, "busy_nanoseconds": 2_500_000_000u64});
        let text = written(&WORKERS, json!([worker]));
        let line = r#"sluice_workers_busy_seconds_total{user_plane="up1",number="0"} 2.5"#;
        assert!(text.contains(line), "{text}");
        let text = written(
            &DROPS,
            json!([{"plane": "up1", "name": "ttl-expired", "count": 3}]),
        );
        let line = r#"sluice_drops_total{plane="up1",name="ttl-expired"} 3"#;
        assert!(text.contains(line), "{text}");
    }

    #[test]
    fn a_word_is_a_label_and_rows_of_equal_labels_are_counted() {
        let server = json!({"name": "a", "group": "main", "role": "accounting", "state": "out"});
        let text = written(&AAA_SERVERS, json!([server]));
        let line =
            r#"sluice_aaa_servers_state{name="a",group="main",role="accounting",state="out"} 1"#;
        assert!(text.contains(line), "{text}");
        let alarm =
            |resource| json!({"name": "aaa-server-out", "severity": "minor", "resource": resource});
        let text = written(&ALARMS, json!([alarm("a"), alarm("b")]));
        let line = r#"sluice_alarms{severity="minor",name="aaa-server-out"} 2"#;
        assert!(text.contains(line), "{text}");
    }

    #[test]
    fn names_are_unique() {
        let mut names = BTreeSet::new();
        for table in TABLES {
            let values = table.columns.iter();
            for column in values.filter(|c| matches!(c.metric, Metric::Counter | Metric::Gauge)) {
                let name = name(table, column);
                let fits = name
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
                assert!(fits && names.insert(name.clone()), "{name}");
            }
        }
        assert!(names.len() > 25, "{names:?}");
    }
}
