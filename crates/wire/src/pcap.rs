//! Captures: packets in a file. What is read is pcap (draft-ietf-opsawg-pcap) or pcapng (draft-ietf-opsawg-pcapng), in
//! either byte order, as tcpdump and Wireshark write them; what is written is pcapng.
//!
//! ```
//! use wire::pcap::{self, ETHERNET, Interface, Packet};
//!
//! let mut file = Vec::new();
//! pcap::begin("an example", &mut file);
//! Interface { name: Some("access0"), link: ETHERNET }.emit(&mut file);
//! let packet = Packet { interface: 0, at: 1_500_000_000, length: 60, octets: &[7; 60] };
//! packet.emit("with a comment", None, &mut file);
//!
//! let capture = pcap::Capture::parse(&file)?;
//! assert_eq!(capture.interfaces[0].name, Some("access0"));
//! assert_eq!(capture.packets, [packet]);
//! # Ok::<(), wire::Malformed>(())
//! ```
use crate::{Malformed, Result};

/// Link type of Ethernet frames.
pub const ETHERNET: u16 = 1;
/// Link type of IP packets without anything in front of them.
pub const RAW_IP: u16 = 101;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;

/// The first octets of a pcap, with times in microseconds and in nanoseconds.
const PCAP: u32 = 0xa1b2_c3d4;
const PCAP_NANO: u32 = 0xa1b2_3c4d;

const COMMENT: u16 = 1;
const APPLICATION: u16 = 4;
const NAME: u16 = 2;
const RESOLUTION: u16 = 9;
const OFFSET: u16 = 14;
const FLAGS: u16 = 2;

/// Where packets were seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface<'a> {
    /// Its name, if the file has it; a pcap never does.
    pub name: Option<&'a str>,
    /// What its packets begin with: [`ETHERNET`], [`RAW_IP`] or another link type.
    pub link: u16,
}

/// A packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Its place among the interfaces.
    pub interface: usize,
    /// When it was seen, in nanoseconds since 1970.
    pub at: u64,
    /// How long it was; more than there are octets if the capture cut it.
    pub length: u32,
    /// Its octets.
    pub octets: &'a [u8],
}

/// Which way a packet went, as seen from who captured it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// It was received.
    In = 1,
    /// It was sent.
    Out = 2,
}

/// What is in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capture<'a> {
    /// The interfaces, those of all sections.
    pub interfaces: Vec<Interface<'a>>,
    /// The packets, in the order of the file.
    pub packets: Vec<Packet<'a>>,
}

const CUT: Malformed = Malformed("capture cut off");

/// A file's octets in its byte order.
#[derive(Clone, Copy)]
struct Reader<'a> {
    rest: &'a [u8],
    big: bool,
}

impl<'a> Reader<'a> {
    fn octets(&mut self, n: usize) -> Result<&'a [u8]> {
        let (octets, rest) = self.rest.split_at_checked(n).ok_or(CUT)?;
        self.rest = rest;
        Ok(octets)
    }

    fn u16(&mut self) -> Result<u16> {
        let (octets, rest) = self.rest.split_first_chunk().ok_or(CUT)?;
        self.rest = rest;
        Ok(match self.big {
            true => u16::from_be_bytes(*octets),
            false => u16::from_le_bytes(*octets),
        })
    }

    fn u32(&mut self) -> Result<u32> {
        let (octets, rest) = self.rest.split_first_chunk().ok_or(CUT)?;
        self.rest = rest;
        Ok(match self.big {
            true => u32::from_be_bytes(*octets),
            false => u32::from_le_bytes(*octets),
        })
    }
}

/// How an interface of a section tells the time.
#[derive(Clone, Copy)]
struct Clock {
    /// Ticks in a second.
    ticks: u128,
    /// Seconds to be added.
    offset: i64,
}

impl Clock {
    const MICROSECONDS: Clock = Clock {
        ticks: 1_000_000,
        offset: 0,
    };

    /// From the option `if_tsresol`: a power of ten, or with the first bit set, of two.
    fn ticks(resolution: u8) -> Option<u128> {
        match resolution & 0x80 {
            0 => 10u128.checked_pow(resolution.into()),
            _ => 1u128.checked_shl((resolution & 0x7f).into()),
        }
    }

    fn nanoseconds(self, ticks: u64) -> u64 {
        // 64 and 30 bits: nothing is lost
        let since = u128::from(ticks) * 1_000_000_000 / self.ticks;
        let offset = i128::from(self.offset) * 1_000_000_000;
        (since as i128)
            .saturating_add(offset)
            .clamp(0, u64::MAX.into()) as u64
    }
}

