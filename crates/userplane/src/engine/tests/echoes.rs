//! LCP echo requests of subscribers.

use super::*;
use wire::eth::{Frame, Header, PPPOE_SESSION};
use wire::{lcp, ppp, pppoe};

pub(super) const MAGIC: u32 = 0x1122_3344;
pub(super) const HOME_MAGIC: [u8; 4] = [9, 9, 9, 9];

fn with_magic(n: u16) -> SessionSpec {
    SessionSpec {
        echo_magic: Some(MAGIC),
        ..spec(n)
    }
}

/// Frame of the subscriber of a session with an LCP packet.
fn frame(n: u16, pppoe_session_id: u16, code: u8, data: &[u8]) -> Vec<u8> {
    lcp_frame(spec(n).circuit, pppoe_session_id, code, 42, data)
}

/// Frame with an LCP packet from the access line of a session.
pub(super) fn lcp_frame(
    circuit: Circuit,
    pppoe_session_id: u16,
    code: u8,
    id: u8,
    data: &[u8],
) -> Vec<u8> {
    let mut packet = Vec::new();
    ppp::Control { code, id, data }.emit(ppp::LCP, &mut packet);
    ppp_frame(circuit, pppoe_session_id, &packet)
}

/// Frame with a PPP frame from the access line of a session.
pub(super) fn ppp_frame(circuit: Circuit, pppoe_session_id: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    Header {
        destination: circuit.gateway_mac,
        source: circuit.mac,
        tags: circuit.tags,
        ethertype: PPPOE_SESSION,
    }
    .emit(&mut frame);
    pppoe::Packet {
        code: pppoe::SESSION,
        session_id: pppoe_session_id,
        payload,
    }
    .emit(&mut frame);
    frame.resize(frame.len().max(60), 0); // padding of Ethernet
    frame
}

fn asks(bench: &mut Bench, n: u16, data: &[u8]) -> Option<Vec<u8>> {
    let index = bench.entries.values().find(|e| e.pppoe_session_id == n);
    let index = index.expect("the session").index;
    let frame = frame(n, n, lcp::ECHO_REQUEST, data);
    match bench.engine.from_subscriber(index, &frame) {
        FromSubscriber::Answer(reply) => Some(reply),
        FromSubscriber::Pass => None,
        FromSubscriber::Taken => panic!("a request is no answer"),
    }
}

#[test]
fn an_echo_request_is_answered_with_our_magic_number_and_its_data() {
    let mut bench = Bench::new();
    bench.send(0, with_magic(7).establish());
    let request = [&HOME_MAGIC[..], b"data"].concat();
    let reply = asks(&mut bench, 7, &request).expect("an answer");
    let (reply, circuit) = (Frame::parse(&reply).unwrap(), spec(7).circuit);
    assert_eq!(reply.header.destination, circuit.mac);
    assert_eq!(reply.header.source, circuit.gateway_mac);
    assert_eq!(reply.header.tags.vids(), circuit.tags.vids());
    assert_eq!(reply.header.ethertype, PPPOE_SESSION);
    let packet = pppoe::Packet::parse(reply.payload).unwrap();
    assert_eq!((packet.code, packet.session_id), (pppoe::SESSION, 7));
    let data = [&MAGIC.to_be_bytes()[..], b"data"].concat();
    let expected = [&[0xc0, 0x21, lcp::ECHO_REPLY, 42, 0, 12][..], &data].concat();
    assert_eq!(packet.payload, expected);
}

#[test]
fn everything_else_is_the_control_planes() {
    let mut bench = Bench::new();
    bench.send(0, with_magic(7).establish());
    bench.send(0, spec(8).establish());
    assert_eq!(
        asks(&mut bench, 8, &HOME_MAGIC),
        None,
        "it was not asked for"
    );
    assert_eq!(asks(&mut bench, 7, &MAGIC.to_be_bytes()), None, "a loop");
    assert_eq!(asks(&mut bench, 7, &[1, 2, 3]), None, "malformed");
    let index = bench.entries.values().find(|e| e.pppoe_session_id == 7);
    let index = index.unwrap().index;
    for frame in [
        frame(7, 8, lcp::ECHO_REQUEST, &HOME_MAGIC),
        frame(7, 7, lcp::ECHO_REPLY, &HOME_MAGIC),
        frame(7, 7, ppp::CONFIGURE_REQUEST, &[]),
        vec![0; 60],
    ] {
        let whose = bench.engine.from_subscriber(index, &frame);
        assert_eq!(whose, FromSubscriber::Pass, "{frame:?}");
    }
}

#[test]
fn answers_begin_and_end_with_the_address_families() {
    let mut bench = Bench::new();
    let closed = SessionSpec {
        forwarding: Forwarding::default(),
        ..with_magic(7)
    };
    bench.send(0, closed.establish_control());
    assert_eq!(asks(&mut bench, 7, &HOME_MAGIC), None);
    let Message::SessionEstablishmentResponse(answer) = &bench.responses[0].2 else {
        panic!("{:?}", bench.responses);
    };
    let seid = answer.up_f_seid.expect("a session").seid;
    let open = with_magic(7).change_from(&closed.told());
    bench.send(seid, open.expect("a difference"));
    assert!(asks(&mut bench, 7, &HOME_MAGIC).is_some());
    let again = closed.change_from(&with_magic(7).told());
    bench.send(seid, again.expect("a difference"));
    assert_eq!(asks(&mut bench, 7, &HOME_MAGIC), None);
}
