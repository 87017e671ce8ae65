//! What must be true of the gateway: at each step, while everybody is online, and when everybody has left.

use super::{Gateway, PORT};
use crate::check::{left, left_in_store, released, unbalanced};
use crate::holdings::addresses;
use crate::internet::{INTERNET, TRAFFIC_PORT, datagram_of, reply_to};
use crate::user_plane::UserPlane;
use control::ControlPlane;
use control::plane::{Held, StoredSession};
use control::topology::Seid;
use core::time::Duration;
use cpe::{Family, Label, Party, Received, Stamp, State};
use ipnet::IpNet;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::net::IpAddr;

/// Tells our packets from those of another run.
const RUN: u64 = 43;

/// What the checks remember.
#[derive(Default)]
pub(super) struct Checks {
    /// Sessions whose subscriber was let use an address.
    released: BTreeSet<Seid>,
    /// The last session in each tunnel.
    tunnels: BTreeMap<u32, Seid>,
    /// How often the control plane did something since its sessions were compared with each other.
    unseen: usize,
    /// Packets that came to the internet.
    pub internet: Vec<Vec<u8>>,
    /// Packets that were sent to it.
    sent: u64,
}

/// A home that is online, with what it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connected {
    home: usize,
    session_id: Option<u16>,
    addresses: [Option<IpAddr>; 2],
}

/// Addresses and prefixes of sessions, by PPPoE session id.
type ById = BTreeMap<u16, BTreeSet<IpNet>>;

impl Gateway {
    /// A packet that lets a subscriber send leaves the control plane: the store must have the session, with the address.
    pub(super) fn check_release(&mut self, bytes: &[u8]) {
        let Some((teid, net)) = released(bytes) else {
            return;
        };
        match self.stored(teid, net) {
            Some(seid) => drop(self.checks.released.insert(seid)),
            None => self.wrong(format!("{net} is let go of before the store has it")),
        }
    }

    /// The session in a tunnel, if the store has it with this address.
    fn stored(&mut self, teid: u32, net: IpNet) -> Option<Seid> {
        let seid = match self.checks.tunnels.get(&teid) {
            Some(seid) if self.disk.live.contains_key(&StoredSession::key(*seid)) => *seid,
            _ => {
                let mut held = self.control.as_ref()?.held();
                held.find(|held| held.teid == teid)?.seid
            }
        };
        self.checks.tunnels.insert(teid, seid);
        let key = StoredSession::key(seid);
        let value = self.disk.live.get(&key)?;
        let session = StoredSession::read(&key, value)?;
        let delegated = StoredSession::delegated(value).into_iter().map(IpNet::from);
        let mut own = addresses(session.ipv4, session.ipv6).chain(delegated);
        own.any(|own| own == net).then_some(seid)
    }

    /// Compares the sessions with each other, every so often that it costs little.
    pub(super) fn check_step(&mut self) {
        let Some(control) = &self.control else {
            return;
        };
        self.checks.unseen += 1;
        if self.checks.unseen > control.session_count() {
            self.checks.unseen = 0;
            let found = allocated_twice(control);
            found.into_iter().for_each(|what| self.wrong(what));
        }
    }

    /// The homes that are online.
    pub fn connected(&self) -> Vec<Connected> {
        let homes = 0..self.houses.len();
        let online = homes.filter(|home| self.houses[*home].home.state() == State::Online);
        online.map(|home| self.connection(home)).collect()
    }

    fn connection(&self, home: usize) -> Connected {
        let house = &self.houses[home].home;
        Connected {
            home,
            session_id: house.session_id(),
            addresses: [house.ipv4().map(IpAddr::V4), house.ipv6().map(IpAddr::V6)],
        }
    }

    /// Sessions that there were go on.
    ///
    /// # Errors
    /// One that does not.
    pub fn check_go_on(&self, before: &[Connected]) -> Result<(), String> {
        let mut changed = before
            .iter()
            .map(|was| (was, self.connection(was.home)))
            .filter(|(was, is)| *was != is);
        match changed.next() {
            Some((was, is)) => Err(format!("a session did not go on: {was:?} is {is:?}")),
            None => Ok(()),
        }
    }

    /// Waits until the planes have a session of each home and no other, and checks that everybody agrees on it, and hears and is heard.
    ///
    /// # Errors
    /// What was found wrong.
    pub fn check_online(&mut self, patience: Duration) -> Result<(), String> {
        let homes = self.houses.len();
        let limit = self.now + patience;
        while self.sessions() != [homes; 2] || self.online(0..homes) != homes {
            if self.now > limit {
                let online = self.online(0..homes);
                let sessions = self.sessions();
                return Err(format!(
                    "{online} of {homes} homes are online, and the planes have {sessions:?} sessions"
                ));
            }
            self.pass(Duration::from_secs(1))?;
        }
        let control = self.control.iter().map(ControlPlane::ledger);
        let ledgers = control.chain(self.up.iter().map(UserPlane::ledger));
        ledgers.into_iter().try_for_each(|l| unbalanced(&l))?;
        self.check_agreement()?;
        (0..homes).try_for_each(|home| self.talk(home))
    }

    /// Sessions of the control plane and of the user plane's workers.
    fn sessions(&self) -> [usize; 2] {
        let control = self.control.as_ref().map_or(0, ControlPlane::session_count);
        let workers = self.up.iter().map(|up| up.workers.entries().count());
        [control, workers.sum()]
    }

