//! What speaks on a session's access line, spoken to in frames.

use crate::discovery;
use crate::session::{Ppp, Session};
use crate::snapshot::Snapshot;
use crate::types::{
    Command, Discarded, Frame, NotTaken, Output, Random, SessionConfig, Status, Watch,
};
use core::time::Duration;
use policy::Access;
use std::sync::Arc;
use wire::eth::{PPPOE_DISCOVERY, PPPOE_SESSION};
use wire::pppoe;

/// What speaks on a session's access line. The crate's documentation describes its use.
pub struct Link(Speaker);

enum Speaker {
    /// PPP over PPPoE.
    Ppp { session_id: u16, session: Session },
}

impl Link {
    /// Creates the link of a session after PADS, which starts LCP. `max_payload` is the agreed PPP-Max-Payload
    /// ([`discovery::Padr::max_payload`]).
    pub fn new(
        access: Access,
        config: Arc<SessionConfig>,
        max_payload: Option<u16>,
        random: Random,
        now: Duration,
    ) -> Self {
        let Access::Pppoe(session_id) = access;
        let session = Session::new(config, max_payload, random, now);
        Link(Speaker::Ppp {
            session_id,
            session,
        })
    }

    /// Continues the link of a snapshot. The next echo request comes at a random time within its interval. A family whose rules were
    /// requested counts as up, and no packet is sent for it: the packet that opens it may have been sent before. If it was not, the
    /// subscriber repeats its request, and the NCP starts over by itself. A granted family that was not that far is negotiated again,
    /// and we start: the subscriber may have our Configure-Ack, and then has no reason to send. `seed` must be new.
    pub fn restore(
        access: Access,
        config: Arc<SessionConfig>,
        snapshot: Snapshot,
        seed: u64,
        now: Duration,
    ) -> Self {
        let Access::Pppoe(session_id) = access;
        let session = Session::restore(config, snapshot, seed, now);
        Link(Speaker::Ppp {
            session_id,
            session,
        })
    }

    /// Handles a frame from the access line.
    ///
    /// # Errors
    /// Why the frame changes nothing.
    pub fn on_frame(
        &mut self,
        now: Duration,
        ethertype: u16,
        payload: &[u8],
    ) -> Result<(), NotTaken> {
        let Speaker::Ppp {
            session_id,
            session,
        } = &mut self.0;
        let packet = pppoe::Packet::parse(payload).map_err(|_| NotTaken::Malformed)?;
        let handled = match (ethertype, packet.code) {
            _ if packet.session_id != *session_id => return Err(NotTaken::Foreign),
            (PPPOE_DISCOVERY, pppoe::PADT) => session.on_padt(now),
            (PPPOE_SESSION, pppoe::SESSION) => session.on_ppp(now, packet.payload),
            _ => return Err(NotTaken::Malformed),
        };
        handled.map_err(NotTaken::Discarded)
    }

    /// Carries out a command of its owner.
    ///
    /// # Errors
    /// Why the command changes nothing.
    pub fn command(&mut self, now: Duration, command: Command) -> Result<(), Discarded> {
        let Speaker::Ppp { session, .. } = &mut self.0;
        session.command(now, command)
    }

    /// Handles expired timers, while the subscriber is watched in this way. An early call is harmless.
    pub fn on_timeout(&mut self, now: Duration, watch: Watch) {
        let Speaker::Ppp { session, .. } = &mut self.0;
        session.on_timeout(now, watch);
    }

    /// Time at which [`Link::on_timeout`] must be called.
    pub fn poll_at(&self) -> Option<Duration> {
        let Speaker::Ppp { session, .. } = &self.0;
        session.poll_at()
    }

    /// Next output; `None` if there is none.
    pub fn poll_output(&mut self) -> Option<Output> {
        let Speaker::Ppp {
            session_id,
            session,
        } = &mut self.0;
        let output = session.poll_output()?;
        Some(output.in_frames(|ppp| pppoe_frame(*session_id, ppp)))
    }

    /// State of the link.
    pub fn status(&self) -> Status {
        let Speaker::Ppp { session, .. } = &self.0;
        session.status()
    }

    /// Snapshot for [`Link::restore`]; `None` before the network phase, because nothing is worth keeping then.
    pub fn snapshot(&self) -> Option<Snapshot> {
        let Speaker::Ppp { session, .. } = &self.0;
        session.snapshot()
    }
}

/// Frame that carries what PPP sends.
fn pppoe_frame(session_id: u16, ppp: Ppp) -> Frame {
    match ppp {
        Ppp::Frame(frame) => {
            let mut payload = Vec::with_capacity(pppoe::HEADER_LEN + frame.len());
            let packet = pppoe::Packet {
                code: pppoe::SESSION,
                session_id,
                payload: &frame,
            };
            packet.emit(&mut payload);
            Frame {
                ethertype: PPPOE_SESSION,
                payload,
            }
        }
        Ppp::End(reason) => Frame {
            ethertype: PPPOE_DISCOVERY,
            payload: discovery::padt(session_id, reason),
        },
    }
}
