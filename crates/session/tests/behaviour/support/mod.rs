//! The subscriber's side of a script. Its packets are put together octet by octet, not by the codecs that the server
//! uses, so that the two cannot share a mistake.
pub mod exchange;
pub mod pcap;
pub mod server;

use ipnet::IpNet;
use policy::{Access, Binding, Bindings, Role};
use session::ladder::{Direction, Ladder, describe_ppp};
use session::*;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use wire::nd::{self, RouterAdvertisement};

pub const SESSION_ID: u16 = 0x0907;
pub const DISCOVERY: u16 = 0x8863;
pub const SESSION: u16 = 0x8864;
pub const PADT: u8 = 0xa7;

pub const LCP: u16 = 0xc021;
pub const PAP: u16 = 0xc023;
pub const CHAP: u16 = 0xc223;
pub const IPCP: u16 = 0x8021;
pub const IPV6CP: u16 = 0x8057;

pub const OUR_MAGIC: u32 = 0x5e55_1071;
pub const HOME_MAGIC: [u8; 4] = [0xaa, 0xbb, 0xcc, 0xdd];
pub const HOME_IID: [u8; 8] = [0, 0, 0, 0, 0, 0, 0, 9];
pub const SECOND: Duration = Duration::from_secs(1);

pub fn random() -> Random {
    Random {
        magic: OUR_MAGIC,
        chap_challenge: [0x11; 16],
        chap_id: 1,
        interface_id: 0x1234,
        seed: 99,
    }
}

pub fn grant() -> Grant {
    Grant {
        ipv4: Some(Ipv4Grant {
            address: [100, 64, 0, 7].into(),
            gateway: [100, 64, 0, 1].into(),
            dns: [Some([9, 9, 9, 9].into()), Some([1, 1, 1, 1].into())],
        }),
        ipv6: Some(Ipv6Grant {
            bindings: Bindings::of(None, Some("2001:db8:0:7::/64".parse().unwrap())),
            dns: ["2620:fe::fe".parse().unwrap()].into(),
            interface_id: None,
        }),
    }
}

/// Gives a grant these addresses or prefixes in place of others in the same role.
pub fn replace<'a>(grant: &mut Ipv6Grant, role: Role, prefixes: impl IntoIterator<Item = &'a str>) {
    let kept = grant.bindings.filtered(|binding| binding.role != role);
    let new = prefixes.into_iter();
    let new = new.map(|prefix| Binding::new(role, prefix.parse::<IpNet>().unwrap()));
    grant.bindings = Bindings::new(kept.iter().copied().chain(new)).unwrap();
}

pub fn ipv6_only() -> Grant {
    Grant {
        ipv4: None,
        ..grant()
    }
}

pub fn accept(grant: Grant) -> AuthReply {
    AuthReply::Accept {
        grant,
        message: b"welcome".to_vec(),
        proof: None,
    }
}

/// A control packet as a PPP frame.
pub fn packet(protocol: u16, code: u8, id: u8, data: &[u8]) -> Vec<u8> {
    let mut bytes = protocol.to_be_bytes().to_vec();
    bytes.extend([code, id]);
    bytes.extend((data.len() as u16 + 4).to_be_bytes());
    bytes.extend(data);
    bytes
}

