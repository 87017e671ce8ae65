//! Where upstream entries are, by access segment and PPPoE session id.
//!
//! The ids of a segment that have the same high octet, and lanes of the same worker, are a row. A row's entries are in one page, which has a
//! place for each lane of the worker. Rows of different segments of one port share a page as long as no two of their sessions want the
//! same place, so that segments with few sessions take little memory. A packet needs two loads all the same: the row's page, and the
//! entry. The entry verifies the tags, which name the segment, and the segment has one row in the page.
use super::Up;
use crate::api::{PortIndex, SessionEntry, SessionIndex};
use crate::shard::Ids;
use crate::tables::policies::Passes;
use policy::Direction;

/// The pages of an access segment's rows: 0 for those that have no session.
type Directory = [u16; 256];

/// The most pages: enough for rows of one session each, as long as there are not very many.
const MOST_PAGES: usize = 1 << 16;

/// A row: the bank of its segment, the worker of the ids' lanes, and the ids' high octet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row(u32);

impl Row {
    const NONE: Row = Row(u32::MAX);

    fn of(bank: usize, worker: u16, id: u16) -> Self {
        Row((bank as u32) << 12 | u32::from(worker & 0xf) << 8 | u32::from(id >> 8))
    }

    pub fn bank(self) -> usize {
        (self.0 >> 12) as usize
    }

    /// The worker of the ids' lanes. VLANs that were moved have ids of other workers' lanes.
    fn worker(self) -> u16 {
        (self.0 >> 8) as u16 & 0xf
    }

    fn high(self) -> usize {
        (self.0 & 0xff) as usize
    }
}

/// Whose an upstream entry is, and what packets from there pass: eight in a line of the cache, so that rules are asked before the
/// entry's own line has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Occupant {
    pub session: SessionIndex,
    pub passes: Passes,
}

impl Occupant {
    const NONE: Occupant = Occupant {
        session: SessionIndex(0),
        passes: Passes::Freely,
    };

    pub fn of(entry: &SessionEntry) -> Self {
        Occupant {
            session: entry.index,
            passes: Passes::of(entry, Direction::Up),
        }
    }
}

const _: () = assert!(size_of::<Occupant>() == 8);

/// Upstream entries and their pages.
pub(super) struct Pages {
    pub ids: Ids,
    /// Places of a page.
    places: u32,
    /// One for each access segment; those of segments that are gone are empty.
    directories: Vec<Directory>,
    /// The same of lanes of other workers, for each of these: of segments with VLANs that were moved.
    foreign: Vec<Option<Box<[Directory]>>>,
    /// Page 0 is vacant and stays so: what has no page points there.
    pub up: dpdk::Table<Up>,
    /// Whose the entries are, and in which rows.
    pub occupants: dpdk::Table<Occupant>,
    rows: Vec<Row>,
    /// Sessions in each page.
    used: Vec<u16>,
    free: Vec<u32>,
    /// For each port the page that new rows join; 0 for none.
    open: Box<[u32]>,
    /// The most pages.
    most: usize,
}

/// Where a session's entry may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vacancy {
    /// Here.
    Place,
    /// Another session of the same segment has the id.
    Taken(SessionIndex),
    /// There is no page left.
    Full,
}

impl Pages {
    /// Pages for so many sessions, on ports that are yet to come.
    pub fn new(
        sessions: usize,
        interfaces: u16,
        segments: usize,
        ids: Ids,
    ) -> Result<Self, dpdk::Error> {
        let places = ids.most;
        let most = (1 + sessions).min(MOST_PAGES);
        let mut pages = Pages {
            ids,
            places,
            directories: Vec::with_capacity(segments),
            foreign: Vec::with_capacity(segments),
            up: dpdk::Table::new(most * places as usize)?,
            occupants: dpdk::Table::new(most * places as usize)?,
            rows: Vec::new(),
            used: Vec::new(),
            free: Vec::new(),
            open: vec![0; interfaces.into()].into(),
            most,
        };
        pages.add();
        Ok(pages)
    }

    /// Gives a port segments, of which the last has this bank. Sessions from before share no page with new rows.
    pub fn set_segments(&mut self, PortIndex(port): PortIndex, banks: usize) {
        if banks > self.directories.len() {
            self.directories.resize(banks, [0; 256]);
            self.foreign.resize(banks, None);
        }
        self.open[usize::from(port)] = 0;
    }

    /// The place of a session id, vacant or not, or that of a session in another segment of the port.
    pub fn slot(&self, bank: usize, id: u16) -> u32 {
        self.slot_of::<true>(bank, id)
    }

    /// The same; without `FOREIGN`, of an id whose lane is the worker's.
    #[inline(always)]
    pub fn slot_of<const FOREIGN: bool>(&self, bank: usize, id: u16) -> u32 {
        let page = match FOREIGN && !self.ids.has(id) {
            false => u32::from(self.directories[bank][usize::from(id >> 8)]),
            true => self.page(self.row_of(bank, id)),
        };
        // Of the vacant page any place will do.
        page * self.places + self.ids.place(id)
    }

    fn row_of(&self, bank: usize, id: u16) -> Row {
        Row::of(bank, self.ids.of(id), id)
    }

    /// The row of an entry that is not vacant.
    pub fn row(&self, slot: u32) -> Row {
        self.rows[slot as usize]
    }

    fn page(&self, row: Row) -> u32 {
        if row.worker() == self.ids.own {
            return self.directories[row.bank()][row.high()].into();
        }
        let foreign = self.foreign[row.bank()].as_deref();
        foreign.map_or(0, |all| all[usize::from(row.worker())][row.high()].into())
    }

