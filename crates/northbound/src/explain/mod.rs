//! Why a home is online or not, and where its packets go, in sentences with their evidence.

mod absence;
mod denials;
mod sentences;

use crate::catalogue::EVENT_WORDS;
use crate::control_plane_client::ControlPlaneClient;
use crate::history_client::HistoryClient;
use crate::live_client::LiveClient;
use crate::telling::told;
use crate::time::moment;
use crate::words::word;
use crate::{
    Alarm, DropCounter, Event, FindSubscriberRequest, FindSubscriberResponse,
    GetSessionPolicyRequest, GetSessionRequest, LineHistory, ListAlarmsRequest, ListEventsRequest,
    ListLinesRequest, ListUserPlaneDropsRequest, ListUserPlanesRequest, Offender, SessionPolicy,
    SessionState, Subscriber, SubscriberState, UserPlane, WatchStateRequest,
};
use serde::Serialize;
use tonic::Status;
use tonic::transport::Channel;

/// How many of the latest events are evidence.
const LATEST: u32 = 6;
/// How many kinds of drops are named.
const DROPS: usize = 5;
/// The first state comes at once, whatever the time to the next, in milliseconds.
const INTERVAL: u32 = 60_000;

/// What is known, and what follows from it.
#[derive(Debug, Default, Serialize)]
pub struct Explanation {
    /// In words.
    pub sentences: Vec<String>,
    /// Its sessions, with counters that were read from the user plane now.
    pub sessions: Vec<SubscriberState>,
    /// What the policies of these sessions have done, in their order. Absent where a user plane does not tell.
    pub policies: Vec<Option<SessionPolicy>>,
    /// What happened to it last.
    pub events: Vec<Event>,
    /// What happened on the lines where it has been, as far back as the history goes. Absent while it is online.
    pub lines: Vec<LineHistory>,
    /// Held senders of those lines: their discovery packets are not answered.
    pub held: Vec<Offender>,
    /// The user planes that it is on, or was on last.
    pub user_planes: Vec<UserPlane>,
    /// Alarms that concern it.
    pub alarms: Vec<Alarm>,
    /// What those user planes have dropped since their start, of anybody's packets.
    pub drops: Vec<DropCounter>,
    /// Which of that could not be asked, and why.
    pub missing: Vec<String>,
}

impl Explanation {
    /// Asks a control plane what is known of a subscriber, and says what follows.
    ///
    /// # Errors
    /// What the control plane refuses, or why it does not answer.
    pub async fn of(channel: Channel, subscriber: &str) -> Result<Self, Status> {
        let mut asked = Asked::new(channel, subscriber);
        let mut found = asked.found().await?;
        let names = std::mem::take(&mut found.similar);
        asked.read_counters(&mut found).await;
        let events = asked.events().await?;
        let lines = match is_online(&found) {
            true => Vec::new(),
            false => asked.lines().await?,
        };
        let held = match lines.is_empty() {
            true => Vec::new(),
            false => asked.held(&lines).await?,
        };
        let planes = planes_of(&found, &events);
        let mut explanation = Explanation {
            policies: asked.policies(&found).await,
            user_planes: asked.user_planes().await?,
            alarms: asked.alarms().await?,
            events,
            lines,
            held,
            ..Explanation::default()
        };
        for plane in &planes {
            match asked.drops(plane).await {
                Ok(drops) => explanation.drops.extend(most(drops)),
                Err(why) => explanation.missing.push(why.message().to_owned()),
            }
        }
        explanation
            .user_planes
            .retain(|plane| planes.contains(&plane.node_id));
        explanation
            .alarms
            .retain(|alarm| concerns(alarm, &planes, &found));
        explanation.say(subscriber, &found, &names);
        explanation.sessions = found.subscribers;
        Ok(explanation)
    }

