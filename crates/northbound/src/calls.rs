//! From a server's many tasks to the one loop of a plane, and back.

use core::ops::RangeInclusive;
use core::time::Duration;
use futures_util::stream::{BoxStream, try_unfold};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{MissedTickBehavior, interval};
use tonic::Status;

/// How often a state can be watched, in milliseconds.
const INTERVALS: RangeInclusive<u32> = 100..=60_000;

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// What is asked for cannot be.
    #[error("{0}")]
    Invalid(String),
    /// What it is about is not there.
    #[error("{0}")]
    NotFound(String),
    /// It cannot be done while something else is under way.
    #[error("{0}")]
    Busy(String),
    /// Something later has been done already.
    #[error("{0}")]
    Outdated(String),
    /// Who has to be asked for it does not answer.
    #[error("{0}")]
    Unreachable(String),
    /// It was begun and failed.
    #[error("{0}")]
    Failed(String),
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Invalid(message) => Status::invalid_argument(message),
            Refusal::NotFound(message) => Status::not_found(message),
            Refusal::Busy(message) => Status::aborted(message),
            Refusal::Outdated(message) => Status::failed_precondition(message),
            Refusal::Unreachable(message) => Status::unavailable(message),
            Refusal::Failed(message) => Status::internal(message),
        }
    }
}

/// A request with the place for its answer; dropping that answers with an error.
pub type Asked<Q, A> = (Q, oneshot::Sender<Result<A, Refusal>>);

/// The way to a plane: a bounded queue of requests `Q`, each with a place for its answer `A`.
#[derive(Debug)]
pub struct Calls<Q, A>(mpsc::Sender<Asked<Q, A>>);

impl<Q, A> Clone for Calls<Q, A> {
    fn clone(&self) -> Self {
        Calls(self.0.clone())
    }
}

impl<Q, A> Calls<Q, A> {
    /// The way to whoever has the other end.
    pub fn new(to: mpsc::Sender<Asked<Q, A>>) -> Self {
        Calls(to)
    }

    /// Asks, and waits for the answer; while the queue is full it waits for that.
    ///
    /// # Errors
    /// What the plane refuses; UNAVAILABLE when it ends.
    pub async fn ask(&self, request: Q) -> Result<A, Status> {
        let gone = || Status::unavailable("the daemon is shutting down");
        let (reply, answer) = oneshot::channel();
        let sent = self.0.send((request, reply)).await;
        sent.map_err(|_| gone())?;
        Ok(answer.await.map_err(|_| gone())??)
    }

    /// A state after the other, so many milliseconds apart. One is asked for when it is time and whoever watches has room for
    /// it: none is kept for a slow reader.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for an interval that is too short or too long.
    pub fn watch<S: Send + 'static>(
        &self,
        milliseconds: u32,
        request: fn() -> Q,
        read: fn(A) -> Result<S, Status>,
    ) -> Result<BoxStream<'static, Result<S, Status>>, Status>
    where
        Q: Send + 'static,
        A: Send + 'static,
    {
        if !INTERVALS.contains(&milliseconds) {
            let (least, most) = INTERVALS.into_inner();
            return Err(Status::invalid_argument(format!(
                "an interval of {milliseconds} ms: expected {least} to {most}"
            )));
        }
        let mut ticks = interval(Duration::from_millis(milliseconds.into()));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let states = try_unfold(
            (self.clone(), ticks),
            move |(calls, mut ticks)| async move {
                ticks.tick().await;
                let state = read(calls.ask(request()).await?)?;
                Ok(Some((state, (calls, ticks))))
            },
        );
        Ok(Box::pin(states))
    }

    /// Waits until the plane has dropped its end.
    pub async fn closed(&self) {
        self.0.closed().await;
    }
}

/// For a plane that gave the answer to another request: a fault of ours.
pub fn other_answer(answer: impl core::fmt::Debug) -> Status {
    let answer = format!("{answer:.100?}");
    tracing::error!(answer, "the plane answered another request");
    Status::internal("the plane answered another request")
}
