//! MS-CHAPv2 (RFC 2759): the value of a CHAP Response, the texts of the results, and the digests in them.
//!
//! ```
//! use wire::mschapv2::{Exchange, Response, Success};
//!
//! let exchange = Exchange { challenge: [7; 16], peer_challenge: [9; 16], username: b"alice" };
//! let response = Response { peer_challenge: [9; 16], nt_response: exchange.nt_response(b"wonderland") };
//! assert_eq!(Response::parse(&response.to_value()), Ok(response));
//!
//! let proof = exchange.authenticator_response(b"wonderland", &response.nt_response);
//! let text = Success { proof, message: b"welcome" }.to_text();
//! assert!(text.starts_with(b"S=") && text.ends_with(b" M=welcome"));
//! ```
use crate::{Malformed, Result};
use des::Des;
use des::cipher::{BlockCipherEncrypt, KeyInit};
use md4::Md4;
use sha1::{Digest, Sha1};

/// Algorithm in LCP's Authentication-Protocol option (RFC 2759 §3).
pub const ALGORITHM: u8 = 0x81;
/// Octets of the value of a CHAP Response (RFC 2759 §4).
pub const VALUE_LEN: usize = 49;
/// Error code for a wrong name or password, ERROR_AUTHENTICATION_FAILURE (RFC 2759 §6).
pub const AUTHENTICATION_FAILURE: u32 = 691;

const CHALLENGE: usize = 16;
const RESERVED: usize = 8;
const NT_RESPONSE: usize = 24;
const PROOF: usize = 20;
/// Hexadecimal digits of a proof, behind `S=`.
const PROOF_DIGITS: usize = 2 * PROOF;

/// Challenges of both sides, and the name that the peer gave. All digests depend on them.
#[derive(Clone, Copy)]
pub struct Exchange<'a> {
    /// Challenge of the authenticator.
    pub challenge: [u8; CHALLENGE],
    /// Challenge of the peer.
    pub peer_challenge: [u8; CHALLENGE],
    /// Name in the Response.
    pub username: &'a [u8],
}

impl Exchange<'_> {
    /// What a peer that knows the password answers (RFC 2759 §8.1).
    pub fn nt_response(&self, password: &[u8]) -> [u8; NT_RESPONSE] {
        let challenge = self.challenge_hash();
        let mut keys = [0; 21];
        keys[..16].copy_from_slice(&password_hash(password));
        let mut response = [0; NT_RESPONSE];
        let parts = response.chunks_exact_mut(8).zip(keys.chunks_exact(7));
        parts.for_each(|(part, key)| part.copy_from_slice(&encrypt(&challenge, key)));
        response
    }

    /// Proof of an authenticator that knows the password, too (RFC 2759 §8.7).
    pub fn authenticator_response(
        &self,
        password: &[u8],
        nt_response: &[u8; NT_RESPONSE],
    ) -> [u8; PROOF] {
        let digest = Sha1::new()
            .chain_update(Md4::digest(password_hash(password)))
            .chain_update(nt_response)
            .chain_update(b"Magic server to client signing constant")
            .finalize();
        Sha1::new()
            .chain_update(digest)
            .chain_update(self.challenge_hash())
            .chain_update(b"Pad to make it do more than one iteration")
            .finalize()
            .into()
    }

    /// RFC 2759 §8.2. The name counts without the domain before it (§4).
    fn challenge_hash(&self) -> [u8; 8] {
        let mut name = self.username.rsplit(|octet| *octet == b'\\');
        let digest = Sha1::new()
            .chain_update(self.peer_challenge)
            .chain_update(self.challenge)
            .chain_update(name.next().unwrap_or_default())
            .finalize();
        core::array::from_fn(|n| digest[n])
    }
}

/// RFC 2759 §8.3. The password is in UTF-16.
fn password_hash(password: &[u8]) -> [u8; 16] {
    let mut hash = Md4::new();
    for unit in String::from_utf8_lossy(password).encode_utf16() {
        hash.update(unit.to_le_bytes());
    }
    hash.finalize().into()
}

