//! Failed set-ups: a MAC address on its access line that fails again and again is not answered for a while, nor is a line on which ever
//! new addresses fail; a line whose logins are rejected may be locked out. Sessions that are there are not affected
//! (`docs/decisions/0036-protection-by-line.md`).

use super::rivals::NoPlace;
use super::{ControlPlane, Now};
use crate::back_offs::{Failing, Rule, Sender, What};
use crate::counters::Counter;
use crate::entry::{Entry, LineIds};
use crate::subscribers::Identity;
use crate::topology::{SegmentId, Topology};
use config::Configuration;
use config::model::AccessProfile;
use core::time::Duration;
use northbound::{Offender, Refusal};
use session::{Cause, Circuit};

/// Maximum number of rows in `show protection`.
const SHOWN: usize = 64;

/// Kinds of the rows in `show protection`.
const SET_UPS: &str = "failed-set-ups";
const LOGINS: &str = "failed-logins";

fn rule_of_set_ups(profile: &AccessProfile) -> Rule {
    let rule = &profile.setup_back_off;
    Rule::new(rule.after, rule.first, rule.longest)
}

fn rule_of_logins(profile: &AccessProfile) -> Rule {
    let rule = &profile.lock_out;
    Rule::new(rule.after, rule.time, rule.time)
}

fn rules(configuration: &Configuration) -> impl Iterator<Item = (&String, [Rule; 2])> {
    let profiles = configuration.access_profiles.iter();
    profiles.map(|(name, profile)| (name, [rule_of_set_ups(profile), rule_of_logins(profile)]))
}

impl ControlPlane {
    /// Refuses a discovery packet of a sender that backs off, or whose line is locked out.
    pub(super) fn check_back_off(
        &mut self,
        now: Now,
        segment: SegmentId,
        circuit: &Circuit,
        line: impl FnOnce() -> LineIds,
    ) -> Result<(), NoPlace> {
        if self.back_offs.is_empty() {
            return Ok(());
        }
        let Some(sender) = self.sender(segment, circuit, &line()) else {
            return Ok(());
        };
        let mut is_held = |sender: &Sender| self.back_offs.is_held(now.at, sender);
        if is_held(&sender.with(What::Logins)) {
            return Err((Counter::LineLockedOut, "access line is locked out"));
        }
        if is_held(&sender.with(What::OfLine)) || is_held(&sender) {
            return Err((Counter::SetupBackOff, "too many failed attempts"));
        }
        Ok(())
    }

    fn sender(&self, segment: SegmentId, circuit: &Circuit, line: &LineIds) -> Option<Sender> {
        let port = self.topology.segment(segment).port;
        Sender::of_mac(Identity::of_line(port, circuit, line), circuit.mac)
    }

    fn sender_of(&self, entry: &Entry) -> Option<Sender> {
        self.sender(entry.segment, &entry.circuit, &entry.tags.line)
    }

    /// Counts a rejected login of a session's access line, and the failed set-up of its MAC address.
    pub(super) fn count_failed_login(&mut self, now: Now, index: u32) {
        let entry = &self.sessions[index];
        let Some(sender) = self.sender_of(entry) else {
            return;
        };
        let rule = rule_of_logins(self.view().access_profile(entry.segment));
        self.fail(now, index, sender.with(What::Logins), rule);
        self.count_failed_set_up(now, index);
    }

    /// Counts the failed set-up of a session's MAC address on its access line.
    pub(super) fn count_failed_set_up(&mut self, now: Now, index: u32) {
        let entry = &self.sessions[index];
        if let Some(sender) = self.sender_of(entry) {
            let rule = rule_of_set_ups(self.view().access_profile(entry.segment));
            let of_line = sender.with(What::OfLine);
            if !self.fail(now, index, sender, rule) {
                self.fail(now, index, of_line, rule.of_line());
            }
        }
    }

    /// Counts a failure. Returns whether its sender is held for it.
    fn fail(&mut self, now: Now, index: u32, sender: Sender, rule: Rule) -> bool {
        if rule.after == 0 {
            return false;
        }
        let entry = &self.sessions[index];
        let (vlans, mac) = (entry.circuit.tags.vids().into(), entry.circuit.mac);
        let (what, line) = (sender.what(), sender.line().text(&self.topology));
        if self.back_offs.make_room(now.at, &sender) {
            self.counters.count(Counter::BackOffsFull);
        }
        let hold = self.back_offs.fail(now.at, sender, rule, vlans, mac);
        let Some(seconds) = hold.map(|hold| hold.as_secs()) else {
            return false;
        };
        match what {
            What::Logins => tracing::warn!(
                line,
                seconds,
                "access line is locked out: too many rejected logins"
            ),
            What::OfLine => tracing::warn!(
                line, %mac, seconds,
                "set-ups of several MAC addresses of an access line fail: its discovery is not answered for a while"
            ),
            What::OfMac(_) => {
                tracing::debug!(line, %mac, seconds, "set-ups fail: discovery is not answered for a while")
            }
        }
        true
    }

