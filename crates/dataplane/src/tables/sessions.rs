//! Sessions: found upstream by access segment and PPPoE session id, downstream by index.
use crate::api::{Limits, PortIndex, Refusal, SessionEntry, SessionIndex, Usage};
use crate::edges::Edge;
use crate::nodes::ip::Family;
use crate::police::Bucket;
use crate::shard::{Ids, Owners, Shard};
use crate::tables::fib::Target;
use crate::tables::{NO_VLANS, Vlans};
use counts::Carried;
use dpdk::Lines;
use pages::{Pages, Vacancy};
use policing::Policing;
pub(crate) use policing::{PolicedLines, own_rates};
use std::sync::Arc;
use wire::eth::{TPID_8021AD, TPID_8021Q, Tag, Tags};

mod counts;
mod lines;
mod moved;
mod pages;
mod policing;
mod whole;

pub(crate) use lines::{Down, MASKS, Sources, Up};
pub(crate) use moved::MovedSession;
pub(crate) use pages::Occupant;

/// What the packet path does not need of a session.
struct Known {
    entry: SessionEntry,
    sources: Sources,
    /// The bank of its segment.
    bank: u16,
    /// Its place among the upstream entries.
    slot: u32,
    /// Its buckets for punted packets.
    punts: Punts,
    /// What its lines had no room for.
    carried: Carried,
}

/// A session's buckets for punted packets. Echoes have their own: whatever else a home says, its session does not end by missed echoes.
#[derive(Clone, Copy, Default)]
pub(crate) struct Punts {
    pub control: Bucket,
    pub echoes: Bucket,
}

/// All sessions of a worker.
pub(crate) struct Sessions {
    /// Tables have places for these alone.
    pub shard: Shard,
    /// For each port and VLAN: the segment's bank + 1, or 0. Only access ports have them.
    segments: Box<[Option<Box<Vlans>>]>,
    /// For each port the workers of VLANs that were moved. The controller has them as well, so that none is freed here.
    owners: Box<[Option<Arc<Owners>>]>,
    /// While VLANs of a port move: what frames go by that other workers have handed over, since they were before the move.
    owners_before: Option<(PortIndex, Option<Arc<Owners>>)>,
    pages: Pages,
    down: dpdk::Table<Down>,
    policing: Policing,
    known: Vec<Option<Known>>,
    /// Sessions whose subscribers may send from what the routes say.
    routed: usize,
    limit: u32,
}

/// Whose an upstream entry is: looked up only where it is needed.
#[derive(Clone, Copy)]
pub(crate) struct Whose<'a> {
    // Not a slice, whose place would be loaded for every packet.
    occupants: &'a dpdk::Table<Occupant>,
    slot: u32,
}

impl Whose<'_> {
    pub fn index(self) -> SessionIndex {
        self.occupants[self.slot as usize].session
    }
}

/// Where the counters of a downstream side are carried over to.
pub(crate) struct DownCarry<'a> {
    // Not a slice, whose place would be loaded for every packet.
    known: &'a mut Vec<Option<Known>>,
    place: usize,
}

impl DownCarry<'_> {
    /// Counts a packet of so many octets to the subscriber.
    #[inline(always)]
    pub fn count(&mut self, down: &mut Down, family: Family, octets: usize) {
        if down.counts.count(family, octets) {
            self.carry(down, family, octets);
        }
    }

    #[cold]
    #[inline(never)]
    fn carry(&mut self, down: &mut Down, family: Family, octets: usize) {
        if let Some(Some(known)) = self.known.get_mut(self.place) {
            known.carried.carry_down(&mut down.counts, family, octets);
        }
    }
}

/// To ask for the lines of downstream sides.
#[derive(Clone, Copy)]
pub(crate) struct DownLines {
    shard: Shard,
    lines: Lines<Down>,
}

impl DownLines {
    /// Asks for a destination's line a few packets ahead, if it is a session.
    #[inline(always)]
    pub fn soon(self, target: Target) {
        if let Some(index) = target.session() {
            dpdk::prefetch(self.at(index));
        }
    }

    /// Where a session's is, or would be.
    #[inline(always)]
    pub fn at(self, SessionIndex(index): SessionIndex) -> *const Down {
        self.lines.at(self.shard.place(index))
    }
}

