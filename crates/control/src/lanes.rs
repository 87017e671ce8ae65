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