    /// Counts a session that ends before it was online by the subscriber's doing. Who gives up while AAA, the store or the user plane is slow
    /// has not failed. What a rejection has counted is not counted again.
    pub(super) fn note_outcome(&mut self, now: Now, index: u32, cause: Cause) {
        let entry = &self.sessions[index];
        let failed = match cause {
            Cause::UserRequest | Cause::LostCarrier => entry.waits_for_login(),
            Cause::NegotiationFailed | Cause::AuthFailed | Cause::Loopback => {
                entry.waits_for_login() || entry.has_policy()
            }
            _ => false,
        };
        if failed && !entry.noted.online && !entry.noted.refused {
            self.count_failed_set_up(now, index);
        }
    }

    /// Forgets the failures of a session that is online.
    pub(super) fn forget_failures(&mut self, index: u32) {
        if !self.back_offs.is_empty()
            && let Some(sender) = self.sender_of(&self.sessions[index])
        {
            for what in [What::Logins, What::OfLine, sender.what()] {
                self.back_offs.succeed(&sender.with(what));
            }
        }
    }

    /// Forgets all failures if a rule was changed, and those on removed ports.
    pub(super) fn update_back_offs(&mut self, before: &Configuration) {
        if !rules(before).eq(rules(&self.configuration)) {
            self.back_offs.retain(|_, _| false);
        }
        let topology = &self.topology;
        self.back_offs.retain(|sender, _| {
            let port = sender.port();
            port.is_some_and(|port| topology.has_port(port) && !topology.port(port).retired)
        });
    }

    /// Forgets the failures of a MAC address, of a circuit id, or of a line, as `show protection` prints them.
    ///
    /// # Errors
    /// Nobody of this name is held.
    pub(super) fn clear_back_off(&mut self, who: &str) -> Result<(), Refusal> {
        let topology = &self.topology;
        let mut found = false;
        self.back_offs.retain(|sender, failing| {
            let is_meant = is_named(topology, sender, failing, who);
            found |= is_meant;
            !is_meant
        });
        match found {
            true => Ok(()),
            false => Err(Refusal::NotFound(format!(
                "nobody backs off or is locked out at `{who}`: `sluice show protection` lists them"
            ))),
        }
    }

    /// Rows of `show protection`, those that are held for longest.
    pub(super) fn failing_senders(&self, now: Duration) -> Vec<Offender> {
        let mut held: Vec<(&Sender, &Failing)> = self.back_offs.held().collect();
        if held.len() > SHOWN {
            let longest =
                |(_, failing): &(&Sender, &Failing)| core::cmp::Reverse(failing.held(now));
            held.select_nth_unstable_by_key(SHOWN, longest);
            held.truncate(SHOWN);
        }
        let rows = held.into_iter();
        rows.filter_map(|(sender, failing)| self.failing_sender(now, sender, failing))
            .collect()
    }

    fn failing_sender(
        &self,
        now: Duration,
        sender: &Sender,
        failing: &Failing,
    ) -> Option<Offender> {
        let port = sender.port().filter(|port| self.topology.has_port(*port))?;
        let port = self.topology.port(port);
        let circuit_id = match sender.line() {
            Identity::Circuit(_, line) => line.circuit_id.as_deref().unwrap_or_default(),
            _ => &[],
        };
        let (kind, level) = match sender.what() {
            What::OfMac(_) => (SET_UPS, "mac"),
            What::OfLine => (SET_UPS, "line"),
            What::Logins => (LOGINS, "line"),
        };
        let [s_tag, c_tag] = failing.vlans.map(|vid| vid.map(u32::from));
        Some(Offender {
            user_plane: self.topology.user_plane(port.user_plane).node_id.clone(),
            port: port.name.clone(),
            s_tag,
            c_tag,
            mac: failing.mac.to_string(),
            circuit_id: circuit_id.escape_ascii().to_string(),
            kind: kind.into(),
            level: level.into(),
            dropped: failing.unanswered,
            since_seconds: now.saturating_sub(failing.since).as_secs(),
            holds: failing.holds,
            held_seconds: failing.held(now).as_millis().div_ceil(1000) as u64,
        })
    }
}

/// Whether a sender is meant by a MAC address, a circuit id, or the text of a line.
fn is_named(topology: &Topology, sender: &Sender, failing: &Failing, who: &str) -> bool {
    let circuit_id = match sender.line() {
        Identity::Circuit(_, line) => line.circuit_id.as_deref(),
        _ => None,
    };
    failing.mac.to_string().eq_ignore_ascii_case(who)
        || circuit_id.is_some_and(|id| id.escape_ascii().to_string() == who)
        || sender.line().text(topology) == who
}
