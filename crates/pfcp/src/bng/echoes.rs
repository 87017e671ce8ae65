//! LCP echo requests of subscribers that the user plane answers (RFC 1661 §5.8): the BBF's element PPP LCP Connectivity with our magic
//! number and without timers. With timers the user plane would also have to send echo requests, which it rejects.
use super::rules::Rejection;
use wire::pfcp::{Cause, MagicNumbers, PppLcpConnectivity, bbf_ie};

/// Element for a user plane that answers with this magic number.
pub fn answers(magic: u32) -> PppLcpConnectivity {
    PppLcpConnectivity {
        magic_numbers: Some(MagicNumbers {
            transmitted: magic,
            received: 0, // the answer does not depend on it
        }),
        ..Default::default()
    }
}

/// Magic number of the answers; `None` if the element asks for none.
pub fn read(element: &PppLcpConnectivity) -> Result<Option<u32>, Rejection> {
    match element.timers {
        Some(_) => Err(Rejection::of(
            Cause::SERVICE_NOT_SUPPORTED,
            bbf_ie::PPP_LCP_CONNECTIVITY,
        )),
        None => Ok(element.magic_numbers.map(|numbers| numbers.transmitted)),
    }
}
