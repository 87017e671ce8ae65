//! The digests that protect packets and passwords.
//!
//! MD5 is what the protocol has. What holds today is the HMAC in the Message-Authenticator, which is why it is put into every
//! Access-Request and expected in every reply to one (CVE-2024-3596).

use hmac::{Hmac, KeyInit, Mac};
use md5::{Digest, Md5};

use super::{Code, HEADER_LEN, Kind, Packet, Spans, trim};
use crate::{Malformed, Result};

const DIGEST: usize = 16;
const BAD_AUTHENTICATOR: Malformed = Malformed("RADIUS: wrong authenticator");
const BAD_MESSAGE_AUTHENTICATOR: Malformed = Malformed("RADIUS: wrong Message-Authenticator");

/// What to do with a reply that has no Message-Authenticator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Refuse it.
    Refuse,
    /// Take it: the server is old, or the reply is to an Accounting-Request, of which the authenticator is a keyed digest
    /// itself.
    Allow,
}

impl Packet {
    /// Writes an Access-Request or Status-Server with its Message-Authenticator (RFC 2869 §5.14, RFC 5997 §3). It comes first, so that
    /// no attribute of an attacker's choice can stand before it.
    pub fn emit_access_request(&self, secret: &[u8]) -> Result<Vec<u8>> {
        let mut out = self.emit_with_room_for_digest()?;
        let digest = message_authenticator(&out, &self.authenticator, HEADER_LEN + 2, secret)
            .finalize()
            .into_bytes();
        out[HEADER_LEN + 2..HEADER_LEN + 2 + DIGEST].copy_from_slice(&digest);
        Ok(out)
    }

    /// Writes an Accounting-Request with its Request Authenticator (RFC 2866 §3); the packet's own is not used.
    pub fn emit_accounting_request(&self, secret: &[u8]) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        self.emit(&mut out)?;
        sign_accounting_request(&mut out, secret);
        Ok(out)
    }

    /// Writes a CoA-Request or Disconnect-Request with its Message-Authenticator and Request Authenticator (RFC 5176 §2.3, §3);
    /// the packet's own authenticator is not used.
    pub fn emit_dynamic_request(&self, secret: &[u8]) -> Result<Vec<u8>> {
        let mut out = self.emit_with_room_for_digest()?;
        let at = HEADER_LEN + 2;
        let digest = message_authenticator(&out, &[0; DIGEST], at, secret)
            .finalize()
            .into_bytes();
        out[at..at + DIGEST].copy_from_slice(&digest);
        sign_accounting_request(&mut out, secret);
        Ok(out)
    }

    /// Writes a reply to the request with this authenticator: with Message-Authenticator and Response Authenticator
    /// (RFC 2865 §3); the packet's own is not used.
    pub fn emit_response(
        &self,
        request_authenticator: &[u8; 16],
        secret: &[u8],
    ) -> Result<Vec<u8>> {
        let mut out = self.emit_with_room_for_digest()?;
        let at = HEADER_LEN + 2;
        let digest = message_authenticator(&out, request_authenticator, at, secret)
            .finalize()
            .into_bytes();
        out[at..at + DIGEST].copy_from_slice(&digest);
        let authenticator = authenticator(&out, request_authenticator, secret);
        out[4..HEADER_LEN].copy_from_slice(&authenticator);
        Ok(out)
    }

    fn emit_with_room_for_digest(&self) -> Result<Vec<u8>> {
        let mut room = [0; 2 + DIGEST];
        room[..2].copy_from_slice(&[Kind::MESSAGE_AUTHENTICATOR.number, 2 + DIGEST as u8]);
        let mut out = Vec::new();
        self.emit_with(&room, &mut out)?;
        Ok(out)
    }
}

/// Puts the Request Authenticator (RFC 2866 §3) into an Accounting-Request that is written but for it. It is a digest of
/// the packet: the same packet always has the same.
///
/// # Panics
/// If `packet` is shorter than a header.
pub fn sign_accounting_request(packet: &mut [u8], secret: &[u8]) {
    let digest = authenticator(packet, &[0; DIGEST], secret);
    packet[4..HEADER_LEN].copy_from_slice(&digest);
}

