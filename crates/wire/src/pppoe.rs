//! PPPoE (RFC 2516): the header of both stages, and the tags of discovery with those of RFC 4638 and TR-101.
//!
//! ```
//! use wire::pppoe::{self, Discovery, Tag};
//!
//! let padi = Discovery { code: pppoe::PADI, session_id: 0, tags: vec![Tag::ServiceName(b""), Tag::HostUniq(&[7; 4])] };
//! let mut bytes = Vec::new();
//! padi.emit(&mut bytes);
//! assert_eq!(Discovery::parse(&bytes), Ok(padi));
//! ```
use crate::{Malformed, Result};

/// Code: initiation, from the subscriber to everybody.
pub const PADI: u8 = 0x09;
/// Code: offer.
pub const PADO: u8 = 0x07;
/// Code: request.
pub const PADR: u8 = 0x19;
/// Code: session confirmation.
pub const PADS: u8 = 0x65;
/// Code: termination, from either side.
pub const PADT: u8 = 0xa7;
/// Code of the session stage.
pub const SESSION: u8 = 0x00;
/// Length of the header.
pub const HEADER_LEN: usize = 6;
/// Vendor id of the Broadband Forum, under which TR-101 puts the line's identity.
pub const VENDOR_BBF: u32 = 3561;

/// A packet of either stage with borrowed payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// [`SESSION`], or a discovery code.
    pub code: u8,
    /// The session; 0 as long as there is none.
    pub session_id: u16,
    /// What the length covers: tags, or a PPP frame from its protocol field on.
    pub payload: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Reads the payload of an Ethernet frame; octets beyond the length are the frame's padding.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let (&[version_type, code, s1, s2, l1, l2], rest) = bytes
            .split_first_chunk()
            .ok_or(Malformed("PPPoE header cut off"))?;
        if version_type != 0x11 {
            return Err(Malformed("PPPoE version and type are not 1"));
        }
        let length = usize::from(u16::from_be_bytes([l1, l2]));
        let payload = rest
            .get(..length)
            .ok_or(Malformed("PPPoE length beyond the frame"))?;
        Ok(Packet {
            code,
            session_id: u16::from_be_bytes([s1, s2]),
            payload,
        })
    }

    /// Appends the packet to `out`. The payload must fit into 65,535 octets.
    pub fn emit(&self, out: &mut Vec<u8>) {
        debug_assert!(self.payload.len() <= 0xffff);
        out.extend_from_slice(&[0x11, self.code]);
        out.extend_from_slice(&self.session_id.to_be_bytes());
        out.extend_from_slice(&(self.payload.len() as u16).to_be_bytes());
        out.extend_from_slice(self.payload);
    }
}

