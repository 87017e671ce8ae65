//! RADIUS servers change sessions and end them (RFC 5176), and repeat themselves until they are answered.

use super::scene::server_address;
use super::{Datagram, Event, Phase, World};
use crate::plan::{Link, SERVERS};
use crate::server::{Health, SECRET};
use control::plane::{HeldStage, StoredSession};
use control::topology::Seid;
use control::{ControlPlane, Input};
use core::time::Duration;
use ipnet::IpNet;
use rand::Rng;
use rand::seq::IteratorRandom;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use wire::radius::{Code, Kind, Missing, Packet, Value, verify_response};

/// How often a server repeats a request, and after which time each.
const REPETITIONS: u32 = 4;
const PATIENCE: Duration = Duration::from_secs(3);
/// For so long no server asks about the same session again: by then no datagram is under way any more.
const REST: Duration = Duration::from_secs(30);
/// Port of the servers' requests.
const CLIENT_PORT: u16 = 40_000;

/// Request that is not answered yet.
struct Order {
    seid: Seid,
    bytes: Vec<u8>,
    /// MTU that the session is to have; `None`: its end.
    mtu: Option<u16>,
    left: u32,
}

/// What the servers asked for, and what they were told.
#[derive(Default)]
pub(super) struct Orders {
    identifiers: [u8; SERVERS],
    /// By server and identifier.
    open: BTreeMap<(usize, u8), Order>,
    /// MTUs that were acknowledged; `None` if nobody can say which one the session has.
    mtus: BTreeMap<Seid, Option<u16>>,
    /// When a session was last asked about.
    asked: BTreeMap<Seid, Duration>,
}

impl Orders {
    /// The session authenticates again: its server's answer replaces what was asked for.
    pub fn forget(&mut self, request: &[u8]) {
        let packet = Packet::parse(request).ok();
        let packet = packet.filter(|packet| packet.code == Code::ACCESS_REQUEST);
        let id = packet.and_then(|packet| match packet.get(Kind::ACCT_SESSION_ID) {
            Some(Value::Text(id)) => u64::from_str_radix(id, 16).ok(),
            _ => None,
        });
        if let Some(id) = id {
            self.mtus.insert(Seid(id), None);
        }
    }
}

