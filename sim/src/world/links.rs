//! Links between the parts: they delay, lose and repeat datagrams.

use super::liars::LIES;
use super::scene::gifts;
use super::scene::{control_address, impostor_address, plane_address, plane_name};
use super::stops::Waiting;
use super::{Datagram, Event, Phase, Radius, World};
use crate::describe;
use crate::plan::{Link, Part, Plan};
use crate::server::{self, Health};
use crate::user_plane::gtpu_at;
use control::Input;
use core::time::Duration;
use rand::Rng;
use std::net::SocketAddr;
use wire::gtpu;
use wire::pfcp::{AssociationSetupRequest, NodeId, Packet};
use wire::radius::{self, Code, Kind, Value};

impl World<'_> {
    pub(super) fn send(&mut self, link: Link, datagram: Datagram) {
        self.summary.datagrams += 1;
        if self.plan.has_strangers() {
            self.recorded.add(link, &datagram);
        }
        let says = match &datagram {
            _ if self.log.is_none() => String::new(),
            Datagram::Pfcp(bytes) => describe::pfcp(bytes),
            Datagram::Gtpu(bytes) => describe::gtpu(bytes),
            Datagram::Radius(radius) => describe::radius(&radius.bytes),
            Datagram::Dynamic(bytes) => describe::radius(bytes),
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
        let cut = self.cuts.get(&link).is_some_and(|cuts| *cuts > 0);
        if chance(loss) || cut {
            return self.say(|| format!("{link:?} {says} (lost)"));
        }
        let copies = 1 + u32::from(chance(twice));
        for _ in 0..copies {
            let mut micros = self.random.random_range(delay / 2..=delay * 2);
            if lossy && late > 0 && self.random.random_range(0..1000) < late {
                micros += self.random.random_range(0..4_000_000);
            }
            self.later(
                Duration::from_micros(micros),
                Event::Arrival(link, datagram.clone()),
            );
        }
        self.say(|| {
            format!(
                "{link:?} {says}{}",
                if copies > 1 { " (twice)" } else { "" }
            )
        });
    }

    pub(super) fn arrive(&mut self, link: Link, datagram: Datagram) {
        let to = match link {
            Link::ToUserPlane(n) => Some(Part::UserPlane(n)),
            Link::Stranger {
                plane,
                to_control: false,
                ..
            } => Some(Part::UserPlane(plane)),
            Link::FromUserPlane(_)
            | Link::FromImpostor(_)
            | Link::FromLiar(_)
            | Link::Stranger { .. }
            | Link::FromServer(_) => Some(Part::Control),
            Link::ToServer(_) => None,
        };
        if let Some(part) = to.filter(|part| self.is_stopped(*part)) {
            return self.keep_waiting(part, Waiting::Datagram(link, datagram));
        }
        match (link, datagram) {
            (Link::ToUserPlane(n), datagram) => {
                let moment = self.moment(Part::UserPlane(n));
                let Some(up) = &mut self.planes[n] else {
                    return;
                };
                let from = control_address(self.plan.over_ipv6);
                match datagram {
                    Datagram::Pfcp(bytes) => {
                        up.on_pfcp(moment, SocketAddr::new(from, wire::pfcp::PORT), &bytes)
                    }
                    Datagram::Gtpu(bytes) => up.on_gtpu(moment, gtpu_at(from), &bytes),
                    Datagram::Radius(..) | Datagram::Dynamic(_) => {}
                }
                self.drain_user_plane(n);
            }
            (Link::FromUserPlane(n), Datagram::Pfcp(bytes)) => {
                let from = SocketAddr::new(plane_address(n, self.plan.over_ipv6), wire::pfcp::PORT);
                self.control_input(Input::Pfcp {
                    from,
                    bytes: &bytes,
                });
            }
            (Link::FromUserPlane(n), Datagram::Gtpu(bytes)) => {
                let from = SocketAddr::new(plane_address(n, self.plan.over_ipv6), gtpu::PORT);
                self.control_input(Input::Gtpu {
                    from,
                    bytes: &bytes,
                });
            }
            (Link::FromLiar(n), Datagram::Pfcp(bytes)) => {
                let from = SocketAddr::new(plane_address(n, self.plan.over_ipv6), LIES);
                self.control_input(Input::Pfcp {
                    from,
                    bytes: &bytes,
                });
            }
            (
                Link::Stranger {
                    plane,
                    to_control,
                    forged,
                },
                Datagram::Pfcp(bytes),
            ) => {
                let over_ipv6 = self.plan.over_ipv6;
                let address = match (forged, to_control) {
                    (false, _) => impostor_address(plane, over_ipv6),
                    (true, true) => plane_address(plane, over_ipv6),
                    (true, false) => control_address(over_ipv6),
                };
                let from = SocketAddr::new(address, wire::pfcp::PORT);
                if to_control {
                    let bytes = &*bytes;
                    return self.control_input(Input::Pfcp { from, bytes });
                }
                let moment = self.moment(Part::UserPlane(plane));
                if let Some(up) = &mut self.planes[plane] {
                    up.on_pfcp(moment, from, &bytes);
                    self.drain_user_plane(plane);
                }
            }
            (Link::FromImpostor(n), Datagram::Pfcp(bytes)) => {
                let from = impostor_address(n, self.plan.over_ipv6);
                let from = SocketAddr::new(from, wire::pfcp::PORT);
                self.control_input(Input::Pfcp {
                    from,
                    bytes: &bytes,
                });
            }
            (Link::ToServer(n), Datagram::Radius(request)) => self.serve(n, *request),
            (Link::ToServer(n), Datagram::Dynamic(bytes)) => self.order_answered(n, &bytes),
            (Link::FromServer(n), Datagram::Dynamic(bytes)) => self.take_order(n, &bytes),
            (Link::FromServer(_), Datagram::Radius(reply)) => {
                self.control_input(Input::Radius {
                    socket: reply.socket,
                    from: reply.server,
                    bytes: &reply.bytes,
                });
            }
            _ => {}
        }
    }

    /// Somebody wants an association under the name of a user plane, as if it had just started.
    pub(super) fn claim(&mut self, plane: usize, more: u32) {
        let request = AssociationSetupRequest {
            node_id: NodeId::Fqdn(plane_name(plane)),
            recovery_time_stamp: self.random.random(),
            ..Default::default()
        };
        let mut bytes = Vec::new();
        let packet = Packet::node(self.random.random_range(0..1 << 24), request);
        if packet.emit(&mut bytes).is_ok() {
            self.send(Link::FromImpostor(plane), Datagram::Pfcp(bytes));
        }
        if let Some(more) = more.checked_sub(1) {
            let after = Duration::from_millis(self.random.random_range(100..5_000));
            self.later(after, Event::Claim(plane, more));
        }
    }

    /// A home with an address of its own is accepted.
    fn note_accept(&mut self, request: &[u8], reply: &[u8]) {
        let is_accept = reply.first() == Some(&Code::ACCESS_ACCEPT.0);
        let request = radius::Packet::parse(request).ok().filter(|_| is_accept);
        let user = request
            .as_ref()
            .and_then(|packet| packet.get(Kind::USER_NAME));
        let user = user.and_then(Value::octets).unwrap_or_default();
        let number = str::from_utf8(user)
            .ok()
            .and_then(|user| user.strip_prefix("home"));
        if let Some(Ok(home)) = number.map(str::parse) {
            self.checks.accept(self.now, home);
        }
    }

    pub(super) fn serve(&mut self, server: usize, request: Radius) {
        let health = self.servers[server];
        if health == Health::Dead {
            return;
        }
        let Radius { socket, bytes, .. } = &request;
        self.orders.forget(bytes);
        match server::serve(
            self.now,
            (server, request.server.port(), *socket),
            health,
            &mut self.radius,
            &gifts,
            bytes,
        ) {
            Ok(bytes) => {
                self.note_accept(&request.bytes, &bytes);
                let reply = Radius { bytes, ..request };
                self.send(Link::FromServer(server), Datagram::Radius(reply.into()));
            }
            Err(why) => self.wrong(why),
        }
    }
}