    /// Lines of text: the sentences, and what happened last.
    pub fn page(&self) -> Vec<String> {
        let mut lines = self.sentences.clone();
        if !self.events.is_empty() {
            lines.extend([String::new(), "What happened last (UTC):".into()]);
            lines.extend(self.events.iter().map(|event| {
                let at = moment(event.at);
                format!(
                    "  {at}  {:<11}  {}",
                    word(EVENT_WORDS, event.kind()),
                    told(event)
                )
            }));
        }
        lines
    }
}

/// A control plane that is asked about a subscriber.
struct Asked<'a> {
    control_plane: ControlPlaneClient<Channel>,
    history: HistoryClient<Channel>,
    live: LiveClient<Channel>,
    subscriber: &'a str,
}

impl<'a> Asked<'a> {
    fn new(channel: Channel, subscriber: &'a str) -> Self {
        Asked {
            control_plane: ControlPlaneClient::new(channel.clone()),
            history: HistoryClient::new(channel.clone()),
            live: LiveClient::new(channel),
            subscriber,
        }
    }

    async fn found(&mut self) -> Result<FindSubscriberResponse, Status> {
        let subscriber = self.subscriber.to_owned();
        let request = FindSubscriberRequest { subscriber };
        Ok(self.history.find_subscriber(request).await?.into_inner())
    }

    /// Reads the counters of the sessions from their user planes. A session may end at this moment.
    async fn read_counters(&mut self, found: &mut FindSubscriberResponse) {
        for state in &mut found.subscribers {
            let Some(session) = &state.session else {
                continue;
            };
            let request = GetSessionRequest {
                id: session.id.clone(),
            };
            if let Ok(now) = self.control_plane.get_session(request).await {
                state.session = now.into_inner().session;
            }
        }
    }

    async fn events(&mut self) -> Result<Vec<Event>, Status> {
        let request = ListEventsRequest {
            subscriber: self.subscriber.to_owned(),
            last: Some(LATEST),
            ..ListEventsRequest::default()
        };
        let mut listing = self.history.list_events(request).await?.into_inner();
        let mut events = Vec::new();
        while let Some(part) = listing.message().await? {
            events.extend(part.events);
        }
        Ok(events)
    }

    /// What happened on the lines where it has been.
    async fn lines(&mut self) -> Result<Vec<LineHistory>, Status> {
        let request = ListLinesRequest {
            subscriber: self.subscriber.to_owned(),
            since: None,
        };
        let mut listing = self.history.list_lines(request).await?.into_inner();
        let mut lines = Vec::new();
        while let Some(part) = listing.message().await? {
            lines.extend(part.lines);
        }
        Ok(lines)
    }

    /// Senders on these lines whose discovery packets are not answered now.
    async fn held(&mut self, lines: &[LineHistory]) -> Result<Vec<Offender>, Status> {
        let request = WatchStateRequest {
            interval_milliseconds: INTERVAL,
        };
        let mut states = self.live.watch_state(request).await?.into_inner();
        let planes = states.message().await?.unwrap_or_default().user_planes;
        let offenders = planes.into_iter().flat_map(|plane| plane.offenders);
        let mut held: Vec<Offender> = offenders.collect();
        held.retain(|row| {
            let mut subscribers = lines.iter().filter_map(|of| of.subscriber.as_ref());
            row.held_seconds > 0 && subscribers.any(|who| is_of(row, who))
        });
        Ok(held)
    }

    /// What the policies of its sessions have done, as far as the user planes tell.
    async fn policies(&mut self, found: &FindSubscriberResponse) -> Vec<Option<SessionPolicy>> {
        let mut policies = Vec::new();
        for state in &found.subscribers {
            let session = state.session.as_ref().filter(|_| state.on_user_plane);
            policies.push(match session {
                Some(session) => self.policy(session.id.clone()).await,
                None => None,
            });
        }
        policies
    }

    async fn policy(&mut self, id: String) -> Option<SessionPolicy> {
        let request = GetSessionPolicyRequest { id };
        let told = self.control_plane.get_session_policy(request).await;
        told.ok()?.into_inner().policy
    }

