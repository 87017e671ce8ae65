//! Resource audit of the control plane: compares allocated resources and pending operations with the sessions that own them.
//!
//! A check changes nothing. [`repair`] corrects the differences with the code that normally allocates and releases.

mod check;
mod kinds;
mod repair;

pub(super) use check::Check;

use super::{Awaited, ControlPlane, Now};
use crate::aaa_clients::PendingAuth;
use crate::addresses::Net;
use crate::entry::Entry;
use crate::finder::Found;
use crate::topology::{GroupId, Port, PortId, SegmentId, Seid, SubscriberId, UserPlaneId};
use crate::user_planes::{Request, UsageFor};
use aaa::RequestKey;
use ipnet::IpNet;
use northbound::{Differences, Ledger};
use policy::Access;
use session::Family;
use std::collections::{BTreeMap, HashSet};

/// Waiting operation that needs a pending counterpart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Wait {
    /// Session that waits for its establishment or deletion at the user plane.
    Rules(Seid),
    /// Session that waits for the rules of an address family to be installed and stored.
    Family(Seid, bool),
    /// Session that waits for AAA.
    Verdict(Seid),
    /// Call of the local API that lists sessions and waits for their counters.
    Listing(u64),
    /// PFCP audit that waits for the answer to a block.
    Audit(UserPlaneId),
    /// Group that waits for its user plane to announce its prefix blocks.
    Nets(GroupId),
}

const FAMILIES: [Family; 2] = [Family::Ipv4, Family::Ipv6];

impl ControlPlane {
    /// Compares allocated resources and pending operations with the sessions that own them.
    pub fn ledger(&self) -> Ledger {
        let mut ledger = Ledger::of(&self.start.node_id);
        self.compare_sessions(&mut ledger);
        self.compare_addresses(&mut ledger);
        self.compare_lent_nets(&mut ledger);
        self.compare_nets(&mut ledger);
        self.compare_announcements(&mut ledger);
        self.compare_session_ids(&mut ledger);
        self.compare_lines(&mut ledger);
        self.compare_users(&mut ledger);
        self.compare_subscribers(&mut ledger);
        self.compare_timers(&mut ledger);
        self.compare_half_open(&mut ledger);
        self.compare_put_back(&mut ledger);
        self.compare_ports(&mut ledger);
        self.compare_requests(&mut ledger);
        self.compare_questions(&mut ledger);
        self.compare_orders(&mut ledger);
        self.compare_records(&mut ledger);
        self.compare_waits(&mut ledger);
        ledger
    }

    /// Runs the resource audit, with a repair if `repair` is set.
    pub(super) fn checked_ledger(&mut self, now: Now, repair: bool) -> Ledger {
        let found = self.ledger();
        if !repair || found.is_balanced() {
            return found;
        }
        self.repair(now);
        self.ledger().after_repair_of(found)
    }

    /// Compares sessions with their entries in the table, which determine SEIDs and TEIDs.
    fn compare_sessions(&self, ledger: &mut Ledger) {
        let booked = self.sessions.iter().map(|(index, _)| index);
        let owned = self.sessions.entries().map(|e| (e.seid.index(), e.seid));
        ledger.compare(&kinds::SESSION, booked, owned, |index| index.to_string());
    }

    pub(super) fn compare_addresses(&self, ledger: &mut Ledger) -> Differences<Net, Seid> {
        let owned = self.sessions.entries().flat_map(|entry| {
            let instance = entry.instance;
            addresses(entry).map(move |net| (Net { instance, net }, entry.seid))
        });
        let name = |net: &Net| self.name_net(net);
        ledger.compare(&kinds::ADDRESS, self.addresses.given(), owned, name)
    }

    /// Prefix blocks that sessions need, by group, each with one of its sessions.
    fn needed_nets(&self) -> BTreeMap<(GroupId, Net), Seid> {
        let mut needed = BTreeMap::new();
        for entry in self.sessions.entries() {
            let instance = entry.instance;
            for binding in entry.policy.forwarding.bindings.iter() {
                let net = binding.prefix;
                let Some((lent_to, net)) = self.addresses.net_of(Net { instance, net }) else {
                    continue;
                };
                let group = match binding.is_announced {
                    true => lent_to,
                    false => entry.group,
                };
                needed.entry((group, net)).or_insert(entry.seid);
            }
        }
        needed
    }