impl Sessions {
    /// Tables for sessions, on ports that are yet to come.
    pub fn new(limits: &Limits, shard: Shard, ids: Ids, hz: u64) -> Result<Self, dpdk::Error> {
        let sessions = shard.places(limits.sessions) as usize;
        Ok(Sessions {
            shard,
            segments: (0..limits.interfaces).map(|_| None).collect(),
            owners: (0..limits.interfaces).map(|_| None).collect(),
            owners_before: None,
            pages: Pages::new(sessions, limits.interfaces, limits.segments.into(), ids)?,
            down: dpdk::Table::new(sessions)?,
            policing: Policing::new(sessions, hz)?,
            known: Vec::with_capacity(sessions),
            routed: 0,
            limit: limits.sessions,
        })
    }

    /// Says which bank each VLAN of a port has (+ 1; 0: none), or that there are no subscribers on the port. Whatever
    /// session is somewhere else then is not met by packets any more: it has to be looked for
    /// ([`Sessions::misplaced`]) and removed before its bank is anybody's again.
    pub fn set_segments(&mut self, PortIndex(port): PortIndex, banks: Option<Box<Vlans>>) {
        let most = banks.iter().flat_map(|vlans| vlans.iter()).max();
        let most = most.map_or(0, |bank| usize::from(*bank));
        self.pages.set_segments(PortIndex(port), most);
        if banks.is_none() {
            self.owners[port as usize] = None;
        }
        self.segments[port as usize] = banks;
    }

    /// Says which workers have VLANs of a port that were moved. With `keeps_taken`, frames that other workers have handed over go by what
    /// was before, until [`Sessions::forget_owners_before`].
    pub fn set_owners(&mut self, port: PortIndex, owners: Option<Arc<Owners>>, keeps_taken: bool) {
        let before = core::mem::replace(&mut self.owners[usize::from(port.0)], owners);
        self.owners_before = keeps_taken.then_some((port, before));
    }

    /// The move is over: all frames go by the same owners.
    pub fn forget_owners_before(&mut self) {
        self.owners_before = None;
    }

    /// The workers of a port's VLANs that were moved, for frames that come this way.
    #[inline(always)]
    pub fn owners(&self, port: PortIndex, edge: Edge) -> Option<&Owners> {
        if let Some((of, before)) = &self.owners_before
            && (*of, edge) == (port, Edge::TakenFrame)
        {
            return before.as_deref();
        }
        self.owners.get(usize::from(port.0))?.as_deref()
    }

    /// The bank of each VLAN of a port (+ 1; 0: none).
    pub fn segments(&self, PortIndex(port): PortIndex) -> Option<&Vlans> {
        self.segments.get(port as usize)?.as_deref()
    }

    /// The first among `most` places from `from` on whose session's segment is not where it was.
    pub fn misplaced(&self, from: u32, most: u32) -> Option<SessionIndex> {
        let end = (from + most).min(self.known.len() as u32);
        let mut known = self.known[from.min(end) as usize..end as usize]
            .iter()
            .flatten();
        let misplaced = known.find(|Known { entry, bank, .. }| {
            self.bank(entry.port.0, outer_vid(entry.tags)) != Some(*bank as usize)
        });
        misplaced.map(|known| known.entry.index)
    }

    /// The worker's share of the session ids.
    #[inline(always)]
    pub fn ids(&self) -> &Ids {
        &self.pages.ids
    }

    #[inline(always)]
    fn place(&self, SessionIndex(index): SessionIndex) -> usize {
        self.shard.place(index) as usize
    }

    /// The same, without any if there are no subscribers on the port.
    pub fn vlans(&self, port: PortIndex) -> &Vlans {
        self.segments(port).unwrap_or(&NO_VLANS)
    }

    fn bank(&self, port: u16, vid: u16) -> Option<usize> {
        bank(self.vlans(PortIndex(port)), vid)
    }

    /// The place of a session id, vacant or not; `None` if the VLAN belongs to no segment of the port.
    pub fn slot(&self, port: u16, vid: u16, id: u16) -> Option<u32> {
        self.slot_in::<true>(self.vlans(PortIndex(port)), vid, id)
    }

