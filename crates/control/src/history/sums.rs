//! Sums of events: how many of some thousand are of which kind, on which user plane, from when to when, and which ones. So events are counted
//! that nobody has to read. A segment's sums stand among its keys, under letters that no question looks for: so they leave with it, and an
//! earlier version leaves them alone. What it adds is behind the last sum, and is read until it is summed up as well.

use super::database::{Segment, id};
use super::event::{self, Event};
use super::rows::kind;
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use serde::{Deserialize, Serialize};

/// First octets of the two keys of a sum: what it says of all its events, and of each. The number of the last block follows, and then that.
const OF_ALL: u8 = b'd';
const OF_EACH: u8 = b'e';
/// Octets before what a sum says.
const HEADER: usize = 9;
const FIND: &str = "SELECT key FROM key WHERE segment = ?1 AND key >= ?2 AND key < ?3 ORDER BY key";
const FIND_LAST: &str =
    "SELECT substr(key, 1, 9) FROM key WHERE segment = ?1 AND key >= ?2 AND key < ?3
    ORDER BY key DESC LIMIT 1";

/// Events of some blocks that follow each other.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Sum {
    /// Times of the first and last event, in seconds since 1970.
    pub earliest: u32,
    pub latest: u32,
    /// Groups of events. The first one has those that only a later version can read.
    groups: Vec<Group>,
    /// The last block.
    #[serde(skip)]
    pub last: u64,
    /// Blocks, and the number of events before each. Empty until they are read ([`fill`]).
    #[serde(skip)]
    blocks: Vec<(u64, u32)>,
    /// Group of each event. Empty until they are read.
    #[serde(skip)]
    of: Vec<u8>,
}

/// Events of one kind on one user plane.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Group {
    /// Number of the kind; 0: unknown.
    pub kind: u8,
    /// Empty: none.
    pub user_plane: String,
    /// How many.
    pub events: u32,
}

impl Group {
    fn of(event: Option<&Event<'_>>) -> Self {
        let user_plane = event.map_or("", |event| event.what.user_plane());
        let kind = event.and_then(|event| u8::try_from(kind(&event.what) as i32).ok());
        Group {
            kind: kind.unwrap_or(0),
            user_plane: user_plane.to_owned(),
            events: 0,
        }
    }

    pub fn is_known(&self) -> bool {
        self.kind != 0
    }
}

impl Sum {
    /// Reads the sums of a segment, in order, without the groups of events.
    pub fn all(connection: &Connection, segment: u64) -> rusqlite::Result<Vec<Self>> {
        let mut find = connection.prepare_cached(FIND)?;
        let sums = find.query_map(params![segment, [OF_ALL], [OF_ALL + 1]], |row| {
            Self::read(row.get_ref(0)?.as_blob()?)
        })?;
        sums.collect()
    }

    fn read(key: &[u8]) -> rusqlite::Result<Self> {
        let octets = key.get(HEADER..).unwrap_or_default();
        let sum = postcard::from_bytes::<Sum>(octets);
        let mut sum = sum.map_err(|why| damaged(why.into()))?;
        sum.last = last_of(key);
        Ok(sum)
    }

    /// Both keys.
    fn keys(&self) -> [Vec<u8>; 2] {
        let head = |letter: u8| [&[letter], &self.last.to_be_bytes()[..]].concat();
        let sized = "a sum has a size that serde can state";
        let of_all = postcard::to_extend(self, head(OF_ALL)).expect(sized);
        let mut of_each = postcard::to_extend(&self.blocks, head(OF_EACH)).expect(sized);
        of_each.extend(&self.of);
        [of_all, of_each]
    }

    /// How many events.
    pub fn events(&self) -> u64 {
        self.groups().map(|group| u64::from(group.events)).sum()
    }

    /// Groups that occur.
    pub fn groups(&self) -> impl Iterator<Item = &Group> {
        self.groups.iter().filter(|group| group.events > 0)
    }

    /// Identity behind those of its events.
    pub fn end(&self) -> u64 {
        id(self.last.saturating_add(1), 0)
    }

    /// The group of an event.
    pub fn group(&self, event: u64) -> Option<&Group> {
        let behind = self
            .blocks
            .partition_point(|(number, _)| id(*number, 0) <= event);
        let (number, before) = self.blocks.get(behind.checked_sub(1)?)?;
        let place = *before as usize + (event - id(*number, 0)) as usize;
        self.groups.get(usize::from(*self.of.get(place)?))
    }

    /// Visits the identities of the events of some groups, in order.
    pub fn visit(&self, wanted: impl Fn(&Group) -> bool, mut tell: impl FnMut(u64, &Group)) {
        let groups = self.groups.iter();
        let groups = groups.map(|group| Some(group).filter(|group| wanted(group)));
        let groups: Vec<Option<&Group>> = groups.collect();
        let ends = self.blocks.iter().skip(1).map(|(_, before)| *before);
        let ends = ends.chain([self.of.len() as u32]);
        for ((number, begins), ends) in self.blocks.iter().zip(ends) {
            let of = self.of.get(*begins as usize..ends as usize);
            for (place, of) in of.into_iter().flatten().enumerate() {
                if let Some(Some(group)) = groups.get(usize::from(*of)) {
                    tell(id(*number, place), group);
                }
            }
        }
    }

