//! The session table: sessions by index, and what finds them by access line, by age and by time.

use crate::entry::{Ending, Entry, Stage};
use crate::finder::{Finder, Found};
use crate::lanes::{Aggregate, AggregateFamilies, Load};
use crate::topology::{GroupId, SegmentId, Seid, UserPlaneId};
use crate::wheel::TimerWheel;
use core::ops::{Index, IndexMut};
use core::time::Duration;
use session::Circuit;
use slab::Slab;
use std::collections::{BTreeMap, HashMap, VecDeque};
use wire::eth::MacAddr;
use wire::pfcp::Lanes;

/// Key of an access line: segment, outer and inner VLAN, MAC address. It finds the sessions of a subscriber that reconnects.
pub(crate) type LineKey = (SegmentId, Option<u16>, Option<u16>, MacAddr);

/// VLAN of an access line: segment, outer and inner VLAN.
type VlanKey = (SegmentId, Option<u16>, Option<u16>);

const fn vlan_of((segment, outer, inner, _): LineKey) -> VlanKey {
    (segment, outer, inner)
}

pub(crate) fn line_key(segment: SegmentId, circuit: &Circuit) -> LineKey {
    let (outer, inner) = circuit.tags.vids();
    (segment, outer, inner, circuit.mac)
}

/// Time in which a subscriber authenticates: as a rule much less. Later its session may end for a new one.
const PATIENCE: Duration = Duration::from_secs(2);

/// Precision of the sessions' timers.
const TICK: Duration = Duration::from_millis(10);

/// Counts of sessions: how many wait for their last counters, and how many began, came online and ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub closing: u64,
    pub begun: u64,
    pub opened: u64,
    pub ended: u64,
}

/// All sessions. The stage of a session changes only by [`SessionTable::open`] and [`SessionTable::close`], so that the counts hold.
pub(crate) struct SessionTable {
    entries: Slab<Box<Entry>>,
    /// Session of each control tunnel.
    by_teid: HashMap<u32, u32, foldhash::fast::RandomState>,
    /// Sessions of each line that are not closing.
    by_line: Finder,
    /// Sessions of each user name that are not closing.
    by_user: Finder,
    /// Families of lanes of the sessions in any stage of each segment, and of each outer VLAN.
    aggregates: AggregateFamilies,
    /// Number of sessions of each segment, and of each VLAN, that are not closing.
    in_segment: BTreeMap<SegmentId, u32>,
    in_vlan: BTreeMap<VlanKey, u32>,
    /// Number of sessions in any stage of each segment and group.
    in_place: BTreeMap<(SegmentId, GroupId), u32>,
    /// Number of sessions of each user plane, by lane.
    on_user_plane: BTreeMap<UserPlaneId, Load>,
    /// Sessions whose subscribers have not authenticated yet, in the order of their PADR and with its time, and some that have.
    by_age: VecDeque<(Duration, Seid)>,
    half_open: usize,
    wheel: TimerWheel,
    tally: Tally,
}

impl SessionTable {
    pub fn new() -> Self {
        SessionTable {
            entries: Slab::new(),
            by_teid: HashMap::default(),
            by_line: Finder::default(),
            by_user: Finder::default(),
            aggregates: AggregateFamilies::default(),
            in_segment: BTreeMap::new(),
            in_vlan: BTreeMap::new(),
            in_place: BTreeMap::new(),
            on_user_plane: BTreeMap::new(),
            by_age: VecDeque::new(),
            half_open: 0,
            wheel: TimerWheel::new(TICK),
            tally: Tally::default(),
        }
    }

    /// A table of stored sessions in the order in which they began.
    pub fn resume(entries: Vec<Entry>) -> Self {
        let mut table = SessionTable::new();
        for entry in &entries {
            match entry.is_closing() {
                true => table.tally.closing += 1,
                false => {
                    table.join_line(entry.line_key(), entry.seid.index());
                    table.join_user(entry);
                }
            }
            if entry.is_half_open() {
                table.half_open += 1;
                table.by_age.push_back((Duration::ZERO, entry.seid));
            }
            table.count(entry);
        }
        let entries = entries.into_iter();
        let by_index = entries.map(|entry| (entry.seid.index() as usize, Box::new(entry)));
        table.entries = by_index.collect();
        table
    }

