//! Datagrams on their ways between the parts.

use super::scene::gifts;
use super::scene::{control_address, plane_address};
use super::{Datagram, Event, Phase, World};
use crate::describe;
use crate::plan::{Plan, Way};
use crate::server::{self, Health};
use crate::user_plane::gtpu_at;
use control::Input;
use core::time::Duration;
use rand::Rng;
use std::net::SocketAddr;
use wire::gtpu;

impl World<'_> {
    pub(super) fn send(&mut self, way: Way, datagram: Datagram) {
        self.summary.datagrams += 1;
        let says = match &datagram {
            _ if self.log.is_none() => String::new(),
            Datagram::Pfcp(bytes) => describe::pfcp(bytes),
            Datagram::Gtpu(bytes) => describe::gtpu(bytes),
            Datagram::Radius(_, _, bytes) => describe::radius(bytes),
        };
        let Plan {
            loss,
            twice,
            late,
            delay,
            ..
        } = self.plan;
        let lossy = self.phase == Phase::Storm;
        let mut chance = |of: u32| lossy && of > 0 && self.random.random_range(0..1000) < of;
        let cut = self.cuts.get(&way).is_some_and(|cuts| *cuts > 0);
        if chance(loss) || cut {
            return self.say(|| format!("{way:?} {says} (lost)"));
        }
        let copies = 1 + u32::from(chance(twice));
        for _ in 0..copies {
            let mut micros = self.random.random_range(delay / 2..=delay * 2);
            if lossy && late > 0 && self.random.random_range(0..1000) < late {
                micros += self.random.random_range(0..4_000_000);
            }
            self.later(
                Duration::from_micros(micros),
                Event::Arrival(way, datagram.clone()),
            );
        }
        self.say(|| format!("{way:?} {says}{}", if copies > 1 { " (twice)" } else { "" }));
    }

    pub(super) fn arrive(&mut self, way: Way, datagram: Datagram) {
        let moment = self.moment();
        match (way, datagram) {
            (Way::ToUserPlane(n), datagram) => {
                let Some(up) = &mut self.planes[n] else {
                    return;
                };
                let from = control_address(self.plan.over_ipv6);
                match datagram {
                    Datagram::Pfcp(bytes) => {
                        up.on_pfcp(moment, SocketAddr::new(from, wire::pfcp::PORT), &bytes)
                    }
                    Datagram::Gtpu(bytes) => up.on_gtpu(gtpu_at(from), &bytes),
                    Datagram::Radius(..) => {}
                }
                self.drain_user_plane(n);
            }
            (Way::FromUserPlane(n), Datagram::Pfcp(bytes)) => {
                let from = SocketAddr::new(plane_address(n, self.plan.over_ipv6), wire::pfcp::PORT);
                self.control_input(Input::Pfcp {
                    from,
                    bytes: &bytes,
                });
            }
            (Way::FromUserPlane(n), Datagram::Gtpu(bytes)) => {
                let from = SocketAddr::new(plane_address(n, self.plan.over_ipv6), gtpu::PORT);
                self.control_input(Input::Gtpu {
                    from,
                    bytes: &bytes,
                });
            }
            (Way::ToServer(n), Datagram::Radius(socket, at, bytes)) => {
                self.serve(n, socket, at, &bytes)
            }
            (Way::FromServer(_), Datagram::Radius(socket, from, bytes)) => {
                self.control_input(Input::Radius {
                    socket,
                    from,
                    bytes: &bytes,
                });
            }
            _ => {}
        }
    }

    pub(super) fn serve(&mut self, server: usize, socket: u16, at: SocketAddr, bytes: &[u8]) {
        let health = self.servers[server];
        if health == Health::Dead {
            return;
        }
        match server::serve(
            self.now,
            (server, socket),
            health,
            &mut self.books,
            &gifts,
            bytes,
        ) {
            Ok(Some(reply)) => {
                self.send(Way::FromServer(server), Datagram::Radius(socket, at, reply))
            }
            Ok(None) => {}
            Err(why) => self.wrong(why),
        }
    }
}
