//! A port with several members.
use crate::world::*;
use dataplane::*;

const PORT: u16 = 9;

fn frame(to: [u8; 6], ethertype: [u8; 2], payload: &[u8]) -> Vec<u8> {
    let home = [2, 0, 0, 0, 0, 0x77];
    let mut frame = [&to[..], &home, &ethertype, payload].concat();
    frame.resize(60, 0);
    frame
}

/// PADI (RFC 2516 §5.1).
fn padi() -> Vec<u8> {
    frame([0xff; 6], [0x88, 0x63], &[0x11, 9, 0, 0, 0, 4, 1, 1, 0, 0])
}

fn lacpdu() -> Vec<u8> {
    frame([1, 0x80, 0xc2, 0, 0, 2], [0x88, 0x09], &[1, 1])
}

/// What reaches the control thread: kind, and number of the member.
fn punted(w: &mut World) -> Vec<(PuntKind, u16)> {
    let mut all = vec![];
    w.controller
        .recv_punts(usize::MAX, |p| all.push((p.kind, p.member)));
    all
}

#[test]
fn an_unused_member_brings_lacp_alone_and_what_else_comes_is_counted_apart_from_losses() {
    let mut w = World::new();
    let segments = Segment::whole_port();
    let lag = w.add_lag(PORT, Role::Access { segments });
    let send = |w: &mut World, member, frame: &[u8]| {
        let mbuf = w.pool.packet(frame).unwrap();
        w.send_by(PORT, member, mbuf);
        w.settle();
    };
    let counted = |w: &World| {
        let ports = w.controller.ports();
        let port = ports.iter().find(|port| port.index.0 == PORT).unwrap();
        (port.rx_packets, port.unaggregated, port.rx_lost, port.up)
    };
    send(&mut w, 1, &padi());
    send(&mut w, 1, &lacpdu());
    assert_eq!(punted(&mut w), [(PuntKind::SlowProtocol, 1)]);
    // The control plane's watchdog takes losses without packets for a driver that has stopped.
    assert_eq!(counted(&w), (1, 1, 0, false));

    // LACP is answered although nothing else is sent, by its own member.
    let answer = lacpdu();
    w.inject(Inject::Member(PortIndex(PORT), 1, &answer));
    w.settle();
    let sent: Vec<bool> = (w.peers.get_mut(&PORT).unwrap().iter_mut())
        .map(|member| member.from_port.recv().is_some())
        .collect();
    assert_eq!(sent, [false, true]);
    w.got += 1;

    lag.set(0b10, 0b10);
    send(&mut w, 1, &padi());
    send(&mut w, 0, &padi());
    let discovery = punted(&mut w);
    assert!(
        matches!(discovery[..], [(PuntKind::Discovery, 1)]),
        "{discovery:?}"
    );
    assert_eq!(counted(&w), (2, 2, 0, true));
}