    /// Index of the next session.
    pub fn next_index(&self) -> u32 {
        self.entries.vacant_key() as u32
    }

    /// Adds a session at [`SessionTable::next_index`], which its SEID has.
    pub fn insert(&mut self, now: Duration, entry: Entry) {
        self.count(&entry);
        self.join_line(entry.line_key(), entry.seid.index());
        if self.by_age.len() > 2 * self.half_open {
            self.forget_authenticated();
        }
        self.by_age.push_back((now, entry.seid));
        self.half_open += 1;
        self.tally.begun += 1;
        self.entries.insert(Box::new(entry));
    }

    fn join_line(&mut self, line: LineKey, index: u32) {
        if self.by_line.insert(line, index) {
            *self.in_segment.entry(line.0).or_default() += 1;
            *self.in_vlan.entry(vlan_of(line)).or_default() += 1;
        }
    }

    fn leave_line(&mut self, line: LineKey, index: u32) {
        if self.by_line.remove(line, index) {
            one_less(&mut self.in_segment, line.0);
            one_less(&mut self.in_vlan, vlan_of(line));
        }
    }

    fn join_user(&mut self, entry: &Entry) {
        if let Some(name) = entry.user_key() {
            self.by_user.insert(name, entry.seid.index());
        }
    }

    fn count(&mut self, entry: &Entry) {
        self.aggregates.add(entry);
        self.by_teid.insert(entry.teid, entry.seid.index());
        let load = self.on_user_plane.entry(entry.user_plane);
        load.or_insert(Load::NONE).add(Load::lane(entry.access));
        *self.in_place.entry(entry.place()).or_default() += 1;
    }

    /// Forgets the age of sessions whose subscribers have authenticated.
    fn forget_authenticated(&mut self) {
        let mut by_age = std::mem::take(&mut self.by_age);
        by_age.retain(|(_, seid)| self.is_unauthenticated(*seid));
        self.by_age = by_age;
    }

    fn is_unauthenticated(&self, seid: Seid) -> bool {
        let index = self.find(seid);
        index.is_some_and(|index| self[index].is_unauthenticated())
    }

    /// Sets the user name under which a session's subscriber authenticates.
    pub fn set_user(&mut self, index: u32, name: Box<[u8]>) {
        let before = core::mem::replace(&mut self[index].who.username, name);
        self.by_user.remove(&*before, index);
        let entry = &self.entries[index as usize];
        if let Some(name) = entry.user_key() {
            self.by_user.insert(name, index);
        }
    }

    /// Makes a half-open session an online one.
    pub fn open(&mut self, index: u32) {
        self.half_open -= 1;
        self.tally.opened += 1;
        self[index].stage = Stage::Online;
    }

    /// Makes a session one that is closing: its access line is free, and it has no timer.
    pub fn close(&mut self, index: u32, ending: Ending) {
        if self[index].is_half_open() {
            self.half_open -= 1;
        }
        self.tally.ended += 1;
        self.tally.closing += 1;
        let entry = &mut self[index];
        entry.close(ending);
        let line = entry.line_key();
        self.leave_line(line, index);
        let entry = &self.entries[index as usize];
        self.by_user.remove(&*entry.who.username, index);
        self.wheel.cancel(index);
    }

    /// Removes a session that is closing.
    pub fn remove(&mut self, index: u32) -> Box<Entry> {
        let entry = self.entries.remove(index as usize);
        self.aggregates.remove(&entry);
        self.by_teid.remove(&entry.teid);
        self.tally.closing -= 1;
        self.wheel.cancel(index);
        one_less(&mut self.in_place, entry.place());
        if let Some(load) = self.on_user_plane.get_mut(&entry.user_plane) {
            load.remove(Load::lane(entry.access));
        }
        entry
    }

    /// Index of a session, if it still exists.
    pub fn find(&self, seid: Seid) -> Option<u32> {
        let entry = self.get(seid.index())?;
        (entry.seid == seid).then_some(seid.index())
    }

    /// Index of the session with this control tunnel.
    pub fn in_tunnel(&self, teid: u32) -> Option<u32> {
        self.by_teid.get(&teid).copied()
    }