    /// Bindings that old user planes announce as prefix blocks of groups, because these do not support announcements by sessions.
    fn alone_as_nets(&self) -> impl Iterator<Item = ((GroupId, Net), Seid)> {
        self.sessions.entries().flat_map(move |entry| {
            let plane = entry.user_plane;
            let bindings = entry.policy.forwarding.bindings.iter();
            let alone = bindings.filter(move |binding| self.is_net_of_group(plane, binding));
            alone.map(|binding| {
                let (instance, net) = (entry.instance, binding.prefix);
                ((entry.group, Net { instance, net }), entry.seid)
            })
        })
    }

    fn compare_lent_nets(&self, ledger: &mut Ledger) -> Differences<(GroupId, Net), Seid> {
        let owned = self.needed_nets();
        let name = |net: &(GroupId, Net)| self.name_group_net(net);
        ledger.compare(&kinds::LENT_NET, self.addresses.lent_nets(), owned, name)
    }

    fn compare_nets(&self, ledger: &mut Ledger) -> Differences<(GroupId, Net), Seid> {
        let owned = self.needed_nets().into_iter().chain(self.alone_as_nets());
        let name = |net: &(GroupId, Net)| self.name_group_net(net);
        ledger.compare(&kinds::NET, self.user_planes.wanted_nets(), owned, name)
    }

    /// Compares the prefix blocks that user planes announce with those of the groups, where no change is pending.
    fn compare_announcements(&self, ledger: &mut Ledger) -> Differences<(GroupId, Net), String> {
        let settled = |group: GroupId| {
            let group_of = self.topology.group(group);
            let open = self.user_planes.default_session(group_of.carrier);
            open.is_some() && !self.user_planes.is_telling(group)
        };
        let booked = self.user_planes.told_nets();
        let owned = self.user_planes.wanted_nets();
        let owner = |group: GroupId| self.topology.group(group).name.clone();
        ledger.compare(
            &kinds::ANNOUNCEMENT,
            booked.filter(|(group, _)| settled(*group)),
            owned
                .filter(|(group, _)| settled(*group))
                .map(|net| (net, owner(net.0))),
            |net| self.name_group_net(net),
        )
    }

    fn compare_session_ids(&self, ledger: &mut Ledger) -> Differences<(SegmentId, u16), Seid> {
        let segments = self.session_ids.iter();
        let booked = segments.flat_map(|(segment, ids)| ids.allocated().map(|id| (*segment, id)));
        let owned = self.sessions.entries().map(|entry| {
            let Access::Pppoe(id) = entry.access;
            ((entry.segment, id), entry.seid)
        });
        ledger.compare(&kinds::SESSION_ID, booked, owned, |(segment, id)| {
            let port = self.topology.segment(*segment).port;
            format!("{id} on {}", self.name_port(port))
        })
    }

    /// The index by access line leads to each session that is not closing.
    fn compare_lines(&self, ledger: &mut Ledger) -> Differences<Found, Seid> {
        let booked = self.sessions.lines();
        let live = self.sessions.entries().filter(|entry| !entry.is_closing());
        let owned = live.map(|entry| (self.sessions.line_place(entry), entry.seid));
        ledger.compare(&kinds::LINE, booked, owned, |found| {
            self.found_text(found, |entry| {
                let (segment, outer, inner, mac) = entry.line_key();
                let vlan = |id: Option<u16>| id.map_or(String::new(), |id| format!(".{id}"));
                let port = self.name_port(self.topology.segment(segment).port);
                format!("{mac} on {port}{}{}", vlan(outer), vlan(inner))
            })
        })
    }

    fn compare_users(&self, ledger: &mut Ledger) -> Differences<Found, Seid> {
        let entries = self.sessions.entries();
        let owned =
            entries.filter_map(|entry| Some((self.sessions.user_place(entry)?, entry.seid)));
        let booked = self.sessions.users();
        ledger.compare(&kinds::USER, booked, owned, |found| {
            self.found_text(found, |entry| entry.who.username.escape_ascii().to_string())
        })
    }

    /// Text of a place in an index of sessions. The place itself does not say by what a session is found.
    fn found_text(&self, (hash, index): &Found, what: impl Fn(&Entry) -> String) -> String {
        match self.sessions.get(*index) {
            Some(entry) => format!("{hash:08x} to {} ({})", entry.seid, what(entry)),
            None => format!("{hash:08x} to entry {index}, which is none"),
        }
    }

