use crate::background_lab::{BackgroundLab, sluice, sluice_line};
use crate::fixture::Fixture;
use crate::guard::PATIENCE;
use crate::screen::Screen;
use anyhow::{Context, Result, ensure};
use lab::topology::Lab;
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

const HOMES: u32 = 40;

pub fn run(fixture: &mut Fixture) -> Result<()> {
    let own = fixture.without_site()?;
    let lab = BackgroundLab::start(own, HOMES)?;
    for_scripts(own)?;
    let top = format!("{} top; exec sh", sluice_line(own)?);
    let screen = Screen::open(own.dir().join("tmux"), 80, 24, &top)?;
    let shown = screen.wait(&format!("{HOMES} online, 0 connecting, 0 closing"))?;
    for part in ["USER PLANE", "up1", "up2", "PORT", "access", "POOL", "ipv6"] {
        ensure!(shown.contains(part), "`{part}` is not shown:\n{shown}");
    }
    let fits = |shown: &str| shown.lines().all(|line| line.chars().count() <= 80);
    ensure!(fits(&shown), "a line is broken:\n{shown}");
    screen.wait("bit/s")?;
    screen.keys(&["Right"])?;
    screen.wait("by name")?;
    screen.tmux(&["resize-window", "-x", "50", "-y", "15"])?;
    let narrow = wait_for_rows(&screen, 15)?;
    ensure!(
        narrow.lines().all(|line| line.chars().count() <= 50) && narrow.contains("online"),
        "it does not follow the terminal:\n{narrow}"
    );
    screen.keys(&["C-c"])?;
    left_whole(&screen)?;
    screen.close()?;
    leaves_with_its_terminal(own)?;
    let report = lab.end()?;
    report.homes(HOMES, 0)?;
    report.restarts([0; 3])?;
    report.losses()
}

/// The shell is there again, with a cursor, and shows what is typed.
fn left_whole(screen: &Screen) -> Result<()> {
    let alternate = || screen.tmux(&["display-message", "-p", "#{alternate_on} #{cursor_flag}"]);
    let start = Instant::now();
    while alternate()?.trim() != "0 1" {
        ensure!(
            start.elapsed() < PATIENCE,
            "the terminal is not left: {}",
            alternate()?
        );
        sleep(Duration::from_millis(100));
    }
    screen.keys(&["echo it is whole", "Enter"])?;
    let shown = screen.wait("\nit is whole")?;
    ensure!(shown.contains("echo it is whole"), "no echo:\n{shown}");
    Ok(())
}

/// A terminal that goes away (a pane that is closed) takes it along.
fn leaves_with_its_terminal(lab: &Lab) -> Result<()> {
    let at = lab.dir().join("top.pid");
    let top = format!(
        "echo $$ > {}; exec env {} top",
        at.display(),
        sluice_line(lab)?
    );
    let screen = Screen::open(lab.dir().join("tmux"), 80, 24, &top)?;
    screen.wait("online")?;
    let pid = std::fs::read_to_string(&at)?;
    screen.close()?;
    let process = Path::new("/proc").join(pid.trim());
    let begun = Instant::now();
    while process.exists() {
        ensure!(
            begun.elapsed() < PATIENCE,
            "`sluice top` goes on without its terminal"
        );
        sleep(Duration::from_millis(50));
    }
    Ok(())
}

fn wait_for_rows(screen: &Screen, rows: usize) -> Result<String> {
    let start = Instant::now();
    loop {
        let shown = screen.shown()?;
        let fits = shown.lines().count() <= rows && shown.contains("more");
        if fits || start.elapsed() > PATIENCE {
            return Ok(shown);
        }
        sleep(Duration::from_millis(100));
    }
}

/// One look, as a page and in JSON; and one line after the other, until the reader goes.
fn for_scripts(lab: &Lab) -> Result<()> {
    let top = |words: &[&str]| -> Result<String> {
        let mut command = sluice(lab)?;
        let done = command.arg("top").args(words).output().context("sluice")?;
        let out = String::from_utf8_lossy(&done.stdout).into_owned();
        ensure!(done.status.success(), "{words:?}: {done:?}");
        Ok(out)
    };
    let page = top(&["--once"])?;
    ensure!(
        page.starts_with(&format!("sessions   {HOMES} online")) && !page.contains('\x1b'),
        "{page}"
    );
    let look: Value = serde_json::from_str(&top(&["--once", "--json"])?)?;
    ensure!(look["sessions"]["online"] == HOMES, "{look}");
    let planes = look["user_planes"].as_array().context("user planes")?;
    ensure!(planes.len() == 2, "{look}");
    for plane in planes {
        let up = plane["up_octets_per_second"].as_f64();
        let down = plane["down_octets_per_second"].as_f64();
        ensure!(
            plane["associated"] == true && up > Some(0.0) && down > Some(0.0),
            "homes send and receive, and this says: {plane}"
        );
    }
    let lines = Command::new("sh")
        .args([
            "-c",
            &format!("{} top --json | head -n 2", sluice_line(lab)?),
        ])
        .output()?;
    let text = String::from_utf8_lossy(&lines.stdout);
    let looks: Result<Vec<Value>, _> = text.lines().map(serde_json::from_str).collect();
    ensure!(looks?.len() == 2, "{text}");
    Ok(())
}
