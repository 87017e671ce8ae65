use crate::rig::Rig;
use crate::screen::Screen;
use crate::site::program;
use crate::street_lab::StreetLab;
use anyhow::{Context, Result, ensure};
use std::path::PathBuf;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

const HOMES: u32 = 60;

pub fn run(rig: &mut Rig) -> Result<()> {
    let dir = rig.without_site()?.dir().to_owned();
    let lab = StreetLab::start(&dir, HOMES)?;
    let screen = Screen::open(dir.join("tmux"), 80, 24, &[])?;
    help_and_completion(&screen)?;
    pages_and_pipes(&screen)?;
    watching(&screen)?;
    configuring(&screen)?;
    screen.wait_for_end()?;
    narrow(dir.join("tmux"))?;
    without_a_terminal()?;
    let report = lab.end()?;
    ensure!(
        report.online == HOMES && report.packets_wrong == 0,
        "{report:?}"
    );
    Ok(())
}

fn help_and_completion(screen: &Screen) -> Result<()> {
    screen.wait("sluice>")?;
    screen.keys(&["?"])?;
    screen.wait("  configure    Change the configuration;")?;
    let help = screen.wait("  show         Show the state of the gateway")?;
    let beside = |line: &str| line.starts_with("sluice>") || line.starts_with("  ");
    ensure!(
        help.lines().all(|line| line.is_empty() || beside(line)),
        "the help is broken in words:\n{help}"
    );
    screen.keys(&["sh", "Tab", "user", "Tab", "Enter"])?;
    let shown = screen.wait("associated")?;
    ensure!(
        shown.contains("sluice> show user-planes"),
        "Tab did not complete:\n{shown}"
    );
    screen.keys(&["show session ?"])?;
    let ids = screen.wait("home0001")?;
    ensure!(
        !ids.contains("nothing more"),
        "no session is offered:\n{ids}"
    );
    screen.wait("--more--")?;
    screen.keys(&["q", "C-u", "shov ports", "Enter"])?;
    screen.wait("unrecognized subcommand 'shov'")?;
    Ok(())
}

fn pages_and_pipes(screen: &Screen) -> Result<()> {
    screen.clear()?;
    screen.keys(&["show sessions", "Enter"])?;
    screen.wait("--more--")?;
    screen.keys(&["Space"])?;
    sleep(Duration::from_millis(300));
    screen.keys(&["q"])?;
    screen.wait("sluice> $")?;
    screen.clear()?;
    screen.keys(&["show sessions | match online | count", "Enter"])?;
    screen.wait(&format!("{} lines", HOMES + 1))?;
    screen.keys(&["show ports | json | match access", "Enter"])?;
    screen.wait("\"role\": \"access\"")?;
    screen.clear()?;
    screen.keys(&["show neighbours up", "?"])?;
    screen.wait("up2")?;
    screen.keys(&["2 | match core0", "Enter"])?;
    screen.wait("resolved")?;
    Ok(())
}

fn watching(screen: &Screen) -> Result<()> {
    screen.clear()?;
    screen.keys(&["show user-planes | watch 1", "Enter"])?;
    screen.wait("up2")?;
    screen.keys(&["C-c"])?;
    screen.wait("sluice> $")?;
    Ok(())
}

fn configuring(screen: &Screen) -> Result<()> {
    screen.clear()?;
    screen.keys(&["configure", "Enter"])?;
    screen.wait("sluice#")?;
    screen.keys(&["edit subscriber-pro", "Tab", "ho", "Tab", "Enter"])?;
    screen.wait("[edit subscriber-profiles home]")?;
    screen.keys(&["set mtu ?"])?;
    screen.wait("<value>  a number from 576 to 9216 (octets), 1492 by default")?;
    screen.keys(&["C-u"])?;
    enter(screen, "set mtu 99")?;
    screen.keys(&["commit", "Enter"])?;
    screen.wait("home mtu: `99` is wrong here: expected a number from 576 to")?;
    screen.wait("sluice# $")?;
    enter(screen, "set mtu 1400")?;
    screen.keys(&["show | compare", "Enter"])?;
    screen.wait("+  mtu 1400")?;
    screen.clear()?;
    screen.keys(&["commit check", "Enter"])?;
    screen.wait(&format!("{HOMES} sessions"))?;
    screen.keys(&["commit confirmed 1 comment \"smaller packets\"", "Enter"])?;
    screen.wait("`commit confirm` keeps it")?;
    screen.keys(&["commit confirm", "Enter"])?;
    screen.wait("version 2 is kept")?;
    screen.wait("sluice# $")?;
    enter(screen, "top")?;
    enter(screen, "set users a password hunter2")?;
    screen.keys(&["exit", "Enter"])?;
    screen.wait("1 edits were not committed and are forgotten")?;
    screen.clear()?;
    screen.keys(&["Up", "Up"])?;
    let recalled = screen.wait("sluice> top")?;
    ensure!(
        !recalled.contains("hunter2"),
        "a secret is in the history:\n{recalled}"
    );
    screen.keys(&["C-u", "exit", "Enter"])?;
    Ok(())
}

/// Types a line and waits until the next one can be typed: what is typed meanwhile may be lost.
fn enter(screen: &Screen, line: &str) -> Result<()> {
    screen.keys(&[line, "Enter"])?;
    screen.wait("sluice# $").map(drop)
}

/// On 50 columns every line fits.
fn narrow(socket: PathBuf) -> Result<()> {
    let screen = Screen::open(socket, 50, 24, &[])?;
    screen.wait("sluice>")?;
    screen.keys(&["show sessions | no-more", "Enter"])?;
    let shown = screen.wait(&format!("{HOMES} sessions"))?;
    let mut rows = shown.lines().filter(|line| line.contains("  online  "));
    ensure!(
        rows.all(|row| row.contains("  home00") && row.contains("  100.64.")),
        "rows are broken in two:\n{shown}"
    );
    screen.close()
}

/// Piped in and out: no prompt, no colours, an exit code that says whether it went well.
fn without_a_terminal() -> Result<()> {
    let run = |commands: &str| {
        let script = format!(
            "printf '%s' '{commands}' | '{}'",
            program("sluice")?.display()
        );
        Command::new("sh")
            .args(["-c", &script])
            .output()
            .context("sh")
    };
    let good = run("show user-planes\n")?;
    let out = String::from_utf8_lossy(&good.stdout);
    ensure!(
        good.status.success() && out.starts_with("NODE") && !out.contains('\x1b'),
        "{out}"
    );
    let bad = run("configure\nset limits sessions none\ncommit\nshow\n")?;
    let err = String::from_utf8_lossy(&bad.stderr);
    ensure!(
        bad.status.code() == Some(1)
            && err.contains("`commit`")
            && err.contains("limits sessions: `none` is wrong here"),
        "{err}"
    );
    Ok(())
}
