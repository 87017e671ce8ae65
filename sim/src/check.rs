//! What must be true after every step, when everything is calm, and when everybody has left.

use crate::access_network::{CHOOSY, Line, RESTLESS};
use crate::disk::Live;
use crate::holdings::{Holdings, addresses};
use crate::plan::HOMES;
use crate::user_plane::UserPlane;
use crate::world::{METRIC, World, fixed_address, fixed_prefix, further_prefix, routes};
use control::ControlPlane;
use control::counters::Counter;
use control::plane::StoredSession;
use core::time::Duration;
use cpe::{Family, Party, State};
use dataplane::SessionEntry;
use ipnet::{IpNet, Ipv6Net};
use northbound::Ledger;
use std::collections::BTreeMap;
use std::net::IpAddr;
use userplane::announcement::Announcement;
use wire::eth::{Frame, PPPOE_SESSION};
use wire::ppp::{self, Control};
use wire::{dhcpv6, gtpu, ipcp, ipv6, nd, pppoe, udp};

/// What the checks remember.
#[derive(Default)]
pub(crate) struct Checks {
    pub control_changed: bool,
    pub planes_changed: bool,
    /// How often each user plane was associated before strangers came.
    undisturbed: Option<Vec<u32>>,
    holdings: Holdings,
}

impl Checks {
    /// The session that a line has, or had last, with this PPPoE session id.
    pub fn session_on(&self, line: Line, pppoe_id: u16) -> Option<u64> {
        Some(self.holdings.session(line, pppoe_id)?.0)
    }

    /// A server accepts a home.
    pub fn accept(&mut self, now: Duration, home: usize) {
        self.holdings.takeovers.accept(now, home);
    }
}