    /// The same on a port with these [`Sessions::vlans`]. If no VLAN was moved (`MOVED`), the id's lane is the worker's.
    #[inline(always)]
    pub fn slot_in<const MOVED: bool>(&self, vlans: &Vlans, vid: u16, id: u16) -> Option<u32> {
        let bank = bank(vlans, vid)?;
        Some(self.pages.slot_of::<MOVED>(bank, id))
    }

    /// Upstream entries, by their slots.
    #[inline(always)]
    pub fn up_lines(&self) -> Lines<Up> {
        Lines::of(&self.pages.up)
    }

    #[inline(always)]
    pub fn up(&mut self, slot: u32) -> &mut Up {
        &mut self.pages.up[slot as usize]
    }

    /// The same, and whose it is.
    #[inline(always)]
    pub fn entry(&mut self, slot: u32) -> (&mut Up, Whose<'_>) {
        let Pages { up, occupants, .. } = &mut self.pages;
        (&mut up[slot as usize], Whose { occupants, slot })
    }

    /// Whose an upstream entry is, if it is not vacant.
    #[inline(always)]
    pub fn index(&self, slot: u32) -> SessionIndex {
        self.pages.occupants[slot as usize].session
    }

    /// Who has the upstream entries, by their slots.
    #[inline(always)]
    pub fn occupants(&self) -> Lines<Occupant> {
        Lines::of(&self.pages.occupants)
    }

    /// Who has an upstream entry.
    #[inline(always)]
    pub fn occupant(&self, slot: u32) -> Occupant {
        self.pages.occupants[slot as usize]
    }

    /// The largest IP packet that the subscriber of an upstream entry takes.
    pub fn mtu(&self, slot: u32) -> u16 {
        self.down[self.place(self.index(slot))].mtu
    }

    /// Is there a session whose subscriber may send from what the routes say?
    #[inline(always)]
    pub fn any_routed(&self) -> bool {
        self.routed > 0
    }

    /// Downstream sides, by the sessions' indexes.
    #[inline(always)]
    pub fn down_lines(&self) -> DownLines {
        DownLines {
            shard: self.shard,
            lines: Lines::of(&self.down),
        }
    }

    /// The downstream side of a session, if there has been one at the index.
    #[inline(always)]
    pub fn down(&mut self, index: SessionIndex) -> Option<&mut Down> {
        let place = self.place(index);
        self.down.get_mut(place)
    }

    /// The same, and what counts its packets.
    #[inline(always)]
    pub fn down_entry(&mut self, index: SessionIndex) -> Option<(&mut Down, DownCarry<'_>)> {
        let place = self.place(index);
        let known = &mut self.known;
        Some((self.down.get_mut(place)?, DownCarry { known, place }))
    }

    /// Asks for what [`Sessions::count_down`] will need.
    #[inline(always)]
    pub fn ask_for_down(&self, place: u32) {
        if let Some(down) = self.down.get(place as usize) {
            dpdk::prefetch(down);
        }
    }

    /// Counts a frame of so many octets to the subscriber of the session at a place, if there is one.
    #[inline(always)]
    pub fn count_down(&mut self, place: u32, family: Family, octets: usize) {
        let place = place as usize;
        if let Some(down) = self.down.get_mut(place) {
            let known = &mut self.known;
            let packet = octets.saturating_sub(down.length.into());
            DownCarry { known, place }.count(down, family, packet);
        }
    }

    /// Carries over the counters of an upstream entry that have no room for a packet of so many octets.
    pub fn carry_up(&mut self, slot: u32, family: Family, octets: usize) {
        let place = self.place(self.index(slot));
        if let Some(Some(known)) = self.known.get_mut(place) {
            let counts = &mut self.pages.up[slot as usize].counts;
            known.carried.carry_up(counts, family, octets);
        }
    }

    /// Begins or ends to take copies of a session's packets; false if it is not there.
    pub fn sample(&mut self, index: SessionIndex, on: bool) -> bool {
        let place = self.place(index);
        let Some(Some(known)) = self.known.get(place) else {
            return false;
        };
        self.pages.up[known.slot as usize].sample(on);
        let down = &mut self.down[place];
        down.plain = if on { 0 } else { down.mtu };
        true
    }

    /// The buckets for punted packets of a session that exists.
    pub fn punts(&mut self, index: SessionIndex) -> Option<&mut Punts> {
        let place = self.place(index);
        Some(&mut self.known.get_mut(place)?.as_mut()?.punts)
    }

