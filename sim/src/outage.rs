//! RADIUS servers in trouble while many homes connect: who is online stays, and afterwards everybody gets in, without a storm.
//!
//! A tenth of the homes is online before the trouble begins; all others connect within its first half minute, as after a power
//! failure, and again whenever an attempt ends. Some of those that are online leave meanwhile, whose accounting records wait.
//! Then the trouble is over: everybody has to come online, nobody has to wait for much longer than the servers need for all,
//! and every session has one Start and one Stop.

pub(crate) mod gateway;
pub mod kills;
pub mod overload;
mod servers;
pub mod storms;

use core::fmt;
use core::time::Duration;
use gateway::Gateway;
pub use servers::Trouble;

/// For how long the servers are in trouble.
const TROUBLE: Duration = Duration::from_secs(300);
/// Homes connect within this time.
const RUSH: Duration = Duration::from_secs(30);
/// Requests a second that a server serves: FreeRADIUS with a database.
const SPEED: u32 = 500;
/// What waits in the buffer of its socket.
const BACKLOG: Duration = Duration::from_secs(2);
/// After the last record was acknowledged, so long nothing more may come that is wrong.
const END: Duration = Duration::from_secs(60);
/// Access-Requests that a server has at most from the gateway: 256 identifiers on 16 sockets.
const IDENTIFIERS: u32 = 16 * 256;
/// Time until a request is repeated, at least: the first time-out of 2 s and its jitter.
const REPETITION: f64 = 1.8;
/// Requests that are open at most: of the half-open sessions, of which the configuration allows so many by default, and of as many
/// that have ended, for whose homes a request is not given up before its time.
const OPEN: u64 = 2 * 8_192;
/// Requests that servers serve at most for a home that comes online after the trouble: Access-Request, Start, and an Access-Request
/// of an attempt that its home has given up.
const EACH: f64 = 3.0;

/// Servers in trouble, and the homes that suffer.
#[derive(Clone, Copy, Debug)]
pub struct Trial {
    /// Name on the command line's table.
    pub name: &'static str,
    /// Emulated homes.
    pub homes: usize,
    /// What is wrong with each server.
    pub troubles: [Option<Trouble>; 2],
    /// Whether everybody gets in nevertheless; otherwise nobody may.
    pub serves: bool,
    /// Requests a second that a server serves when nothing is wrong.
    pub speed: u32,
    /// So much of a server's work waits for it at most; what comes beyond that is lost.
    pub backlog: Duration,
}

/// Emulated homes, where every server is dead.
const MANY: usize = 10_000;
/// Emulated homes in all other trials.
const SOME: usize = 1_000;

/// Every trial.
pub const TRIALS: [Trial; 13] = {
    use Trouble::*;
    const fn trial(name: &'static str, troubles: [Option<Trouble>; 2], serves: bool) -> Trial {
        Trial {
            name,
            homes: SOME,
            troubles,
            serves,
            speed: SPEED,
            backlog: BACKLOG,
        }
    }
    let late = Late(Duration::from_secs(20));
    [
        Trial {
            homes: MANY,
            ..trial("dead", [Some(Dead); 2], false)
        },
        Trial {
            homes: MANY,
            speed: SPEED / 5,
            ..trial("dead, and then busy", [Some(Dead); 2], false)
        },
        Trial {
            homes: MANY,
            speed: SPEED / 5,
            backlog: Duration::from_secs(30),
            ..trial(
                "dead, and then busy with a long queue",
                [Some(Dead); 2],
                false,
            )
        },
        trial("one dead", [Some(Dead), None], true),
        trial("slow", [Some(Slow(10)); 2], true),
        trial("lossy", [Some(Lossy(30)); 2], true),
        trial("flapping", [Some(Flapping); 2], true),
        trial("twice", [Some(Twice); 2], true),
        trial("late after failover", [Some(late), None], true),
        trial("another secret", [Some(WrongSecret); 2], false),
        trial("another secret at one", [Some(WrongSecret), None], true),
        trial("wrong code", [Some(WrongCode); 2], false),
        trial("wrong identifier", [Some(WrongIdentifier); 2], false),
    ]
};

/// What a trial came to.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Homes that connected.
    pub newcomers: usize,
    /// Those of them that were online when the trouble was over.
    pub online_meanwhile: usize,
    /// The most RADIUS requests that were open at a time.
    pub most_requests: u64,
    /// The most datagrams that a server got in a second, in the trouble and after it.
    pub most_in_a_second: [u32; 2],
    /// Time from the end of the trouble until half of the newcomers, and all of them, were online; zero if they were by then.
    pub online_after: [Duration; 2],
    /// Requests that the servers served, from the end of the trouble until all were online, for each newcomer that was not online.
    pub requests_each: f64,
    /// Time until every record was acknowledged, after all homes had left within half a minute.
    pub recorded_after: Duration,
    /// Requests that the servers served for the end of each session.
    pub requests_each_end: f64,
    /// Starts and Stops that were written more than once: a server that answers late has one that went to the other.
    pub doubled: u32,
}