impl World<'_> {
    pub(crate) fn check_step(&mut self) {
        if std::mem::take(&mut self.checks.control_changed) {
            let (now, holdings) = (self.now, &mut self.checks.holdings);
            let found = self
                .control
                .as_ref()
                .and_then(|control| holdings.look(now, control).err());
            found.into_iter().for_each(|what| self.wrong(what));
        }
        if std::mem::take(&mut self.checks.planes_changed) {
            let found = self.addresses_are_one_sessions().err();
            found.into_iter().for_each(|what| self.wrong(what));
        }
    }

    /// No two sessions of user planes have the same address. What only a user plane knows does not count: it was never let
    /// go of, its subscriber does not have the address, and the audit removes it, or the answer to its first report
    /// if the request that made it was on its way for so long that it came after the audit.
    fn addresses_are_one_sessions(&mut self) -> Result<(), String> {
        let planes = self.planes.iter_mut().flatten();
        let taken: Vec<IpNet> = planes.flat_map(|up| up.workers.taken.drain(..)).collect();
        for address in taken {
            let planes = self.planes.iter().enumerate();
            let owners: Vec<_> = planes
                .filter_map(|(n, up)| Some((n, up.as_ref()?.workers.owner(&address)?)))
                .filter(|(n, entry)| self.is_held(*n, entry))
                .collect();
            if owners.len() > 1 {
                return Err(format!("{address} is at two sessions: {owners:?}"));
            }
        }
        Ok(())
    }

    /// Whether the control plane knows a session of a user plane.
    fn is_held(&self, plane: usize, entry: &SessionEntry) -> bool {
        let line = Line {
            plane,
            port: entry.port.0,
            place: entry.peer_mac.0[5],
        };
        self.control.is_some() && self.checks.holdings.knows(line, entry.pppoe_session_id)
    }

    /// Whose address the control plane says this is; nobody says, it is taken to be whose it claims to be.
    pub(crate) fn owner(&self, address: IpAddr, claimed: Party) -> Option<Party> {
        let known = self.control.as_ref();
        match known.and_then(|_| self.checks.holdings.owner(address)) {
            Some(line) => Some(Party::Home(line?.home()? as u32)),
            None => Some(claimed),
        }
    }

    /// A home whose address RADIUS chooses comes online with no other one.
    pub(crate) fn check_address(&mut self, home: usize, address: IpAddr) {
        let is_right = match address {
            IpAddr::V4(address) => fixed_address(home).is_none_or(|fixed| fixed == address),
            IpAddr::V6(address) => fixed_prefix(home).is_none_or(|fixed| fixed.contains(&address)),
        };
        if self.houses[home].is_first() && !is_right {
            self.wrong(format!("home{home} is online with {address}"));
        }
    }

    /// Nothing was lost and nothing broke: an address is taken over at once.
    fn check_takeovers(&mut self) {
        let takeovers = &self.checks.holdings.takeovers;
        self.summary.takeovers = takeovers.done;
        self.summary.hurried = takeovers.hurried;
        let longest = takeovers.longest;
        if self.plan.is_smooth() && longest > AT_ONCE {
            self.wrong(format!("a fixed address was taken over after {longest:?}"));
        }
    }

    /// A packet that lets a subscriber send leaves the control plane: the store must have the session, with the address.
    pub(crate) fn check_release(&mut self, bytes: &[u8]) {
        if let Some((teid, released)) = released(bytes)
            && !self.is_stored(teid, released)
        {
            self.wrong(format!("{released} is let go of before the store has it"));
        }
    }

    fn is_stored(&self, teid: u32, released: IpNet) -> bool {
        let mut held = self.control.iter().flat_map(ControlPlane::held);
        let stored = held.find(|held| held.teid == teid).and_then(|held| {
            let key = StoredSession::key(held.seid);
            let value = self.disk.live.get(&key)?;
            let session = StoredSession::read(&key, value)?;
            let delegated = StoredSession::delegated(value).into_iter();
            let own = addresses(session.ipv4, session.ipv6);
            Some(
                own.chain(delegated.map(IpNet::from))
                    .any(|net| net == released),
            )
        });
        stored.unwrap_or(false)
    }

    fn associations(&self) -> Vec<u32> {
        let planes = self.planes.iter().flatten();
        planes.map(|up| up.associations).collect()
    }

    /// Strangers come, and have not disturbed any association yet.
    pub(crate) fn note_associations(&mut self) {
        let found = self.associations();
        self.checks.undisturbed.get_or_insert(found);
    }

    /// Strangers alone do not end an association, and none begins because of them.
    fn check_associations(&mut self) {
        let before = self.checks.undisturbed.take();
        let now = self.associations();
        if self.plan.has_only_strangers() && before.as_ref().is_some_and(|before| *before != now) {
            self.wrong(format!("associations were disturbed: {before:?} {now:?}"));
        }
    }

    /// What the planes hold.
    fn ledgers(&self) -> impl Iterator<Item = Ledger> {
        let control = self.control.iter().map(ControlPlane::ledger);
        control.chain(self.planes.iter().flatten().map(UserPlane::ledger))
    }

    /// Nothing has broken for a while, and there is less room than homes: all of the room is used.
    pub(crate) fn check_crowd(&mut self) {
        let (online, most) = (HOMES - self.offline().len(), self.plan.sessions as usize);
        if self.plan.is_crowded() {
            self.summary.crowded = 1;
            let held = self.control.iter().flat_map(ControlPlane::held).count();
            let count = |counter| {
                let control = self.control.as_ref();
                control.map_or(0, |control| control.counters().get(counter))
            };
            // A home that finds no address leaves again, and takes its place up in between.
            let few = count(Counter::Ipv4PoolExhausted) + count(Counter::Ipv6PoolExhausted) > 0;
            // Who finds the table full gets no PADO and asks again after a pause, so that a place may be free for a while.
            let least = if few { most * 3 / 4 } else { most - 3 };
            // One is never online for long, and a few are on their way in or out.
            if !(least..=most).contains(&held) || online < most * 3 / 4 {
                self.wrong(format!(
                    "{held} sessions are held and {online} homes are online, and there is room for {most}"
                ));
            }
        }
    }

    /// Nothing has broken for a while, and there is room: everybody is online with all that they want, and hears the internet.
    pub(crate) fn check_calm(&mut self) {
        self.check_associations();
        let found = self.unfinished_changes();
        found.into_iter().for_each(|what| self.wrong(what));
        let found = self.ledgers().find_map(|ledger| unbalanced(&ledger).err());
        found.into_iter().for_each(|what| self.wrong(what));
        let mut nets = BTreeMap::new();
        for (net, plane) in self.announced() {
            if let Some(other) = nets.insert(net, plane) {
                self.wrong(format!(
                    "{net} is announced by up{} and up{}",
                    other + 1,
                    plane + 1
                ));
            }
        }
        let without = self.without_document();
        if !without.is_empty() {
            self.wrong(format!(
                "user planes without their configuration: {without:?}"
            ));
        }
        let found = (0..HOMES)
            .filter(|home| ![RESTLESS, CHOOSY].contains(home))
            .find_map(|home| self.unserved(home));
        found.into_iter().for_each(|what| self.wrong(what));
        self.summary.lively = 1;
    }

    /// What a home lacks.
    fn unserved(&self, home: usize) -> Option<String> {
        let house = &self.houses[home];
        if house.home.state() != State::Online {
            return Some(format!(
                "home{home} is not online: {:?}",
                house.home.state()
            ));
        }
        if let Some(wrong) = self.wrong_route(home).or_else(|| self.wrong_prefix(home)) {
            return Some(format!("home{home} is online, and {wrong}"));
        }
        Family::ALL
            .into_iter()
            .filter(|family| house.wants(*family))
            .find_map(|family| {
                let Some(address) = house.address(family) else {
                    return Some(format!("home{home} is online without {family:?}"));
                };
                let holder = self.history.holder(address);
                if holder.and_then(Line::home) != Some(home) {
                    return Some(format!(
                        "home{home} has {address}, and the history says that {holder:?} has it"
                    ));
                }
                let heard = house.heard[family as usize];
                (heard == 0)
                    .then(|| format!("home{home} is online and hears nothing in {family:?}"))
            })
    }

    /// What a home that asks for a delegated prefix has in place of that of its session.
    fn wrong_prefix(&self, home: usize) -> Option<String> {
        let house = &self.houses[home];
        if !house.wants_prefix() {
            return None;
        }
        let mut held = self.control.iter().flat_map(ControlPlane::held);
        let held = held.find(|held| {
            let line = Line::of_circuit(held.user_plane.0.into(), held.circuit);
            line == Some(house.line) && Some(held.pppoe_id) == house.home.session_id()
        })?;
        let theirs: Vec<Ipv6Net> = held.bindings.delegated().collect();
        let own = house.home.delegated();
        (own != theirs).then(|| format!("has {own:?} by DHCPv6, and its session {theirs:?}"))
    }

    /// A network behind a home's router that is not announced, or that the history does not know, although the home has the
    /// address that came with it.
    fn wrong_route(&self, home: usize) -> Option<String> {
        let house = &self.houses[home];
        let address = house.address(Family::V4)?;
        let own = address == IpAddr::from(fixed_address(home)?);
        let routes = routes(home).into_iter();
        let routes = routes.map(|net| Announcement::new(net, Some(METRIC)));
        let further = further_prefix(home).map(|prefix| IpNet::from(prefix).into());
        let mut open = routes.chain(further).filter(|wanted| match wanted.net {
            IpNet::V4(_) => own,
            IpNet::V6(_) => own && house.wants(Family::V6),
        });
        open.find_map(|wanted| {
            let net = wanted.net;
            let holder = self.history.holder(net.broadcast());
            let mut planes = self.planes.iter().flatten();
            if !planes.any(|up| up.nets.contains(&wanted)) {
                Some(format!("{wanted} is not announced"))
            } else if holder.and_then(Line::home) != Some(home) {
                Some(format!("the history says that {holder:?} has {net}"))
            } else {
                None
            }
        })
    }

    /// Everybody has left: nothing may be left of them.
    pub(crate) fn check_end(&mut self) {
        self.check_takeovers();
        let mut found: Vec<String> = self.ledgers().flat_map(|ledger| left(&ledger)).collect();
        found.extend(left_in_store(&self.disk.live));
        if !self.announced().is_empty() {
            found.push(format!("nets are still announced: {:?}", self.announced()));
        }
        found.extend(self.radius.unbalanced(self.plan.servers_are_reached()));
        found.extend(self.history.left());
        let unreported = self
            .planes
            .iter()
            .map(|up| up.as_ref().map_or(0, UserPlane::unreported));
        match self
            .traffic
            .compare(self.radius.carried(), unreported, self.given_up())
        {
            Ok(exact) => self.summary.exact = exact,
            Err(what) => found.push(what),
        }
        found.into_iter().for_each(|what| self.wrong(what));
    }
}

