//! A plane is killed at every instant of a storm: at each event of it, in turn, of a grid over its whole length.
//!
//! Each time it comes back, everybody dials until they are online, and what was acknowledged is not lost.

use super::gateway::Gateway;
use super::storms::{leave, until_online};
use core::fmt;
use core::time::Duration;

/// Homes of the storm.
const HOMES: usize = 200;
/// All of them dial within this time.
const SPAN: Duration = Duration::from_millis(100);
/// Requests a second that each of the two servers serves.
const SPEED: u32 = 5_000;
/// Instants at which the plane is killed, unless the storm has fewer events.
const INSTANTS: u64 = 200;
/// The planes get to know each other in this time.
const START: Duration = Duration::from_secs(4);
/// How long the plane is dead: at every other instant once, at the others twice within a second, so that it starts twice at the same
/// time by the clock of PFCP.
const DEAD: [Duration; 2] = [Duration::from_secs(1), Duration::from_millis(20)];
/// How long the plane lives between two deaths.
const ALIVE: Duration = Duration::from_millis(100);
/// Time in which everybody has to come online again. A home whose link was open when its session was lost, and that had no address yet,
/// notices by its echo requests after 150 s, and dials again after as much as 30 s.
const PATIENCE: Duration = Duration::from_secs(240);

/// What is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victim {
    /// The control plane, which is restored from its store.
    ControlPlane,
    /// The user plane, which knows nothing when it comes back.
    UserPlane,
    /// Both of them.
    BothPlanes,
}

impl Victim {
    const EVERY: [Victim; 3] = [Victim::ControlPlane, Victim::UserPlane, Victim::BothPlanes];

    fn kill(self, gateway: &mut Gateway) {
        if self != Victim::UserPlane {
            gateway.kill_control();
        }
        if self != Victim::ControlPlane {
            gateway.kill_user_plane();
        }
    }

    fn restart(self, gateway: &mut Gateway) {
        if self != Victim::ControlPlane {
            gateway.start_user_plane();
        }
        if self != Victim::UserPlane {
            gateway.start_control();
        }
    }
}

/// What all homes do within [`SPAN`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rush {
    /// They dial for the first time.
    In,
    /// They dial again: the gateway has their sessions, and does not know that they lost their power.
    Again,
    /// They hang up.
    Out,
}

/// A storm, and what is killed in it.
#[derive(Clone, Copy, Debug)]
pub struct Kills {
    /// What is killed.
    pub victim: Victim,
    /// What the homes do.
    pub rush: Rush,
    /// Emulated homes.
    pub homes: usize,
    /// Instants at which it is killed, one in each run.
    pub instants: u64,
}

impl Kills {
    /// Every series of kills.
    pub fn every() -> impl Iterator<Item = Kills> {
        let rushes = [Rush::In, Rush::Again, Rush::Out].into_iter();
        let pairs = rushes.flat_map(|rush| Victim::EVERY.map(|victim| (rush, victim)));
        pairs.map(|(rush, victim)| Kills {
            victim,
            rush,
            homes: HOMES,
            instants: INSTANTS,
        })
    }

    /// Name on the command line's table.
    pub fn name(&self) -> String {
        let victim = match self.victim {
            Victim::ControlPlane => "control plane",
            Victim::UserPlane => "user plane",
            Victim::BothPlanes => "both planes",
        };
        let rush = match self.rush {
            Rush::In => "homes dial",
            Rush::Again => "homes dial again",
            Rush::Out => "homes hang up",
        };
        format!("{victim} killed at every instant while {rush}")
    }
}

/// What a series came to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Survived {
    /// Kills.
    pub kills: u64,
    /// Events of the storm.
    pub events: u64,
    /// The storm's length, without a kill.
    pub length: Duration,
    /// Homes that were online when the plane died, of all runs.
    pub were_online: usize,
    /// Sessions that were accounted for, of all runs.
    pub sessions: usize,
    /// The longest time from the plane's return until everybody was online.
    pub longest: Duration,
    /// Simulated time of all runs.
    pub took: Duration,
}