    /// Both planes and all homes know the same of each session.
    fn check_agreement(&self) -> Result<(), String> {
        let held = self.control.iter().flat_map(ControlPlane::held);
        let by_control: ById = held.map(|held| (held.pppoe_id, nets(&held))).collect();
        let entries = self.up.iter().flat_map(|up| up.workers.entries());
        let by_user_plane: ById = entries
            .map(|(entry, _)| {
                let nets = dataplane::host_routes(entry).collect();
                (entry.pppoe_session_id, nets)
            })
            .collect();
        if by_control != by_user_plane {
            let differ = |id: &&u16| by_control.get(*id) != by_user_plane.get(*id);
            let id = by_control.keys().chain(by_user_plane.keys()).find(differ);
            return Err(format!("the planes know otherwise of session {id:?}"));
        }
        let own = |Connected { session_id, .. }: &Connected| by_control.get(&(*session_id)?);
        let agrees = |home: &Connected| {
            let has = |address: &IpAddr| own(home)?.iter().find(|net| net.contains(address));
            let mut addresses = home.addresses.iter();
            addresses.all(|address| address.as_ref().and_then(has).is_some())
        };
        match self.connected().iter().find(|home| !agrees(home)) {
            Some(home) => Err(format!("the planes know otherwise of {home:?}")),
            None => Ok(()),
        }
    }

    /// A home sends a packet to the internet in each family, and hears the answer.
    fn talk(&mut self, home: usize) -> Result<(), String> {
        Family::ALL
            .into_iter()
            .try_for_each(|family| self.ask_and_hear(home, family))
            .map_err(|why| format!("home{home}: {why}"))
    }

    fn ask_and_hear(&mut self, home: usize, family: Family) -> Result<(), String> {
        self.checks.sent += 1;
        let question = Label {
            run: RUN,
            from: Party::Home(home as u32),
            to: Party::Internet,
            family,
            sequence: self.checks.sent,
            stamp: Stamp::default(),
        };
        let answer = Label {
            from: question.to,
            to: question.from,
            ..question
        };
        let mut payload = Vec::new();
        question.emit(Label::MIN_SIZE, &mut payload);
        let (to, port) = (INTERNET[family as usize], TRAFFIC_PORT);
        let asked = self.houses[home].home.datagram(to, port, port, &payload);
        let frame = asked.ok_or(format!("it has no address of {family:?}"))?;
        let source = self.reach_internet(&frame, &question)?;
        if self.connection(home).addresses[family as usize] != Some(source) {
            return Err(format!("it was heard from {source}"));
        }
        self.reach_home(home, &reply_to(source, &answer), &answer)
    }

    /// A frame of a home comes to the internet as this packet. Returns its source.
    fn reach_internet(&mut self, frame: &[u8], label: &Label) -> Result<IpAddr, String> {
        let up = self.up.as_mut().ok_or("there is no user plane")?;
        if let Some(why) = up.on_frame(PORT, frame) {
            return Err(format!("{label:?} was dropped: {why}"));
        }
        self.drain_user_plane();
        let packet = self.checks.internet.pop();
        let heard = packet.as_deref().and_then(datagram_of);
        let (source, payload) = heard.ok_or(format!("{label:?} was not heard"))?;
        match Label::parse(&payload).as_ref() == Some(label) {
            true => Ok(source),
            false => Err(format!("{label:?} was heard as another packet")),
        }
    }

    /// A packet of the internet comes to the home that it is for.
    fn reach_home(&mut self, home: usize, packet: &[u8], label: &Label) -> Result<(), String> {
        let up = self.up.as_mut().ok_or("there is no user plane")?;
        if !up.on_packet(packet) {
            return Err(format!("{label:?} has no way back"));
        }
        self.drain_user_plane();
        let (to, frame) = self.frames.pop_front().ok_or("no frame came back")?;
        if to != home {
            return Err(format!("{label:?} came to home{to}"));
        }
        match self.houses[home].home.handle_frame(self.now, &frame) {
            Received::Datagram(heard) if Label::parse(heard.payload).as_ref() == Some(label) => {
                Ok(())
            }
            other => Err(format!("{label:?} came back as {other:?}")),
        }
    }

    /// Everybody has left, and every record was acknowledged: nothing may be left of the sessions, and each has its Start and its Stop;
    /// with `exact`, at one server alone.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check_end(&self, exact: bool) -> Result<(), String> {
        let control = self.control.iter().map(ControlPlane::ledger);
        let ledgers = control.chain(self.up.iter().map(UserPlane::ledger));
        let mut found: Vec<String> = ledgers.flat_map(|ledger| left(&ledger)).collect();
        found.extend(left_in_store(&self.disk.live));
        found.extend(self.checker.unbalanced(exact));
        let closed: HashSet<u64> = self.checker.carried().map(|(seid, _)| seid).collect();
        let mut released = self.checks.released.iter();
        let lost = released.find(|seid| !closed.contains(&seid.0));
        found.extend(lost.map(|seid| format!("no Stop of session {seid}, which was online")));
        match found.into_iter().next() {
            Some(what) => Err(what),
            None => Ok(()),
        }
    }
}

/// Addresses of a session.
fn nets(held: &Held<'_>) -> BTreeSet<IpNet> {
    addresses(held.ipv4, held.ipv6).collect()
}

/// An address, a prefix or a PPPoE session id that two sessions have.
fn allocated_twice(control: &ControlPlane) -> Option<String> {
    let (mut ids, mut known) = (HashSet::new(), HashSet::new());
    control.held().find_map(|held| {
        let seid = held.seid;
        if !ids.insert(held.pppoe_id) {
            let id = held.pppoe_id;
            return Some(format!("PPPoE session id {id} was given twice, to {seid}"));
        }
        let twice = nets(&held).into_iter().find(|net| !known.insert(*net));
        twice.map(|net| format!("{net} was given twice, to {seid}"))
    })
}
