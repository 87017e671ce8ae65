//! How long a connection may last.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// How long a connection lasts. A client that does not read its answer loses it then.
const LENGTH: Duration = Duration::from_secs(600);

/// Time that a connection has. Whoever serves it may renew it.
#[derive(Clone, Debug)]
pub struct Lease(Arc<Mutex<Instant>>);

impl Lease {
    /// The time of a new connection.
    pub fn begin() -> Self {
        Lease(Arc::new(Mutex::new(Instant::now() + LENGTH)))
    }

    /// Gives the connection as long as a new one.
    pub fn renew(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now() + LENGTH;
    }

    /// Waits until the time is over.
    pub async fn over(&self) {
        loop {
            let end = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if Instant::now() >= end {
                return;
            }
            sleep_until(end).await;
        }
    }
}