impl fmt::Display for Survived {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} kills over {} events and {:.3} s, {} homes online at them, all online again after {:.1} s at most; {} sessions, {:.0} s \
             simulated",
            self.kills,
            self.events,
            self.length.as_secs_f64(),
            self.were_online,
            self.longest.as_secs_f64(),
            self.sessions,
            self.took.as_secs_f64()
        )
    }
}

impl Kills {
    /// Lets all of it happen.
    ///
    /// # Errors
    /// What was found wrong, and at which event the plane was killed.
    pub fn run(&self, seed: u64) -> Result<Survived, String> {
        let mut total = self.undisturbed(seed)?;
        let stride = (total.events / self.instants).max(1);
        for event in (0..total.events).step_by(stride as usize) {
            self.kill_at(seed, event, &mut total)
                .map_err(|why| format!("killed at event {event} of {}: {why}", total.events))?;
        }
        Ok(total)
    }

    /// The storm begins.
    fn begin(&self, seed: u64) -> Result<Gateway, String> {
        let mut gateway = Gateway::new(seed, self.homes, &[SPEED; 2]);
        gateway.pass(START)?;
        if self.rush != Rush::In {
            (0..self.homes).for_each(|home| gateway.dial_within(home, SPAN));
            until_online(&mut gateway, self.homes, PATIENCE)?;
            gateway.check_online(PATIENCE)?;
        }
        if self.rush == Rush::Again {
            gateway.power_cut();
        }
        (0..self.homes).for_each(|home| match self.rush {
            Rush::Out => gateway.hang_up_within(home, SPAN),
            Rush::In | Rush::Again => gateway.dial_within(home, SPAN),
        });
        Ok(gateway)
    }

    /// Whether the storm is over, in which nothing died.
    fn is_over(&self, gateway: &Gateway) -> bool {
        match self.rush {
            Rush::Out => gateway.held(&["session", "accounting record"]) == 0,
            Rush::In | Rush::Again => gateway.online(0..self.homes) == self.homes,
        }
    }

    /// How long the storm is if nothing dies.
    fn undisturbed(&self, seed: u64) -> Result<Survived, String> {
        let mut gateway = self.begin(seed)?;
        let (began, before) = (gateway.now, gateway.events);
        while !self.is_over(&gateway) {
            if gateway.now > began + PATIENCE {
                return Err("the storm does not end although nothing dies".into());
            }
            gateway.step()?;
        }
        Ok(Survived {
            events: gateway.events - before,
            length: gateway.now - began,
            ..Survived::default()
        })
    }

    /// The plane dies and comes back, once or twice.
    fn die(&self, gateway: &mut Gateway, number: u64) -> Result<(), String> {
        let twice = number % 2 == 1;
        let dead = DEAD[usize::from(twice)];
        self.victim.kill(gateway);
        gateway.pass(dead)?;
        self.victim.restart(gateway);
        if twice {
            gateway.pass(ALIVE)?;
            self.victim.kill(gateway);
            gateway.pass(dead)?;
            self.victim.restart(gateway);
        }
        Ok(())
    }

    /// Kills the plane after so many events of the storm.
    fn kill_at(&self, seed: u64, event: u64, total: &mut Survived) -> Result<(), String> {
        let mut gateway = self.begin(seed)?;
        let began = gateway.now;
        (0..event).try_for_each(|_| gateway.step())?;
        let before = gateway.connected();
        self.die(&mut gateway, total.kills)?;
        let returned = gateway.now;
        if self.rush == Rush::Out {
            (0..self.homes).for_each(|home| gateway.dial_within(home, SPAN));
        }
        until_online(&mut gateway, self.homes, PATIENCE)?;
        total.longest = total.longest.max(gateway.now - returned);
        gateway.check_online(PATIENCE)?;
        if self.rush != Rush::Out {
            gateway.check_go_on(&before)?;
        }
        leave(&mut gateway, SPAN, PATIENCE, true)?;
        total.kills += 1;
        total.were_online += before.len();
        total.sessions += gateway.checker.sessions();
        total.took += gateway.now - began;
        Ok(())
    }
}
