//! Limit of lines for each place in the code that logs.

use core::fmt;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;
use tracing::callsite::Identifier;
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// Maximum number of lines of a place in a second.
const MOST: u32 = 100;

/// Lines of one place.
#[derive(Clone, Copy, Default)]
struct Lines {
    second: u64,
    written: u32,
    left_out: u64,
}

impl Lines {
    /// Whether one more line is written; then it returns how many were left out before it.
    fn admit(&mut self, second: u64) -> Option<u64> {
        if self.second != second {
            (self.second, self.written) = (second, 0);
        }
        if self.written >= MOST {
            self.left_out += 1;
            return None;
        }
        self.written += 1;
        Some(core::mem::take(&mut self.left_out))
    }
}

/// Format of lines, of which it leaves out those above the limit.
pub(crate) struct Limited<F> {
    format: F,
    began: Instant,
    /// By place. The program has a fixed number of them.
    places: Mutex<HashMap<Identifier, Lines>>,
}

impl<F> Limited<F> {
    pub(crate) fn new(format: F) -> Self {
        Limited {
            format,
            began: Instant::now(),
            places: Mutex::default(),
        }
    }

    fn admit(&self, event: &Event<'_>) -> Option<u64> {
        let places = self.places.lock();
        let mut places = places.unwrap_or_else(PoisonError::into_inner);
        let lines = places.entry(event.metadata().callsite()).or_default();
        lines.admit(self.began.elapsed().as_secs())
    }
}

impl<S, N, F> FormatEvent<S, N> for Limited<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        match self.admit(event) {
            None => Ok(()),
            Some(0) => self.format.format_event(context, writer, event),
            Some(left_out) => {
                let mut line = String::new();
                let plain = Writer::new(&mut line);
                self.format.format_event(context, plain, event)?;
                writeln!(writer, "{} left_out={left_out}", line.trim_end())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::sync::Arc;
    use tracing_subscriber::fmt::format::Format;
    use tracing_subscriber::layer::SubscriberExt;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, octets: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend(octets);
            Ok(octets.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_above_the_limit_are_left_out_and_counted() {
        let mut lines = Lines::default();
        let admitted = (0..250).filter(|_| lines.admit(7).is_some()).count();
        assert_eq!(admitted, 100);
        assert_eq!(lines.admit(8), Some(150));
        assert_eq!(lines.admit(8), Some(0));
    }

    #[test]
    fn a_flood_of_one_event_does_not_hide_another() {
        let written = Written::default();
        let writer = written.clone();
        let lines = tracing_subscriber::fmt::layer()
            .event_format(Limited::new(Format::default()))
            .with_ansi(false)
            .with_writer(move || writer.clone());
        let subscriber = tracing_subscriber::registry().with(lines);
        tracing::subscriber::with_default(subscriber, || {
            for round in 0..2 {
                for number in 0..1000 {
                    tracing::info!(number, "a home is refused");
                }
                tracing::warn!(round, "the disk is full");
                std::thread::sleep(core::time::Duration::from_millis(1100));
            }
        });
        let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        let lines = |of: &str| text.lines().filter(|line| line.contains(of)).count();
        assert_eq!(lines("the disk is full"), 2);
        // each round may go over the end of a second
        assert!((200..=400).contains(&lines("a home is refused")), "{text}");
        let said = text
            .lines()
            .filter_map(|line| line.split_once(" left_out="));
        let said: u64 = said.map(|(_, number)| number.parse::<u64>().unwrap()).sum();
        assert!((600..=900).contains(&said), "{said}");
    }
}
