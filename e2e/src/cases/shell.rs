use crate::background_lab::{BackgroundLab, name, sluice, sluice_line};
use crate::fixture::Fixture;
use crate::screen::{Screen, snapshot};
use anyhow::{Context, Result, ensure};
use lab::topology::Lab;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

const HOMES: u32 = 60;

pub fn run(fixture: &mut Fixture) -> Result<()> {
    let own = fixture.without_site()?;
    let lab = BackgroundLab::start(own, HOMES)?;
    let (tmux, sluice) = (own.dir().join("tmux"), sluice_line(own)?);
    let screen = Screen::open(tmux.clone(), 80, 24, &sluice)?;
    help_and_completion(&screen)?;
    pages_and_pipes(own, &screen)?;
    watching(&screen)?;
    configuring(&screen)?;
    ended_by_a_signal(screen)?;
    narrow(tmux, &sluice)?;
    without_a_terminal(own)?;
    let report = lab.end()?;
    report.homes(HOMES, 0)?;
    report.restarts([0; 3])?;
    // The MTU became smaller: of each home's packets one each way was too large before the end that sent it knew, or one more.
    let lost = report.packets_sent - report.packets_received;
    ensure!(
        lost <= 4 * u64::from(HOMES),
        "{lost} packets were lost: {report:?}"
    );
    Ok(())
}

fn help_and_completion(screen: &Screen) -> Result<()> {
    screen.wait("sluice>")?;
    screen.keys(&["?"])?;
    screen.wait("  configure      Change the configuration;")?;
    let help = screen.wait("  show           Show the state of the gateway")?;
    let beside = |line: &str| line.starts_with("sluice>") || line.starts_with("  ");
    ensure!(
        help.lines().all(|line| line.is_empty() || beside(line)),
        "the help is broken in words:\n{help}"
    );
    snapshot("shell-help", &screen.settled()?)?;
    screen.clear()?;
    screen.keys(&["show ", "Tab", "Tab"])?;
    screen.wait("user-planes")?;
    snapshot("shell-completion", &screen.settled()?)?;
    screen.keys(&["C-u"])?;
    screen.clear()?;
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
    screen.keys(&["q"])?;
    screen.wait("sluice> show session $")?;
    screen.keys(&["C-u", "shov ports", "Enter"])?;
    screen.wait("unrecognized subcommand 'shov'")?;
    Ok(())
}

fn pages_and_pipes(lab: &Lab, screen: &Screen) -> Result<()> {
    screen.clear()?;
    screen.keys(&["show configuration", "Enter"])?;
    screen.wait("--more--")?;
    let page = screen.settled()?.replace(&name(lab), "LAB");
    snapshot("shell-page", &page)?;
    screen.keys(&["q"])?;
    screen.wait("sluice> $")?;
    screen.clear()?;
    screen.keys(&["show sessions", "Enter"])?;
    screen.wait("--more--")?;
    screen.keys(&["Space"])?;
    sleep(Duration::from_millis(300));
    screen.keys(&["q"])?;
    screen.wait("sluice> $")?;
    screen.clear()?;
    screen.keys(&["show sessions | match online | count", "Enter"])?;
    screen.wait(&format!("{HOMES} lines"))?;
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
    screen.wait("<value>  a number from 576 to 9216 (octets)")?;
    screen.keys(&["C-u"])?;
    enter(screen, "set mtu 99")?;
    screen.keys(&["commit", "Enter"])?;
    screen.wait("home mtu: `99` is not valid here: expected a number from 576")?;
    screen.wait("sluice# $")?;
    enter(screen, "set mtu 1400")?;
    screen.clear()?;
    screen.keys(&["show | compare", "Enter"])?;
    screen.wait("+  mtu 1400")?;
    snapshot("shell-compare", &screen.settled()?)?;
    screen.clear()?;
    screen.keys(&["commit check", "Enter"])?;
    screen.wait(&format!("{HOMES} sessions"))?;
    screen.clear()?;
    screen.keys(&["commit confirmed 1 comment \"smaller packets\"", "Enter"])?;
    let shown = screen.wait("`commit confirm` keeps it")?;
    ensure!(
        shown.contains(&format!("{HOMES} sessions")),
        "it does not say what it does:\n{shown}"
    );
    screen.keys(&["commit confirm", "Enter"])?;
    screen.wait("version 2 is kept")?;
    screen.wait("sluice# $")?;
    enter(screen, "top")?;
    enter(screen, "set users a password hunter2")?;
    screen.keys(&["exit", "Enter"])?;
    screen.wait("not committed, and forgotten: 1 edit")?;
    screen.clear()?;
    screen.keys(&["Up", "Up"])?;
    let recalled = screen.wait("sluice> top")?;
    ensure!(
        !recalled.contains("hunter2"),
        "a secret is in the history:\n{recalled}"
    );
    screen.keys(&["C-u"])?;
    Ok(())
}