/// Reads a reply to the request with this authenticator, if it is from somebody who knows the secret.
pub fn verify_response(
    bytes: &[u8],
    request: &[u8; 16],
    secret: &[u8],
    missing: Missing,
) -> Result<Packet> {
    let bytes = trim(bytes)?;
    if !equal(
        &authenticator(bytes, request, secret),
        &bytes[4..HEADER_LEN],
    ) {
        return Err(BAD_AUTHENTICATOR);
    }
    verify_message_authenticator(bytes, request, secret, missing)?;
    Packet::parse(bytes)
}

/// Reads an Access-Request as a server does: its Message-Authenticator must be there and right.
pub fn verify_access_request(bytes: &[u8], secret: &[u8]) -> Result<Packet> {
    match verify_random_request(bytes, secret)? {
        packet if packet.code == Code::ACCESS_REQUEST => Ok(packet),
        _ => Err(Malformed("RADIUS: not an Access-Request")),
    }
}

/// Reads a Status-Server as a server does: its Message-Authenticator must be there and right (RFC 5997 §3).
///
/// # Errors
/// The reason for which it is not authentic, or not a Status-Server.
pub fn verify_status_server(bytes: &[u8], secret: &[u8]) -> Result<Packet> {
    match verify_random_request(bytes, secret)? {
        packet if packet.code == Code::STATUS_SERVER => Ok(packet),
        _ => Err(Malformed("RADIUS: not a Status-Server")),
    }
}

/// Reads a request with a random authenticator, which its Message-Authenticator proves.
fn verify_random_request(bytes: &[u8], secret: &[u8]) -> Result<Packet> {
    let packet = Packet::parse(bytes)?;
    verify_message_authenticator(trim(bytes)?, &packet.authenticator, secret, Missing::Refuse)?;
    Ok(packet)
}

/// Reads an Accounting-Request as a server does: its authenticator must be right.
pub fn verify_accounting_request(bytes: &[u8], secret: &[u8]) -> Result<Packet> {
    let bytes = trim(bytes)?;
    if !equal(
        &authenticator(bytes, &[0; 16], secret),
        &bytes[4..HEADER_LEN],
    ) {
        return Err(BAD_AUTHENTICATOR);
    }
    match Packet::parse(bytes)? {
        packet if packet.code == Code::ACCOUNTING_REQUEST => Ok(packet),
        _ => Err(Malformed("RADIUS: not an Accounting-Request")),
    }
}

/// Reads a CoA-Request or Disconnect-Request as a gateway does: its authenticator must be right, and its Message-Authenticator
/// if it has one (RFC 5176 §2.3, §3).
///
/// # Errors
/// The reason for which it is not authentic, or not such a request.
pub fn verify_dynamic_request(bytes: &[u8], secret: &[u8], missing: Missing) -> Result<Packet> {
    let bytes = trim(bytes)?;
    if !equal(
        &authenticator(bytes, &[0; DIGEST], secret),
        &bytes[4..HEADER_LEN],
    ) {
        return Err(BAD_AUTHENTICATOR);
    }
    verify_message_authenticator(bytes, &[0; DIGEST], secret, missing)?;
    match Packet::parse(bytes)? {
        packet if matches!(packet.code, Code::COA_REQUEST | Code::DISCONNECT_REQUEST) => Ok(packet),
        _ => Err(Malformed("RADIUS: not a CoA- or Disconnect-Request")),
    }
}

