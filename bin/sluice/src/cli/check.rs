//! `sluice check`: whether every resource of the planes has its owner.

use super::ask::{Failure, Sockets, answers};
use super::listing::table;
use super::show::{Answer, terminal_width};
use northbound::catalogue::ACCOUNTS;
use northbound::{Fault, Finding, Ledger};

/// `sluice check --resources`: the audit of every plane. Results are shown even where a user plane does not answer.
pub fn ledger(sockets: &Sockets, repair: bool, json: bool) -> Result<Answer, Failure> {
    let control_plane = sockets.control_plane(|cp| cp.check_ledger(repair))?;
    let user_planes = sockets.control_plane(|cp| cp.user_planes())?;
    let of_user_planes = user_planes.iter().map(|plane| {
        sockets.control_plane(|cp| cp.check_user_plane_ledger(&plane.node_id, repair))
    });
    let (said, failure) = answers(std::iter::once(Ok(control_plane)).chain(of_user_planes));
    let mut all = Ledger::default();
    said.into_iter().for_each(|ledger| all.add(ledger));
    let answer = match json {
        true => Answer::json(&all)?,
        false => Answer::table(lines(&all, failure.is_none(), terminal_width())),
    };
    let failure = match failure {
        None if !all.is_balanced() => Some(Failure::Other(remedy(repair).into())),
        other => other,
    };
    Ok(Answer { failure, ..answer })
}

fn remedy(repaired: bool) -> &'static str {
    match repaired {
        false => "resources are leaked or missing: `sluice check --resources --repair` mends that",
        true => {
            "resources are leaked or missing after the repair: see what is not repaired, and check again in a minute"
        }
    }
}

/// `all` says whether every plane answered.
fn lines(ledger: &Ledger, all: bool, width: Option<usize>) -> Vec<String> {
    let table = table(&ACCOUNTS, &ledger.accounts, |_, _| ());
    let mut lines = table.render(width);
    lines.extend(ledger.findings.iter().map(told));
    let verdict = match (ledger.is_balanced(), all) {
        (true, true) => "balanced: every resource has its owner",
        (true, false) => "balanced in the planes that answered",
        (false, _) => "not balanced",
    };
    lines.push(verdict.into());
    lines
}

/// A finding as a sentence.
fn told(f: &Finding) -> String {
    let whose = match (f.fault(), &f.whose) {
        (Fault::WithoutOwner, _) | (_, None) => "is leaked".to_owned(),
        (Fault::Twice, Some(whose)) => format!("has several owners: {whose}"),
        (_, Some(whose)) => format!("of {whose} is not allocated"),
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

    const ADDRESS: Kind = Kind::new(
        "PPPoE session id",
        "no session has it",
        "a session has it, and another may get it",
    );

    #[test]
    fn the_table_fits_eighty_columns_and_a_finding_says_what_and_whose() {
        let mut ledger = Ledger::of("cp1.example");
        let owned = [("7 on up1/access0", "18bcff4aa4100000")];
        ledger.compare(&ADDRESS, ["9 on up1/access0"], owned, |k| k.to_string());
        let lines = lines(&ledger, true, Some(80));
        assert!(
            lines[..2].iter().all(|line| line.chars().count() <= 80),
            "{lines:#?}"
        );
        let text = lines.join("\n");
        assert!(
            text.contains("7 on up1/access0 of 18bcff4aa4100000 is not allocated"),
            "{text}"
        );
        assert!(
            text.contains("9 on up1/access0 is leaked: no session has it"),
            "{text}"
        );
        assert!(text.ends_with("not balanced"));
        assert_eq!(verdict(true), "balanced: every resource has its owner");
        assert_eq!(verdict(false), "balanced in the planes that answered");
    }

    fn verdict(all: bool) -> String {
        let lines = lines(&Ledger::default(), all, None);
        lines.last().unwrap().clone()
    }
}