/// Once something was watched, signals do again what they do by default.
fn ended_by_a_signal(screen: Screen) -> Result<()> {
    screen.clear()?;
    screen.keys(&["show pools", "Enter"])?;
    screen.wait("sluice> $")?;
    let id = screen.tmux(&["list-panes", "-F", "#{pane_pid}"])?;
    kill(Pid::from_raw(id.trim().parse()?), Signal::SIGTERM)?;
    screen.wait_for_end()
}

/// Types a line and waits until the next one can be typed: what is typed meanwhile may be lost.
fn enter(screen: &Screen, line: &str) -> Result<()> {
    screen.keys(&[line, "Enter"])?;
    screen.wait("sluice# $").map(drop)
}

/// On 50 columns every line fits.
fn narrow(socket: PathBuf, sluice: &str) -> Result<()> {
    let screen = Screen::open(socket, 50, 24, sluice)?;
    screen.wait("sluice>")?;
    screen.keys(&["show sessions | no-more", "Enter"])?;
    let shown = screen.wait(&format!("{HOMES} sessions"))?;
    let rows = shown.lines().filter(|line| line.contains("  online  "));
    let rows: Vec<&str> = rows.collect();
    ensure!(
        !rows.is_empty()
            && rows
                .iter()
                .all(|row| row.contains("  home00") && row.contains("  100.64.")),
        "rows are broken in two:\n{shown}"
    );
    snapshot("shell-narrow", &masked(&shown))?;
    screen.close()
}

/// Without the numbers of this run, which are of the same lengths in any but for addresses in the last column.
fn masked(shown: &str) -> String {
    let word = |word: &str| match word.trim_end() {
        id if id.len() == 16 && id.bytes().all(|b| b.is_ascii_hexdigit()) => word.replace(id, "ID"),
        address if address.starts_with("100.64.") => word.replace(address, "ADDRESS"),
        _ => word.replace(|c: char| c.is_ascii_digit(), "9"),
    };
    let lines = shown.lines().map(|line| {
        let words = line.split_inclusive(char::is_whitespace).map(word);
        words.collect::<String>()
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Piped in and out: no prompt, no colours, an exit code that says whether it went well.
fn without_a_terminal(lab: &Lab) -> Result<()> {
    let run = |commands: &[u8]| -> Result<Output> {
        let mut child = sluice(lab)?
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut input = child.stdin.take().context("piped")?;
        input.write_all(commands)?;
        drop(input);
        Ok(child.wait_with_output()?)
    };
    let good = run(b"show user-planes\n")?;
    let out = String::from_utf8_lossy(&good.stdout);
    ensure!(
        good.status.success() && out.starts_with("NODE") && !out.contains('\x1b'),
        "{out}"
    );
    let failing: [(&[u8], &str); 7] = [
        (
            b"configure\nset limits sessions 7\nexit\nshow pools\n",
            "not committed, and forgotten: 1 edit",
        ),
        (b"show pools\n\xff\nshow pools\n", "cannot be read"),
        (
            b"set users a password my hunter2\n",
            "`set users a password ********`",
        ),
        (
            b"configure\nset users a password my hunter2\n",
            "more than one value",
        ),
        (
            b"configure\nset users a password \"hunter2\n",
            "needs quotes",
        ),
        (b"show user-planes | compare\n", "stands behind `show`"),
        (
            b"configure\ncommit confirmed 5000\n",
            "at most 86400 seconds",
        ),
    ];
    for (script, why) in failing {
        let done = run(script)?;
        let err = String::from_utf8_lossy(&done.stderr);
        ensure!(
            done.status.code() == Some(1) && err.contains(why) && !err.contains("hunter2"),
            "{}: {done:?}",
            String::from_utf8_lossy(script)
        );
    }
    let bad = run(b"configure\nset limits sessions none\ncommit\nshow\n")?;
    let err = String::from_utf8_lossy(&bad.stderr);
    ensure!(
        bad.status.code() == Some(1)
            && err.contains("`commit`")
            && err.contains("limits sessions: `none` is not valid here"),
        "{err}"
    );
    Ok(())
}