    /// The session as it was set.
    pub fn get(&self, index: SessionIndex) -> Option<&SessionEntry> {
        Some(&self.known.get(self.place(index))?.as_ref()?.entry)
    }

    /// May the session be set, beside those that there are?
    pub fn check(&self, entry: &SessionEntry) -> Result<(), Refusal> {
        let PortIndex(port) = entry.port;
        if entry.pppoe_session_id == 0 || !well_formed(entry.tags) {
            return Err(Refusal::Malformed);
        }
        let bank = self.bank(port, outer_vid(entry.tags));
        let bank = bank.ok_or(Refusal::NoSegment)?;
        match self.pages.vacancy(entry.port, bank, entry.pppoe_session_id) {
            Vacancy::Taken(other) if other != entry.index => Err(Refusal::IdTaken),
            Vacancy::Full => Err(Refusal::TableFull),
            _ if entry.index.0 >= self.limit => Err(Refusal::TableFull),
            _ => Ok(()),
        }
    }

    /// Adds a session for which `check` was good, or changes it; its counters go on.
    pub fn set(&mut self, entry: SessionEntry, sources: Sources, generation: u32) {
        let index = self.place(entry.index);
        self.make_room(index);
        let former = self.known[index].take();
        let former_entry = former.as_ref().map(|known| &known.entry);
        self.policing.set(index, former_entry, Some(&entry));
        let before = match former {
            Some(known) => (self.vacate(&known), known.punts, known.carried),
            None => (Up::NONE, Punts::default(), Carried::default()),
        };
        self.put(index, entry, (sources, generation), before);
    }

    /// Makes the tables long enough for a place.
    fn make_room(&mut self, place: usize) {
        if self.known.len() <= place {
            self.known.resize_with(place + 1, || None);
            self.down.resize(place + 1, Down::default());
        }
    }

    /// Puts a session into a place, with the counters of its upstream entry, its buckets and what was carried over before.
    fn put(
        &mut self,
        index: usize,
        entry: SessionEntry,
        (sources, generation): (Sources, u32),
        (was, punts, carried): (Up, Punts, Carried),
    ) {
        let bank = self
            .bank(entry.port.0, outer_vid(entry.tags))
            .expect("the segment was checked");
        let (shard, known) = (self.shard, &mut self.known);
        let moved = |SessionIndex(index), slot| {
            let known = known[shard.place(index) as usize].as_mut();
            known.expect("an entry has its session").slot = slot;
        };
        let id = (bank, entry.pppoe_session_id);
        let up = (was.with(&entry, sources), Occupant::of(&entry));
        let slot = self.pages.occupy(entry.port, id, up, moved);
        self.routed += usize::from(sources.routed);
        self.down[index] = Down {
            generation,
            ..self.down[index].with(&entry)
        };
        self.known[index] = Some(Known {
            entry,
            sources,
            bank: bank as u16,
            slot,
            punts,
            carried,
        });
    }

    /// Removes a session; `None` if it is not there.
    pub fn remove(&mut self, index: SessionIndex) -> Option<(SessionEntry, Usage)> {
        let usage = self.usage(index)?;
        let place = self.place(index);
        let known = self.known[place].take()?;
        self.vacate(&known);
        self.down[place] = Down::default();
        self.policing.set(place, Some(&known.entry), None);
        Some((known.entry, usage))
    }

    /// What the session has used so far.
    pub fn usage(&self, index: SessionIndex) -> Option<Usage> {
        let place = self.place(index);
        let known = self.known.get(place)?.as_ref()?;
        let (up, down) = (&self.pages.up[known.slot as usize], &self.down[place]);
        Some(known.carried.with(&up.counts, &down.counts))
    }

    /// Empties the session's place.
    fn vacate(&mut self, known: &Known) -> Up {
        self.routed -= usize::from(known.sources.routed);
        self.pages.vacate(known.slot)
    }

    /// Whether an upstream entry is that of a session in the segment of this outer VLAN id: pages are shared by those of a port.
    #[cold]
    pub fn is_in_segment(&self, slot: u32, vid: u16) -> bool {
        let session = self.get(self.index(slot));
        let bank = session.and_then(|entry| self.bank(entry.port.0, vid));
        bank == Some(self.pages.row(slot).bank())
    }
}