/// RFC 2759 §8.6. DES has eight octets of key, each with seven bits and one for the parity, which does not count.
fn encrypt(clear: &[u8; 8], key: &[u8]) -> [u8; 8] {
    let bits = key
        .iter()
        .fold(0u64, |bits, octet| bits << 8 | u64::from(*octet));
    let key: [u8; 8] = core::array::from_fn(|n| (bits >> (49 - 7 * n) << 1) as u8);
    let mut block = (*clear).into();
    Des::new(&key.into()).encrypt_block(&mut block);
    block.into()
}

/// Value of a CHAP Response (RFC 2759 §4). The reserved octets and the flags are zero, and ignored.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Response {
    /// Challenge of the peer.
    pub peer_challenge: [u8; CHALLENGE],
    /// The peer's proof.
    pub nt_response: [u8; NT_RESPONSE],
}

impl Response {
    /// Reads the value of a CHAP Response.
    pub fn parse(value: &[u8]) -> Result<Self> {
        let value: &[u8; VALUE_LEN] = value
            .try_into()
            .map_err(|_| Malformed("MS-CHAPv2 response does not have 49 octets"))?;
        Ok(Response {
            peer_challenge: core::array::from_fn(|n| value[n]),
            nt_response: core::array::from_fn(|n| value[CHALLENGE + RESERVED + n]),
        })
    }

    /// Value of a CHAP Response.
    pub fn to_value(&self) -> Vec<u8> {
        let (challenge, response) = (&self.peer_challenge[..], &self.nt_response[..]);
        [challenge, &[0; RESERVED], response, &[0]].concat()
    }

    /// Value of RADIUS' MS-CHAP2-Response, which has identifier and flags first (RFC 2548 §2.3.2).
    pub fn to_attribute(&self, id: u8) -> Vec<u8> {
        let (challenge, response) = (&self.peer_challenge[..], &self.nt_response[..]);
        [&[id, 0], challenge, &[0; RESERVED], response].concat()
    }

    /// Reads RADIUS' MS-CHAP2-Response: the identifier and the response.
    pub fn parse_attribute(value: &[u8]) -> Result<(u8, Self)> {
        match value {
            [id, _flags, rest @ ..] => Ok((*id, Response::parse(&[rest, &[0]].concat())?)),
            _ => Err(Malformed("MS-CHAP2-Response is too short")),
        }
    }
}

/// Hides the proof, from which a weak password could be guessed.
impl core::fmt::Debug for Response {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Response(<hidden>)")
    }
}

/// Text of a CHAP Success (RFC 2759 §5): `S=` with the authenticator's proof, ` M=` with a message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Success<'a> {
    /// Proof of the authenticator.
    pub proof: [u8; PROOF],
    /// A text for people.
    pub message: &'a [u8],
}

impl<'a> Success<'a> {
    /// Reads the text of a CHAP Success. The message may be missing.
    pub fn parse(text: &'a [u8]) -> Result<Self> {
        let text = text.strip_prefix(b"S=");
        let (digits, rest) = text
            .and_then(|text| text.split_first_chunk::<PROOF_DIGITS>())
            .ok_or(Malformed("MS-CHAPv2 success without a proof"))?;
        let message = match rest {
            [] => rest,
            _ => rest
                .strip_prefix(b" M=")
                .ok_or(Malformed("MS-CHAPv2 success with another text"))?,
        };
        let mut proof = [0; PROOF];
        for (octet, pair) in proof.iter_mut().zip(digits.chunks_exact(2)) {
            *octet = hex_digit(pair[0])? << 4 | hex_digit(pair[1])?;
        }
        Ok(Success { proof, message })
    }

    /// Text of a CHAP Success.
    pub fn to_text(&self) -> Vec<u8> {
        let mut text = b"S=".to_vec();
        push_hex(&self.proof, &mut text);
        text.extend(b" M=");
        text.extend(self.message);
        text
    }
}

