//! Events for the history. Each event is in the same batch of the store as the change that it reports.

use super::reauthorize::ASKED_AGAIN;
use super::{Awaited, ControlPlane, Now, Output};
use crate::authorization::Authorization;
use crate::counters::Counter;
use crate::entry::{Entry, Noted, Stage};
use crate::history::{Bounds, Event, Kind, Step, Subscriber, What};
use crate::topology::{Topology, UserPlaneId};
use config::Configuration;
use policy::{Bindings, Origins, Policy};
use session::Cause;

/// Maximum length of an event's text in characters, and of a server's reply in octets.
const MAX_TEXT: usize = 1024;

/// Event of the system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Kind of event.
    pub kind: Kind,
    /// Resource that it concerns; empty for the control plane as a whole.
    pub resource: String,
    /// Person who caused it, if any.
    pub by: Option<String>,
    /// Description.
    pub text: String,
}

/// Subscriber and access line of a session, as events name it.
fn named<'a>(topology: &'a Topology, entry: &'a Entry) -> Subscriber<'a> {
    let port = topology.port(topology.segment(entry.segment).port);
    let (outer, inner) = entry.circuit.tags.vids();
    Subscriber {
        session: entry.seid.0,
        user: &entry.who.username,
        mac: entry.circuit.mac.0,
        user_plane: &topology.user_plane(port.user_plane).node_id,
        port: &port.name,
        vlans: [outer, inner],
        line: [&entry.tags.line.circuit_id, &entry.tags.line.remote_id].map(Option::as_deref),
    }
}