/// The bank of a VLAN.
#[inline(always)]
fn bank(vlans: &Vlans, vid: u16) -> Option<usize> {
    (vlans[vid as usize & 0xfff] as usize).checked_sub(1)
}

/// The tags' outer VLAN id, 0 without tags.
fn outer_vid(tags: Tags) -> u16 {
    tags.outer.map_or(0, |t| t.vid)
}

/// Tags that a frame can have and that classification knows.
fn well_formed(tags: Tags) -> bool {
    let tag = |t: Tag| matches!(t.tpid, TPID_8021Q | TPID_8021AD) && t.vid < 4096;
    tags.outer.is_none_or(tag)
        && tags.inner.is_none_or(tag)
        && (tags.outer.is_some() || tags.inner.is_none())
}

#[cfg(test)]
impl Sessions {
    /// Ticks of a second in tests.
    pub const HZ: u64 = 1_000_000_000;

    /// Tables with port 0, an access port with these segments.
    pub fn with(limit: u32, segments: &[core::ops::RangeInclusive<u16>]) -> Self {
        let limits = Limits {
            sessions: limit,
            ..Limits::default()
        };
        let ids = Ids::new(0, &wire::pfcp::Lanes::even(1));
        let mut sessions = Sessions::new(&limits, Shard::default(), ids, Self::HZ).expect("memory");
        let mut vlans = crate::tables::no_vlans();
        for (range, bank) in segments.iter().zip(1..) {
            range.clone().for_each(|vid| vlans[vid as usize] = bank);
        }
        sessions.set_segments(PortIndex(0), Some(vlans));
        sessions
    }
}

#[cfg(test)]
mod tests {
    use super::counts::Counts;
    use super::*;
    use crate::api::{InstanceIndex, Volume};
    use crate::tables::classes::{ClassLine, FurtherLine};
    use crate::tables::meters::MeterLine;
    use crate::tables::no_vlans;
    use crate::tables::policies::PolicyLine;
    use policy::PacketSettings;
    use proptest::prelude::*;
    use wire::eth::MacAddr;

    pub(super) fn entry(index: u32, vid: u16, id: u16) -> SessionEntry {
        SessionEntry {
            index: SessionIndex(index),
            port: PortIndex(0),
            tags: Tags::qinq(vid, 7),
            peer_mac: MacAddr([2, 0, 0, 0, 0, 9]),
            gateway_mac: MacAddr([2; 6]),
            pppoe_session_id: id,
            instance: InstanceIndex(3),
            packets: PacketSettings::with_mtu(1492),
            policies: Default::default(),
            subscriber: 1,
            ipv4: Some([100, 64, 0, 7].into()),
            ipv6: Some("2001:db8:0:7::/64".parse().unwrap()),
            routed: Box::default(),
        }
    }

    pub(super) fn tables() -> Sessions {
        Sessions::with(1000, &[0..=0, 100..=199, 200..=200])
    }

    #[test]
    fn the_same_id_in_two_segments_is_two_sessions() {
        let mut t = tables();
        for e in [entry(0, 100, 5), entry(1, 200, 5), entry(2, 150, 65535)] {
            t.check(&e).unwrap();
            t.set(e, Sources::default(), 0);
        }
        let mut index = |vid, id| {
            let slot = t.slot(0, vid, id).unwrap();
            (!t.up(slot).vacant()).then(|| t.index(slot).0)
        };
        // A segment's VLANs share its ids.
        assert_eq!(
            [
                index(100, 5),
                index(199, 5),
                index(200, 5),
                index(150, 65535)
            ],
            [Some(0), Some(0), Some(1), Some(2)]
        );
        assert_eq!(
            [
                index(100, 6),
                index(100, 261),
                index(200, 65535),
                index(0, 5)
            ],
            [None; 4]
        );
        assert_eq!(
            (t.slot(0, 99, 5), t.slot(1, 100, 5), t.slot(9, 100, 5)),
            (None, None, None)
        );
    }