impl World<'_> {
    /// A server asks for something, and will again.
    pub(super) fn order(&mut self, server: usize) {
        if self.phase != Phase::Storm {
            return;
        }
        let after = Duration::from_millis(self.random.random_range(1_000..15_000));
        self.later(after, Event::Order(server));
        let now = self.now;
        let asked = &self.orders.asked;
        let is_free = |seid: &Seid| asked.get(seid).is_none_or(|at| now - *at > REST);
        let held = self.control.iter().flat_map(ControlPlane::held);
        let online = held.filter(|held| held.stored && held.stage == HeldStage::Online);
        let seids = online.map(|held| held.seid).filter(is_free);
        let Some(seid) = seids.choose(&mut self.random) else {
            return;
        };
        if self.servers[server] == Health::Dead {
            return;
        }
        let identifier = self.orders.identifiers[server].wrapping_add(1);
        self.orders.identifiers[server] = identifier;
        let ends = self.random.random_range(0..8) == 0;
        let mtu = (!ends).then(|| self.random.random_range(1280..1400));
        let code = if ends {
            Code::DISCONNECT_REQUEST
        } else {
            Code::COA_REQUEST
        };
        let mut packet = Packet::new(code, identifier, [0; 16]);
        packet.push(Kind::ACCT_SESSION_ID, seid.to_string().as_str());
        if let Some(mtu) = mtu {
            packet.push(Kind::FRAMED_MTU, u32::from(mtu));
        }
        let secret = match self.servers[server] {
            Health::Wrong => "another",
            _ => SECRET,
        };
        let Ok(bytes) = packet.emit_dynamic_request(secret.as_bytes()) else {
            return;
        };
        let left = REPETITIONS;
        let order = Order {
            seid,
            bytes,
            mtu,
            left,
        };
        self.orders.asked.insert(seid, now);
        self.orders.open.insert((server, identifier), order);
        self.repeat_order(server, identifier);
    }

    /// A request is sent, if it is not answered yet.
    pub(super) fn repeat_order(&mut self, server: usize, identifier: u8) {
        let Some(order) = self.orders.open.get_mut(&(server, identifier)) else {
            return;
        };
        match order.left.checked_sub(1) {
            Some(left) => {
                order.left = left;
                let datagram = Datagram::Dynamic(order.bytes.clone());
                self.send(Link::FromServer(server), datagram);
                self.later(PATIENCE, Event::Repeat(server, identifier));
            }
            None => {
                let seid = order.seid;
                self.orders.open.remove(&(server, identifier));
                self.orders.mtus.insert(seid, None);
            }
        }
    }

    /// A request arrives at the control plane.
    pub(super) fn take_order(&mut self, server: usize, bytes: &[u8]) {
        let from = SocketAddr::new(server_address(&self.plan, server), CLIENT_PORT);
        self.control_input(Input::DynamicAuthorization { from, bytes });
    }

    /// An answer arrives at its server.
    pub(super) fn order_answered(&mut self, server: usize, bytes: &[u8]) {
        let identifier = bytes.get(1).copied().unwrap_or_default();
        let Some(order) = self.orders.open.get(&(server, identifier)) else {
            return; // it was answered before
        };
        let authenticator = order.bytes[4..20].try_into().expect("sixteen octets");
        let secret = SECRET.as_bytes();
        let Ok(packet) = verify_response(bytes, &authenticator, secret, Missing::Refuse) else {
            return self.wrong(format!("server{server} cannot believe an answer"));
        };
        let (seid, mtu) = (order.seid, order.mtu);
        self.orders.open.remove(&(server, identifier));
        match (packet.code, mtu) {
            (Code::COA_ACK, Some(mtu)) => self.mtu_acknowledged(seid, mtu),
            (Code::DISCONNECT_ACK, None) => {
                self.summary.ordered += 1;
                let key = StoredSession::key(seid);
                if self.disk.live.contains_key(&key) {
                    self.wrong(format!(
                        "the end of {seid} is acknowledged, and the store has it"
                    ));
                }
            }
            (Code::COA_NAK, Some(_)) | (Code::DISCONNECT_NAK, None) => {}
            (code, _) => self.wrong(format!("server{server} is answered with {code:?}")),
        }
    }

    fn mtu_acknowledged(&mut self, seid: Seid, mtu: u16) {
        self.summary.ordered += 1;
        let known = self.orders.mtus.entry(seid).or_insert(Some(mtu));
        if known.is_none() {
            return;
        }
        *known = Some(mtu);
        let key = StoredSession::key(seid);
        let value = self.disk.live.get(&key);
        let stored = value.and_then(|value| StoredSession::read(&key, value));
        if let Some(stored) = stored.filter(|stored| stored.mtu != mtu) {
            let has = stored.mtu;
            self.wrong(format!(
                "{seid} was changed to an MTU of {mtu}, and the store has {has}"
            ));
        }
    }

    /// Everything is calm: sessions have what was acknowledged, in both planes.
    pub(crate) fn check_orders(&mut self) {
        let mut found = Vec::new();
        for held in self.control.iter().flat_map(ControlPlane::held) {
            let Some(Some(mtu)) = self.orders.mtus.get(&held.seid) else {
                continue;
            };
            if held.mtu != *mtu {
                let (seid, has) = (held.seid, held.mtu);
                found.push(format!(
                    "{seid} was changed to an MTU of {mtu}, and has {has}"
                ));
            }
            let ipv4 = held.ipv4.map(|address| IpNet::from(IpAddr::V4(address)));
            let nets = ipv4.into_iter().chain(held.ipv6.map(IpNet::from));
            for net in nets {
                let planes = self.planes.iter().flatten();
                let owner = planes.filter_map(|up| up.workers.owner(&net)).next();
                if let Some(entry) = owner.filter(|entry| entry.packets.mtu != Some(*mtu)) {
                    let (seid, has) = (held.seid, entry.packets.mtu);
                    found.push(format!(
                        "{seid} was changed to an MTU of {mtu}, and its user plane has {has:?}"
                    ));
                }
            }
        }
        found.into_iter().for_each(|what| self.wrong(what));
    }
}
