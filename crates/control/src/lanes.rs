//! How many sessions the workers of a user plane have, and the lane of the next one.
//!
//! The low octet of a PPPoE session id is its lane, and a user plane says which worker has which lane (`docs/decisions/0023-lanes.md`).

use crate::entry::Entry;
use crate::topology::SegmentId;
use policy::Access;
use std::collections::BTreeMap;
use wire::pfcp::Lanes;

/// Number of families of lanes: the most workers that a user plane has.
const FAMILIES: usize = 16;

/// Family of a lane: its low four bits. Of any number of workers that have the lanes in turn, one has all lanes of a family. So sessions
/// of one family stay together when the number of workers changes.
fn family(lane: u8) -> usize {
    usize::from(lane) % FAMILIES
}

/// Sessions that may share a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Aggregate {
    /// Those of an access segment.
    Segment(SegmentId),
    /// Those of an outer VLAN, or those without tags.
    Vlan(SegmentId, Option<u16>),
}

/// Number of an aggregate's sessions in each family of lanes.
type Families = [u32; FAMILIES];

/// The families in which aggregates have their sessions, whether they share a rate or not: they may later.
#[derive(Clone, Debug, Default)]
pub(crate) struct AggregateFamilies(BTreeMap<Aggregate, Families>);

impl AggregateFamilies {
    /// The aggregates of a session, and the family of its lane.
    fn of(entry: &Entry) -> ([Aggregate; 2], usize) {
        let aggregates = [
            Aggregate::Segment(entry.segment),
            Aggregate::Vlan(entry.segment, entry.s_vlan()),
        ];
        (aggregates, family(Load::lane(entry.access)))
    }

    pub fn add(&mut self, entry: &Entry) {
        let (aggregates, family) = Self::of(entry);
        for aggregate in aggregates {
            self.0.entry(aggregate).or_default()[family] += 1;
        }
    }

    pub fn remove(&mut self, entry: &Entry) {
        let (aggregates, family) = Self::of(entry);
        for aggregate in aggregates {
            if let Some(families) = self.0.get_mut(&aggregate) {
                families[family] = families[family].saturating_sub(1);
                if *families == Families::default() {
                    self.0.remove(&aggregate);
                }
            }
        }
    }

    /// Sessions of an aggregate in each family.
    pub fn families(&self, aggregate: Aggregate) -> Families {
        self.0.get(&aggregate).copied().unwrap_or_default()
    }
}

/// Which lanes a session may have, the best ones first.
#[derive(Clone, Copy)]
pub struct LaneChoice {
    lanes: Lanes,
    best: u8,
}

impl LaneChoice {
    /// This lane. If it has no free id, one of its family, then one of its worker: a home or an aggregate has one worker. Any other
    /// lane is the last resort.
    pub fn new(lanes: Lanes, best: u8) -> Self {
        LaneChoice { lanes, best }
    }

    /// How good a lane is: 0 is best.
    pub fn rank(&self, lane: u8) -> u8 {
        let worker = |lane: u8| self.lanes.0[usize::from(lane)];
        if lane == self.best {
            0
        } else if worker(lane) != worker(self.best) {
            3
        } else if family(lane) != family(self.best) {
            2
        } else {
            1
        }
    }

    /// All lanes, the best ones first.
    pub fn all(&self) -> impl Iterator<Item = u8> {
        let of_rank = move |rank| (0..=u8::MAX).filter(move |lane| self.rank(*lane) == rank);
        core::iter::once(self.best).chain((1..=3).flat_map(of_rank))
    }
}

/// Number of sessions in each lane of a user plane.
#[derive(Clone, Debug)]
pub(crate) struct Load([u32; 256]);

impl Load {
    /// No sessions.
    pub const NONE: Load = Load([0; 256]);

    /// Lane of a session.
    pub fn lane(access: Access) -> u8 {
        let Access::Pppoe(id) = access;
        Lanes::of(id)
    }

    pub fn add(&mut self, lane: u8) {
        self.0[usize::from(lane)] += 1;
    }

    pub fn remove(&mut self, lane: u8) {
        let sessions = &mut self.0[usize::from(lane)];
        *sessions = sessions.saturating_sub(1);
    }

    /// Number of sessions.
    pub fn sessions(&self) -> u64 {
        self.0.iter().copied().map(u64::from).sum()
    }

    /// Lane for the next session of an aggregate that has so many sessions in each family: of the family with most of them, and of the
    /// worker with most, the lane with the fewest sessions of the user plane. The first session has the [lightest](Load::lightest).
    pub fn of_aggregate(&self, lanes: &Lanes, families: &Families) -> u8 {
        let worker_of = |family: usize| lanes.0[FAMILIES + family];
        let at_worker = |worker: u8| -> u64 {
            let sessions = families.iter().enumerate();
            let there = sessions.filter(|(family, _)| worker_of(*family) == worker);
            there.map(|(_, sessions)| u64::from(*sessions)).sum()
        };
        let used = (0..FAMILIES).filter(|family| families[*family] > 0);
        let best = used.max_by_key(|of| (at_worker(worker_of(*of)), families[*of]));
        let Some(best) = best else {
            return self.lightest(lanes);
        };
        let is_there =
            |lane: &u8| family(*lane) == best && lanes.0[usize::from(*lane)] == worker_of(best);
        let there = (1..=u8::MAX).filter(is_there);
        let lightest = there.min_by_key(|lane| self.0[usize::from(*lane)]);
        lightest.unwrap_or_default()
    }

