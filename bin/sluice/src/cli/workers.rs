//! `sluice show workers`: what the threads that forward packets did since their start, as their user planes told last.
use super::ask::{Failure, Sockets};
use super::show::{Answer, terminal_width};
use super::table::{Column, Table};
use super::units::{count, duration};
use northbound::{WatchStateResponse, Worker};
use serde::Serialize;
use std::time::Duration;

/// The first state comes at once, whatever the time to the next.
const INTERVAL: Duration = Duration::from_secs(60);

/// A worker of a user plane.
#[derive(Debug, Serialize)]
struct Row {
    user_plane: String,
    #[serde(flatten)]
    counters: Worker,
}

/// `sluice show workers [USER-PLANE]`.
pub fn show(sockets: &Sockets, of: Option<&str>, json: bool) -> Result<Answer, Failure> {
    let state = sockets.watch(INTERVAL)?.next()?;
    let (workers, silent) = told(state, of);
    if workers.is_empty() && silent.is_empty() {
        return Err(Failure::Other(match of {
            Some(name) => {
                format!("there is no user plane {name}: `sluice show user-planes` has their names")
            }
            None => "there is no user plane".into(),
        }));
    }
    let mut answer = match json {
        true => Answer::json(&workers)?,
        false => Answer::table(table(&workers).render(terminal_width())),
    };
    if !silent.is_empty() {
        answer.failure = Some(Failure::Other(silent.join("\n")));
    }
    Ok(answer)
}

/// The workers of all user planes or of one, and what is missing.
fn told(state: WatchStateResponse, of: Option<&str>) -> (Vec<Row>, Vec<String>) {
    let (mut workers, mut silent) = (Vec::new(), Vec::new());
    let wanted =
        (state.user_planes.into_iter()).filter(|plane| of.is_none_or(|of| of == plane.node_id));
    for plane in wanted {
        if !plane.reached {
            silent.push(format!(
                "user plane {} does not answer: its management interface cannot be reached",
                plane.node_id
            ));
        }
        workers.extend(plane.workers.into_iter().map(|counters| Row {
            user_plane: plane.node_id.clone(),
            counters,
        }));
    }
    (workers, silent)
}

fn table(workers: &[Row]) -> Table {
    let mut table = Table::new(&[
        Column::words("USER PLANE", 0),
        Column::numbers("WORKER", 0),
        Column::numbers("BUSY", 0),
        Column::numbers("CYCLES", 2),
        Column::numbers("BURSTS", 0),
        Column::numbers("RX", 0),
        Column::numbers("TX", 0),
        Column::numbers("GIVEN", 0),
        Column::numbers("TAKEN", 0),
        Column::numbers("PUNTED", 1),
        Column::numbers("INJECTED", 1),
    ]);
    for Row {
        user_plane,
        counters,
    } in workers
    {
        table.push([
            user_plane.clone(),
            counters.number.to_string(),
            duration(counters.busy_nanoseconds / 1_000_000_000),
            count(counters.busy_cycles),
            count(counters.bursts),
            count(counters.rx_packets),
            count(counters.tx_packets),
            count(counters.handed_over),
            count(counters.taken_over),
            count(counters.punted),
            count(counters.injected),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use northbound::WatchedUserPlane;

    fn state() -> WatchStateResponse {
        let worker = |number| Worker {
            number,
            busy_nanoseconds: 3_700_000_000_000,
            busy_cycles: u64::MAX,
            bursts: 123_456_789_012,
            rx_packets: 7_890_123_456_789,
            tx_packets: 17,
            handed_over: 5,
            taken_over: 6,
            ..Worker::default()
        };
        let plane = |name: &str, reached| WatchedUserPlane {
            node_id: name.into(),
            reached,
            workers: if reached {
                vec![worker(0), worker(1)]
            } else {
                vec![]
            },
            ..WatchedUserPlane::default()
        };
        WatchStateResponse {
            user_planes: vec![plane("up1", true), plane("up2", false)],
            ..WatchStateResponse::default()
        }
    }

    #[test]
    fn each_worker_has_a_line_and_who_is_silent_is_named() {
        let (workers, silent) = told(state(), None);
        assert_eq!(workers.len(), 2);
        assert!(silent[0].contains("up2"), "{silent:?}");
        let lines = table(&workers).render(Some(80));
        assert!(
            lines.iter().all(|line| line.chars().count() <= 80),
            "{lines:#?}"
        );
        for word in ["up1", "1h 01m", "17", "5", "6"] {
            assert!(lines[1].contains(word), "{word}: {lines:#?}");
        }
        let (of_one, silent) = told(state(), Some("up1"));
        assert_eq!((of_one.len(), silent.len()), (2, 0));
        assert_eq!(told(state(), Some("up3")).0.len(), 0);
        let json = serde_json::to_value(&workers[1]).unwrap();
        assert_eq!(json["user_plane"], "up1");
        assert_eq!(json["handed_over"], 5);
    }
}
