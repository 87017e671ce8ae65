//! Child processes that a later run can find again, and be sure of, after this one was killed.

use crate::keep::Keep;
use crate::netns::Netns;
use anyhow::{Context, Result, bail};
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a process may take to end by itself after SIGTERM.
const GRACE: Duration = Duration::from_secs(5);
/// Setting of the daemons' allocator, as their units have it (`deploy/systemd`).
const ALLOCATOR: (&str, &str) = ("MIMALLOC_MINIMAL_PURGE_SIZE", "2048");
/// How often the end of a process is looked for.
const POLL: Duration = Duration::from_millis(10);

/// A running child with its log and its pid file; ended when dropped.
#[derive(Debug)]
pub struct Process {
    name: String,
    command: Command,
    child: Child,
    log: PathBuf,
    record: PathBuf,
}

impl Process {
    /// Starts `command` (made by [`Netns::command`]), with its output in `dir/NAME.log` and its identity in `dir/NAME.pid`.
    pub fn spawn(dir: &Path, name: &str, mut command: Command) -> Result<Self> {
        let log = dir.join(format!("{name}.log"));
        let out = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let (setting, value) = ALLOCATOR;
        command
            .env(setting, value)
            .stdin(Stdio::null())
            .stdout(out.try_clone()?)
            .stderr(out)
            // A Ctrl-C at the terminal is for the lab alone: it ends its children in order.
            .process_group(0);
        let child = start(&mut command, name)?;
        let record = dir.join(format!("{name}.pid"));
        let process = Process {
            name: name.to_owned(),
            command,
            child,
            log,
            record,
        };
        process.write_record()?;
        Ok(process)
    }

    /// Starts it once more after it has ended, with what was kept for it; its log goes on where it was.
    pub fn start_again(&mut self, keep: &Keep) -> Result<()> {
        let again = |command: &mut Command| start(command, &self.name);
        self.child = keep.passing_on(&mut self.command, again)?;
        self.write_record()
    }

    fn write_record(&self) -> Result<()> {
        let id = self.id();
        let tick = started_at(id).unwrap_or(0);
        Ok(fs::write(&self.record, format!("{id} {tick}\n"))?)
    }

    /// Sends it a signal.
    pub fn signal(&self, number: Signal) -> Result<()> {
        signal(self.id(), number)
    }

    /// Its process id.
    pub fn id(&self) -> i32 {
        self.child.id() as i32
    }

    /// The name that it was started under.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where its output goes.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Whether it has ended, and how.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Waits until `ready` says so; an error with the end of the log if the process dies or the time runs out.
    pub fn wait_until(
        &mut self,
        what: &str,
        limit: Duration,
        mut ready: impl FnMut() -> bool,
    ) -> Result<()> {
        let start = Instant::now();
        while !ready() {
            if let Some(status) = self.ended()? {
                bail!(
                    "{} ended ({status}) before {what}\n{}",
                    self.name,
                    self.tail()
                );
            }
            if start.elapsed() > limit {
                bail!(
                    "{}: waited {limit:?} for {what}\n{}",
                    self.name,
                    self.tail()
                );
            }
            sleep(POLL);
        }
        Ok(())
    }

    /// Waits until it ends by itself; an error with the end of the log if the time runs out.
    pub fn wait_end(&mut self, limit: Duration) -> Result<ExitStatus> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.ended()? {
                return Ok(status);
            }
            if start.elapsed() > limit {
                bail!("{} runs after {limit:?}\n{}", self.name, self.tail());
            }
            sleep(POLL);
        }
    }

    /// The last lines of its log, indented, with the log's path.
    pub fn tail(&self) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        let last = lines[lines.len().saturating_sub(12)..].iter();
        let mut shown: String = last.map(|line| format!("    {line}\n")).collect();
        shown.push_str(&format!("    (all of it: {})", self.log.display()));
        shown
    }

    /// Ends it: SIGTERM, and SIGKILL if it does not listen.
    pub fn stop(&mut self) -> Result<()> {
        if self.ended()?.is_none() {
            signal(self.id(), Signal::SIGTERM)?;
            let start = Instant::now();
            while self.ended()?.is_none() && start.elapsed() < GRACE {
                sleep(POLL);
            }
        }
        if self.ended()?.is_none() {
            self.child.kill()?;
            self.child.wait()?;
        }
        match fs::remove_file(&self.record) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Nothing can be reported from here; whatever stays is found by the next run.
        let _ = self.stop();
    }
}

fn start(command: &mut Command, name: &str) -> Result<Child> {
    command
        .spawn()
        .with_context(|| format!("cannot start {name}"))
}

/// Ends the processes that an earlier run recorded in `dir` or left in its namespaces, and nobody else's.
pub fn end_leftovers(dir: &Path, namespaces: &[Netns]) -> Result<Vec<i32>> {
    let mut found = recorded(dir)?;
    for namespace in namespaces.iter().filter(|n| n.exists()) {
        found.extend(
            namespace
                .processes()?
                .into_iter()
                .filter(|&id| is_daemon(id)),
        );
    }
    found.sort_unstable();
    found.dedup();
    for &id in &found {
        signal(id, Signal::SIGTERM)?;
    }
    let start = Instant::now();
    while found.iter().any(|&id| alive(id)) {
        if start.elapsed() > GRACE {
            for &id in found.iter().filter(|&&id| alive(id)) {
                signal(id, Signal::SIGKILL)?;
            }
        }
        sleep(POLL);
    }
    Ok(found)
}

