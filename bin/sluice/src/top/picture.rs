//! What is drawn of a look.

use super::meter::{Drop, Look, Port, Queues};
use crate::cli::queues;
use crate::cli::table::{Column, Table};
use crate::cli::units::{bits_per_second, count, octets};
use crate::cli::word;
use std::cmp::Reverse;

/// The fewest rows of a part that does not fit: its heading, a row and what says how many there are more.
const LEAST: usize = 3;
/// The heading and a row, where there is no room for more.
const FIRST_ROW: usize = 2;

/// What comes first in each part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// What has the highest rate.
    #[default]
    Rate,
    /// As they are called.
    Name,
    /// What was counted most often since the start, or is used most.
    Count,
}

impl Order {
    pub fn next(self) -> Self {
        match self {
            Order::Rate => Order::Name,
            Order::Name => Order::Count,
            Order::Count => Order::Rate,
        }
    }

    pub fn previous(self) -> Self {
        self.next().next()
    }

    fn word(self) -> &'static str {
        match self {
            Order::Rate => "by rate",
            Order::Name => "by name",
            Order::Count => "by count",
        }
    }
}

/// A look and how it is to be seen.
pub struct Picture<'l> {
    pub look: &'l Look,
    pub order: Order,
    /// Why there is nothing newer.
    pub failure: Option<&'l str>,
}

