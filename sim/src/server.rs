//! A RADIUS server: it checks passwords and gives every accounting record to a [`RadiusChecker`].

use crate::radius_checker::RadiusChecker;
use core::time::Duration;
use wire::mschapv2::{Exchange, Response, Success};
use wire::radius::{
    Code, Kind, Packet, Value, chap_response, reveal_password, verify_access_request,
    verify_accounting_request, verify_status_server,
};

/// Between the gateway and every server.
pub const SECRET: &str = "testing123";

/// How a server is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// It answers.
    Well,
    /// It does not.
    Dead,
    /// Its answers are made with another secret.
    Wrong,
}

/// What a user is given beside an address of the gateway's choice.
pub type Gift = Vec<(Kind, Value)>;

fn text(packet: &Packet, kind: Kind) -> String {
    let octets = packet.get(kind).and_then(Value::octets).unwrap_or_default();
    String::from_utf8_lossy(octets).into_owned()
}

/// Answers a request that came to a port of a server from a socket.
///
/// # Errors
/// What the checker finds wrong with a record.
pub fn serve(
    now: Duration,
    (server, port, socket): (usize, u16, u16),
    health: Health,
    checker: &mut RadiusChecker,
    gifts: &dyn Fn(&str) -> Gift,
    bytes: &[u8],
) -> Result<Vec<u8>, String> {
    let request = Packet::parse(bytes).map_err(|error| format!("RADIUS request: {error}"))?;
    let mut reply = match request.code {
        Code::ACCOUNTING_REQUEST => {
            let record = verify_accounting_request(bytes, SECRET.as_bytes());
            let record = record.map_err(|error| format!("accounting request: {error}"))?;
            // A record that its server says it has, but so that nobody believes it, is kept nevertheless.
            checker.record(now, server, socket, &record)?;
            Packet::new(Code::ACCOUNTING_RESPONSE, request.identifier, [0; 16])
        }
        Code::STATUS_SERVER => {
            let request = verify_status_server(bytes, SECRET.as_bytes());
            let request = request.map_err(|error| format!("status request: {error}"))?;
            let code = match port {
                1812 => Code::ACCESS_ACCEPT,
                _ => Code::ACCOUNTING_RESPONSE,
            };
            Packet::new(code, request.identifier, [0; 16])
        }
        _ => {
            let request = verify_access_request(bytes, SECRET.as_bytes());
            access(
                &request.map_err(|error| format!("access request: {error}"))?,
                gifts,
            )
        }
    };
    reply.push(Kind::MESSAGE_AUTHENTICATOR, vec![0; 16]);
    let secret = if health == Health::Wrong {
        "another"
    } else {
        SECRET
    };
    let reply = reply.emit_response(&request.authenticator, secret.as_bytes());
    reply.map_err(|error| format!("RADIUS reply: {error}"))
}

/// An answer to a request, with the code of an answer to another kind of request, and a right authenticator.
pub fn with_another_code(answer: &[u8], request: &[u8]) -> Vec<u8> {
    let code = match answer[0] {
        5 => Code::ACCESS_ACCEPT,
        _ => Code::ACCOUNTING_RESPONSE,
    };
    let mut other = Packet::new(code, answer[1], [0; 16]);
    other.push(Kind::MESSAGE_AUTHENTICATOR, vec![0; 16]);
    let authenticator = request[4..20].try_into().expect("sixteen octets");
    let bytes = other.emit_response(&authenticator, SECRET.as_bytes());
    bytes.expect("a short packet")
}

fn access(request: &Packet, gifts: &dyn Fn(&str) -> Gift) -> Packet {
    let user = text(request, Kind::USER_NAME);
    if !is_right(request, &user) {
        return Packet::new(Code::ACCESS_REJECT, request.identifier, [0; 16]);
    }
    let mut accept = Packet::new(Code::ACCESS_ACCEPT, request.identifier, [0; 16]);
    accept.push(Kind::CLASS, user.as_bytes().to_vec());
    if let Some(proof) = mschapv2(request, &user).flatten() {
        accept.push(Kind::MS_CHAP2_SUCCESS, proof);
    }
    gifts(&user)
        .into_iter()
        .for_each(|(kind, value)| accept.push(kind, value));
    accept
}

/// The password of home7 is secret7.
fn password(user: &str) -> String {
    user.replace("home", "secret")
}

/// The proof for a home that knows its password, if it uses MS-CHAPv2.
fn mschapv2(request: &Packet, user: &str) -> Option<Option<Vec<u8>>> {
    let octets = |kind| request.get(kind).and_then(Value::octets);
    let (id, response) = Response::parse_attribute(octets(Kind::MS_CHAP2_RESPONSE)?).ok()?;
    let exchange = Exchange {
        challenge: octets(Kind::MS_CHAP_CHALLENGE)?.try_into().ok()?,
        peer_challenge: response.peer_challenge,
        username: user.as_bytes(),
    };
    let password = password(user);
    let (password, given) = (password.as_bytes(), &response.nt_response);
    let proof = exchange.authenticator_response(password, given);
    let message = b"";
    let success = || [&[id], &Success { proof, message }.to_text()[..]].concat();
    Some((exchange.nt_response(password) == *given).then(success))
}

fn is_right(request: &Packet, user: &str) -> bool {
    if let Some(proof) = mschapv2(request, user) {
        return proof.is_some();
    }
    let password = password(user);
    let octets = |kind| request.get(kind).and_then(Value::octets);
    if let Some(hidden) = octets(Kind::USER_PASSWORD) {
        let shown = reveal_password(hidden, &request.authenticator, SECRET.as_bytes());
        return shown.is_ok_and(|shown| shown == password.as_bytes());
    }
    let challenge = octets(Kind::CHAP_CHALLENGE).unwrap_or(&request.authenticator);
    match octets(Kind::CHAP_PASSWORD).and_then(<[u8]>::split_first) {
        Some((&id, response)) => response == chap_response(id, password.as_bytes(), challenge),
        None => false,
    }
}
