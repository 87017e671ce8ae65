//! Sessions in detail, as clients of the local API put them together from several answers.

use crate::{
    FindSubscriberResponse, PolicySetting, QueueLimit, QueueRow, Session, SessionPolicy,
    SubscriberState,
};
use serde::Serialize;

/// Label of the setting whose value is the rate of a session's queues.
pub const RATE_DOWN: &str = "rate down";
/// Origin of a rate that the access node says of the access line.
const LINE: &str = "line";

/// A session with what its policies are and have done.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SessionDetails {
    /// The session.
    #[serde(flatten)]
    pub session: Session,
    /// Settings of its policy, each with the origin of its value.
    pub settings: Vec<PolicySetting>,
    /// What its policies have done. Absent if its user plane does not tell.
    pub policy: Option<SessionPolicy>,
    /// What the packets to it have waited for in the last seconds: line, plan, class, aggregate, port or nothing. Absent if it has no queues.
    pub limited_by: Option<&'static str>,
}

impl SessionDetails {
    /// Puts them together. `states` are those of the session's subscriber, as far as they are known.
    pub fn of(
        session: Session,
        states: Vec<SubscriberState>,
        policy: Option<SessionPolicy>,
    ) -> Self {
        let is_own = |state: &SubscriberState| {
            let of = state.session.as_ref();
            of.is_some_and(|of| of.id == session.id)
        };
        let own = states.into_iter().find(is_own);
        let settings = own.map(|state| state.policy).unwrap_or_default();
        let limited_by = policy.as_ref().and_then(|p| limited_by(&settings, p));
        SessionDetails {
            session,
            settings,
            policy,
            limited_by,
        }
    }

    /// Its queues, each with what its packets wait for; none if it has none, or its user plane does not tell.
    pub fn queues(&self) -> Vec<QueueRow> {
        let policy = self.policy.as_ref();
        let queues = policy.and_then(|policy| Some(&policy.down.as_ref()?.queues));
        let row = |queue| QueueRow::of(queue, limit(&self.settings, queue.limited_by()));
        queues.into_iter().flatten().map(row).collect()
    }

    /// Why it is not known which queues it has, if it is not.
    pub fn missing_queues(&self) -> Option<String> {
        let id = &self.session.id;
        let silent = self.policy.is_none();
        silent.then(|| format!("the user plane of session {id} does not say what its queues are"))
    }

    /// The rate of its queues, if that is what limits it.
    pub fn limiting_rate(&self) -> Option<&PolicySetting> {
        let own = matches!(self.limited_by, Some(LINE | "plan"));
        own.then(|| rate(&self.settings)).flatten()
    }
}

impl FindSubscriberResponse {
    /// The sessions that were found, those of a subscriber together.
    pub fn into_sessions(self) -> Vec<Session> {
        let states = self.subscribers.into_iter();
        let mut sessions: Vec<Session> = states.filter_map(|state| state.session).collect();
        sessions.sort_by(|a, b| (a.subscriber_handle, &a.id).cmp(&(b.subscriber_handle, &b.id)));
        sessions
    }
}

fn rate(settings: &[PolicySetting]) -> Option<&PolicySetting> {
    settings.iter().find(|setting| setting.label == RATE_DOWN)
}

/// What the packets to a session have waited for in the last seconds, in a word; `None`: it has no queues.
fn limited_by(settings: &[PolicySetting], policy: &SessionPolicy) -> Option<&'static str> {
    let queues = &policy.down.as_ref()?.queues;
    let limits = queues.iter().map(|q| (q.limited_by(), q.waiting_octets));
    let limited = limits.filter(|(limit, _)| *limit != QueueLimit::Unspecified);
    let most = limited.max_by_key(|(_, waiting)| *waiting);
    let most = most.map_or(QueueLimit::Unspecified, |(limit, _)| limit);
    (!queues.is_empty()).then(|| limit(settings, most))
}

/// What packets wait for, in a word.
fn limit(settings: &[PolicySetting], limit: QueueLimit) -> &'static str {
    match limit {
        QueueLimit::Unspecified => "nothing",
        QueueLimit::Class => "class",
        QueueLimit::Subscriber if rate(settings).is_some_and(|r| r.origin == LINE) => LINE,
        QueueLimit::Subscriber => "plan",
        QueueLimit::Aggregate => "aggregate",
        QueueLimit::Port => "port",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DirectionPolicy, QueueState};

    fn queue(limit: QueueLimit, waiting_octets: u64) -> QueueState {
        QueueState {
            limited_by: limit.into(),
            waiting_octets,
            ..QueueState::default()
        }
    }

    /// Details of a session whose rate has this origin.
    fn details(origin: &str, queues: Vec<QueueState>) -> SessionDetails {
        let session = Session {
            id: "7".into(),
            ..Session::default()
        };
        let setting = |label: &str, origin: &str| PolicySetting {
            label: label.into(),
            value: "50000 kbit/s".into(),
            origin: origin.into(),
            ..PolicySetting::default()
        };
        let state = |id: &str, policy| SubscriberState {
            session: Some(Session {
                id: id.into(),
                ..Session::default()
            }),
            policy,
            ..SubscriberState::default()
        };
        let own = vec![setting("rate up", "aaa"), setting(RATE_DOWN, origin)];
        let down = DirectionPolicy {
            queues,
            ..DirectionPolicy::default()
        };
        let policy = SessionPolicy {
            down: Some(down),
            ..SessionPolicy::default()
        };
        let states = vec![state("6", Vec::new()), state("7", own)];
        SessionDetails::of(session, states, Some(policy))
    }

    #[test]
    fn what_limits_a_session_is_what_its_fullest_queue_waits_for() {
        let own = || queue(QueueLimit::Subscriber, 5);
        let idle = QueueState::default;
        for (origin, queues, limit, has_rate) in [
            ("line", vec![own()], Some("line"), true),
            (
                "profile",
                vec![queue(QueueLimit::Unspecified, 9), own()],
                Some("plan"),
                true,
            ),
            (
                "line",
                vec![own(), queue(QueueLimit::Port, 9)],
                Some("port"),
                false,
            ),
            ("line", vec![idle()], Some("nothing"), false),
            ("line", vec![], None, false),
        ] {
            let details = details(origin, queues);
            assert_eq!(details.limited_by, limit);
            let rate = details.limiting_rate().map(|rate| &*rate.value);
            assert_eq!(rate, has_rate.then_some("50000 kbit/s"), "{limit:?}");
        }
    }
}
