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
/// How long the plane is dead.
const DEAD: Duration = Duration::from_secs(1);
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
}

/// A storm, and what is killed in it.
#[derive(Clone, Copy, Debug)]
pub struct Kills {
    /// Name on the command line's table.
    pub name: &'static str,
    /// What is killed.
    pub victim: Victim,
    /// Emulated homes.
    pub homes: usize,
    /// Instants at which it is killed, one in each run.
    pub instants: u64,
}

/// Every series of kills.
pub const KILLS: [Kills; 2] = [
    Kills {
        name: "control plane killed at every instant",
        victim: Victim::ControlPlane,
        homes: HOMES,
        instants: INSTANTS,
    },
    Kills {
        name: "user plane killed at every instant",
        victim: Victim::UserPlane,
        homes: HOMES,
        instants: INSTANTS,
    },
];

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
        (0..self.homes).for_each(|home| gateway.dial_within(home, SPAN));
        Ok(gateway)
    }

    /// How long the storm is if nothing dies.
    fn undisturbed(&self, seed: u64) -> Result<Survived, String> {
        let mut gateway = self.begin(seed)?;
        let (began, before) = (gateway.now, gateway.events);
        while gateway.online(0..self.homes) < self.homes {
            if gateway.now > began + PATIENCE {
                return Err("not everybody comes online although nothing dies".into());
            }
            gateway.step()?;
        }
        Ok(Survived {
            events: gateway.events - before,
            length: gateway.now - began,
            ..Survived::default()
        })
    }

    /// Kills the plane after so many events of the storm.
    fn kill_at(&self, seed: u64, event: u64, total: &mut Survived) -> Result<(), String> {
        let mut gateway = self.begin(seed)?;
        let began = gateway.now;
        (0..event).try_for_each(|_| gateway.step())?;
        let before = gateway.connected();
        match self.victim {
            Victim::ControlPlane => gateway.kill_control(),
            Victim::UserPlane => gateway.kill_user_plane(),
        }
        gateway.pass(DEAD)?;
        match self.victim {
            Victim::ControlPlane => gateway.start_control(),
            Victim::UserPlane => gateway.start_user_plane(),
        }
        let returned = gateway.now;
        until_online(&mut gateway, self.homes, PATIENCE)?;
        total.longest = total.longest.max(gateway.now - returned);
        gateway.check_online(PATIENCE)?;
        gateway.check_go_on(&before)?;
        leave(&mut gateway, SPAN, PATIENCE, true)?;
        total.kills += 1;
        total.were_online += before.len();
        total.sessions += gateway.checker.sessions();
        total.took += gateway.now - began;
        Ok(())
    }
}
