//! A subscriber dials in: discovery, the bounds of what one may make us hold, and the session's identifiers.

use super::tunnel::Refused;
use super::{ControlPlane, Now, Place};
use crate::counters::Counter;
use crate::entry::{Account, Entry, LineIds, Rules, Stage, Who};
use crate::topology::{SegmentId, Seid};
use core::time::Duration;
use rand::Rng;
use session::discovery::{Answer, DiscoveryConfig, Padr, Refusal};
use session::{AuthPolicy, Cause, Circuit, Session, SessionConfig};
use wire::eth::PPPOE_DISCOVERY;

/// What a cookie is good for: a home that takes longer between PADO and PADR asks again.
const COOKIE_LIFETIME: Duration = Duration::from_secs(30);

pub(super) fn discovery_config(
    config: &config::ControlPlane,
    cookie_key: [u8; 32],
) -> DiscoveryConfig {
    DiscoveryConfig {
        ac_name: config.pppoe.ac_name.clone(),
        service_names: config.pppoe.service_names.clone(),
        cookie_key,
        cookie_lifetime: COOKIE_LIFETIME,
        max_payload: (config.pppoe.mru > PPPOE_MRU).then_some(config.pppoe.mru),
    }
}

/// The largest MRU over PPPoE without PPP-Max-Payload (RFC 2516 §7).
const PPPOE_MRU: u16 = 1492;

/// How long a subscriber is left to speak first: Linux's pppd takes some 20 ms from its PADS to its first request.
const START_DELAY: Duration = Duration::from_millis(200);

pub(super) fn session_config(config: &config::ControlPlane) -> SessionConfig {
    use config::Auth::{Chap, Pap};
    let pppoe = &config.pppoe;
    SessionConfig {
        name: pppoe.ac_name.clone(),
        auth: match pppoe.authentication[..] {
            [Chap] => AuthPolicy::Chap,
            [Pap] => AuthPolicy::Pap,
            [Pap, ..] => AuthPolicy::PapThenChap,
            _ => AuthPolicy::ChapThenPap,
        },
        mru: pppoe.mru.min(PPPOE_MRU),
        echo_interval: Duration::from_secs(pppoe.echo.interval.into()),
        echo_failures: pppoe.echo.failures,
        start_delay: START_DELAY,
        ..SessionConfig::default()
    }
}

pub(super) fn place(segment: SegmentId, circuit: &Circuit) -> Place {
    let (outer, inner) = circuit.tags.vids();
    (segment, outer, inner, circuit.mac)
}

impl ControlPlane {
    pub(super) fn on_discovery(
        &mut self,
        now: Now,
        segment: SegmentId,
        circuit: Circuit,
        payload: &[u8],
    ) -> Result<(), Refused> {
        let port = self.topology.segment(segment).port;
        match self.discovery.on_frame(now.at, &circuit, payload) {
            Answer::Reply(reply) => self.send_by_default(port, &circuit, &reply),
            Answer::Admit(padr) => {
                if let Err((counter, text)) = self.admit(now, segment, &circuit, &padr) {
                    let refusal = self.discovery.refuse(&padr, Refusal::System(text));
                    self.send_by_default(port, &circuit, &refusal);
                    return Err(counter);
                }
            }
            // the user plane sends a session's PADT through the session's own tunnel
            Answer::Terminate { .. } => return Err(Counter::UnknownTunnel),
            Answer::Ignore(why) if why.0.contains("cookie") => {
                tracing::debug!(?circuit, "PADR with a cookie that is not ours, or too old");
                return Err(Counter::BadCookie);
            }
            Answer::Ignore(why) => {
                tracing::debug!(?circuit, why = why.0, "discovery packet ignored");
                return Err(Counter::DiscoveryIgnored);
            }
        }
        Ok(())
    }