/// Hides the proof.
impl core::fmt::Debug for Success<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let message = self.message.escape_ascii();
        write!(f, "Success {{ message: \"{message}\" }}")
    }
}

/// Text of a CHAP Failure (RFC 2759 §6): error code, whether the peer may try again, challenge, version and message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure<'a> {
    /// Error code.
    pub error: u32,
    /// A text for people.
    pub message: &'a [u8],
}

impl<'a> Failure<'a> {
    /// Reads the text of a CHAP Failure. Servers leave parts of it out, but not the error code.
    pub fn parse(text: &'a [u8]) -> Result<Self> {
        const NO_ERROR: Malformed = Malformed("MS-CHAPv2 failure without an error code");
        let rest = text.strip_prefix(b"E=").ok_or(NO_ERROR)?;
        let end = rest.iter().position(|octet| !octet.is_ascii_digit());
        let (digits, rest) = rest.split_at(end.unwrap_or(rest.len()));
        let error = core::str::from_utf8(digits).ok();
        let error = error
            .and_then(|digits| digits.parse().ok())
            .ok_or(NO_ERROR)?;
        let message = rest.windows(3).position(|part| part == b" M=");
        let message = message.map_or(&[][..], |at| &rest[at + 3..]);
        Ok(Failure { error, message })
    }

    /// Text of a CHAP Failure. The peer may not try again on this link (`R=0`), so its challenge is not used.
    pub fn to_text(&self, challenge: &[u8; CHALLENGE]) -> Vec<u8> {
        let mut text = format!("E={} R=0 C=", self.error).into_bytes();
        push_hex(challenge, &mut text);
        text.extend(b" V=3 M=");
        text.extend(self.message);
        text
    }
}

/// RFC 2759 §5 asks for upper case.
fn push_hex(octets: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for octet in octets {
        out.extend([octet >> 4, octet & 15].map(|digit| DIGITS[usize::from(digit)]));
    }
}

