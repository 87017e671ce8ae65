//! Repairs the differences of a resource audit. Leaked resources are released by the code that normally releases them. Missing ones
//! are allocated again if they are still free; otherwise their session ends.

use super::{ControlPlane, Wait};
use crate::addresses::Net;
use crate::plane::Now;
use crate::plane::bindings::holder;
use crate::session_ids::Home;
use crate::topology::Seid;
use northbound::Ledger;
use session::Cause;

impl ControlPlane {
    /// Repairs all differences. Prefix blocks follow from addresses, so addresses come first; waiting operations come last.
    pub(super) fn repair(&mut self, now: Now) {
        self.repair_addresses(now);
        self.repair_nets(now);
        self.repair_session_ids(now);
        self.sessions.repair_lines();
        self.sessions.repair_users();
        self.repair_subscribers(now);
        self.repair_counts();
        self.repair_ports(now);
        self.repair_requests(now);
        self.repair_waits(now);
        self.repair_timers();
    }

    fn repair_addresses(&mut self, now: Now) {
        let found = self.compare_addresses(&mut Ledger::default());
        for stray in found.without_owner {
            self.addresses.take(stray);
        }
        // who had it first keeps it
        for (net, seid) in found.twice {
            self.end_without(now, seid, net);
        }
        for (net, seid) in found.missing {
            let entry = &self.sessions[seid.index()];
            let bindings = &entry.policy.forwarding.bindings;
            let binding = bindings.iter().find(|binding| binding.prefix == net.net);
            let own = bindings.filtered(|own| own.prefix != net.net);
            let given =
                binding.map(|binding| self.addresses.give_binding(holder(entry), binding, &own));
            if let Some(Err(error)) = given {
                tracing::error!(session = %seid, net = %net.net, %error, "cannot allocate a session's address again: the \
                    session ends");
                self.end_without(now, seid, net);
            }
        }
    }

    /// Ends a session with an address that another session has, without releasing that address.
    fn end_without(&mut self, now: Now, seid: Seid, net: Net) {
        let Some(index) = self.sessions.find(seid) else {
            return;
        };
        self.entry(index)
            .let_go(|binding| binding.prefix == net.net);
        self.end(now, index, Cause::NasError);
    }

    fn repair_nets(&mut self, now: Now) {
        let lent = self.compare_lent_nets(&mut Ledger::default());
        for (_, net) in lent.without_owner {
            self.addresses.reclaim(net);
        }
        let found = self.compare_nets(&mut Ledger::default());
        let (planes, topology) = (&mut self.user_planes, &self.topology);
        for (group, net) in found.without_owner {
            planes.withdraw(now.at, group, net, topology);
        }
        for ((group, net), _) in found.missing {
            planes.announce(now.at, group, net, topology);
        }
        let told = self.compare_announcements(&mut Ledger::default());
        let missing = told.missing.into_iter().map(|(net, _)| net);
        for (group, _) in told.without_owner.into_iter().chain(missing) {
            self.user_planes.tell_again(now.at, group, &self.topology);
        }
    }

    fn repair_session_ids(&mut self, now: Now) {
        let found = self.compare_session_ids(&mut Ledger::default());
        for (segment, id) in found.without_owner {
            self.session_ids
                .entry(segment)
                .or_default()
                .release(id, Home::NOBODY, now.at);
        }
        for ((segment, id), _) in found.missing {
            self.session_ids.entry(segment).or_default().reserve(id);
        }
        for (_, seid) in found.twice {
            if let Some(index) = self.sessions.find(seid) {
                self.end(now, index, Cause::NasError);
            }
        }
    }

    fn repair_subscribers(&mut self, now: Now) {
        let found = self.compare_subscribers(&mut Ledger::default());
        for (subscriber, seid) in found.without_owner {
            self.subscribers.leave(subscriber, seid);
        }
        for (_, seid) in found.missing {
            let index = seid.index();
            let known_by = self.stored_subscriber(&self.sessions[index], None, None);
            let joined = known_by.map(|known| self.subscribers.join(known.identity, seid));
            self.entry(index).subscriber = joined;
            self.adjust(now, index);
        }
    }

    fn repair_timers(&mut self) {
        let found = self.compare_timers(&mut Ledger::default());
        let missing = found.missing.into_iter().map(|(index, _)| index);
        for index in found.without_owner.into_iter().chain(missing) {
            self.sessions.arm(index);
        }
    }

    fn repair_counts(&mut self) {
        let order = self.compare_half_open(&mut Ledger::default());
        let missing = order.missing.into_iter().map(|(seid, _)| seid);
        self.sessions.repair_half_open(missing);
        let planes = self.topology.user_planes();
        let counts: Vec<_> = planes
            .map(|(plane, _)| (plane, self.put_back(plane).count()))
            .collect();
        for (plane, count) in counts {
            self.user_planes.set_resyncing(plane, count);
        }
    }

    fn repair_ports(&mut self, now: Now) {
        let found = self.compare_ports(&mut Ledger::default());
        for (port, _) in found.missing {
            self.user_planes
                .open_default_session(now.at, port, &self.topology);
        }
    }

    /// Handles requests that are no longer pending like requests without an answer.
    fn repair_requests(&mut self, now: Now) {
        let found = self.compare_requests(&mut Ledger::default());
        for token in found.without_owner {
            self.user_planes.give_up(now.at, token, &self.topology);
        }
        let found = self.compare_questions(&mut Ledger::default());
        for token in found.without_owner {
            self.aaa.forget(token);
        }
    }

    fn repair_waits(&mut self, now: Now) {
        let found = self.compare_waits(&mut Ledger::default());
        for (wait, _) in found.missing {
            match wait {
                // what the user plane has of the family is not known: the session is told whole
                Wait::Rules(seid) | Wait::Family(seid, _) => self.ask_rules_again(now, seid),
                Wait::Verdict(seid) => {
                    if let Some(index) = self.sessions.find(seid) {
                        let message = b"authentication is not available".to_vec();
                        self.reject(now, index, "the question to AAA was lost", message);
                    }
                }
                Wait::Listing(ticket) => {
                    self.answer_listing(now, ticket);
                }
                Wait::Audit(plane) => self.audit_again(now, plane),
                Wait::Nets(group) => self.user_planes.tell_again(now.at, group, &self.topology),
            }
        }
    }

    fn ask_rules_again(&mut self, now: Now, seid: Seid) {
        let Some(index) = self.sessions.find(seid) else {
            return;
        };
        let entry = self.entry(index);
        if entry.is_closing() && !entry.rules.unsettled {
            entry.rules.establishing = false;
            self.delete(now, index);
        } else {
            self.establish(now, index);
        }
    }
}
