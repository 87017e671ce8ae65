//! PPP goes on: what a session wants done, what AAA says of its subscriber, and the passing of its time.

use super::{ControlPlane, Now};
use crate::counters::Counter;
use crate::entry::{Entry, Stage, Started};
use crate::pool::PoolError;
use crate::topology::Seid;
use aaa::{
    AccessAccept, AccessRequest, AccountingKind, AccountingRecord, Credentials, Line, Outcome,
    PortType, Secret, Traffic,
};
use core::net::Ipv4Addr;
use session::{
    AuthMethod, AuthReply, AuthRequest, Cause, Family, Grant, Input, Ipv4Grant, Ipv6Grant, Output,
};
use wire::eth::PPPOE_DISCOVERY;

/// Framed-IP-Address values that leave the choice to us or to the user (RFC 2865 §5.8).
const CHOICE_OF_THE_NAS: [Ipv4Addr; 2] = [Ipv4Addr::new(255, 255, 255, 254), Ipv4Addr::BROADCAST];

impl ControlPlane {
    /// Gives a session an input and does what it wants.
    pub(super) fn drive(&mut self, now: Now, index: u32, input: Input<'_>) {
        let entry = self.entry(index);
        if entry.is_closing() {
            return;
        }
        let Some(link) = &mut entry.link else {
            return;
        };
        if let Err(why) = link.handle(now.at, input) {
            tracing::trace!(session = %entry.seid, why = why.0, "input discarded");
        }
        self.carry_out(now, index);
    }

    /// Ends a session for a reason of ours; the subscriber is told.
    pub(super) fn end(&mut self, now: Now, index: u32, cause: Cause) {
        match self.entry(index).link {
            Some(_) => self.drive(now, index, Input::Terminate(cause)),
            None => self.release(now, index, cause),
        }
    }

    pub(super) fn on_session_timeout(&mut self, now: Now, index: u32) {
        let Some(entry) = self.sessions.get_mut(index as usize) else {
            return;
        };
        if let Some(link) = &mut entry.link {
            link.on_timeout(now.at);
        }
        if entry.account.next_interim.is_some_and(|at| at <= now.at) {
            self.ask_interim(now, index);
        }
        let over = self
            .entry(index)
            .account
            .ends_at
            .is_some_and(|at| at <= now.at);
        if over {
            self.entry(index).account.ends_at = None;
            self.end(now, index, Cause::SessionTimeout);
        } else {
            self.carry_out(now, index);
        }
    }

    /// Does what a session wants, in its order.
    pub(super) fn carry_out(&mut self, now: Now, index: u32) {
        loop {
            let link = self
                .sessions
                .get_mut(index as usize)
                .and_then(|e| e.link.as_mut());
            let Some(output) = link.and_then(|link| link.poll_output()) else {
                return self.arm(index);
            };
            match output {
                Output::Ppp(frame) => self.send_ppp(index, &frame),
                Output::Padt(reason) => {
                    let padt = session::discovery::padt(self.entry(index).pppoe_id, reason);
                    self.send_to_session(index, PPPOE_DISCOVERY, &padt);
                }
                Output::Authenticate(request) => self.authenticate(now, index, request),
                Output::Install(family) => self.install(now, index, family),
                Output::Up(family) => self.on_family_up(now, index, family),
                Output::Down(family) => self.uninstall(now, index, family),
                Output::Closed(cause) => return self.release(now, index, cause),
            }
        }
    }

    fn authenticate(&mut self, now: Now, index: u32, request: AuthRequest) {
        let line = self.line(index);
        let entry = self.entry(index);
        entry.who.username = request.username.clone().into_boxed_slice();
        entry.who.attempt = request.attempt;
        let seid = entry.seid;
        let credentials = match request.method {
            AuthMethod::Pap { password } => Credentials::Pap {
                password: Secret::new(password),
            },
            AuthMethod::Chap {
                id,
                challenge,
                response,
            } => Credentials::Chap {
                id,
                challenge: challenge.to_vec(),
                response,
            },
        };
        let request = AccessRequest {
            username: request.username,
            credentials,
            acct_session_id: seid.to_string(),
            line,
        };
        self.authority.authenticate(now.at, seid.0, request);
    }

