//! Conditions that the control plane finds, for the alarms.

use super::change::sessions;
use super::{ControlPlane, Now};
use crate::addresses::Usage;
use crate::alarms::{Acknowledgement, Change, Condition, Fault, Severity};
use crate::history::What;
use northbound::{Alarm, AlarmSeverity, ListAlarmsResponse, Refusal};

/// How far the use of a pool must be below its `alarm-threshold` for the alarm to be cleared, in percentage points.
const HYSTERESIS: u128 = 5;

fn condition(fault: Fault, resource: impl Into<String>, text: String) -> Condition {
    Condition {
        fault,
        resource: resource.into(),
        text,
    }
}

impl ControlPlane {
    /// Updates the alarms; called about once a second. `outside` are conditions found outside the control plane.
    pub(super) fn look_at_alarms(&mut self, now: Now, outside: Vec<Condition>) {
        self.sample_pools(now);
        let mut holds = outside;
        holds.extend(self.lost_user_planes());
        holds.extend(self.aaa.outages(now.at, &self.configuration));
        holds.extend(self.exhausted_pools());
        holds.extend(self.full_tables());
        for change in self.alarms.look(now.at, now.unix, holds) {
            let (raised, condition) = match &change {
                Change::Raised(condition) => (true, condition),
                Change::Cleared(condition) => (false, condition),
            };
            let (fault, resource, text) = (condition.fault, &condition.resource, &condition.text);
            match raised {
                true => tracing::warn!(alarm = fault.name(), resource, text, "alarm is raised"),
                false => tracing::info!(alarm = fault.name(), resource, "alarm is cleared"),
            }
            let what = What::Alarm {
                raised,
                fault,
                resource: super::note::bounded(resource),
                text: super::note::bounded(text),
            };
            self.note(now, what);
        }
    }

    /// Acknowledges the alarm of this name and resource; without a resource, the only one of this name.
    ///
    /// # Errors
    /// No such alarm is raised, or several are.
    pub(super) fn acknowledge_alarm(
        &mut self,
        now: Now,
        which: (&str, Option<&str>),
        by: String,
        comment: String,
    ) -> Result<(), Refusal> {
        let (fault, resource) = self.find_alarm(which)?;
        tracing::info!(
            alarm = fault.name(),
            resource,
            by,
            "an administrator acknowledges an alarm"
        );
        let what = What::Acknowledged {
            fault,
            resource: super::note::bounded(&resource),
            by: super::note::bounded(&by),
            comment: super::note::bounded(&comment),
        };
        self.note(now, what);
        let at = now.unix;
        let by = Acknowledgement { by, at, comment };
        self.alarms.acknowledge(fault, &resource, by);
        Ok(())
    }

    fn find_alarm(
        &self,
        (name, resource): (&str, Option<&str>),
    ) -> Result<(Fault, String), Refusal> {
        let raised = self.alarms.raised().into_iter();
        let raised = raised.map(|alarm| &alarm.condition);
        let named: Vec<&Condition> = raised.filter(|c| c.fault.name() == name).collect();
        let found = match resource {
            Some(resource) => named.iter().find(|c| c.resource == resource),
            None if named.len() > 1 => {
                let of = named.iter().map(|c| format!("`{}`", c.resource));
                let of = of.collect::<Vec<_>>().join(", ");
                let why = format!(
                    "{} alarms {name} are raised: expected the resource of one, which is {of}",
                    named.len()
                );
                return Err(Refusal::NotFound(why));
            }
            None => named.first(),
        };
        let found = found.map(|condition| (condition.fault, condition.resource.clone()));
        found.ok_or_else(|| {
            let of = resource.map_or(String::new(), |of| format!(" of `{of}`"));
            Refusal::NotFound(format!(
                "no alarm `{name}`{of} is raised: `sluice show alarms` lists the raised ones"
            ))
        })
    }

    fn lost_user_planes(&self) -> impl Iterator<Item = Condition> {
        let planes = self.topology.user_planes();
        let lost = planes.filter(|(id, plane)| !plane.retired && !self.user_planes.is_up(*id));
        lost.map(|(id, plane)| {
            let text = format!(
                "{} at {} is not associated: it has {}, and no subscriber can connect. Check that sluice-up runs and is \
                    reachable",
                plane.node_id,
                plane.address,
                sessions(self.sessions.on_user_plane(id))
            );
            condition(Fault::UserPlaneLost, &plane.node_id, text)
        })
    }