    /// Lane for the next session: of the worker with the fewest sessions, the one with the fewest. Lane 0 comes last, because
    /// 0 is no session id.
    pub fn lightest(&self, lanes: &Lanes) -> u8 {
        let mut workers = [0_u32; 256];
        for (worker, sessions) in lanes.0.into_iter().zip(self.0) {
            workers[usize::from(worker)] += sessions;
        }
        let (mut lightest, mut least) = (0, u64::MAX);
        for lane in (1..=u8::MAX).chain([0]) {
            let at = usize::from(lane);
            let of_worker = u64::from(workers[usize::from(lanes.0[at])]);
            let load = of_worker << 32 | u64::from(self.0[at]);
            if load < least {
                (lightest, least) = (lane, load);
            }
        }
        lightest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds sessions to an aggregate; their lanes.
    fn grow(load: &mut Load, lanes: &Lanes, families: &mut Families, sessions: u32) -> Vec<u8> {
        let next = |_| {
            let lane = load.of_aggregate(lanes, families);
            load.add(lane);
            families[family(lane)] += 1;
            lane
        };
        (0..sessions).map(next).collect()
    }

    #[test]
    fn an_aggregate_has_one_worker_also_after_their_number_has_changed() {
        let numbers = [1, 2, 4, 8, 16];
        for (before, after) in numbers.into_iter().flat_map(|n| numbers.map(|m| (n, m))) {
            let mut load = Load::NONE;
            let mut all: [Families; 16] = Default::default();
            let mut used = [[0; 16]; 16];
            for workers in [before, after] {
                let lanes = Lanes::even(workers);
                for (families, used) in all.iter_mut().zip(&mut used) {
                    for lane in grow(&mut load, &lanes, families, 300) {
                        used[family(lane)] += 1;
                    }
                    let mut of = (0..16).filter(|family| used[*family] > 0);
                    let one = of.next().expect("a family") % usize::from(workers);
                    assert!(of.all(|family| family % usize::from(workers) == one));
                }
                let most = load.0[1..].iter().max();
                assert!(most <= Some(&40), "{before} {after}: {load:?}");
            }
        }
    }

    #[test]
    fn aggregates_have_the_workers_in_turn() {
        let mut load = Load::NONE;
        let lanes = Lanes::even(4);
        let mut workers = [0; 4];
        for _ in 0..8 {
            for lane in grow(&mut load, &lanes, &mut Families::default(), 300) {
                workers[usize::from(lanes.0[usize::from(lane)])] += 1;
            }
        }
        assert_eq!(workers, [600; 4]);
    }

    #[test]
    fn sessions_from_before_a_rate_say_which_worker_it_will_be() {
        let mut families = Families::default();
        // two families of worker 1, of two workers, have more than one of worker 0
        (families[3], families[5], families[4]) = (20, 15, 30);
        let lane = Load::NONE.of_aggregate(&Lanes::even(2), &families);
        assert_eq!(family(lane), 3);
        // a table that is not even
        let mut lanes = Lanes::even(2);
        lanes.0[..0x80].fill(7);
        let lane = Load::NONE.of_aggregate(&lanes, &families);
        assert_eq!((family(lane), lanes.0[usize::from(lane)]), (4, 7));
    }

    #[test]
    fn a_full_lane_is_followed_by_those_of_its_family_and_of_its_worker() {
        let choice = LaneChoice::new(Lanes::even(4), 37);
        let all: Vec<u8> = choice.all().collect();
        assert_eq!((all.len(), all[0]), (256, 37));
        assert!(all[1..16].iter().all(|lane| lane % 16 == 5));
        assert!(
            all[16..64]
                .iter()
                .all(|lane| lane % 4 == 1 && lane % 16 != 5)
        );
        assert!(all[64..].iter().all(|lane| lane % 4 != 1));
    }

    #[test]
    fn the_next_session_is_the_least_loaded_workers() {
        let mut load = Load::NONE;
        let lanes = Lanes::even(4);
        let mut next = || {
            let lane = load.lightest(&lanes);
            load.add(lane);
            lane
        };
        let first: Vec<u8> = (0..300).map(|_| next()).collect();
        let in_turn = (1..=255).chain([0]).cycle().take(300);
        assert!(first.iter().copied().eq(in_turn));

        // worker 3 loses its sessions, and gets the next ones
        (3..=255).step_by(4).for_each(|lane| load.remove(lane));
        let next: Vec<u8> = (0..64)
            .map(|_| {
                let lane = load.lightest(&lanes);
                load.add(lane);
                lane
            })
            .collect();
        assert!(next.iter().all(|lane| lane % 4 == 3));
        assert_eq!(load.sessions(), 300);
    }
}
