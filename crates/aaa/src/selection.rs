//! Selection of a server for a request.

use core::time::Duration;

use crate::Selection;
use crate::server::Server;

impl Selection {
    /// Server for a request among those that it has not been sent to yet and that are considered alive.
    /// Each candidate is the server's number, the server, and the number of its open requests.
    pub(crate) fn select<'a>(
        self,
        now: Duration,
        candidates: impl Iterator<Item = (usize, &'a Server, usize)>,
    ) -> Option<usize> {
        let mut alive = candidates
            .filter(|(_, server, _)| server.is_alive(now) && server.connections.is_usable(now));
        let selected = match self {
            Selection::Ordered => alive.next(),
            Selection::Balanced => alive.min_by_key(|(_, server, load)| (*load, server.last_turn)),
        };
        selected.map(|(index, ..)| index)
    }
}
