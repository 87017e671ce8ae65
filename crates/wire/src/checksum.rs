//! The internet checksum (RFC 1071), its pseudo headers, and its incremental update (RFC 1624).
//!
//! ```
//! use wire::checksum;
//!
//! let mut header = [0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
//! let sum = checksum::of(&header);
//! header[10..12].copy_from_slice(&sum.to_be_bytes());
//! assert_eq!(checksum::of(&header), 0, "what carries its own checksum sums to zero");
//! // TTL 64 becomes 63: the word (TTL, protocol) changes.
//! let updated = checksum::update(sum, 0x4011, 0x3f11);
//! header[8] = 63;
//! header[10..12].copy_from_slice(&updated.to_be_bytes());
//! assert_eq!(checksum::of(&header), 0);
//! ```
use core::net::{Ipv4Addr, Ipv6Addr};

/// A running sum of 16-bit words.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum(u64);

impl Sum {
    /// Adds octets; an odd last one counts as the high half of a word, so only the last piece may be odd.
    #[must_use]
    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        let mut words = bytes.chunks_exact(2);
        for word in &mut words {
            self.0 += u64::from(u16::from_be_bytes([word[0], word[1]]));
        }
        if let &[last] = words.remainder() {
            self.0 += u64::from(last) << 8;
        }
        self
    }

    /// Adds one word.
    #[must_use]
    pub fn word(mut self, word: u16) -> Self {
        self.0 += u64::from(word);
        self
    }

    /// The ones' complement of the folded sum.
    pub fn finish(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }
}

/// The checksum of `bytes`; 0 if they carry their own right checksum.
pub fn of(bytes: &[u8]) -> u16 {
    Sum::default().bytes(bytes).finish()
}

/// The IPv4 pseudo header of UDP and TCP.
pub fn pseudo_v4(source: Ipv4Addr, destination: Ipv4Addr, protocol: u8, length: u16) -> Sum {
    Sum::default()
        .bytes(&source.octets())
        .bytes(&destination.octets())
        .word(protocol.into())
        .word(length)
}

/// The IPv6 pseudo header (RFC 8200 §8.1).
pub fn pseudo_v6(source: Ipv6Addr, destination: Ipv6Addr, next_header: u8, length: u32) -> Sum {
    Sum::default()
        .bytes(&source.octets())
        .bytes(&destination.octets())
        .bytes(&length.to_be_bytes())
        .word(next_header.into())
}

/// The checksum after one word under it changed from `old` to `new` (RFC 1624, equation 3).
pub fn update(checksum: u16, old: u16, new: u16) -> u16 {
    Sum::default().word(!checksum).word(!old).word(new).finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The example of RFC 1071 §3.
    #[test]
    fn rfc_example() {
        assert_eq!(
            of(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]),
            !0xddf2
        );
    }

    proptest! {
        #[test]
        fn incremental_equals_full(mut words in prop::collection::vec(1u16.., 1..40), at: prop::sample::Index, new in 1u16..) {
            let bytes = |w: &[u16]| w.iter().flat_map(|w| w.to_be_bytes()).collect::<Vec<u8>>();
            let before = of(&bytes(&words));
            let slot = at.get(&words);
            let old = *slot;
            let position = at.index(words.len());
            words[position] = new;
            prop_assert_eq!(update(before, old, new), of(&bytes(&words)));
        }

        #[test]
        fn pieces_add_up(bytes: Vec<u8>, cut: prop::sample::Index) {
            let cut = if bytes.is_empty() { 0 } else { cut.index(bytes.len()) & !1 };
            let pieces = Sum::default().bytes(&bytes[..cut]).bytes(&bytes[cut..]).finish();
            prop_assert_eq!(pieces, of(&bytes));
        }
    }
}
