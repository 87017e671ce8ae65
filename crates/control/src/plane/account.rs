//! Accounting of sessions: when it begins and ends, what is recorded, and the servers that receive it. The records' way to these is
//! [`crate::accounting`]'s.

use super::{ControlPlane, Now, Output};
use crate::accounting::RecordKind;
use crate::counters::Counter;
use crate::entry::{Entry, Stage, Started};
use crate::jitter::Jitter;
use crate::records::Owed;
use crate::topology::Seid;
use crate::user_planes::UsageFor;
use aaa::{
    AccountingKind, AccountingRecord, FamilyTraffic, FamilyUsage, FramedRoute, TerminateCause,
    Traffic,
};
use pfcp::bng::Volume;
use policy::{Bindings, Role};
use session::Cause;

/// Acct-Terminate-Cause (RFC 2866 §5.10).
fn terminate_cause(cause: Cause) -> TerminateCause {
    match cause {
        Cause::UserRequest => TerminateCause::UserRequest,
        Cause::LostCarrier => TerminateCause::LostCarrier,
        Cause::IdleTimeout => TerminateCause::IdleTimeout,
        Cause::SessionTimeout => TerminateCause::SessionTimeout,
        Cause::AdminReset => TerminateCause::AdminReset,
        Cause::AdminReboot => TerminateCause::AdminReboot,
        Cause::PortError | Cause::Loopback => TerminateCause::PortError,
        Cause::NasError => TerminateCause::NasError,
        Cause::NasRequest => TerminateCause::NasRequest,
        Cause::AuthFailed | Cause::NegotiationFailed => TerminateCause::UserError,
    }
}

impl ControlPlane {
    /// AAA follows the configuration.
    pub(super) fn update_aaa(&mut self, now: Now, owed: &[(Seid, RecordKind, Owed)]) {
        self.forget_groups();
        let of_sessions = &self.server_groups;
        let is_owed = |name: &str| {
            let stored = owed
                .iter()
                .any(|(_, _, owed)| owed.servers.as_deref() == Some(name));
            of_sessions.is_used(name) || self.accounting.is_owed(name) || stored
        };
        let configuration = &self.configuration;
        self.aaa
            .update(now.at, configuration, &self.numbers, is_owed);
        let wanted = self.radius_sockets.update(self.aaa.sockets());
        self.outputs.extend(wanted.map(Output::RadiusSockets));
        let servers = self.aaa.stream_servers(&self.configuration);
        let changed = self.radius_sockets.update_servers(servers);
        self.outputs.extend(changed.map(Output::RadiusServers));
        let port = self.update_dynamic();
        if std::mem::replace(&mut self.dynamic_port, port) != port {
            self.outputs.push_back(Output::DynamicPort(port));
        }
    }

    /// The session's times are counted from its start.
    pub(super) fn arm_times(&mut self, now: Now, index: u32) {
        self.arm_interim(now, index);
        let entry = self.entry(index);
        if entry.account.started.is_some() && !entry.is_closing() {
            let granted = entry.policy.control.session_timeout;
            entry.account.arm_timeout(now.at, granted);
        }
    }

    /// Sets the time of the session's next interim record.
    pub(super) fn arm_interim(&mut self, now: Now, index: u32) {
        let entry = &self.sessions[index];
        let groups = &self.configuration.aaa.server_groups;
        let group = entry.servers.as_deref().and_then(|name| groups.get(name));
        let jitter = Jitter {
            seid: entry.seid,
            percent: group.map_or(0, |group| group.interim_jitter),
        };
        let entry = self.entry(index);
        if entry.account.started.is_some() && !entry.is_closing() {
            let interval = entry.policy.control.interim_interval;
            entry.account.arm_interim(now.at, interval, jitter);
        }
    }

    /// The session begins with the batch that makes its first address family durable, and its Start is in that batch.
    pub(super) fn begin_account(&mut self, now: Now, index: u32) {
        let account = &mut self.entry(index).account;
        if account.started.is_some() {
            return;
        }
        account.started = Some(Started {
            at: now.at,
            before: 0,
            unix: now.unix,
        });
        self.arm_times(now, index);
        self.record(now, index, AccountingKind::Start);
    }

    /// The session's end is recorded. The caller deletes what is stored of it in the same batch.
    pub(super) fn close_account(&mut self, now: Now, index: u32) {
        let Stage::Closing(ending) = &self.entry(index).stage else {
            return;
        };
        let cause = terminate_cause(ending.cause);
        if self.entry(index).account.started.is_some() {
            self.record(now, index, AccountingKind::Stop(cause));
        }
    }

    /// Sends an interim record with what is known of the session now, unless its Start is still on its way.
    pub(super) fn record_interim(&mut self, now: Now, index: u32) {
        let entry = self.entry(index);
        let seid = entry.seid;
        if entry.account.started.is_none() || entry.is_closing() {
            return;
        }
        // without what it says in the store, it could say more than a later one
        if self.accounting.find(seid, RecordKind::Start).is_none() && self.persist(now, index) {
            self.record(now, index, AccountingKind::Interim);
        }
    }

