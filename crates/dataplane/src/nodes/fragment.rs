//! Node `fragment`: an IPv4 packet that is larger than its next hop takes goes there in pieces (RFC 791 §3.2).
//!
//! Out: the pieces, each with its own header. What no router may fragment goes to the control thread, which tells the
//! sender. Drops: `too-big`, `no-buffer`, `bad-ipv4`.
use super::Exit;
use super::rewrite::Frame;
use crate::drops::DropReason;
use core::ops::Range;
use dpdk::{BURST, Burst, HEAD, Packet, Pool, Window};

/// A header with all the options that there can be.
const HEADER: usize = 60;
const FIXED: usize = 20;

const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const OFFSET: u16 = 0x1fff;

/// Makes the fragments, of at most `mtu` octets, of the packet of `total` octets at `ip` in the window. `header` writes what
/// goes in front of a fragment of so many octets at a place of a window. The frames, or none
/// unless there is room for all.
pub(crate) fn make(
    pool: Pool,
    packet: &mut Packet<'_, Exit>,
    ip: usize,
    total: usize,
    mtu: u16,
    mut header: impl FnMut(&mut Window, usize, usize) -> Frame,
) -> Result<Burst, DropReason> {
    let room = packet.room().min(BURST);
    let whole = packet.frame().get(ip - HEAD..ip - HEAD + total);
    let whole = whole.ok_or(DropReason::UnsupportedBuffer)?;
    let pieces = split(whole, mtu)?;
    let n = pieces.clone().take(room + 1).count();
    let empty = (n <= room).then(|| pool.bulk(n)).flatten();
    let mut empty = empty.ok_or(DropReason::NoBuffer)?;
    let (mut ready, mut w) = (Burst::new(), Window::default());
    for piece in pieces {
        let mbuf = empty.pop();
        let mut mbuf = mbuf.ok_or(DropReason::NoBuffer)?;
        let payload = &whole[piece.payload];
        // The first one is the largest: if it fits, all do.
        if !(mbuf.append(&piece.header[..piece.length]) && mbuf.append(payload)) {
            return Err(DropReason::NoBuffer);
        }
        // A place that leaves room for any header, as that of a packet from the core.
        let at = HEAD + 14;
        let frame = header(&mut w, at, piece.length + payload.len());
        if !mbuf.prepend(w.bytes(frame.start..at)) || ready.push(mbuf).is_err() {
            return Err(DropReason::NoBuffer);
        }
    }
    Ok(ready)
}

/// A fragment: its header, and where its payload is in the whole packet.
struct Piece {
    header: [u8; HEADER],
    length: usize,
    payload: Range<usize>,
}

/// The fragments of a packet, in order.
#[derive(Clone)]
struct Pieces<'a> {
    packet: &'a [u8],
    mtu: usize,
    /// The headers of the first fragment and of the others, whose lengths, offsets and checksums are open.
    first: ([u8; HEADER], usize),
    others: ([u8; HEADER], usize),
    /// How far the payload is sent.
    done: usize,
}

/// Splits a packet whose header is sound; `TooBig` if that must not be, or makes no sense.
fn split(packet: &[u8], mtu: u16) -> Result<Pieces<'_>, DropReason> {
    let mtu = mtu as usize;
    let length = packet.first().map_or(0, |first| (first & 15) as usize * 4);
    let Some(header) = packet.get(..length).filter(|header| {
        (FIXED..=HEADER).contains(&length)
            && header[0] >> 4 == 4
            && word(header, 6) & DONT_FRAGMENT == 0
            && length + 8 <= mtu
    }) else {
        return Err(DropReason::TooBig);
    };
    // A part of a packet that would be longer than any (RFC 791 §3.1: 65,535 octets).
    let end = (word(header, 6) & OFFSET) as usize * 8 + packet.len() - length;
    if end > 0xffff {
        return Err(DropReason::BadIpv4);
    }
    let mut first = [0; HEADER];
    first[..length].copy_from_slice(header);
    Ok(Pieces {
        packet,
        mtu,
        first: (first, length),
        others: with_copied_options(header),
        done: 0,
    })
}

