//! What was measured: rows of a table, and a file for programs.

use anyhow::Result;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// What was measured, in order.
#[derive(Debug, Default, Serialize)]
pub struct Rows(Vec<Row>);

#[derive(Debug, Serialize)]
struct Row {
    part: &'static str,
    what: String,
    value: f64,
    unit: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<f64>,
    /// Absent without a target.
    #[serde(skip_serializing_if = "Option::is_none")]
    met: Option<bool>,
    /// Rates that others have published, or what else to hold it against.
    #[serde(skip_serializing_if = "str::is_empty")]
    beside: &'static str,
}

/// What a value is to be held against.
#[derive(Clone, Copy, Debug)]
pub enum Target {
    /// At least this.
    Least(f64),
    /// At most this.
    Most(f64),
}

impl Rows {
    /// A value without a target.
    pub fn add(
        &mut self,
        part: &'static str,
        what: impl Into<String>,
        value: f64,
        unit: &'static str,
    ) {
        self.push(part, what.into(), (value, unit), None);
    }

    /// A value with a target. A target that is missed is shown, and fails nothing.
    pub fn aim(
        &mut self,
        part: &'static str,
        what: impl Into<String>,
        (value, unit): (f64, &'static str),
        target: Target,
    ) {
        self.push(part, what.into(), (value, unit), Some(target));
    }

    fn push(
        &mut self,
        part: &'static str,
        what: String,
        (value, unit): (f64, &'static str),
        target: Option<Target>,
    ) {
        self.0.push(Row {
            part,
            what,
            value: (value * 1000.0).round() / 1000.0,
            unit,
            target: target.map(|target| match target {
                Target::Least(limit) | Target::Most(limit) => limit,
            }),
            met: target.map(|target| match target {
                Target::Least(limit) => value >= limit,
                Target::Most(limit) => value <= limit,
            }),
            beside: "",
        });
    }

    /// What the latest row is to be seen beside.
    pub fn beside(&mut self, beside: &'static str) {
        if let Some(row) = self.0.last_mut() {
            row.beside = beside;
        }
    }

    /// The table, in Markdown.
    pub fn print(&self) {
        println!("| part | | value | unit | target | | beside |\n|---|---|---|---|---|---|---|");
        for row in &self.0 {
            let target = row.target.map_or(String::new(), shown);
            let met = match row.met {
                Some(true) => "met",
                Some(false) => "**missed**",
                None => "",
            };
            println!(
                "| {} | {} | {} | {} | {target} | {met} | {} |",
                row.part,
                row.what,
                shown(row.value),
                row.unit,
                row.beside
            );
        }
    }

    /// Writes `target/scale/report.json`; where that is.
    pub fn write(&self) -> Result<PathBuf> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/scale");
        std::fs::create_dir_all(&folder)?;
        let file = folder.join("report.json");
        std::fs::write(&file, serde_json::to_string_pretty(self)? + "\n")?;
        Ok(file)
    }
}

fn shown(value: f64) -> String {
    match value {
        value if value.abs() >= 100.0 => format!("{value:.0}"),
        value if value.abs() >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}
