//! Calls of the local API.

use super::filter::Filter;
use super::{ControlPlane, Now, Output};
use crate::counters::row;
use crate::entry::{Entry, Stage};
use crate::subscribers::Identity;
use crate::topology::{Seid, UserPlaneId};
use crate::user_planes::UsageFor;
use northbound::{
    Answer, PAGE, Refusal, Request, Response, Session as SessionRow, SessionClear, SessionState,
    Traffic, UserPlane, UserPlanePort, UserPlaneState,
};
use pfcp::bng::Volume;
use policy::{Access, Binding};
use session::Cause;
use wire::access_loop::AccessLoop;

/// Seconds between 1900 (PFCP) and 1970.
pub(super) const NTP_OFFSET: u64 = 2_208_988_800;
/// Maximum number of sessions in a list for which the counters are read from the user plane.
const READ_FOR_LISTING: usize = 1024;

/// Maximum number of sessions to which a filter is applied for one request. Nothing else is done meanwhile.
pub(super) const FILTERED: usize = 1024;

/// A list of sessions that waits for their counters.
#[derive(Clone, Debug)]
pub(super) struct Listing {
    /// Sessions whose user planes have not answered.
    pub(super) asked: usize,
    /// Sessions that are wanted.
    pub(super) most: usize,
    /// Which of them.
    pub(super) filter: Filter,
}

impl ControlPlane {
    pub(super) fn on_call(&mut self, now: Now, ticket: u64, call: Request) {
        match call {
            Request::ListSessions { from, most, filter } => match Filter::read(*filter) {
                Ok(filter) if from == 0 => self.list_sessions(now, ticket, most, filter),
                Ok(filter) => self.answer_sessions(now, ticket, (from, most), &filter),
                Err(refusal) => self.answer(ticket, Err(refusal)),
            },
            Request::CountSessions => {
                let sessions = self.sessions.len() as u64;
                self.answer(ticket, Ok(Response::SessionCount(sessions)));
            }
            Request::MatchSessions { from, filter } => {
                let matches = Filter::read(*filter).map(|filter| self.matches(from, &filter));
                self.answer(ticket, matches);
            }
            Request::ClearSessions {
                ids,
                filter,
                rate,
                by,
            } => {
                let row = SessionClear {
                    by,
                    filter: filter.text(),
                    rate,
                    ..SessionClear::default()
                };
                let begun = self.clears.begin(now, ids, row);
                self.answer(ticket, begun.map(Response::Clearing));
            }
            Request::StopClear { by } => {
                let stopped = self.clears.stop(by);
                self.answer(ticket, stopped.map(Response::Clearing));
            }
            Request::ListSessionClears => {
                let clears = self.clears.rows();
                self.answer(ticket, Ok(Response::SessionClears { clears }));
            }
            Request::GetSession { id } => match self.find_by_id(&id) {
                Ok(seid) if self.ask_usage(now, seid.index(), UsageFor::Call(ticket)) => {}
                Ok(seid) => self.answer_session(now, ticket, seid),
                Err(refusal) => self.answer(ticket, Err(refusal)),
            },
            Request::ClearSession { id, by } => match self.find_by_id(&id) {
                Ok(seid) => {
                    self.entry(seid.index()).under_way.ended_by = Some(by.into());
                    self.end(now, seid.index(), Cause::AdminReset);
                    self.answer(ticket, Ok(Response::Done));
                }
                Err(refusal) => self.answer(ticket, Err(refusal)),
            },
            Request::ClearBackOff { who } => {
                let cleared = self.clear_back_off(&who);
                self.answer(ticket, cleared.map(|()| Response::Done));
            }
            Request::AcknowledgeAlarm {
                alarm,
                resource,
                comment,
                by,
            } => {
                let which = (alarm.as_str(), resource.as_deref());
                let done = self.acknowledge_alarm(now, which, by, comment);
                self.answer(ticket, done.map(|()| Response::Done));
            }
            Request::TestAaa {
                user,
                password,
                access_profile,
            } => {
                let begun = self.begin_test(now, ticket, (user, password), access_profile);
                if let Err(refusal) = begun {
                    self.answer(ticket, Err(refusal));
                }
            }
            Request::ListDrops => {
                let drops = self.drop_rows();
                self.answer(ticket, Ok(Response::Drops { drops }));
            }
            Request::ListUserPlanes => {
                let ids: Vec<UserPlaneId> = self.topology.user_planes().map(|(id, _)| id).collect();
                let user_planes = ids.into_iter().map(|id| self.user_plane_row(now, id));
                let user_planes = user_planes.collect();
                self.answer(ticket, Ok(Response::UserPlanes { user_planes }));
            }
            Request::ListPools => {
                let pools = self.pool_rows();
                self.answer(ticket, Ok(Response::Pools { pools }));
            }
            Request::ListAssociations => {
                let associations = self.association_rows(now);
                self.answer(ticket, Ok(Response::Associations { associations }));
            }
            Request::ListAaaServers => {
                let servers = self.aaa_server_rows(now);
                self.answer(ticket, Ok(Response::AaaServers { servers }));
            }
            Request::UserPlane { .. }
            | Request::GetSessionPolicy { .. }
            | Request::WatchRules { .. } => {
                let why = "user planes are asked over their management interfaces";
                self.answer(ticket, Err(Refusal::Unreachable(why.into())));
            }
            Request::FindSubscriber { subscriber, from } => {
                let (found, next) = self.find_subscriber(now, &subscriber, from);
                self.answer(ticket, Ok(Response::Subscriber { found, next }));
            }
            Request::ListAlarms => {
                let alarms = self.alarm_rows();
                self.answer(ticket, Ok(Response::Alarms(alarms)));
            }
            Request::CheckLedger { repair } => self.begin_check(now, ticket, repair),
        }
    }

