//! LCP echoes of subscribers that the user plane handles itself, so that sessions outlive a restart of the control plane (RFC 1661 §5.8):
//! it answers requests, and takes the answers to its own. The rate of a session's control packets limits both.

use dataplane::{SessionEntry, SessionIndex};
use wire::lcp::{ECHO_REPLY, ECHO_REQUEST, Echo};
use wire::ppp::{self, Control};

use super::{Engine, frames};
use crate::compile::CompiledSession;

/// What becomes of a control packet of a subscriber.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromSubscriber {
    /// It goes to the control plane.
    Pass,
    /// It is answered with this frame on the session's port.
    Answer(Vec<u8>),
    /// It answers a question of the user plane.
    Taken,
}

impl<T: Copy> Engine<T> {
    /// Handles a control packet of a session's subscriber. Only LCP echoes of sessions with an open address family are handled here, and of
    /// these neither requests with our own magic number, which a looped line returns, nor answers to the control plane's requests.
    pub fn from_subscriber(&mut self, index: SessionIndex, frame: &[u8]) -> FromSubscriber {
        let session = self.table.get_mut(index);
        session
            .and_then(|session| {
                let CompiledSession::Subscriber {
                    entry,
                    echo_magic: Some(magic),
                    ..
                } = &session.compiled
                else {
                    return None;
                };
                let packet = lcp_packet(entry, frame)?;
                let echo = Echo::parse(packet.data).ok()?;
                match packet.code {
                    ECHO_REQUEST if *magic == 0 || echo.magic != *magic => {
                        session.watch.alive();
                        let reply = echo_frame(entry, ECHO_REPLY, packet.id, *magic, echo.data);
                        Some(FromSubscriber::Answer(reply))
                    }
                    ECHO_REPLY if session.watch.answered(packet.id) => Some(FromSubscriber::Taken),
                    _ => None,
                }
            })
            .unwrap_or(FromSubscriber::Pass)
    }
}

/// The LCP packet in a frame of a session.
fn lcp_packet<'a>(entry: &SessionEntry, frame: &'a [u8]) -> Option<Control<'a>> {
    let data = frames::read(entry, frame)?;
    if data.protocol != ppp::LCP {
        return None;
    }
    Control::parse(data.payload).ok()
}

/// Frame with an LCP echo packet of ours.
pub(super) fn echo_frame(
    entry: &SessionEntry,
    code: u8,
    id: u8,
    magic: u32,
    data: &[u8],
) -> Vec<u8> {
    let mut echo = Vec::with_capacity(data.len() + 4);
    Echo { magic, data }.emit(&mut echo);
    let mut control = Vec::with_capacity(echo.len() + 6);
    Control {
        code,
        id,
        data: &echo,
    }
    .emit(ppp::LCP, &mut control);
    frames::write(entry, &control)
}
