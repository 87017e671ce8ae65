//! Discovery and links behind one Ethernet port, as the control plane would put them together, with every frame and
//! every wish of a session written down. AAA and the user plane are whoever calls.
use policy::Access;
use session::discovery::{Answer, Discovery, DiscoveryConfig};
use session::ladder::{Direction, Ladder};
use session::*;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use wire::eth::{Frame, Header, MacAddr, PPPOE_DISCOVERY, PPPOE_SESSION};

/// A session that the next valid PADR gets.
pub struct Prepared {
    pub session_id: u16,
    pub config: SessionConfig,
    pub random: Random,
}

pub struct Server {
    pub mac: MacAddr,
    discovery: Discovery,
    prepared: VecDeque<Prepared>,
    current: Option<Link>,
    home: Option<Header>,
    /// What was sent: time and frame.
    pub sent: Vec<(Duration, Vec<u8>)>,
    pub ladder: Ladder,
    /// The attempt that AAA has to answer.
    pub attempt: Option<u8>,
    pub ups: Vec<Family>,
    pub closed: Vec<Cause>,
    pub wanted: Vec<Family>,
}

impl Server {
    pub fn new(
        mac: MacAddr,
        discovery: DiscoveryConfig,
        prepared: impl IntoIterator<Item = Prepared>,
    ) -> Self {
        Server {
            mac,
            discovery: Discovery::new(discovery),
            prepared: prepared.into_iter().collect(),
            current: None,
            home: None,
            sent: Vec::new(),
            ladder: Ladder::new(),
            attempt: None,
            ups: Vec::new(),
            closed: Vec::new(),
            wanted: Vec::new(),
        }
    }

    /// A frame from the subscriber.
    pub fn on_frame(&mut self, now: Duration, bytes: &[u8]) {
        self.advance(now);
        self.ladder.frame(now, Direction::FromHome, bytes);
        let frame = Frame::parse(bytes).unwrap();
        self.home = Some(frame.header);
        match frame.header.ethertype {
            PPPOE_DISCOVERY => self.on_discovery(now, &frame),
            PPPOE_SESSION => self.on_session(now, &frame),
            other => panic!("EtherType {other:#06x}"),
        }
    }

    fn on_discovery(&mut self, now: Duration, frame: &Frame<'_>) {
        let Header {
            source: mac, tags, ..
        } = frame.header;
        let circuit = Circuit {
            logical_port: (*b"access0").into(),
            tags,
            mac,
        };
        match self.discovery.on_frame(now, &circuit, frame.payload) {
            Answer::Ignore(Discarded(why)) => self.ladder.note(format_args!("ignored: {why}")),
            Answer::Offer(payload) | Answer::Reply(payload) => {
                self.send(now, PPPOE_DISCOVERY, &payload)
            }
            Answer::Admit(padr) => {
                let Prepared {
                    session_id,
                    config,
                    random,
                } = self.prepared.pop_front().expect("one more session");
                let pads = self.discovery.pads(&padr, session_id);
                self.send(now, PPPOE_DISCOVERY, &pads);
                let access = Access::Pppoe(session_id);
                let config = Arc::new(config);
                self.current = Some(Link::new(access, config, padr.max_payload, random, now));
                self.drain(now);
            }
            Answer::Terminate { .. } => self.on_session(now, frame),
        }
    }

    fn on_session(&mut self, now: Duration, frame: &Frame<'_>) {
        let Some(link) = &mut self.current else {
            return;
        };
        match link.on_frame(now, frame.header.ethertype, frame.payload) {
            Ok(()) => {}
            Err(NotTaken::Discarded(Discarded(why))) => {
                self.ladder.note(format_args!("discarded: {why}"));
            }
            Err(why) => panic!("{why:?}"),
        }
        self.drain(now);
    }

    /// A command for the session.
    pub fn command(&mut self, now: Duration, command: Command) {
        let Some(link) = &mut self.current else {
            return;
        };
        if let Err(Discarded(why)) = link.command(now, command) {
            self.ladder.note(format_args!("discarded: {why}"));
        }
        self.drain(now);
    }

    /// Is there no session any more, or one that is on its way out?
    pub fn is_terminating(&self) -> bool {
        self.current
            .as_ref()
            .is_none_or(|link| link.status().phase == Phase::Terminate)
    }

    /// Does what is due up to `now`.
    pub fn advance(&mut self, now: Duration) {
        while let Some(link) = &mut self.current
            && let Some(at) = link.poll_at().filter(|at| *at <= now)
        {
            link.on_timeout(at, Watch::Link);
            self.drain(at);
        }
    }

    fn drain(&mut self, now: Duration) {
        while let Some(link) = &mut self.current
            && let Some(output) = link.poll_output()
        {
            if !matches!(output, Output::Frame(_)) {
                self.ladder.note(format_args!("{output:?}"));
            }
            match output {
                Output::Frame(frame) => self.send(now, frame.ethertype, &frame.payload),
                Output::Authenticate(request) => self.attempt = Some(request.attempt),
                Output::Install(family) => self.wanted.push(family),
                Output::Up(family) => self.ups.push(family),
                Output::Down(_) => {}
                Output::Closed(cause) => {
                    self.closed.push(cause);
                    self.current = None;
                }
            }
        }
    }

    fn send(&mut self, now: Duration, ethertype: u16, payload: &[u8]) {
        let home = self.home.expect("somebody to send to");
        let mut frame = Vec::new();
        Header {
            destination: home.source,
            source: self.mac,
            tags: home.tags,
            ethertype,
        }
        .emit(&mut frame);
        frame.extend_from_slice(payload);
        self.ladder.frame(now, Direction::ToHome, &frame);
        self.sent.push((now, frame));
    }
}