    /// AAA answered: about a subscriber that waits to be let in, or about a record.
    pub(super) fn on_outcome(&mut self, now: Now, seid: Seid, outcome: Outcome) {
        match outcome {
            Outcome::Recorded => {}
            Outcome::Accept(accept) => self.on_accept(now, seid, *accept),
            Outcome::Reject(reject) => {
                self.counters.count(Counter::AuthenticationRejected);
                self.turn_away(now, seid, &reject.reason.to_string(), reject.reply_message);
            }
            Outcome::Unavailable(why) => {
                let waits = self.find(seid).is_some_and(|i| self.is_authenticating(i));
                if waits {
                    self.counters.count(Counter::AuthenticationUnavailable);
                    self.turn_away(
                        now,
                        seid,
                        &why.to_string(),
                        b"authentication is not available".to_vec(),
                    );
                } else {
                    self.counters.count(Counter::AccountingLost);
                    tracing::error!(session = %seid, reason = %why, "an accounting record reached no server");
                }
            }
        }
    }

    fn is_authenticating(&self, index: u32) -> bool {
        let link = self.sessions[index as usize].link.as_ref();
        link.is_some_and(|link| link.phase() == session::Phase::Authenticate)
    }

    fn turn_away(&mut self, now: Now, seid: Seid, why: &str, message: Vec<u8>) {
        let Some(index) = self.find(seid) else {
            return;
        };
        let entry = self.entry(index);
        let (user, mac, attempt) = (
            entry.who.username.escape_ascii().to_string(),
            entry.circuit.mac,
            entry.who.attempt,
        );
        tracing::info!(session = %seid, user, %mac, why, "subscriber is refused");
        let reply = AuthReply::Reject { message };
        self.drive(now, index, Input::Auth { attempt, reply });
    }

    fn on_accept(&mut self, now: Now, seid: Seid, accept: AccessAccept) {
        let Some(index) = self.find(seid).filter(|i| self.is_authenticating(*i)) else {
            return;
        };
        self.take_back_addresses(now, index); // of an earlier authentication of the same session
        let grant = self.grant(now, index, &accept);
        let default_interim = self.authority.default_interim();
        let entry = self.entry(index);
        entry.who.class = accept.class.into_boxed_slice();
        entry.account.interim = accept.acct_interim.or(default_interim);
        entry.account.session_timeout = accept.session_timeout;
        let attempt = entry.who.attempt;
        if grant.ipv4.is_none() && grant.ipv6.is_none() {
            let user = entry.who.username.escape_ascii().to_string();
            tracing::warn!(session = %seid, user, "no address is left for the subscriber: the session ends. \
                Enlarge the pools of its network instance");
            return self.end(now, index, Cause::NasError);
        }
        let reply = AuthReply::Accept {
            grant,
            message: accept.reply_message,
        };
        self.drive(now, index, Input::Auth { attempt, reply });
    }

    /// Takes the addresses that the subscriber gets: AAA's choice, or from the group's part of the pools.
    fn grant(&mut self, now: Now, index: u32, accept: &AccessAccept) -> Grant {
        let entry = &self.sessions[index as usize];
        let (instance, segment) = (entry.instance, entry.segment);
        let group = self
            .topology
            .port(self.topology.segment(segment).port)
            .group;
        let fixed = accept.framed_ip.filter(|a| !CHOICE_OF_THE_NAS.contains(a));
        let mut grant = Grant::default();
        let service = &self.topology.instance(instance).service;
        let (gateway, dns, dns_ipv6) = (service.gateway, service.dns_ipv4(), service.dns_ipv6());
        if let Some(gateway) = gateway
            && (fixed.is_some() || self.addresses.has_ipv4(instance))
        {
            match self.addresses.give_ipv4(instance, group, fixed) {
                Ok(given) => {
                    grant.ipv4 = Some(Ipv4Grant {
                        address: given.address,
                        gateway,
                        dns,
                    });
                    self.entry(index).ipv4 = Some(given.address);
                    if let Some(net) = given.new_net {
                        self.user_planes.lend(now.at, group, net, &self.topology);
                    }
                }
                Err(error) => self.no_address(
                    index,
                    Counter::Ipv4PoolExhausted,
                    fixed.map(|f| f.to_string()),
                    error,
                ),
            }
        }
        let fixed = accept.framed_ipv6_prefix;
        if fixed.is_some() || self.addresses.has_ipv6(instance) {
            match self.addresses.give_ipv6(instance, group, fixed) {
                Ok(given) => {
                    grant.ipv6 = Some(Ipv6Grant {
                        prefix: given.address,
                        dns: dns_ipv6,
                        interface_id: accept.framed_interface_id,
                    });
                    self.entry(index).ipv6 = Some(given.address);
                    if let Some(net) = given.new_net {
                        self.user_planes.lend(now.at, group, net, &self.topology);
                    }
                }
                Err(error) => self.no_address(
                    index,
                    Counter::Ipv6PoolExhausted,
                    fixed.map(|f| f.to_string()),
                    error,
                ),
            }
        }
        grant
    }