    /// A VLAN that was moved has ids of all lanes, also such as have the same place in a page.
    #[test]
    fn ids_of_other_workers_lanes_have_places_of_their_own() {
        let limits = Limits {
            sessions: 4000,
            ..Limits::default()
        };
        let ids = Ids::new(1, &wire::pfcp::Lanes::even(4));
        let shard = Shard::new(1, 4);
        let mut t = Sessions::new(&limits, shard, ids, Sessions::HZ).expect("memory");
        let mut vlans = no_vlans();
        (vlans[100], vlans[200]) = (1, 2);
        t.set_segments(PortIndex(0), Some(vlans));
        let all: Vec<SessionEntry> = [100, 200]
            .into_iter()
            .flat_map(|vid| (1..200).chain(5000..5100).map(move |id| (vid, id)))
            .zip(0..)
            .map(|((vid, id), place)| entry(shard.number(place), vid, id))
            .collect();
        for entry in &all {
            assert_eq!(t.check(entry), Ok(()));
            t.set(entry.clone(), Sources::default(), 0);
            assert_eq!(t.check(entry), Ok(()), "it is there");
        }
        for entry in &all {
            assert!(t.is_whole(entry.index), "{entry:?}");
            let vid = outer_vid(entry.tags);
            // another id of the home finds nobody, or somebody else of its segment
            let slot = t.slot(0, vid, entry.pppoe_session_id + 300).unwrap();
            assert!(t.up(slot).vacant());
        }
        for entry in &all {
            assert!(t.remove(entry.index).is_some());
        }
        assert!(t.pages.are_empty());
    }

    #[test]
    fn what_cannot_be_set_is_refused() {
        let mut t = tables();
        t.set(entry(0, 100, 5), Sources::default(), 0);
        let check = |change: &dyn Fn(&mut SessionEntry)| {
            let mut e = entry(1, 100, 6);
            change(&mut e);
            t.check(&e)
        };
        assert_eq!(check(&|_| ()), Ok(()));
        assert_eq!(check(&|e| e.pppoe_session_id = 5), Err(Refusal::IdTaken));
        assert_eq!(
            check(&|e| (e.index, e.pppoe_session_id) = (SessionIndex(0), 5)),
            Ok(())
        );
        assert_eq!(
            check(&|e| e.tags = Tags::single(99)),
            Err(Refusal::NoSegment)
        );
        assert_eq!(check(&|e| e.port = PortIndex(1)), Err(Refusal::NoSegment));
        assert_eq!(
            check(&|e| e.index = SessionIndex(1000)),
            Err(Refusal::TableFull)
        );
        assert_eq!(check(&|e| e.pppoe_session_id = 0), Err(Refusal::Malformed));
        assert_eq!(
            check(&|e| e.tags.outer.as_mut().unwrap().tpid = 0x9100),
            Err(Refusal::Malformed)
        );
        assert_eq!(check(&|e| e.tags.outer = None), Err(Refusal::Malformed));
    }

    #[test]
    fn counters_go_on_through_changes_and_end_with_the_session() {
        let mut t = tables();
        t.set(entry(4, 100, 5), Sources::default(), 0);
        let slot = t.slot(0, 100, 5).unwrap();
        t.up(slot).counts = Counts::with(Family::V4, 3, u32::MAX);
        assert!(t.up(slot).counts.count(Family::V4, 25));
        t.carry_up(slot, Family::V4, 25);
        t.down(SessionIndex(4)).unwrap().counts = Counts::with(Family::V6, 0, u32::MAX);
        let (down, mut carry) = t.down_entry(SessionIndex(4)).unwrap();
        carry.count(down, Family::V6, 100);
        let changed = SessionEntry {
            ipv4: None,
            packets: PacketSettings::with_mtu(1400),
            ..entry(4, 200, 600)
        };
        t.set(changed, Sources::default(), 0);
        assert!(t.up(slot).vacant());
        let usage = Usage {
            ipv4: Volume {
                up_packets: 4,
                up_octets: (1 << 32) + 24,
                ..Volume::default()
            },
            ipv6: Volume {
                down_packets: 1,
                down_octets: (1 << 32) + 99,
                ..Volume::default()
            },
        };
        assert_eq!(
            (t.usage(SessionIndex(4)), t.usage(SessionIndex(3))),
            (Some(usage), None)
        );
        let (gone, last) = t.remove(SessionIndex(4)).unwrap();
        assert_eq!((gone.packets.mtu, last), (Some(1400), usage));
        assert!(
            t.remove(SessionIndex(4)).is_none()
                && t.down(SessionIndex(4))
                    .is_none_or(|down| *down == Down::default())
        );
        t.set(entry(4, 100, 5), Sources::default(), 0);
        assert_eq!(t.usage(SessionIndex(4)), Some(Usage::default()));
    }

