//! How many sessions the workers of a user plane have, and the lane of the next one.
//!
//! The low octet of a PPPoE session id is its lane, and a user plane says which worker has which lane (`docs/decisions/0023-lanes.md`).

use policy::Access;
use wire::pfcp::Lanes;

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

    /// Lane for the next session of an aggregate: of the lanes of its worker the one with the fewest sessions. Aggregates with successive
    /// numbers have different workers.
    pub fn of_aggregate(&self, lanes: &Lanes, aggregate: u32) -> u8 {
        let worker = lanes.0[1 + aggregate as usize % 255];
        let of_worker = (1..=u8::MAX).filter(|lane| lanes.0[usize::from(*lane)] == worker);
        let lightest = of_worker.min_by_key(|lane| self.0[usize::from(*lane)]);
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

    #[test]
    fn sessions_of_an_aggregate_have_one_worker_and_aggregates_have_several() {
        let mut load = Load::NONE;
        let lanes = Lanes::even(4);
        let mut workers = [0; 4];
        for aggregate in 0..8 {
            let of_first = lanes.0[usize::from(load.of_aggregate(&lanes, aggregate))];
            workers[usize::from(of_first)] += 1;
            for _ in 0..300 {
                let lane = load.of_aggregate(&lanes, aggregate);
                load.add(lane);
                assert_eq!(lanes.0[usize::from(lane)], of_first);
            }
        }
        assert_eq!(workers, [2; 4]);
        assert!(load.0.iter().all(|sessions| *sessions <= 10), "{load:?}");
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
