//! A lane: a process of its own with a lab of its own, which runs the cases that it is told, one after the other.
//!
//! It reads their names from its standard input. What a case says goes to standard output and error, which are one pipe, and
//! ends with a line that says how it went. Whoever closes a lane's standard input while a case runs has died: the lane
//! cleans up and ends.

use crate::cases::{CASES, Case};
use crate::fixture::Fixture;
use crate::guard;
use anyhow::{Context, Result};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader, PipeReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, MutexGuard};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// What the process of a lane is started with.
pub const WORD: &str = "--lane";
/// The lines that end what a case says.
const PASSED: &str = "\u{1e}passed";
const FAILED: &str = "\u{1e}FAILED";
/// How long lanes may take to clean up.
const CLEANING_UP: Duration = Duration::from_secs(60);

/// The lane's own side.
pub fn serve() -> Result<()> {
    guard::start()?;
    let orders = orders();
    let mut fixture = Fixture::new()?;
    while let Ok(case) = orders.recv() {
        let passed = attempt(&mut fixture, case);
        guard::idle();
        println!("{}", if passed { PASSED } else { FAILED });
    }
    guard::limit("cleaning up");
    fixture.close()
}

/// The cases that are named on standard input, until it is closed.
fn orders() -> Receiver<&'static Case> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            let case = CASES.iter().find(|case| case.name == line);
            if case.is_none_or(|case| sender.send(case).is_err()) {
                break;
            }
        }
        guard::abandoned();
    });
    receiver
}

/// Runs a case and says how it went; whether it passed.
pub fn attempt(fixture: &mut Fixture, case: &Case) -> bool {
    let began = Instant::now();
    guard::limit(case.name);
    let outcome = (case.run)(fixture);
    guard::go_on();
    let seconds = began.elapsed().as_secs_f64();
    match &outcome {
        Ok(()) => println!("        passed in {seconds:.1} s"),
        Err(error) => {
            println!("        FAILED after {seconds:.1} s: {error:#}");
            println!("{}", fixture.post_mortem(case.name));
        }
    }
    outcome.is_ok()
}

/// The other side: a lane that runs. It ends, and cleans up, when this is dropped.
pub struct Lane {
    child: Child,
    orders: ChildStdin,
    said: BufReader<PipeReader>,
}

impl Lane {
    /// Starts its process.
    pub fn start() -> Result<Self> {
        let (said, say) = std::io::pipe()?;
        let mut command = Command::new(std::env::current_exe()?);
        command
            .arg(WORD)
            .stdin(Stdio::piped())
            .stdout(say.try_clone()?)
            .stderr(say)
            // A Ctrl-C at the terminal is for whoever runs the lanes.
            .process_group(0);
        let mut child = command.spawn().context("cannot start a lane")?;
        alive().push(child.id());
        let orders = child.stdin.take().context("piped")?;
        Ok(Lane {
            child,
            orders,
            said: BufReader::new(said),
        })
    }

    /// Runs a case to its end: what it said, and whether it passed; `None` if the lane died of it.
    pub fn run(&mut self, case: &Case) -> Result<(String, Option<bool>)> {
        let mut said = String::new();
        if writeln!(self.orders, "{}", case.name).is_err() {
            return Ok((said, None));
        }
        loop {
            let mut line = Vec::new();
            if self.said.read_until(b'\n', &mut line)? == 0 {
                return Ok((said, None));
            }
            match String::from_utf8_lossy(&line).as_ref() {
                line if line.trim_end() == PASSED => return Ok((said, Some(true))),
                line if line.trim_end() == FAILED => return Ok((said, Some(false))),
                line => said.push_str(line),
            }
        }
    }

    /// Lets it clean up and end, if it has not; what it said about that, and whether nothing went wrong.
    pub fn close(self) -> Result<(String, bool)> {
        let Lane {
            mut child,
            orders,
            mut said,
        } = self;
        drop(orders);
        let mut rest = Vec::new();
        said.read_to_end(&mut rest)?;
        let ended = child.wait()?;
        alive().retain(|id| *id != child.id());
        let rest = String::from_utf8_lossy(&rest).into_owned();
        Ok((rest, ended.success()))
    }
}

/// Ends every lane, whatever it does, and waits until it has cleaned up.
pub fn end_all() {
    for id in alive().iter() {
        let _ = kill(Pid::from_raw(*id as i32), Signal::SIGTERM);
    }
    let start = Instant::now();
    while !alive().is_empty() && start.elapsed() < CLEANING_UP {
        sleep(Duration::from_millis(20));
    }
}

/// The processes of the lanes that run.
fn alive() -> MutexGuard<'static, Vec<u32>> {
    static ALIVE: Mutex<Vec<u32>> = Mutex::new(Vec::new());
    ALIVE
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}
