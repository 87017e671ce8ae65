//! More homes connect than the RADIUS servers can serve: the gateway finishes nearly as many set-ups as they can, whatever comes.

use super::gateway::Gateway;
use core::fmt;
use core::time::Duration;

/// Homes begin to connect in this time.
const TIME: Duration = Duration::from_secs(60);
/// After this time the gateway has settled.
const WARM: Duration = Duration::from_secs(10);
/// RADIUS requests of a set-up: Access-Request and Start.
const REQUESTS: u32 = 2;
/// Part of the servers' capacity that must be left to set-ups that come online.
const LEAST: f64 = 0.9;

/// Homes, and servers that are too slow for them.
#[derive(Clone, Copy, Debug)]
pub struct Overload {
    /// Name on the command line's table.
    pub name: &'static str,
    /// Homes that begin to connect in a second, in multiples of the servers' capacity.
    pub load: u32,
    /// Servers.
    pub servers: usize,
    /// Requests a second that each server serves.
    pub speed: u32,
    /// So much of a server's work waits for it at most.
    pub backlog: Duration,
    /// Limits of the configuration.
    pub limits: &'static str,
}

const THRICE: Overload = Overload {
    name: "three times the capacity",
    load: 3,
    servers: 1,
    speed: 200,
    backlog: Duration::from_secs(2),
    limits: "",
};

/// Every overload.
pub const OVERLOADS: [Overload; 8] = [
    Overload {
        name: "the capacity of the server",
        load: 1,
        ..THRICE
    },
    THRICE,
    Overload {
        name: "three times the capacity, long queue",
        backlog: Duration::from_secs(30),
        ..THRICE
    },
    Overload {
        name: "three times the capacity of two servers",
        servers: 2,
        ..THRICE
    },
    Overload {
        name: "ten times the capacity",
        load: 10,
        speed: 100,
        ..THRICE
    },
    Overload {
        name: "three times the capacity of a slow server",
        speed: 20,
        ..THRICE
    },
    Overload {
        name: "three times the capacity, 500 half-open",
        limits: "half-open: 500",
        ..THRICE
    },
    Overload {
        name: "three times the capacity, 10 half-open",
        limits: "half-open: 10",
        ..THRICE
    },
];

/// What an overload came to.
#[derive(Clone, Copy, Debug)]
pub struct Goodput {
    /// Set-ups a second that the servers can serve.
    pub capacity: u32,
    /// Homes that came online in a second.
    pub online: f64,
}

impl fmt::Display for Goodput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Goodput { capacity, online } = self;
        let percent = online * 100.0 / f64::from(*capacity);
        write!(f, "{online:.1} of {capacity} set-ups/s, {percent:.0} %")
    }
}

impl Overload {
    /// Lets it happen.
    ///
    /// # Errors
    /// What was found wrong, or that too few came online.
    pub fn run(&self, seed: u64) -> Result<Goodput, String> {
        let speeds = vec![self.speed; self.servers];
        let capacity = speeds.iter().sum::<u32>() / REQUESTS;
        let homes = (self.load * capacity) as usize * TIME.as_secs() as usize;
        let mut gateway = Gateway::limited(seed, homes, &speeds, self.limits);
        for server in &mut gateway.servers {
            server.backlog = self.backlog;
        }
        (0..homes).for_each(|home| gateway.dial_within(home, TIME));
        gateway.pass(WARM)?;
        let before = gateway.online(0..homes);
        gateway.pass(TIME - WARM)?;
        let online = (gateway.online(0..homes) - before) as f64;
        let goodput = Goodput {
            capacity,
            online: online / (TIME - WARM).as_secs_f64(),
        };
        match goodput.online < LEAST * f64::from(capacity) {
            true => Err(format!("only {goodput}")),
            false => Ok(goodput),
        }
    }
}