    /// Adds an event of the last block, or of the next one.
    fn add(&mut self, block: u64, event: Option<&Event<'_>>) {
        if self.of.is_empty() {
            *self = Sum {
                earliest: u32::MAX,
                groups: vec![Group::default()],
                ..Sum::default()
            };
        }
        if self.of.is_empty() || self.last != block {
            self.blocks.push((block, self.of.len() as u32));
        }
        self.last = block;
        if let Some(event) = event {
            self.earliest = self.earliest.min(event.unix);
            self.latest = self.latest.max(event.unix);
        }
        let new = Group::of(event);
        let is_same = |own: &Group| own.kind == new.kind && own.user_plane == new.user_plane;
        let place = self.groups.iter().position(is_same).unwrap_or_else(|| {
            self.groups.push(new);
            self.groups.len() - 1
        });
        // whoever asks looks at those for which there is no group
        let place = u8::try_from(place).unwrap_or(0);
        self.groups[usize::from(place)].events += 1;
        self.of.push(place);
    }
}

/// Reads the groups of the events of all sums of a segment.
pub(super) fn fill(
    connection: &Connection,
    segment: u64,
    sums: &mut [Sum],
) -> rusqlite::Result<()> {
    let mut find = connection.prepare_cached(FIND)?;
    let mut keys = find.query(params![segment, [OF_EACH], [OF_EACH + 1]])?;
    for sum in sums {
        let row = keys.next()?;
        let key = row.map(|row| row.get_ref(0)).transpose()?;
        let key = key.map_or(Ok(&[][..]), |key| key.as_blob())?;
        let each = postcard::take_from_bytes(key.get(HEADER..).unwrap_or_default());
        let (blocks, of) = each.map_err(|why| damaged(why.into()))?;
        (sum.blocks, sum.of) = (blocks, of.to_vec());
        if last_of(key) != sum.last || sum.of.len() as u64 != sum.events() {
            return Err(damaged("a sum of events contradicts itself".into()));
        }
    }
    Ok(())
}

fn damaged(why: Box<dyn std::error::Error + Send + Sync>) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(0, Type::Blob, why)
}

fn last_of(key: &[u8]) -> u64 {
    let last = key.get(1..).and_then(<[u8]>::first_chunk);
    last.map_or(0, |last| u64::from_be_bytes(*last))
}

/// The sum of a segment that an event is in.
pub(super) fn sum_of(sums: &[Sum], event: u64) -> Option<&Sum> {
    sums.get(sums.partition_point(|sum| sum.end() <= event))
}

/// The last block of a segment that is summed up.
pub(super) fn last(connection: &Connection, segment: u64) -> rusqlite::Result<Option<u64>> {
    let mut find = connection.prepare_cached(FIND_LAST)?;
    let key = find.query_row(params![segment, [OF_EACH], [OF_EACH + 1]], |row| {
        Ok(last_of(row.get_ref(0)?.as_blob()?))
    });
    key.optional()
}

/// Sums up what is behind the last sum of a segment, so many events at once. `is_whole`: the rest, too. Returns how many are left.
pub(super) fn add(
    connection: &mut Connection,
    segment: &Segment,
    at_once: usize,
    is_whole: bool,
) -> rusqlite::Result<u32> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let next = last(&transaction, segment.first)?;
    let next = next.map_or(segment.first, |last| last.saturating_add(1));
    let [_, end] = segment.ids();
    let mut sum = Sum::default();
    let mut read = transaction
        .prepare_cached("SELECT id, record FROM event WHERE id >= ?1 AND id < ?2 ORDER BY id")?;
    let mut events = read.query([id(next, 0), end])?;
    while let Some(row) = events.next()? {
        let block = row.get::<_, u64>(0)? >> 16;
        if sum.of.len() >= at_once && block != sum.last {
            save(&transaction, segment, &sum)?;
            sum = Sum::default();
        }
        sum.add(block, event::read(row.get_ref(1)?.as_blob()?).as_ref());
    }
    drop(events);
    drop(read);
    if is_whole && !sum.of.is_empty() {
        sum.last = segment.last; // it may have no event
        save(&transaction, segment, &sum)?;
        sum = Sum::default();
    }
    transaction.commit()?;
    Ok(sum.of.len() as u32)
}

fn save(connection: &Connection, segment: &Segment, sum: &Sum) -> rusqlite::Result<()> {
    let mut save = connection.prepare_cached("INSERT INTO key VALUES (?1, ?2, ?3)")?;
    for key in sum.keys() {
        save.execute(params![segment.first, key, id(sum.last, 0)])?;
    }
    Ok(())
}
