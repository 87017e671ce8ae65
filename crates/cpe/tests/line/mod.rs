//! The other end of a home's line: frames written by hand, answer by answer.
#![allow(dead_code)]

use core::time::Duration;
use cpe::{Home, HomeConfig, Output, Received};
use wire::eth::{self, Frame, Header, MacAddr, Tags};
use wire::ppp::{self, Control};
use wire::pppoe::{self, Discovery, Tag};
use wire::{ipcp, ipv6, ipv6cp, lcp, nd};

pub const HOME: MacAddr = MacAddr([2, 0, 0, 0, 0, 7]);
pub const GATEWAY: MacAddr = MacAddr([2, 0, 0, 0, 0xff, 1]);
pub const SESSION: u16 = 0x1234;
pub const GATEWAY_ID: u64 = 0x0200_00ff_fe00_0001;
pub const MAGIC: u32 = 0xfeed_beef;

pub struct Line {
    pub home: Home,
    pub now: Duration,
    /// What the home did beside sending.
    pub events: Vec<Output>,
    frames: Vec<Vec<u8>>,
}

/// A PPP control packet that the home sent.
#[derive(Debug, PartialEq, Eq)]
pub struct Sent {
    pub protocol: u16,
    pub code: u8,
    pub id: u8,
    pub data: Vec<u8>,
}

pub fn config() -> HomeConfig {
    HomeConfig::new(HOME, 100, 7, "home7", "secret")
}

impl Line {
    pub fn new(config: HomeConfig) -> Self {
        Line {
            home: Home::new(config, 7),
            now: Duration::from_secs(100),
            events: Vec::new(),
            frames: Vec::new(),
        }
    }

    fn drain(&mut self) {
        while let Some(output) = self.home.poll_output() {
            match output {
                Output::Frame(bytes) => self.frames.push(bytes),
                event => self.events.push(event),
            }
        }
    }

    /// Lets time pass up to the home's next deadline; how long that took.
    pub fn wait(&mut self) -> Duration {
        let at = self.home.poll_at().expect("the home waits for something");
        let passed = at - self.now;
        self.now = at;
        self.home.on_timeout(at);
        passed
    }

    pub fn dial(&mut self) {
        self.home.dial(self.now);
    }

    /// Everything that the home has sent and nobody has looked at.
    pub fn sent(&mut self) -> Vec<Vec<u8>> {
        self.drain();
        std::mem::take(&mut self.frames)
    }

    /// The only frame that the home has sent.
    pub fn one(&mut self) -> Vec<u8> {
        let mut sent = self.sent();
        assert_eq!(sent.len(), 1, "{sent:02x?}");
        sent.remove(0)
    }

    /// The PPP control packets that the home has sent.
    pub fn controls(&mut self) -> Vec<Sent> {
        self.sent().iter().map(|bytes| control(bytes)).collect()
    }

    pub fn discovery(&mut self, code: u8, session_id: u16, tags: &[Tag]) {
        self.discovery_from(GATEWAY, code, session_id, tags);
    }

    pub fn discovery_from(&mut self, from: MacAddr, code: u8, session_id: u16, tags: &[Tag]) {
        let mut bytes = header(from, HOME, eth::PPPOE_DISCOVERY);
        Discovery {
            code,
            session_id,
            tags: tags.to_vec(),
        }
        .emit(&mut bytes);
        self.home.handle_frame(self.now, &bytes);
        self.drain();
    }

    pub fn control(&mut self, protocol: u16, code: u8, id: u8, data: &[u8]) {
        let mut frame = Vec::new();
        Control { code, id, data }.emit(protocol, &mut frame);
        self.ppp(&frame);
    }

    pub fn ppp(&mut self, frame: &[u8]) {
        let bytes = session_frame(frame);
        assert_eq!(self.home.handle_frame(self.now, &bytes), Received::Quiet);
        self.drain();
    }

    /// PADI, PADO, PADR, PADS.
    pub fn connect(&mut self) {
        self.connect_as(SESSION);
    }

    /// The same with another session id.
    pub fn connect_as(&mut self, session: u16) {
        self.dial();
        let padi = self.one();
        let uniq = host_uniq(&padi);
        self.discovery(pppoe::PADO, 0, &offer(&uniq));
        self.one();
        self.discovery(
            pppoe::PADS,
            session,
            &[Tag::ServiceName(b""), Tag::HostUniq(&uniq)],
        );
    }

    /// LCP, the gateway asking for `auth`.
    pub fn open_link(&mut self, auth: Option<lcp::Auth>) {
        let request = self.controls().remove(0);
        assert_eq!(
            (request.protocol, request.code),
            (ppp::LCP, ppp::CONFIGURE_REQUEST)
        );
        self.control(ppp::LCP, ppp::CONFIGURE_REQUEST, 1, &link_options(auth));
        let ack = self.controls().remove(0);
        assert_eq!(
            (ack.code, ack.id, ack.data),
            (ppp::CONFIGURE_ACK, 1, link_options(auth))
        );
        self.control(ppp::LCP, ppp::CONFIGURE_ACK, request.id, &request.data);
    }

