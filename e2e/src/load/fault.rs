//! Blows, and what each came to.

use anyhow::{Result, ensure};
use lab::daemon::Daemon;
use lab::topology::UserPlane;
use std::fmt;
use std::time::Duration;

/// What is done to the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// kill -9 of the control plane.
    KillControlPlane,
    /// kill -9 of a user plane.
    KillUserPlane(UserPlane),
    /// kill -9 of the control plane and a user plane.
    KillBoth(UserPlane),
    /// SIGSTOP of the control plane, and SIGCONT after a while.
    StopControlPlane,
    /// SIGSTOP of a user plane, and SIGCONT after a while.
    StopUserPlane(UserPlane),
}

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 8] = [
        Fault::KillControlPlane,
        Fault::StopControlPlane,
        Fault::KillUserPlane(UserPlane::One),
        Fault::KillUserPlane(UserPlane::Two),
        Fault::KillBoth(UserPlane::One),
        Fault::KillBoth(UserPlane::Two),
        Fault::StopUserPlane(UserPlane::One),
        Fault::StopUserPlane(UserPlane::Two),
    ];

    pub(super) fn hits_control_plane(self) -> bool {
        !matches!(self, Fault::KillUserPlane(_) | Fault::StopUserPlane(_))
    }

    /// The user plane that may lose packets.
    pub fn user_plane(self) -> Option<UserPlane> {
        match self {
            Fault::KillControlPlane | Fault::StopControlPlane => None,
            Fault::KillUserPlane(up) | Fault::KillBoth(up) | Fault::StopUserPlane(up) => Some(up),
        }
    }

    /// Does a user plane forget what it has counted?
    pub fn kills_user_plane(self) -> bool {
        matches!(self, Fault::KillUserPlane(_) | Fault::KillBoth(_))
    }

    pub(super) fn is_kill(self) -> bool {
        !matches!(self, Fault::StopControlPlane | Fault::StopUserPlane(_))
    }

    pub(super) fn daemons(self) -> Vec<Daemon> {
        let control_plane = self.hits_control_plane().then_some(Daemon::ControlPlane);
        let user_plane = self.user_plane().map(Daemon::UserPlane);
        control_plane.into_iter().chain(user_plane).collect()
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::KillControlPlane => f.write_str("kill -9 of sluice-cp"),
            Fault::KillUserPlane(up) => write!(f, "kill -9 of sluice-up {}", up.name()),
            Fault::KillBoth(up) => write!(f, "kill -9 of sluice-cp and sluice-up {}", up.name()),
            Fault::StopControlPlane => f.write_str("SIGSTOP of sluice-cp"),
            Fault::StopUserPlane(up) => write!(f, "SIGSTOP of sluice-up {}", up.name()),
        }
    }
}

/// What a fault came to.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Which.
    pub fault: Fault,
    /// From the fault until an LCP echo of a subscriber was answered, where the control plane was killed.
    pub echo: Option<Duration>,
    /// From the fault until a home that dialled at that moment was online, where the control plane was killed.
    pub newcomer: Option<Duration>,
    /// From the user plane's start, or its going on, until every one of its homes had sent and received packets again.
    pub traffic: Option<Duration>,
    /// From the fault, or the going on, until all was as before.
    pub ready: Duration,
    /// Packets sent and lost, by user plane.
    pub lost: [(u64, u64); 2],
}

/// A killed control plane answers a subscriber's echo again within this time of the kill.
const ECHO_LIMIT: Duration = Duration::from_secs(2);
/// A home that dials in the moment that the control plane is killed is online within this time.
const NEWCOMER_LIMIT: Duration = Duration::from_secs(3);
/// Every home's traffic flows again within this time of a user plane's start.
const TRAFFIC_LIMIT: Duration = Duration::from_secs(2);

impl Measured {
    /// Holds the times against what is promised of a machine that has nothing else to do.
    pub fn in_time(&self) -> Result<()> {
        let within = |what: &str, took: Option<Duration>, limit: Duration| {
            ensure!(
                took.is_none_or(|took| took <= limit),
                "{}: {what} took longer than {limit:?}: {took:?}",
                self.fault
            );
            Ok(())
        };
        within("an answer to an echo", self.echo, ECHO_LIMIT)?;
        within("a new home", self.newcomer, NEWCOMER_LIMIT)?;
        within("every home's traffic", self.traffic, TRAFFIC_LIMIT)
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.fault)?;
        let mut say = |what: &str, took: Option<Duration>| match took {
            Some(took) => write!(f, " {what} after {:.2} s,", took.as_secs_f64()),
            None => Ok(()),
        };
        say("echo answered", self.echo)?;
        say("new home online", self.newcomer)?;
        say("traffic of every home back", self.traffic)?;
        say("all as before", Some(self.ready))?;
        for (up, (sent, lost)) in UserPlane::ALL.iter().zip(self.lost) {
            write!(f, " {}: {lost} of {sent} packets lost", up.name())?;
        }
        Ok(())
    }
}
