//! Lines that wait for standard error, and the thread that writes them.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use core::time::Duration;
use std::io::{self, Write, stderr};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::Builder;
use tracing_subscriber::fmt::MakeWriter;

/// Maximum number of lines that wait: some 600 KiB.
const MOST: usize = 4096;
/// How long the end of the process waits for the lines that wait.
const PATIENCE: Duration = Duration::from_secs(1);

enum Message {
    Line(Vec<u8>),
    /// Everything before it is written.
    Written(SyncSender<()>),
}

/// Takes lines without waiting. Those for which there is no room are left out, and the next line says how many.
#[derive(Clone)]
pub(crate) struct Queue {
    messages: SyncSender<Message>,
    left_out: Arc<AtomicU64>,
}

/// The lines that wait are written before this is gone, if that takes no longer than a second.
#[must_use]
pub struct Written(Queue);

impl Drop for Written {
    fn drop(&mut self) {
        self.0.wait();
    }
}

impl Queue {
    /// A queue with its thread. A panic waits as the end does: what was logged before it says most.
    ///
    /// # Panics
    /// When the system has no room for a thread.
    pub(crate) fn start() -> (Self, Written) {
        let (messages, waiting) = sync_channel(MOST);
        let thread = Builder::new().name("log".into());
        let thread = thread.spawn(move || write(&waiting));
        thread.expect("a daemon has room for a thread when it starts");
        let queue = Queue {
            messages,
            left_out: Arc::default(),
        };
        let (tell, before) = (std::panic::take_hook(), queue.clone());
        std::panic::set_hook(Box::new(move |panic| {
            before.wait();
            tell(panic);
        }));
        (queue.clone(), Written(queue))
    }

    fn add(&self, line: &[u8]) {
        let missing = self.left_out.swap(0, Relaxed);
        let mut text = match missing {
            0 => Vec::with_capacity(line.len()),
            _ => format!("{missing} lines are missing here: nobody took them in time\n").into(),
        };
        text.extend_from_slice(line);
        if self.messages.try_send(Message::Line(text)).is_err() {
            self.left_out.fetch_add(missing + 1, Relaxed);
        }
    }

    /// Waits until everything is written that was added before.
    fn wait(&self) {
        let (written, done) = sync_channel(1);
        if self.messages.try_send(Message::Written(written)).is_ok() {
            let _ = done.recv_timeout(PATIENCE);
        }
    }
}

/// Writes until the process ends. There is nobody to tell when standard error fails.
fn write(waiting: &Receiver<Message>) {
    for message in waiting {
        match message {
            Message::Line(line) => drop(stderr().write_all(&line)),
            Message::Written(tell) => drop(tell.try_send(())),
        }
    }
}

/// Takes the line of an event, which comes whole.
impl Write for &Queue {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.add(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Queue {
    type Writer = &'a Queue;

    fn make_writer(&'a self) -> &'a Queue {
        self
    }
}
