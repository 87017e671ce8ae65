//! A RADIUS server.

use std::collections::BTreeMap;
use wire::mschapv2::{Exchange, Response, Success};
use wire::radius::{
    Code, Kind, Packet, Value, verify_access_request, verify_accounting_request,
    verify_status_server,
};

/// The RADIUS server: lets everybody in, and keeps the records. It knows a datagram that comes again (RFC 2866 §3).
#[derive(Default)]
pub struct Radius {
    /// Attributes of Access-Accept.
    pub accept: Vec<(Kind, Value)>,
    /// Access-Requests that it answered.
    pub requests: Vec<Packet>,
    /// Accounting records of sessions.
    pub records: Vec<Packet>,
    /// Accounting-On and Accounting-Off.
    pub announcements: Vec<Packet>,
    /// Accounting requests with the number of the socket that they came from.
    pub datagrams: Vec<(u16, Vec<u8>)>,
    /// Does not answer.
    pub dead: bool,
    /// Rejects every subscriber.
    pub rejects: bool,
    /// Attributes of Access-Reject.
    pub reject: Vec<(Kind, Value)>,
    /// Does not know the passwords that MS-CHAPv2 wants a proof of.
    pub unproven: bool,
    /// Does not take records.
    pub full: bool,
    /// The server at this address does not answer.
    pub dead_at: Option<std::net::IpAddr>,
    /// Its answers have no Message-Authenticator.
    pub unsigned: bool,
    /// The secret of the last request.
    pub secret: Vec<u8>,
    /// Takes records, but the answers get lost.
    pub unheard: bool,
}

/// The secrets that it knows.
const SECRETS: [&[u8]; 3] = [b"testing123", b"first", b"second"];

impl Radius {
    pub(super) fn serve(
        &mut self,
        at: std::net::SocketAddr,
        socket: u16,
        bytes: &[u8],
    ) -> Option<Vec<u8>> {
        let request = Packet::parse(bytes).unwrap();
        let fits = |secret: &&&[u8]| match request.code {
            Code::ACCOUNTING_REQUEST => verify_accounting_request(bytes, secret).is_ok(),
            Code::STATUS_SERVER => verify_status_server(bytes, secret).is_ok(),
            _ => verify_access_request(bytes, secret).is_ok(),
        };
        let secret = *SECRETS.iter().find(fits).expect("a secret that it knows");
        self.secret = secret.to_vec();
        let reply = match request.code {
            _ if self.dead || self.dead_at == Some(at.ip()) => return None,
            Code::STATUS_SERVER => Packet::new(
                match at.port() {
                    1812 => Code::ACCESS_ACCEPT,
                    _ => Code::ACCOUNTING_RESPONSE,
                },
                request.identifier,
                [0; 16],
            ),
            Code::ACCOUNTING_REQUEST if self.full => return None,
            Code::ACCOUNTING_REQUEST => {
                let datagram = (socket, bytes.to_vec());
                if !self.datagrams.contains(&datagram) {
                    let record = verify_accounting_request(bytes, secret).unwrap();
                    match number(&record, Kind::ACCT_STATUS_TYPE) {
                        7 | 8 => self.announcements.push(record),
                        _ => self.records.push(record),
                    }
                }
                self.datagrams.push(datagram);
                if self.unheard {
                    return None;
                }
                Packet::new(Code::ACCOUNTING_RESPONSE, request.identifier, [0; 16])
            }
            _ if self.rejects => {
                let mut reject = Packet::new(Code::ACCESS_REJECT, request.identifier, [0; 16]);
                let attributes = self.reject.iter().cloned();
                attributes.for_each(|(kind, value)| reject.push(kind, value));
                reject
            }
            _ => {
                self.requests.push(request.clone());
                let mut accept = Packet::new(Code::ACCESS_ACCEPT, request.identifier, [0; 16]);
                let attributes = self.accept.iter().cloned();
                attributes.for_each(|(kind, value)| accept.push(kind, value));
                if let Some(success) = success(&request).filter(|_| !self.unproven) {
                    accept.push(Kind::MS_CHAP2_SUCCESS, success);
                }
                accept
            }
        };
        let signed = reply.emit_response(&request.authenticator, secret).unwrap();
        Some(match self.unsigned {
            true => without_signature(&signed, &request.authenticator, secret),
            false => signed,
        })
    }

    /// Acct-Status-Type of the records, in their order.
    pub fn kinds(&self) -> Vec<u32> {
        self.records
            .iter()
            .map(|r| number(r, Kind::ACCT_STATUS_TYPE))
            .collect()
    }
}

/// MS-CHAP2-Success for a home with the right password: that of home7 is secret7.
fn success(request: &Packet) -> Option<Vec<u8>> {
    let octets = |kind| request.get(kind).and_then(Value::octets);
    let (id, response) = Response::parse_attribute(octets(Kind::MS_CHAP2_RESPONSE)?).unwrap();
    let username = octets(Kind::USER_NAME)?;
    let exchange = Exchange {
        challenge: octets(Kind::MS_CHAP_CHALLENGE)?.try_into().unwrap(),
        peer_challenge: response.peer_challenge,
        username,
    };
    let name = String::from_utf8(username.to_vec()).unwrap();
    let password = name.replace("home", "secret");
    let proof = exchange.authenticator_response(password.as_bytes(), &response.nt_response);
    let success = Success {
        proof,
        message: b"",
    };
    Some([&[id], &success.to_text()[..42]].concat())
}

/// Numbers of a vendor that the codec's dictionary does not know, by their attributes.
pub fn vendors_numbers(record: &Packet, vendor: u32) -> BTreeMap<u8, u32> {
    let all = record.all(Kind::VENDOR_SPECIFIC).filter_map(Value::octets);
    let own = all.filter_map(|octets| octets.strip_prefix(&vendor.to_be_bytes()));
    let numbers = own.filter_map(|inner| match *inner {
        [number, 6, a, b, c, d] => Some((number, u32::from_be_bytes([a, b, c, d]))),
        _ => None,
    });
    numbers.collect()
}

pub fn number(packet: &Packet, kind: Kind) -> u32 {
    match packet.get(kind) {
        Some(Value::Integer(n) | Value::Time(n)) => *n,
        other => panic!("{other:?}"),
    }
}

/// Acct-Session-Id.
pub fn session_id(packet: &Packet) -> String {
    match packet.get(Kind::ACCT_SESSION_ID) {
        Some(Value::Text(id)) => id.clone(),
        other => panic!("{other:?}"),
    }
}

/// Framed-IPv6-Prefix.
pub fn link(prefix: &str) -> (Kind, Value) {
    let prefix = Value::Ipv6Prefix(prefix.parse().unwrap());
    (Kind::FRAMED_IPV6_PREFIX, prefix)
}

/// Framed-Route or Framed-IPv6-Route.
pub fn route(net: &str) -> (Kind, Value) {
    match net.contains(':') {
        true => (Kind::FRAMED_IPV6_ROUTE, net.into()),
        false => (Kind::FRAMED_ROUTE, net.into()),
    }
}

/// The same reply without its Message-Authenticator, which comes first: with a Response Authenticator alone (RFC 2865 §3).
fn without_signature(reply: &[u8], request_authenticator: &[u8; 16], secret: &[u8]) -> Vec<u8> {
    use md5::{Digest, Md5};
    let length = (reply.len() as u16 - 18).to_be_bytes();
    let (head, rest) = ([&reply[..2], &length].concat(), &reply[38..]);
    let text = [&head, request_authenticator.as_slice(), rest, secret].concat();
    [&head, Md5::digest(text).as_slice(), rest].concat()
}