/// From the answer of a server until a session has the address of an earlier one that has not ended, while every datagram arrives:
/// no time-out is waited for. The answer takes 0.1 s at most, and the user plane's to the end of the earlier session 0.2 s.
const AT_ONCE: Duration = Duration::from_millis(500);

/// What is held as long as the planes are connected, whether or not subscribers are there.
const STAYS: [&str; 2] = ["access port", "default session"];

/// What a plane still holds after every subscriber has left, and what differs.
pub(crate) fn left(ledger: &Ledger) -> Vec<String> {
    let held = ledger.accounts.iter().filter(|held| {
        let stays = STAYS.contains(&&*held.kind);
        !stays && held.booked + held.owned > 0
    });
    let held = held.map(|held| format!("something is still held: {held:?}"));
    unbalanced(ledger).err().into_iter().chain(held).collect()
}

/// Records of sessions that the store still has after every subscriber has left.
pub(crate) fn left_in_store(live: &Live) -> impl Iterator<Item = String> {
    let stored = live
        .iter()
        .filter_map(|(key, value)| StoredSession::read(key, value));
    let stored = stored.map(|session| format!("the store still has {session:?}"));
    let of_ended = |key: &&Vec<u8>| {
        let prefixes = [&b"accounting/"[..], b"ending/"];
        prefixes.iter().any(|prefix| key.starts_with(prefix))
    };
    let ended = live.keys().filter(of_ended);
    stored.chain(ended.map(|key| format!("the store still has {}", key.escape_ascii())))
}

