//! Whether what packets meet of a session is what the control thread set.
use super::policing::line_place;
use super::{Known, Occupant, Sessions, Up, outer_vid};
use crate::api::SessionIndex;
use crate::inspect::Held;
use crate::tables::policies::Passes;
use policy::Direction;

impl Sessions {
    /// How many places there are for sessions, by index; later ones are empty.
    pub fn places(&self) -> usize {
        self.known.len()
    }

    /// Whether what packets meet of a session says what it was set to.
    pub fn is_whole(&self, index: SessionIndex) -> bool {
        let known = self.known.get(self.place(index)).and_then(Option::as_ref);
        known.is_some_and(|known| {
            let Known {
                entry,
                sources,
                slot,
                ..
            } = known;
            let place = self.slot(entry.port.0, outer_vid(entry.tags), entry.pppoe_session_id);
            let here = self.place(index);
            let (up, down) = (&self.pages.up[*slot as usize], &self.down[here]);
            let policies = Direction::BOTH.iter().all(|direction| {
                let line = self.policing.expected(entry, *direction);
                let held = self.policing.lines.get(line_place(here, *direction));
                line.agrees(held.copied().unwrap_or_default())
            });
            place == Some(*slot)
                && self.pages.occupants[*slot as usize] == Occupant::of(entry)
                && self.policing.passes_down(here) == Passes::of(entry, Direction::Down)
                && *up == up.with(entry, *sources)
                && *down == down.with(entry)
                && policies
        })
    }

    /// Looks at `most` upstream entries from `place` on for those whose session is elsewhere; where to go on.
    pub fn stray_ids(&self, place: u32, most: u32, found: &mut Vec<Held>) -> Option<u32> {
        let end = (place + most).min(self.pages.up.len() as u32);
        for place in place..end {
            let index = self.index(place);
            if self.is_stray(place) {
                let place = self.shard.number(place);
                found.push(Held::StrayId { place, index });
            }
        }
        (end < self.pages.up.len() as u32).then_some(end)
    }

    fn is_stray(&self, place: u32) -> bool {
        if self.pages.up.get(place as usize).is_none_or(Up::vacant) {
            return false;
        }
        let known = self
            .known
            .get(self.place(self.index(place)))
            .and_then(Option::as_ref);
        known.is_none_or(|known| known.slot != place)
    }

    /// Empties an upstream entry whose session is elsewhere.
    pub fn remove_stray(&mut self, place: u32) {
        if !self.is_stray(place) {
            return;
        }
        self.pages.vacate(place);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Sources;
    use super::super::tests::{entry, tables};
    use super::*;
    use policy::Rate;

    fn strays(t: &Sessions) -> Vec<Held> {
        let (mut found, mut from) = (Vec::new(), Some(0));
        while let Some(place) = from {
            from = t.stray_ids(place, 100, &mut found);
        }
        found
    }

    #[test]
    fn an_entry_without_its_session_is_found_and_emptied() {
        let mut t = tables();
        t.set(entry(3, 100, 5), Sources::default(), 0);
        t.set(entry(4, 100, 900), Sources::default(), 0);
        assert_eq!((strays(&t), t.is_whole(SessionIndex(4))), (vec![], true));
        let place = t.slot(0, 100, 900).unwrap();
        t.known[4] = None;
        let index = SessionIndex(4);
        assert_eq!(strays(&t), [Held::StrayId { place, index }]);
        t.remove_stray(place);
        t.remove_stray(t.slot(0, 100, 5).unwrap()); // that one has its session
        assert_eq!((strays(&t), t.is_whole(SessionIndex(3))), (vec![], true));
        // its page is free again
        t.set(entry(4, 200, 7), Sources::default(), 0);
        assert!(t.is_whole(SessionIndex(4)) && t.slot(0, 100, 900) == Some(900 % 256));
    }

    #[test]
    fn what_packets_meet_must_be_what_was_set() {
        let index = SessionIndex(4);
        for damage in [
            |t: &mut Sessions, slot: u32| t.pages.up[slot as usize].v4 += 1,
            |t: &mut Sessions, slot: u32| {
                t.pages.occupants[slot as usize].session = SessionIndex(5)
            },
            |t: &mut Sessions, slot: u32| t.pages.occupants[slot as usize].passes = Passes::Freely,
            |t: &mut Sessions, _| t.down[4].mtu = 9,
            |t: &mut Sessions, _| t.policing.lines[8] = Default::default(),
            |t: &mut Sessions, _| t.policing.down[4] = Passes::ByRate,
            |t: &mut Sessions, _| t.pages.mislead(1, 5),
        ] {
            let mut t = tables();
            let mut entry = entry(4, 100, 5);
            entry.packets.rate_up = Some(Rate::kbps(1000));
            t.set(entry, Sources::default(), 0);
            let slot = t.slot(0, 100, 5).unwrap();
            assert!(t.is_whole(index));
            damage(&mut t, slot);
            assert!(!t.is_whole(index));
        }
    }
}
