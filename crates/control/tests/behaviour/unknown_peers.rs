//! Unexpected input: from unknown peers, through unknown tunnels, or out of turn. It is counted and changes nothing.

use crate::world::{Choice, World};
use control::counters::Counter;
use control::{Input, Output};
use core::net::SocketAddr;
use core::time::Duration;
use cpe::State;
use policy::Access;
use wire::eth::{Frame, Header, MacAddr, PPPOE_DISCOVERY, PPPOE_SESSION, TPID_8021AD};
use wire::pppoe::{Discovery, PADI, PADO, PADR, PADS, Tag};
use wire::{gtpu, nsh};

const MINUTE: Duration = Duration::from_secs(60);

/// A frame of a home to the gateway, or to everybody.
fn frame(w: &World, n: usize, ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let rules = w.up.subscribers();
    let mac = w.homes[n].config().mac;
    let own = rules.iter().find(|rules| rules.circuit.mac == mac);
    let mut frame = Vec::new();
    Header {
        destination: own.map_or(MacAddr::BROADCAST, |own| own.circuit.gateway_mac),
        source: mac,
        tags: wire::eth::Tags::qinq(100, 1 + n as u16),
        ethertype,
    }
    .emit(&mut frame);
    frame.extend_from_slice(payload);
    frame
}

/// A GTP-U datagram from this address; what the control plane sends to it.
fn datagram(w: &mut World, from: &str, bytes: &[u8]) -> Vec<Vec<u8>> {
    let from = SocketAddr::new(from.parse().unwrap(), gtpu::PORT);
    w.plane.handle(w.moment(), Input::Gtpu { from, bytes });
    let mut answers = Vec::new();
    while let Some(output) = w.plane.poll_output() {
        match output {
            Output::Gtpu { to, bytes } if to == from => answers.push(bytes),
            other => panic!("{other:?}"),
        }
    }
    answers
}

fn gpdu(teid: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    gtpu::emit_gpdu(teid, payload, &mut bytes).unwrap();
    bytes
}

fn in_nsh(logical_port: &[u8], frame: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let packet = nsh::Packet {
        logical_port,
        frame,
    };
    packet.emit(&mut bytes).unwrap();
    bytes
}

/// PADT of a session.
fn padt(access: Access) -> Vec<u8> {
    let Access::Pppoe(session_id) = access;
    session::discovery::padt(session_id, "forged")
}

#[test]
fn a_tunnel_is_its_user_plane_s_alone() {
    let mut w = World::new(1, Choice::default());
    w.dial_all();
    let rules = w.up.subscribers().remove(0);
    let padt = padt(rules.access);
    let goodbye = gpdu(
        rules.tunnel.uplink.teid,
        &frame(&w, 0, PPPOE_DISCOVERY, &padt),
    );
    let unknown_peer = "192.0.2.66";
    assert_eq!(datagram(&mut w, unknown_peer, &goodbye), [] as [Vec<u8>; 0]);
    let mut echo = Vec::new();
    let request = gtpu::Packet::EchoRequest { sequence: 5 };
    request.emit(&mut echo).unwrap();
    assert_eq!(datagram(&mut w, unknown_peer, &echo), [] as [Vec<u8>; 0]);
    assert_eq!(w.count(Counter::UnknownUserPlane), 2);
    w.run(MINUTE);
    assert_eq!((w.online(), w.sessions().len()), (1, 1));

    // the same octets from the user plane are obeyed
    let [answer] = &datagram(&mut w, "192.0.2.2", &echo)[..] else {
        panic!("an answer")
    };
    let expected = gtpu::Packet::EchoResponse { sequence: 5 };
    assert_eq!(gtpu::Packet::parse(answer), Ok(expected));
    w.tunnel(
        rules.tunnel.uplink.teid,
        &frame(&w, 0, PPPOE_DISCOVERY, &padt),
    );
    w.settle();
    assert_eq!(w.sessions().len(), 0);
    assert_eq!(w.count(Counter::UnknownUserPlane), 2);
}

#[test]
fn a_tunnel_stays_the_same_over_a_restart_and_is_new_for_each_session() {
    let mut w = World::new(1, Choice::default());
    w.dial_all();
    let tunnel = |w: &World| w.up.subscribers()[0].tunnel.uplink.teid;
    let (first, default) = (tunnel(&w), w.up.default_tunnel());
    w.restart_control_plane();
    w.run(MINUTE);
    assert_eq!((tunnel(&w), w.up.default_tunnel()), (first, default));
    w.hang_up(0);
    w.run(MINUTE);
    w.dial(0);
    w.run(MINUTE);
    assert_eq!(w.up.default_tunnel(), default);
    assert_ne!(tunnel(&w), first, "the index is the same");
}