impl Picture<'_> {
    /// Everything, as long as it is.
    pub fn page(look: &Look, width: usize) -> Vec<String> {
        let picture = Picture {
            look,
            order: Order::default(),
            failure: None,
        };
        let mut lines = picture.head();
        for part in picture.parts(width) {
            lines.push(String::new());
            lines.extend(part);
        }
        lines
    }

    /// As much as there is room for.
    pub fn screen(&self, width: usize, height: usize) -> Vec<String> {
        let mut lines = vec![format!(
            "sluice top   {}   arrows: another order   q: leave",
            self.order.word()
        )];
        lines.extend(self.head());
        if let Some(failure) = self.failure {
            lines.extend(failure.lines().map(str::to_owned));
        }
        let parts = self.parts(width);
        let room = height.saturating_sub(lines.len() + parts.len());
        let sizes: Vec<usize> = parts.iter().map(Vec::len).collect();
        for (part, room) in parts.into_iter().zip(shares(&sizes, room)) {
            lines.push(String::new());
            lines.extend(cut(part, room));
        }
        lines.truncate(height);
        lines
            .iter()
            .map(|line| line.chars().take(width).collect())
            .collect()
    }

    fn head(&self) -> Vec<String> {
        let s = &self.look.sessions;
        vec![
            format!(
                "sessions   {} online, {} connecting, {} closing",
                s.online, s.connecting, s.closing
            ),
            format!(
                "a second   {} begun, {} online, {} ended",
                s.begun_per_second, s.opened_per_second, s.ended_per_second
            ),
        ]
    }

    fn parts(&self, width: usize) -> Vec<Vec<String>> {
        let tables = [
            self.alarms(),
            self.user_planes(),
            self.ports(),
            self.queues(),
            self.drops(),
            self.pools(),
        ];
        let tables = tables.into_iter().map(|table| table.render(Some(width)));
        tables.filter(|lines| lines.len() > 1).collect()
    }

    fn alarms(&self) -> Table {
        let mut table = Table::new(&[
            Column::words("ALARM", 0),
            Column::words("SEVERITY", 1),
            Column::words("OF", 0),
            Column::words("TEXT", 0),
        ]);
        for alarm in &self.look.alarms {
            table.push([
                alarm.name.clone(),
                word(&[], alarm.severity()),
                alarm.resource.clone(),
                alarm.text.clone(),
            ]);
        }
        table
    }

    fn user_planes(&self) -> Table {
        let mut table = Table::new(&[
            Column::words("USER PLANE", 0),
            Column::words("STATE", 0),
            Column::numbers("SESSIONS", 0),
            Column::numbers("UP", 0),
            Column::numbers("DOWN", 0),
            Column::numbers("WORKER", 4),
            Column::numbers("BUSY", 1),
            Column::numbers("PUNTED/S", 2),
            Column::numbers("INJECTED/S", 3),
        ]);
        for plane in &self.look.user_planes {
            let state = match (plane.associated, plane.reached) {
                (true, true) => "associated",
                (true, false) => "not managed",
                (false, true) => "not associated",
                (false, false) => "away",
            };
            let mut name = [
                plane.name.clone(),
                state.into(),
                plane.sessions.to_string(),
                bits_per_second(plane.up_octets_per_second),
                bits_per_second(plane.down_octets_per_second),
            ];
            let workers = plane.workers.iter().map(|worker| {
                [
                    worker.number.to_string(),
                    format!("{:.0} %", worker.busy_percent),
                    count(worker.punted_per_second as u64),
                    count(worker.injected_per_second as u64),
                ]
            });
            let mut workers: Vec<[String; 4]> = workers.collect();
            if workers.is_empty() {
                workers.push(Default::default());
            }
            for [worker, busy, punted, injected] in workers {
                let [name, state, sessions, up, down] = std::mem::take(&mut name);
                table.push([
                    name, state, sessions, up, down, worker, busy, punted, injected,
                ]);
            }
        }
        table
    }

    fn ports(&self) -> Table {
        let mut table = Table::new(&[
            Column::words("PORT", 0),
            Column::words("ROLE", 3),
            Column::numbers("RX", 0),
            Column::numbers("TX", 0),
            Column::numbers("RX PACKETS/S", 2),
            Column::numbers("TX PACKETS/S", 2),
            Column::numbers("DROPPED/S", 1),
        ]);
        let planes = self.look.user_planes.iter();
        let ports = planes.flat_map(|plane| plane.ports.iter().map(|port| (&plane.name, port)));
        let mut ports: Vec<(&String, &Port)> = ports.collect();
        if self.order != Order::Name {
            let octets = |port: &Port| port.rx_octets_per_second + port.tx_octets_per_second;
            ports.sort_by_key(|(_, port)| Reverse(octets(port) as u64));
        }
        for (plane, port) in ports {
            table.push([
                format!("{plane}/{}", port.name),
                port.role.clone(),
                bits_per_second(port.rx_octets_per_second),
                bits_per_second(port.tx_octets_per_second),
                count(port.rx_packets_per_second as u64),
                count(port.tx_packets_per_second as u64),
                count(port.tx_dropped_per_second as u64),
            ]);
        }
        table
    }

    fn queues(&self) -> Table {
        let mut table = Table::new(&[
            Column::words("QUEUES OF", 0),
            Column::numbers("SENT", 1),
            Column::numbers("USE", 0),
            Column::words("DELAY", 0),
            Column::numbers("QUEUED", 2),
            Column::numbers("DROPPED/S", 0),
            Column::words("LIMITED BY", 0),
        ]);
        let mut all: Vec<&Queues> = self.look.queues.iter().collect();
        match self.order {
            Order::Rate => all.sort_by_key(|q| {
                let used = (q.used_percent * 10.0) as u64;
                Reverse((
                    used,
                    q.aggregate.delay_milliseconds,
                    q.drops_per_second as u64,
                ))
            }),
            Order::Name => all.sort_by_key(|q| q.aggregate.name()),
            Order::Count => all.sort_by_key(|q| Reverse(q.aggregate.drops)),
        }
        for Queues {
            aggregate,
            used_percent,
            drops_per_second,
        } in all
        {
            let used = match aggregate.rate_bits_per_second {
                Some(_) => format!("{used_percent:.0} %"),
                None => String::new(),
            };
            table.push([
                aggregate.name(),
                bits_per_second(aggregate.bits_per_second as f64 / 8.0),
                used,
                queues::delay(aggregate),
                octets(aggregate.waiting_octets),
                count(*drops_per_second as u64),
                queues::limit(aggregate),
            ]);
        }
        table
    }

    fn drops(&self) -> Table {
        let mut table = Table::new(&[
            Column::words("DROPPED", 0),
            Column::words("BY", 1),
            Column::numbers("A SECOND", 0),
            Column::numbers("COUNT", 0),
        ]);
        let mut drops: Vec<&Drop> = self.look.drops.iter().collect();
        match self.order {
            Order::Rate => drops.sort_by_key(|d| Reverse(((d.per_second * 10.0) as u64, d.count))),
            Order::Name => drops.sort_by_key(|d| &d.name),
            Order::Count => drops.sort_by_key(|d| Reverse(d.count)),
        }
        for drop in drops {
            table.push([
                drop.name.clone(),
                drop.plane.clone(),
                drop.per_second.to_string(),
                drop.count.to_string(),
            ]);
        }
        table
    }

    fn pools(&self) -> Table {
        let mut table = Table::new(&[
            Column::words("POOL", 0),
            Column::words("NETWORK INSTANCE", 2),
            Column::words("FAMILY", 1),
            Column::numbers("USED", 0),
            Column::numbers("OF", 0),
            Column::numbers("%", 0),
        ]);
        let share = |used: u64, size: u64| used * 100 / size.max(1);
        let mut pools: Vec<_> = self.look.pools.iter().collect();
        if self.order != Order::Name {
            pools.sort_by_key(|pool| Reverse(share(pool.used, pool.size)));
        }
        for pool in pools {
            table.push([
                pool.name.clone(),
                pool.network_instance.clone(),
                pool.family.clone(),
                pool.used.to_string(),
                pool.size.to_string(),
                share(pool.used, pool.size).to_string(),
            ]);
        }
        table
    }
}

