//! Figures of the gateway for the history: what the overview says, each ten seconds. Counters become rates.

use crate::configuration::ToPlane;
use crate::history::{Measure, SAMPLE, Sample, Series};
use northbound::{
    DropCounter, LiveCall, LiveRequest, LiveResponse, QueueAggregate, WatchStateResponse,
    WatchedUserPlane,
};
use std::collections::HashMap;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{MissedTickBehavior, interval};

/// Maximum number of series. What is beyond is left out, and told once.
const MOST_SERIES: usize = 1_024;
const HOUR: f64 = 3_600.0;
const BITS: f64 = 8.0;

const fn measure(name: &'static str, unit: &'static str) -> Measure {
    Measure { name, unit }
}

const ONLINE: Measure = measure("online", "sessions");
const ATTEMPTS: Measure = measure("attempts", "sessions an hour");
const SET_UPS: Measure = measure("set-ups", "sessions an hour");
const ENDS: Measure = measure("ends", "sessions an hour");
const SESSIONS: Measure = measure("sessions", "sessions");
const UP: Measure = measure("up", "bits a second");
const DOWN: Measure = measure("down", "bits a second");
const RECEIVED: Measure = measure("received", "bits a second");
const SENT: Measure = measure("sent", "bits a second");
const QUEUE: Measure = measure("queue", "bits a second");
const DROPS: Measure = measure("drops", "packets a second");
const POOL_USED: Measure = measure("pool-used", "addresses or prefixes");

/// Takes a sample each ten seconds, until the control plane ends.
pub(crate) async fn run(
    live: mpsc::Sender<LiveCall>,
    plane: mpsc::Sender<ToPlane>,
    unix: fn() -> u32,
) {
    let mut turns = interval(Duration::from_secs(SAMPLE.into()));
    turns.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut meter = Meter::default();
    loop {
        turns.tick().await;
        let (reply, answer) = oneshot::channel();
        if live.send((LiveRequest::GetState, reply)).await.is_err() {
            return;
        }
        let Ok(Ok(LiveResponse::State(state))) = answer.await else {
            continue; // a gap
        };
        let values = meter.read(&state);
        let sample = Sample {
            unix: unix() / SAMPLE * SAMPLE,
            values,
        };
        if plane.send(ToPlane::Figures(sample)).await.is_err() {
            return;
        }
    }
}

/// Makes rates of counters.
#[derive(Debug, Default)]
struct Meter {
    /// Time in milliseconds and counters of the last reading.
    before: HashMap<Series, (u64, u64)>,
    now: HashMap<Series, (u64, u64)>,
    values: Vec<(Series, f64)>,
    is_full: bool,
}

impl Meter {
    fn read(&mut self, state: &WatchStateResponse) -> Vec<(Series, f64)> {
        self.before = std::mem::take(&mut self.now);
        self.read_gateway(state);
        let reached = || state.user_planes.iter().filter(|plane| plane.reached);
        reached().for_each(|plane| self.read_user_plane(plane));
        for measure in [UP, DOWN] {
            let of_planes = self.values.iter().filter(|(s, _)| s.measure == measure);
            let of_planes: Vec<f64> = of_planes.map(|(_, value)| *value).collect();
            if !of_planes.is_empty() {
                self.gauge(measure, String::new(), of_planes.iter().sum());
            }
        }
        // what there may be most of comes last
        reached().for_each(|plane| self.read_queues(plane));
        self.taken()
    }

    /// What was read, as far as it is kept.
    fn taken(&mut self) -> Vec<(Series, f64)> {
        let mut values = std::mem::take(&mut self.values);
        let series = values.len();
        if series > MOST_SERIES && !std::mem::replace(&mut self.is_full, true) {
            let most = MOST_SERIES;
            tracing::warn!(series, most, "some figures of the gateway are not kept");
        }
        values.truncate(MOST_SERIES);
        values
    }

    fn read_gateway(&mut self, state: &WatchStateResponse) {
        let at = state.at_milliseconds;
        if let Some(sessions) = &state.sessions {
            self.gauge(ONLINE, String::new(), sessions.online as f64);
            for (measure, count) in [
                (ATTEMPTS, sessions.begun),
                (SET_UPS, sessions.opened),
                (ENDS, sessions.ended),
            ] {
                self.rate(measure, String::new(), at, count, HOUR);
            }
        }
        self.rate(DROPS, String::new(), at, total(&state.drops), 1.0);
        for pool in &state.pools {
            let resource = format!("{} {}", pool.name, pool.family);
            self.gauge(POOL_USED, resource, pool.used as f64);
        }
    }