    /// Session of an index, if there is one.
    pub fn get(&self, index: u32) -> Option<&Entry> {
        self.entries.get(index as usize).map(|entry| &**entry)
    }

    /// Session of an index, if there is one.
    pub fn get_mut(&mut self, index: u32) -> Option<&mut Entry> {
        self.entries
            .get_mut(index as usize)
            .map(|entry| &mut **entry)
    }

    /// Indexes of the sessions on an access line that are not closing, in the order in which they began, which is that of generations.
    pub fn on_line(&self, line: LineKey) -> impl Iterator<Item = u32> {
        let found = self.by_line.of(line).filter_map(|index| self.get(index));
        let found = found.filter(|entry| entry.line_key() == line);
        let mut of_line: Vec<Seid> = found.map(|entry| entry.seid).collect();
        of_line.sort_unstable();
        of_line.into_iter().map(Seid::index)
    }

    /// Indexes of the sessions of a user name that are not closing, in the order of these.
    pub fn of_user(&self, name: &[u8]) -> impl Iterator<Item = u32> {
        let found = self.by_user.of(name);
        found.filter(move |index| self.get(*index).and_then(Entry::user_key) == Some(name))
    }

    /// Number of sessions that are not closing in the VLAN of a line.
    pub fn in_vlan(&self, line: LineKey) -> u64 {
        self.in_vlan
            .get(&vlan_of(line))
            .copied()
            .map_or(0, u64::from)
    }

    /// Number of sessions of a segment that are not closing.
    pub fn in_segment(&self, segment: SegmentId) -> u64 {
        self.in_segment.get(&segment).copied().map_or(0, u64::from)
    }

    /// Outer VLANs of a segment with the numbers of their sessions that are not closing, in the order of these.
    pub fn outer_vlans(&self, segment: SegmentId) -> Vec<(Option<u16>, u64)> {
        let whole = (segment, None, None)..=(segment, Some(u16::MAX), Some(u16::MAX));
        let mut outer: Vec<(Option<u16>, u64)> = Vec::new();
        for ((_, vlan, _), sessions) in self.in_vlan.range(whole) {
            match outer.last_mut().filter(|(last, _)| last == vlan) {
                Some((_, all)) => *all += u64::from(*sessions),
                None => outer.push((*vlan, u64::from(*sessions))),
            }
        }
        outer
    }

    /// Segments and groups that have sessions in any stage.
    pub fn places(&self) -> impl Iterator<Item = (SegmentId, GroupId)> {
        self.in_place.keys().copied()
    }

    /// All sessions with their indexes, in the order of these.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &Entry)> {
        let entries = self.entries.iter();
        entries.map(|(index, entry)| (index as u32, &**entry))
    }

    /// All sessions.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.iter().map(|(_, entry)| entry)
    }

    /// The sessions from an index on, without a visit to those before.
    pub fn from(&self, index: u32) -> impl Iterator<Item = (u32, &Entry)> {
        let indexes = index..self.entries.capacity() as u32;
        indexes.filter_map(|index| Some((index, self.get(index)?)))
    }

    /// Number of sessions in any stage.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Number of half-open sessions.
    pub fn half_open(&self) -> usize {
        self.half_open
    }

    /// Number of sessions of a user plane.
    pub fn on_user_plane(&self, plane: UserPlaneId) -> u64 {
        self.on_user_plane.get(&plane).map_or(0, Load::sessions)
    }

    /// The same for the next session of an aggregate.
    pub fn lane_of_aggregate(&self, plane: UserPlaneId, lanes: &Lanes, of: Aggregate) -> u8 {
        let load = self.on_user_plane.get(&plane).unwrap_or(&Load::NONE);
        load.of_aggregate(lanes, &self.aggregates.families(of))
    }

    /// Lane for the next session of a user plane whose workers have these.
    pub fn lightest_lane(&self, plane: UserPlaneId, lanes: &Lanes) -> u8 {
        self.on_user_plane
            .get(&plane)
            .unwrap_or(&Load::NONE)
            .lightest(lanes)
    }

    /// Counts of sessions.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// The oldest session whose subscriber should have authenticated by now. `None` if the oldest one still waits for its PADS.
    pub fn silent(&mut self, now: Duration) -> Option<u32> {
        while let Some((since, seid)) = self.by_age.front().copied() {
            if self.is_unauthenticated(seid) {
                let index = seid.index();
                return (self[index].waits_for_login() && now >= since + PATIENCE).then_some(index);
            }
            self.by_age.pop_front();
        }
        None
    }

    /// Sets the one timer of a session to its next time, which is the last step of whatever happens to it.
    pub fn arm(&mut self, index: u32) {
        if let Some(entry) = self.get_mut(index).filter(|entry| !entry.is_half_open()) {
            entry.under_way.tidy();
        }
        match self.get(index).and_then(Entry::wake_at) {
            Some(at) => self.wheel.arm(index, at),
            None => self.wheel.cancel(index),
        }
    }

    /// Next session whose time has come.
    pub fn pop_due(&mut self, now: Duration) -> Option<u32> {
        self.wheel.pop(now)
    }

    /// Time of the next timer.
    pub fn next_at(&self) -> Option<Duration> {
        self.wheel.next_at()
    }
}