/// How many lines each part gets of what there is: all have a few, and who comes first more.
fn shares(sizes: &[usize], room: usize) -> Vec<usize> {
    let of_each = |least: usize| sizes.iter().map(move |size| least.min(*size));
    let least = match of_each(LEAST).sum::<usize>() > room {
        true => FIRST_ROW,
        false => LEAST,
    };
    let mut shares: Vec<usize> = of_each(least).collect();
    let mut left = room.saturating_sub(shares.iter().sum());
    for (share, size) in shares.iter_mut().zip(sizes) {
        let more = left.min(size - *share);
        *share += more;
        left -= more;
    }
    shares
}

/// The first lines, and how many there are more.
fn cut(mut lines: Vec<String>, room: usize) -> Vec<String> {
    let all = lines.len();
    if room <= FIRST_ROW {
        lines.truncate(room);
    } else if all > room {
        let kept = room.saturating_sub(1);
        lines.truncate(kept);
        lines.push(format!("… {} more", all - kept));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::meter::{Queues, Sessions, UserPlane, Worker};
    use super::*;
    use northbound::{Alarm, AlarmSeverity, PoolUse, QueueAggregate, QueueLimit};

    fn look() -> Look {
        let port = |name: String, role: &str, octets| Port {
            name,
            role: role.into(),
            rx_octets_per_second: octets,
            tx_octets_per_second: octets * 10.0,
            rx_packets_per_second: 12_345.0,
            ..Port::default()
        };
        let plane = |name: &str, ports: usize| UserPlane {
            name: name.into(),
            associated: true,
            reached: true,
            sessions: 131_072,
            sampled: 0,
            up_octets_per_second: 1.25e9,
            down_octets_per_second: 12.5e9,
            ports: (0..ports)
                .map(|n| port(format!("access{n}"), "access", n as f64 * 1e6))
                .collect(),
            workers: vec![Worker {
                number: 0,
                busy_percent: 37.4,
                punted_per_second: 100.0,
                injected_per_second: 90.0,
            }],
        };
        let queues = |vlan, used_percent, drops_per_second| Queues {
            aggregate: QueueAggregate {
                user_plane: "up1".into(),
                port: "access11".into(),
                segment: "olt1".into(),
                s_tag: Some(vlan),
                rate_bits_per_second: Some(10_000_000_000),
                bits_per_second: 9_980_000_000,
                limited_by: QueueLimit::Aggregate.into(),
                delay_milliseconds: Some(20),
                ..QueueAggregate::default()
            },
            used_percent,
            drops_per_second,
        };
        let drop = |name: &str, count, per_second| Drop {
            plane: "up1".into(),
            name: name.into(),
            count,
            per_second,
        };
        Look {
            sessions: Sessions {
                online: 131_000,
                connecting: 60,
                closing: 12,
                opened_per_second: 250.3,
                ..Sessions::default()
            },
            user_planes: vec![plane("up1", 12), plane("up2", 12)],
            queues: vec![queues(100, 40.0, 0.0), queues(101, 99.8, 1234.0)],
            drops: vec![
                drop("no-route", 9000, 1.0),
                drop("bad-checksum", 3, 7.5),
                drop("wrong-mac", 50_000, 0.0),
            ],
            pools: vec![PoolUse {
                name: "main".into(),
                network_instance: "default".into(),
                family: "ipv4".into(),
                used: 131_000,
                size: 262_144,
            }],
            alarms: vec![Alarm {
                name: "user-plane-lost".into(),
                severity: AlarmSeverity::Critical.into(),
                resource: "up3".into(),
                text: "up3 at 192.0.2.3 is not associated".into(),
                ..Alarm::default()
            }],
        }
    }

    fn screen(look: &Look, order: Order, width: usize, height: usize) -> Vec<String> {
        let picture = Picture {
            look,
            order,
            failure: None,
        };
        picture.screen(width, height)
    }

    #[test]
    fn it_fits_every_terminal_and_shows_a_bit_of_everything() {
        let look = look();
        for (width, height) in [(80, 24), (200, 60), (40, 24), (30, 10), (10, 3), (1, 1)] {
            let lines = screen(&look, Order::Rate, width, height);
            assert!(lines.len() <= height, "{width}x{height}");
            assert!(
                lines.iter().all(|line| line.chars().count() <= width),
                "{width}x{height}: {lines:#?}"
            );
        }
        let text = screen(&look, Order::Rate, 80, 24).join("\n");
        for shown in [
            "131000 online, 60 connecting, 12 closing",
            "250.3 online",
            "user-plane-lost  critical  up3  up3 at 192.0.2.3",
            "up1         associated    131072  10.0 Gbit/s  100.0 Gbit/s",
            "37 %",
            "up1/access11",
            "more",
            "up1/access11/olt1.101",
            "100 %",
            "< 20 ms",
            "1.2 k  aggregate",
            "bad-checksum",
            "main",
            "49",
        ] {
            assert!(text.contains(shown), "no `{shown}` in\n{text}");
        }
        let tall = screen(&look, Order::Rate, 80, 60).join("\n");
        assert!(
            tall.contains("up2/access0") && !tall.contains("more"),
            "{tall}"
        );
    }

    #[test]
    fn the_order_says_what_is_seen_first() {
        let look = look();
        let first_drop = |order| {
            let lines = screen(&look, order, 80, 60);
            let heading = lines.iter().position(|line| line.starts_with("DROPPED"));
            lines[heading.unwrap() + 1].clone()
        };
        for (order, name) in [
            (Order::Rate, "bad-checksum"),
            (Order::Name, "bad-checksum"),
            (Order::Count, "wrong-mac"),
        ] {
            let line = first_drop(order);
            assert!(line.starts_with(name), "{order:?}: {line}");
        }
        assert_eq!(Order::Rate.next().previous(), Order::Rate);
    }

    #[test]
    fn nothing_to_see_is_shown_plainly() {
        let page = Picture::page(&Look::default(), 80);
        assert_eq!(
            page,
            [
                "sessions   0 online, 0 connecting, 0 closing",
                "a second   0 begun, 0 online, 0 ended"
            ]
        );
    }
}
