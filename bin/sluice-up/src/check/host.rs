//! `sluice-up check --host`: whether this machine has what a user plane wants, and how that is mended.

use std::io::{self, Write};
use std::path::Path;

use serde_json::json;
use userplane::host::{Finding, Host, Wanted};

use super::Failure;

/// Prints what was found, for the user plane of a start file or for the defaults.
pub fn check(start: Option<&Path>, json: bool) -> Result<(), Failure> {
    let wanted = match start {
        Some(file) => Wanted::from(&config::load::<config::start::UserPlane>(file)?),
        None => Wanted::default(),
    };
    let findings = Host::read(Path::new("/")).findings(&wanted);
    let text = match json {
        true => as_json(&findings),
        false => findings.iter().map(row).collect(),
    };
    // `sluice-up check --host | head` is no error.
    let _ = io::stdout().lock().write_all(text.as_bytes());
    let to_mend = findings.iter().filter(|f| f.mend.is_some()).count();
    match to_mend {
        0 => Ok(()),
        n => Err(Failure::Broken(format!(
            "{n} of {} to be mended",
            findings.len()
        ))),
    }
}

/// A line, and two more of what is to be mended.
fn row(finding: &Finding) -> String {
    let state = if finding.mend.is_some() { "MEND" } else { "ok" };
    let mut text = format!("{:<20}{state:<6}{}\n", finding.subject, finding.found);
    if let Some(mend) = &finding.mend {
        text += &format!("{:26}costs: {}\n{:26}mend: {mend}\n", "", finding.costs, "");
    }
    text
}

fn as_json(findings: &[Finding]) -> String {
    let one = |finding: &Finding| {
        let costs = finding.mend.is_some().then_some(finding.costs);
        json!({"subject": finding.subject, "found": finding.found, "costs": costs, "mend": finding.mend})
    };
    let all: Vec<_> = findings.iter().map(one).collect();
    format!("{:#}\n", json!(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_to_be_mended_has_its_cost_and_its_cure_below() {
        let good = Finding {
            subject: "NUMA",
            found: "one node".into(),
            costs: "",
            mend: None,
        };
        let bad = Finding {
            subject: "huge pages",
            found: "none".into(),
            costs: "much.",
            mend: Some("reserve some".into()),
        };
        assert_eq!(row(&good), "NUMA                ok    one node\n");
        assert_eq!(
            row(&bad),
            "huge pages          MEND  none\n                          costs: much.\n                          mend: reserve some\n"
        );
        let told: serde_json::Value = serde_json::from_str(&as_json(&[good, bad])).unwrap();
        assert_eq!(told[0]["mend"], serde_json::Value::Null);
        assert_eq!(told[1]["costs"], "much.");
    }
}