    #[test]
    fn pages_are_used_again() {
        let mut t = tables();
        for round in 0..10u16 {
            for i in 0..10 {
                t.set(
                    entry(i, 100, round * 1000 + i as u16 * 300 + 1),
                    Sources::default(),
                    0,
                );
            }
            for i in 0..10 {
                t.remove(SessionIndex(i)).unwrap();
            }
        }
        assert!(t.pages.count() <= 11, "{} pages", t.pages.count());
        assert!(t.pages.are_empty());
    }

    /// A table of segments of one VLAN each, from 1 on.
    fn small_segments(segments: u16) -> Sessions {
        let vlans: Vec<_> = (1..=segments).map(|vid| vid..=vid).collect();
        Sessions::with(10_000, &vlans)
    }

    #[test]
    fn segments_of_few_sessions_share_pages() {
        let mut t = small_segments(4000);
        for (index, vid) in (0..).zip(1..=4000) {
            let entry = entry(index, vid, 1 + index as u16 % 255);
            t.check(&entry).unwrap();
            t.set(entry, Sources::default(), 0);
        }
        assert_eq!(t.pages.count(), 1 + 4000_usize.div_ceil(255));
        assert!((0..4000).all(|index| t.is_whole(SessionIndex(index))));
        let known = size_of::<Option<Known>>() + size_of::<Down>();
        let octets = t.pages.octets() + t.known.len() * known;
        assert!(octets / 4000 < 1024, "{} octets a home", octets / 4000);
        // the place of another segment's session is none of this one
        let slot = t.slot(0, 2, 1).unwrap();
        assert!(!t.up(slot).vacant() && !t.is_in_segment(slot, 2) && t.is_in_segment(slot, 1));
        (0..4000).for_each(|index| drop(t.remove(SessionIndex(index)).unwrap()));
        assert!(t.pages.are_empty());
    }

    #[test]
    fn a_row_whose_place_is_taken_moves_with_its_counters() {
        let mut t = small_segments(2);
        let others = [entry(0, 1, 7), entry(1, 2, 8), entry(2, 2, 9)];
        others
            .into_iter()
            .for_each(|entry| t.set(entry, Sources::default(), 0));
        let slot = |t: &Sessions, vid, id| t.slot(0, vid, id).unwrap();
        let before = slot(&t, 2, 8);
        assert!(!t.up(before).counts.count(Family::V6, 99));
        assert_eq!(before, slot(&t, 1, 8), "one page");
        let fourth = entry(3, 2, 7);
        assert_eq!(t.check(&fourth), Ok(()));
        t.set(fourth, Sources::default(), 0);
        assert_ne!(slot(&t, 2, 8), before);
        assert_eq!(t.usage(SessionIndex(1)).unwrap().ipv6.up_octets, 99);
        assert!((0..4).all(|index| t.is_whole(SessionIndex(index))));
        assert_eq!(t.check(&entry(9, 2, 7)), Err(Refusal::IdTaken));
    }

    #[test]
    fn sessions_of_two_ports_share_no_page() {
        let mut t = small_segments(1);
        let mut vlans = no_vlans();
        vlans[1] = 2;
        t.set_segments(PortIndex(1), Some(vlans));
        t.set(entry(0, 1, 5), Sources::default(), 0);
        let elsewhere = SessionEntry {
            port: PortIndex(1),
            ..entry(1, 1, 6)
        };
        t.set(elsewhere, Sources::default(), 0);
        let slot = t.slot(1, 1, 5).unwrap();
        assert!(
            t.up(slot).vacant(),
            "the same tags and address, but another port"
        );
    }

