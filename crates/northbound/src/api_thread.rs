//! The thread beside a daemon's loop on which its API is served.

use std::io;
use std::thread::JoinHandle;
use tokio::runtime::{Builder, EnterGuard, Handle};
use tokio::sync::oneshot;

/// A thread with an event loop of its own. Messages of a hundred megabytes are read and written there, and sessions do not wait for it.
#[derive(Debug)]
pub struct ApiThread {
    event_loop: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ApiThread {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system gives no thread or no descriptors.
    pub fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let event_loop = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let serve = move || {
            let _ = runtime.block_on(stopped); // also an end without a word is an end
            // whoever waits for a disk is not waited for
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new().name("api".to_owned());
        Ok(ApiThread {
            event_loop,
            stop: Some(stop),
            thread: Some(thread.spawn(serve)?),
        })
    }

    /// What is spawned, and which sockets are bound, while the guard is there is the thread's.
    pub fn enter(&self) -> EnterGuard<'_> {
        self.event_loop.enter()
    }
}

impl Drop for ApiThread {
    /// Ends the thread and what it serves. Sockets are closed when this returns.
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // a panic was printed when it happened
        }
    }
}