    fn is_vacant(&self, page: u32, place: u32) -> bool {
        self.up[(page * self.places + place) as usize].vacant()
    }

    /// Whether a new row may be in the page that its port's new rows join.
    fn may_join(&self, PortIndex(port): PortIndex, bank: usize, id: u16) -> bool {
        let open = self.open[usize::from(port)];
        let foreign = self.foreign[bank].iter().flat_map(|all| all.iter());
        let mut all = foreign.chain([&self.directories[bank]]);
        let mut has_row = || all.any(|pages| pages.contains(&(open as u16)));
        open != 0 && self.is_vacant(open, self.ids.place(id)) && !has_row()
    }

    /// Whether there is a place for a session.
    pub fn vacancy(&self, PortIndex(port): PortIndex, bank: usize, id: u16) -> Vacancy {
        let (row, slot) = (self.row_of(bank, id), self.slot(bank, id));
        let vacant = match self.page(row) {
            0 => self.may_join(PortIndex(port), bank, id),
            page => self.is_vacant(page, self.ids.place(id)),
        };
        if vacant {
            Vacancy::Place
        } else if self.page(row) != 0 && self.row(slot) == row {
            Vacancy::Taken(self.occupants[slot as usize].session)
        } else if self.free.is_empty() && self.used.len() == self.most {
            Vacancy::Full
        } else {
            Vacancy::Place
        }
    }

    /// Puts an entry into the place that [`Pages::vacancy`] found; where it is. A row whose place another one has moves to a page of its
    /// own; `moved` is told where its sessions are then.
    pub fn occupy(
        &mut self,
        PortIndex(port): PortIndex,
        (bank, id): (usize, u16),
        (up, occupant): (Up, Occupant),
        moved: impl FnMut(SessionIndex, u32),
    ) -> u32 {
        let row = self.row_of(bank, id);
        match self.page(row) {
            0 => {
                if !self.may_join(PortIndex(port), bank, id) {
                    self.open[usize::from(port)] = self.take();
                }
                self.enter(row, self.open[usize::from(port)]);
            }
            page if !self.is_vacant(page, self.ids.place(id)) => self.move_row(row, page, moved),
            _ => {}
        }
        let slot = self.slot(bank, id);
        self.up[slot as usize] = up;
        self.occupants[slot as usize] = occupant;
        self.rows[slot as usize] = row;
        self.used[(slot / self.places) as usize] += 1;
        slot
    }

    fn enter(&mut self, row: Row, page: u32) {
        let page = page as u16;
        if row.worker() == self.ids.own {
            self.directories[row.bank()][row.high()] = page;
            return;
        }
        let none = || vec![[0; 256]; usize::from(self.ids.workers())].into();
        let foreign = self.foreign[row.bank()].get_or_insert_with(none);
        foreign[usize::from(row.worker())][row.high()] = page;
    }

    fn places_of(&self, page: u32) -> core::ops::Range<usize> {
        let begin = (page * self.places) as usize;
        begin..begin + self.places as usize
    }

    fn move_row(&mut self, row: Row, from: u32, mut moved: impl FnMut(SessionIndex, u32)) {
        let to = self.take();
        self.enter(row, to);
        for (old, new) in self.places_of(from).zip(self.places_of(to)) {
            if self.rows[old] == row {
                self.up.swap(old, new);
                self.rows.swap(old, new);
                self.occupants.swap(old, new);
                self.used[from as usize] -= 1;
                self.used[to as usize] += 1;
                moved(self.occupants[new].session, new as u32);
            }
        }
    }

    /// A vacant page.
    fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| self.add())
    }

    fn add(&mut self) -> u32 {
        let page = self.used.len() as u32;
        let places = (page as usize + 1) * self.places as usize;
        self.up.resize(places, Up::NONE);
        self.occupants.resize(places, Occupant::NONE);
        self.rows.resize(places, Row::NONE);
        self.used.push(0);
        page
    }

    /// Empties a place; frees its page if it was the last there.
    pub fn vacate(&mut self, slot: u32) -> Up {
        let (page, row) = (slot / self.places, self.row(slot));
        self.rows[slot as usize] = Row::NONE;
        if !self.rows[self.places_of(page)].contains(&row) {
            self.enter(row, 0);
        }
        self.used[page as usize] -= 1;
        if self.used[page as usize] == 0 {
            let open = self.open.iter_mut().filter(|open| **open == page);
            open.for_each(|open| *open = 0);
            self.free.push(page);
        }
        self.occupants[slot as usize] = Occupant::NONE;
        core::mem::replace(&mut self.up[slot as usize], Up::NONE)
    }
}

#[cfg(test)]
impl Pages {
    /// Whether nothing is left of any session.
    pub fn are_empty(&self) -> bool {
        self.rows_with_sessions() == 0
            && self.up.iter().all(Up::vacant)
            && self.free.len() + 1 == self.used.len()
    }

    pub fn rows_with_sessions(&self) -> usize {
        let foreign = self.foreign.iter().flatten().flat_map(|all| all.iter());
        let rows = self.directories.iter().chain(foreign).flatten();
        rows.filter(|page| **page != 0).count()
    }

    /// Points a row elsewhere.
    pub fn mislead(&mut self, bank: usize, id: u16) {
        self.enter(self.row_of(bank, id), 0);
    }

    /// Octets that all of it takes.
    pub fn octets(&self) -> usize {
        let place = size_of::<Up>() + size_of::<Occupant>() + size_of::<Row>();
        self.up.len() * place + size_of_val(&self.directories[..])
    }

    /// How many pages there are, with the vacant one.
    pub fn count(&self) -> usize {
        self.used.len()
    }
}