/// A tag of a discovery packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag<'a> {
    /// The service asked for or offered; empty is any.
    ServiceName(&'a [u8]),
    /// The access concentrator's name.
    AcName(&'a [u8]),
    /// The subscriber's own mark, given back unchanged.
    HostUniq(&'a [u8]),
    /// The access concentrator's own mark, given back unchanged in the PADR.
    AcCookie(&'a [u8]),
    /// Vendor-specific: vendor id and data.
    Vendor(u32, &'a [u8]),
    /// A relay's mark, given back unchanged.
    RelaySessionId(&'a [u8]),
    /// PPP-Max-Payload (RFC 4638).
    MaxPayload(u16),
    /// The service cannot be had; a text.
    ServiceNameError(&'a [u8]),
    /// The access concentrator cannot serve; a text.
    AcSystemError(&'a [u8]),
    /// Another error; a text.
    GenericError(&'a [u8]),
    /// Any other, and a known one of the wrong length.
    Unknown(u16, &'a [u8]),
}

const END_OF_LIST: u16 = 0x0000;
const SERVICE_NAME: u16 = 0x0101;
const AC_NAME: u16 = 0x0102;
const HOST_UNIQ: u16 = 0x0103;
const AC_COOKIE: u16 = 0x0104;
const VENDOR: u16 = 0x0105;
const RELAY_SESSION_ID: u16 = 0x0110;
const MAX_PAYLOAD: u16 = 0x0120;
const SERVICE_NAME_ERROR: u16 = 0x0201;
const AC_SYSTEM_ERROR: u16 = 0x0202;
const GENERIC_ERROR: u16 = 0x0203;

impl<'a> Tag<'a> {
    fn from_raw(kind: u16, value: &'a [u8]) -> Self {
        match (kind, value) {
            (SERVICE_NAME, v) => Tag::ServiceName(v),
            (AC_NAME, v) => Tag::AcName(v),
            (HOST_UNIQ, v) => Tag::HostUniq(v),
            (AC_COOKIE, v) => Tag::AcCookie(v),
            (VENDOR, [a, b, c, d, rest @ ..]) => {
                Tag::Vendor(u32::from_be_bytes([*a, *b, *c, *d]), rest)
            }
            (RELAY_SESSION_ID, v) => Tag::RelaySessionId(v),
            (MAX_PAYLOAD, &[a, b]) => Tag::MaxPayload(u16::from_be_bytes([a, b])),
            (SERVICE_NAME_ERROR, v) => Tag::ServiceNameError(v),
            (AC_SYSTEM_ERROR, v) => Tag::AcSystemError(v),
            (GENERIC_ERROR, v) => Tag::GenericError(v),
            (kind, v) => Tag::Unknown(kind, v),
        }
    }

    /// Appends the tag to `out`.
    pub fn emit(&self, out: &mut Vec<u8>) {
        match *self {
            Tag::ServiceName(v) => emit_tag(SERVICE_NAME, &[v], out),
            Tag::AcName(v) => emit_tag(AC_NAME, &[v], out),
            Tag::HostUniq(v) => emit_tag(HOST_UNIQ, &[v], out),
            Tag::AcCookie(v) => emit_tag(AC_COOKIE, &[v], out),
            Tag::Vendor(vendor, v) => emit_tag(VENDOR, &[&vendor.to_be_bytes(), v], out),
            Tag::RelaySessionId(v) => emit_tag(RELAY_SESSION_ID, &[v], out),
            Tag::MaxPayload(octets) => emit_tag(MAX_PAYLOAD, &[&octets.to_be_bytes()], out),
            Tag::ServiceNameError(v) => emit_tag(SERVICE_NAME_ERROR, &[v], out),
            Tag::AcSystemError(v) => emit_tag(AC_SYSTEM_ERROR, &[v], out),
            Tag::GenericError(v) => emit_tag(GENERIC_ERROR, &[v], out),
            Tag::Unknown(kind, v) => emit_tag(kind, &[v], out),
        }
    }
}

fn emit_tag(kind: u16, parts: &[&[u8]], out: &mut Vec<u8>) {
    let length: usize = parts.iter().map(|p| p.len()).sum();
    debug_assert!(length <= 0xffff);
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&(length as u16).to_be_bytes());
    parts.iter().for_each(|p| out.extend_from_slice(p));
}

/// A discovery packet with its tags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discovery<'a> {
    /// [`PADI`], [`PADO`], [`PADR`], [`PADS`], [`PADT`], or another.
    pub code: u8,
    /// The session of a PADS or PADT, else 0.
    pub session_id: u16,
    /// Tags in their order, up to End-Of-List.
    pub tags: Vec<Tag<'a>>,
}

impl<'a> Discovery<'a> {
    /// Reads the payload of a frame with EtherType 0x8863. A tag beyond the packet refuses the whole.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let Packet {
            code,
            session_id,
            payload,
        } = Packet::parse(bytes)?;
        Ok(Discovery {
            code,
            session_id,
            tags: parse_tags(payload)?,
        })
    }

    /// Appends the packet to `out`. The tags must fit into 65,535 octets.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let mut payload = Vec::with_capacity(64);
        self.tags.iter().for_each(|tag| tag.emit(&mut payload));
        Packet {
            code: self.code,
            session_id: self.session_id,
            payload: &payload,
        }
        .emit(out);
    }

    /// What the access node has put in about the line. Its tag is behind those that the home itself has put in, as the access node adds it
    /// at the end (TR-101 §3.9.2).
    pub fn access_line(&self) -> Option<AccessLine<'a>> {
        self.tags.iter().rev().find_map(|tag| match tag {
            Tag::Vendor(VENDOR_BBF, data) => Some(AccessLine::parse(data)),
            _ => None,
        })
    }
}

fn parse_tags(bytes: &[u8]) -> Result<Vec<Tag<'_>>> {
    tags_of(bytes).collect()
}

/// The tags up to End-Of-List, or up to what is no tag.
fn tags_of(mut bytes: &[u8]) -> impl Iterator<Item = Result<Tag<'_>>> {
    core::iter::from_fn(move || {
        let next = next_tag(&mut bytes);
        if next.is_err() {
            bytes = &[];
        }
        next.transpose()
    })
}

fn next_tag<'a>(bytes: &mut &'a [u8]) -> Result<Option<Tag<'a>>> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let (&[k1, k2, l1, l2], rest) = bytes
        .split_first_chunk()
        .ok_or(Malformed("PPPoE tag cut off"))?;
    let kind = u16::from_be_bytes([k1, k2]);
    if kind == END_OF_LIST {
        return Ok(None);
    }
    let length = usize::from(u16::from_be_bytes([l1, l2]));
    let (value, rest) = rest
        .split_at_checked(length)
        .ok_or(Malformed("PPPoE tag beyond the packet"))?;
    *bytes = rest;
    Ok(Some(Tag::from_raw(kind, value)))
}