    /// Answers with the first sessions. For a few sessions it reads the counters first; for many it uses the last reported ones.
    fn list_sessions(&mut self, now: Now, ticket: u64, most: usize, filter: Filter) {
        let mut asked = 0;
        if self.sessions.len() <= READ_FOR_LISTING {
            let online = self
                .sessions
                .iter()
                .filter(|(_, entry)| !entry.is_half_open() && filter.matches(self, entry));
            let online: Vec<u32> = online.map(|(index, _)| index).collect();
            let ask = |index: &u32| self.ask_usage(now, *index, UsageFor::List(ticket));
            asked = online.iter().map(ask).filter(|asked| *asked).count();
        }
        match asked {
            0 => self.answer_sessions(now, ticket, (0, most), &filter),
            asked => {
                let listing = Listing {
                    asked,
                    most,
                    filter,
                };
                self.listings.insert(ticket, listing);
            }
        }
    }

    /// Notes that the counters of one session of a list were read, or that reading failed.
    pub(super) fn on_listed(&mut self, now: Now, ticket: u64) {
        let Some(listing) = self.listings.get_mut(&ticket) else {
            return;
        };
        listing.asked -= 1;
        if listing.asked == 0 {
            self.answer_listing(now, ticket);
        }
    }

    /// Answers a call that lists sessions with what is known of their counters.
    pub(super) fn answer_listing(&mut self, now: Now, ticket: u64) {
        if let Some(listing) = self.listings.remove(&ticket) {
            self.answer_sessions(now, ticket, (0, listing.most), &listing.filter);
        }
    }

    /// Answers with a page of the table of sessions: at most so many from a place on, of the next [`FILTERED`].
    fn answer_sessions(
        &mut self,
        now: Now,
        ticket: u64,
        (from, most): (usize, usize),
        filter: &Filter,
    ) {
        let most = most.clamp(1, PAGE);
        let (mut sessions, mut looked_at, mut last) = (Vec::new(), 0, 0);
        for (index, entry) in self.looked_at(from) {
            if filter.matches(self, entry) {
                sessions.push(self.session_row(now, entry));
            }
            (looked_at, last) = (looked_at + 1, index as usize);
            if sessions.len() == most {
                break;
            }
        }
        let more = sessions.len() == most || looked_at == FILTERED;
        let next = more.then_some(last + 1);
        self.answer(ticket, Ok(Response::Sessions { sessions, next }));
    }