    fn exhausted_pools(&self) -> impl Iterator<Item = Condition> {
        self.addresses.usage().filter_map(|pool| {
            let Usage {
                name, used, size, ..
            } = pool;
            let resource = resource(&pool);
            let (fault, how) = match used {
                // everything is excluded: it is for fixed addresses
                _ if size == 0 => return None,
                used if used >= size => (
                    Fault::PoolExhausted,
                    "exhausted: new sessions get nothing from it",
                ),
                used if u128::from(used) * 100
                    >= u128::from(size) * self.threshold(&pool, &resource) =>
                {
                    (Fault::PoolAlmostExhausted, "almost exhausted")
                }
                _ => return None,
            };
            let text = format!("pool {name} is {how}; {used} of {size} are allocated. Add a pool");
            Some(condition(fault, resource, text))
        })
    }

    /// Use of a pool, in percent, from which it counts as almost exhausted. A raised alarm lasts until the use is well below.
    fn threshold(&self, pool: &Usage<'_>, resource: &str) -> u128 {
        let configuration = &self.configuration;
        let configured = match pool.is_ipv4 {
            true => configuration
                .ipv4_pools
                .get(pool.name)
                .map(|of| of.alarm_threshold),
            false => configuration
                .ipv6_pools
                .get(pool.name)
                .map(|of| of.alarm_threshold),
        };
        let threshold = configured.map_or(100, u128::from);
        match self.alarms.is_raised(Fault::PoolAlmostExhausted, resource) {
            true => threshold.saturating_sub(HYSTERESIS).max(1),
            false => threshold,
        }
    }

    /// Takes a sample of the use of each pool once an hour.
    fn sample_pools(&mut self, now: Now) {
        let usage = self.addresses.usage();
        let usage = usage.map(|pool| ((pool.is_ipv4, pool.name.to_owned()), pool.used));
        self.trends.sample(now.unix, usage, &mut self.journal);
    }

    fn full_tables(&self) -> impl Iterator<Item = Condition> {
        let (count, most) = (self.sessions.len(), self.configuration.limits.sessions);
        let full = (count >= most as usize).then(|| {
            let text =
                format!("{count} sessions reach `limits sessions`: new sessions are rejected");
            condition(Fault::SessionTableFull, "", text)
        });
        let waits = self.outbox.is_full().then(|| {
            let text = format!(
                "{} octets of events wait for the history, and new events are lost. Check whether its disk is full",
                self.outbox.octets()
            );
            condition(Fault::HistoryNotWritten, "", text)
        });
        full.into_iter().chain(waits)
    }

    /// Raised alarms, the most severe first, and their number by severity.
    pub(super) fn alarm_rows(&self) -> ListAlarmsResponse {
        let rows = self.alarms.raised().into_iter().map(|alarm| Alarm {
            name: alarm.condition.fault.name().into(),
            severity: severity(alarm.condition.fault.severity()).into(),
            resource: alarm.condition.resource.clone(),
            text: alarm.condition.text.clone(),
            raised_at: alarm.raised.into(),
            acknowledged: alarm.acknowledged.as_ref().map(acknowledgement_row),
        });
        let alarms: Vec<Alarm> = rows.collect();
        let count = |wanted: AlarmSeverity| {
            alarms
                .iter()
                .filter(|alarm| alarm.severity() == wanted)
                .count() as u32
        };
        ListAlarmsResponse {
            critical: count(AlarmSeverity::Critical),
            major: count(AlarmSeverity::Major),
            minor: count(AlarmSeverity::Minor),
            warning: count(AlarmSeverity::Warning),
            alarms,
        }
    }
}

fn acknowledgement_row(of: &Acknowledgement) -> northbound::Acknowledgement {
    northbound::Acknowledgement {
        by: of.by.clone(),
        at: of.at.into(),
        comment: of.comment.clone(),
    }
}

/// Place of a pool in the configuration: pools of the two families may have the same name.
fn resource(pool: &Usage<'_>) -> String {
    let kind = if pool.is_ipv4 {
        "ipv4-pools"
    } else {
        "ipv6-pools"
    };
    format!("{kind} {}", pool.name)
}

/// Severity in the local API.
pub(crate) fn severity(severity: Severity) -> AlarmSeverity {
    match severity {
        Severity::Critical => AlarmSeverity::Critical,
        Severity::Major => AlarmSeverity::Major,
        Severity::Minor => AlarmSeverity::Minor,
        Severity::Warning => AlarmSeverity::Warning,
    }
}
