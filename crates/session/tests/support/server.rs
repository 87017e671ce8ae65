//! Discovery and sessions behind one Ethernet port, as the control plane would put them together, with every frame and
//! every wish of a session written down. AAA and the user plane are whoever calls.
use session::discovery::{Answer, Discovery, DiscoveryConfig, padt};
use session::ladder::{Direction, Ladder};
use session::*;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use wire::eth::{Frame, Header, MacAddr, PPPOE_DISCOVERY, PPPOE_SESSION};
use wire::pppoe;

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
    current: Option<(u16, Session)>,
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
            PPPOE_SESSION => {
                let packet = pppoe::Packet::parse(frame.payload).unwrap();
                self.expect_session(packet.session_id);
                self.input(now, Input::Ppp(packet.payload));
            }
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
            Answer::Reply(payload) => self.send(now, PPPOE_DISCOVERY, &payload),
            Answer::Admit(padr) => {
                let Prepared {
                    session_id,
                    config,
                    random,
                } = self.prepared.pop_front().expect("one more session");
                let pads = self.discovery.pads(&padr, session_id);
                self.send(now, PPPOE_DISCOVERY, &pads);
                let session = Session::new(Arc::new(config), padr.max_payload, random, now);
                self.current = Some((session_id, session));
                self.drain(now);
            }
            Answer::Terminate { session_id } => {
                self.expect_session(session_id);
                self.input(now, Input::Padt);
            }
        }
    }

    fn expect_session(&self, session_id: u16) {
        let current = self.current.as_ref().map(|(id, _)| *id);
        assert!(
            current.is_none_or(|id| id == session_id),
            "session {session_id} is not {current:?}"
        );
    }

    /// An input for the session.
    pub fn input(&mut self, now: Duration, input: Input<'_>) {
        let Some((_, session)) = &mut self.current else {
            return;
        };
        if let Err(Discarded(why)) = session.handle(now, input) {
            self.ladder.note(format_args!("discarded: {why}"));
        }
        self.drain(now);
    }

    /// Is there no session any more, or one that is on its way out?
    pub fn is_terminating(&self) -> bool {
        self.current
            .as_ref()
            .is_none_or(|(_, session)| session.phase() == Phase::Terminate)
    }

    /// Does what is due up to `now`.
    pub fn advance(&mut self, now: Duration) {
        while let Some((_, session)) = &mut self.current
            && let Some(at) = session.poll_at().filter(|at| *at <= now)
        {
            session.on_timeout(at);
            self.drain(at);
        }
    }

    fn drain(&mut self, now: Duration) {
        while let Some((session_id, session)) = &mut self.current
            && let Some(output) = session.poll_output()
        {
            let session_id = *session_id;
            if !matches!(output, Output::Ppp(_) | Output::Padt(_)) {
                self.ladder.note(format_args!("{output:?}"));
            }
            match output {
                Output::Ppp(payload) => {
                    let mut packet = Vec::new();
                    pppoe::Packet {
                        code: pppoe::SESSION,
                        session_id,
                        payload: &payload,
                    }
                    .emit(&mut packet);
                    self.send(now, PPPOE_SESSION, &packet);
                }
                Output::Padt(reason) => self.send(now, PPPOE_DISCOVERY, &padt(session_id, reason)),
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
