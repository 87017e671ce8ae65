//! Time passes, and everything that was said is carried to whom it is for.
use super::{CP, OTHER, PORT, UP, World, at};
use control::store::Record;
use control::{Input, Output};
use core::time::Duration;
use cpe::Home;
use pfcp::Event;
use pfcp::bng::DecodedRules;
use policy::Access;
use wire::eth::{Frame, PPPOE_DISCOVERY};
use wire::pfcp::Message;
use wire::{gtpu, nsh};

impl World {
    /// Lets time pass, in order of what is due.
    pub fn run(&mut self, span: Duration) {
        let end = self.now + span;
        loop {
            self.settle();
            let homes = self.homes.iter().filter_map(Home::poll_at);
            let due = homes
                .chain(self.plane.poll_at())
                .chain(self.up.node.poll_at())
                .min();
            let Some(due) = due.filter(|due| *due <= end) else {
                break;
            };
            self.now = self.now.max(due);
            let now = self.moment();
            self.plane.on_timeout(now);
            self.up.node.on_timeout(self.now);
            self.homes
                .iter_mut()
                .for_each(|home| home.on_timeout(self.now));
        }
        self.now = end;
    }

    /// The disk does not answer: what is written from now on is lost with the control plane.
    pub fn stall_disk(&mut self) {
        (self.on_disk, self.disk_stalls) = (Some(self.store.clone()), true);
    }

    /// The disk answers again.
    pub fn disk_recovers(&mut self) {
        (self.on_disk, self.disk_stalls) = (None, false);
        let now = self.moment();
        self.plane.handle(now, Input::Durable(self.batches));
        self.settle();
    }

    /// Carries everything to where it goes until nobody has anything to say.
    pub fn settle(&mut self) {
        while self.settle_homes() | self.settle_control() | self.settle_user() | self.verify() {}
    }

    fn settle_homes(&mut self) -> bool {
        for home in &mut self.homes {
            while let Some(output) = home.poll_output() {
                if let cpe::Output::Frame(frame) = output {
                    self.frames.push_back(frame);
                }
            }
        }
        let any = !self.frames.is_empty();
        while let Some(frame) = self.frames.pop_front() {
            self.redirect(&frame);
            let is_discovery = Frame::parse(&frame).unwrap().header.ethertype == PPPOE_DISCOVERY;
            self.asked_for.extend(is_discovery.then_some(frame));
        }
        any
    }

    /// What the packet path does with a control packet: the session's tunnel if it belongs to one, else the default.
    pub fn redirect(&mut self, bytes: &[u8]) {
        let frame = Frame::parse(bytes).unwrap();
        let packet = wire::pppoe::Packet::parse(frame.payload).unwrap();
        // whose session is the latest sends most
        let own = self.up.decoded().rev().find_map(|decoded| match decoded {
            DecodedRules::Session(s)
                if packet.session_id != 0 && s.access == Access::Pppoe(packet.session_id) =>
            {
                Some(s.tunnel.uplink)
            }
            DecodedRules::Default(d) if packet.session_id == 0 => Some(d.tunnel.uplink),
            _ => None,
        });
        let Some(tunnel) = own else {
            return;
        };
        let mut inner = bytes.to_vec();
        if packet.session_id == 0 {
            inner.clear();
            nsh::Packet {
                logical_port: PORT,
                frame: bytes,
            }
            .emit(&mut inner)
            .unwrap();
        }
        self.tunnel(tunnel.teid, &inner);
    }

    /// A home begins LCP anew: it has to prove itself again, and its address families go and come again.
    pub fn begin_ppp_anew(&mut self, session: usize) {
        let rules = &self.up.subscribers()[session];
        let Access::Pppoe(session_id) = rules.access;
        let header = wire::eth::Header {
            destination: rules.circuit.gateway_mac,
            source: rules.circuit.mac,
            tags: rules.circuit.tags,
            ethertype: wire::eth::PPPOE_SESSION,
        };
        let mut frame = Vec::new();
        header.emit(&mut frame);
        let request = [0xc0, 0x21, wire::ppp::CONFIGURE_REQUEST, 99, 0, 4];
        let packet = wire::pppoe::Packet {
            code: 0,
            session_id,
            payload: &request,
        };
        packet.emit(&mut frame);
        self.redirect(&frame);
        self.settle();
    }

    /// A packet of a tunnel to the control plane.
    pub fn tunnel(&mut self, teid: u32, payload: &[u8]) {
        if self.cut {
            return;
        }
        let mut bytes = Vec::new();
        gtpu::emit_gpdu(teid, payload, &mut bytes).unwrap();
        let (now, from) = (self.moment(), at(UP, gtpu::PORT));
        self.plane.handle(
            now,
            Input::Gtpu {
                from,
                bytes: &bytes,
            },
        );
    }

    /// The helper threads do what waits, unless they stall.
    fn verify(&mut self) -> bool {
        if self.verifiers_stall || self.to_verify.is_empty() {
            return false;
        }
        for (ticket, hash, password) in std::mem::take(&mut self.to_verify) {
            let hash = str::from_utf8(hash.expose()).unwrap();
            let is_right = config::password::verify(hash, password.expose());
            let now = self.moment();
            self.plane
                .handle(now, Input::PasswordVerified { ticket, is_right });
        }
        true
    }