/// The processes of the pid files in `dir` that still are who they were: the same id, started at the same tick.
fn recorded(dir: &Path) -> Result<Vec<i32>> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(dir) else {
        return Ok(found);
    };
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_none_or(|e| e != "pid") {
            continue;
        }
        let text = fs::read_to_string(&path)?;
        let mut words = text.split_whitespace();
        let id = words.next().and_then(|w| w.parse().ok());
        let tick = words.next().and_then(|w| w.parse::<u64>().ok());
        if let (Some(id), Some(tick)) = (id, tick)
            && started_at(id) == Some(tick)
            && alive(id)
        {
            found.push(id);
        }
        fs::remove_file(&path)?;
    }
    Ok(found)
}

/// When a process started, in clock ticks since boot: with its id this names it beyond doubt until the next boot.
fn started_at(id: i32) -> Option<u64> {
    stat_fields(id)?.split_whitespace().nth(19)?.parse().ok()
}

/// Does it run (a zombie that nobody waits for does not)?
fn alive(id: i32) -> bool {
    stat_fields(id).is_some_and(|fields| !fields.starts_with('Z'))
}

/// `/proc/ID/stat` from the third field (the state) on; the second one, the name, may contain anything.
fn stat_fields(id: i32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    Some(stat.rsplit_once(')')?.1.trim_start().to_owned())
}

/// Is it one of the two daemons? Asked only of processes inside a namespace of the lab.
fn is_daemon(id: i32) -> bool {
    let Ok(program) = fs::read_link(format!("/proc/{id}/exe")) else {
        return false;
    };
    let program = program.to_string_lossy();
    let program = program.trim_end_matches(" (deleted)");
    matches!(program.rsplit('/').next(), Some("sluice-up" | "sluice-cp"))
}

fn signal(id: i32, signal: Signal) -> Result<()> {
    match kill(Pid::from_raw(id), signal) {
        Ok(()) | Err(Errno::ESRCH) => Ok(()),
        Err(error) => Err(error).with_context(|| format!("cannot send {signal} to process {id}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_allocators_setting_is_that_of_the_units() {
        let (setting, value) = ALLOCATOR;
        let up = include_str!("../../../deploy/systemd/sluice-up.service");
        let cp = include_str!("../../../deploy/systemd/sluice-cp.service");
        for unit in [up, cp] {
            let wanted = format!("Environment={setting}={value}");
            assert!(unit.lines().any(|line| line == wanted), "no {wanted}");
        }
        let bench = format!("env {setting}={value} $(BIN)/bench");
        assert!(include_str!("../../../Makefile").contains(&bench));
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::new("printenv");
        command.arg(setting);
        let mut printed = Process::spawn(dir.path(), "printenv", command).unwrap();
        while printed.ended().unwrap().is_none() {
            sleep(POLL);
        }
        assert_eq!(fs::read_to_string(printed.log()).unwrap().trim(), value);
    }

    #[test]
    fn a_recorded_process_is_ended_and_a_stranger_with_its_id_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let mut ours = Command::new("sleep").arg("60").spawn().unwrap();
        let mut stranger = Command::new("sleep").arg("60").spawn().unwrap();
        let (id, other) = (ours.id() as i32, stranger.id() as i32);
        fs::write(
            dir.path().join("a.pid"),
            format!("{id} {}\n", started_at(id).unwrap()),
        )
        .unwrap();
        // The id was reused: another process started at another time.
        fs::write(
            dir.path().join("b.pid"),
            format!("{other} {}\n", started_at(other).unwrap() - 1),
        )
        .unwrap();
        fs::write(dir.path().join("c.pid"), "not a number").unwrap();

        let reaper = std::thread::spawn(move || ours.wait());
        assert_eq!(end_leftovers(dir.path(), &[]).unwrap(), [id]);
        reaper.join().unwrap().unwrap();
        assert!(alive(other));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        stranger.kill().unwrap();
        stranger.wait().unwrap();
    }

    #[test]
    fn a_process_that_dies_early_is_reported_with_its_log() {
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "echo no such port; exit 2"]);
        let mut process = Process::spawn(dir.path(), "plane", command).unwrap();
        let error = process
            .wait_until("its socket", Duration::from_secs(10), || false)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("before its socket") && error.contains("no such port"),
            "{error}"
        );
    }

    #[test]
    fn a_process_that_is_started_again_goes_on_in_its_log() {
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "echo hello; exit 1"]);
        let mut process = Process::spawn(dir.path(), "plane", command).unwrap();
        let first = process.id();
        process.child.wait().unwrap();
        let keep = Keep::open(&dir.path().join("notify")).unwrap();
        process.start_again(&keep).unwrap();
        process.child.wait().unwrap();
        assert_ne!(process.id(), first);
        let log = fs::read_to_string(process.log()).unwrap();
        assert_eq!(log, "hello\nhello\n");
        let record = fs::read_to_string(dir.path().join("plane.pid")).unwrap();
        assert!(
            record.starts_with(&format!("{} ", process.id())),
            "{record}"
        );
    }

    #[test]
    fn a_stopped_process_leaves_no_pid_file() {
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::new("sleep");
        command.arg("60");
        let mut process = Process::spawn(dir.path(), "sleeper", command).unwrap();
        assert!(dir.path().join("sleeper.pid").exists());
        process.stop().unwrap();
        assert!(!dir.path().join("sleeper.pid").exists());
        assert!(!alive(process.id()));
    }
}
