//! Frames on a session's access line: what they carry for the session, and what carries its packets.

use crate::discovery;
use crate::types::Input;
use policy::Access;
use wire::eth::{PPPOE_DISCOVERY, PPPOE_SESSION};
use wire::pppoe;

/// Why a frame is not the session's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotTaken {
    /// It is malformed, or of a kind that no session gets.
    Malformed,
    /// It names another session.
    Foreign,
}

/// What a frame of this ethertype carries for the session.
///
/// # Errors
/// Why it carries nothing for the session.
pub fn open(access: Access, ethertype: u16, payload: &[u8]) -> Result<Input<'_>, NotTaken> {
    let Access::Pppoe(session_id) = access;
    let packet = pppoe::Packet::parse(payload).map_err(|_| NotTaken::Malformed)?;
    match (ethertype, packet.code) {
        _ if packet.session_id != session_id => Err(NotTaken::Foreign),
        (PPPOE_DISCOVERY, pppoe::PADT) => Ok(Input::Padt),
        (PPPOE_SESSION, pppoe::SESSION) => Ok(Input::Ppp(packet.payload)),
        _ => Err(NotTaken::Malformed),
    }
}

/// Ethertype and payload of the frame that carries a PPP frame, from its protocol field on.
pub fn ppp(access: Access, ppp: &[u8]) -> (u16, Vec<u8>) {
    let Access::Pppoe(session_id) = access;
    let packet = pppoe::Packet {
        code: pppoe::SESSION,
        session_id,
        payload: ppp,
    };
    let mut payload = Vec::with_capacity(pppoe::HEADER_LEN + ppp.len());
    packet.emit(&mut payload);
    (PPPOE_SESSION, payload)
}

/// Ethertype and payload of the frame that says that the session has ended, with a text.
pub fn end(access: Access, reason: &str) -> (u16, Vec<u8>) {
    let Access::Pppoe(session_id) = access;
    (PPPOE_DISCOVERY, discovery::padt(session_id, reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Access = Access::Pppoe(7);

    #[test]
    fn what_is_sent_is_what_is_read() {
        let (ethertype, payload) = ppp(OWN, b"\xc0\x21hello");
        assert!(matches!(
            open(OWN, ethertype, &payload),
            Ok(Input::Ppp(b"\xc0\x21hello"))
        ));
        let (ethertype, payload) = end(OWN, "bye");
        assert!(matches!(open(OWN, ethertype, &payload), Ok(Input::Padt)));
    }

    #[test]
    fn what_is_not_the_sessions_is_told_apart() {
        let refused = |ethertype, payload: &[u8]| open(OWN, ethertype, payload).err();
        let (ethertype, payload) = ppp(Access::Pppoe(8), b"\xc0\x21");
        assert_eq!(refused(ethertype, &payload), Some(NotTaken::Foreign));
        let (_, own) = ppp(OWN, b"\xc0\x21");
        assert_eq!(refused(PPPOE_DISCOVERY, &own), Some(NotTaken::Malformed));
        assert_eq!(refused(0x0800, &own), Some(NotTaken::Malformed));
        assert_eq!(refused(PPPOE_SESSION, &own[..5]), Some(NotTaken::Malformed));
        let (_, padt) = end(OWN, "bye");
        assert_eq!(refused(PPPOE_SESSION, &padt), Some(NotTaken::Malformed));
    }
}
