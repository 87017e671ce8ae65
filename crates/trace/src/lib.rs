//! What a traced packet says, and a file of such packets for Wireshark. The command line and `sluice-web` show both.
//!
//! ```
//! use northbound::{TracedPacket, TracedPath};
//!
//! let packet = TracedPacket {
//!     path: TracedPath::Access.into(),
//!     octets: b"\xff\xff\xff\xff\xff\xff\x02\0\x5e\x10\0\x01\x88\x63\x11\x09\0\0\0\0".to_vec(),
//!     ..TracedPacket::default()
//! };
//! assert_eq!(trace::Line::of(&packet).says, "PADI");
//! let mut file = trace::Writer::begin(Vec::new())?;
//! file.packet(&packet)?;
//! # Ok::<(), std::io::Error>(())
//! ```
#![forbid(unsafe_code)]

mod describe;
mod pcapng;

pub use describe::describe;
use northbound::TracedPacket;
pub use pcapng::Writer;
use serde::Serialize;

/// A packet for scripts and pages: its fields, and what it says.
#[derive(Debug, Serialize)]
pub struct Line<'p> {
    #[serde(flatten)]
    packet: &'p TracedPacket,
    /// In words.
    pub says: String,
}

impl<'p> Line<'p> {
    /// That of a packet.
    pub fn of(packet: &'p TracedPacket) -> Self {
        let says = describe(packet);
        Line { packet, says }
    }
}
