//! The daemons' log, on standard error: its level, and a limit of lines for each cause.
//!
//! A flood of one event must neither fill the disk nor hide other events: each place in the code that logs has at most 100 lines a second.
//! The next line from there says how many were left out (`left_out`). A thread of its own writes the lines: whoever stands still at the other
//! end of standard error must not hold a daemon up. Only the daemons' `main` calls this crate.
//!
//! ```
//! let (set_level, _written) = logging::start();
//! set_level(config::model::Level::Warn);
//! tracing::error!("the disk is full");
//! ```
#![forbid(unsafe_code)]

mod limit;
mod queue;

use config::model::Level;
use limit::Limited;
use queue::Queue;
pub use queue::Written;
use std::io::IsTerminal;
use tracing_subscriber::fmt::format::Format;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, reload};

/// Environment variable that overrides the configured level: a level, or a filter of `tracing-subscriber`.
pub const VARIABLE: &str = "SLUICE_LOG";

/// Starts the log of the process at level `info`, or as [`VARIABLE`] says. Returns what sets the level, which has no effect beside the
/// variable, and what has to live as long as there is something to log.
///
/// # Panics
/// When the process has a log already.
pub fn start() -> (impl Fn(Level) + Send + 'static, Written) {
    let chosen = std::env::var(VARIABLE).ok();
    let filter = chosen
        .as_deref()
        .map_or_else(|| filter_of(Level::Info), EnvFilter::new);
    let (filter, handle) = reload::Layer::new(filter);
    let (queue, written) = Queue::start();
    let lines = tracing_subscriber::fmt::layer()
        .event_format(Limited::new(Format::default().with_target(false)))
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(queue);
    tracing_subscriber::registry()
        .with(filter)
        .with(lines)
        .init();
    let set_level = move |level| {
        if chosen.is_none()
            && let Err(error) = handle.reload(filter_of(level))
        {
            tracing::warn!(%error, "cannot change the log level: the previous level stays");
        }
    };
    (set_level, written)
}

/// Filter for our own messages of a level, and for the libraries' warnings.
fn filter_of(level: Level) -> EnvFilter {
    let word = level.word();
    EnvFilter::new(format!("{word},h2=warn,hyper=warn,tower=warn,tonic=warn"))
}
