//! Who is followed, and by whom.

use super::*;
use crate::world::{Choice, World};
use wire::eth::{Header, PPPOE_DISCOVERY, Tags};
use wire::pppoe;

const STRANGER: MacAddr = MacAddr([2, 0xee, 0, 0, 0, 1]);

fn online(homes: usize) -> World {
    let mut w = World::new(homes, Choice::default());
    w.dial_all();
    assert_eq!(w.online(), homes);
    w
}

fn begin(
    traces: &mut Traces,
    w: &World,
    subject: &str,
) -> Result<(Subject, mpsc::Receiver<TracedPacket>, Arc<AtomicU64>), Refusal> {
    let (reader, packets, missed) = Reader::new();
    let request = TraceRequest {
        subject: subject.into(),
        ..TraceRequest::default()
    };
    let subject = traces.begin(&w.plane, &request, reader)?;
    Ok((subject, packets, missed))
}

/// A PADI of a home, as it comes from the user plane.
fn padi(home: MacAddr) -> Vec<u8> {
    let mut frame = Vec::new();
    let header = Header {
        destination: MacAddr::BROADCAST,
        source: home,
        tags: Tags::NONE,
        ethertype: PPPOE_DISCOVERY,
    };
    header.emit(&mut frame);
    pppoe::Discovery {
        code: pppoe::PADI,
        session_id: 0,
        tags: vec![],
    }
    .emit(&mut frame);
    let (mut inner, mut bytes) = (Vec::new(), Vec::new());
    let packet = nsh::Packet {
        logical_port: b"access0",
        frame: &frame,
    };
    packet.emit(&mut inner).unwrap();
    gtpu::emit_gpdu(1, &inner, &mut bytes).unwrap();
    bytes
}

fn hear(traces: &mut Traces, w: &World, home: MacAddr) {
    let bytes = padi(home);
    let datagram = Datagram {
        way: Way::In,
        own: "192.0.2.1:2152".parse().unwrap(),
        peer: "192.0.2.2:2152".parse().unwrap(),
        bytes: &bytes,
    };
    traces.gtpu(&w.plane, datagram);
}

#[test]
fn a_subscriber_is_found_by_whatever_is_known_of_it() {
    let mut w = online(3);
    let session = w.sessions()[1].clone();
    let mut traces = Traces::default();
    let mac = session.mac.parse().unwrap();
    let ipv4 = session.ipv4.clone().unwrap();
    for subject in [&session.user, &session.id, &session.mac, &ipv4] {
        let (found, _, _) = begin(&mut traces, &w, subject).unwrap();
        assert_eq!(found.macs, [mac], "{subject}");
        assert_eq!(traces.0.last().unwrap().sessions.len(), 1);
    }
    let stranger = begin(&mut traces, &w, &STRANGER.to_string()).unwrap().0;
    assert_eq!(stranger.macs, [STRANGER], "one who is not online");
    let nobody = begin(&mut traces, &w, "nobody").unwrap_err();
    assert!(
        matches!(&nobody, Refusal::NotFound(why) if why.contains("by the name `nobody`")),
        "{nobody:?}"
    );
}

#[test]
fn there_are_no_more_than_so_many_and_who_has_gone_makes_room() {
    let w = online(1);
    let mut traces = Traces::default();
    let subject = STRANGER.to_string();
    let mut all: Vec<_> = (0..MOST)
        .map(|_| begin(&mut traces, &w, &subject).unwrap())
        .collect();
    let refused = begin(&mut traces, &w, &subject).unwrap_err();
    assert!(matches!(refused, Refusal::Busy(_)), "{refused:?}");
    all.pop();
    begin(&mut traces, &w, &subject).unwrap();
    drop(all);
    hear(&mut traces, &w, STRANGER);
    assert!(traces.is_empty(), "nothing is left when nobody reads");
}

#[test]
fn only_what_the_home_says_is_shown_and_what_is_not_read_is_counted() {
    let w = online(1);
    let mut traces = Traces::default();
    let (_, mut packets, missed) = begin(&mut traces, &w, &STRANGER.to_string()).unwrap();
    hear(&mut traces, &w, MacAddr([2, 0xee, 0, 0, 0, 2]));
    assert!(packets.try_recv().is_err());
    hear(&mut traces, &w, STRANGER);
    let packet = packets.try_recv().unwrap();
    assert_eq!(
        (packet.path(), packet.sent, packet.port.as_str()),
        (TracedPath::Access, false, "access0")
    );
    assert_eq!(packet.octets.len() as u32, packet.length);
    let many = QUEUE as u64 + 50;
    (0..many).for_each(|_| hear(&mut traces, &w, STRANGER));
    let waiting = std::iter::from_fn(|| packets.try_recv().ok()).count() as u64;
    assert!(waiting <= QUEUE as u64);
    assert_eq!(waiting + missed.load(Ordering::Relaxed), many);
}

/// What the user plane of the first home says of a session.
fn hear_of(traces: &mut Traces, w: &World, session: u64) {
    let answer = pfcp::SessionModificationResponse {
        cause: pfcp::Cause::REQUEST_ACCEPTED,
        ..Default::default()
    };
    let mut bytes = Vec::new();
    let packet = pfcp::Packet::session(session, 1, answer);
    packet.emit(&mut bytes).unwrap();
    let datagram = Datagram {
        way: Way::In,
        own: "192.0.2.1:8805".parse().unwrap(),
        peer: "192.0.2.2:8805".parse().unwrap(),
        bytes: &bytes,
    };
    traces.pfcp(&w.plane, datagram);
}

#[test]
fn what_is_said_of_a_session_that_begins_later_is_shown_and_of_others_is_not() {
    let mut w = World::new(2, Choice::default());
    let mut traces = Traces::default();
    let home = w.homes[0].config().mac;
    let (_, mut packets, _) = begin(&mut traces, &w, &home.to_string()).unwrap();
    w.dial_all();
    let sessions = w.sessions();
    let session_of = |mac: MacAddr| {
        let its = sessions.iter().find(|s| s.mac == mac.to_string());
        u64::from_str_radix(&its.unwrap().id, 16).unwrap()
    };
    let (own, other) = (session_of(home), session_of(w.homes[1].config().mac));
    hear_of(&mut traces, &w, other);
    assert!(packets.try_recv().is_err());
    hear_of(&mut traces, &w, own);
    assert_eq!(packets.try_recv().unwrap().path(), TracedPath::Pfcp);
}
