//! Events as they happen. Whoever follows them has a place in the history, and no queue: when more is written, it reads what is behind its
//! place. So nothing of a follower delays the control plane or grows with the events that it has not read.

use super::database::{id, segments};
use super::queries::{HistoryQueries, subject};
use super::rows::row;
use super::{Reader, Subject, event};
use northbound::{EventKind, FollowEventsRequest, FollowEventsResponse, Refusal};
use rusqlite::{Connection, OptionalExtension};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::sleep;

/// Maximum number of clients that follow. Others are refused.
pub(super) const FOLLOWERS: usize = 64;
/// Time in which a follower must read a part.
const READ_TIMEOUT: Duration = Duration::from_secs(60);
/// Events in one part. As many parts wait for each follower as the local API keeps for one answer.
const PAGE: usize = 128;
/// Events that are looked at in one turn.
const LOOK: usize = 2048;
/// Minimum time from one look to the next, however often more is written.
const PACE: Duration = Duration::from_millis(200);

/// Where events are looked at that are still to come: the largest number that SQLite has.
const NO_END: u64 = i64::MAX as u64;

/// Selection of events.
#[derive(Clone, Debug)]
struct Wanted {
    subject: Option<Subject>,
    kinds: Vec<EventKind>,
    /// Times between which they happened: from the first one on, and before the second one.
    times: [u64; 2],
    /// Number of the last event that is looked at.
    end: u64,
}

/// What is behind a place.
struct Page {
    events: Vec<northbound::Event>,
    /// Events up to this one were looked at.
    last: u64,
    /// So many of those behind the place are gone, at least: blocks are counted, and each has an event.
    lost: u64,
    /// There may be more.
    more: bool,
}

impl Reader {
    /// Place where a follower begins who knows the events up to `after`, or wants those from a time on.
    fn begin(&self, after: Option<u64>, since: Option<u64>) -> rusqlite::Result<u64> {
        let connection = self.connect()?;
        let end = id(last_block(&connection)? + 1, 0) - 1;
        match (after, since) {
            // a number of another history, which has come to an end: this one is new as a whole
            (Some(after), _) if after > end => Ok(0),
            (Some(after), _) => Ok(after),
            (None, Some(since)) => {
                let all = segments(&connection, false)?;
                let first = all.iter().find(|s| u64::from(s.latest) >= since);
                Ok(first.map_or(end, |first| id(first.first, 0).saturating_sub(1)))
            }
            (None, None) => Ok(end),
        }
    }

    /// Number of the last event that may have happened before a time.
    fn end(&self, until: u64) -> rusqlite::Result<u64> {
        let all = segments(&self.connect()?, true)?;
        let last = all.iter().find(|s| u64::from(s.earliest) < until);
        Ok(last.map_or(0, |last| id(last.last + 1, 0) - 1))
    }

    /// Events behind a place.
    fn behind(&self, place: u64, wanted: &Wanted) -> rusqlite::Result<Page> {
        let connection = self.connect()?;
        // what leaves the history meanwhile is either told or counted
        let seen = connection.unchecked_transaction()?;
        let oldest = oldest_block(&seen)?;
        let mut behind = seen.prepare(
            "SELECT id, record FROM event WHERE id > ?1 AND id <= ?3 ORDER BY id LIMIT ?2",
        )?;
        let mut records = behind.query((place, LOOK, wanted.end))?;
        let mut page = Page {
            events: Vec::new(),
            last: place.max(id(oldest, 0).saturating_sub(1)),
            lost: oldest.saturating_sub((place >> 16) + 1),
            more: false,
        };
        let mut looked_at = 0;
        while let Some(record) = records.next()? {
            page.last = record.get(0)?;
            let octets: Vec<u8> = record.get(1)?;
            let event = event::read(&octets);
            let [since, until] = wanted.times;
            let event = event.filter(|e| (since..until).contains(&e.unix.into()));
            let event = event.filter(|e| wanted.subject.as_ref().is_none_or(|s| s.matches(e)));
            let event = event.map(|event| row(page.last, &event));
            let is_kind =
                |e: &northbound::Event| wanted.kinds.is_empty() || wanted.kinds.contains(&e.kind());
            page.events.extend(event.filter(is_kind));
            looked_at += 1;
            page.more = looked_at == LOOK || page.events.len() == PAGE;
            if page.more {
                break;
            }
        }
        Ok(page)
    }
}

/// Number of the last block.
fn last_block(connection: &Connection) -> rusqlite::Result<u64> {
    connection.query_row("SELECT last FROM progress", [], |row| row.get(0))
}

/// Number of the oldest block that the history has, or will have if it has none.
fn oldest_block(connection: &Connection) -> rusqlite::Result<u64> {
    let oldest = "SELECT first FROM segment ORDER BY first LIMIT 1";
    let oldest = connection.query_row(oldest, [], |row| row.get(0));
    match oldest.optional()? {
        Some(oldest) => Ok(oldest),
        None => Ok(last_block(connection)? + 1),
    }
}

impl HistoryQueries {
    /// Tells what is behind the follower's place, then what happens, until the follower goes, has all that it wants, or the control plane
    /// ends.
    pub(super) async fn follow(
        &self,
        request: FollowEventsRequest,
        parts: mpsc::Sender<Result<FollowEventsResponse, Refusal>>,
    ) {
        let Ok(_room) = self.followers.try_acquire() else {
            let why = format!("{FOLLOWERS} clients follow the events already: stop one");
            let _ = parts.send(Err(Refusal::Busy(why))).await;
            return;
        };
        if let Err(error) = self.try_follow(request, &parts).await {
            let why = format!("the history cannot be read: {error}");
            let _ = parts.try_send(Err(Refusal::Failed(why)));
        }
    }

    async fn try_follow(
        &self,
        request: FollowEventsRequest,
        parts: &mpsc::Sender<Result<FollowEventsResponse, Refusal>>,
    ) -> rusqlite::Result<()> {
        let (after, since, until) = (request.after, request.since, request.until);
        let mut wanted = Wanted {
            subject: subject(&request.subscriber),
            kinds: request.kinds().collect(),
            times: [since.unwrap_or(0), until.unwrap_or(u64::MAX)],
            end: NO_END,
        };
        let mut written = self.written.clone();
        if let Some(until) = until {
            wanted.end = self.read(move |reader| reader.end(until)).await?;
        }
        let mut place = self.read(move |reader| reader.begin(after, since)).await?;
        let mut is_first = true;
        loop {
            written.borrow_and_update();
            let wanted = wanted.clone();
            let page = self
                .read(move |reader| reader.behind(place, &wanted))
                .await?;
            let complete = until.is_some() && !page.more;
            if is_first || complete || page.last > place {
                let part = FollowEventsResponse {
                    events: page.events,
                    last: page.last,
                    lost: page.lost,
                    complete,
                };
                if parts.send_timeout(Ok(part), READ_TIMEOUT).await.is_err() {
                    return Ok(());
                }
            }
            (place, is_first) = (page.last, false);
            if complete {
                return Ok(());
            }
            if page.more {
                continue;
            }
            sleep(PACE).await;
            tokio::select! {
                more = written.changed() => if more.is_err() {
                    return Ok(());
                },
                () = parts.closed() => return Ok(()),
            }
        }
    }
}