    proptest! {
        #[test]
        fn an_id_leads_to_its_session_whatever_came_and_went(
            steps in proptest::collection::vec((0..40u32, 1..5u16, 0..3u16, 1..6u16, any::<bool>()), 0..200)
        ) {
            let mut t = small_segments(4);
            let mut there = std::collections::BTreeMap::new();
            for (index, vid, high, lane, stay) in steps {
                let id = high << 8 | lane;
                let session = entry(index, vid, id);
                let taken = there.iter().any(|(other, at)| *other != index && *at == (vid, id));
                prop_assert_eq!(t.check(&session), if taken { Err(Refusal::IdTaken) } else { Ok(()) });
                if stay && !taken {
                    t.set(session, Sources::default(), 0);
                    there.insert(index, (vid, id));
                } else {
                    prop_assert_eq!(t.remove(SessionIndex(index)).is_some(), there.remove(&index).is_some());
                }
                for vid in 1..5 {
                    for id in (0..3u16).flat_map(|high| (1..6).map(move |lane| high << 8 | lane)) {
                        let slot = t.slot(0, vid, id).unwrap();
                        let met = !t.up(slot).vacant() && t.is_in_segment(slot, vid);
                        let met = met.then(|| t.index(slot).0);
                        let of = there.iter().find(|(_, at)| **at == (vid, id));
                        prop_assert_eq!(met, of.map(|(index, _)| *index));
                    }
                }
                prop_assert!(there.keys().all(|index| t.is_whole(SessionIndex(*index))));
            }
            there.into_keys().for_each(|index| drop(t.remove(SessionIndex(index))));
            prop_assert!(t.pages.are_empty());
        }
    }

    #[test]
    fn a_page_more_than_there_can_be_is_refused() {
        let mut t = Sessions::with(2, &[0..=4095]);
        for (index, id) in [(0, 5), (1, 5 + 256)] {
            t.check(&entry(index, 100, id)).unwrap();
            t.set(entry(index, 100, id), Sources::default(), 0);
        }
        // Both pages have a session each; there is none for a third place, but one in those that there are.
        let third = 5 + 2 * 256;
        assert_eq!(t.check(&entry(1, 100, third)), Err(Refusal::TableFull));
        assert_eq!(t.check(&entry(1, 100, 6)), Ok(()));
        t.remove(SessionIndex(0)).unwrap();
        assert_eq!(t.check(&entry(0, 100, third)), Ok(()));
    }

    #[test]
    fn a_session_outside_of_its_segment_is_found_and_leaves_nothing_behind() {
        let mut t = tables();
        for e in [entry(0, 100, 5), entry(1, 200, 5), entry(2, 150, 65535)] {
            t.set(e, Sources::default(), 0);
        }
        assert_eq!(t.misplaced(0, 1000), None);
        // VLAN 150 goes to the third segment, VLAN 200 nowhere; 100 stays.
        let mut vlans = no_vlans();
        (vlans[100], vlans[150]) = (2, 3);
        t.set_segments(PortIndex(0), Some(vlans));
        assert_eq!(t.misplaced(0, 1), None);
        assert_eq!(t.misplaced(0, 1000), Some(SessionIndex(1)));
        t.remove(SessionIndex(1)).unwrap();
        assert_eq!(t.misplaced(0, 1000), Some(SessionIndex(2)));
        t.remove(SessionIndex(2)).unwrap();
        assert_eq!(t.misplaced(0, 1000), None);
        assert!(t.is_whole(SessionIndex(0)));
        assert_eq!(t.pages.rows_with_sessions(), 1);
        t.set_segments(PortIndex(0), None);
        assert_eq!(t.misplaced(0, 1000), Some(SessionIndex(0)));
        assert_eq!(t.check(&entry(5, 100, 7)), Err(Refusal::NoSegment));
        t.remove(SessionIndex(0)).unwrap();
        assert!(t.pages.are_empty());
    }

    #[test]
    fn the_page_about_performance_has_the_sizes() {
        let page = include_str!("../../../../docs/performance.md");
        let sizes = [
            ("dataplane::Up", size_of::<Up>()),
            ("dataplane::Down", size_of::<Down>()),
            ("dataplane::PolicyLine", size_of::<PolicyLine>()),
            ("dataplane::MeterLine", size_of::<MeterLine>()),
            ("dataplane::ClassLine", size_of::<ClassLine>()),
            ("dataplane::FurtherLine", size_of::<FurtherLine>()),
            ("dataplane::Known", size_of::<Option<Known>>()),
        ];
        for (name, size) in sizes {
            let row = format!("| `{name}` | {size} |");
            assert!(page.contains(&row), "no row {row}");
        }
    }
}
