//! A RADIUS server: lets homes in by their passwords, and keeps books in which every session has one beginning, one end
//! and counters that never go back.

use std::collections::BTreeMap;
use wire::radius::{
    Code, Kind, Packet, Value, chap_response, reveal_password, values, verify_access_request,
    verify_accounting_request,
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

/// An accounting record, without what changes when it is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    status: u32,
    event: u32,
    /// In and out.
    octets: [u64; 2],
}

/// What was recorded of one session.
#[derive(Clone, Debug, Default)]
pub struct Account {
    entries: Vec<Entry>,
    /// It was told to begin.
    pub started: bool,
    /// It was told to end.
    pub stopped: bool,
}

/// The books, which the servers share.
#[derive(Default)]
pub struct Books {
    /// Accounts by Acct-Session-Id.
    pub accounts: BTreeMap<String, Account>,
}

fn number(packet: &Packet, kind: Kind) -> u32 {
    match packet.get(kind) {
        Some(Value::Integer(n) | Value::Time(n)) => *n,
        _ => 0,
    }
}

fn text(packet: &Packet, kind: Kind) -> String {
    let octets = packet.get(kind).and_then(Value::octets).unwrap_or_default();
    String::from_utf8_lossy(octets).into_owned()
}

/// Answers a request; `None` for one that is not to be answered.
///
/// # Errors
/// What the books say is wrong with a record.
pub fn serve(
    health: Health,
    books: &mut Books,
    gifts: &dyn Fn(&str) -> Gift,
    bytes: &[u8],
) -> Result<Option<Vec<u8>>, String> {
    let request = Packet::parse(bytes).map_err(|error| format!("RADIUS request: {error}"))?;
    let mut reply = match request.code {
        Code::ACCOUNTING_REQUEST => {
            let record = verify_accounting_request(bytes, SECRET.as_bytes());
            let record = record.map_err(|error| format!("accounting request: {error}"))?;
            // A record that its server says it has, but so that nobody believes it, is kept nevertheless.
            books.record(&record)?;
            Packet::new(Code::ACCOUNTING_RESPONSE, request.identifier, [0; 16])
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
    reply
        .map(Some)
        .map_err(|error| format!("RADIUS reply: {error}"))
}

fn access(request: &Packet, gifts: &dyn Fn(&str) -> Gift) -> Packet {
    let user = text(request, Kind::USER_NAME);
    if !is_right(request, &user) {
        return Packet::new(Code::ACCESS_REJECT, request.identifier, [0; 16]);
    }
    let mut accept = Packet::new(Code::ACCESS_ACCEPT, request.identifier, [0; 16]);
    accept.push(Kind::CLASS, user.as_bytes().to_vec());
    gifts(&user)
        .into_iter()
        .for_each(|(kind, value)| accept.push(kind, value));
    accept
}

/// The password of home7 is secret7.
fn is_right(request: &Packet, user: &str) -> bool {
    let password = user.replace("home", "secret");
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

impl Books {
    fn record(&mut self, record: &Packet) -> Result<(), String> {
        let id = text(record, Kind::ACCT_SESSION_ID);
        let octets =
            |low, high| u64::from(number(record, high)) << 32 | u64::from(number(record, low));
        let entry = Entry {
            status: number(record, Kind::ACCT_STATUS_TYPE),
            event: number(record, Kind::EVENT_TIMESTAMP),
            octets: [
                octets(Kind::ACCT_INPUT_OCTETS, Kind::ACCT_INPUT_GIGAWORDS),
                octets(Kind::ACCT_OUTPUT_OCTETS, Kind::ACCT_OUTPUT_GIGAWORDS),
            ],
        };
        let account = self.accounts.entry(id.clone()).or_default();
        account
            .take(entry)
            .map_err(|why| format!("accounting of session {id}: {why}"))
    }
}

impl Account {
    fn take(&mut self, new: Entry) -> Result<(), String> {
        if self.entries.contains(&new) {
            return Ok(()); // sent again
        }
        match new.status {
            values::ACCT_STATUS_TYPE_START if std::mem::replace(&mut self.started, true) => {
                return Err("a second Start".into());
            }
            values::ACCT_STATUS_TYPE_STOP if std::mem::replace(&mut self.stopped, true) => {
                return Err("a second Stop".into());
            }
            _ => {}
        }
        for old in &self.entries {
            old.fits(&new)?;
            new.fits(old)?;
        }
        self.entries.push(new);
        Ok(())
    }
}

impl Entry {
    /// Can this record be as it is if `later` came after it?
    fn fits(&self, later: &Entry) -> Result<(), String> {
        if later.event <= self.event {
            return Ok(());
        }
        if later.status == values::ACCT_STATUS_TYPE_START {
            return Err(format!("{self:?} came before the Start {later:?}"));
        }
        if self.status == values::ACCT_STATUS_TYPE_STOP {
            return Err(format!("{later:?} came after the Stop {self:?}"));
        }
        if self
            .octets
            .iter()
            .zip(&later.octets)
            .any(|(old, new)| new < old)
        {
            return Err(format!("octets go back from {self:?} to {later:?}"));
        }
        Ok(())
    }
}