    fn compare_subscribers(&self, ledger: &mut Ledger) -> Differences<(SubscriberId, Seid), Seid> {
        let owned = self.sessions.entries().filter_map(|entry| {
            let subscriber = entry.subscriber?;
            Some(((subscriber, entry.seid), entry.seid))
        });
        let booked = self.subscribers.members();
        ledger.compare(&kinds::SUBSCRIBER, booked, owned, |(id, seid)| {
            let subscriber = self.subscribers.get(*id);
            let known_by = subscriber.map(|s| s.identity.text(&self.topology));
            format!(
                "{seid} of {}",
                known_by.unwrap_or_else(|| format!("handle {}", id.0))
            )
        })
    }

    fn compare_timers(&self, ledger: &mut Ledger) -> Differences<u32, Seid> {
        let wakes = |index: u32| {
            let entry = self.sessions.get(index);
            match entry.and_then(|entry| entry.wake_at()) {
                Some(at) => self.sessions.wakes(index, at),
                None => true,
            }
        };
        let booked = self.sessions.armed().filter(|index| wakes(*index));
        let owned = self
            .sessions
            .entries()
            .filter(|entry| entry.wake_at().is_some());
        let owned = owned.map(|entry| (entry.seid.index(), entry.seid));
        ledger.compare(&kinds::TIMER, booked, owned, |index| {
            format!("of entry {index} in the session table")
        })
    }

    /// Compares the list of sessions without a login with the sessions, and the count of half-open ones.
    fn compare_half_open(&self, ledger: &mut Ledger) -> Differences<Seid, Seid> {
        let booked = self.sessions.by_age().filter(|seid| {
            let index = self.sessions.find(*seid);
            index.is_some_and(|index| self.sessions[index].is_unauthenticated())
        });
        let owned = self
            .sessions
            .entries()
            .filter(|entry| entry.is_unauthenticated())
            .map(|e| (e.seid, e.seid));
        let name = |seid: &Seid| seid.to_string();
        let order = ledger.compare(&kinds::SHEDDING, booked, owned, name);
        let half_open = self.sessions.entries().filter(|entry| entry.is_half_open());
        let owned = (0..).zip(half_open.map(|entry| entry.seid));
        let number = |n: &usize| format!("the {}th", n + 1);
        ledger.compare(
            &kinds::HALF_OPEN,
            0..self.sessions.half_open(),
            owned,
            number,
        );
        order
    }

    /// Compares the number of sessions in each resync window with the sessions.
    fn compare_put_back(&self, ledger: &mut Ledger) {
        let planes = self.topology.user_planes();
        let booked = planes
            .flat_map(|(plane, _)| (0..self.user_planes.resyncing(plane)).map(move |n| (plane, n)));
        let planes = self.topology.user_planes();
        let owned = planes.flat_map(|(plane, _)| {
            let put_back = self.put_back(plane).enumerate();
            put_back.map(move |(n, seid)| ((plane, n), seid))
        });
        ledger.compare(&kinds::PUT_BACK, booked, owned, |(plane, n)| {
            let name = &self.topology.user_plane(*plane).node_id;
            format!("the {}th on {name}", n + 1)
        });
    }

    fn put_back(&self, plane: UserPlaneId) -> impl Iterator<Item = Seid> {
        let put_back = self.sessions.entries().filter(|entry| entry.rules.put_back);
        let seids = put_back.map(|entry| entry.seid);
        seids.filter(move |seid| self.plane_of(seid.index()) == plane)
    }

    /// Compares the default sessions with the ports of associated user planes.
    fn compare_ports(&self, ledger: &mut Ledger) -> Differences<PortId, String> {
        let asked: HashSet<PortId> = self
            .user_planes
            .requests()
            .filter_map(|(_, request)| match request {
                Request::DefaultSession(port) => Some(*port),
                _ => None,
            })
            .collect();
        let ports = self.topology.ports();
        let up = |plane| self.user_planes.is_up(plane);
        let there = |port: &Port| !port.retired && up(port.user_plane);
        let owned: Vec<_> = ports.filter(|(_, port)| there(port)).collect();
        let booked = owned.iter().map(|(port, _)| *port);
        let booked = booked.filter(|port| {
            self.user_planes.default_session(*port).is_some() || asked.contains(port)
        });
        let booked: Vec<PortId> = booked.collect();
        let owner = |plane| self.topology.user_plane(plane).node_id.clone();
        let owned = owned.into_iter();
        let owned = owned.map(|(id, port)| (id, owner(port.user_plane)));
        ledger.compare(&kinds::PORT, booked, owned, |port| self.name_port(*port))
    }

