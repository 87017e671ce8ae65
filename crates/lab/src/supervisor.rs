//! The lab's supervisor: it starts a daemon again when it has died, and knows when it is back.
//!
//! One thread looks whether every daemon lives and keeps the descriptors that it sends; another asks those that were
//! started again, which may take its time.

use crate::daemon::{Daemon, DaemonEvent, Phase, Recovery, What};
use crate::keep::Keep;
use crate::process::Process;
use anyhow::{Context, Result, bail};
use nix::sys::signal::Signal;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant, SystemTime};

/// How often the daemons are looked at.
const LOOK: Duration = Duration::from_millis(10);
/// How often a daemon is asked whether it is back.
const ASK: Duration = Duration::from_millis(20);
/// A daemon that was started again and died within this time has died soon, and is not started again at once.
pub const SOON: Duration = Duration::from_secs(5);
/// The wait before a daemon that died soon is started again; it doubles with each time.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// The longest wait.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// How long a process may take to be gone after SIGKILL.
const KILLED: Duration = Duration::from_secs(5);

/// What the supervisor asks of a daemon that was started again.
pub trait Probe: Send + 'static {
    /// Does it answer? Then whatever needs it to answer is done now.
    fn answers(&self, daemon: Daemon) -> bool;
    /// Is everything as it was before it died or was stopped? Its process began at this time, in seconds since 1970.
    fn is_back(&self, daemon: Daemon, began: u64) -> bool;
}

/// A daemon under supervision.
struct Ward {
    daemon: Daemon,
    process: Process,
    /// What it wants to find again after its death.
    keep: Keep,
    phase: Phase,
    died: Instant,
    started: Instant,
    /// When it was started again, in seconds since 1970.
    began: u64,
    restarts: u32,
    /// Deaths in a row, each soon after a start.
    soon: u32,
    again_after: Duration,
    recovery: Option<Recovery>,
}

/// What the threads share.
struct Shared {
    wards: Vec<Ward>,
    events: Vec<DaemonEvent>,
    fault: Option<String>,
}