    /// IPCP: the home gets 100.64.0.9.
    pub fn open_ipv4(&mut self, request: &Sent) {
        let mut better = Vec::new();
        ipcp::Opt::Address([100, 64, 0, 9].into()).emit(&mut better);
        ipcp::Opt::PrimaryDns([192, 0, 2, 53].into()).emit(&mut better);
        ipcp::Opt::SecondaryDns([192, 0, 2, 54].into()).emit(&mut better);
        self.control(ppp::IPCP, ppp::CONFIGURE_NAK, request.id, &better);
        let second = self.controls().remove(0);
        assert_eq!(
            (second.code, &second.data),
            (ppp::CONFIGURE_REQUEST, &better)
        );
        assert_ne!(second.id, request.id);
        let mut gateway = Vec::new();
        ipcp::Opt::Address([100, 64, 0, 1].into()).emit(&mut gateway);
        self.control(ppp::IPCP, ppp::CONFIGURE_REQUEST, 1, &gateway);
        assert_eq!(self.controls().remove(0).code, ppp::CONFIGURE_ACK);
        self.control(ppp::IPCP, ppp::CONFIGURE_ACK, second.id, &second.data);
    }

    /// IPV6CP, up to the home's Router Solicitation.
    pub fn open_ipv6(&mut self, request: &Sent) {
        let mut gateway = Vec::new();
        ipv6cp::Opt::InterfaceId(GATEWAY_ID).emit(&mut gateway);
        self.control(ppp::IPV6CP, ppp::CONFIGURE_REQUEST, 1, &gateway);
        assert_eq!(self.controls().remove(0).code, ppp::CONFIGURE_ACK);
        self.control(ppp::IPV6CP, ppp::CONFIGURE_ACK, request.id, &request.data);
    }

    /// A Router Advertisement for 2001:db8:100:7::/64.
    pub fn advertise(&mut self, valid_lifetime: u32) {
        let message = nd::Message::RouterAdvertisement(nd::RouterAdvertisement {
            router_lifetime: 1800,
            options: vec![
                nd::Opt::Prefix(nd::PrefixInformation {
                    prefix: "2001:db8:100:7::".parse().unwrap(),
                    length: 64,
                    on_link: false,
                    autonomous: true,
                    valid_lifetime,
                    preferred_lifetime: valid_lifetime,
                }),
                nd::Opt::Rdnss {
                    lifetime: 1800,
                    servers: vec!["2001:db8::53".parse().unwrap()],
                },
            ],
            ..Default::default()
        });
        self.nd(message);
    }

    pub fn nd(&mut self, message: nd::Message) {
        let mut frame = ppp::IPV6.to_be_bytes().to_vec();
        let (source, destination) = (ipv6::link_local(GATEWAY_ID), ipv6::ALL_NODES);
        nd::Packet {
            source,
            destination,
            message,
        }
        .emit(&mut frame);
        self.ppp(&frame);
    }

    /// All the way without authentication.
    pub fn online() -> Self {
        let mut line = Line::new(config());
        line.connect();
        line.open_link(None);
        let requests = line.controls();
        line.open_ipv4(&requests[0]);
        line.open_ipv6(&requests[1]);
        line.sent();
        line.advertise(u32::MAX);
        line
    }
}

pub fn link_options(auth: Option<lcp::Auth>) -> Vec<u8> {
    let mut options = Vec::new();
    lcp::Opt::Mru(1492).emit(&mut options);
    if let Some(auth) = auth {
        lcp::Opt::Auth(auth).emit(&mut options);
    }
    lcp::Opt::Magic(MAGIC).emit(&mut options);
    options
}

pub fn offer(host_uniq: &[u8]) -> [Tag<'_>; 5] {
    [
        Tag::AcName(b"bng"),
        Tag::ServiceName(b""),
        Tag::AcCookie(b"cookie"),
        Tag::RelaySessionId(b"relay"),
        Tag::HostUniq(host_uniq),
    ]
}

pub fn host_uniq(frame: &[u8]) -> Vec<u8> {
    let frame = Frame::parse(frame).unwrap();
    let packet = Discovery::parse(frame.payload).unwrap();
    let uniq = packet.tags.iter().find_map(|tag| match tag {
        Tag::HostUniq(value) => Some(value.to_vec()),
        _ => None,
    });
    uniq.expect("Host-Uniq")
}

pub fn header(source: MacAddr, destination: MacAddr, ethertype: u16) -> Vec<u8> {
    let mut bytes = Vec::new();
    Header {
        destination,
        source,
        tags: Tags::qinq(100, 7),
        ethertype,
    }
    .emit(&mut bytes);
    bytes
}

/// A frame of the session from the gateway to the home.
pub fn session_frame(payload: &[u8]) -> Vec<u8> {
    session_frame_of(SESSION, payload)
}

/// A frame of another session.
pub fn session_frame_of(session_id: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = header(GATEWAY, HOME, eth::PPPOE_SESSION);
    pppoe::Packet {
        code: pppoe::SESSION,
        session_id,
        payload,
    }
    .emit(&mut bytes);
    bytes
}

/// The PPP frame inside an Ethernet frame of the home, whose outer layers are checked.
pub fn ppp_of(bytes: &[u8]) -> Vec<u8> {
    let frame = Frame::parse(bytes).unwrap();
    assert_eq!(
        (frame.header.source, frame.header.destination),
        (HOME, GATEWAY)
    );
    assert_eq!(
        (frame.header.tags, frame.header.ethertype),
        (Tags::qinq(100, 7), eth::PPPOE_SESSION)
    );
    let packet = pppoe::Packet::parse(frame.payload).unwrap();
    assert_eq!((packet.code, packet.session_id), (pppoe::SESSION, SESSION));
    packet.payload.to_vec()
}

fn control(bytes: &[u8]) -> Sent {
    let payload = ppp_of(bytes);
    let frame = ppp::Frame::parse(&payload).unwrap();
    let Control { code, id, data } = Control::parse(frame.payload).unwrap();
    Sent {
        protocol: frame.protocol,
        code,
        id,
        data: data.to_vec(),
    }
}