    fn no_address(
        &mut self,
        index: u32,
        exhausted: Counter,
        fixed: Option<String>,
        error: PoolError,
    ) {
        self.counters.count(match fixed {
            Some(_) => Counter::FixedAddressUnusable,
            None => exhausted,
        });
        let entry = self.entry(index);
        let user = entry.who.username.escape_ascii().to_string();
        tracing::warn!(session = %entry.seid, user, fixed, %error, "no address for the subscriber in one family");
    }

    /// The subscriber has an address of the family: the first one makes the session online.
    fn on_family_up(&mut self, now: Now, index: u32, family: Family) {
        let entry = &mut self.sessions[index as usize];
        let user = entry.who.username.escape_ascii().to_string();
        tracing::debug!(session = %entry.seid, user, %family, "address family is open");
        if entry.is_half_open() {
            self.half_open -= 1;
            entry.stage = Stage::Online;
        }
        if entry.account.started.is_some() {
            return;
        }
        let account = &mut entry.account;
        account.started = Some(Started {
            at: now.at,
            unix: now.unix,
        });
        account.next_interim = account.interim.map(|interval| now.at + interval);
        account.ends_at = account.session_timeout.map(|timeout| now.at + timeout);
        let (mac, ipv4) = (entry.circuit.mac, entry.ipv4.map(|a| a.to_string()));
        let ipv6 = entry.ipv6.map(|a| a.to_string());
        tracing::info!(session = %entry.seid, user, %mac, ipv4, ipv6, "subscriber is online");
        self.record(now, index, AccountingKind::Start);
        self.persist(index); // its start belongs to it after a restart
    }

    /// Sends an accounting record with what is known of the session now.
    pub(super) fn record(&mut self, now: Now, index: u32, kind: AccountingKind) {
        if !self.authority.accounts() {
            return;
        }
        let line = self.line(index);
        let authentic = self.authority.authentic();
        let entry = &self.sessions[index as usize];
        let Some(started) = entry.account.started else {
            return;
        };
        let usage = entry.account.usage;
        let record = AccountingRecord {
            kind,
            username: entry.who.username.to_vec(),
            acct_session_id: entry.seid.to_string(),
            line,
            class: entry.who.class.to_vec(),
            framed_ip: entry.ipv4,
            framed_ipv6_prefix: entry.ipv6,
            framed_interface_id: interface_id(entry),
            authentic,
            event_time: now.unix,
            session_time: now.at.saturating_sub(started.at),
            input: Traffic {
                octets: usage.up_octets,
                packets: usage.up_packets,
            },
            output: Traffic {
                octets: usage.down_octets,
                packets: usage.down_packets,
            },
        };
        self.authority.account(now.at, entry.seid.0, record);
    }

    /// What AAA is told of the subscriber's line.
    fn line(&self, index: u32) -> Line {
        let entry = &self.sessions[index as usize];
        let port = self
            .topology
            .port(self.topology.segment(entry.segment).port);
        let (outer, inner) = entry.circuit.tags.vids();
        let plane = &self.topology.user_plane(port.user_plane).node_id;
        let vlan = |id: Option<u16>| id.map_or(String::new(), |id| format!(".{id}"));
        let octets = |o: &Option<Box<[u8]>>| o.as_deref().map(<[u8]>::to_vec);
        Line {
            port_type: match (outer, inner) {
                (None, _) => PortType::PppoeOverEthernet,
                (Some(_), None) => PortType::PppoeOverVlan,
                (Some(_), Some(_)) => PortType::PppoeOverQinq,
            },
            port: None,
            port_id: Some(format!(
                "{plane}/{}{}{}",
                port.name,
                vlan(outer),
                vlan(inner)
            )),
            calling_station: Some(entry.circuit.mac.to_string()),
            called_station: None,
            circuit_id: octets(&entry.line.circuit_id),
            remote_id: octets(&entry.line.remote_id),
        }
    }
}

/// The subscriber's interface identifier, once IPV6CP has it.
fn interface_id(entry: &Entry) -> Option<u64> {
    let (_, peer) = entry.link.as_ref()?.interface_ids();
    (peer != 0).then_some(peer)
}
