//! `sluice load` at both user planes, and what both have seen.

use super::plane::{Planes, Used};
use crate::access_network::PASSWORD;
use crate::guard::PATIENCE;
use crate::leak_check::cpu_time;
use crate::load_tool::{LoadTool, Report};
use anyhow::{Result, ensure};
use lab::topology::{Lab, UserPlane};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long homes may take to connect, which only ends a hang.
const CONNECTS: Duration = Duration::from_secs(180);
/// How often the tools are looked at.
const LOOK: Duration = Duration::from_millis(10);

/// What the homes of each user plane do.
#[derive(Clone, Copy, Debug)]
pub struct Crowd<'w> {
    /// The interface of the load tools.
    pub interface: &'w str,
    /// Lines of the homes.
    pub lines: &'w str,
    /// The number of the first home.
    pub first: u32,
    /// Homes at each user plane.
    pub homes: u32,
    /// Homes that begin to connect a second, at each user plane.
    pub rate: u32,
    /// The other words of `sluice load`.
    pub words: &'w str,
}

/// A load at each user plane.
pub struct Tools {
    both: [LoadTool; 2],
    /// Homes at each.
    homes: u32,
}

/// What it took until all homes were online.
#[derive(Clone, Copy, Debug)]
pub struct Connected {
    /// CPU time of the daemons; of a user plane until its own homes were online.
    pub used: Used,
    /// CPU time of the tools.
    pub tools: Duration,
}

impl Tools {
    /// Homes begin to connect at both user planes, and stay until [`Tools::leave`].
    pub fn start(lab: &Lab, crowd: &Crowd) -> Result<Self> {
        let start = |up: UserPlane| {
            let Crowd {
                lines,
                homes,
                rate,
                words,
                ..
            } = *crowd;
            let first = crowd.first + up as u32 * homes;
            let words = format!(
                "--homes {homes} --first {first} --rate {rate} --duration 3600 --vlan {lines} \
                 --password {PASSWORD} --delegation --wait-for-all {words}"
            );
            LoadTool::start_at(lab, up, crowd.interface, &words)
        };
        Ok(Tools {
            both: [start(UserPlane::One)?, start(UserPlane::Two)?],
            homes: crowd.homes,
        })
    }

    /// Waits until all homes are online; what that took since `before`.
    pub fn connected(&mut self, planes: &Planes, before: &Used) -> Result<Connected> {
        let start = Instant::now();
        let mut seen = [None; 2];
        let last = loop {
            for (tool, seen) in self.both.iter().zip(&mut seen) {
                if seen.is_none() && tool.said()?.contains("running ") {
                    *seen = Some((planes.used()?, cpu_time(tool.id())?));
                }
            }
            if let [Some(one), Some(two)] = seen {
                break [one, two];
            }
            for tool in &mut self.both {
                tool.ensure_runs()?;
            }
            ensure!(start.elapsed() < CONNECTS, "not all homes come online");
            sleep(LOOK);
        };
        let [(one, tool1), (two, tool2)] = last;
        // The control plane and the server work for all homes, a user plane for its own.
        let mut used = Used {
            daemons: [0, 1, 2].map(|daemon| one.daemons[daemon].max(two.daemons[daemon])),
            radius: one.radius.max(two.radius),
        };
        (used.daemons[1], used.daemons[2]) = (one.daemons[1], two.daemons[2]);
        Ok(Connected {
            used: used.since(before),
            tools: tool1 + tool2,
        })
    }

    /// Waits until every home has received a packet in both families so many times more.
    pub fn rounds(&mut self, more: u64) -> Result<()> {
        let wanted = self.both.each_ref().map(|tool| tool.rounds());
        for (tool, before) in self.both.iter_mut().zip(wanted) {
            let wanted = before? + more;
            let start = Instant::now();
            while tool.rounds()? < wanted {
                tool.ensure_runs()?;
                ensure!(
                    start.elapsed() < 2 * PATIENCE,
                    "a home has received nothing"
                );
                sleep(LOOK * 5);
            }
        }
        Ok(())
    }

    /// All homes leave; what the tools report of both user planes, all of whose homes were online and lost no session.
    pub fn leave(self) -> Result<[Report; 2]> {
        self.leave_after(0)
    }

    /// The same where so many sessions were ended.
    pub fn leave_after(self, ended: u64) -> Result<[Report; 2]> {
        for tool in &self.both {
            tool.interrupt()?;
        }
        let [one, two] = self.both;
        let reports = [one.finish()?, two.finish()?];
        let mut lost = 0;
        for (passed, report) in &reports {
            let online = report.number("/online")?;
            let own = report.number("/sessions_lost")?;
            lost += own;
            // a load with a lost session has not passed
            ensure!(
                *passed == (own == 0) && online == u64::from(self.homes),
                "{online} of {} homes were online, {own} sessions lost, passed: {passed}",
                self.homes
            );
        }
        ensure!(lost == ended, "{lost} sessions were lost, not {ended}");
        Ok(reports.map(|(_, report)| report))
    }
}

/// Homes that came online a second, at both user planes together: all of them in the time of the slower half. `which` of the report's
/// rates says how many they are.
pub fn per_second(reports: &[Report; 2], which: &str) -> Result<f64> {
    let (mut homes, mut longest) = (0.0, 0.0_f64);
    for report in reports {
        let own = report.number("/homes")? as f64;
        homes += own;
        longest = longest.max(own / report.float(&format!("/set_ups/{which}"))?);
    }
    Ok(homes / longest)
}

/// A figure of both user planes' homes, the greater one.
pub fn worse(reports: &[Report; 2], pointer: &str) -> Result<f64> {
    let [one, two] = reports.each_ref().map(|report| report.float(pointer));
    Ok(one?.max(two?))
}

/// Packets that each user plane's homes have sent and lost, both families together.
pub fn lost(report: &Report) -> Result<[u64; 2]> {
    let of = |what: &str| -> Result<u64> {
        let families = ["ipv4", "ipv6"].map(|f| report.number(&format!("/traffic/{f}/{what}")));
        families.into_iter().sum()
    };
    Ok([of("sent")?, of("lost")?])
}