impl<'a> Capture<'a> {
    /// Reads a whole file.
    pub fn parse(file: &'a [u8]) -> Result<Self> {
        let first = file.first_chunk().ok_or(CUT)?;
        let (big, little) = (u32::from_be_bytes(*first), u32::from_le_bytes(*first));
        match (big, little) {
            (SECTION_HEADER, _) => Self::parse_pcapng(file),
            (PCAP | PCAP_NANO, _) => Self::parse_pcap(file, true, big == PCAP_NANO),
            (_, PCAP | PCAP_NANO) => Self::parse_pcap(file, false, little == PCAP_NANO),
            _ => Err(Malformed("neither pcap nor pcapng")),
        }
    }

    fn parse_pcap(file: &'a [u8], big: bool, nano: bool) -> Result<Self> {
        let mut file = Reader { rest: file, big };
        file.octets(20)?;
        let interface = Interface {
            name: None,
            link: file.u32()? as u16, // above: the length of a frame check sequence
        };
        let mut packets = Vec::new();
        while !file.rest.is_empty() {
            let (seconds, part) = (file.u32()?, file.u32()?);
            let (captured, length) = (file.u32()?, file.u32()?);
            let nanoseconds = u64::from(part) * if nano { 1 } else { 1000 };
            packets.push(Packet {
                interface: 0,
                at: u64::from(seconds) * 1_000_000_000 + nanoseconds,
                length,
                octets: file.octets(captured as usize)?,
            });
        }
        Ok(Capture {
            interfaces: vec![interface],
            packets,
        })
    }

    fn parse_pcapng(file: &'a [u8]) -> Result<Self> {
        let mut capture = Capture::default();
        let mut section = Section::default();
        let mut file = Reader {
            rest: file,
            big: false,
        };
        while !file.rest.is_empty() {
            let kind = file.u32()?;
            if kind == SECTION_HEADER {
                // Its byte order is behind its length.
                let order = file.rest.get(4..8).ok_or(CUT)?;
                file.big = order == BYTE_ORDER.to_be_bytes();
                section = Section {
                    first: capture.interfaces.len(),
                    clocks: Vec::new(),
                };
            }
            let length = file.u32()? as usize;
            let inside = length.checked_sub(12).ok_or(CUT)?;
            let rest = file.octets(inside.next_multiple_of(4))?;
            file.u32()?; // the length again
            let big = file.big;
            section.block(kind, Reader { rest, big }, &mut capture)?;
        }
        Ok(capture)
    }
}

/// A part of a pcapng that numbers its interfaces anew.
#[derive(Default)]
struct Section {
    /// How many interfaces other sections had.
    first: usize,
    clocks: Vec<Clock>,
}

impl Section {
    /// Takes a block in; kinds that say nothing about packets are passed over.
    fn block<'a>(&mut self, kind: u32, mut body: Reader<'a>, all: &mut Capture<'a>) -> Result<()> {
        match kind {
            INTERFACE => {
                let interface = self.interface(body)?;
                all.interfaces.push(interface);
            }
            ENHANCED_PACKET => {
                let number = body.u32()? as usize;
                let clock = self.clocks.get(number);
                let clock = clock.ok_or(Malformed("packet of an unknown interface"))?;
                let ticks = u64::from(body.u32()?) << 32 | u64::from(body.u32()?);
                let (captured, length) = (body.u32()?, body.u32()?);
                all.packets.push(Packet {
                    interface: self.first + number,
                    at: clock.nanoseconds(ticks),
                    length,
                    octets: body.octets(captured as usize)?,
                });
            }
            SIMPLE_PACKET => {
                if self.clocks.is_empty() {
                    return Err(Malformed("packet of an unknown interface"));
                }
                let length = body.u32()?;
                // up to three octets of padding may follow
                let captured = body.rest.len().min(length as usize);
                all.packets.push(Packet {
                    interface: self.first,
                    at: 0,
                    length,
                    octets: body.octets(captured)?,
                });
            }
            _ => {}
        }
        Ok(())
    }

    fn interface<'a>(&mut self, mut body: Reader<'a>) -> Result<Interface<'a>> {
        let link = body.u16()?;
        body.octets(6)?;
        let (mut name, mut clock) = (None, Clock::MICROSECONDS);
        while let Ok(kind @ 1..) = body.u16() {
            let length = usize::from(body.u16()?);
            let padded = body.octets(length.next_multiple_of(4))?;
            let value = &padded[..length];
            match kind {
                NAME => name = core::str::from_utf8(value).ok(),
                RESOLUTION => {
                    let resolution = value.first().ok_or(CUT)?;
                    clock.ticks = Clock::ticks(*resolution)
                        .ok_or(Malformed("interface with too fine a clock"))?;
                }
                OFFSET => {
                    let octets = *value.first_chunk().ok_or(CUT)?;
                    clock.offset = match body.big {
                        true => i64::from_be_bytes(octets),
                        false => i64::from_le_bytes(octets),
                    };
                }
                _ => {}
            }
        }
        self.clocks.push(clock);
        Ok(Interface { name, link })
    }
}

