//! Rates, from one state to the next.

use northbound::{
    Alarm, DropCounter, PoolUse, QueueAggregate, SessionCounts, WatchStateResponse, WatchedPort,
    WatchedUserPlane,
};
use serde::Serialize;
use std::collections::BTreeMap;

/// The gateway between two states.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Look {
    pub sessions: Sessions,
    pub user_planes: Vec<UserPlane>,
    /// Ports, segments and VLANs with queues, those that use most of their rates.
    pub queues: Vec<Queues>,
    /// Of both planes.
    pub drops: Vec<Drop>,
    pub pools: Vec<PoolUse>,
    /// Those that are raised.
    pub alarms: Vec<Alarm>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Sessions {
    pub connecting: u64,
    pub online: u64,
    pub closing: u64,
    pub begun_per_second: f64,
    pub opened_per_second: f64,
    pub ended_per_second: f64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct UserPlane {
    pub name: String,
    /// Its association with the control plane is there.
    pub associated: bool,
    /// Its management interface answers.
    pub reached: bool,
    pub sessions: u64,
    /// Sessions of which copies of packets are shown to those who trace them.
    pub sampled: u32,
    /// Received from and sent to subscribers.
    pub up_octets_per_second: f64,
    pub down_octets_per_second: f64,
    pub ports: Vec<Port>,
    pub workers: Vec<Worker>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Port {
    pub name: String,
    pub role: String,
    pub rx_packets_per_second: f64,
    pub rx_octets_per_second: f64,
    pub tx_packets_per_second: f64,
    pub tx_octets_per_second: f64,
    pub tx_dropped_per_second: f64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Queues {
    #[serde(flatten)]
    pub aggregate: QueueAggregate,
    /// The part of its rate that is used, in hundredths; without a rate 0.
    pub used_percent: f64,
    pub drops_per_second: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Worker {
    pub number: u32,
    /// The part of its time in which there was something to do, in hundredths.
    pub busy_percent: f64,
    pub punted_per_second: f64,
    pub injected_per_second: f64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Drop {
    /// A user plane's name, or `control-plane`.
    pub plane: String,
    pub name: String,
    pub count: u64,
    pub per_second: f64,
}

/// The last two readings of everything. User planes tell theirs in a rhythm of their own.
#[derive(Debug, Default)]
pub struct Meter {
    before: Option<WatchStateResponse>,
    planes: BTreeMap<String, [Option<WatchedUserPlane>; 2]>,
}

impl Meter {
    /// The rates up to this state.
    pub fn take(&mut self, now: WatchStateResponse) -> Look {
        self.planes
            .retain(|name, _| now.user_planes.iter().any(|plane| plane.node_id == *name));
        for plane in &now.user_planes {
            let [before, last] = self.planes.entry(plane.node_id.clone()).or_default();
            if !plane.reached {
                (*before, *last) = (None, None);
            } else if last.as_ref().map(|last| last.at_milliseconds) != Some(plane.at_milliseconds)
            {
                *before = last.replace(plane.clone());
            }
        }
        let before = self.before.replace(now.clone());
        let since = before.unwrap_or_else(|| now.clone());
        let seconds = seconds(since.at_milliseconds, now.at_milliseconds);
        let pairs = now.user_planes.iter().map(|plane| {
            let [before, last] = &self.planes[&plane.node_id];
            let last = last.as_ref().unwrap_or(plane);
            (before.as_ref().unwrap_or(last), last, plane)
        });
        let pairs: Vec<_> = pairs.collect();
        let mut drops = drops("control-plane", &since.drops, &now.drops, seconds);
        drops.extend(pairs.iter().flat_map(|(before, last, _)| {
            let seconds = self::seconds(before.at_milliseconds, last.at_milliseconds);
            self::drops(&last.node_id, &before.drops, &last.drops, seconds)
        }));
        let planes = pairs.iter();
        let queues = pairs
            .iter()
            .flat_map(|(before, last, _)| queues(before, last));
        Look {
            queues: queues.collect(),
            sessions: sessions(
                since.sessions.unwrap_or_default(),
                now.sessions.unwrap_or_default(),
                seconds,
            ),
            user_planes: planes
                .map(|(before, last, now)| user_plane(before, last, now))
                .collect(),
            drops,
            pools: now.pools,
            alarms: now.alarms,
        }
    }

    /// Whether there are two readings of everybody who is reached.
    pub fn is_complete(&self) -> bool {
        let mut planes = self.planes.values();
        self.before.is_some() && planes.all(|[before, last]| before.is_some() || last.is_none())
    }
}

fn seconds(from: u64, to: u64) -> f64 {
    to.saturating_sub(from) as f64 / 1000.0
}

/// A counter that has become less began anew.
fn rate(before: u64, now: u64, seconds: f64) -> f64 {
    if seconds <= 0.0 {
        return 0.0;
    }
    let rate = now.saturating_sub(before) as f64 / seconds;
    (rate * 10.0).round() / 10.0
}

fn sessions(before: SessionCounts, now: SessionCounts, seconds: f64) -> Sessions {
    Sessions {
        connecting: now.connecting,
        online: now.online,
        closing: now.closing,
        begun_per_second: rate(before.begun, now.begun, seconds),
        opened_per_second: rate(before.opened, now.opened, seconds),
        ended_per_second: rate(before.ended, now.ended, seconds),
    }
}

fn user_plane(
    before: &WatchedUserPlane,
    last: &WatchedUserPlane,
    now: &WatchedUserPlane,
) -> UserPlane {
    let seconds = seconds(before.at_milliseconds, last.at_milliseconds);
    let ports: Vec<Port> = last
        .ports
        .iter()
        .map(|port| {
            let then = before.ports.iter().find(|then| then.name == port.name);
            self::port(then.unwrap_or(port), port, seconds)
        })
        .collect();
    let access = || ports.iter().filter(|port| port.role == "access");
    UserPlane {
        name: now.node_id.clone(),
        associated: now.associated,
        reached: now.reached,
        sessions: now.sessions,
        sampled: now.sampled,
        up_octets_per_second: access().map(|port| port.rx_octets_per_second).sum(),
        down_octets_per_second: access().map(|port| port.tx_octets_per_second).sum(),
        workers: last
            .workers
            .iter()
            .map(|worker| {
                let mut then = before.workers.iter();
                let then = then.find(|then| then.number == worker.number);
                self::worker(then.unwrap_or(worker), worker, seconds)
            })
            .collect(),
        ports,
    }
}

fn port(before: &WatchedPort, now: &WatchedPort, seconds: f64) -> Port {
    Port {
        name: now.name.clone(),
        role: now.role.clone(),
        rx_packets_per_second: rate(before.rx_packets, now.rx_packets, seconds),
        rx_octets_per_second: rate(before.rx_octets, now.rx_octets, seconds),
        tx_packets_per_second: rate(before.tx_packets, now.tx_packets, seconds),
        tx_octets_per_second: rate(before.tx_octets, now.tx_octets, seconds),
        tx_dropped_per_second: rate(before.tx_dropped, now.tx_dropped, seconds),
    }
}

/// Of those that were not among the busiest before it is not known what they have dropped in the meantime.
fn queues(before: &WatchedUserPlane, last: &WatchedUserPlane) -> impl Iterator<Item = Queues> {
    let seconds = seconds(before.at_milliseconds, last.at_milliseconds);
    last.queue_aggregates.iter().map(move |now| {
        let is_same = |then: &&QueueAggregate| {
            (&then.port, &then.segment, then.s_tag) == (&now.port, &now.segment, now.s_tag)
        };
        let then = before.queue_aggregates.iter().find(is_same);
        let rate_of = now.rate_bits_per_second.unwrap_or_default();
        let used = now.bits_per_second as f64 * 1000.0 / rate_of.max(1) as f64;
        Queues {
            used_percent: if rate_of > 0 {
                used.round() / 10.0
            } else {
                0.0
            },
            drops_per_second: rate(
                then.map_or(now.drops, |then| then.drops),
                now.drops,
                seconds,
            ),
            aggregate: now.clone(),
        }
    })
}

fn worker(before: &northbound::Worker, now: &northbound::Worker, seconds: f64) -> Worker {
    Worker {
        number: now.number,
        busy_percent: rate(before.busy_nanoseconds, now.busy_nanoseconds, seconds) / 1e7,
        punted_per_second: rate(before.punted, now.punted, seconds),
        injected_per_second: rate(before.injected, now.injected, seconds),
    }
}

/// Those that were zero before are not among those before.
fn drops(plane: &str, before: &[DropCounter], now: &[DropCounter], seconds: f64) -> Vec<Drop> {
    let drop = |now: &DropCounter| {
        let then = before.iter().find(|then| then.name == now.name);
        Drop {
            plane: plane.into(),
            name: now.name.clone(),
            count: now.count,
            per_second: rate(then.map_or(0, |then| then.count), now.count, seconds),
        }
    };
    now.iter().map(drop).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(at: u64, told: u64, n: u64) -> WatchStateResponse {
        let drop = |name: &str, count| DropCounter {
            name: name.into(),
            count,
            ..DropCounter::default()
        };
        let port = |name: &str, role: &str, n| WatchedPort {
            name: name.into(),
            role: role.into(),
            rx_octets: 1000 * n,
            tx_octets: 3000 * n,
            ..WatchedPort::default()
        };
        WatchStateResponse {
            at_milliseconds: at,
            sessions: Some(SessionCounts {
                online: 7,
                opened: 10 * n,
                ended: n,
                ..SessionCounts::default()
            }),
            user_planes: vec![WatchedUserPlane {
                node_id: "up1".into(),
                associated: true,
                reached: true,
                at_milliseconds: told,
                ports: vec![port("access0", "access", n), port("core0", "core", n)],
                drops: vec![drop("no-route", 5 * n)],
                workers: vec![northbound::Worker {
                    number: 0,
                    punted: n,
                    injected: 0,
                    busy_nanoseconds: 250_000_000 * n,
                    ..northbound::Worker::default()
                }],
                ..WatchedUserPlane::default()
            }],
            drops: vec![drop("redialled", n)],
            ..WatchStateResponse::default()
        }
    }

    #[test]
    fn rates_are_those_between_the_readings_of_each_plane() {
        let mut meter = Meter::default();
        let first = meter.take(state(0, 0, 1));
        assert_eq!(first.sessions.opened_per_second, 0.0);
        assert!(!meter.is_complete());
        let look = meter.take(state(2000, 1000, 3));
        assert!(meter.is_complete());
        assert_eq!(look.sessions.opened_per_second, 10.0);
        assert_eq!(look.sessions.ended_per_second, 1.0);
        let plane = &look.user_planes[0];
        assert_eq!(
            plane.up_octets_per_second, 2000.0,
            "its reading is 1 s apart"
        );
        assert_eq!(plane.down_octets_per_second, 6000.0);
        assert_eq!(plane.workers[0].punted_per_second, 2.0);
        assert_eq!(plane.workers[0].busy_percent, 50.0);
        let rates: Vec<_> = look
            .drops
            .iter()
            .map(|d| (d.plane.as_str(), d.name.as_str(), d.per_second))
            .collect();
        assert_eq!(
            rates,
            [
                ("control-plane", "redialled", 1.0),
                ("up1", "no-route", 10.0)
            ]
        );
        // the user plane has told nothing new: its rates stay
        let again = meter.take(state(2500, 1000, 3));
        assert_eq!(again.user_planes[0].up_octets_per_second, 2000.0);
        assert_eq!(again.sessions.opened_per_second, 0.0);
    }

    #[test]
    fn a_counter_that_began_anew_and_a_plane_that_is_away_have_no_rates() {
        let mut meter = Meter::default();
        meter.take(state(0, 0, 5));
        let look = meter.take(state(1000, 1000, 1));
        assert_eq!(look.user_planes[0].up_octets_per_second, 0.0);
        let mut away = state(2000, 0, 0);
        away.user_planes[0] = WatchedUserPlane {
            node_id: "up1".into(),
            ..WatchedUserPlane::default()
        };
        let look = meter.take(away);
        assert!(!look.user_planes[0].reached && look.user_planes[0].ports.is_empty());
        assert!(meter.is_complete());
        let back = meter.take(state(3000, 3000, 9));
        assert_eq!(back.user_planes[0].up_octets_per_second, 0.0);
    }
}