    fn compare_requests(&self, ledger: &mut Ledger) -> Differences<u64, &'static str> {
        let booked = self.user_planes.requests().map(|(token, _)| token);
        let owned = self.user_planes.open_tokens().map(|token| (token, "PFCP"));
        ledger.compare(&kinds::REQUEST, booked, owned, |token| {
            let mut requests = self.user_planes.requests();
            let found = requests.find(|(of, _)| of == token);
            found.map_or("unknown".into(), |(_, request)| format!("{request:?}"))
        })
    }

    fn compare_questions(&self, ledger: &mut Ledger) -> Differences<u64, &'static str> {
        let booked = self.aaa.pending().map(|(token, _)| token);
        let owned = self.aaa.open_tokens();
        let owned = owned.into_iter().map(|token| (token, "RADIUS"));
        ledger.compare(&kinds::QUESTION, booked, owned, |token| {
            let mut pending = self.aaa.pending();
            let found = pending.find(|(of, _)| of == token);
            found.map_or("unknown".into(), |(_, asked)| format!("{asked:?}"))
        })
    }

    /// Compares the requests of RADIUS servers that are not answered with the sessions that they are about. A server does not wait for
    /// ever.
    fn compare_orders(&self, ledger: &mut Ledger) {
        let open: HashSet<RequestKey> = self.dynamic.open().collect();
        let of_sessions = self.sessions.entries().flat_map(|entry| {
            let requests = entry.under_way.requests.iter();
            requests.filter_map(|request| Some((request.key.request()?, entry.seid.to_string())))
        });
        let awaited = self.journal.awaited().filter_map(|what| match what {
            Awaited::Answer(key) => Some((*key, "the store".to_owned())),
            _ => None,
        });
        let searched = self.searches.keys();
        let searched = searched.map(|key| (key, "the search for its session".to_owned()));
        let owned = of_sessions.chain(awaited).chain(searched);
        let owned = owned.filter(|(key, _)| open.contains(key));
        ledger.compare(&kinds::ORDER, open.iter().copied(), owned, |key| {
            format!("{key:?}")
        });
    }

    /// Compares accounting records in the queue with their sessions.
    fn compare_records(&self, ledger: &mut Ledger) {
        let (booked, owned) = (self.accounting.tokens(), self.accounting.of_sessions());
        ledger.compare(&kinds::RECORD, booked, owned, u64::to_string);
    }

    /// Compares waiting operations with pending ones. A pending operation without a waiting one ends by itself.
    fn compare_waits(&self, ledger: &mut Ledger) -> Differences<Wait, String> {
        let seen_to = self.seen_to();
        let waits = self.waits();
        let booked = waits.iter().copied().filter(|wait| seen_to.contains(wait));
        let booked: Vec<Wait> = booked.collect();
        let owned = waits
            .into_iter()
            .map(|wait| (wait, self.name_waiting(wait)));
        ledger.compare(&kinds::WAIT, booked, owned, |wait| self.name_wait(*wait))
    }

    fn waits(&self) -> Vec<Wait> {
        let mut waits = Vec::new();
        for entry in self.sessions.entries() {
            let (seid, rules) = (entry.seid, &entry.rules);
            let up = self.user_planes.is_up(self.plane_of(seid.index()));
            if rules.establishing || up && (entry.is_closing() || rules.up_seid.is_none()) {
                waits.push(Wait::Rules(seid));
                continue;
            }
            let Some(link) = entry.status() else { continue };
            let families = FAMILIES.into_iter().filter(|_| rules.up_seid.is_some());
            let families = families.filter(|family| link.waits_for_rules(*family));
            waits.extend(families.map(|f| Wait::Family(seid, f == Family::Ipv6)));
            waits.extend(link.waits_for_verdict.then_some(Wait::Verdict(seid)));
        }
        waits.extend(self.listings.keys().copied().map(Wait::Listing));
        let audited = self.audits.keys().copied();
        waits.extend(audited.filter(|p| self.is_auditable(*p)).map(Wait::Audit));
        let groups = self.topology.groups().map(|(group, _)| group);
        let telling = groups.filter(|group| self.user_planes.is_telling(*group));
        waits.extend(telling.map(Wait::Nets));
        waits
    }

    /// Pending operations.
    fn seen_to(&self) -> HashSet<Wait> {
        let mut seen_to: HashSet<Wait> = self.user_planes.resync_queue().map(Wait::Rules).collect();
        let later = self
            .sessions
            .entries()
            .filter(|entry| entry.under_way.delete_at.is_some());
        seen_to.extend(later.map(|entry| Wait::Rules(entry.seid)));
        let asked = |seid: Seid, family: Family, asked: u8| {
            let index = self.sessions.find(seid);
            index.is_some_and(|i| self.sessions[i].rules.asked[family as usize] == asked)
        };
        for (_, request) in self.user_planes.requests() {
            if let Request::Modify(seid, _) = *request {
                seen_to.extend([false, true].map(|ipv6| Wait::Family(seid, ipv6)));
            }
            // a net that was not answered about is told again with the whole default session
            if let Request::DefaultSession(port) = *request {
                let groups = self.topology.groups();
                let carried = groups.filter(|(_, group)| group.carrier == port);
                seen_to.extend(carried.map(|(group, _)| Wait::Nets(group)));
            }
            seen_to.extend(match *request {
                Request::Establish(seid) | Request::Delete(seid) => Some(Wait::Rules(seid)),
                Request::Usage(_, UsageFor::List(ticket)) => Some(Wait::Listing(ticket)),
                Request::Audit(plane, ..) => Some(Wait::Audit(plane)),
                Request::Nets(group, _) => Some(Wait::Nets(group)),
                _ => None,
            });
        }
        seen_to.extend(self.journal.awaited().filter_map(|what| match *what {
            Awaited::Family {
                seid,
                family,
                asked: number,
            } if asked(seid, family, number) => Some(Wait::Family(seid, family == Family::Ipv6)),
            _ => None,
        }));
        let heirs = self
            .sessions
            .entries()
            .flat_map(|entry| &entry.under_way.heirs);
        seen_to.extend(heirs.map(|seid| Wait::Verdict(*seid)));
        let pending = self.aaa.pending();
        seen_to.extend(pending.filter_map(|(_, auth)| match auth {
            PendingAuth::Session { seid, .. } => Some(Wait::Verdict(*seid)),
            PendingAuth::Authorization { .. } | PendingAuth::Call { .. } => None,
        }));
        seen_to
    }

    // ---- names for people

    fn name_net(&self, net: &Net) -> String {
        let address = match net.net.prefix_len() == net.net.max_prefix_len() {
            true => net.net.addr().to_string(),
            false => net.net.to_string(),
        };
        format!("{address} in {}", self.topology.instance(net.instance).name)
    }

    fn name_group_net(&self, (group, net): &(GroupId, Net)) -> String {
        let (net, group) = (self.name_net(net), &self.topology.group(*group).name);
        format!("{net}, of group {group}")
    }

    fn name_port(&self, port: PortId) -> String {
        let port = self.topology.port(port);
        let plane = &self.topology.user_plane(port.user_plane).node_id;
        format!("{plane}/{}", port.name)
    }

    fn name_wait(&self, wait: Wait) -> String {
        match wait {
            Wait::Rules(_) => "for its user plane to take it or to let it go".into(),
            Wait::Family(_, false) => "for the rules of IPv4".into(),
            Wait::Family(_, true) => "for the rules of IPv6".into(),
            Wait::Verdict(_) => "for AAA to let it in".into(),
            Wait::Listing(_) => "for counters of sessions".into(),
            Wait::Audit(_) => "for the answer to an audit".into(),
            Wait::Nets(_) => "for its prefix blocks to be announced".into(),
        }
    }

    fn name_waiting(&self, wait: Wait) -> String {
        match wait {
            Wait::Rules(seid) | Wait::Family(seid, _) | Wait::Verdict(seid) => seid.to_string(),
            Wait::Listing(ticket) => format!("call {ticket} of the local API"),
            Wait::Audit(plane) => self.topology.user_plane(plane).node_id.clone(),
            Wait::Nets(group) => self.topology.group(group).name.clone(),
        }
    }
}

/// Addresses and prefixes of a session, and those that it is about to get.
fn addresses(entry: &Entry) -> impl Iterator<Item = IpNet> {
    let bindings = entry.policy.forwarding.bindings.iter();
    let claimed = entry.change().into_iter();
    let claimed = claimed.flat_map(|(_, change)| &change.claimed);
    bindings.chain(claimed).map(|binding| binding.prefix)
}

#[cfg(test)]
mod tests;