/// Supervises the daemons of a gateway; ended by [`Supervisor::end`], or when dropped.
pub struct Supervisor {
    shared: Arc<Mutex<Shared>>,
    running: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Supervisor {
    /// Takes over daemons that run and are ready.
    pub fn start(daemons: Vec<(Daemon, Process, Keep)>, probe: impl Probe) -> Result<Self> {
        let now = Instant::now();
        let ward = |(daemon, process, keep)| Ward {
            daemon,
            process,
            keep,
            phase: Phase::Ready,
            died: now,
            started: now,
            began: 0,
            restarts: 0,
            soon: 0,
            again_after: Duration::ZERO,
            recovery: None,
        };
        let mut supervisor = Supervisor {
            shared: Arc::new(Mutex::new(Shared {
                wards: daemons.into_iter().map(ward).collect(),
                events: Vec::new(),
                fault: None,
            })),
            running: Arc::new(AtomicBool::new(true)),
            threads: Vec::new(),
        };
        supervisor.every("supervisor", LOOK, |shared| locked(shared).look())?;
        supervisor.every("probe", ASK, move |shared| ask(shared, &probe))?;
        Ok(supervisor)
    }

    fn every(
        &mut self,
        name: &str,
        pause: Duration,
        mut work: impl FnMut(&Mutex<Shared>) + Send + 'static,
    ) -> Result<()> {
        let (shared, running) = (Arc::clone(&self.shared), Arc::clone(&self.running));
        let thread = std::thread::Builder::new().name(name.into());
        let thread = thread.spawn(move || {
            while running.load(Ordering::Relaxed) {
                work(&shared);
                sleep(pause);
            }
        });
        self.threads
            .push(thread.context("cannot start the supervisor's threads")?);
        Ok(())
    }

    /// What has happened since the last call; an error if a daemon could not be started again.
    pub fn events(&self) -> Result<Vec<DaemonEvent>> {
        let mut shared = locked(&self.shared);
        if let Some(fault) = &shared.fault {
            bail!("{fault}");
        }
        if self.threads.iter().any(JoinHandle::is_finished) {
            bail!("a thread of the supervisor has ended by mistake");
        }
        Ok(std::mem::take(&mut shared.events))
    }

    /// Kills a daemon with SIGKILL; it is dead when this returns, and will be started again.
    pub fn kill(&self, daemon: Daemon) -> Result<()> {
        let mut shared = locked(&self.shared);
        let ward = shared.living(daemon)?;
        ward.process.signal(Signal::SIGKILL)?;
        let start = Instant::now();
        let status = loop {
            if let Some(status) = ward.process.ended()? {
                break status;
            }
            if start.elapsed() > KILLED {
                bail!("{daemon} is not gone {KILLED:?} after SIGKILL");
            }
            sleep(Duration::from_millis(1));
        };
        let event = ward.died(status, true);
        shared.events.push(event);
        Ok(())
    }

    /// Stops a daemon with SIGSTOP until [`Supervisor::resume`].
    pub fn pause(&self, daemon: Daemon) -> Result<()> {
        let mut shared = locked(&self.shared);
        let ward = shared.living(daemon)?;
        ward.process.signal(Signal::SIGSTOP)?;
        (ward.phase, ward.died) = (Phase::Paused, Instant::now());
        Ok(())
    }

    /// Lets a daemon go on with SIGCONT.
    pub fn resume(&self, daemon: Daemon) -> Result<()> {
        let mut shared = locked(&self.shared);
        let ward = shared.living(daemon)?;
        ward.process.signal(Signal::SIGCONT)?;
        if ward.phase == Phase::Paused {
            (ward.phase, ward.started) = (Phase::Starting, Instant::now());
        }
        Ok(())
    }

    /// The process id of a daemon, of its latest process if it is dead.
    pub fn id(&self, daemon: Daemon) -> Result<i32> {
        Ok(locked(&self.shared).ward(daemon)?.process.id())
    }

    /// How far a daemon has come.
    pub fn phase(&self, daemon: Daemon) -> Result<Phase> {
        Ok(locked(&self.shared).ward(daemon)?.phase)
    }

    /// How often each daemon was started again.
    pub fn restarts(&self) -> Vec<(Daemon, u32)> {
        let shared = locked(&self.shared);
        shared
            .wards
            .iter()
            .map(|w| (w.daemon, w.restarts))
            .collect()
    }

    /// Waits until a daemon that was killed or stopped is what it was before; how long that took.
    pub fn wait_ready(&self, daemon: Daemon, limit: Duration) -> Result<Recovery> {
        let start = Instant::now();
        loop {
            let mut shared = locked(&self.shared);
            let ward = shared.ward(daemon)?;
            if let (Phase::Ready, Some(recovery)) = (ward.phase, ward.recovery) {
                return Ok(recovery);
            }
            let (phase, tail) = (ward.phase, ward.process.tail());
            drop(shared);
            if start.elapsed() > limit {
                bail!("{daemon} is {phase:?} after {limit:?}\n{tail}");
            }
            sleep(LOOK);
        }
    }

    /// The last lines of each daemon's log.
    pub fn tails(&self) -> String {
        let shared = locked(&self.shared);
        let tail = |w: &Ward| format!("{}:\n{}\n", w.daemon, w.process.tail());
        shared.wards.iter().map(tail).collect()
    }

    /// Ends the daemons in the order in which they were taken over.
    pub fn end(mut self) -> Result<()> {
        self.join();
        let mut shared = locked(&self.shared);
        shared.wards.iter_mut().try_for_each(|w| w.process.stop())
    }

    fn join(&mut self) {
        self.running.store(false, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A thread that panicked was reported by `events`.
            let _ = thread.join();
        }
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.join();
    }
}

/// What is shared is whole even if a thread died while it was held.
fn locked(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Shared {
    fn ward(&mut self, daemon: Daemon) -> Result<&mut Ward> {
        let mut wards = self.wards.iter_mut();
        let found = wards.find(|ward| ward.daemon == daemon);
        found.with_context(|| format!("this gateway has no {daemon}"))
    }

    /// One that can be sent a signal: the id of a process that is gone may be a stranger's.
    fn living(&mut self, daemon: Daemon) -> Result<&mut Ward> {
        let ward = self.ward(daemon)?;
        if ward.phase == Phase::Dead {
            bail!("{daemon} is dead already");
        }
        Ok(ward)
    }

    /// Notices deaths, and starts again whatever is due.
    fn look(&mut self) {
        for ward in &mut self.wards {
            match ward.look() {
                Ok(event) => self.events.extend(event),
                Err(error) => self.fault = Some(format!("{}: {error:#}", ward.daemon)),
            }
        }
    }
}

impl Ward {
    fn look(&mut self) -> Result<Option<DaemonEvent>> {
        self.keep.listen();
        if self.phase == Phase::Dead {
            if self.died.elapsed() >= self.again_after {
                self.began = unix_time();
                self.process.start_again(&self.keep)?;
                self.restarts += 1;
                (self.phase, self.started) = (Phase::Starting, Instant::now());
            }
            return Ok(None);
        }
        let ended = self.process.ended()?;
        Ok(ended.map(|status| self.died(status, false)))
    }

    /// It has died: at once the first time, later if it does so again and again.
    fn died(&mut self, status: ExitStatus, ordered: bool) -> DaemonEvent {
        let again = self.restarts > 0 && self.started.elapsed() < SOON;
        self.again_after = match again {
            true => wait_after(self.soon),
            false => Duration::ZERO,
        };
        self.soon = if again { self.soon + 1 } else { 0 };
        (self.phase, self.died, self.recovery) = (Phase::Dead, Instant::now(), None);
        DaemonEvent {
            daemon: self.daemon,
            what: What::Died {
                status,
                ordered,
                again_after: self.again_after,
            },
        }
    }

    fn is_ready(&mut self) -> DaemonEvent {
        let after = self.died.elapsed();
        self.phase = Phase::Ready;
        self.recovery = Some(Recovery {
            started: self.started.duration_since(self.died),
            ready: after,
        });
        DaemonEvent {
            daemon: self.daemon,
            what: What::Back { after },
        }
    }
}

fn unix_time() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// The wait before a daemon is started again that died soon this many times before.
fn wait_after(soon: u32) -> Duration {
    FIRST_WAIT
        .saturating_mul(2_u32.saturating_pow(soon))
        .min(LONGEST_WAIT)
}

/// Asks the daemons that were started again how far they are. The lock is not held meanwhile.
fn ask(shared: &Mutex<Shared>, probe: &impl Probe) {
    let waiting: Vec<(Daemon, i32, u64, Phase)> = locked(shared)
        .wards
        .iter()
        .filter(|ward| matches!(ward.phase, Phase::Starting | Phase::Joining))
        .map(|ward| (ward.daemon, ward.process.id(), ward.began, ward.phase))
        .collect();
    for (daemon, id, began, phase) in waiting {
        let further = match phase {
            Phase::Starting => probe.answers(daemon),
            _ => probe.is_back(daemon, began),
        };
        let mut shared = locked(shared);
        let Ok(ward) = shared.ward(daemon) else {
            continue;
        };
        if !further || ward.process.id() != id || ward.phase != phase {
            continue;
        }
        if phase == Phase::Starting {
            ward.phase = Phase::Joining;
        } else {
            let event = ward.is_ready();
            shared.events.push(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::UserPlane;
    use std::process::Command;

    const UP: Daemon = Daemon::UserPlane(UserPlane::Two);

    struct Always;

    impl Probe for Always {
        fn answers(&self, _: Daemon) -> bool {
            true
        }

        fn is_back(&self, _: Daemon, _: u64) -> bool {
            true
        }
    }

    fn sleeper(dir: &std::path::Path, seconds: &str) -> Vec<(Daemon, Process, Keep)> {
        let mut command = Command::new("sleep");
        command.arg(seconds);
        let process = Process::spawn(dir, "up2", command).unwrap();
        let keep = Keep::open(&dir.join("up2.notify")).unwrap();
        vec![(UP, process, keep)]
    }

    #[test]
    fn a_killed_daemon_is_started_again_and_that_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let supervisor = Supervisor::start(sleeper(dir.path(), "60"), Always).unwrap();
        let first = supervisor.id(UP).unwrap();
        supervisor.kill(UP).unwrap();
        let recovery = supervisor.wait_ready(UP, Duration::from_secs(10)).unwrap();
        assert!(recovery.started <= recovery.ready);
        assert_ne!(supervisor.id(UP).unwrap(), first);
        assert_eq!(supervisor.restarts(), [(UP, 1)]);
        let events = supervisor.events().unwrap();
        let said: Vec<String> = events.iter().map(DaemonEvent::to_string).collect();
        assert_eq!(said[0], "sluice-up up2 died (signal 9): started again");
        assert!(
            said[1].starts_with("sluice-up up2 is back after"),
            "{said:?}"
        );
        assert!(matches!(events[0].what, What::Died { ordered: true, .. }));
        supervisor.end().unwrap();
    }

    #[test]
    fn one_that_dies_again_and_again_waits_longer_each_time() {
        let waits = [0, 1, 2, 3, 4, 5, 60].map(|soon| wait_after(soon).as_secs());
        assert_eq!(waits, [1, 2, 4, 8, 16, 30, 30]);
        let dir = tempfile::tempdir().unwrap();
        let supervisor = Supervisor::start(sleeper(dir.path(), "0"), Always).unwrap();
        let mut said = Vec::new();
        let start = Instant::now();
        while said.len() < 2 && start.elapsed() < Duration::from_secs(10) {
            let events = supervisor.events().unwrap();
            let died = |h: &DaemonEvent| matches!(h.what, What::Died { .. });
            said.extend(events.iter().filter(|h| died(h)).map(|h| h.to_string()));
            sleep(LOOK);
        }
        assert_eq!(
            said[..2],
            [
                "sluice-up up2 ended (code 0): started again",
                "sluice-up up2 ended (code 0): it is started again in 1 s"
            ]
        );
    }

    #[test]
    fn a_dead_daemon_is_sent_no_signal() {
        let dir = tempfile::tempdir().unwrap();
        let supervisor = Supervisor::start(sleeper(dir.path(), "0"), Always).unwrap();
        // From its second death on it waits a second.
        let dead =
            || supervisor.restarts() == [(UP, 1)] && supervisor.phase(UP).unwrap() == Phase::Dead;
        let start = Instant::now();
        while !dead() && start.elapsed() < Duration::from_secs(10) {
            sleep(LOOK);
        }
        for refused in [
            supervisor.pause(UP),
            supervisor.resume(UP),
            supervisor.kill(UP),
        ] {
            let error = refused.unwrap_err().to_string();
            assert_eq!(error, "sluice-up up2 is dead already");
        }
    }

    #[test]
    fn a_paused_daemon_is_not_dead_and_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let supervisor = Supervisor::start(sleeper(dir.path(), "60"), Always).unwrap();
        let id = supervisor.id(UP).unwrap();
        supervisor.pause(UP).unwrap();
        sleep(LOOK * 5);
        assert_eq!(supervisor.phase(UP).unwrap(), Phase::Paused);
        supervisor.resume(UP).unwrap();
        supervisor.wait_ready(UP, Duration::from_secs(10)).unwrap();
        assert_eq!(supervisor.id(UP).unwrap(), id);
        assert_eq!(supervisor.restarts(), [(UP, 0)]);
        supervisor.end().unwrap();
    }
}