/// Begins a file: what comes next are its interfaces, then packets.
pub fn begin(application: &str, out: &mut Vec<u8>) {
    block(SECTION_HEADER, out, |body| {
        body.extend(BYTE_ORDER.to_le_bytes());
        body.extend([1, 0, 0, 0]); // version 1.0
        body.extend(u64::MAX.to_le_bytes()); // how long the section is, is not known
        option(APPLICATION, application.as_bytes(), body);
        end_of_options(body);
    });
}

impl Interface<'_> {
    /// Appends the interface; they are numbered from 0 on.
    pub fn emit(&self, out: &mut Vec<u8>) {
        block(INTERFACE, out, |body| {
            body.extend(self.link.to_le_bytes());
            body.extend([0; 6]); // reserved; packets may have any length
            if let Some(name) = self.name {
                option(NAME, name.as_bytes(), body);
            }
            option(RESOLUTION, &[9], body); // nanoseconds
            end_of_options(body);
        });
    }
}

impl Packet<'_> {
    /// Appends the packet, with a comment unless that is empty.
    pub fn emit(&self, comment: &str, direction: Option<Direction>, out: &mut Vec<u8>) {
        block(ENHANCED_PACKET, out, |body| {
            body.extend((self.interface as u32).to_le_bytes());
            body.extend(((self.at >> 32) as u32).to_le_bytes());
            body.extend((self.at as u32).to_le_bytes());
            body.extend((self.octets.len() as u32).to_le_bytes());
            body.extend(self.length.to_le_bytes());
            padded(self.octets, body);
            if !comment.is_empty() {
                option(COMMENT, comment.as_bytes(), body);
            }
            if let Some(direction) = direction {
                option(FLAGS, &(direction as u32).to_le_bytes(), body);
            }
            end_of_options(body);
        });
    }
}

fn block(kind: u32, out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend(kind.to_le_bytes());
    out.extend([0; 4]);
    body(out);
    let length = ((out.len() - start + 4) as u32).to_le_bytes();
    out[start + 4..start + 8].copy_from_slice(&length);
    out.extend(length);
}

/// The octets, and zeros up to the next multiple of four: what came before in a block is one.
fn padded(octets: &[u8], out: &mut Vec<u8>) {
    out.extend(octets);
    out.resize(
        out.len() + octets.len().next_multiple_of(4) - octets.len(),
        0,
    );
}

/// An option; a value that is too long for one is cut.
fn option(kind: u16, value: &[u8], out: &mut Vec<u8>) {
    let value = &value[..value.len().min(1000)];
    out.extend(kind.to_le_bytes());
    out.extend((value.len() as u16).to_le_bytes());
    padded(value, out);
}