/// The payload of a PPPoE frame of the session.
pub fn pppoe(code: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x11, code];
    bytes.extend(SESSION_ID.to_be_bytes());
    bytes.extend((payload.len() as u16).to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// The output that sends a PPP frame.
pub fn ppp(frame: &[u8]) -> Output {
    Output::Frame(Frame {
        ethertype: SESSION,
        payload: pppoe(0, frame),
    })
}

/// The output that sends a PADT with a text.
pub fn padt(text: &str) -> Output {
    let tag = [&[0x02, 0x03, 0, text.len() as u8], text.as_bytes()].concat();
    Output::Frame(Frame {
        ethertype: DISCOVERY,
        payload: pppoe(PADT, &tag),
    })
}

/// The PPP frame that an output sends.
pub fn ppp_of(output: &Output) -> Option<&[u8]> {
    let Output::Frame(Frame { ethertype, payload }) = output else {
        return None;
    };
    let frame = &payload[6..];
    (*ethertype == SESSION && *payload == pppoe(0, frame)).then_some(frame)
}

/// A link after PADS, without random values.
pub fn link(config: SessionConfig, max_payload: Option<u16>, now: Duration) -> Link {
    let access = Access::Pppoe(SESSION_ID);
    Link::new(access, Arc::new(config), max_payload, random(), now)
}

/// The link of a snapshot.
pub fn restored(snapshot: Snapshot, now: Duration) -> Link {
    let config = Arc::new(SessionConfig::default());
    Link::restore(Access::Pppoe(SESSION_ID), config, snapshot, 1234, now)
}

/// A subscriber's line to a session, with the ladder of what went over it.
pub struct Line {
    pub link: Link,
    pub now: Duration,
    /// Who watches the subscriber.
    pub watch: Watch,
    pub ladder: Ladder,
    outputs: VecDeque<Output>,
}

impl Line {
    pub fn new() -> Self {
        Self::with(SessionConfig::default())
    }

    pub fn with(config: SessionConfig) -> Self {
        let now = Duration::from_secs(1000);
        Self::around(link(config, None, now), now)
    }

    pub fn around(link: Link, now: Duration) -> Self {
        let mut line = Line {
            link,
            now,
            watch: Watch::Link,
            ladder: Ladder::new(),
            outputs: VecDeque::new(),
        };
        line.drain();
        line
    }

    fn drain(&mut self) {
        while let Some(output) = self.link.poll_output() {
            match ppp_of(&output) {
                Some(frame) => self.ladder.ppp(self.now, Direction::ToHome, frame),
                None => self.ladder.note(format_args!("{output:?}")),
            }
            self.outputs.push_back(output);
        }
    }

    pub fn command(&mut self, command: Command) {
        self.link.command(self.now, command).unwrap();
        self.drain();
    }

    /// Passes a PPP frame to the link, without polling it.
    pub fn pass_frame(&mut self, frame: &[u8]) -> Result<(), NotTaken> {
        self.link.on_frame(self.now, SESSION, &pppoe(0, frame))
    }

    pub fn send_padt(&mut self) -> Result<(), NotTaken> {
        let taken = self.link.on_frame(self.now, DISCOVERY, &pppoe(PADT, &[]));
        self.drain();
        taken
    }

    pub fn is_up(&self, family: Family) -> bool {
        self.link.status().rules[family as usize] == RulesState::Up
    }

    pub fn send(&mut self, protocol: u16, code: u8, id: u8, data: &[u8]) {
        self.send_frame(&packet(protocol, code, id, data));
    }

    pub fn send_frame(&mut self, frame: &[u8]) {
        self.ladder.ppp(self.now, Direction::FromHome, frame);
        self.pass_frame(frame).unwrap();
        self.drain();
    }

    /// Sends what must be discarded, and says why it was.
    pub fn send_discarded(&mut self, frame: &[u8]) -> &'static str {
        let Err(NotTaken::Discarded(Discarded(why))) = self.pass_frame(frame) else {
            panic!("taken: {}", describe_ppp(frame));
        };
        self.drain();
        assert!(
            self.outputs.is_empty(),
            "discarded, and yet: {:?}",
            self.outputs
        );
        why
    }

    /// Lets time pass, doing what is due at its time.
    pub fn pass(&mut self, duration: Duration) {
        let end = self.now + duration;
        while let Some(at) = self.link.poll_at().filter(|at| *at <= end) {
            assert!(at >= self.now, "a deadline in the past");
            self.now = at;
            self.link.on_timeout(at, self.watch);
            assert!(
                self.link.poll_at().is_none_or(|next| next > at),
                "a timer that does not advance"
            );
            self.drain();
        }
        self.now = end;
    }

    /// Lets time pass up to the next deadline.
    pub fn pass_to_next(&mut self) {
        let at = self.link.poll_at().expect("a deadline");
        self.pass(at - self.now);
    }

    #[track_caller]
    pub fn next(&mut self) -> Output {
        self.outputs.pop_front().expect("an output")
    }

    #[track_caller]
    pub fn expect(&mut self, output: Output) {
        assert_eq!(self.next(), output);
    }

    /// The next output must be this frame.
    #[track_caller]
    pub fn expect_packet(&mut self, protocol: u16, code: u8, id: u8, data: &[u8]) {
        let expected = packet(protocol, code, id, data);
        let output = self.next();
        let Some(frame) = ppp_of(&output) else {
            panic!("{output:?}")
        };
        assert_eq!(frame, expected, "got {}", describe_ppp(frame));
    }

    /// The next output must be a frame of this protocol and code; gives its identifier and data.
    #[track_caller]
    pub fn expect_kind(&mut self, protocol: u16, code: u8) -> (u8, Vec<u8>) {
        let output = self.next();
        let Some(frame) = ppp_of(&output) else {
            panic!("{output:?}")
        };
        let got = (u16::from_be_bytes([frame[0], frame[1]]), frame[2]);
        assert_eq!(got, (protocol, code), "got {}", describe_ppp(frame));
        (frame[3], frame[6..].to_vec())
    }

    /// Next come two Terminate-Requests, which stay without an answer, then a PADT with a text and the end.
    #[track_caller]
    pub fn expect_goodbyes(&mut self, text: &str, cause: Cause) {
        self.expect_kind(LCP, 5);
        self.pass(Duration::from_secs(6));
        self.expect_kind(LCP, 5);
        self.expect(padt(text));
        self.expect(Output::Closed(cause));
    }

    /// The next output must be an IPv6 packet, whose octets it gives.
    #[track_caller]
    pub fn expect_ipv6(&mut self) -> Vec<u8> {
        let output = self.next();
        match ppp_of(&output) {
            Some([0x00, 0x57, packet @ ..]) => packet.to_vec(),
            _ => panic!("{output:?}"),
        }
    }

    #[track_caller]
    pub fn expect_silence(&mut self) {
        assert!(self.outputs.is_empty(), "{:?}", self.outputs);
    }

    /// Puts outputs back that a test has taken by itself.
    pub fn push(&mut self, outputs: Vec<Output>) {
        self.outputs.extend(outputs);
    }

    pub fn take_outputs(&mut self) -> Vec<Output> {
        self.outputs.drain(..).collect()
    }

    /// LCP until it is open, with the given authentication option expected.
    #[track_caller]
    pub fn open_lcp(&mut self) {
        let (id, options) = self.expect_kind(LCP, 1);
        self.send(LCP, 2, id, &options);
        self.send(LCP, 1, 1, &home_lcp());
        self.expect_packet(LCP, 2, 1, &home_lcp());
    }

    /// LCP and CHAP; gives the attempt's number.
    #[track_caller]
    pub fn answer_challenge(&mut self) -> u8 {
        let (id, _) = self.expect_kind(CHAP, 1);
        self.send(CHAP, 2, id, &[&[16][..], &[0x22; 16], b"alice"].concat());
        match self.next() {
            Output::Authenticate(request) => {
                assert_eq!(request.username, b"alice");
                request.attempt
            }
            other => panic!("{other:?}"),
        }
    }

    /// Everything up to the network phase.
    #[track_caller]
    pub fn authenticate(&mut self, grant: Grant) {
        self.open_lcp();
        let attempt = self.answer_challenge();
        self.command(Command::Auth {
            attempt,
            reply: accept(grant),
        });
        self.expect_kind(CHAP, 3);
    }

    /// IPCP from the gateway's request to Up.
    #[track_caller]
    pub fn open_ipcp(&mut self) {
        let (id, options) = self.expect_kind(IPCP, 1);
        self.send(IPCP, 2, id, &options);
        self.send(IPCP, 1, 7, &home_ipcp());
        self.expect(Output::Install(Family::Ipv4));
        self.command(Command::Installed(Family::Ipv4));
        self.expect_packet(IPCP, 2, 7, &home_ipcp());
        self.expect(Output::Up(Family::Ipv4));
    }

    /// IPV6CP from the gateway's request until it is open, and its rules are wanted.
    #[track_caller]
    pub fn negotiate_ipv6cp(&mut self) {
        let (id, options) = self.expect_kind(IPV6CP, 1);
        assert_eq!(options, [1, 10, 0, 0, 0, 0, 0, 0, 0x12, 0x34]);
        self.send(IPV6CP, 2, id, &options);
        self.send(IPV6CP, 1, 8, &home_ipv6cp());
        self.expect_packet(IPV6CP, 2, 8, &home_ipv6cp());
        self.expect(Output::Install(Family::Ipv6));
    }

    /// IPV6CP from the gateway's request to Up; gives the first Router Advertisement.
    #[track_caller]
    pub fn open_ipv6cp(&mut self) -> RouterAdvertisement {
        self.negotiate_ipv6cp();
        self.command(Command::Installed(Family::Ipv6));
        let (_, first) = self.expect_advertisement();
        self.expect(Output::Up(Family::Ipv6));
        first
    }

    /// The next output must be a Router Advertisement; gives its packet, too.
    #[track_caller]
    pub fn expect_advertisement(&mut self) -> (nd::Packet, RouterAdvertisement) {
        let packet = nd::Packet::parse(&self.expect_ipv6()).unwrap();
        match &packet.message {
            nd::Message::RouterAdvertisement(ra) => (packet.clone(), ra.clone()),
            _ => panic!("{packet:?}"),
        }
    }

    /// A line with both families up.
    #[track_caller]
    pub fn open() -> Self {
        Self::open_with(SessionConfig::default())
    }

    #[track_caller]
    pub fn open_with(config: SessionConfig) -> Self {
        let mut line = Self::with(config);
        line.authenticate(grant());
        // The requests of both NCPs are under way: bring them into the order of the helpers.
        let second = line.outputs.pop_back().unwrap();
        line.open_ipcp();
        line.outputs.push_back(second);
        line.open_ipv6cp();
        line.expect_silence();
        line
    }
}

pub fn home_lcp() -> Vec<u8> {
    [&[1, 4, 0x05, 0xd4, 5, 6][..], &HOME_MAGIC].concat()
}

pub fn home_ipcp() -> Vec<u8> {
    vec![3, 6, 100, 64, 0, 7]
}

pub fn home_ipv6cp() -> Vec<u8> {
    [&[1, 10][..], &HOME_IID].concat()
}
