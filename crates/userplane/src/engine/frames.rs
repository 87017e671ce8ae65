//! Frames of a session, as the control thread reads them from its subscriber and writes them to it.

use dataplane::SessionEntry;
use wire::eth::{Frame, Header, PPPOE_SESSION};
use wire::{ppp, pppoe};

/// What a frame of the session carries. `None`: it is another session's, or not sound.
pub(super) fn read<'a>(entry: &SessionEntry, frame: &'a [u8]) -> Option<ppp::Frame<'a>> {
    let frame = Frame::parse(frame).ok()?;
    let packet = pppoe::Packet::parse(frame.payload).ok()?;
    let is_session = frame.header.ethertype == PPPOE_SESSION
        && packet.code == pppoe::SESSION
        && packet.session_id == entry.pppoe_session_id;
    if !is_session {
        return None;
    }
    ppp::Frame::parse(packet.payload).ok()
}

/// Frame of the session with what is behind the header of PPPoE: a PPP frame.
pub(super) fn write(entry: &SessionEntry, payload: &[u8]) -> Vec<u8> {
    let header = Header {
        destination: entry.peer_mac,
        source: entry.gateway_mac,
        tags: entry.tags.with_priority(entry.packets.vlan_priority),
        ethertype: PPPOE_SESSION,
    };
    let mut frame = Vec::with_capacity(header.len() + pppoe::HEADER_LEN + payload.len());
    header.emit(&mut frame);
    pppoe::Packet {
        code: pppoe::SESSION,
        session_id: entry.pppoe_session_id,
        payload,
    }
    .emit(&mut frame);
    frame
}