    /// Sends an interim record at once if the session's bindings are not those of its last record. While its Start is on its way it
    /// waits for that.
    pub(super) fn record_bindings(&mut self, now: Now, index: u32) {
        let entry = &self.sessions[index];
        let (seid, bindings) = (entry.seid, entry.bindings_to_record());
        let is_recorded = entry.servers.is_some() && entry.account.started.is_some();
        let waits = self.accounting.find(seid, RecordKind::Start).is_some();
        if !is_recorded || entry.is_closing() || waits || bindings == entry.recorded {
            return;
        }
        self.entry(index).recorded = bindings;
        if !self.ask_usage(now, index, UsageFor::Interim) {
            self.record_interim(now, index);
        }
    }

    fn record(&mut self, now: Now, index: u32, kind: AccountingKind) {
        let Some(servers) = self.entry(index).servers.clone() else {
            return; // nobody keeps records
        };
        let record_kind = match kind {
            AccountingKind::Start => RecordKind::Start,
            AccountingKind::Interim => RecordKind::Interim,
            AccountingKind::Stop(_) => RecordKind::Stop,
        };
        let seid = self.entry(index).seid;
        let interim = RecordKind::Interim;
        self.accounting
            .withdraw(seid, interim, &mut self.aaa, &mut self.journal);
        let record = self.accounting_record(now, index, kind);
        let entry = self.entry(index);
        entry.recorded = entry.bindings_to_record();
        let attributes = match self.aaa.attributes(&servers, &record) {
            Ok(attributes) => attributes,
            Err(why) => return self.lose(seid, &why),
        };
        if self.accounting.len() >= self.configuration.limits.accounting_records as usize {
            if record_kind != RecordKind::Interim {
                self.lose(seid, "too many records wait for a server");
            }
            return;
        }
        let token = self.accounting.add(seid, record_kind, servers, attributes);
        self.accounting
            .prepare(token, &mut self.aaa, &mut self.journal);
    }

    fn lose(&mut self, seid: Seid, why: &str) {
        self.counters.count(Counter::AccountingLost);
        tracing::error!(session = %seid, why, "an accounting record is lost");
    }

    /// Handles the end of a record's delivery. The session's bindings may have changed while its Start was on its way.
    pub(super) fn on_accounted(&mut self, now: Now, token: u64) {
        let aaa = &mut self.aaa;
        let started = (self.accounting).on_accounted(token, aaa, &mut self.journal);
        if let Some(index) = started.and_then(|seid| self.sessions.find(seid)) {
            self.record_bindings(now, index);
        }
    }

    /// Goes on with the records that the store held.
    pub(super) fn resume_records(&mut self, now: Now, owed: Vec<(Seid, RecordKind, Owed)>) {
        let lost = self
            .accounting
            .resume(now.at, owed, &mut self.aaa, &mut self.journal);
        for seid in lost {
            self.lose(seid, "no RADIUS server is configured");
        }
    }

    fn accounting_record(&self, now: Now, index: u32, kind: AccountingKind) -> AccountingRecord {
        let entry = &self.sessions[index];
        let usage = entry.account.usage;
        let bindings = &entry.policy.forwarding.bindings;
        let routes = bindings.iter().filter(|b| b.role == Role::Route);
        let routes = routes.map(|route| FramedRoute {
            net: route.prefix,
            metric: route.metric,
        });
        let inputs = self.view().policy_inputs(entry);
        let (session_time, event_time) = match &entry.stage {
            Stage::Closing(ending) => (ending.lasted, ending.unix),
            _ => (entry.account.lasted(now.at), now.unix),
        };
        AccountingRecord {
            kind,
            username: entry.sent_name().to_vec(),
            acct_session_id: entry.seid.to_string(),
            multi_session_id: self.first_session(entry).map(|first| first.to_string()),
            nas_port: self.nas_port(index),
            class: entry.who.class.to_vec(),
            framed_ip: entry.ipv4(),
            framed_ipv6_prefixes: bindings.links().collect(),
            framed_ipv6_address: bindings.ipv6_address(),
            framed_interface_id: entry.status().and_then(|status| status.peer_interface_id),
            framed_routes: routes.collect(),
            delegated_prefixes: bindings.delegated().collect(),
            filter_id: inputs.aaa_profile_name().map(str::to_owned),
            authentic: entry.accepted_by.authentic(),
            event_time,
            session_time,
            input: traffic(usage.total).input,
            output: traffic(usage.total).output,
            families: usage.families().map(|[ipv4, ipv6]| FamilyUsage {
                ipv4: traffic(ipv4),
                ipv6: traffic(ipv6),
            }),
        }
    }
}

fn traffic(volume: Volume) -> FamilyTraffic {
    FamilyTraffic {
        input: Traffic {
            octets: volume.up_octets,
            packets: volume.up_packets,
        },
        output: Traffic {
            octets: volume.down_octets,
            packets: volume.down_packets,
        },
    }
}

impl Entry {
    /// Bindings as accounting records tell of them: how they are announced does not matter.
    pub(super) fn bindings_to_record(&self) -> Bindings {
        self.policy.forwarding.bindings.regardless_of_pools()
    }
}
