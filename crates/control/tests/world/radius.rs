//! A RADIUS server.

use wire::radius::{Code, Kind, Packet, Value, verify_access_request, verify_accounting_request};

/// The RADIUS server: lets everybody in, and keeps the records. It knows a datagram that comes again (RFC 2866 §3).
#[derive(Default)]
pub struct Radius {
    /// Attributes of Access-Accept.
    pub accept: Vec<(Kind, Value)>,
    pub records: Vec<Packet>,
    /// Accounting requests with the number of the socket that they came from.
    pub datagrams: Vec<(u16, Vec<u8>)>,
    /// Does not answer.
    pub dead: bool,
    /// Does not take records.
    pub full: bool,
    /// Takes records, but the answers get lost.
    pub unheard: bool,
}

const SECRET: &[u8] = b"testing123";

impl Radius {
    pub(super) fn serve(&mut self, socket: u16, bytes: &[u8]) -> Option<Vec<u8>> {
        let request = Packet::parse(bytes).unwrap();
        let mut reply = match request.code {
            _ if self.dead => return None,
            Code::ACCOUNTING_REQUEST if self.full => return None,
            Code::ACCOUNTING_REQUEST => {
                let datagram = (socket, bytes.to_vec());
                if !self.datagrams.contains(&datagram) {
                    self.records
                        .push(verify_accounting_request(bytes, SECRET).unwrap());
                }
                self.datagrams.push(datagram);
                if self.unheard {
                    return None;
                }
                Packet::new(Code::ACCOUNTING_RESPONSE, request.identifier, [0; 16])
            }
            _ => {
                verify_access_request(bytes, SECRET).unwrap();
                let mut accept = Packet::new(Code::ACCESS_ACCEPT, request.identifier, [0; 16]);
                let attributes = self.accept.iter().cloned();
                attributes.for_each(|(kind, value)| accept.push(kind, value));
                accept
            }
        };
        reply.push(Kind::MESSAGE_AUTHENTICATOR, vec![0; 16]);
        Some(reply.emit_response(&request.authenticator, SECRET).unwrap())
    }

    /// Acct-Status-Type of the records, in their order.
    pub fn kinds(&self) -> Vec<u32> {
        self.records
            .iter()
            .map(|r| number(r, Kind::ACCT_STATUS_TYPE))
            .collect()
    }
}

pub fn number(packet: &Packet, kind: Kind) -> u32 {
    match packet.get(kind) {
        Some(Value::Integer(n) | Value::Time(n)) => *n,
        other => panic!("{other:?}"),
    }
}
