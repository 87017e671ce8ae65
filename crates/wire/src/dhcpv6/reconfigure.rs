//! Reconfigure messages and their authentication: Reconfigure Key Authentication Protocol (RFC 8415 §20.4).

use super::{Auth, Message, Opt, RECONFIGURE};
use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;

/// Length of a key, and of a digest made with it.
pub const KEY_LEN: usize = 16;
/// Kinds of authentication information.
const KEY: u8 = 1;
const DIGEST: u8 = 2;
/// HMAC-MD5, the protocol's only algorithm.
const HMAC_MD5: u8 = 1;
/// The number against replay rises.
const MONOTONIC: u8 = 0;
/// Header of a message and of an option.
const HEADER_LEN: usize = 4;
/// Octets of an Authentication option's data in front of its information.
const FIXED_LEN: usize = 11;

/// Authentication information with a key, for [`key_option`].
pub fn key_information(key: &[u8; KEY_LEN]) -> [u8; KEY_LEN + 1] {
    information(KEY, key)
}

/// Option of a Reply that gives the client its key. `information` is [`key_information`].
pub fn key_option(replay: u64, information: &[u8]) -> Opt<'_> {
    Opt::Auth(Auth {
        protocol: Auth::RECONFIGURE_KEY,
        algorithm: HMAC_MD5,
        method: MONOTONIC,
        replay,
        information,
    })
}

/// Key that a Reply gives, with its number against replay.
pub fn key_of(message: &Message<'_>) -> Option<([u8; KEY_LEN], u64)> {
    message.options.iter().find_map(|option| match option {
        Opt::Auth(Auth {
            protocol: Auth::RECONFIGURE_KEY,
            algorithm: HMAC_MD5,
            method: MONOTONIC,
            replay,
            information: [KEY, key @ ..],
        }) => Some(((*key).try_into().ok()?, *replay)),
        _ => None,
    })
}

/// A Reconfigure, signed with the client's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reconfigure<'a> {
    /// DUID of the server.
    pub server: &'a [u8],
    /// DUID of the client.
    pub client: &'a [u8],
    /// Message type with which the client has to answer.
    pub answer: u8,
    /// Number against replay.
    pub replay: u64,
}

impl Reconfigure<'_> {
    /// Appends the signed message to `out`.
    pub fn emit(&self, key: &[u8; KEY_LEN], out: &mut Vec<u8>) {
        let start = out.len();
        let unsigned = information(DIGEST, &[0; KEY_LEN]);
        Message {
            kind: RECONFIGURE,
            transaction: 0,
            options: vec![
                Opt::ServerId(self.server),
                Opt::ClientId(self.client),
                Opt::ReconfigureMessage(self.answer),
                key_option(self.replay, &unsigned),
            ],
        }
        .emit(out);
        let digest = mac(&out[start..], key).finalize().into_bytes();
        let at = out.len() - KEY_LEN;
        out[at..].copy_from_slice(&digest);
    }
}

/// Whether a message is signed with this key.
pub fn is_signed(bytes: &[u8], key: &[u8; KEY_LEN]) -> bool {
    let Some(at) = digest_at(bytes) else {
        return false;
    };
    let (unsigned, digest) = (
        [&bytes[..at], &[0; KEY_LEN], &bytes[at + KEY_LEN..]].concat(),
        &bytes[at..at + KEY_LEN],
    );
    mac(&unsigned, key).verify_slice(digest).is_ok()
}

/// Where the digest of a message is.
fn digest_at(bytes: &[u8]) -> Option<usize> {
    let mut at = HEADER_LEN;
    loop {
        let header = bytes.get(at..at + HEADER_LEN)?;
        let code = u16::from_be_bytes([header[0], header[1]]);
        let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let data = bytes.get(at + HEADER_LEN..at + HEADER_LEN + length)?;
        if code == Opt::AUTH {
            let is_digest = data.len() == FIXED_LEN + 1 + KEY_LEN && data[FIXED_LEN] == DIGEST;
            return is_digest.then_some(at + HEADER_LEN + FIXED_LEN + 1);
        }
        at += HEADER_LEN + length;
    }
}

fn information(kind: u8, value: &[u8; KEY_LEN]) -> [u8; KEY_LEN + 1] {
    let mut information = [kind; KEY_LEN + 1];
    information[1..].copy_from_slice(value);
    information
}

fn mac(bytes: &[u8], key: &[u8; KEY_LEN]) -> Hmac<Md5> {
    let mac = Hmac::<Md5>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.chain_update(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dhcpv6::RENEW;
    use proptest::prelude::*;

    const SERVER: &[u8] = &[0, 4, 1, 2];
    const CLIENT: &[u8] = &[0, 3, 0, 1, 2, 0, 0, 0, 0, 9];

    fn signed(key: &[u8; KEY_LEN], replay: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        let reconfigure = Reconfigure {
            server: SERVER,
            client: CLIENT,
            answer: RENEW,
            replay,
        };
        reconfigure.emit(key, &mut bytes);
        bytes
    }

    /// The digest was computed by OpenSSL: `openssl dgst -md5 -mac HMAC -macopt hexkey:…` over the message with 16 zeros.
    #[test]
    fn a_reconfigure_is_signed_over_the_whole_message() {
        let key = core::array::from_fn(|at| at as u8);
        let bytes = signed(&key, 5);
        let unsigned = "0a000000 0002 0004 00040102 0001 000a 00030001020000000009 0013 0001 05
            000b 001c 03 01 00 0000000000000005 02 00000000000000000000000000000000";
        let unsigned = crate::octets::hex(unsigned);
        assert_eq!(
            bytes[..bytes.len() - KEY_LEN],
            unsigned[..unsigned.len() - KEY_LEN]
        );
        let digest = crate::octets::hex("ca7bc2edc7825edb65e7bd21cef109bc");
        assert_eq!(bytes[bytes.len() - KEY_LEN..], digest);
    }

    #[test]
    fn a_reply_gives_a_key() {
        let key = [7; KEY_LEN];
        let information = key_information(&key);
        let message = Message {
            kind: crate::dhcpv6::REPLY,
            transaction: 1,
            options: vec![Opt::Preference(1), key_option(9, &information)],
        };
        assert_eq!(key_of(&message), Some((key, 9)));
    }

    proptest! {
        #[test]
        fn a_changed_octet_or_key_is_noticed(key: [u8; KEY_LEN], replay: u64, at: prop::sample::Index, flip in 1u8..) {
            let bytes = signed(&key, replay);
            prop_assert!(is_signed(&bytes, &key));
            let mut other = bytes.clone();
            other[at.index(bytes.len())] ^= flip;
            prop_assert!(!is_signed(&other, &key));
            let mut other_key = key;
            other_key[at.index(KEY_LEN)] ^= flip;
            prop_assert!(!is_signed(&bytes, &other_key));
        }

        #[test]
        fn whatever_comes_is_looked_at(bytes: Vec<u8>) {
            is_signed(&bytes, &[0; KEY_LEN]);
        }
    }
}
