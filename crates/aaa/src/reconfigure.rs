//! Changes the servers of a client that has open requests.

use core::time::Duration;

use crate::accounting::AccountingServer;
use crate::authentication::Peer;
use crate::streams::Role;
use crate::{Client, ClientConfig, ServerConfig};

/// Whether both are the same server with the same secret. Only then can it answer an earlier request.
fn is_same(one: &ServerConfig, other: &ServerConfig) -> bool {
    let is_same = one.address == other.address && one.transport == other.transport;
    is_same && one.secret.matches(other.secret.expose())
}

/// Position of each old server among the new ones.
fn places(old: &[&ServerConfig], new: &[ServerConfig]) -> Vec<Option<usize>> {
    let place = |one: &&ServerConfig| new.iter().position(|other| is_same(one, other));
    old.iter().map(place).collect()
}

fn moved(asked: &[usize], places: &[Option<usize>]) -> Vec<usize> {
    asked.iter().filter_map(|server| places[*server]).collect()
}

impl Client {
    /// Applies a changed configuration, except its limits. Open requests of a removed server go to the next server. Without a
    /// server, accounting records wait for one; a new server gets what no server has answered before it.
    pub fn reconfigure(&mut self, now: Duration, config: ClientConfig) {
        self.nas = config.nas;
        self.mappings = config.mappings;
        self.not_enforced = config.not_enforced;
        self.family_counters = config.family_counters;
        self.selection = config.selection;
        self.change_authentication(now, config.authentication);
        self.change_accounting(now, config.accounting);
        self.settle_probes(now);
    }

    fn change_authentication(&mut self, now: Duration, servers: Vec<ServerConfig>) {
        let old: Vec<&ServerConfig> = self.peers.iter().map(|p| &p.server.config).collect();
        let places = places(&old, &servers);
        let sockets = self.max_sockets;
        let mut old: Vec<Option<Peer>> = self.peers.drain(..).map(Some).collect();
        let mut kept = |new: usize| {
            let place = places.iter().position(|place| *place == Some(new))?;
            old[place].take()
        };
        let servers = servers.into_iter().enumerate();
        self.peers = servers
            .map(|(place, config)| match kept(place) {
                Some(mut peer) => {
                    peer.server.config = config;
                    peer
                }
                None => Peer::new(config, sockets),
            })
            .collect();
        let mut again = Vec::new();
        for mut gone in old.into_iter().flatten() {
            let role = Role::Authentication;
            gone.server.close_connections(role, &mut self.output);
            again.extend(gone.waiting.iter().map(|(_, key)| *key));
        }
        for (key, open) in &mut self.requests {
            if let Some(present) = open.slot.and(open.asked.last())
                && places[*present].is_none()
            {
                self.deadlines.remove(&(open.deadline, key));
                open.slot = None;
                again.push(key);
            }
            open.asked = moved(&open.asked, &places);
        }
        for key in again {
            self.ask_next(now, key);
        }
    }

    fn change_accounting(&mut self, now: Duration, servers: Vec<ServerConfig>) {
        let accounting = &mut self.accounting;
        let old: Vec<&ServerConfig> = accounting.servers().map(|s| &s.config).collect();
        let places = places(&old, &servers);
        let mut old: Vec<Option<AccountingServer>> =
            accounting.servers.drain(..).map(Some).collect();
        let mut kept = |new: usize| {
            let place = places.iter().position(|place| *place == Some(new))?;
            old[place].take()
        };
        let servers = servers.into_iter().enumerate();
        accounting.servers = servers
            .map(|(place, config)| match kept(place) {
                Some(mut kept) => {
                    kept.server.config = config;
                    kept
                }
                None => AccountingServer::new(config),
            })
            .collect();
        let is_kept = |place| places.contains(&Some(place));
        if !(0..accounting.servers.len()).all(is_kept) {
            accounting.hasten(now, &mut self.random);
        }
        let mut again = Vec::new();
        for mut gone in old.into_iter().flatten() {
            let role = Role::Accounting;
            gone.server.close_connections(role, &mut self.output);
            again.extend(gone.waiting.iter().map(|(_, key)| *key));
            if let Some(slot) = gone.server.probe.end() {
                accounting.slots.free(slot);
            }
        }
        for (key, offer) in &mut accounting.offers {
            if let Some(present) = offer.at
                && places[present].is_none()
            {
                accounting.deadlines.remove(&(offer.deadline, key));
                again.push(key);
            }
            offer.at = offer.at.and_then(|present| places[present]);
            offer.asked = moved(&offer.asked, &places);
        }
        for key in again {
            self.offer_next(now, key);
        }
    }
}
