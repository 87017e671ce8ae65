//! Looks for the sessions that RADIUS servers mean with identifiers to which no index leads, such as addresses.
//!
//! All sessions are compared with them, in parts, so that nothing waits for very many sessions. Requests that come meanwhile are looked
//! for together afterwards.

use super::one;
use crate::plane::call::FILTERED;
use crate::plane::{ControlPlane, Now};
use crate::topology::Seid;
use aaa::{DynamicOutcome, DynamicRequest, ErrorCause, RequestKey};
use core::net::IpAddr;
use core::time::Duration;

/// Maximum number of requests whose sessions are looked for.
const MOST_SEARCHES: usize = 64;
/// Maximum number of comparisons in a part.
const COMPARED: usize = 16_384;
/// Pause between two parts, in which others are served.
const PAUSE: Duration = Duration::from_millis(1);

/// Request whose session is looked for.
pub(super) struct Search {
    key: RequestKey,
    by: IpAddr,
    request: DynamicRequest,
    /// Up to two sessions, as one alone may be meant.
    found: Vec<Seid>,
}

impl Search {
    pub fn new(key: RequestKey, by: IpAddr, request: DynamicRequest) -> Self {
        Search {
            key,
            by,
            request,
            found: Vec::new(),
        }
    }
}

/// Requests whose sessions are looked for.
#[derive(Default)]
pub(in crate::plane) struct Searches {
    under_way: Vec<Search>,
    /// Those that came since.
    waiting: Vec<Search>,
    /// Place of the next session to compare.
    next: u32,
    /// When it is.
    at: Duration,
}

impl Searches {
    fn all(&self) -> impl Iterator<Item = &Search> {
        self.under_way.iter().chain(&self.waiting)
    }

    /// Requests that are not answered yet.
    pub fn keys(&self) -> impl Iterator<Item = RequestKey> {
        self.all().map(|search| search.key)
    }
}

impl ControlPlane {
    /// Looks for a request's session.
    pub(super) fn search(&mut self, now: Now, search: Search) {
        if self.searches.all().count() >= MOST_SEARCHES {
            tracing::info!(server = %search.by, session = %search.request.ids, "a request is rejected: {MOST_SEARCHES} others are \
                looked for by identifiers that no index leads to. Acct-Session-Id and User-Name have one");
            let busy = DynamicOutcome::Rejected(ErrorCause::ResourcesUnavailable);
            return self.answer_server(search.key, busy);
        }
        self.searches.waiting.push(search);
        if self.searches.under_way.is_empty() {
            self.search_more(now);
        }
    }

    /// Time at which [`ControlPlane::search_more`] has more to do.
    pub(in crate::plane) fn search_at(&self) -> Option<Duration> {
        let first = self.searches.all().next();
        first.map(|_| self.searches.at)
    }

    /// Compares the next sessions, and carries out the requests after the last one.
    pub(in crate::plane) fn search_more(&mut self, now: Now) {
        let mut searches = std::mem::take(&mut self.searches);
        if searches.under_way.is_empty() {
            searches.next = 0;
            std::mem::swap(&mut searches.under_way, &mut searches.waiting);
        }
        let most = FILTERED.min(COMPARED / searches.under_way.len().max(1));
        let mut compared = 0;
        for (index, entry) in self.sessions.from(searches.next).take(most) {
            compared += 1;
            searches.next = index + 1;
            for search in &mut searches.under_way {
                if search.found.len() < 2 && self.is_meant(entry, &search.request) {
                    search.found.push(entry.seid);
                }
            }
        }
        let over = match compared < most {
            true => std::mem::take(&mut searches.under_way),
            false => Vec::new(),
        };
        searches.at = now.at + PAUSE;
        self.searches = searches;
        for search in over {
            let found = search
                .found
                .iter()
                .filter_map(|seid| self.sessions.find(*seid));
            let found =
                found.filter(|index| self.is_meant(&self.sessions[*index], &search.request));
            let found = one(found);
            self.carry_out_request(now, search.key, search.by, search.request, found);
        }
    }
}