fn hex_digit(digit: u8) -> Result<u8> {
    let value = char::from(digit).to_digit(16);
    let value = value.ok_or(Malformed("MS-CHAPv2 proof is not hexadecimal"))?;
    Ok(value as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 2759 §9.2.
    const EXAMPLE: Exchange = Exchange {
        challenge: *b"\x5b\x5d\x7c\x7d\x7b\x3f\x2f\x3e\x3c\x2c\x60\x21\x32\x26\x26\x28",
        peer_challenge: *b"\x21\x40\x23\x24\x25\x5e\x26\x2a\x28\x29\x5f\x2b\x3a\x33\x7c\x7e",
        username: b"User",
    };
    const EXAMPLE_RESPONSE: [u8; 24] = [
        0x82, 0x30, 0x9e, 0xcd, 0x8d, 0x70, 0x8b, 0x5e, 0xa0, 0x8f, 0xaa, 0x39, 0x81, 0xcd, 0x83,
        0x54, 0x42, 0x33, 0x11, 0x4a, 0x3d, 0x85, 0xd6, 0xdf,
    ];

    #[test]
    fn the_digests_are_those_of_the_standard() {
        assert_eq!(
            EXAMPLE.challenge_hash(),
            *b"\xd0\x2e\x43\x86\xbc\xe9\x12\x26"
        );
        assert_eq!(EXAMPLE.nt_response(b"clientPass"), EXAMPLE_RESPONSE);
        let proof = EXAMPLE.authenticator_response(b"clientPass", &EXAMPLE_RESPONSE);
        let text = Success {
            proof,
            message: b"",
        }
        .to_text();
        assert_eq!(text, b"S=407A5589115FD0D6209F510FE9C04566932CDA56 M=");
        assert_ne!(EXAMPLE.nt_response(b"clientpass"), EXAMPLE_RESPONSE);
    }

    #[test]
    fn the_domain_before_a_name_does_not_count() {
        let with_domain = Exchange {
            username: b"DOMAIN\\User",
            ..EXAMPLE
        };
        assert_eq!(with_domain.nt_response(b"clientPass"), EXAMPLE_RESPONSE);
        let other = Exchange {
            username: b"User@domain",
            ..EXAMPLE
        };
        assert_ne!(other.nt_response(b"clientPass"), EXAMPLE_RESPONSE);
    }

    #[test]
    fn a_password_counts_by_its_characters() {
        // UTF-16 of U+00E9 is e9 00
        let expected: [u8; 16] = Md4::digest([0xe9, 0]).into();
        assert_eq!(password_hash("é".as_bytes()), expected);
    }

    #[test]
    fn a_failure_has_all_that_the_standard_asks_for_and_may_lack_most_of_it() {
        let failure = Failure {
            error: 691,
            message: b"wrong M=password",
        };
        let text = failure.to_text(&[0xab; 16]);
        assert_eq!(
            text,
            b"E=691 R=0 C=ABABABABABABABABABABABABABABABAB V=3 M=wrong M=password"
        );
        assert_eq!(
            Failure::parse(b"E=648"),
            Ok(Failure {
                error: 648,
                message: b""
            })
        );
        for text in [
            &b"E="[..],
            b"E= 691",
            b"R=0 E=691",
            b"E=99999999999",
            b"691",
            b"",
        ] {
            assert!(Failure::parse(text).is_err(), "{}", text.escape_ascii());
        }
    }

    #[test]
    fn a_success_without_a_whole_proof_is_none() {
        let whole = b"S=407A5589115FD0D6209F510FE9C04566932CDA56";
        assert!(Success::parse(whole).is_ok_and(|success| success.message.is_empty()));
        for bad in [
            &whole[1..],
            &whole[..41],
            b"S=407A5589115FD0D6209F510FE9C04566932CDA5G",
            b"S=407A5589115FD0D6209F510FE9C04566932CDA56M=hello",
        ] {
            assert!(Success::parse(bad).is_err(), "{}", bad.escape_ascii());
        }
    }

    #[test]
    fn proofs_are_not_shown() {
        let response = Response {
            peer_challenge: [77; 16],
            nt_response: [88; 24],
        };
        let success = Success {
            proof: [99; 20],
            message: b"hello",
        };
        let shown = format!("{response:?} {success:?}");
        assert!(
            shown.contains("hello") && !shown.contains("88") && !shown.contains("99"),
            "{shown}"
        );
    }

    proptest! {
        #[test]
        fn emit_then_parse(peer_challenge: [u8; 16], nt_response: [u8; 24], id: u8, proof: [u8; 20], error: u32, message: Vec<u8>) {
            let response = Response { peer_challenge, nt_response };
            let value = response.to_value();
            prop_assert_eq!(Response::parse(&value), Ok(response));
            prop_assert!(Response::parse(&value[1..]).is_err());
            let attribute = response.to_attribute(id);
            prop_assert_eq!(Response::parse_attribute(&attribute), Ok((id, response)));
            prop_assert!(Response::parse_attribute(&attribute[1..]).is_err());
            let success = Success { proof, message: &message };
            let text = success.to_text();
            prop_assert_eq!(Success::parse(&text), Ok(success));
            let failure = Failure { error, message: &message };
            let text = failure.to_text(&peer_challenge);
            prop_assert_eq!(Failure::parse(&text), Ok(failure));
        }

        #[test]
        fn parse_never_panics(bytes: Vec<u8>, rest: Vec<u8>) {
            let _ = Response::parse(&bytes);
            let _ = Response::parse_attribute(&bytes);
            for prefix in [&b""[..], b"S=", b"E=", b"E=691 ", b"S=407A5589115FD0D6209F510FE9C04566932CDA56"] {
                let text = [prefix, &rest].concat();
                let _ = Success::parse(&text);
                let _ = Failure::parse(&text);
            }
        }

        #[test]
        fn any_name_and_password_are_hashed(username: Vec<u8>, password: Vec<u8>) {
            let exchange = Exchange { username: &username, ..EXAMPLE };
            let response = exchange.nt_response(&password);
            let _ = exchange.authenticator_response(&password, &response);
        }
    }
}