fn end_of_options(out: &mut Vec<u8>) {
    out.extend([0; 4]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The smallest pcap: microseconds, one packet of three octets that was one longer.
    fn pcap(u32s: fn(u32) -> [u8; 4], u16s: fn(u16) -> [u8; 2], magic: u32) -> Vec<u8> {
        let mut file = u32s(magic).to_vec();
        file.extend([u16s(2), u16s(4)].concat());
        for word in [0, 0, 65535, 1, 1_700_000_000, 5, 3, 4] {
            file.extend(u32s(word));
        }
        file.extend([7, 8, 9]);
        file
    }

    #[test]
    fn every_form_of_pcap() {
        for (magic, nanoseconds) in [(PCAP, 5000), (PCAP_NANO, 5)] {
            let little = pcap(u32::to_le_bytes, u16::to_le_bytes, magic);
            let big = pcap(u32::to_be_bytes, u16::to_be_bytes, magic);
            for file in [little, big] {
                let capture = Capture::parse(&file).unwrap();
                let (name, link) = (None, ETHERNET);
                assert_eq!(capture.interfaces, [Interface { name, link }]);
                let packet = Packet {
                    interface: 0,
                    at: 1_700_000_000_000_000_000 + nanoseconds,
                    length: 4,
                    octets: &[7, 8, 9],
                };
                assert_eq!(capture.packets, [packet]);
                assert_eq!(Capture::parse(&file[..file.len() - 1]), Err(CUT));
            }
        }
    }

    /// A pcapng in big-endian order, an interface whose clock has 2^10 ticks in a second and is an hour behind.
    fn foreign() -> Vec<u8> {
        let block = |kind: u32, body: &[u8]| {
            let length = (body.len() as u32 + 12).to_be_bytes();
            [&kind.to_be_bytes(), &length[..], body, &length].concat()
        };
        let section = [&BYTE_ORDER.to_be_bytes()[..], &[0, 1, 0, 0], &[0xff; 8]].concat();
        let options = [
            &[0, 2, 0, 4][..],
            b"eth0",
            &[0, 9, 0, 1, 0x8a, 0, 0, 0],
            &[0, 14, 0, 8],
            &3600u64.to_be_bytes(),
            &[0, 0, 0, 0],
        ];
        let interface = [&[0, 1, 0, 0, 0, 0, 0, 0][..], &options.concat()].concat();
        let words = [0, 0, 1536, 2, 2].map(u32::to_be_bytes).concat();
        let packet = [&words[..], &[1, 2, 0, 0]].concat();
        let simple = [&3u32.to_be_bytes()[..], &[4, 5, 6, 0]].concat();
        [
            block(SECTION_HEADER, &section),
            block(INTERFACE, &interface),
            block(5, &[0; 12]), // statistics
            block(ENHANCED_PACKET, &packet),
            block(SIMPLE_PACKET, &simple),
        ]
        .concat()
    }

    #[test]
    fn pcapng_of_others_and_several_sections() {
        let twice = [foreign(), foreign()].concat();
        let capture = Capture::parse(&twice).unwrap();
        let names: Vec<_> = capture.interfaces.iter().map(|i| i.name).collect();
        assert_eq!(names, [Some("eth0"), Some("eth0")]);
        let found: Vec<_> = (capture.packets.iter())
            .map(|p| (p.interface, p.at, p.octets))
            .collect();
        let at = 3_601_500_000_000;
        let (first, second) = ([1, 2], [4, 5, 6]);
        let expected: [(usize, u64, &[u8]); 4] = [
            (0, at, &first),
            (0, 0, &second),
            (1, at, &first),
            (1, 0, &second),
        ];
        assert_eq!(found, expected);
        let mut orphan = Vec::new();
        begin("", &mut orphan);
        let packet = Packet {
            interface: 0,
            at: 0,
            length: 0,
            octets: &[],
        };
        packet.emit("", None, &mut orphan);
        assert!(Capture::parse(&orphan).is_err());
    }

    proptest! {
        #[test]
        fn emit_then_parse(
            name in "[a-z0-9/]{1,9}",
            packets in prop::collection::vec((any::<u64>(), prop::collection::vec(any::<u8>(), 0..90)), 0..5),
            comment in ".{0,20}",
        ) {
            let mut file = Vec::new();
            begin("a test", &mut file);
            let interfaces = [
                Interface { name: None, link: RAW_IP },
                Interface { name: Some(&name), link: ETHERNET },
            ];
            interfaces.iter().for_each(|interface| interface.emit(&mut file));
            let packets: Vec<_> = packets.iter().map(|(at, octets)| Packet {
                interface: octets.len() % 2,
                at: *at,
                length: 1500,
                octets,
            }).collect();
            packets.iter().for_each(|packet| packet.emit(&comment, Some(Direction::Out), &mut file));
            let capture = Capture::parse(&file).unwrap();
            prop_assert_eq!(&capture.interfaces[..], &interfaces);
            prop_assert_eq!(capture.packets, packets);
        }

        #[test]
        fn parse_never_panics(bytes: Vec<u8>, at in 0..400usize, to: u8) {
            let _ = Capture::parse(&bytes);
            let begun = [&SECTION_HEADER.to_le_bytes()[..], &bytes].concat();
            let _ = Capture::parse(&begun);
            let mut wrong = foreign();
            let at = at % wrong.len();
            wrong[at] = to;
            let _ = Capture::parse(&wrong);
        }
    }
}