/// Circuit id and remote id of the access line in the payload of a frame with EtherType 0x8863, as [`Discovery::access_line`] finds them,
/// without an allocation. Empty is what it has not, and of a packet that [`Discovery::parse`] refuses both are.
pub fn line_ids(bytes: &[u8]) -> [&[u8]; 2] {
    let Ok(packet) = Packet::parse(bytes) else {
        return [&[]; 2];
    };
    let mut last: Option<&[u8]> = None;
    for tag in tags_of(packet.payload) {
        match tag {
            Ok(Tag::Vendor(VENDOR_BBF, data)) => last = Some(data),
            Ok(_) => {}
            Err(_) => return [&[]; 2],
        }
    }
    let mut ids: [&[u8]; 2] = [&[]; 2];
    for (kind, value) in line_options(last.unwrap_or_default()) {
        if let Some(id) = ids.get_mut(usize::from(kind).wrapping_sub(1))
            && id.is_empty()
            && is_line_id(value)
        {
            *id = value;
        }
    }
    ids
}

/// The options of an access node's tag (type and value), up to one that goes beyond the data.
fn line_options(mut data: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    core::iter::from_fn(move || {
        let (&[kind, length], rest) = data.split_first_chunk()?;
        let (value, rest) = rest.split_at_checked(length.into())?;
        data = rest;
        Some((kind, value))
    })
}

/// Longest circuit or remote id that is read, in octets: TR-101 permits 63, and an attribute of RADIUS has room for 247.
pub const MAX_LINE_ID: usize = 247;

/// The data of a vendor tag of [`VENDOR_BBF`] (TR-101 §3.9.2 and annex A): options of type, length, value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessLine<'a> {
    /// Agent circuit id: which port of which access node, in 1 to [`MAX_LINE_ID`] octets.
    pub circuit_id: Option<&'a [u8]>,
    /// Agent remote id: which line, as the operator names it, in 1 to [`MAX_LINE_ID`] octets.
    pub remote_id: Option<&'a [u8]>,
    /// All others, which [`AccessLoop::read`](crate::access_loop::AccessLoop::read) reads.
    pub others: Vec<(u8, &'a [u8])>,
}

impl<'a> AccessLine<'a> {
    /// Reads the data behind the vendor id. An option that goes beyond the data ends it: what comes before counts. An id that no line can
    /// have is among the others.
    pub fn parse(data: &'a [u8]) -> Self {
        let mut line = AccessLine::default();
        for (kind, value) in line_options(data) {
            match kind {
                1 if line.circuit_id.is_none() && is_line_id(value) => {
                    line.circuit_id = Some(value)
                }
                2 if line.remote_id.is_none() && is_line_id(value) => line.remote_id = Some(value),
                _ => line.others.push((kind, value)),
            }
        }
        line
    }

    /// Appends the data to `out`. No value may be longer than 255 octets.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let ids = [
            self.circuit_id.map(|v| (1, v)),
            self.remote_id.map(|v| (2, v)),
        ];
        for (kind, value) in ids.into_iter().flatten().chain(self.others.iter().copied()) {
            debug_assert!(value.len() <= 255);
            out.extend_from_slice(&[kind, value.len() as u8]);
            out.extend_from_slice(value);
        }
    }
}

fn is_line_id(value: &[u8]) -> bool {
    (1..=MAX_LINE_ID).contains(&value.len())
}

#[cfg(test)]
#[path = "pppoe_tests.rs"]
mod tests;