/// Whoever knows the TEIDs of some sessions cannot tell those of others from them.
#[test]
fn tunnels_that_no_session_has_are_counted() {
    let mut w = World::new(2, Choice::default());
    w.dial_all();
    let rules = w.up.subscribers().remove(0);
    let own = rules.tunnel.uplink.teid;
    let padt = padt(rules.access);
    let goodbye = frame(&w, 0, PPPOE_DISCOVERY, &padt);
    let free_index = own + 7;
    let other_group = own + (1 << 20);
    // what they were when a group had a range of them, and a port a small number
    assert!(own > 1 << 20 && own >> 20 != 1, "{own:#x}");
    let default = w.up.default_tunnel();
    assert!(default >> 31 == 1 && own >> 31 == 0);
    for (teid, counted) in [(0, 1), (free_index, 2), (other_group, 3)] {
        w.tunnel(teid, &goodbye);
        assert_eq!(w.count(Counter::UnknownTunnel), counted, "TEID {teid:#x}");
    }
    let mut indication = Vec::new();
    let peer = "192.0.2.2".parse().unwrap();
    let packet = gtpu::Packet::ErrorIndication {
        teid: free_index,
        peer,
    };
    packet.emit(&mut indication).unwrap();
    assert_eq!(
        datagram(&mut w, "192.0.2.2", &indication),
        [] as [Vec<u8>; 0]
    );
    assert_eq!(w.count(Counter::UnknownTunnel), 4);
    // a session's PADT comes through its own tunnel, not through the default one
    let default = gpdu(default, &in_nsh(b"access0", &goodbye));
    datagram(&mut w, "192.0.2.2", &default);
    assert_eq!(w.count(Counter::UnknownTunnel), 5);
    w.run(MINUTE);
    assert_eq!((w.online(), w.sessions().len()), (2, 2));
}

/// The user plane says that it was sent a frame through a tunnel that it does not have.
fn indicate(w: &mut World, teid: u32) {
    let mut bytes = Vec::new();
    let peer = "192.0.2.2".parse().unwrap();
    let packet = gtpu::Packet::ErrorIndication { teid, peer };
    packet.emit(&mut bytes).unwrap();
    datagram(w, "192.0.2.2", &bytes);
}

/// So many frames came through tunnels that nobody can explain, and so many through those of sessions that came or went.
fn assert_tunnels(w: &World, unknown: u64, stale: u64) {
    let counted = (
        w.count(Counter::UnknownTunnel),
        w.count(Counter::StaleTunnel),
    );
    assert_eq!(counted, (unknown, stale));
}

#[test]
fn what_was_on_its_way_when_a_session_ended_is_counted_apart() {
    let mut w = World::new(1, Choice::default());
    w.dial_all();
    let rules = w.up.subscribers().remove(0);
    let teid = rules.tunnel.uplink.teid;
    let late = padt(rules.access);
    let late = frame(&w, 0, PPPOE_DISCOVERY, &late);
    w.hang_up(0);
    w.run(MINUTE);
    assert_eq!(w.sessions().len(), 0);
    w.tunnel(teid, &late);
    assert_tunnels(&w, 0, 1);
    indicate(&mut w, teid);
    assert_tunnels(&w, 0, 2);
    w.tunnel(teid + 1, &late);
    indicate(&mut w, teid + 1);
    assert_tunnels(&w, 2, 2);
}

#[test]
fn what_a_restarted_user_plane_does_not_have_yet_is_counted_apart() {
    let mut w = World::new(1, Choice::default());
    w.dial_all();
    let teid = w.up.subscribers()[0].tunnel.uplink.teid;
    for ours in [teid, w.up.default_tunnel()] {
        indicate(&mut w, ours);
    }
    assert_tunnels(&w, 0, 2);
    // of a port and of a session that there never was
    for other in [2, teid + 1] {
        indicate(&mut w, other);
    }
    assert_tunnels(&w, 2, 2);
}

#[test]
fn frames_of_sessions_that_a_restart_forgot_are_counted_apart() {
    let mut w = World::new(1, Choice::default());
    w.stall_disk();
    w.dial(0);
    let rules = w.up.subscribers().remove(0);
    let teid = rules.tunnel.uplink.teid;
    let echo = frame(&w, 0, PPPOE_SESSION, &[0x11, 0, 0, 1, 0, 0]);
    w.cut = true;
    w.restart_control_plane();
    w.cut = false;
    w.tunnel(teid, &echo);
    assert_tunnels(&w, 0, 1);
    w.run(2 * MINUTE);
    assert!(w.up.subscribers().is_empty(), "the audit deletes it");
    w.tunnel(teid, &echo);
    assert_tunnels(&w, 0, 2);
    w.tunnel(teid + 1, &echo);
    assert_tunnels(&w, 1, 2);
}

