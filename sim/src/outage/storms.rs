//! Storms: all homes connect within a second, and something dies in the middle of it.
//!
//! Afterwards everybody has to be online, to hear and to be heard, and nothing that was acknowledged may be lost: who was online when
//! a plane died keeps its session. Then everybody leaves: nothing may be left, and each session has one Start and one Stop.

use super::gateway::{Connected, Gateway};
use core::fmt;
use core::time::Duration;

/// Homes of a storm.
const HOMES: usize = 10_000;
/// All of them dial within this time.
const SPAN: Duration = Duration::from_secs(1);
/// Requests a second that each of the two servers serves.
const SPEED: u32 = 500;
/// Who is online before a power cut dialled within this time.
const RUSH: Duration = Duration::from_secs(30);
/// How long the power is off. No session is missed meanwhile.
const DARK: Duration = Duration::from_secs(20);
/// Between what is recorded and the storm.
const DAY: Duration = Duration::from_secs(86_400);
/// Datagrams that strangers send.
const FORGED: u32 = 25_000;
/// So long they go on when everybody is online.
const INTRUSION: Duration = Duration::from_secs(120);
/// How long a plane is dead.
const DEAD: Duration = Duration::from_secs(5);
/// Time until the planes have forgotten attempts that failed, once everybody is online.
const REST: Duration = Duration::from_secs(90);
/// The planes get to know each other in this time.
const START: Duration = Duration::from_secs(4);
/// After the last record was acknowledged, so long nothing more may come that is wrong.
const END: Duration = Duration::from_secs(60);

/// What happens in a storm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blow {
    /// Before it, the homes were online and lost their power, without a word to the gateway.
    PowerCut,
    /// The user plane dies when half of the homes are online, and comes back.
    UserPlane,
    /// The control plane dies when half of the homes are online, and is restored from its store.
    ControlPlane,
    /// Strangers repeat what the planes said yesterday, forge their addresses, and answer in their names; the user plane lies.
    Strangers,
}

/// A storm.
#[derive(Clone, Copy, Debug)]
pub struct Storm {
    /// Name on the command line's table.
    pub name: &'static str,
    /// What happens in it.
    pub blow: Blow,
    /// Emulated homes.
    pub homes: usize,
}

/// Every storm.
pub const STORMS: [Storm; 4] = [
    Storm {
        name: "storm after a power cut",
        blow: Blow::PowerCut,
        homes: HOMES,
    },
    Storm {
        name: "storm in which the user plane dies",
        blow: Blow::UserPlane,
        homes: HOMES,
    },
    Storm {
        name: "storm in which the control plane dies",
        blow: Blow::ControlPlane,
        homes: HOMES,
    },
    Storm {
        name: "storm with strangers between the planes",
        blow: Blow::Strangers,
        homes: HOMES,
    },
];

/// What a storm came to.
#[derive(Clone, Copy, Debug)]
pub struct Weathered {
    /// Homes that were online when something died.
    pub were_online: usize,
    /// Time from the storm's beginning until half of the homes, and all of them, were online.
    pub online_after: [Duration; 2],
    /// Sessions that were accounted for.
    pub sessions: usize,
    /// Starts and Stops that were written more than once: a server that was asked before the control plane died has one, and the
    /// one that is asked afterwards has it, too.
    pub doubled: u32,
    /// Forged datagrams that the planes counted.
    pub doubted: u64,
    /// Simulated time, from the beginning of the storm to the end.
    pub took: Duration,
}

impl fmt::Display for Weathered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [half, all] = self.online_after.map(|after| after.as_secs_f64());
        write!(
            f,
            "{} online at the blow, half {half:.0} s and all {all:.0} s after the beginning; {} sessions, {} records written \
             twice, {} forged datagrams counted, {:.0} s simulated",
            self.were_online,
            self.sessions,
            self.doubled,
            self.doubted,
            self.took.as_secs_f64()
        )
    }
}

impl Storm {
    /// Lets it happen.
    ///
    /// # Errors
    /// What was found wrong.
    pub fn run(&self, seed: u64) -> Result<Weathered, String> {
        let (weathered, online_at) = self.once(seed, true)?;
        if self.blow == Blow::Strangers {
            let (_, undisturbed) = self.once(seed, false)?;
            if online_at != undisturbed {
                return Err("homes come online at other times because of strangers".into());
            }
        }
        Ok(weathered)
    }

