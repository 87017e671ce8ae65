//! A gateway with two user planes, its RADIUS server, and what all of them use.

use super::document::document;
use crate::guard::PATIENCE;
use crate::leak_check::{Footprint, balanced, cpu_time, left, packet_buffers};
use crate::radius::{ALONE, FreeRadius, SECRET};
use crate::radius_stub::RadiusStub;
use crate::site::forget;
use anyhow::{Result, ensure};
use lab::daemon::Daemon;
use lab::gateway::Gateway;
use lab::topology::{Lab, UserPlane};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The daemons of a gateway: the control plane first.
pub const DAEMONS: [Daemon; 3] = [
    Daemon::ControlPlane,
    Daemon::UserPlane(UserPlane::One),
    Daemon::UserPlane(UserPlane::Two),
];

/// How often the ledger is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// Who answers for RADIUS.
pub enum Radius {
    /// Our own, which costs little.
    Stub(RadiusStub),
    /// Debian's.
    FreeRadius(FreeRadius),
}

impl Radius {
    fn id(&self) -> i32 {
        match self {
            Radius::Stub(stub) => stub.id(),
            Radius::FreeRadius(server) => server.process().id(),
        }
    }
}

/// The gateway and its RADIUS server.
pub struct Planes<'a> {
    pub lab: &'a Lab,
    pub gateway: Gateway,
    pub radius: Radius,
}

/// CPU time, user and kernel, of the daemons, and of the RADIUS server.
#[derive(Clone, Copy, Debug)]
pub struct Used {
    pub daemons: [Duration; 3],
    pub radius: Duration,
}

impl<'a> Planes<'a> {
    /// Starts a gateway for which our own server answers.
    pub fn with_stub(lab: &'a Lab) -> Result<Self> {
        let stub = RadiusStub::start(lab)?;
        Planes::start(lab, Radius::Stub(stub))
    }

    /// Starts a gateway for which FreeRADIUS answers.
    pub fn with_freeradius(lab: &'a Lab) -> Result<Self> {
        let server = FreeRadius::start(lab, &ALONE, SECRET)?;
        Planes::start(lab, Radius::FreeRadius(server))
    }

    fn start(lab: &'a Lab, radius: Radius) -> Result<Self> {
        // records of cases before are not for this server
        forget(lab.dir())?;
        let gateway = Gateway::start_configured(lab, &UserPlane::ALL, &document(lab.dir()))?;
        Ok(Planes {
            lab,
            gateway,
            radius,
        })
    }

    /// What all have used so far.
    pub fn used(&self) -> Result<Used> {
        let [cp, one, two] = DAEMONS.map(|daemon| self.gateway.id(daemon).and_then(cpu_time));
        Ok(Used {
            daemons: [cp?, one?, two?],
            radius: cpu_time(self.radius.id())?,
        })
    }

    /// Octets of memory that the daemons hold, without packet buffers: these are the ports', and resident once they have been used.
    pub fn held(&self) -> Result<[u64; 3]> {
        let held = |daemon| {
            let id = self.gateway.id(daemon)?;
            let memory = Footprint::of(id)?.memory;
            anyhow::Ok((memory - packet_buffers(id)?) << 10)
        };
        let [cp, one, two] = DAEMONS.map(held);
        Ok([cp?, one?, two?])
    }

    /// Waits until nothing is left of the homes, on any plane, and each session has one Start and one Stop, as far as the server counts
    /// them. There were so many, and those of homes that left before they were online.
    pub fn wait_empty(&mut self, sessions: u64) -> Result<()> {
        let kept = self.gateway.wait_until_empty(self.lab, PATIENCE)?;
        ensure!(
            kept.is_empty(),
            "{} things are left: {:?}",
            kept.len(),
            &kept[..kept.len().min(5)]
        );
        if let Radius::Stub(stub) = &mut self.radius {
            let counted = stub.wait_complete(sessions)?;
            println!("        RADIUS: {counted:?}");
        }
        Ok(())
    }

    /// Waits until both planes hold what is theirs, and nothing of a session: RADIUS may still be told of ends.
    pub fn nothing_left(&self) -> Result<()> {
        let start = Instant::now();
        loop {
            let ledger = balanced(self.lab)?;
            let booked = left(&ledger);
            if booked.is_empty() {
                return Ok(());
            }
            ensure!(start.elapsed() < PATIENCE, "the ledger has {booked:#?}");
            sleep(LOOK);
        }
    }

    /// Ends all of it.
    pub fn stop(self) -> Result<()> {
        self.gateway.stop()?;
        match self.radius {
            Radius::Stub(stub) => stub.stop(),
            Radius::FreeRadius(server) => server.stop(),
        }
    }
}

impl Used {
    /// What was used since then.
    pub fn since(&self, before: &Used) -> Used {
        let since = |now: Duration, before| now.saturating_sub(before);
        Used {
            daemons: [0, 1, 2].map(|one| since(self.daemons[one], before.daemons[one])),
            radius: since(self.radius, before.radius),
        }
    }

    /// What both have used.
    pub fn with(&self, other: &Used) -> Used {
        Used {
            daemons: [0, 1, 2].map(|one| self.daemons[one] + other.daemons[one]),
            radius: self.radius + other.radius,
        }
    }

    /// Microseconds for each of so many sessions: control plane, user planes together, RADIUS server.
    pub fn each(&self, sessions: u32) -> [f64; 3] {
        let [cp, one, two] = self.daemons;
        [cp, one + two, self.radius].map(|used| used.as_micros() as f64 / f64::from(sessions))
    }
}
