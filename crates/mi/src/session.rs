//! How a session is named to its user plane.

use crate::GetSessionPolicyRequest;
use tonic::Status;

/// Where a session is at its user plane. No two sessions have the same place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionPlace {
    /// Its access port.
    pub port: String,
    /// The VLAN ids of its line, the outer one first.
    pub vids: (Option<u16>, Option<u16>),
    /// The subscriber's MAC address.
    pub mac: [u8; 6],
    /// Its PPPoE session id.
    pub pppoe_session_id: u16,
}

impl SessionPlace {
    /// The place that a request names.
    ///
    /// # Errors
    /// INVALID_ARGUMENT: a number is too large, or it is no MAC address.
    pub(crate) fn of(request: GetSessionPolicyRequest) -> Result<Self, Status> {
        let wrong = |what: String| Status::invalid_argument(what);
        let mac = config::mac(&request.mac);
        let mac = mac.ok_or_else(|| wrong(format!("`{}` is no MAC address", request.mac)))?;
        let number = |number: u32| {
            let number = u16::try_from(number);
            number.map_err(|_| wrong("a VLAN id or session id is too large".into()))
        };
        Ok(SessionPlace {
            port: request.port,
            vids: (
                request.s_tag.map(number).transpose()?,
                request.c_tag.map(number).transpose()?,
            ),
            mac,
            pppoe_session_id: number(request.pppoe_session_id)?,
        })
    }
}