/// Counts one session less. Nothing is kept for those without any.
fn one_less<K: Ord>(counts: &mut BTreeMap<K, u32>, of: K) {
    if let Some(count) = counts.get_mut(&of) {
        *count -= 1;
        if *count == 0 {
            counts.remove(&of);
        }
    }
}

/// What the resource audit compares with the sessions, and mends.
impl SessionTable {
    /// Places in the index by line.
    pub fn lines(&self) -> impl Iterator<Item = Found> {
        self.by_line.iter()
    }

    /// Place of a session in the index by line.
    pub fn line_place(&self, entry: &Entry) -> Found {
        self.by_line.place(entry.line_key(), entry.seid.index())
    }

    /// Puts the index by line together again, and the counts of lines.
    pub fn repair_lines(&mut self) {
        self.by_line.clear();
        self.in_segment.clear();
        self.in_vlan.clear();
        let live = self.entries().filter(|entry| !entry.is_closing());
        let live: Vec<_> = live.map(|e| (e.line_key(), e.seid.index())).collect();
        for (line, index) in live {
            self.join_line(line, index);
        }
    }

    /// Places in the index by user name.
    pub fn users(&self) -> impl Iterator<Item = Found> {
        self.by_user.iter()
    }

    /// Place of a session in the index by user name, if it is to have one.
    pub fn user_place(&self, entry: &Entry) -> Option<Found> {
        let name = entry.user_key()?;
        Some(self.by_user.place(name, entry.seid.index()))
    }

    /// Puts the index by user name together again.
    pub fn repair_users(&mut self) {
        let mut by_user = core::mem::take(&mut self.by_user);
        by_user.clear();
        for entry in self.entries() {
            if let Some(name) = entry.user_key() {
                by_user.insert(name, entry.seid.index());
            }
        }
        self.by_user = by_user;
    }

    pub fn by_age(&self) -> impl Iterator<Item = Seid> {
        self.by_age.iter().map(|(_, seid)| *seid)
    }

    /// Adds sessions that are not in the order of age, and counts half-open sessions again.
    pub fn repair_half_open(&mut self, missing: impl IntoIterator<Item = Seid>) {
        let missing = missing.into_iter().map(|seid| (Duration::ZERO, seid));
        self.by_age.extend(missing);
        self.half_open = self.entries().filter(|entry| entry.is_half_open()).count();
    }

    /// Sessions whose timer is set.
    pub fn armed(&self) -> impl Iterator<Item = u32> {
        self.wheel.armed()
    }

    /// Whether the timer of a session fires at this time.
    pub fn wakes(&self, index: u32, at: Duration) -> bool {
        self.wheel.wakes(index, at)
    }
}

/// What tests of the resource audit put out of order.
#[cfg(test)]
impl SessionTable {
    pub fn wheel(&mut self) -> &mut TimerWheel {
        &mut self.wheel
    }

    /// Puts a session that is none into the indexes by line and by user name.
    pub fn add_stray(&mut self, index: u32) {
        let mac = MacAddr([2, 9, 9, 9, 9, 9]);
        let nobody: LineKey = (SegmentId(0), Some(9), None, mac);
        self.by_line.insert(nobody, index);
        self.by_user.insert(b"nobody".as_slice(), index);
    }

