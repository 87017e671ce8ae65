//! User planes that subscribers were on. What befell these is told with what befell the subscribers.

use super::candidates::{Candidate, Finder};
use super::database::{Reader, Segment, segments};
use super::event;
use super::search::Query;
use super::sums::{self, Sum, sum_of};
use rusqlite::Connection;

/// If more events of a segment are looked at, its sums say where they were.
const FEW: usize = 8;
/// If more events were looked at, most segments add nothing.
const MANY: usize = 1_024;

impl Reader {
    /// User planes that subscribers were on when so many selected events happened to them, the latest ones.
    pub(super) fn user_planes(
        &self,
        query: &Query,
        events: usize,
        goes_on: impl FnMut() -> bool,
    ) -> Vec<String> {
        let mut planes = Planes {
            query,
            events,
            found: Vec::new(),
        };
        if let Err(error) = planes.find(self, goes_on) {
            self.cannot_read(&error);
        }
        planes.found
    }
}

struct Planes<'a> {
    query: &'a Query,
    /// So many events are still looked at.
    events: usize,
    found: Vec<String>,
}

impl Planes<'_> {
    fn find(&mut self, reader: &Reader, mut goes_on: impl FnMut() -> bool) -> rusqlite::Result<()> {
        let connection = reader.connect()?;
        let mut finder = Finder::new(&connection, self.query)?;
        let all = self.events;
        for segment in segments(&connection, true)? {
            let in_time = self.query.has_times(segment.earliest, segment.latest);
            if in_time == Some(false) {
                continue;
            }
            if self.events == 0 || !goes_on() {
                break;
            }
            let are_many = all - self.events > MANY;
            if !are_many || !self.has_all_of(&connection, &segment)? {
                self.look(&connection, &mut finder, &segment)?;
            }
        }
        Ok(())
    }

    fn has(&self, plane: &str) -> bool {
        plane.is_empty() || self.found.iter().any(|own| own == plane)
    }

    /// Whether every user plane is found already that a segment's events are of.
    fn has_all_of(&self, connection: &Connection, segment: &Segment) -> rusqlite::Result<bool> {
        let sums = Sum::all(connection, segment.first)?;
        let mut groups = sums.iter().flat_map(Sum::groups);
        let is_whole = sums.last().is_some_and(|sum| sum.last >= segment.last);
        Ok(is_whole && groups.all(|group| self.has(&group.user_plane)))
    }

    fn look(
        &mut self,
        connection: &Connection,
        finder: &mut Finder<'_>,
        segment: &Segment,
    ) -> rusqlite::Result<()> {
        let candidates = finder.candidates(segment)?;
        let mut sums = Vec::new();
        if candidates.len() > FEW {
            let _seen = connection.unchecked_transaction()?;
            sums = Sum::all(connection, segment.first)?;
            sums::fill(connection, segment.first, &mut sums)?;
        }
        for Candidate { id, is_certain } in candidates.into_iter().rev() {
            if self.events == 0 {
                break;
            }
            let group = sum_of(&sums, id).and_then(|sum| sum.group(id));
            let group = group.filter(|group| is_certain && group.is_known());
            let record = match group {
                Some(_) => Vec::new(),
                None => finder.read(id)?,
            };
            let event = event::read(&record).filter(|event| self.query.wants(event));
            let of_group = group.map(|group| &*group.user_plane);
            let Some(plane) = of_group.or_else(|| event.map(|event| event.what.user_plane()))
            else {
                continue;
            };
            self.events -= 1;
            if !self.has(plane) {
                self.found.push(plane.to_owned());
            }
        }
        Ok(())
    }
}