    fn settle_control(&mut self) -> bool {
        let mut any = false;
        while let Some(output) = self.plane.poll_output() {
            any = true;
            self.said += u64::from(!matches!(output, Output::HistoryBounds(_)));
            match output {
                Output::Pfcp { bytes, .. } if bytes[1] == 52 && self.held_up.is_some() => {
                    self.held_up
                        .iter_mut()
                        .for_each(|held| held.push(bytes.clone()));
                }
                Output::Pfcp { to, bytes } if to == at(OTHER, 8805) => {
                    self.to_other.push_back(bytes);
                }
                Output::Pfcp { to, bytes } if !self.cut => {
                    self.told.push(to);
                    self.up.node.handle_datagram(self.now, at(CP, 8805), &bytes);
                    if bytes[1] == 50 {
                        self.establishments.push(bytes);
                    }
                }
                Output::Gtpu { bytes, .. } if !self.cut => self.deliver(&bytes),
                Output::Store(records) => self.write(records),
                Output::Radius { socket, to, bytes } => {
                    self.asked.push((self.now, to, bytes[0]));
                    if let Some(bytes) = self.radius.serve(to, socket, &bytes) {
                        let now = self.moment();
                        let input = Input::Radius {
                            socket,
                            from: to,
                            bytes: &bytes,
                        };
                        self.plane.handle(now, input);
                    }
                }
                Output::History { number, block } => self.keep(number, block),
                Output::HistoryBounds(bounds) => self.history_bounds = Some(bounds),
                Output::VerifyPassword {
                    ticket,
                    hash,
                    password,
                    ..
                } => self.to_verify.push_back((ticket, hash, password)),
                Output::Answer { answer, .. } => self.answers.push_back(answer),
                Output::DynamicAuthorization { bytes, .. } => self.obeyed.push_back(bytes),
                Output::DynamicPort(port) => self.dynamic_port = port,
                Output::RadiusSockets(wanted) => self.radius_sockets = wanted,
                Output::RadiusServers(servers) => self.radius_servers = servers,
                Output::RadiusSend { connection, bytes } => {
                    let (to, number) = (connection.connection.server, connection.connection.number);
                    self.asked.push((self.now, to, bytes[0]));
                    if let Some(bytes) = self.radius.serve(to, number, &bytes) {
                        let bytes = &bytes;
                        let input = Input::RadiusPacket { connection, bytes };
                        self.plane.handle(self.moment(), input);
                    }
                }
                _ => {}
            }
        }
        any
    }

    /// The history takes a block, unless it has it.
    fn keep(&mut self, number: u64, block: Vec<u8>) {
        if self.history_stalls {
            return;
        }
        if number > self.last_block() {
            self.history.push((number, block));
        }
        self.plane.handle(self.moment(), Input::Kept(number));
    }

    pub(super) fn last_block(&self) -> u64 {
        self.history.last().map_or(0, |(number, _)| *number)
    }

    fn write(&mut self, records: Vec<Record>) {
        for record in records {
            match record.value {
                Some(value) => self.store.insert(record.key, value),
                None => self.store.remove(&record.key),
            };
        }
        self.batches += 1;
        if !self.disk_stalls {
            let now = self.moment();
            self.plane.handle(now, Input::Durable(self.batches));
        }
    }

    /// A packet of a tunnel to the user plane, which puts the frame on the access network.
    fn deliver(&mut self, bytes: &[u8]) {
        let gtpu::Packet::Gpdu { teid, payload } = gtpu::Packet::parse(bytes).unwrap() else {
            return;
        };
        let is_default = self.up.decoded().any(
            |f| matches!(f, DecodedRules::Default(d) if d.tunnel.downlink.is_some_and(|t| t.teid == teid)),
        );
        let frame = if is_default {
            nsh::Packet::parse(payload).unwrap().frame
        } else {
            payload
        };
        self.heard.push(frame.to_vec());
        let destination = Frame::parse(frame).unwrap().header.destination;
        for home in self
            .homes
            .iter_mut()
            .filter(|h| h.config().mac == destination)
        {
            home.handle_frame(self.now, frame);
        }
    }

    fn settle_user(&mut self) -> bool {
        let mut any = false;
        while let Some(output) = self.up.node.poll_output() {
            any = true;
            match output {
                pfcp::Output::Transmit { bytes, .. } if !self.cut => {
                    let (now, from) = (self.moment(), at(UP, 8805));
                    self.plane.handle(
                        now,
                        Input::Pfcp {
                            from,
                            bytes: &bytes,
                        },
                    );
                }
                pfcp::Output::Event(Event::Request {
                    message: Message::SessionDeletionRequest(_),
                    ..
                }) if self.up.keeps_all => self.up.kept += 1,
                pfcp::Output::Event(Event::Request {
                    message: Message::SessionModificationRequest(_),
                    seid,
                    ..
                }) if self.up.silent_about_nets && self.up.is_default(seid) => {}
                pfcp::Output::Event(Event::Request {
                    message: message @ Message::SessionModificationRequest(_),
                    seid,
                    ..
                }) if self.up.silent_about_changes && !self.up.is_default(seid) => {
                    self.up.serve(seid, message);
                }
                pfcp::Output::Event(Event::Request { id, seid, message })
                    if self.up.late.is_some() && !self.up.is_default(seid) =>
                {
                    let late = self.up.late.as_mut().expect("it is there");
                    late.push((id, seid, message));
                }
                pfcp::Output::Event(Event::Request { id, seid, message }) => {
                    let (cp_seid, response) = self.up.serve(seid, message);
                    self.up.node.respond(id, cp_seid, response);
                }
                pfcp::Output::Event(Event::Response { message, .. }) => {
                    self.up.told.extend(message.cause())
                }
                _ => {}
            }
        }
        any
    }
}