    fn read_user_plane(&mut self, plane: &WatchedUserPlane) {
        let (name, at) = (&plane.node_id, plane.at_milliseconds);
        let (mut up, mut down) = (0, 0);
        self.gauge(SESSIONS, name.clone(), plane.sessions as f64);
        self.rate(DROPS, name.clone(), at, total(&plane.drops), 1.0);
        for port in &plane.ports {
            let of = format!("{name}/{}", port.name);
            self.rate(RECEIVED, of.clone(), at, port.rx_octets, BITS);
            self.rate(SENT, of, at, port.tx_octets, BITS);
            // subscribers are behind access ports: what comes in there goes up
            if port.role == "access" {
                up += port.rx_octets;
                down += port.tx_octets;
            }
        }
        self.rate(UP, name.clone(), at, up, BITS);
        self.rate(DOWN, name.clone(), at, down, BITS);
    }

    fn read_queues(&mut self, plane: &WatchedUserPlane) {
        for aggregate in &plane.queue_aggregates {
            let place = place(&plane.node_id, aggregate);
            self.rate(QUEUE, place, plane.at_milliseconds, aggregate.octets, BITS);
        }
    }

    fn gauge(&mut self, measure: Measure, resource: String, value: f64) {
        self.values.push((Series { measure, resource }, value));
    }

    /// A rate in `scale` a second. There is none before the second reading, and where a counter began anew.
    fn rate(&mut self, measure: Measure, resource: String, at: u64, count: u64, scale: f64) {
        let series = Series { measure, resource };
        if let Some((then, before)) = self.before.get(&series)
            && at > *then
            && count >= *before
        {
            let seconds = (at - then) as f64 / 1000.0;
            let value = (count - before) as f64 * scale / seconds;
            self.values.push((series.clone(), value));
        }
        self.now.insert(series, (at, count));
    }
}

fn total(drops: &[DropCounter]) -> u64 {
    drops.iter().map(|drop| drop.count).sum()
}

/// `up1/access0`, `up1/access0/olt`, `up1/access0/olt.100`.
fn place(user_plane: &str, aggregate: &QueueAggregate) -> String {
    let mut place = format!("{user_plane}/{}", aggregate.port);
    if !aggregate.segment.is_empty() {
        place = format!("{place}/{}", aggregate.segment);
    }
    match aggregate.s_tag {
        Some(tag) => format!("{place}.{tag}"),
        None => place,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use northbound::{SessionCounts, WatchedPort};

    fn state(seconds: u64, octets: u64, opened: u64) -> WatchStateResponse {
        let port = |name: &str, role: &str| WatchedPort {
            name: name.into(),
            role: role.into(),
            rx_octets: octets,
            tx_octets: 3 * octets,
            ..WatchedPort::default()
        };
        let plane = WatchedUserPlane {
            node_id: "up1".into(),
            reached: true,
            at_milliseconds: seconds * 1000,
            ports: vec![port("access0", "access"), port("core0", "core")],
            drops: vec![DropCounter {
                count: octets,
                ..DropCounter::default()
            }],
            queue_aggregates: vec![QueueAggregate {
                port: "access0".into(),
                segment: "olt".into(),
                s_tag: Some(100),
                octets,
                ..QueueAggregate::default()
            }],
            ..WatchedUserPlane::default()
        };
        WatchStateResponse {
            at_milliseconds: seconds * 1000,
            sessions: Some(SessionCounts {
                online: 70,
                opened,
                ..SessionCounts::default()
            }),
            user_planes: vec![plane],
            ..WatchStateResponse::default()
        }
    }

    fn value(values: &[(Series, f64)], name: &str, resource: &str) -> Option<f64> {
        let found = values
            .iter()
            .find(|(series, _)| series.measure.name == name && series.resource == resource);
        found.map(|(_, value)| *value)
    }

    #[test]
    fn counters_become_rates_with_the_second_reading_and_begin_anew_after_a_restart() {
        let mut meter = Meter::default();
        let first = meter.read(&state(100, 1000, 5));
        assert_eq!(value(&first, "online", ""), Some(70.0));
        for (name, resource) in [("set-ups", ""), ("up", ""), ("up", "up1")] {
            assert_eq!(value(&first, name, resource), None, "{name} {resource}");
        }
        let second = meter.read(&state(110, 6000, 6));
        for (name, resource, expected) in [
            ("set-ups", "", 360.0),
            ("up", "up1", 4000.0),
            ("down", "up1", 12_000.0),
            ("up", "", 4000.0),
            ("received", "up1/core0", 4000.0),
            ("sent", "up1/access0", 12_000.0),
            ("queue", "up1/access0/olt.100", 4000.0),
            ("drops", "up1", 500.0),
        ] {
            assert_eq!(
                value(&second, name, resource),
                Some(expected),
                "{name} {resource}"
            );
        }
        let restarted = meter.read(&state(120, 10, 7));
        assert_eq!(value(&restarted, "up", "up1"), None);
        assert_eq!(value(&restarted, "set-ups", ""), Some(360.0));
        let silent = meter.read(&state(120, 10, 7));
        assert_eq!(
            value(&silent, "sent", "up1/access0"),
            None,
            "nothing new was told"
        );
    }
}
