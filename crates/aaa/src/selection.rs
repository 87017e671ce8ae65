//! Selection of a server for a request, and of a request for a server.

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
        let mut alive = candidates.filter(|(_, server, _)| is_ready(now, server));
        let selected = match self {
            Selection::Ordered => alive.next(),
            Selection::Balanced => alive.min_by_key(|(_, server, load)| (*load, server.last_turn)),
        };
        selected.map(|(index, ..)| index)
    }
}

fn is_ready(now: Duration, server: &Server) -> bool {
    server.is_alive(now) && server.connections.is_usable(now)
}

/// Place of a waiting request: the time at which it was opened, and its key.
pub(crate) type Place = (Duration, usize);

/// Server with the requests that wait for it.
#[derive(Clone, Copy)]
pub(crate) struct Queue<'a> {
    pub server: &'a Server,
    pub has_room: bool,
    /// The waiting request that is to be sent next.
    pub next: Option<Place>,
}

/// The next request that can be sent: the number of the server for which it waits, and its place there. A server with room is sent what
/// waits for it, or else what waits for another one. `was_sent` says whether a request was sent to a server already.
pub(crate) fn next_waiting<'a>(
    now: Duration,
    queues: impl Iterator<Item = Queue<'a>> + Clone,
    was_sent: impl Fn(usize, usize) -> bool,
) -> Option<(usize, Place)> {
    let mut with_room = queues.clone().enumerate().filter(|(_, of)| of.has_room);
    with_room.find_map(|(index, of)| {
        let can_take = |(_, key): &Place| is_ready(now, of.server) && !was_sent(*key, index);
        let others = || {
            let mut others = queues.clone().enumerate();
            others.find_map(|(at, other)| Some((at, other.next.filter(can_take)?)))
        };
        of.next.map(|place| (index, place)).or_else(others)
    })
}