/// The header with those options alone that go into every fragment: the first bit of their type says so (RFC 791 §3.1).
fn with_copied_options(header: &[u8]) -> ([u8; HEADER], usize) {
    let (mut out, mut length) = ([0; HEADER], FIXED);
    out[..FIXED].copy_from_slice(&header[..FIXED]);
    let mut options = &header[FIXED..];
    // Up to the end of options, or to one that is none.
    while let [kind, rest @ ..] = options
        && *kind != 0
    {
        let size = match (kind, rest.first()) {
            (1, _) => 1, // no operation
            (_, Some(&size @ 2..)) => size as usize,
            _ => break,
        };
        let Some((option, behind)) = options.split_at_checked(size) else {
            break;
        };
        if kind & 0x80 != 0 {
            out[length..length + size].copy_from_slice(option);
            length += size;
        }
        options = behind;
    }
    let length = length.next_multiple_of(4);
    out[0] = 0x40 | (length / 4) as u8;
    (out, length)
}

impl Iterator for Pieces<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        let start = self.first.1 + self.done;
        let rest = self.packet.len() - start;
        if rest == 0 {
            return None;
        }
        let (mut header, length) = if self.done == 0 {
            self.first
        } else {
            self.others
        };
        let most = self.mtu - length;
        let size = if rest <= most { rest } else { most & !7 };
        // A fragment's fragments: its place goes on, and only the end of a packet is an end (RFC 791 §3.2).
        let flags = word(self.packet, 6) + (self.done / 8) as u16;
        let more = if size < rest { MORE_FRAGMENTS } else { 0 };
        put(&mut header, 2, (length + size) as u16);
        put(&mut header, 6, flags | more);
        put(&mut header, 10, 0);
        let sum = wire::checksum::of(&header[..length]);
        put(&mut header, 10, sum);
        self.done += size;
        Some(Piece {
            header,
            length,
            payload: start..start + size,
        })
    }
}

fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn put(bytes: &mut [u8], at: usize, word: u16) {
    bytes[at..at + 2].copy_from_slice(&word.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use wire::ipv4;

    fn fragments(packet: &[u8], mtu: u16) -> Result<Vec<Vec<u8>>, DropReason> {
        let whole = |piece: Piece| {
            [
                &piece.header[..piece.length],
                &packet[piece.payload.clone()],
            ]
            .concat()
        };
        Ok(split(packet, mtu)?.map(whole).collect())
    }

    fn packet(header: ipv4::Header, options: &[u8], payload: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        ipv4::Packet {
            header,
            options,
            payload,
        }
        .emit(&mut out);
        out
    }

    fn header() -> ipv4::Header {
        let (from, to) = ([192, 0, 2, 1], [100, 64, 0, 7]);
        ipv4::Header::new(ipv4::UDP, from.into(), to.into())
    }

    /// Puts fragments together as RFC 815 says: a list of holes, which they fill. The payload from `base` (in units of 8
    /// octets) on, and whether its end is known.
    fn reassemble(base: u16, fragments: &[Vec<u8>]) -> Option<(Vec<u8>, bool)> {
        let (mut data, mut holes, mut ended) = (vec![], vec![(0, usize::MAX)], false);
        for fragment in fragments {
            let parsed = ipv4::Packet::parse(fragment).expect("a sound packet");
            let first = (parsed.header.fragment_offset - base) as usize * 8;
            let end = first + parsed.payload.len();
            let place = holes.iter().position(|h| h.0 <= first && end <= h.1)?;
            let (from, to) = holes.remove(place);
            if from < first {
                holes.push((from, first));
            }
            if parsed.header.more_fragments && end < to {
                holes.push((end, to));
            }
            ended |= !parsed.header.more_fragments;
            data.resize(data.len().max(end), 0);
            data[first..end].copy_from_slice(parsed.payload);
        }
        // Nothing is missing but, if the end is not known, what comes behind it.
        let whole = match ended {
            true => holes.is_empty(),
            false => holes == [(data.len(), usize::MAX)],
        };
        whole.then_some((data, ended))
    }

    fn options() -> impl Strategy<Value = Vec<u8>> {
        let option = prop_oneof![
            Just(vec![1]),
            (any::<u8>(), 0usize..8).prop_map(|(kind, n)| {
                let mut option = vec![kind.max(2), n as u8 + 2];
                option.resize(n + 2, 0xaa);
                option
            }),
        ];
        prop::collection::vec(option, 0..5).prop_map(|all| {
            let mut options = all.concat();
            options.truncate(40);
            options.resize(options.len().next_multiple_of(4), 0);
            options
        })
    }

    proptest! {
        #[test]
        fn fragments_are_the_packet(
            options in options(), size in 0usize..2000, id: u16, place in 0u16..6000, more: bool, mtu in 68u16..1600, seed: u8,
        ) {
            let payload: Vec<u8> = (0..size).map(|i| (i as u8).wrapping_mul(7) ^ seed).collect();
            let payload = &payload[..if more { size & !7 } else { size }];
            let original = ipv4::Header {
                identification: id,
                fragment_offset: place,
                more_fragments: more,
                ..header()
            };
            let whole = packet(original, &options, payload);
            prop_assume!(whole.len() > mtu as usize);
            let pieces = fragments(&whole, mtu).unwrap();
            prop_assert!(pieces.len() > 1);
            for (n, piece) in pieces.iter().enumerate() {
                prop_assert!(piece.len() <= mtu as usize);
                let parsed = ipv4::Packet::parse(piece).unwrap();
                if n == 0 {
                    prop_assert_eq!(parsed.options, &options);
                }
                let same = ipv4::Header {
                    fragment_offset: place,
                    more_fragments: more,
                    ..parsed.header
                };
                prop_assert_eq!(same, original);
            }
            let (data, ended) = reassemble(place, &pieces).expect("no hole");
            prop_assert_eq!((&data[..], ended), (payload, !more));
            // In whatever order they arrive.
            let backwards: Vec<_> = pieces.into_iter().rev().collect();
            prop_assert_eq!(reassemble(place, &backwards), Some((data, ended)));
        }

        #[test]
        fn nonsense_never_panics(mut bytes in prop::collection::vec(any::<u8>(), 0..200), mtu: u16) {
            let _ = fragments(&bytes, mtu).map(|f| f.len());
            if let Some(first) = bytes.first_mut() {
                *first = 0x40 | *first & 15;
            }
            let _ = fragments(&bytes, mtu).map(|f| f.len());
        }
    }

    #[test]
    fn only_copied_options_are_in_every_fragment() {
        // A loose source route (copied), no operation, a recorded route (not copied), the end.
        let options = [
            0x83, 7, 4, 10, 0, 0, 1, 1, 7, 7, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        ];
        let pieces = fragments(&packet(header(), &options, &[7; 300]), 200).unwrap();
        let options_of = |n: usize| ipv4::Packet::parse(&pieces[n]).unwrap().options.to_vec();
        assert_eq!((pieces.len(), options_of(0)), (2, options.to_vec()));
        assert_eq!(options_of(1), [0x83, 7, 4, 10, 0, 0, 1, 0]);
        // 160 octets fit behind 40 of header; then 28 and the other 140.
        assert_eq!((pieces[0].len(), pieces[1].len()), (200, 168));
    }

    #[test]
    fn what_must_not_be_fragmented_is_not() {
        let whole = ipv4::Header {
            dont_fragment: true,
            ..header()
        };
        let refused = |packet: &[u8], mtu| fragments(packet, mtu).unwrap_err();
        let dont = packet(whole, &[], &[7; 1500]);
        assert_eq!(refused(&dont, 1400), DropReason::TooBig);
        assert_eq!(refused(&[0x60; 1500], 1400), DropReason::TooBig, "IPv6");
        let may = packet(header(), &[], &[7; 1500]);
        assert_eq!(refused(&may, 27), DropReason::TooBig, "no room for any");
        let beyond = ipv4::Header {
            fragment_offset: 8191,
            ..header()
        };
        let beyond = packet(beyond, &[], &[7; 1500]);
        assert_eq!(refused(&beyond, 1400), DropReason::BadIpv4);
    }
}