    /// Ids of the sessions that a filter matches, of the next [`FILTERED`] from a place on.
    fn matches(&self, from: usize, filter: &Filter) -> Response {
        let (mut ids, mut looked_at, mut last) = (Vec::new(), 0, 0);
        for (index, entry) in self.looked_at(from) {
            if filter.matches(self, entry) {
                ids.push(entry.seid.0);
            }
            (looked_at, last) = (looked_at + 1, index as usize);
        }
        let next = (looked_at == FILTERED).then_some(last + 1);
        Response::Matches { ids, next }
    }

    /// The next sessions from a place in the table on, so many that nothing else waits for long.
    pub(super) fn looked_at(&self, from: usize) -> impl Iterator<Item = (u32, &Entry)> {
        let from = u32::try_from(from).ok();
        let from = from.into_iter().flat_map(|from| self.sessions.from(from));
        from.take(FILTERED)
    }

    pub(super) fn answer_session(&mut self, now: Now, ticket: u64, seid: Seid) {
        let answer = match self.sessions.find(seid) {
            Some(index) => {
                let session = self.session_row(now, &self.sessions[index]);
                Ok(Response::Session {
                    session: Box::new(session),
                })
            }
            None => Err(Refusal::NotFound(format!("session {seid} has just ended"))),
        };
        self.answer(ticket, answer);
    }

    pub(super) fn answer(&mut self, ticket: u64, answer: Answer) {
        self.outputs.push_back(Output::Answer { ticket, answer });
    }

    /// A session with its counters as last reported.
    ///
    /// # Errors
    /// No session has this id.
    pub(crate) fn session_now(&self, now: Now, id: &str) -> Result<SessionRow, Refusal> {
        let seid = self.find_by_id(id)?;
        Ok(self.session_row(now, &self.sessions[seid.index()]))
    }

    fn find_by_id(&self, id: &str) -> Result<Seid, Refusal> {
        let seid = u64::from_str_radix(id, 16).ok().map(Seid);
        let found = seid.filter(|seid| self.sessions.find(*seid).is_some());
        found.ok_or_else(|| {
            Refusal::NotFound(format!(
                "session `{id}` does not exist: expected an id that `sluice show sessions` prints"
            ))
        })
    }

    pub(super) fn drop_rows(&self) -> Vec<northbound::DropCounter> {
        let mut rows = self.counters.rows();
        for (name, count, meaning) in self.user_planes.counters().named() {
            rows.push(row(name, count, meaning.into()));
        }
        rows.extend(self.aaa.rows());
        rows.extend(crate::counters::dynamic_rows(self.dynamic.counters()));
        rows
    }

    fn user_plane_row(&self, now: Now, plane: UserPlaneId) -> UserPlane {
        let (config, standing) = (
            self.topology.user_plane(plane),
            self.user_planes.standing(plane),
        );
        let ports = self.topology.ports().filter(|(_, p)| p.user_plane == plane);
        let access_ports: Vec<UserPlanePort> = ports
            .map(|(id, port)| UserPlanePort {
                name: port.name.clone(),
                open: self.user_planes.default_session(id).is_some(),
            })
            .collect();
        let restoring = self.audits.contains_key(&plane)
            || access_ports.iter().any(|port| !port.open)
            || self.user_planes.is_resyncing(plane);
        UserPlane {
            node_id: config.node_id.clone(),
            address: config.address.to_string(),
            state: match (self.user_planes.is_up(plane), standing.seen) {
                (false, false) => UserPlaneState::NeverSeen,
                (false, true) => UserPlaneState::Lost,
                (true, _) if restoring => UserPlaneState::Restoring,
                (true, _) => UserPlaneState::Associated,
            }
            .into(),
            since_seconds: now.at.saturating_sub(standing.since).as_secs(),
            started_at: self
                .user_planes
                .recovery(plane)
                .map(|stamp| u64::from(stamp).saturating_sub(NTP_OFFSET)),
            restarts: standing.restarts,
            sessions: self.sessions.on_user_plane(plane),
            access_ports,
            drain: self.drain_row(now, plane),
        }
    }

