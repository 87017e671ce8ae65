//! Reconfigure: tells a client of DHCPv6 that its leases or settings have changed (RFC 8415 §18.3.11).
//!
//! The server knows from a client's messages that it takes a Reconfigure. A restart of the gateway forgets that, and the next message
//! brings it back. The client's key outlives a restart: it follows from the gateway's key.
use crate::layer::Core;
use crate::router::Ends;
use crate::time::Deadline;
use crate::types::DhcpConfig;
use core::fmt;
use core::net::Ipv6Addr;
use core::time::Duration;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use wire::dhcpv6::reconfigure::{self, KEY_LEN};
use wire::dhcpv6::{self, Message, Opt};

/// Time to the first retransmission, which doubles from then on (REC_TIMEOUT, RFC 8415 §7.6).
const TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum number of transmissions (REC_MAX_RC).
const MOST: u8 = 8;

/// The gateway's secret, of which the keys of clients are made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ReconfigureKey(pub [u8; 32]);

/// Without the key.
impl fmt::Debug for ReconfigureKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReconfigureKey")
    }
}

impl ReconfigureKey {
    /// Key of a client on the link of this interface identifier.
    fn of_client(&self, duid: &[u8], link: u64) -> [u8; KEY_LEN] {
        let mac = Hmac::<Sha256>::new_from_slice(&self.0);
        let mac = mac.expect("HMAC takes keys of any length");
        let digest = mac
            .chain_update(link.to_be_bytes())
            .chain_update(duid)
            .finalize()
            .into_bytes();
        core::array::from_fn(|at| digest[at])
    }
}

/// Client that takes Reconfigure messages, and the Reconfigure that is under way.
struct Client {
    address: Ipv6Addr,
    duid: Box<[u8]>,
    /// Message type with which it is to answer: Renew if its message was about leases, else Information-request.
    answer: u8,
    /// Time of the next transmission.
    at: Deadline,
    /// Number of transmissions.
    sent: u8,
}

impl Client {
    fn key(&self, config: &DhcpConfig, ends: Ends) -> [u8; KEY_LEN] {
        config.reconfigure_key.of_client(&self.duid, ends.ours)
    }
}

/// Reconfigure messages of a session.
pub(crate) struct Reconfigure {
    client: Option<Box<Client>>,
    /// Last number against replay.
    replay: u64,
}

impl Reconfigure {
    pub(crate) const fn silent() -> Self {
        Reconfigure {
            client: None,
            replay: 0,
        }
    }

    /// Without the client.
    pub(crate) const fn forgotten(&self) -> Self {
        Reconfigure {
            client: None,
            replay: self.replay,
        }
    }

    /// Time of the next transmission.
    pub(crate) fn at(&self) -> Deadline {
        self.client
            .as_ref()
            .map_or(Deadline::NEVER, |client| client.at)
    }

    /// State after a Reply to a message. Options for a client that takes Reconfigure messages are appended to the Reply: its key
    /// (RFC 8415 §20.4.2). `None` if the message changes nothing.
    pub(crate) fn after_reply(
        &self,
        core: &Core,
        ends: Ends,
        message: &Message<'_>,
        source: Ipv6Addr,
        reply: &mut Vec<u8>,
    ) -> Option<Self> {
        let answer = match message.kind {
            dhcpv6::INFORMATION_REQUEST => dhcpv6::INFORMATION_REQUEST,
            dhcpv6::SOLICIT | dhcpv6::REQUEST | dhcpv6::RENEW | dhcpv6::REBIND => dhcpv6::RENEW,
            _ => return None,
        };
        if self.keeps_client(answer) {
            return None;
        }
        let mut after = self.forgotten();
        let accepts = message.options.contains(&Opt::ReconfigureAccept);
        if let Some(duid) = message.client_id().filter(|_| accepts) {
            let client = Client {
                address: source,
                duid: duid.into(),
                answer,
                at: Deadline::NEVER,
                sent: 0,
            };
            let config = &core.config.dhcp;
            let information = reconfigure::key_information(&client.key(config, ends));
            let replay = after.next_replay(config, core.now());
            Opt::ReconfigureAccept.emit(reply);
            reconfigure::key_option(replay, &information).emit(reply);
            after.client = Some(Box::new(client));
        }
        Some(after)
    }

    /// Whether a message after which the client would answer in this way changes nothing. A Reconfigure is repeated until the
    /// message comes that it asks for (RFC 8415 §18.3.11); for a Renew, any other about leases brings as much. A client with leases
    /// goes on to renew: that brings settings, too.
    fn keeps_client(&self, answer: u8) -> bool {
        self.client.as_ref().is_some_and(|client| {
            let is_under_way = client.at != Deadline::NEVER;
            client.answer != answer && (is_under_way || client.answer == dhcpv6::RENEW)
        })
    }

    /// Next number against replay (RFC 8415 §20.3): nanoseconds since 1970, so that it rises over a restart, too. It does not if the
    /// clock was set back meanwhile. Within a session it always rises.
    fn next_replay(&mut self, config: &DhcpConfig, now: Duration) -> u64 {
        let clock = u64::try_from((config.epoch + now).as_nanos()).unwrap_or(u64::MAX);
        self.replay = clock.max(self.replay.saturating_add(1));
        self.replay
    }

    /// Makes the first Reconfigure due, if a client takes it.
    pub(crate) fn begin(&mut self, now: Duration) {
        if let Some(client) = &mut self.client {
            (client.at, client.sent) = (Deadline::after(now, Duration::ZERO), 0);
        }
    }

    /// Sends the Reconfigure that is due. IPV6CP must be open.
    pub(crate) fn on_timeout(&mut self, core: &mut Core, ends: Ends) {
        if !self.at().is_due(core.now()) {
            return;
        }
        let replay = self.next_replay(&core.config.dhcp, core.now());
        let Some(client) = &mut self.client else {
            return;
        };
        let config = &core.config.dhcp;
        let message = reconfigure::Reconfigure {
            server: config.duid.as_bytes(),
            client: &client.duid,
            answer: client.answer,
            replay,
        };
        let mut payload = Vec::with_capacity(256);
        message.emit(&client.key(config, ends), &mut payload);
        let frame = crate::dhcpv6::frame(ends, client.address, &payload);
        core.send_frame(frame);
        client.sent += 1;
        client.at = match client.sent < MOST {
            true => Deadline::after(core.now(), TIMEOUT * (1 << (client.sent - 1))),
            false => Deadline::NEVER,
        };
    }
}
