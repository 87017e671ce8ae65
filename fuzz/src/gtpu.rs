//! What the user plane's tunnels carry: [`wire::gtpu`], [`wire::nsh`], a frame, and every packet that may be in it.
use crate::script;
use core::net::{Ipv4Addr, Ipv6Addr};
use wire::eth::{self, Frame, Header, MacAddr, Tags};
use wire::{arp, gtpu, icmp, ipv4, ipv6, nd, nsh, ppp, pppoe, tcp, udp};

/// Takes one input: a datagram, in whatever layers it is read as.
pub fn run(input: &[u8]) {
    for step in crate::steps(input) {
        match step.op & 3 {
            0 => tunnelled(step.data),
            1 => in_nsh(step.data),
            2 => frame(step.data),
            _ => ip(step.data),
        }
    }
}

fn tunnelled(bytes: &[u8]) {
    let Ok(packet) = gtpu::Packet::parse(bytes) else {
        return;
    };
    let mut written = Vec::new();
    if packet.emit(&mut written).is_ok() {
        assert_eq!(gtpu::Packet::parse(&written), Ok(packet));
    }
    if let gtpu::Packet::Gpdu { payload, .. } = packet {
        in_nsh(payload);
        frame(payload);
    }
}

fn in_nsh(bytes: &[u8]) {
    let Ok(packet) = nsh::Packet::parse(bytes) else {
        return;
    };
    let mut written = Vec::new();
    packet
        .emit(&mut written)
        .expect("a port whose name came in");
    assert_eq!(nsh::Packet::parse(&written), Ok(packet));
    frame(packet.frame);
}

fn frame(bytes: &[u8]) {
    let Ok(Frame { header, payload }) = Frame::parse(bytes) else {
        return;
    };
    let mut written = Vec::new();
    header.emit(&mut written);
    assert_eq!(written.len(), header.len());
    written.extend(payload);
    assert_eq!(written, bytes, "a header that is written otherwise");
    match header.ethertype {
        eth::PPPOE_SESSION | eth::PPPOE_DISCOVERY => in_pppoe(payload),
        eth::ARP => drop(arp::Packet::parse(payload)),
        _ => ip(payload),
    }
}

fn in_pppoe(bytes: &[u8]) {
    if let Ok(packet) = pppoe::Discovery::parse(bytes) {
        let mut written = Vec::new();
        packet.emit(&mut written);
        assert_eq!(pppoe::Discovery::parse(&written).as_ref(), Ok(&packet));
        let _ = packet.access_line();
    }
    let Ok(packet) = pppoe::Packet::parse(bytes) else {
        return;
    };
    let Ok(ppp::Frame { protocol, payload }) = ppp::Frame::parse(packet.payload) else {
        return;
    };
    match protocol {
        ppp::IPV4 | ppp::IPV6 => ip(payload),
        ppp::PAP => drop(wire::pap::Packet::parse(payload)),
        ppp::CHAP => drop(wire::chap::Packet::parse(payload)),
        _ => {
            let Ok(control) = ppp::Control::parse(payload) else {
                return;
            };
            let _ = wire::lcp::Opt::parse_all(control.data);
            let _ = wire::ipcp::Opt::parse_all(control.data);
            let _ = wire::ipv6cp::Opt::parse_all(control.data);
            let _ = wire::lcp::Echo::parse(control.data);
            let _ = wire::lcp::ProtocolReject::parse(control.data);
        }
    }
}

fn ip(bytes: &[u8]) {
    if let Ok(packet) = ipv4::Packet::parse(bytes) {
        let (from, to) = (packet.header.source, packet.header.destination);
        let _ = udp::Datagram::parse_v4(packet.payload, from, to);
        let _ = icmp::Message::parse_v4(packet.payload);
        let _ = tcp::Segment::parse_v4(packet.payload, from, to);
    }
    let Ok(packet) = ipv6::Packet::parse(bytes) else {
        return;
    };
    let (from, to) = (packet.header.source, packet.header.destination);
    let _ = udp::Datagram::parse_v6(packet.payload, from, to);
    let _ = icmp::Message::parse_v6(packet.payload, from, to);
    let _ = tcp::Segment::parse_v6(packet.payload, from, to);
    let _ = nd::Packet::parse(bytes);
    // As a checksum that is right, which mutations do not find.
    if let Some(&[kind, code, _, _, a, b, c, d]) = packet.payload.first_chunk() {
        let mut message = Vec::new();
        let payload = &packet.payload[8..];
        icmp::Message {
            kind,
            code,
            rest: [a, b, c, d],
            payload,
        }
        .emit_v6(from, to, &mut message);
        if let Ok(found) = nd::Message::parse(&message, from, to) {
            let mut written = Vec::new();
            found.emit(from, to, &mut written);
            assert_eq!(nd::Message::parse(&written, from, to), Ok(found));
        }
    }
}