    /// Loses the indexes by line and by user name.
    pub fn lose_indexes(&mut self) {
        self.by_line.clear();
        self.by_user.clear();
    }

    pub fn miscount_half_open(&mut self, by: usize) {
        self.half_open += by;
    }
}

impl Index<u32> for SessionTable {
    type Output = Entry;

    fn index(&self, index: u32) -> &Entry {
        &self.entries[index as usize]
    }
}

impl IndexMut<u32> for SessionTable {
    fn index_mut(&mut self, index: u32) -> &mut Entry {
        &mut self.entries[index as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Started;
    use crate::topology::InstanceId;
    use policy::Access;
    use session::Cause;
    use wire::eth::Tags;

    const PLANE: UserPlaneId = UserPlaneId(1);
    const ENDING: Ending = Ending {
        cause: Cause::UserRequest,
        lasted: Duration::ZERO,
        unix: 0,
    };

    /// A session of the line with this inner VLAN id, at the table's next index.
    fn session(table: &SessionTable, generation: u64, line: u16) -> Entry {
        let seid = Seid::new(generation, table.next_index());
        let circuit = Circuit {
            logical_port: b"access0".as_slice().into(),
            tags: Tags::qinq(100, line),
            mac: MacAddr([2, 0, 0, 0, 0, 1]),
        };
        Entry::new(
            seid,
            PLANE,
            SegmentId(0),
            GroupId(0),
            InstanceId(0),
            circuit,
            Access::Pppoe(1 + line),
        )
    }

    fn filled(lines: u16) -> SessionTable {
        let mut table = SessionTable::new();
        for line in 0..lines {
            let entry = session(&table, 1, line);
            table.insert(Duration::ZERO, entry);
        }
        table
    }

    #[test]
    fn an_aggregate_is_known_as_long_as_it_has_sessions() {
        let lanes = Lanes::even(4);
        let vlan = |vid| Aggregate::Vlan(SegmentId(0), Some(vid));
        let lane = |table: &SessionTable, of| table.lane_of_aggregate(PLANE, &lanes, of) % 16;
        let mut table = SessionTable::new();
        for line in [6, 6 + 16] {
            let entry = session(&table, 1, line);
            table.insert(Duration::ZERO, entry);
        }
        assert_eq!(lane(&table, Aggregate::Segment(SegmentId(0))), 7);
        assert_eq!((lane(&table, vlan(100)), lane(&table, vlan(101))), (7, 1));
        // one that is closing is still the worker's
        table.close(0, ENDING);
        table.close(1, ENDING);
        table.remove(1);
        assert_eq!(lane(&table, vlan(100)), 7);
        table.remove(0);
        assert_eq!(lane(&table, vlan(100)), 1);
        // so it is after a restart
        let stored = session(&table, 1, 6);
        let table = SessionTable::resume(vec![stored]);
        assert_eq!(lane(&table, vlan(100)), 7);
    }

    #[test]
    fn counts_follow_the_stages() {
        let mut table = filled(3);
        let counts = |table: &SessionTable| {
            let tally = table.tally();
            (table.len(), table.half_open(), tally.opened, tally.closing)
        };
        assert_eq!(counts(&table), (3, 3, 0, 0));
        table.open(0);
        assert_eq!(counts(&table), (3, 2, 1, 0));
        table.close(0, ENDING);
        table.close(1, ENDING);
        assert_eq!(counts(&table), (3, 1, 1, 2));
        assert_eq!(table.on_user_plane(PLANE), 3);
        table.remove(0);
        table.remove(1);
        assert_eq!(counts(&table), (1, 1, 1, 0));
        assert!(table.places().eq([(SegmentId(0), GroupId(0))]));
        assert_eq!(table.on_user_plane(PLANE), 1);
        assert_eq!((table.tally().begun, table.tally().ended), (3, 2));
    }

    #[test]
    fn a_line_leads_to_its_sessions_the_oldest_first() {
        let mut table = filled(2);
        let line = table[0].line_key();
        let found = |table: &SessionTable| table.on_line(line).collect::<Vec<u32>>();
        assert_eq!(found(&table), [0]);
        for generation in 2..4 {
            let again = session(&table, generation, 0);
            table.insert(Duration::ZERO, again);
        }
        assert_eq!(found(&table), [0, 2, 3]);
        assert_eq!(
            (table.in_segment(SegmentId(0)), table.in_vlan(line)),
            (4, 3)
        );
        assert_eq!(table.outer_vlans(SegmentId(0)), [(Some(100), 4)]);
        assert_eq!(table.outer_vlans(SegmentId(1)), []);
        table.close(0, ENDING);
        assert_eq!(found(&table), [2, 3]);
        table.remove(0);
        // its index is used again, and age goes before index
        let again = session(&table, 4, 0);
        table.insert(Duration::ZERO, again);
        assert_eq!(found(&table), [2, 3, 0]);
        for index in [3, 2, 0] {
            table.close(index, ENDING);
        }
        assert_eq!(found(&table), [0; 0]);
        assert_eq!(
            (table.in_segment(SegmentId(0)), table.in_vlan(line)),
            (1, 0)
        );
    }

    #[test]
    fn an_identifier_of_before_finds_nothing() {
        let mut table = filled(1);
        let before = table[0].seid;
        table.close(0, ENDING);
        assert_eq!(table.find(before), Some(0), "until it is removed");
        table.remove(0);
        let next = session(&table, 2, 0);
        table.insert(Duration::ZERO, next);
        assert_eq!(table.find(before), None);
        assert_eq!(table.find(Seid::new(2, 0)), Some(0));
    }

    #[test]
    fn the_oldest_session_without_a_login_is_found_after_a_while_and_the_order_stays_short() {
        let mut table = filled(5);
        table.open(0);
        table.close(1, ENDING);
        table.set_user(2, b"alice".as_slice().into());
        assert_eq!(table.silent(PATIENCE - TICK), None);
        assert_eq!(table.silent(PATIENCE), Some(3));
        table.close(3, ENDING);
        assert_eq!(table.silent(PATIENCE), Some(4));
        table.set_user(4, b"bob".as_slice().into());
        assert_eq!(table.silent(PATIENCE), None);
        for line in 10..1000 {
            let entry = session(&table, 1, line);
            let index = table.next_index();
            table.insert(Duration::ZERO, entry);
            table.open(index);
            assert!(table.by_age().count() <= 2 * table.half_open() + 2);
        }
    }

    #[test]
    fn a_timer_is_that_of_the_session_and_ends_with_it() {
        let mut table = filled(2);
        for index in 0..2 {
            let next = session::Deadline::after(Duration::ZERO, Duration::from_secs(5));
            table[index].account.next_interim = next;
            table.arm(index);
        }
        table.close(1, ENDING);
        assert_eq!(table.pop_due(Duration::from_secs(4)), None);
        assert_eq!(table.pop_due(Duration::from_secs(6)), Some(0));
        assert_eq!(table.pop_due(Duration::from_secs(60)), None);
    }

    #[test]
    fn a_restored_table_is_the_one_of_before() {
        let table = SessionTable::new();
        let mut entries: Vec<Entry> = (0..4u16)
            .map(|n| {
                let mut entry = session(&table, u64::from(n) + 1, n % 3);
                entry.seid = Seid::new(u64::from(n) + 1, u32::from(n) * 7);
                entry
            })
            .collect();
        entries[1].stage = Stage::Online;
        entries[1].account.started = Some(Started {
            at: Duration::ZERO,
            before: 0,
            unix: 1,
        });
        entries[2].close(ENDING);
        let (seids, line): (Vec<Seid>, _) = (
            entries.iter().map(|entry| entry.seid).collect(),
            entries[0].line_key(),
        );
        let table = SessionTable::resume(entries);
        let on_line: Vec<u32> = table.on_line(line).collect();
        assert_eq!(on_line, [0, 21], "the fourth is on the first one's line");
        assert!(
            seids
                .iter()
                .all(|seid| table.find(*seid) == Some(seid.index()))
        );
        assert_eq!((table.half_open(), table.tally().closing), (2, 1));
        assert_eq!(table.on_user_plane(PLANE), 4);
        let from: Vec<u32> = table.from(8).map(|(index, _)| index).collect();
        assert_eq!(from, [14, 21]);
    }
}