/// Text, cut to the maximum length.
pub(super) fn bounded(text: &str) -> &str {
    match text.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

impl ControlPlane {
    pub(super) fn note(&mut self, now: Now, what: What<'_>) {
        let unix = now.unix;
        if !self.outbox.add(&Event { unix, what }) {
            self.counters.count(Counter::HistoryLost);
        }
    }

    /// Subscriber and access line of a session, as events name it.
    pub(super) fn named<'a>(&'a self, entry: &'a Entry) -> Subscriber<'a> {
        named(&self.topology, entry)
    }

    /// Adds an event of a session.
    fn note_step(&mut self, now: Now, index: u32, step: Step<'_>) {
        let who = named(&self.topology, &self.sessions[index]);
        let (unix, what) = (now.unix, What::Subscriber(who, step));
        if !self.outbox.add(&Event { unix, what }) {
            self.counters.count(Counter::HistoryLost);
        }
    }

    /// Adds an event of the system.
    pub(super) fn on_note(&mut self, now: Now, note: &Note) {
        let what = What::System {
            kind: note.kind,
            resource: bounded(&note.resource),
            by: note.by.as_deref().map(bounded),
            text: bounded(&note.text),
        };
        self.note(now, what);
    }

    /// Adds an event of a new or lost association.
    pub(super) fn note_user_plane(&mut self, now: Now, plane: UserPlaneId, kind: Kind, text: &str) {
        let resource = self.topology.user_plane(plane).node_id.clone();
        let (by, text) = (None, text.to_owned());
        self.on_note(
            now,
            &Note {
                kind,
                resource,
                by,
                text,
            },
        );
    }

    /// Adds an event of a rejected subscriber.
    pub(super) fn note_refused(&mut self, now: Now, index: u32, why: &str, reply: &[u8]) {
        self.entry(index).noted.refused = true;
        if !self.takes_attempt(now) {
            return;
        }
        let entry = &self.sessions[index];
        let servers = entry.servers.clone();
        let step = Step::Refused {
            dialled: entry.noted.dialled,
            servers: servers.as_deref(),
            why: bounded(why),
            reply: &reply[..reply.len().min(MAX_TEXT)],
        };
        self.note_step(now, index, step);
    }

    fn takes_attempt(&mut self, now: Now) -> bool {
        let takes = self.outbox.takes_attempt(now.at);
        if !takes {
            self.counters.count(Counter::AttemptsNotKept);
        }
        takes
    }

    /// Adds an event with the bindings of a session, if they differ from the last event's.
    pub(super) fn note_bindings(&mut self, now: Now, index: u32) {
        let entry = &self.sessions[index];
        let (bindings, noted) = (entry.open_bindings(), entry.noted.clone());
        if bindings == noted.bindings {
            return;
        }
        let instance = self.topology.instance(entry.instance).name.clone();
        let servers = entry.servers.clone();
        let inputs = self.view().policy_inputs(entry);
        let profile = inputs.aaa_profile_name().map(str::to_owned);
        if let (false, Some(fallback)) = (noted.online, entry.accepted_by.fallback()) {
            let servers = servers.as_deref();
            self.note_step(now, index, Step::FellBack { servers, fallback });
        }
        let step = match noted.online {
            false => Step::Online {
                dialled: noted.dialled,
                servers: servers.as_deref(),
                profile: profile.as_deref(),
                instance: &instance,
                bindings: bindings.clone(),
            },
            true => Step::Changed {
                instance: &instance,
                before: noted.bindings,
                bindings: bindings.clone(),
            },
        };
        self.note_step(now, index, step);
        let noted = &mut self.entry(index).noted;
        (noted.online, noted.bindings) = (true, bindings);
    }

    /// Adds an event of a changed authorization.
    pub(super) fn note_authorized(
        &mut self,
        now: Now,
        index: u32,
        change: &Authorization,
        before: &Policy,
    ) {
        let rows = |policy: &Policy| policy.rows(&Origins::default());
        let policy = self.sessions[index].policy.clone();
        let changed = rows(before).into_iter().zip(rows(&policy));
        let changed = changed.filter(|(was, is)| was.value != is.value);
        let said = |value: String| match value.is_empty() {
            true => "none".to_owned(),
            false => value,
        };
        let changed = changed.map(|(was, is)| {
            let (label, was, is) = (was.setting.label, said(was.value), said(is.value));
            format!("{label}: {was}, now {is}")
        });
        let next = change.pools.texts();
        let next = next.map(|pool| format!("{pool} from the next connection"));
        let text = match changed.chain(next).collect::<Vec<_>>().join("; ") {
            same if same.is_empty() => "it has these values already".to_owned(),
            changed => changed,
        };
        let by = match change.by {
            Some(server) => format!("RADIUS server {server}"),
            None => ASKED_AGAIN.to_owned(),
        };
        let text = bounded(&text);
        self.note_step(now, index, Step::Authorized { by: &by, text });
    }

    /// Adds an event of a session's end.
    pub(super) fn note_end(&mut self, now: Now, index: u32, cause: Cause) {
        let entry = &self.sessions[index];
        let (noted, by) = (entry.noted.clone(), entry.under_way.ended_by.clone());
        if !noted.online {
            // a refusal has said it
            if !noted.refused && self.takes_attempt(now) {
                let dialled = noted.dialled;
                self.note_step(now, index, Step::Failed { dialled, cause });
            }
            return;
        }
        let instance = self.topology.instance(entry.instance).name.clone();
        let step = Step::Ended {
            started: entry.account.started.map_or(0, |started| started.unix),
            cause,
            by: by.as_deref(),
            instance: &instance,
            bindings: noted.bindings,
        };
        self.note_step(now, index, step);
    }

    /// Adds an event with the traffic of a session that has ended, when its last counters are known.
    pub(super) fn note_counted(&mut self, now: Now, index: u32) {
        let entry = &self.sessions[index];
        let (Stage::Closing(ending), Some(started)) = (&entry.stage, entry.account.started) else {
            return;
        };
        let usage = entry.account.usage;
        let instance = self.topology.instance(entry.instance).name.clone();
        let step = Step::Counted {
            started: started.unix,
            ended: ending.unix,
            cause: ending.cause,
            instance: &instance,
            bindings: entry.noted.bindings.clone(),
            traffic: usage.total.into(),
            families: usage.families().map(|families| families.map(Into::into)),
        };
        self.note_step(now, index, step);
    }

    /// Adds the open block of events to the current batch. It goes to the history when that batch is on disk.
    pub(super) fn store_events(&mut self) {
        if let Some((number, block)) = self.outbox.store(&mut self.journal) {
            self.journal.await_batch(Awaited::Block(number, block));
        }
    }

    /// Applies the configured limits of the history.
    pub(super) fn bound_history(&mut self) {
        let bounds = history_bounds(&self.configuration);
        self.outputs.push_back(Output::HistoryBounds(bounds));
    }

    /// Whether the history has every event, and the store has deleted its copies.
    pub fn is_history_settled(&self) -> bool {
        self.outbox.is_settled()
    }

    /// Deletes the store's copies of events that the history has, although nothing else is to be written.
    pub fn settle_history(&mut self) {
        self.outbox.forget(&mut self.journal);
    }
}

/// Configured limits of the history.
pub(crate) fn history_bounds(configuration: &Configuration) -> Bounds {
    const DAY: u32 = 86_400;
    let history = &configuration.history;
    Bounds {
        keep: u32::from(history.keep) * DAY,
        octets: u64::from(history.size) << 20,
    }
}

impl Entry {
    /// Bindings of the address families that are open, or are about to open. The history ignores how they are announced.
    fn open_bindings(&self) -> Bindings {
        let bindings = &self.policy.forwarding.bindings;
        let open = bindings.filtered(|binding| self.is_open(binding));
        open.regardless_of_pools().with_metrics(|_| None)
    }

    /// State of a stored session in the history.
    pub(super) fn noted_before(&self) -> Noted {
        Noted {
            online: self.account.started.is_some(),
            bindings: self.open_bindings(),
            ..Noted::default()
        }
    }
}
