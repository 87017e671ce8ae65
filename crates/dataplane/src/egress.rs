//! How the packets of a port leave a worker that have no queue, or whose turn it is.

/// A port's way out, as a worker has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Egress {
    /// By the worker's own queue.
    Direct,
    /// By the queue of this worker.
    By(u16),
}

impl Egress {
    /// That of a worker. The first so many have queues; the others send by those, in turns.
    pub fn of(worker: u16, queues: u16) -> Self {
        match worker < queues {
            true => Egress::Direct,
            false => Egress::By(worker % queues.max(1)),
        }
    }
}
