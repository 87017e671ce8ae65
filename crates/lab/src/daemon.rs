//! The daemons of the gateway, how far each has come, and what has happened to it.

use crate::topology::UserPlane;
use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

/// A daemon of the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Daemon {
    /// `sluice-cp`.
    ControlPlane,
    /// `sluice-up` of a user plane.
    UserPlane(UserPlane),
}

impl Daemon {
    /// The name of its files.
    pub const fn name(self) -> &'static str {
        match self {
            Daemon::ControlPlane => "cp",
            Daemon::UserPlane(up) => up.name(),
        }
    }

    /// Its program.
    pub const fn program(self) -> &'static str {
        match self {
            Daemon::ControlPlane => "sluice-cp",
            Daemon::UserPlane(_) => "sluice-up",
        }
    }
}

impl fmt::Display for Daemon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Daemon::ControlPlane => f.write_str(self.program()),
            Daemon::UserPlane(up) => write!(f, "{} {}", self.program(), up.name()),
        }
    }
}

/// Something that happened to a daemon.
#[derive(Clone, Debug)]
pub struct DaemonEvent {
    /// Which one.
    pub daemon: Daemon,
    /// What.
    pub what: What,
}

/// See [`DaemonEvent`].
#[derive(Clone, Debug)]
pub enum What {
    /// It ended.
    Died {
        /// How.
        status: ExitStatus,
        /// [`crate::supervisor::Supervisor::kill`] did it.
        ordered: bool,
        /// When it is started again, from its death on.
        again_after: Duration,
    },
    /// It is what it was before it died.
    Back {
        /// From its death on.
        after: Duration,
    },
}

impl fmt::Display for DaemonEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let daemon = self.daemon;
        match self.what {
            What::Died {
                status,
                again_after,
                ..
            } => {
                match (status.signal(), status.code()) {
                    (Some(signal), _) => write!(f, "{daemon} died (signal {signal}): ")?,
                    (_, code) => write!(f, "{daemon} ended (code {}): ", code.unwrap_or(0))?,
                }
                match again_after {
                    Duration::ZERO => f.write_str("started again"),
                    wait => write!(f, "it is started again in {} s", wait.as_secs()),
                }
            }
            What::Back { after } => {
                write!(f, "{daemon} is back after {:.2} s", after.as_secs_f64())
            }
        }
    }
}

/// How far a daemon that was started again, or stopped, has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It is not there.
    Dead,
    /// It has begun, and does not answer yet.
    Starting,
    /// It answers, and not everything is as it was before.
    Joining,
    /// All is well.
    Ready,
    /// Stopped by [`crate::supervisor::Supervisor::pause`].
    Paused,
}

/// How long a daemon took to come back, from its death on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// Until its process was started.
    pub started: Duration,
    /// Until all was as before.
    pub ready: Duration,
}