pub(super) fn verify_message_authenticator(
    bytes: &[u8],
    request: &[u8; 16],
    secret: &[u8],
    missing: Missing,
) -> Result<()> {
    let mut found = None;
    for span in Spans::new(bytes) {
        let (number, range) = span?;
        if number != Kind::MESSAGE_AUTHENTICATOR.number {
            continue;
        }
        if range.len() != DIGEST || found.replace(range).is_some() {
            return Err(BAD_MESSAGE_AUTHENTICATOR);
        }
    }
    match (found, missing) {
        (Some(range), _) => message_authenticator(bytes, request, range.start, secret)
            .verify_slice(&bytes[range])
            .map_err(|_| BAD_MESSAGE_AUTHENTICATOR),
        (None, Missing::Allow) => Ok(()),
        (None, Missing::Refuse) => Err(Malformed("RADIUS: no Message-Authenticator")),
    }
}

/// HMAC-MD5 over the packet with the request's authenticator in its place, and zeros (RFC 2869 §5.14) instead of the
/// digest at `at`.
fn message_authenticator(bytes: &[u8], request: &[u8; 16], at: usize, secret: &[u8]) -> Hmac<Md5> {
    let mut mac = Hmac::<Md5>::new_from_slice(secret).expect("HMAC takes keys of any length");
    mac.update(&bytes[..4]);
    mac.update(request);
    mac.update(&bytes[HEADER_LEN..at]);
    mac.update(&[0; DIGEST]);
    mac.update(&bytes[at + DIGEST..]);
    mac
}

/// MD5 over the packet with `inside` as its authenticator, and the secret (RFC 2865 §3, RFC 2866 §3).
fn authenticator(bytes: &[u8], inside: &[u8; 16], secret: &[u8]) -> [u8; 16] {
    let digest = Md5::new()
        .chain_update(&bytes[..4])
        .chain_update(inside)
        .chain_update(&bytes[HEADER_LEN..]);
    digest.chain_update(secret).finalize().into()
}

/// Compares in a time that does not depend on where they differ.
fn equal(a: &[u8; 16], b: &[u8]) -> bool {
    a.len() == b.len()
        && a.iter()
            .zip(b)
            .fold(0, |difference, (a, b)| difference | (a ^ b))
            == 0
}

/// Hides a password (RFC 2865 §5.2), which may have up to 128 octets.
pub fn hide_password(password: &[u8], authenticator: &[u8; 16], secret: &[u8]) -> Result<Vec<u8>> {
    if password.len() > 128 {
        return Err(Malformed("RADIUS: password longer than 128 octets"));
    }
    let mut hidden = vec![0; password.len().max(1).next_multiple_of(DIGEST)];
    hidden[..password.len()].copy_from_slice(password);
    let mut previous = *authenticator;
    for block in hidden.chunks_exact_mut(DIGEST) {
        mask(block, &previous, secret);
        previous.copy_from_slice(block);
    }
    Ok(hidden)
}

/// The password that was hidden, without the padding.
pub fn reveal_password(hidden: &[u8], authenticator: &[u8; 16], secret: &[u8]) -> Result<Vec<u8>> {
    if hidden.is_empty() || hidden.len() > 128 || !hidden.len().is_multiple_of(DIGEST) {
        return Err(Malformed("RADIUS: User-Password length"));
    }
    let mut password = hidden.to_vec();
    let mut previous = *authenticator;
    for (block, cipher) in password
        .chunks_exact_mut(DIGEST)
        .zip(hidden.chunks_exact(DIGEST))
    {
        mask(block, &previous, secret);
        previous.copy_from_slice(cipher);
    }
    let end = password
        .iter()
        .rposition(|&octet| octet != 0)
        .map_or(0, |last| last + 1);
    password.truncate(end);
    Ok(password)
}

fn mask(block: &mut [u8], previous: &[u8; 16], secret: &[u8]) {
    let digest = Md5::new()
        .chain_update(secret)
        .chain_update(previous)
        .finalize();
    block
        .iter_mut()
        .zip(digest)
        .for_each(|(octet, mask)| *octet ^= mask);
}

/// What a peer that knows the password answers to a CHAP challenge (RFC 1994 §4.1).
pub fn chap_response(id: u8, password: &[u8], challenge: &[u8]) -> [u8; 16] {
    Md5::new()
        .chain_update([id])
        .chain_update(password)
        .chain_update(challenge)
        .finalize()
        .into()
}
