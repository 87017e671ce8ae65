//! What happens to control plane and user plane, and what other parties say.
use super::{CP, OTHER, STARTED, UserPlane, World, at, start};
use control::{Input, Output};
use pfcp::{Config, Event, Node, Role};
use wire::pfcp::{Cause, Message, NodeId, SessionReportRequest, SluiceFeatures};

impl World {
    /// The control plane dies and comes back with what its store holds.
    pub fn restart_control_plane(&mut self) {
        self.batches = 0;
        if let Some(on_disk) = self.on_disk.take() {
            (self.store, self.disk_stalls) = (on_disk, false);
        }
        self.lives += 1;
        let seed = self.lives as u8;
        let last = self.last_block();
        self.plane = start(
            &self.configuration,
            &self.store,
            self.moment(),
            seed,
            last,
            self.boot,
        );
        self.settle();
    }

    /// The user plane dies and comes back knowing nothing.
    pub fn restart_user_plane(&mut self) {
        self.lives += 1;
        self.up = UserPlane::new(STARTED + self.lives);
        self.settle();
    }

    /// From now on, the user plane lets requests about sessions wait.
    pub fn be_late(&mut self) {
        self.up.late = Some(Vec::new());
    }

    /// The user plane answers what waits, and waits no more.
    pub fn answer_late(&mut self) {
        for (id, seid, message) in self.up.late.take().unwrap_or_default() {
            let (cp_seid, response) = self.up.serve(seid, message);
            self.up.node.respond(id, cp_seid, response);
        }
        self.settle();
    }

    /// The user plane answers what waits, and lets deletions wait on.
    pub fn answer_late_but_deletions(&mut self) {
        let late = self.up.late.take().unwrap_or_default().into_iter();
        let (deletions, others) =
            late.partition(|(_, _, message)| matches!(message, Message::SessionDeletionRequest(_)));
        self.up.late = Some(others);
        self.answer_late();
        self.up.late = Some(deletions);
    }

    /// An earlier user plane takes the place of the one that was there: it has these features, and says neither its lanes nor which
    /// settings it knows.
    pub fn with_earlier_user_plane(&mut self, features: SluiceFeatures) {
        self.lives += 1;
        self.up = UserPlane::of_before(STARTED + self.lives, features);
        self.settle();
    }

    /// A user plane that watches subscribers takes the place of the one that was there.
    pub fn with_watching_user_plane(&mut self) {
        self.lives += 1;
        self.up = UserPlane::watching(STARTED + self.lives);
        self.settle();
    }

    /// The user plane reports so many octets of every session, of its own accord.
    pub fn user_plane_reports(&mut self, octets: u64) {
        self.up.report(self.now, octets);
        self.settle();
    }

    /// The user plane repeats a report that it made before.
    pub fn user_plane_repeats(&mut self, report: (u64, SessionReportRequest)) {
        self.up.report_again(self.now, report);
        self.settle();
    }

    /// The user plane asks for an association.
    pub fn user_plane_calls(&mut self) {
        self.up.node.add_peer(self.now, at(CP, 8805));
        self.up.node.on_timeout(self.now);
        self.settle();
    }

    /// Datagrams of the control plane that were on their way for long reach the user plane.
    pub fn arrive_late(&mut self, datagrams: &[Vec<u8>]) {
        for bytes in datagrams {
            let node = &mut self.up.node;
            node.handle_datagram(self.now, at(CP, 8805), bytes);
        }
        self.settle();
    }

    /// Somebody at another address asks for an association: what it hears.
    pub fn call_as(&mut self, address: &str, name: &str) -> Vec<Option<Cause>> {
        let mut caller = Node::new(Config::new(Role::User, NodeId::Fqdn(name.into()), STARTED));
        caller.add_peer(self.now, at(CP, 8805));
        caller.on_timeout(self.now);
        let from = at(address, 8805);
        while let Some(pfcp::Output::Transmit { bytes, .. }) = caller.poll_output() {
            let input = Input::Pfcp {
                from,
                bytes: &bytes,
            };
            self.plane.handle(self.moment(), input);
        }
        let mut heard = Vec::new();
        while let Some(Output::Pfcp { to, bytes }) = self.plane.poll_output() {
            assert_eq!(to, from);
            heard.push(wire::pfcp::parse(&bytes).unwrap().packet.message.cause());
        }
        heard
    }

    /// Another user plane says what it has to say; what it hears.
    pub fn settle_other(&mut self, other: &mut Node) -> Vec<Event> {
        let mut heard = Vec::new();
        loop {
            while let Some(output) = other.poll_output() {
                match output {
                    pfcp::Output::Transmit { bytes, .. } => {
                        let (from, bytes) = (at(OTHER, 8805), &*bytes);
                        let input = Input::Pfcp { from, bytes };
                        self.plane.handle(self.moment(), input);
                    }
                    pfcp::Output::Event(event) => heard.push(event),
                }
            }
            self.settle();
            if self.to_other.is_empty() {
                return heard;
            }
            for bytes in self.to_other.drain(..) {
                other.handle_datagram(self.now, at(CP, 8805), &bytes);
            }
        }
    }
}