/// Inputs to begin with.
pub fn seeds() -> Vec<Vec<u8>> {
    let (me, you) = (
        Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 7),
        Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2),
    );
    let mut solicitation = Vec::new();
    let options = vec![nd::Opt::SourceLinkLayer(MacAddr([2, 0, 0, 0, 0, 7]))];
    nd::Packet {
        source: me,
        destination: you,
        message: nd::Message::RouterSolicitation { options },
    }
    .emit(&mut solicitation);
    let mut datagram = Vec::new();
    let (a, b) = (Ipv4Addr::new(100, 64, 0, 7), Ipv4Addr::new(192, 0, 2, 1));
    udp::Datagram {
        source_port: 5,
        destination_port: 53,
        payload: b"text",
    }
    .emit_v4(a, b, &mut datagram);
    let mut ping = Vec::new();
    ipv4::Packet {
        header: ipv4::Header::new(17, a, b),
        options: &[],
        payload: &datagram,
    }
    .emit(&mut ping);

    let frame = |ethertype, payload: &[u8]| {
        let (destination, source) = (MacAddr([2, 0, 0, 0, 0, 0xfe]), MacAddr([2, 0, 0, 0, 0, 7]));
        let mut frame = Vec::new();
        Header {
            destination,
            source,
            tags: Tags::qinq(100, 7),
            ethertype,
        }
        .emit(&mut frame);
        frame.extend(payload);
        frame
    };
    let session = |protocol, payload: &[u8]| {
        let (mut inner, mut bytes) = (Vec::new(), Vec::new());
        ppp::Frame { protocol, payload }.emit(&mut inner);
        pppoe::Packet {
            code: pppoe::SESSION,
            session_id: 7,
            payload: &inner,
        }
        .emit(&mut bytes);
        frame(eth::PPPOE_SESSION, &bytes)
    };
    let tunnel = |frame: &[u8], nsh: bool| {
        let (mut inner, mut bytes) = (Vec::new(), Vec::new());
        if nsh {
            nsh::Packet {
                logical_port: b"access0",
                frame,
            }
            .emit(&mut inner)
            .expect("a port");
        } else {
            inner = frame.to_vec();
        }
        gtpu::emit_gpdu(0x10, &inner, &mut bytes).expect("a packet");
        bytes
    };
    let padi = frame(eth::PPPOE_DISCOVERY, &[0x11, 9, 0, 0, 0, 4, 1, 1, 0, 0]);
    let lcp = session(ppp::LCP, &[1, 1, 0, 14, 1, 4, 5, 0xd4, 5, 6, 1, 2, 3, 4]);
    let mut echo = Vec::new();
    gtpu::Packet::EchoRequest { sequence: 5 }
        .emit(&mut echo)
        .expect("a packet");
    let mut error = Vec::new();
    gtpu::Packet::ErrorIndication {
        teid: 9,
        peer: b.into(),
    }
    .emit(&mut error)
    .expect("a packet");
    vec![
        script([(0, tunnel(&padi, true)), (0, tunnel(&lcp, false))]),
        script([(0, echo), (0, error)]),
        script([
            (2, session(ppp::IPV6, &solicitation)),
            (3, solicitation.clone()),
        ]),
        script([(2, session(ppp::IPV4, &ping)), (3, ping.clone())]),
        script([(
            0,
            vec![
                0x36, 255, 0, 12, 0, 0, 0, 1, 0, 1, 0, 0x20, 1, 0, 0, 0, 1, 2, 3, 4,
            ],
        )]),
    ]
}