#[test]
fn what_is_not_discovery_of_a_known_place_is_not_answered() {
    let mut w = World::new(1, Choice::default());
    let padi = Discovery {
        code: PADI,
        session_id: 0,
        tags: vec![Tag::ServiceName(b"")],
    };
    let mut payload = Vec::new();
    padi.emit(&mut payload);
    let good = frame(&w, 0, PPPOE_DISCOVERY, &payload);
    let elsewhere = in_nsh(b"access9", &good);
    let mut two_s_tags = good.clone();
    two_s_tags[16..18].copy_from_slice(&TPID_8021AD.to_be_bytes());
    let two_s_tags = in_nsh(b"access0", &two_s_tags);
    let data = in_nsh(b"access0", &frame(&w, 0, PPPOE_SESSION, &payload));
    let cut = in_nsh(b"access0", &good[..13]);
    let default = w.up.default_tunnel();
    for (inner, counter) in [
        (&good[..], Counter::MalformedFrame), // without NSH
        (&cut, Counter::MalformedFrame),
        (&elsewhere, Counter::UnknownSegment),
        (&two_s_tags, Counter::UnknownSegment),
        (&data, Counter::DiscoveryIgnored),
    ] {
        let before = w.count(counter);
        w.tunnel(default, inner);
        assert_eq!(w.count(counter), before + 1, "{}", counter.name());
    }
    w.settle();
    assert_eq!(w.heard, [] as [Vec<u8>; 0]);
    w.tunnel(default, &in_nsh(b"access0", &good));
    w.settle();
    assert_eq!(w.heard.len(), 1, "the good one is");
}

/// What a discovery packet of the home is answered by, through the user plane's default tunnel.
fn exchange(w: &mut World, packet: &Discovery<'_>) -> Option<Vec<u8>> {
    let mut payload = Vec::new();
    packet.emit(&mut payload);
    let inner = in_nsh(b"access0", &frame(w, 0, PPPOE_DISCOVERY, &payload));
    let answers = datagram(w, "192.0.2.2", &gpdu(w.up.default_tunnel(), &inner));
    assert!(answers.len() < 2);
    let answer = answers.first()?;
    let Ok(gtpu::Packet::Gpdu { payload, .. }) = gtpu::Packet::parse(answer) else {
        panic!("{answer:?}")
    };
    let frame = nsh::Packet::parse(payload).unwrap().frame;
    Some(Frame::parse(frame).unwrap().payload.to_vec())
}

fn any_service() -> Discovery<'static> {
    Discovery {
        code: PADI,
        session_id: 0,
        tags: vec![Tag::ServiceName(b"")],
    }
}

/// The AC-Cookie that a PADI of the home gets.
fn offered_cookie(w: &mut World) -> Vec<u8> {
    let offer = exchange(w, &any_service()).expect("an offer");
    let offer = Discovery::parse(&offer).unwrap();
    assert_eq!(offer.code, PADO);
    let cookie = offer.tags.iter().find_map(|tag| match tag {
        Tag::AcCookie(cookie) => Some(cookie.to_vec()),
        _ => None,
    });
    cookie.expect("a cookie")
}

fn request(cookie: &[u8]) -> Discovery<'_> {
    Discovery {
        code: PADR,
        session_id: 0,
        tags: vec![Tag::ServiceName(b""), Tag::AcCookie(cookie)],
    }
}

#[test]
fn a_request_without_our_cookie_gets_no_session() {
    let mut w = World::new(1, Choice::default());
    let cookie = offered_cookie(&mut w);
    let mut forged = cookie.clone();
    forged[15] ^= 1;
    for (wrong, counted) in [(&forged[..], 1), (&cookie[..15], 2), (&[][..], 3)] {
        assert_eq!(exchange(&mut w, &request(wrong)), None);
        assert_eq!(w.count(Counter::BadCookie), counted);
    }
    assert_eq!((w.plane.session_count(), w.up.subscribers().len()), (0, 0));
    w.run(10 * MINUTE);
    assert_eq!(exchange(&mut w, &request(&cookie)), None, "it is too old");
    assert_eq!(w.count(Counter::BadCookie), 4);

    w.dial_all();
    assert_eq!(
        w.homes[0].state(),
        State::Online,
        "who has one gets a session"
    );
    assert_eq!(w.count(Counter::BadCookie), 4);
}

#[test]
fn while_its_user_plane_is_absent_a_subscriber_gets_no_offer_or_a_refusal_with_a_reason() {
    let mut w = World::new(1, Choice::default());
    let cookie = offered_cookie(&mut w);
    w.cut = true; // for PFCP; what comes through the tunnel is handed over below
    w.run(Duration::from_secs(55));
    let refusal = exchange(&mut w, &request(&cookie)).expect("a refusal");
    let refusal = Discovery::parse(&refusal).unwrap();
    assert_eq!((refusal.code, refusal.session_id), (PADS, 0));
    let reason = Tag::AcSystemError(b"gateway is not ready");
    assert!(refusal.tags.contains(&reason), "{refusal:?}");
    assert_eq!(w.count(Counter::UserPlaneAbsent), 1);
    assert_eq!(exchange(&mut w, &any_service()), None);
    assert_eq!(w.count(Counter::UserPlaneAbsent), 2);
    assert_eq!(w.plane.session_count(), 0);

    w.cut = false;
    w.run(MINUTE);
    w.dial_all();
    assert_eq!(w.homes[0].state(), State::Online);
    assert_eq!(w.count(Counter::UserPlaneAbsent), 2);
}