    /// Begins a session for a valid PADR, or says why not: a counter, and a text for the subscriber.
    fn admit(
        &mut self,
        now: Now,
        segment: SegmentId,
        circuit: &Circuit,
        padr: &Padr,
    ) -> Result<(), (Counter, &'static str)> {
        let place = place(segment, circuit);
        if let Some(index) = self.by_place.get(&place).and_then(|seid| self.find(*seid)) {
            if self.answer_repeated_padr(index, padr) {
                return Ok(());
            }
            self.counters.count(Counter::Redialled);
            self.end(now, index, Cause::NasRequest);
        }
        let port = self.topology.port(self.topology.segment(segment).port);
        let (plane, group) = (port.user_plane, port.group);
        if !self.user_planes.is_up(plane) {
            return Err((Counter::UserPlaneAbsent, "gateway is not ready"));
        }
        if self.half_open >= self.config.limits.half_open as usize {
            self.shed_oldest(now);
        }
        if self.sessions.len() >= self.config.limits.sessions as usize {
            return Err((Counter::SessionTableFull, "no session left"));
        }
        let pppoe_id = self.banks[usize::from(segment.0)].take(now.at);
        let pppoe_id = pppoe_id.ok_or((Counter::SessionIdsExhausted, "no session id left"))?;
        let index = self.sessions.vacant_key() as u32;
        self.count_generation();
        let seid = Seid::new(self.generation, index);
        let boxed = |octets: &Option<Vec<u8>>| octets.clone().map(Vec::into_boxed_slice);
        self.sessions.insert(Box::new(Entry {
            seid,
            segment,
            instance: self.topology.group(group).instance,
            circuit: circuit.clone(),
            pppoe_id,
            line: LineIds {
                circuit_id: boxed(&padr.circuit_id),
                remote_id: boxed(&padr.remote_id),
            },
            stage: Stage::Admitted(Box::new(padr.clone())),
            link: None,
            rules: Rules::default(),
            who: Who::default(),
            ipv4: None,
            ipv6: None,
            account: Account::default(),
            stored: false,
        }));
        self.by_place.insert(place, seid);
        if self.admitted.len() >= 2 * self.config.limits.half_open as usize {
            self.forget_admitted();
        }
        self.admitted.push_back(seid);
        self.half_open += 1;
        self.establish(now, index);
        Ok(())
    }

    /// A PADR that comes again while its session is being set up gets the same answer again.
    fn answer_repeated_padr(&mut self, index: u32, padr: &Padr) -> bool {
        let entry = &self.sessions[index as usize];
        match &entry.stage {
            Stage::Admitted(first) => **first == *padr,
            Stage::Connecting
                if entry
                    .link
                    .as_ref()
                    .is_some_and(|l| l.phase() == session::Phase::Establish) =>
            {
                let pads = self.discovery.pads(padr, entry.pppoe_id);
                self.send_to_session(index, PPPOE_DISCOVERY, &pads);
                true
            }
            _ => false,
        }
    }

    /// Forgets the order of those that need no shedding any more.
    fn forget_admitted(&mut self) {
        let mut admitted = std::mem::take(&mut self.admitted);
        admitted.retain(|seid| {
            let index = self.find(*seid);
            index.is_some_and(|index| self.sessions[index as usize].is_half_open())
        });
        self.admitted = admitted;
    }

    /// Ends the oldest session that is not online yet.
    fn shed_oldest(&mut self, now: Now) {
        while let Some(seid) = self.admitted.pop_front() {
            let Some(index) = self.find(seid) else {
                continue;
            };
            if self.entry(index).is_half_open() {
                self.counters.count(Counter::HalfOpenShed);
                return self.end(now, index, Cause::NasRequest);
            }
        }
    }

    /// The user plane is ready for the session's control packets: PADS goes out and PPP begins.
    pub(super) fn confirm(&mut self, now: Now, index: u32) {
        let entry = &mut self.sessions[index as usize];
        let Stage::Admitted(padr) = &entry.stage else {
            return;
        };
        let pads = self.discovery.pads(padr, entry.pppoe_id);
        let random = session::Random {
            magic: self.random.random(),
            chap_challenge: self.random.random(),
            chap_id: self.random.random(),
            interface_id: self.random.random(),
            seed: self.random.random(),
        };
        let config = self.session_config.clone();
        entry.link = Some(Box::new(Session::new(
            config,
            padr.max_payload,
            random,
            now.at,
        )));
        entry.stage = Stage::Connecting;
        self.send_to_session(index, PPPOE_DISCOVERY, &pads);
        self.carry_out(now, index);
    }

    /// The user plane cannot take the session: PADS says so, and the session is released.
    pub(super) fn refuse(&mut self, now: Now, index: u32, counter: Counter) {
        self.counters.count(counter);
        let entry = &self.sessions[index as usize];
        if let Stage::Admitted(padr) = &entry.stage {
            let refusal = self
                .discovery
                .refuse(padr, Refusal::System("gateway cannot take the session"));
            let (port, circuit) = (
                self.topology.segment(entry.segment).port,
                entry.circuit.clone(),
            );
            self.send_by_default(port, &circuit, &refusal);
        }
        self.release(now, index, Cause::NasError);
    }
}
