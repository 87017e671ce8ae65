//! Frames and datagrams that were lost between homes and daemons, by the place where.

use crate::command::Sluice;
use anyhow::{Context, Result};
use lab::netns::Netns;
use lab::topology::{Lab, Place, UserPlane};
use northbound::{DropCounter, Port};
use std::collections::BTreeMap;

/// What was lost so far, by place.
#[derive(Debug, Default)]
pub struct Losses(BTreeMap<String, u64>);

impl Losses {
    /// What was lost so far in a lab.
    pub fn of(lab: &Lab) -> Result<Self> {
        let mut losses = Losses::default();
        let sluice = Sluice::of(lab);
        let ports: Vec<Port> = serde_json::from_str(&sluice.run(&["show", "ports", "--json"])?)?;
        for port in ports {
            let name = format!("{} {}", port.user_plane, port.name);
            losses.note(format!("{name}: not received"), port.rx_lost);
            losses.note(format!("{name}: not sent"), port.tx_dropped);
        }
        let drops: Vec<DropCounter> =
            serde_json::from_str(&sluice.run(&["show", "drops", "--json"])?)?;
        for drop in drops {
            losses.note(format!("{}: {}", drop.plane, drop.name), drop.count);
        }
        // In access networks the kernel counts as dropped what only packet sockets take.
        let planes = UserPlane::ALL.map(Place::UserPlane);
        for place in [Place::ControlPlane].into_iter().chain(planes) {
            losses.kernel(lab.netns(place))?;
        }
        Ok(losses)
    }

    fn note(&mut self, place: String, count: u64) {
        *self.0.entry(place).or_default() += count;
    }

    /// Datagrams for which a socket had no room, and frames that interfaces dropped.
    fn kernel(&mut self, netns: &Netns) -> Result<()> {
        let name = netns.name();
        let four = netns.run(&["cat", "/proc/net/snmp"])?;
        let mut udp = four.lines().filter(|line| line.starts_with("Udp:"));
        let (names, values) = (udp.next().context("no Udp")?, udp.next().context("no Udp")?);
        let full = names.split_whitespace().zip(values.split_whitespace());
        let full = full.filter(|(name, _)| name.ends_with("bufErrors"));
        let mut sum: u64 = full.map(|(_, count)| count.parse().unwrap_or(0)).sum();
        let six = netns.run(&["cat", "/proc/net/snmp6"])?;
        let full = six
            .lines()
            .filter(|line| line.starts_with("Udp6") && line.contains("bufErrors"));
        sum += full.map(last).sum::<u64>();
        self.note(format!("{name}: UDP socket full"), sum);
        for line in netns.run(&["cat", "/proc/net/dev"])?.lines().skip(2) {
            let (interface, counts) = line.split_once(':').context("no interface")?;
            let counts: Vec<u64> = counts
                .split_whitespace()
                .filter_map(|n| n.parse().ok())
                .collect();
            let [received, sent] = [3, 11].map(|place| counts.get(place).copied().unwrap_or(0));
            self.note(
                format!("{name} {}: dropped", interface.trim()),
                received + sent,
            );
        }
        Ok(())
    }

    /// What was lost at a place since then.
    pub fn since(&self, before: &Losses, place: &str) -> u64 {
        let [now, before] = [self, before].map(|losses| losses.0.get(place).copied());
        now.unwrap_or(0).saturating_sub(before.unwrap_or(0))
    }

    /// Prints what was lost since then.
    pub fn print_since(&self, before: &Losses) {
        for place in self.0.keys() {
            let lost = self.since(before, place);
            if lost > 0 {
                println!("        lost: {lost} {place}");
            }
        }
    }
}

fn last(line: &str) -> u64 {
    let number = line.split_whitespace().last();
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}
