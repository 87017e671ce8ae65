//! Packets of subscribers that a rule redirects.

use super::echoes::ppp_frame;
use super::*;
use wire::eth::Frame;
use wire::{ppp, pppoe};

/// A frame of a session with a packet of a protocol of PPP.
fn frame(n: u16, pppoe_session_id: u16, protocol: u16, packet: &[u8]) -> Vec<u8> {
    let mut payload = Vec::new();
    ppp::Frame {
        protocol,
        payload: packet,
    }
    .emit(&mut payload);
    ppp_frame(spec(n).circuit, pppoe_session_id, &payload)
}

#[test]
fn the_answer_goes_to_the_subscriber_that_asked() {
    let mut bench = Bench::new();
    bench.send(0, spec(7).establish());
    let index = bench.entries.values().next().expect("the session").index;
    let asked = frame(7, 7, ppp::IPV6, b"packet");
    let answer = bench.engine.redirected(index, &asked, |entry, packet| {
        assert_eq!(entry.index, index);
        assert_eq!(packet, b"packet", "without padding");
        Some(b"answer".to_vec())
    });
    let answer = answer.expect("an answer");
    let (answer, circuit) = (Frame::parse(&answer).unwrap(), spec(7).circuit);
    assert_eq!(answer.header.destination, circuit.mac);
    assert_eq!(answer.header.source, circuit.gateway_mac);
    assert_eq!(answer.header.tags.vids(), circuit.tags.vids());
    let packet = pppoe::Packet::parse(answer.payload).unwrap();
    assert_eq!((packet.code, packet.session_id), (pppoe::SESSION, 7));
    let carried = ppp::Frame::parse(packet.payload).unwrap();
    assert_eq!(
        (carried.protocol, carried.payload),
        (ppp::IPV6, &b"answer"[..])
    );
}

#[test]
fn only_ip_packets_of_the_session_are_answered() {
    let mut bench = Bench::new();
    bench.send(0, spec(7).establish());
    let index = bench.entries.values().next().expect("the session").index;
    for asked in [
        frame(7, 8, ppp::IPV4, b"packet"),
        frame(7, 7, ppp::LCP, b"packet"),
        frame(7, 7, ppp::IPV4, b"packet")[..20].to_vec(),
    ] {
        let answer = |_: &_, _: &[u8]| Some(b"answer".to_vec());
        assert_eq!(bench.engine.redirected(index, &asked, answer), None);
    }
    let asked = frame(7, 7, ppp::IPV4, b"packet");
    assert_eq!(bench.engine.redirected(index, &asked, |_, _| None), None);
}
