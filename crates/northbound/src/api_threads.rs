//! The threads beside a daemon's loop on which its API is served.

use std::io;
use std::time::Duration;
use tokio::runtime::{Builder, EnterGuard, Runtime};

/// Number of threads: one reads or writes a long message, the other answers meanwhile.
const THREADS: usize = 2;
/// How long the end waits for what is under way.
const END: Duration = Duration::from_secs(1);

/// Threads with an event loop of their own. Messages of a hundred megabytes are read and written there, and sessions do not wait for it.
#[derive(Debug)]
pub struct ApiThreads(Option<Runtime>);

impl ApiThreads {
    /// Starts the threads.
    ///
    /// # Errors
    /// The system gives no threads or no descriptors.
    pub fn start() -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("api")
            .enable_all()
            .build();
        Ok(ApiThreads(Some(runtime?)))
    }

    /// What is spawned, and which sockets are bound, while the guard is there belongs to the threads.
    pub fn enter(&self) -> Option<EnterGuard<'_>> {
        self.0.as_ref().map(Runtime::enter)
    }
}

impl Drop for ApiThreads {
    /// Ends what is served; its sockets are closed when this returns. Work on a disk is not waited for.
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            // a thread that serves an event loop may not wait for another one
            let end = std::thread::spawn(move || runtime.shutdown_timeout(END));
            let _ = end.join(); // a panic was printed when it happened
        }
    }
}