    async fn user_planes(&mut self) -> Result<Vec<UserPlane>, Status> {
        let request = ListUserPlanesRequest {};
        let told = self.control_plane.list_user_planes(request).await?;
        Ok(told.into_inner().user_planes)
    }

    async fn alarms(&mut self) -> Result<Vec<Alarm>, Status> {
        let told = self.history.list_alarms(ListAlarmsRequest {}).await?;
        Ok(told.into_inner().alarms)
    }

    async fn drops(&mut self, user_plane: &str) -> Result<Vec<DropCounter>, Status> {
        let request = ListUserPlaneDropsRequest {
            user_plane: user_plane.to_owned(),
        };
        let told = self.control_plane.list_user_plane_drops(request).await?;
        Ok(told.into_inner().drops)
    }
}

/// Whether one of its sessions is online. Otherwise its line is looked up: a hold may begin before the refused session has ended.
fn is_online(found: &FindSubscriberResponse) -> bool {
    let mut sessions = found
        .subscribers
        .iter()
        .filter_map(|of| of.session.as_ref());
    sessions.any(|session| session.state() == SessionState::Online)
}

/// Whether a held sender is this subscriber, or its line.
fn is_of(row: &Offender, who: &Subscriber) -> bool {
    row.user_plane == who.user_plane
        && row.port == who.port
        && (row.s_tag, row.c_tag) == (who.s_tag, who.c_tag)
        && row.circuit_id == who.circuit_id.as_deref().unwrap_or_default()
        && (row.level != "mac" || row.mac == who.mac)
}

/// The user planes that a subscriber is on, or was on last.
fn planes_of(found: &FindSubscriberResponse, events: &[Event]) -> Vec<String> {
    let now = found
        .subscribers
        .iter()
        .filter_map(|state| state.session.as_ref());
    let mut planes: Vec<String> = now.map(|session| session.user_plane.clone()).collect();
    if planes.is_empty() {
        let last = events
            .iter()
            .rev()
            .find_map(|event| event.subscriber.as_ref());
        planes.extend(last.map(|who| who.user_plane.clone()));
    }
    planes.sort();
    planes.dedup();
    planes
}

/// What was dropped most often.
fn most(mut drops: Vec<DropCounter>) -> Vec<DropCounter> {
    drops.retain(|drop| drop.count > 0);
    drops.sort_by_key(|drop| std::cmp::Reverse(drop.count));
    drops.truncate(DROPS);
    drops
}

/// Whether an alarm is about what a subscriber needs.
fn concerns(alarm: &Alarm, planes: &[String], found: &FindSubscriberResponse) -> bool {
    let of = &alarm.resource;
    // a pool is named with its kind: `ipv4-pools homes`
    let pool = of.rsplit(' ').next().unwrap_or_default();
    let needs = |state: &SubscriberState| {
        let mut pools = state.pools.iter();
        state.server_group.as_ref() == Some(of) || pools.any(|name| name == pool)
    };
    of.is_empty()
        || planes.contains(of)
        || found.subscribers.iter().any(needs)
        || alarm.name.starts_with("aaa-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Session;

    fn found(states: &[SessionState]) -> FindSubscriberResponse {
        let session = |state: &SessionState| SubscriberState {
            session: Some(Session {
                state: (*state).into(),
                ..Session::default()
            }),
            ..SubscriberState::default()
        };
        FindSubscriberResponse {
            subscribers: states.iter().map(session).collect(),
            ..FindSubscriberResponse::default()
        }
    }

    /// The end of a refused session and the hold of its sender overlap.
    #[test]
    fn a_subscriber_whose_only_session_is_closing_is_not_online() {
        assert!(!is_online(&found(&[])));
        assert!(!is_online(&found(&[SessionState::Closing])));
        assert!(!is_online(&found(&[SessionState::Connecting])));
        assert!(is_online(&found(&[
            SessionState::Closing,
            SessionState::Online
        ])));
    }
}
