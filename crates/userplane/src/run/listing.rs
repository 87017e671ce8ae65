//! Answers of the management interface about the forwarding tables, page by page.

use std::collections::HashMap;
use std::net::IpAddr;

use ipnet::IpNet;
use mi::{ListNeighboursResponse, ListRoutesResponse};
use northbound::{Neighbour, NeighbourState, NextHop, PAGE, Route, RouteKind};
use wire::eth::MacAddr;

use super::{Instance, UserPlane};
use crate::fib::{ShownHop, ShownNeighbour, ShownRoute, Target};

/// Names of core ports and subinterfaces, by the link index of their TAP and by their interface index.
struct Names<'a> {
    links: HashMap<u32, &'a str>,
    places: HashMap<u16, &'a str>,
}

impl Names<'_> {
    fn of_link(&self, link: u32) -> Option<String> {
        self.links.get(&link).map(|name| (*name).to_owned())
    }

    fn of_place(&self, place: u16) -> Option<String> {
        self.places.get(&place).map(|name| (*name).to_owned())
    }
}

impl UserPlane {
    /// Routes after a given one, or from the first on.
    pub(super) fn list_routes(&self, after: Option<&Route>) -> ListRoutesResponse {
        let (names, mut routes) = (self.names(), Vec::new());
        for instance in self.instances_by_name() {
            let behind = match after {
                Some(after) if instance.name < after.network_instance => continue,
                Some(after) if instance.name == after.network_instance => {
                    after.prefix.parse::<IpNet>().ok()
                }
                _ => None,
            };
            for route in instance.fib.shown_routes(behind) {
                if routes.len() == PAGE {
                    return ListRoutesResponse { routes, more: true };
                }
                routes.push(self.route(instance, &names, route));
            }
        }
        let more = false;
        ListRoutesResponse { routes, more }
    }

    /// Neighbours after a given one, or from the first on.
    pub(super) fn list_neighbours(&self, after: Option<&Neighbour>) -> ListNeighboursResponse {
        let key = |row: &Neighbour| {
            let address = row.address.parse::<IpAddr>().ok();
            (row.network_instance.clone(), row.port.clone(), address)
        };
        let names = self.names();
        let all = self.instances.values().flat_map(|instance| {
            let all = instance.fib.shown_neighbours();
            all.map(|neighbour| self.neighbour(instance, &names, neighbour))
        });
        let after = after.map(key);
        let mut neighbours: Vec<Neighbour> = all
            .filter(|row| after.as_ref().is_none_or(|after| key(row) > *after))
            .collect();
        neighbours.sort_by_cached_key(key);
        let more = neighbours.len() > PAGE;
        neighbours.truncate(PAGE);
        ListNeighboursResponse { neighbours, more }
    }

    fn instances_by_name(&self) -> Vec<&Instance> {
        let mut instances: Vec<&Instance> = self.instances.values().collect();
        instances.sort_by(|a, b| a.name.cmp(&b.name));
        instances
    }

    fn names(&self) -> Names<'_> {
        let ports = self.ports.iter();
        let named: Vec<_> = ports.flat_map(|(name, port)| port.named(name)).collect();
        let links = named.iter().map(|(name, _, tap)| (tap.index(), *name));
        let places = named.iter().map(|(name, index, _)| (index.0, *name));
        Names {
            links: links.collect(),
            places: places.collect(),
        }
    }

    fn route(&self, instance: &Instance, names: &Names<'_>, route: ShownRoute) -> Route {
        let mut hops = route.hops.iter().map(|hop| next_hop(names, hop));
        let first = hops.next().unwrap_or_default();
        Route {
            user_plane: self.name.clone(),
            network_instance: instance.name.clone(),
            prefix: route.net.to_string(),
            kind: match route.target {
                Target::Adjacency(_) | Target::Group(_) => RouteKind::Neighbour,
                Target::OnLink(_) => RouteKind::OnLink,
                Target::Local => RouteKind::Local,
                Target::Discard if route.subscribers => RouteKind::Subscribers,
                Target::Discard => RouteKind::Discard,
            }
            .into(),
            port: match route.target {
                Target::OnLink(place) => names.of_place(place),
                _ => first.port,
            },
            next_hop: first.address,
            mac: first.mac,
            further: hops.collect(),
        }
    }

    fn neighbour(&self, instance: &Instance, names: &Names<'_>, of: ShownNeighbour) -> Neighbour {
        Neighbour {
            user_plane: self.name.clone(),
            network_instance: instance.name.clone(),
            port: names.of_link(of.link).unwrap_or_default(),
            address: of.address.to_string(),
            mac: of.mac.map(|mac| MacAddr(mac).to_string()),
            state: match (of.mac, of.stale) {
                (None, _) => NeighbourState::Unresolved,
                (Some(_), true) => NeighbourState::Stale,
                (Some(_), false) => NeighbourState::Resolved,
            }
            .into(),
            routes: of.routes as u64,
        }
    }
}

fn next_hop(names: &Names<'_>, hop: &ShownHop) -> NextHop {
    NextHop {
        address: Some(hop.address.to_string()),
        port: names.of_link(hop.link),
        mac: hop.mac.map(|mac| MacAddr(mac).to_string()),
    }
}
