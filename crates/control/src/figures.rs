//! Figures of the gateway for the history: what the overview says, each ten seconds. Counters become rates.

use crate::configuration::ToPlane;
use crate::history::{SAMPLE, Sample, Series};
use northbound::{
    LiveCall, LiveRequest, LiveResponse, QueueAggregate, WatchStateResponse, WatchedUserPlane,
};
use std::collections::HashMap;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{MissedTickBehavior, interval};

/// Maximum number of series. What is beyond is left out, and told once.
const MOST_SERIES: usize = 1_024;
const HOUR: f64 = 3_600.0;

/// Takes a sample each ten seconds, until the control plane ends.
pub(crate) async fn run(
    live: mpsc::Sender<LiveCall>,
    plane: mpsc::Sender<ToPlane>,
    unix: fn() -> u32,
) {
    let mut turns = interval(Duration::from_secs(SAMPLE.into()));
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut meter = Meter::default();
    loop {
        turns.tick().await;
        let (reply, answer) = oneshot::channel();
        if live.send((LiveRequest::GetState, reply)).await.is_err() {
            return;
        }
        let Ok(Ok(LiveResponse::State(state))) = answer.await else {
            return;
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
        let at = state.at_milliseconds;
        if let Some(sessions) = &state.sessions {
            self.gauge("online", String::new(), sessions.online as f64);
            for (name, count) in [
                ("attempts", sessions.begun),
                ("set-ups", sessions.opened),
                ("ends", sessions.ended),
            ] {
                self.rate(name, String::new(), at, count, HOUR);
            }
        }
        let drops = |drops: &[northbound::DropCounter]| drops.iter().map(|drop| drop.count).sum();
        self.rate("drops", String::new(), at, drops(&state.drops), 1.0);
        for plane in state.user_planes.iter().filter(|plane| plane.reached) {
            self.read_user_plane(plane);
            let (name, at) = (plane.node_id.clone(), plane.at_milliseconds);
            self.rate("drops", name, at, drops(&plane.drops), 1.0);
        }
        for name in ["up", "down"] {
            let of_planes = self.values.iter().filter(|(series, _)| series.name == name);
            let all = of_planes.map(|(_, value)| value).sum();
            self.gauge(name, String::new(), all);
        }
        for pool in &state.pools {
            let resource = format!("{} {}", pool.name, pool.family);
            self.gauge("pool-used", resource, pool.used as f64);
        }
        let mut values = std::mem::take(&mut self.values);
        if values.len() > MOST_SERIES {
            if !std::mem::replace(&mut self.is_full, true) {
                tracing::warn!(
                    series = values.len(),
                    most = MOST_SERIES,
                    "some figures of the gateway are not kept"
                );
            }
            values.truncate(MOST_SERIES);
        }
        values
    }

    fn read_user_plane(&mut self, plane: &WatchedUserPlane) {
        let (name, at) = (&plane.node_id, plane.at_milliseconds);
        let (mut up, mut down) = (0, 0);
        self.gauge("sessions", name.clone(), plane.sessions as f64);
        for port in &plane.ports {
            let of = format!("{name}/{}", port.name);
            self.rate("received", of.clone(), at, port.rx_octets, 8.0);
            self.rate("sent", of, at, port.tx_octets, 8.0);
            // subscribers are behind access ports: what comes in there goes up
            if port.role == "access" {
                up += port.rx_octets;
                down += port.tx_octets;
            }
        }
        self.rate("up", name.clone(), at, up, 8.0);
        self.rate("down", name.clone(), at, down, 8.0);
        for aggregate in &plane.queue_aggregates {
            self.rate("queue", place(name, aggregate), at, aggregate.octets, 8.0);
        }
    }

    fn gauge(&mut self, name: &'static str, resource: String, value: f64) {
        self.values.push((Series { name, resource }, value));
    }

    /// A rate in `scale` a second. There is none before the second reading, and where a counter began anew.
    fn rate(&mut self, name: &'static str, resource: String, at: u64, count: u64, scale: f64) {
        let series = Series { name, resource };
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
    use northbound::{DropCounter, SessionCounts, WatchedPort};

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
            .find(|(series, _)| series.name == name && series.resource == resource);
        found.map(|(_, value)| *value)
    }

    #[test]
    fn counters_become_rates_with_the_second_reading_and_begin_anew_after_a_restart() {
        let mut meter = Meter::default();
        let first = meter.read(&state(100, 1000, 5));
        assert_eq!(value(&first, "online", ""), Some(70.0));
        assert_eq!(value(&first, "set-ups", ""), None);
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