    pub(super) fn session_row(&self, now: Now, entry: &Entry) -> SessionRow {
        let port_id = self.topology.segment(entry.segment).port;
        let port = self.topology.port(port_id);
        let line = Identity::of_line(port_id, &entry.circuit, &entry.tags.line);
        let (s_tag, c_tag) = entry.circuit.tags.vids();
        let usage = entry.account.usage;
        let [ipv4, ipv6] = usage.families().map_or([None; 2], |of| of.map(Some));
        let subscriber = entry.subscriber.and_then(|id| self.subscribers.get(id));
        let Access::Pppoe(pppoe_id) = entry.access;
        SessionRow {
            id: entry.seid.to_string(),
            state: match entry.stage {
                Stage::Admitted(_) | Stage::Connecting => SessionState::Connecting,
                Stage::Online => SessionState::Online,
                Stage::Closing(_) => SessionState::Closing,
            }
            .into(),
            user: entry.who.username.escape_ascii().to_string(),
            profile: self
                .view()
                .policy_inputs(entry)
                .profile_name()
                .unwrap_or_default()
                .into(),
            user_plane: self.topology.user_plane(port.user_plane).node_id.clone(),
            port: port.name.clone(),
            s_tag: s_tag.map(u32::from),
            c_tag: c_tag.map(u32::from),
            mac: entry.circuit.mac.to_string(),
            pppoe_session_id: pppoe_id.into(),
            group: self.topology.group(entry.group).name.clone(),
            network_instance: self.topology.instance(entry.instance).name.clone(),
            ipv4: entry.ipv4().map(|a| a.to_string()),
            ipv6_prefix: entry.ipv6().map(|p| p.to_string()),
            routes: entry.routes().map(described_route).collect(),
            line: line.text(&self.topology),
            subscriber: subscriber
                .map(|known| known.identity.text(&self.topology))
                .unwrap_or_default(),
            subscriber_handle: entry.subscriber.map(|id| id.0),
            fallback: entry.accepted_by.fallback().unwrap_or_default().into(),
            access_loop: entry
                .tags
                .access_loop
                .as_deref()
                .map_or(Vec::new(), described),
            without_effect: entry
                .without_effect
                .as_ref()
                .map_or(Vec::new(), |w| w.texts()),
            next_connection: self.pools_to_come(entry),
            online_seconds: match &entry.stage {
                Stage::Closing(ending) => ending.lasted.as_secs(),
                _ => entry.account.lasted(now.at).as_secs(),
            },
            traffic: Some(traffic(usage.total)),
            ipv4_traffic: ipv4.map(traffic),
            ipv6_traffic: ipv6.map(traffic),
        }
    }
}

/// Prefix that is routed to a session, with its metric if it has one.
fn described_route(route: &Binding) -> String {
    match route.metric {
        Some(metric) => format!("{route} metric {metric}"),
        None => route.to_string(),
    }
}

fn traffic(volume: Volume) -> Traffic {
    Traffic {
        up_packets: volume.up_packets,
        up_octets: volume.up_octets,
        down_packets: volume.down_packets,
        down_octets: volume.down_octets,
    }
}

/// Characteristics of an access loop for operators.
fn described(access_loop: &AccessLoop) -> Vec<String> {
    let values = access_loop.values().map(|(value, number)| {
        let unit = if value.is_rate() { "kbit/s" } else { "ms" };
        format!("{} {number} {unit}", value.label())
    });
    let encapsulation = access_loop.encapsulation.iter();
    let encapsulation = encapsulation
        .map(|[link, first, second]| format!("encapsulation {link:02x}{first:02x}{second:02x}"));
    let interworked = access_loop
        .is_interworked
        .then(|| "PPP over ATM".to_owned());
    values.chain(encapsulation).chain(interworked).collect()
}