/// A ledger whose two sides differ.
///
/// # Errors
/// The differences.
pub(crate) fn unbalanced(ledger: &Ledger) -> Result<(), String> {
    match ledger.is_balanced() {
        true => Ok(()),
        false => Err(format!(
            "the ledger does not balance: {:#?}",
            ledger.findings
        )),
    }
}

/// The tunnel, and the address that a packet lets its subscriber use.
pub(crate) fn released(bytes: &[u8]) -> Option<(u32, IpNet)> {
    let Ok(gtpu::Packet::Gpdu { teid, payload }) = gtpu::Packet::parse(bytes) else {
        return None;
    };
    let frame = Frame::parse(payload)
        .ok()
        .filter(|frame| frame.header.ethertype == PPPOE_SESSION)?;
    let frame = ppp::Frame::parse(pppoe::Packet::parse(frame.payload).ok()?.payload).ok()?;
    match frame.protocol {
        ppp::IPCP => {
            let control = Control::parse(frame.payload)
                .ok()
                .filter(|c| c.code == ppp::CONFIGURE_ACK)?;
            let options = ipcp::Opt::parse_all(control.data).ok()?;
            options.into_iter().find_map(|option| match option {
                ipcp::Opt::Address(address) => Some((teid, IpAddr::from(address).into())),
                _ => None,
            })
        }
        ppp::IPV6 => {
            let Ok(packet) = nd::Packet::parse(frame.payload) else {
                return Some((teid, delegated(frame.payload)?.into()));
            };
            let nd::Message::RouterAdvertisement(ra) = packet.message else {
                return None;
            };
            ra.options.into_iter().find_map(|option| match option {
                nd::Opt::Prefix(p) if p.valid_lifetime > 0 => {
                    Some((teid, IpNet::new(p.prefix.into(), p.length).ok()?))
                }
                _ => None,
            })
        }
        _ => None,
    }
}

/// The prefix that a Reply of DHCPv6 delegates.
fn delegated(packet: &[u8]) -> Option<Ipv6Net> {
    let packet = ipv6::Packet::parse(packet).ok()?;
    let datagram = udp::Datagram::parse(packet.payload).ok()?;
    let message = dhcpv6::Message::parse(datagram.payload).ok()?;
    message.options.iter().find_map(|option| match option {
        dhcpv6::Opt::IaPd(ia) => {
            let mut leased = ia.prefixes().filter(|prefix| prefix.valid_lifetime > 0);
            leased.find_map(|lease| Ipv6Net::new(lease.prefix, lease.length).ok())
        }
        _ => None,
    })
}

/// Time for which homes are listened to before the calm is judged.
pub(crate) const LISTEN: Duration = Duration::from_secs(30);
/// How long little room is left as it is, once everything is calm.
pub(crate) const CROWDED: Duration = Duration::from_secs(90);
