//! `sluice check`: whether everything that the planes hold has its owner.

use super::ask::{Failure, Sockets, unexpected};
use super::show::{print_json, print_lines, terminal_width};
use super::table::{Column, Table};
use northbound::{Fault, Finding, Ledger, Request, Response};

/// `sluice check --ledger`: every plane's ledger; what one says is shown even where another does not answer.
pub fn ledger(sockets: &Sockets, repair: bool, json: bool) -> Result<(), Failure> {
    let (mut all, mut failure) = (Ledger::default(), None);
    let request = Request::CheckLedger { repair };
    let control_plane = sockets.control_plane(&request);
    for answer in std::iter::once(control_plane).chain(sockets.user_planes(&request)) {
        match answer {
            Ok(Response::Ledger { ledger }) => {
                all.accounts.extend(ledger.accounts);
                all.findings.extend(ledger.findings);
            }
            Ok(_) => return Err(unexpected("a daemon")),
            Err(error) => failure = Some(error),
        }
    }
    match json {
        true => print_json(&all)?,
        false => print_lines(&lines(&all, terminal_width()))?,
    }
    match failure {
        Some(failure) => Err(failure),
        None if all.is_balanced() => Ok(()),
        None => Err(Failure::Other(remedy(repair).into())),
    }
}

fn remedy(repaired: bool) -> &'static str {
    match repaired {
        false => "the ledger does not balance: `sluice check --ledger --repair` puts it right",
        true => {
            "the ledger does not balance after the repair: see what is not repaired, and check again in a minute"
        }
    }
}

fn lines(ledger: &Ledger, width: Option<usize>) -> Vec<String> {
    let mut table = Table::new(&[
        Column::words("PLANE", 0),
        Column::words("KIND", 0),
        Column::numbers("BOOKED", 0),
        Column::numbers("OWNED", 0),
        Column::numbers("WITHOUT OWNER", 0),
        Column::numbers("MISSING", 0),
    ]);
    for a in &ledger.accounts {
        table.push([
            a.plane.clone(),
            a.kind.clone(),
            a.booked.to_string(),
            a.owned.to_string(),
            a.without_owner.to_string(),
            a.missing.to_string(),
        ]);
    }
    let mut lines = table.render(width);
    lines.extend(ledger.findings.iter().map(told));
    lines.push(match ledger.is_balanced() {
        true => "balanced: everything has its owner".into(),
        false => "not balanced".into(),
    });
    lines
}

/// A finding as a sentence.
fn told(f: &Finding) -> String {
    let whose = match (f.fault, &f.whose) {
        (Fault::WithoutOwner, _) | (_, None) => "has no owner".to_owned(),
        (Fault::Missing, Some(whose)) => format!("of {whose} is not booked"),
        (Fault::Twice, Some(whose)) => format!("is of several: {whose}"),
    };
    let repaired = if f.repaired { " (repaired)" } else { "" };
    format!(
        "{}: {} {} {whose}: {}{repaired}",
        f.plane, f.kind, f.what, f.meaning
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use northbound::Kind;

    const ADDRESS: Kind = Kind {
        name: "PPPoE session id",
        without_owner: "no session has it",
        missing: "a session has it, and another may get it",
    };

    #[test]
    fn the_table_fits_eighty_columns_and_a_finding_says_what_and_whose() {
        let mut ledger = Ledger::of("cp1.example");
        let owned = [("7 on up1/access0", "18bcff4aa4100000")];
        ledger.compare(&ADDRESS, ["9 on up1/access0"], owned, |k| k.to_string());
        let lines = lines(&ledger, Some(80));
        assert!(
            lines[..2].iter().all(|line| line.chars().count() <= 80),
            "{lines:#?}"
        );
        let text = lines.join("\n");
        assert!(
            text.contains("7 on up1/access0 of 18bcff4aa4100000 is not booked"),
            "{text}"
        );
        assert!(
            text.contains("9 on up1/access0 has no owner: no session has it"),
            "{text}"
        );
        assert!(text.ends_with("not balanced"));
        let balanced = super::lines(&Ledger::default(), None);
        assert_eq!(
            balanced.last().unwrap(),
            "balanced: everything has its owner"
        );
    }
}
