//! Packets of subscribers that a rule of their policy redirects.

use dataplane::{SessionEntry, SessionIndex};
use wire::ppp;

use super::{Engine, frames};
use crate::compile::CompiledSession;

impl<T: Copy> Engine<T> {
    /// Answers a redirected packet in a frame of a session. `answer` gets the session and the IP packet, and returns another IP packet for the
    /// subscriber, if there is one; it leaves in the frame that is returned, on the session's port.
    pub fn redirected(
        &self,
        index: SessionIndex,
        frame: &[u8],
        answer: impl FnOnce(&SessionEntry, &[u8]) -> Option<Vec<u8>>,
    ) -> Option<Vec<u8>> {
        let CompiledSession::Subscriber { entry, .. } = &self.table.get(index)?.compiled else {
            return None;
        };
        let asked = frames::read(entry, frame)?;
        if !matches!(asked.protocol, ppp::IPV4 | ppp::IPV6) {
            return None;
        }
        let reply = answer(entry, asked.payload)?;
        let mut payload = Vec::with_capacity(reply.len() + 2);
        ppp::Frame {
            protocol: asked.protocol,
            payload: &reply,
        }
        .emit(&mut payload);
        Some(frames::write(entry, &payload))
    }
}
