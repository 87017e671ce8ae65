//! Who is followed, and by whom.

use super::*;
use crate::history;
use crate::world::{Choice, World};
use cpe::{Home, HomeConfig};
use wire::eth::{Header, PPPOE_DISCOVERY, Tags};
use wire::pppoe;

const UNKNOWN: MacAddr = MacAddr([2, 0xee, 0, 0, 0, 1]);

fn online(homes: usize) -> World {
    let mut w = World::new(homes, Choice::default());
    w.dial_all();
    assert_eq!(w.online(), homes);
    w
}

fn begin(
    traces: &mut Traces,
    w: &World,
    text: &str,
) -> Result<(Subject, mpsc::Receiver<TracedPacket>, Arc<AtomicU64>), Refusal> {
    let (reader, packets, missed) = Reader::new();
    let (lines, _) = w.plane.lines_of(&history::Subject::parse(text), 0);
    let begun = traces.begin(&w.plane, subject(text, lines)?, reader)?;
    Ok((begun.subject, packets, missed))
}

/// A PADI of a home, as it comes from the user plane.
fn padi(w: &World, home: MacAddr, tags: Tags) -> Vec<u8> {
    let mut frame = Vec::new();
    let header = Header {
        destination: MacAddr::BROADCAST,
        source: home,
        tags,
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
    gtpu::emit_gpdu(w.up.default_tunnel(), &inner, &mut bytes).unwrap();
    bytes
}

fn hear(traces: &mut Traces, w: &World, home: MacAddr) {
    hear_at(traces, w, home, Tags::NONE);
}

fn hear_at(traces: &mut Traces, w: &World, home: MacAddr, tags: Tags) {
    let bytes = padi(w, home, tags);
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
    let line = format!("{} at up1/access0.100.2", session.mac);
    let ipv4 = session.ipv4.clone().unwrap();
    for subject in [&session.user, &session.id, &session.mac, &ipv4] {
        let (found, _, _) = begin(&mut traces, &w, subject).unwrap();
        assert_eq!(found.to_string(), line, "{subject}");
        assert_eq!(traces.0.last().unwrap().sessions.len(), 1);
    }
    let unknown = begin(&mut traces, &w, &UNKNOWN.to_string()).unwrap().0;
    assert_eq!(unknown, Subject::Unheard(UNKNOWN), "one who is not online");
    let nobody = begin(&mut traces, &w, "nobody").unwrap_err();
    assert!(
        matches!(&nobody, Refusal::NotFound(why) if why.contains("address `nobody`")),
        "{nobody:?}"
    );
}

#[test]
fn there_are_no_more_than_so_many_and_who_has_gone_makes_room() {
    let w = online(1);
    let mut traces = Traces::default();
    let subject = UNKNOWN.to_string();
    let mut all: Vec<_> = (0..MOST)
        .map(|_| begin(&mut traces, &w, &subject).unwrap())
        .collect();
    let refused = begin(&mut traces, &w, &subject).unwrap_err();
    assert!(matches!(refused, Refusal::Busy(_)), "{refused:?}");
    all.pop();
    begin(&mut traces, &w, &subject).unwrap();
    drop(all);
    hear(&mut traces, &w, UNKNOWN);
    assert!(traces.is_empty(), "nothing is left when nobody reads");
}

#[test]
fn only_what_the_home_says_is_shown_and_what_is_not_read_is_counted() {
    let w = online(1);
    let mut traces = Traces::default();
    let (_, mut packets, missed) = begin(&mut traces, &w, &UNKNOWN.to_string()).unwrap();
    hear(&mut traces, &w, MacAddr([2, 0xee, 0, 0, 0, 2]));
    assert!(packets.try_recv().is_err());
    hear(&mut traces, &w, UNKNOWN);
    let packet = packets.try_recv().unwrap();
    assert_eq!(
        (packet.path(), packet.sent, packet.port.as_str()),
        (TracedPath::Access, false, "access0")
    );
    assert_eq!(packet.octets.len() as u32, packet.length);
    let many = QUEUE as u64 + 50;
    (0..many).for_each(|_| hear(&mut traces, &w, UNKNOWN));
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

/// Two homes online that have the same MAC address, on lines of their own; their sessions.
fn twins() -> (World, [u64; 2]) {
    let mut w = World::new(2, Choice::radius());
    let twin = HomeConfig {
        mac: w.homes[0].config().mac,
        ..w.homes[1].config().clone()
    };
    w.homes[1] = Home::new(twin, 1);
    w.dial_all();
    assert_eq!(w.online(), 2);
    let sessions = w.sessions();
    let sessions = ["home0", "home1"].map(|user| {
        let its = sessions.iter().find(|s| s.user == user).unwrap();
        u64::from_str_radix(&its.id, 16).unwrap()
    });
    (w, sessions)
}

/// What a home says of itself in its session's tunnel.
fn hear_in_tunnel(traces: &mut Traces, w: &World, home: usize, session: u64) {
    let mut frame = Vec::new();
    let header = Header {
        destination: MacAddr([2; 6]),
        source: w.homes[home].config().mac,
        tags: w.homes[home].config().tags,
        ethertype: PPPOE_DISCOVERY,
    };
    header.emit(&mut frame);
    frame.extend(session::discovery::padt(1, "bye"));
    let held = w.plane.held().find(|held| held.seid == Seid(session));
    let mut bytes = Vec::new();
    gtpu::emit_gpdu(held.unwrap().teid, &frame, &mut bytes).unwrap();
    let datagram = Datagram {
        way: Way::In,
        own: "192.0.2.1:2152".parse().unwrap(),
        peer: "192.0.2.2:2152".parse().unwrap(),
        bytes: &bytes,
    };
    traces.gtpu(&w.plane, datagram);
}

/// What a server is told of a home's earlier session.
fn tell_server(traces: &mut Traces, w: &World, home: usize) {
    let HomeConfig { mac, tags, .. } = w.homes[home].config();
    let mut packet = radius::Packet::new(radius::Code::ACCOUNTING_REQUEST, 7, [0; 16]);
    packet.push(Kind::ACCT_SESSION_ID, "00000000deadbeef");
    packet.push(Kind::NAS_PORT_ID, &*format!("up1/access0.{tags}"));
    packet.push(Kind::CALLING_STATION_ID, &*mac.to_string());
    let mut bytes = Vec::new();
    packet.emit(&mut bytes).unwrap();
    let datagram = Datagram {
        way: Way::Out,
        own: "192.0.2.1:5000".parse().unwrap(),
        peer: "192.0.2.9:1813".parse().unwrap(),
        bytes: &bytes,
    };
    traces.radius(&w.plane, 0, datagram);
}

#[test]
fn another_home_with_the_same_mac_address_is_not_shown() {
    let (w, sessions) = twins();
    let mac = w.homes[0].config().mac;
    let mut traces = Traces::default();
    let (_, mut packets, _) = begin(&mut traces, &w, "home0").unwrap();
    for (home, shown) in [(1, false), (0, true)] {
        let mut is_shown = |path| packets.try_recv().is_ok_and(|p| p.path() == path);
        hear_at(&mut traces, &w, mac, w.homes[home].config().tags);
        assert_eq!(is_shown(TracedPath::Access), shown, "PADI of {home}");
        hear_in_tunnel(&mut traces, &w, home, sessions[home]);
        assert_eq!(is_shown(TracedPath::Access), shown, "PADT of {home}");
        hear_of(&mut traces, &w, sessions[home]);
        assert_eq!(is_shown(TracedPath::Pfcp), shown, "PFCP of {home}");
        tell_server(&mut traces, &w, home);
        assert_eq!(is_shown(TracedPath::Radius), shown, "RADIUS of {home}");
    }
}

#[test]
fn whoever_means_homes_on_two_lines_has_to_choose_a_session() {
    let (w, sessions) = twins();
    let mac = w.homes[0].config().mac.to_string();
    let refused = begin(&mut Traces::default(), &w, &mac).unwrap_err();
    let Refusal::NotFound(why) = refused else {
        panic!("{refused:?}")
    };
    let named = sessions.map(|session| Seid(session).to_string());
    assert!(why.contains("on 2 lines"), "{why}");
    assert!(named.iter().all(|id| why.contains(id)), "{why}");
    let (found, ..) = begin(&mut Traces::default(), &w, &named[1]).unwrap();
    assert_eq!(found.to_string(), format!("{mac} at up1/access0.100.2"));
}

#[test]
fn the_first_line_on_which_a_home_is_heard_is_its_own() {
    let w = online(1);
    let mut traces = Traces::default();
    let (reader, mut packets, _) = Reader::new();
    let unheard = Subject::Unheard(UNKNOWN);
    let mut begun = traces.begin(&w.plane, unheard, reader).unwrap();
    assert!(begun.line.try_recv().is_err(), "it is not known yet");
    let [first, second] = [7, 8].map(|c_tag| Tags::qinq(100, c_tag));
    for tags in [first, second, first] {
        hear_at(&mut traces, &w, UNKNOWN, tags);
    }
    let shown = std::iter::from_fn(|| packets.try_recv().ok());
    let tags = shown.map(|p| Frame::parse(&p.octets).unwrap().header.tags);
    assert_eq!(tags.collect::<Vec<_>>(), [first, first]);
    let line = begun.line.try_recv().unwrap();
    assert_eq!(line.to_string(), format!("{UNKNOWN} at up1/access0.100.7"));
}
