//! LCP echo requests of subscribers that the user plane answers itself, so that sessions outlive a restart of the control plane (RFC 1661
//! §5.8). The rate of a session's control packets limits the answers.

use dataplane::{SessionEntry, SessionIndex};
use wire::eth::{Frame, Header, PPPOE_SESSION};
use wire::lcp::{ECHO_REPLY, ECHO_REQUEST, Echo};
use wire::ppp::{self, Control};
use wire::pppoe;

use super::Engine;
use crate::compile::CompiledSession;

impl<T: Copy> Engine<T> {
    /// Answer to an echo request of a session's subscriber, as a frame for the session's port. `None` for everything that the control plane
    /// handles: other packets, sessions without an open address family, and requests with our own magic number, which a looped line
    /// returns.
    pub fn echo_reply(&self, index: SessionIndex, frame: &[u8]) -> Option<Vec<u8>> {
        let CompiledSession::Subscriber {
            entry,
            echo_magic: Some(magic),
            ..
        } = &self.table.get(index)?.compiled
        else {
            return None;
        };
        let request = request(entry, frame)?;
        let echo = Echo::parse(request.data).ok()?;
        let is_looped = *magic != 0 && echo.magic == *magic;
        (!is_looped).then(|| reply(entry, *magic, request.id, &echo))
    }
}

/// The LCP echo request in a frame of a session.
fn request<'a>(entry: &SessionEntry, frame: &'a [u8]) -> Option<Control<'a>> {
    let frame = Frame::parse(frame).ok()?;
    let packet = pppoe::Packet::parse(frame.payload).ok()?;
    let is_session = frame.header.ethertype == PPPOE_SESSION
        && packet.code == pppoe::SESSION
        && packet.session_id == entry.pppoe_session_id;
    let data = ppp::Frame::parse(packet.payload).ok()?;
    if !is_session || data.protocol != ppp::LCP {
        return None;
    }
    let control = Control::parse(data.payload).ok()?;
    (control.code == ECHO_REQUEST).then_some(control)
}

/// Frame with the answer, which has our magic number and the request's data.
fn reply(entry: &SessionEntry, magic: u32, id: u8, request: &Echo<'_>) -> Vec<u8> {
    let mut data = Vec::with_capacity(request.data.len() + 4);
    Echo {
        magic,
        data: request.data,
    }
    .emit(&mut data);
    let mut control = Vec::with_capacity(data.len() + 6);
    Control {
        code: ECHO_REPLY,
        id,
        data: &data,
    }
    .emit(ppp::LCP, &mut control);
    let header = Header {
        destination: entry.peer_mac,
        source: entry.gateway_mac,
        tags: entry.tags.with_priority(entry.packets.vlan_priority),
        ethertype: PPPOE_SESSION,
    };
    let mut frame = Vec::with_capacity(header.len() + pppoe::HEADER_LEN + control.len());
    header.emit(&mut frame);
    pppoe::Packet {
        code: pppoe::SESSION,
        session_id: entry.pppoe_session_id,
        payload: &control,
    }
    .emit(&mut frame);
    frame
}
