//! Backlog of the store while its disk is slow, full or failing: records wait within limits, no new session begins, and everything
//! else continues (decision 0014).

use super::{ControlPlane, Now};
use crate::counters::Counter;
use crate::journal::Awaited;
use std::collections::HashSet;

impl ControlPlane {
    /// Checks that new sessions can be stored. A session that cannot be stored cannot come online.
    pub(super) fn takes_sessions(&self, now: Now) -> Result<(), Counter> {
        match self.journal.is_behind(now.at) {
            true => Err(Counter::StoreBehind),
            false => Ok(()),
        }
    }

    /// Merges what waits while the store takes no more batches, so that its memory stays limited.
    pub(super) fn hold_back(&mut self) {
        if self.outbox.is_long() {
            self.store_events();
        }
        if !self.journal.is_untidy() {
            return;
        }
        let (sessions, accounting) = (&self.sessions, &self.accounting);
        let (mut families, mut reports) = (HashSet::new(), HashSet::new());
        self.journal.tidy(|what| match what {
            Awaited::Family {
                seid,
                family,
                asked,
            } => {
                let entry = sessions.find(*seid).map(|index| &sessions[index]);
                entry.is_some_and(|entry| entry.rules.asked[*family as usize] == *asked)
                    && families.insert((*seid, *family as usize))
            }
            Awaited::Record(token) => accounting.has(*token),
            Awaited::Block(..) | Awaited::Answer(_) => true,
            // a user plane that tells it again has given up the request before
            Awaited::Report { id, up_seid } => reports.insert((id.peer, *up_seid)),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Kind;
    use crate::journal::MOST_BATCHES;
    use crate::plane::{Input, Note, PfcpCause};
    use crate::world::{Choice, World};
    use core::time::Duration;

    #[test]
    fn what_waits_for_the_disk_takes_no_more_room_than_what_it_is_about() {
        let mut w = World::new(3, Choice::radius());
        w.radius.accept = vec![(wire::radius::Kind::ACCT_INTERIM_INTERVAL, 60.into())];
        w.dial_all();
        assert_eq!(w.online(), 3);
        let before = w.batches;
        w.stall_disk();
        let mut most = 0;
        for _ in 0..60 {
            (0..100).for_each(|_| w.user_plane_reports(1));
            w.run(Duration::from_secs(10)); // and it gives those up that nobody answers
            most = most.max(w.plane.journal.len());
        }
        assert_eq!(w.batches - before, MOST_BATCHES);
        assert!((2048..=4096).contains(&most), "{most} records wait");
        w.user_plane_reports(1);
        w.disk_recovers();
        let journal = &w.plane.journal;
        assert_eq!((journal.len(), journal.pending_batches()), (0, 0));
        assert_eq!(w.up.told, [PfcpCause::REQUEST_ACCEPTED; 3]);
    }

    fn note(w: &mut World, text: String) {
        let note = Note {
            kind: Kind::Started,
            resource: String::new(),
            by: None,
            text,
        };
        w.plane.handle(w.moment(), Input::Note(note));
        w.settle();
    }

    /// Checks for faults as the runtime does. Returns the raised alarms.
    fn look(w: &mut World) -> Vec<String> {
        w.plane.handle(w.moment(), Input::Look(Vec::new()));
        w.settle();
        let alarms = w.plane.alarm_rows().alarms.into_iter();
        alarms.map(|alarm| alarm.name).collect()
    }

    #[test]
    fn the_events_that_wait_are_cut_into_blocks() {
        let mut w = World::new(1, Choice::default());
        w.dial_all();
        w.stall_disk();
        (0..2000).for_each(|_| note(&mut w, "x".repeat(1000)));
        w.disk_recovers();
        let longest = w.history.iter().map(|(_, block)| block.len()).max();
        assert!(
            w.history
                .iter()
                .map(|(_, block)| block.len())
                .sum::<usize>()
                > 2_000_000
        );
        assert!(
            longest.is_some_and(|longest| longest < 300 << 10),
            "{longest:?}"
        );
    }

    #[test]
    fn events_beyond_64_mib_are_counted_and_raise_an_alarm_until_the_history_has_the_others() {
        let mut w = World::new(1, Choice::default());
        w.dial_all();
        w.stall_disk();
        assert_eq!(look(&mut w), [""; 0]);
        let (long, mut noted) = ("\u{1f4be}".repeat(1024), 0);
        while w.count(Counter::HistoryLost) == 0 {
            note(&mut w, long.clone());
            noted += long.len();
            assert!(noted <= 64 << 20);
        }
        assert_eq!(look(&mut w), ["history-not-written"]);

        w.disk_recovers();
        for _ in 0..60 {
            w.run(Duration::from_secs(1));
            look(&mut w);
        }
        assert_eq!(look(&mut w), [""; 0]);
        let kept: usize = w.history.iter().map(|(_, block)| block.len()).sum();
        assert!(kept >= 64 << 20, "{kept} octets are kept");
        let lost = w.count(Counter::HistoryLost);
        note(&mut w, "kept".into());
        assert_eq!(w.count(Counter::HistoryLost), lost);
    }
}
