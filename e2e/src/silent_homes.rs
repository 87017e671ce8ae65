//! Emulated homes at the first user plane that dial and stay, without traffic.

use crate::access_network::PASSWORD;
use crate::guard::PATIENCE;
use anyhow::{Result, ensure};
use cpe::{HomeConfig, State};
use lab::access_network::{AccessNetwork, Order, Plan, Residents, Status};
use lab::port::Port;
use lab::topology::{INTERNET_V4, INTERNET_V6, Lab, UserPlane};
use std::net::IpAddr;
use std::sync::mpsc::channel;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The S-tag of their lines.
const S_TAG: u16 = 202;
/// How often they are looked at.
const TICK: Duration = Duration::from_millis(20);

/// Homes on lines of their own.
pub struct SilentHomes {
    network: AccessNetwork,
    count: u32,
}

impl SilentHomes {
    /// So many homes dial. Their users are called `name0` and so on.
    pub fn dial(lab: &Lab, name: &str, count: u32) -> Result<Self> {
        let config = |home: u32| {
            let [.., high, low] = home.to_be_bytes();
            HomeConfig {
                restart: Duration::from_millis(500),
                ..HomeConfig::new(
                    [2, 0, 0x60, 0, high, low].into(),
                    S_TAG,
                    home as u16 + 1,
                    format!("{name}{home}"),
                    PASSWORD,
                )
            }
        };
        let residents = Residents {
            first: 0,
            configs: (0..count).map(config).collect(),
            all: count,
        };
        // Their turn to send comes once, before they are online.
        let never = Duration::from_secs(24 * 3600);
        let host = [IpAddr::from(INTERNET_V4), IpAddr::from(INTERNET_V6)];
        let tap = lab.tap(UserPlane::One, "silent0")?;
        let plan = Plan::of_lab(never, 1, channel().0, host);
        let network = AccessNetwork::open(residents, plan, Port::Tap(tap))?;
        let homes = SilentHomes { network, count };
        homes.wait(|status| status.ever_online == count)?;
        Ok(homes)
    }

    /// How they are getting on.
    pub fn status(&self) -> Status {
        self.network.status()
    }

    /// All lose their power for a moment, and dial again without having said goodbye; and once more after this time.
    pub fn reboot(&self, again: Option<Duration>) {
        self.network.order(Order::Reboot(again));
    }

    /// Waits until they are as wanted.
    pub fn wait(&self, done: impl Fn(&Status) -> bool) -> Result<Status> {
        let start = Instant::now();
        loop {
            let status = self.network.status();
            if done(&status) {
                return Ok(status);
            }
            ensure!(
                start.elapsed() < PATIENCE && !self.network.failed(),
                "the silent homes are not as they should be: {:?}, {:?}",
                status.states,
                status.ends
            );
            sleep(TICK);
        }
    }

    /// They hang up.
    pub fn hang_up(self) -> Result<()> {
        self.network.order(Order::HangUp);
        self.wait(|status| status.leaving && status.at(State::Offline) == self.count)?;
        self.network.close().map(drop)
    }
}