    /// Lets it happen, with strangers or without. Returns also when each home was online.
    fn once(&self, seed: u64, strangers: bool) -> Result<(Weathered, Vec<Duration>), String> {
        let mut gateway = Gateway::new(seed, self.homes, &[SPEED; 2]);
        gateway.pass(START)?;
        match self.blow {
            Blow::PowerCut => self.cut_power(&mut gateway)?,
            Blow::Strangers => self.let_a_day_pass(&mut gateway)?,
            Blow::UserPlane | Blow::ControlPlane => {}
        }
        let counted = gateway.drops();
        let dialled = gateway.now;
        (0..self.homes).for_each(|home| gateway.dial_within(home, SPAN));
        if self.blow == Blow::Strangers && strangers {
            gateway.let_intruders_in(FORGED);
        }
        let before = self.strike(&mut gateway)?;
        until_online(&mut gateway, self.homes, self.patience())?;
        if self.blow == Blow::Strangers {
            gateway.pass(INTRUSION)?;
        }
        gateway.check_online(REST)?;
        gateway.check_go_on(&before)?;
        let doubted = match self.blow {
            Blow::Strangers if strangers => gateway.check_counted(&counted)?,
            _ => 0,
        };
        let online_at: Vec<Duration> = gateway.houses.iter().filter_map(|h| h.online_at).collect();
        let exact = self.blow != Blow::ControlPlane;
        leave(&mut gateway, RUSH, self.patience(), exact)?;
        let weathered = Weathered {
            were_online: before.len(),
            online_after: halves(&online_at, dialled),
            sessions: gateway.checker.sessions(),
            doubled: gateway.checker.doubled(),
            doubted,
            took: gateway.now - dialled,
        };
        Ok((weathered, online_at))
    }

    /// Some homes were online yesterday, and strangers recorded it.
    fn let_a_day_pass(&self, gateway: &mut Gateway) -> Result<(), String> {
        gateway.record(true);
        let some = self.homes / 50;
        (0..some).for_each(|home| gateway.dial_within(home, SPAN));
        until_online(gateway, some, self.patience())?;
        (0..some).for_each(|home| gateway.hang_up_within(home, SPAN));
        gateway.pass(START)?;
        gateway.record(false);
        gateway.houses.iter_mut().for_each(|h| h.online_at = None);
        gateway.pass(DAY)?;
        match gateway.held(&["session", "accounting record"]) {
            0 => Ok(()),
            left => Err(format!("{left} sessions and records are left of yesterday")),
        }
    }

    /// Everybody is online, and then nobody, and the gateway does not know.
    fn cut_power(&self, gateway: &mut Gateway) -> Result<(), String> {
        (0..self.homes).for_each(|home| gateway.dial_within(home, RUSH));
        until_online(gateway, self.homes, self.patience())?;
        gateway.check_online(REST)?;
        gateway.power_cut();
        gateway.pass(DARK)?;
        match gateway.held(&["session"]) as usize == self.homes {
            true => Ok(()),
            false => Err("sessions are missed before their homes come back".into()),
        }
    }

    /// What is to die dies in the middle of the storm, and comes back. Returns who was online.
    fn strike(&self, gateway: &mut Gateway) -> Result<Vec<Connected>, String> {
        if matches!(self.blow, Blow::PowerCut | Blow::Strangers) {
            return Ok(Vec::new());
        }
        until_online(gateway, self.homes / 2, self.patience())?;
        let before = gateway.connected();
        if self.blow == Blow::UserPlane {
            gateway.kill_user_plane();
            gateway.pass(DEAD)?;
            gateway.start_user_plane();
        } else {
            gateway.kill_control();
            gateway.pass(DEAD)?;
            gateway.start_control();
        }
        Ok(before)
    }

    /// Time in which everybody has to come online: what the servers need for old sessions and new ones, twice, and what a home waits
    /// between two tries.
    fn patience(&self) -> Duration {
        Duration::from_secs(3 * self.homes as u64 / u64::from(SPEED) + 120)
    }
}

/// Waits until so many homes are online.
///
/// # Errors
/// They are not in time, or something else was found wrong.
pub(super) fn until_online(
    gateway: &mut Gateway,
    homes: usize,
    patience: Duration,
) -> Result<(), String> {
    let limit = gateway.now + patience;
    let everybody = 0..gateway.houses.len();
    while gateway.online(everybody.clone()) < homes {
        if gateway.now > limit {
            let offline = gateway.offline();
            return Err(format!(
                "fewer than {homes} homes are online after {patience:?}, and not {offline}"
            ));
        }
        gateway.pass(Duration::from_millis(100))?;
    }
    Ok(())
}

/// Time until half of the homes, and all of them, were online.
fn halves(online_at: &[Duration], began: Duration) -> [Duration; 2] {
    let mut after: Vec<Duration> = online_at
        .iter()
        .map(|at| at.saturating_sub(began))
        .collect();
    after.sort_unstable();
    [after.len() / 2, after.len() - 1].map(|n| after[n])
}

/// All homes leave within a span, and everything is checked that is over then; with `exact`, that no server got what another one has.
///
/// # Errors
/// What is left or wrong.
pub(super) fn leave(
    gateway: &mut Gateway,
    span: Duration,
    patience: Duration,
    exact: bool,
) -> Result<(), String> {
    (0..gateway.houses.len()).for_each(|home| gateway.hang_up_within(home, span));
    gateway.pass(span)?;
    let limit = gateway.now + patience;
    while let waiting = gateway.held(&["session", "accounting record"])
        && waiting > 0
    {
        if gateway.now > limit {
            return Err(format!(
                "{waiting} sessions and records are left {patience:?} after all homes have"
            ));
        }
        gateway.pass(Duration::from_secs(1))?;
    }
    gateway.pass(END)?;
    gateway.check_end(exact)
}
