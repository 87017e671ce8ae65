//! From a server's many tasks to the one loop of a plane, and back.

use tokio::sync::{mpsc, oneshot};
use tonic::Status;

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
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