impl Outcome {
    /// Nothing has grown beyond its bound, and no storm came over the servers.
    fn judge(&self) -> Result<(), String> {
        if self.most_requests > OPEN {
            return Err(format!("{} requests are open", self.most_requests));
        }
        // Each identifier is used for a new request when it is free, and for a repetition after its time. An Accept leads to a Start.
        let most = f64::from(IDENTIFIERS) / REPETITION + 2.0 * f64::from(SPEED);
        let [meanwhile, after] = self.most_in_a_second.map(f64::from);
        if meanwhile.max(after) > most {
            return Err(format!(
                "a server gets {meanwhile} datagrams in a second, and {after} after the trouble: more than {most:.0}"
            ));
        }
        if self.requests_each > EACH {
            return Err(format!(
                "the servers served {:.1} requests for each home",
                self.requests_each
            ));
        }
        Ok(())
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [half, all] = self.online_after.map(|after| after.as_secs_f64());
        let [meanwhile, after] = self.most_in_a_second;
        write!(
            f,
            "{} of {} online meanwhile, half {half:.0} s and all {all:.0} s after it; {} requests open at most, {meanwhile} datagrams a \
             second at a server at most, {after} after it, {:.1} requests served for each; all records {:.0} s after the end, {:.1} \
             requests served for each, {} written twice",
            self.online_meanwhile,
            self.newcomers,
            self.most_requests,
            self.requests_each,
            self.recorded_after.as_secs_f64(),
            self.requests_each_end,
            self.doubled
        )
    }
}

impl Trial {
    /// Lets it happen.
    ///
    /// # Errors
    /// What was found wrong.
    pub fn run(&self, seed: u64) -> Result<Outcome, String> {
        let mut gateway = Gateway::new(seed, self.homes, &[self.speed; 2]);
        for server in &mut gateway.servers {
            server.backlog = self.backlog;
        }
        let early = self.homes / 10;
        (0..early).for_each(|home| gateway.dial_within(home, RUSH));
        gateway.pass(2 * RUSH)?;
        if gateway.online(0..early) != early {
            return Err("not everybody is online before the trouble".into());
        }

        for (server, trouble) in gateway.servers.iter_mut().zip(self.troubles) {
            server.trouble = trouble;
        }
        let began = gateway.now;
        let (leaving, staying) = (0..early / 5, early / 5..early);
        let newcomers = early..self.homes;
        leaving
            .clone()
            .for_each(|home| gateway.hang_up_within(home, TROUBLE));
        newcomers
            .clone()
            .for_each(|home| gateway.dial_within(home, RUSH));
        gateway.pass(TROUBLE)?;
        let online_meanwhile = gateway.online(newcomers.clone());
        let expected = if self.serves { newcomers.len() } else { 0 };
        if online_meanwhile != expected {
            return Err(format!(
                "{online_meanwhile} of {} homes are online in the trouble, not {expected}",
                newcomers.len()
            ));
        }

        let over = gateway.now;
        gateway
            .servers
            .iter_mut()
            .for_each(|server| server.trouble = None);
        let served = |gateway: &Gateway| gateway.servers.iter().map(|s| s.served).sum::<u64>();
        let before = served(&gateway);
        let waiting = newcomers.len() - online_meanwhile;
        let limit = self.patience(waiting);
        while gateway.online(newcomers.clone()) < newcomers.len() {
            if gateway.now > over + limit {
                let online = gateway.online(newcomers.clone());
                return Err(format!(
                    "{online} of {} homes are online {limit:?} after the trouble",
                    newcomers.len()
                ));
            }
            gateway.pass(Duration::from_secs(1))?;
        }
        let requests = served(&gateway) - before;
        let mut online_at: Vec<Duration> = gateway.houses[newcomers.clone()]
            .iter()
            .filter_map(|house| house.online_at)
            .map(|at| at.saturating_sub(over))
            .collect();
        online_at.sort_unstable();
        let online_after = [online_at.len() / 2, online_at.len() - 1].map(|n| online_at[n]);
        let lost = gateway.houses[staying.clone()]
            .iter()
            .any(|house| house.ends > 0);
        if lost || gateway.online(staying.clone()) != staying.len() {
            return Err("somebody who was online is not any more".into());
        }

        let before = served(&gateway);
        let recorded_after = self.leave(&mut gateway)?;
        let requests_at_end = served(&gateway) - before;
        let most = |from, to: Duration| {
            let servers = gateway.servers.iter();
            servers.map(move |s| s.most_in_a_second(from, to)).max()
        };
        let outcome = Outcome {
            newcomers: newcomers.len(),
            online_meanwhile,
            most_requests: gateway.most_requests,
            most_in_a_second: [most(began, over), most(over, over + limit)]
                .map(Option::unwrap_or_default),
            online_after,
            requests_each: requests as f64 / waiting.max(1) as f64,
            recorded_after,
            requests_each_end: requests_at_end as f64 / self.homes as f64,
            doubled: gateway.checker.doubled(),
        };
        match gateway.checker.unbalanced(self.is_exact()) {
            Some(wrong) => Err(wrong),
            None => outcome.judge().map(|()| outcome),
        }
    }

    /// All homes leave. Returns the time after which every record was acknowledged.
    fn leave(&self, gateway: &mut Gateway) -> Result<Duration, String> {
        (0..self.homes).for_each(|home| gateway.hang_up_within(home, RUSH));
        gateway.pass(RUSH)?;
        let left = gateway.now;
        let limit = self.patience(self.homes);
        while let waiting = gateway.held(&["session", "accounting record"])
            && waiting > 0
        {
            if gateway.now > left + limit {
                return Err(format!(
                    "{waiting} sessions and records are left {limit:?} after all homes have"
                ));
            }
            gateway.pass(Duration::from_secs(1))?;
        }
        let took = gateway.now - left;
        gateway.pass(END)?;
        Ok(took)
    }

    /// Whether no answer of a server is lost or late, so that no other server gets a record that one has.
    fn is_exact(&self) -> bool {
        let mut troubles = self.troubles.iter().flatten();
        self.backlog <= BACKLOG && troubles.all(|trouble| *trouble == Trouble::Dead)
    }

    /// Time in which so many homes have to come online: what the servers need for each, twice, and what a home and the client wait
    /// between two tries.
    fn patience(&self, waiting: usize) -> Duration {
        Duration::from_secs(2 * waiting as u64 / u64::from(self.speed) + 90)
    }
}
