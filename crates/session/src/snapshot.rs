//! State that an authenticated session needs to continue after a restart of the control plane.
use crate::auth::Authenticator;
use crate::automaton::State;
use crate::ipcp::{self, Ipcp};
use crate::ipv6cp::Ipv6cp;
use crate::layer::{Core, Layer};
use crate::lcp::Lcp;
use crate::router::Router;
use crate::session::Session;
use crate::time::Rng;
use crate::types::{Grant, Phase, RulesState, SessionConfig};
use core::time::Duration;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Session in its network phase, as plain data. It has no secrets: neither challenges nor the peer's proofs are kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Our magic number.
    pub magic: u32,
    /// Magic number of the peer.
    pub peer_magic: u32,
    /// Our MRU.
    pub mru: u16,
    /// MRU of the peer.
    pub peer_mru: u16,
    /// Upper limit of both MRUs.
    pub mru_limit: u16,
    /// Authentication protocol of the peer, and what its result had.
    pub auth: Passed,
    /// Number of the authentication attempt.
    pub auth_attempt: u8,
    /// Identifier of the exchange, so that a repeated proof gets its result again.
    pub auth_id: u8,
    /// Identifiers of our last requests: LCP, IPCP, IPV6CP.
    pub request_ids: [u8; 3],
    /// Addresses of the subscriber.
    pub grant: Grant,
    /// Our interface identifier.
    pub interface_id: u64,
    /// Interface identifier of the peer; 0 if it gave none.
    pub peer_interface_id: u64,
    /// Whether the rules for IPv4 were requested.
    pub ipv4: bool,
    /// Whether the rules for IPv6 were requested.
    pub ipv6: bool,
}

/// Authentication protocol by which a peer was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Passed {
    /// PAP.
    Pap,
    /// CHAP with MD5.
    Chap,
    /// MS-CHAPv2.
    MsChapV2 {
        /// Proof in our last Success; `None` while the peer is authenticated again. Without the challenges and the response, no password
        /// can be guessed from it.
        proof: Option<[u8; 20]>,
    },
}

impl Session {
    pub(crate) fn snapshot(&self) -> Option<Snapshot> {
        if self.phase != Phase::Network {
            return None;
        }
        let (lcp, ipv6cp) = (&self.lcp.options, &self.ipv6cp.options);
        Some(Snapshot {
            magic: lcp.magic,
            peer_magic: lcp.peer_magic,
            mru: lcp.mru,
            peer_mru: lcp.peer_mru,
            mru_limit: lcp.limit,
            auth: self.auth.result(),
            auth_attempt: self.auth.attempt(),
            auth_id: self.auth.id(),
            request_ids: [self.lcp.id(), self.ipcp.id(), self.ipv6cp.id()],
            grant: Grant {
                ipv4: self.has_ipv4.then_some(self.ipcp.options.grant),
                ipv6: self.ipv6.as_deref().cloned(),
            },
            interface_id: ipv6cp.ours,
            peer_interface_id: ipv6cp.peer,
            ipv4: self.ipv4_rules != RulesState::Off,
            ipv6: self.ipv6_rules != RulesState::Off,
        })
    }

    pub(crate) fn restore(
        config: Arc<SessionConfig>,
        snapshot: Snapshot,
        seed: u64,
        now: Duration,
    ) -> Self {
        let Snapshot {
            grant,
            request_ids: [lcp_id, ipcp_id, ipv6cp_id],
            ..
        } = snapshot;
        let state = |up, granted| match (up, granted) {
            (true, _) => State::Opened,
            (false, true) => State::Starting,
            (false, false) => State::Stopped,
        };
        let rules = |up| if up { RulesState::Up } else { RulesState::Off };
        let mut lcp = Lcp::new(&config, Some(snapshot.mru_limit), snapshot.magic);
        (lcp.mru, lcp.peer_mru) = (snapshot.mru, snapshot.peer_mru);
        let auth = Authenticator::passed(snapshot.auth, snapshot.auth_attempt, snapshot.auth_id);
        (lcp.peer_magic, lcp.auth) = (snapshot.peer_magic, auth.protocol());
        let required = grant.ipv6.as_ref().and_then(|g| g.interface_id);
        let ipv6cp = Ipv6cp::restored(snapshot.interface_id, snapshot.peer_interface_id, required);
        let ipcp = Ipcp::new(grant.ipv4.unwrap_or(ipcp::NO_GRANT));
        let tries = config.max_configure;
        let mut core = Core::new(config, Rng(seed), now);
        let router = match grant.ipv6.as_ref().filter(|_| snapshot.ipv6) {
            Some(ipv6) => Router::resumed(&mut core, ipv6),
            None => Router::silent(),
        };
        let mut session = Session::resume(
            core,
            Layer::in_state(lcp, State::Opened, lcp_id, tries),
            auth,
            Layer::in_state(
                ipcp,
                state(snapshot.ipv4, grant.ipv4.is_some()),
                ipcp_id,
                tries,
            ),
            Layer::in_state(
                ipv6cp,
                state(snapshot.ipv6, grant.ipv6.is_some()),
                ipv6cp_id,
                tries,
            ),
        );
        session.has_ipv4 = grant.ipv4.is_some();
        session.ipv6 = grant.ipv6.map(Box::new);
        session.ipv4_rules = rules(snapshot.ipv4);
        session.ipv6_rules = rules(snapshot.ipv6);
        session.router = router;
        session.keepalive.resume(&mut session.core);
        session.begin_waiting_families();
        session
    }
}
