use crate::fixture::Fixture;
use crate::guard::PATIENCE;
use crate::site::{Setup, UP, forget, program};
use anyhow::{Context, Result, ensure};
use lab::topology::{Lab, Place};
use std::fs;

pub fn run(fixture: &mut Fixture) -> Result<()> {
    let lab = fixture.without_site()?;
    forget(lab.dir())?;
    let up = Setup::default().user_plane(lab.dir());
    let start = Setup::default().start(lab.dir());
    let both = [
        ("sluice-up", Place::UserPlane(UP), up),
        ("sluice-cp", Place::ControlPlane, start.clone()),
    ];
    for (daemon, place, good) in &both {
        let faults = [
            (good.replace("address: 192", "adress: 192"), 2, "adress"),
            (
                good.replace("address: 192.0.2", "address: 192.0.2.300"),
                2,
                "address",
            ),
            (
                good.replace("api-socket:", "api-sockets:"),
                line_of(good, "api-socket:")?,
                "api-sockets",
            ),
        ];
        for (text, line, says) in faults {
            refused(lab, *place, daemon, &text, "wrong.yaml", line, says)?;
        }
    }
    let good = Setup::default().configuration(lab.dir());
    for (from, to, says) in [
        ("network-instances:", "network-instance:", "did you mean"),
        (
            "        role: access",
            "        role: acess",
            "did you mean",
        ),
        ("  homes: {prefix: 100", "  homes: {prefix: 300", "expected"),
    ] {
        let line = line_of(&good, from)?;
        fs::write(lab.dir().join("sluice.yaml"), good.replacen(from, to, 1))?;
        let place = Place::ControlPlane;
        refused(lab, place, "sluice-cp", &start, "sluice.yaml", line, says)?;
    }
    Ok(())
}

/// The daemon ends with code 2, names file and line, and has made nothing.
fn refused(
    lab: &Lab,
    place: Place,
    daemon: &str,
    text: &str,
    at_fault: &str,
    line: usize,
    says: &str,
) -> Result<()> {
    let file = lab.dir().join("wrong.yaml");
    fs::write(&file, text)?;
    for socket in ["up.sock", "cp.sock"] {
        let _ = fs::remove_file(lab.dir().join(socket));
    }
    let links = || lab.netns(place).run(&["ip", "-br", "link"]);
    let before = links()?;
    let mut command = lab.netns(place).command("timeout");
    command
        .arg(PATIENCE.as_secs().to_string())
        .arg(program(daemon)?)
        .arg(&file);
    let done = command.output()?;
    let said =
        String::from_utf8_lossy(&done.stderr).into_owned() + &String::from_utf8_lossy(&done.stdout);
    ensure!(
        done.status.code() == Some(2),
        "{daemon} ended with {} after {text}\n{said}",
        done.status
    );
    let place_of_fault = format!("{at_fault}:{line}:");
    ensure!(
        said.contains(&place_of_fault),
        "{daemon} did not name {place_of_fault} but said: {said}"
    );
    let sentence = said
        .lines()
        .find(|l| l.contains(&place_of_fault))
        .unwrap_or_default();
    ensure!(
        sentence.contains(says),
        "{daemon} did not mention {says:?}: {sentence}"
    );
    ensure!(
        sentence.contains("expected"),
        "{daemon} did not say what is expected: {sentence}"
    );
    ensure!(links()? == before, "{daemon} left interfaces behind");
    ensure!(
        !lab.dir().join("up.sock").exists() && !lab.dir().join("cp.sock").exists(),
        "{daemon} left its socket"
    );
    Ok(())
}

/// The number of the line that begins with `start`.
fn line_of(text: &str, start: &str) -> Result<usize> {
    let found = text.lines().position(|line| line.starts_with(start));
    found
        .map(|index| index + 1)
        .with_context(|| format!("no line {start}"))
}
