//! Characteristics of access loops, which access nodes add to discovery packets (TR-101), in RADIUS requests and for operators.

use crate::world::radius::number;
use crate::world::{Choice, World};
use core::time::Duration;
use northbound::{Request, Response};
use wire::pppoe::AccessLine;
use wire::radius::{Kind, Packet, Value};

const SECOND: Duration = Duration::from_secs(1);

/// A world whose first home is behind an access node that says these options.
fn world(options: &[(u8, &[u8])]) -> World {
    let mut w = World::new(1, Choice::radius());
    let mut config = w.homes[0].config().clone();
    let line = AccessLine {
        circuit_id: Some(b"olt1 1/2/3"),
        remote_id: None,
        others: options.to_vec(),
    };
    line.emit(&mut config.access_line);
    w.homes[0] = cpe::Home::new(config, 7);
    w.dial_all();
    assert_eq!(w.online(), 1);
    w
}

fn connect_info(packet: &Packet) -> Option<&str> {
    match packet.get(Kind::CONNECT_INFO)? {
        Value::Text(text) => Some(text),
        other => panic!("{other:?}"),
    }
}

#[test]
fn rates_and_delays_are_told_in_the_units_of_radius() {
    let kbit = |rate: u32| rate.to_be_bytes();
    let mut w = world(&[
        (0x81, &kbit(10_000)),
        (0x82, &[1]),
        (0x82, &kbit(100_000)),
        (0x86, &kbit(4_294_968)),
        (0x88, &kbit(4_294_967)),
        (0x8e, &7u32.to_be_bytes()),
        (0x90, &[2, 2, 0]),
        (0xfe, &[]),
    ]);
    w.restart_control_plane();
    w.hang_up(0);
    w.run(SECOND);
    let request = &w.radius.requests[0];
    let [start, stop] = &w.radius.records[..] else {
        panic!("{:?}", w.radius.kinds());
    };
    for packet in [request, start, stop] {
        let rate = |kind| number(packet, kind);
        let (up, down) = (
            rate(Kind::ADSL_FORUM_ACTUAL_DATA_RATE_UPSTREAM),
            rate(Kind::ADSL_FORUM_ACTUAL_DATA_RATE_DOWNSTREAM),
        );
        assert_eq!((up, down), (10_000_000, 100_000_000));
        assert_eq!(connect_info(packet), Some("100000000/10000000"));
        let encapsulation = packet.get(Kind::ADSL_FORUM_ACCESS_LOOP_ENCAPSULATION);
        let encapsulation = encapsulation.and_then(|value| value.octets());
        assert_eq!(encapsulation, Some(&[2, 2, 0][..]));
        assert!(packet.get(Kind::ADSL_FORUM_IWF_SESSION).is_some());
    }
    for record in [start, stop] {
        let most = number(record, Kind::ADSL_FORUM_MAXIMUM_DATA_RATE_DOWNSTREAM);
        assert_eq!(most, 4_294_967_000);
        let attainable = Kind::ADSL_FORUM_ATTAINABLE_DATA_RATE_DOWNSTREAM;
        assert_eq!(record.get(attainable), None, "it has no room");
        let delay = Kind::ADSL_FORUM_ACTUAL_INTERLEAVING_DELAY_DOWNSTREAM;
        assert_eq!(number(record, delay), 7);
        assert_eq!(request.get(delay), None, "only for accounting");
    }
}

#[test]
fn one_rate_alone_is_no_connect_info_and_none_is_nothing() {
    let w = world(&[(0x82, &[0, 0, 0, 9])]);
    let down = Kind::ADSL_FORUM_ACTUAL_DATA_RATE_DOWNSTREAM;
    assert_eq!(connect_info(&w.radius.requests[0]), None);
    assert_eq!(number(&w.radius.records[0], down), 9000);
    let w = world(&[(0x82, &[0, 9])]);
    assert_eq!(w.radius.records[0].get(down), None);
    let same = &[0, 0, 0, 9];
    let w = world(&[(0x82, same), (0x81, same)]);
    assert_eq!(connect_info(&w.radius.records[0]), Some("9000"));
}

#[test]
fn an_operator_sees_them_also_after_a_restart() {
    let mut w = world(&[(0x81, &[0, 0, 3, 0xe8]), (0x8b, &[0, 0, 0, 9])]);
    w.restart_control_plane();
    let id = w.sessions().remove(0).id;
    let session = match w.call(Request::GetSession { id }) {
        Ok(Response::Session { session }) => session,
        other => panic!("{other:?}"),
    };
    let expected = [
        "line rate up 1000 kbit/s",
        "maximum interleaving delay up 9 ms",
    ];
    assert_eq!(session.access_loop, expected);
}
