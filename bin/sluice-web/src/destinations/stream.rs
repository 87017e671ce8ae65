//! Syslog over TCP, with or without TLS. The receiver says nothing about what it has got. What the kernel has handed over counts as got:
//! it gives a connection up on which something is not acknowledged for [`UNACKNOWLEDGED`]. So what was written longer ago than that, on
//! a connection that stands, has arrived.

use super::connect::{Connection, UNACKNOWLEDGED, connect};
use super::target::Target;
use std::collections::VecDeque;
use std::future::pending;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_rustls::TlsConnector;

/// How long a part may take to be written.
const PATIENCE: Duration = Duration::from_secs(30);
/// What is written within this time counts as written at its end, so that few times are kept however much is sent.
const TOGETHER: Duration = Duration::from_millis(100);
/// How long after it was written something counts as arrived: the kernel's timer may be late.
const ARRIVED: Duration = UNACKNOWLEDGED.saturating_add(Duration::from_secs(5));

/// The way to a syslog server.
pub struct Stream {
    target: Target,
    tls: Option<TlsConnector>,
    connection: Option<Box<dyn Connection>>,
    /// When parts were written, rounded up to [`TOGETHER`], and the numbers of their last events.
    written: VecDeque<(Instant, u64)>,
}

impl Stream {
    /// It is connected when there is something to send.
    pub fn new(target: Target, tls: Option<TlsConnector>) -> Self {
        Stream {
            target,
            tls,
            connection: None,
            written: VecDeque::new(),
        }
    }

    /// Writes a part whose last event has this number.
    ///
    /// # Errors
    /// Why it cannot be written.
    pub async fn send(&mut self, part: &[u8], last: u64) -> Result<(), String> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            closed => closed.insert(connect(&self.target, self.tls.as_ref()).await?),
        };
        let write = async {
            connection.write_all(part).await?;
            connection.flush().await
        };
        let written = timeout(PATIENCE, write).await;
        let written = written.map_err(|_| "nothing is read there for 30 s".to_owned())?;
        written.map_err(|error| format!("the connection breaks: {error}"))?;
        self.remember(Instant::now(), last);
        Ok(())
    }

    /// A part was written at this time, whose last event has this number.
    fn remember(&mut self, now: Instant, last: u64) {
        match self.written.back_mut() {
            Some((at, waiting)) if *at > now => *waiting = last,
            _ => self.written.push_back((now + TOGETHER, last)),
        }
    }

    /// Nothing is to be sent of what is up to this number. It is passed when what was written before has arrived.
    pub fn pass(&mut self, last: u64) -> Option<u64> {
        match self.written.back_mut() {
            Some((_, waiting)) => {
                *waiting = last;
                None
            }
            None => Some(last),
        }
    }

    /// Waits until something has arrived, and returns its number.
    ///
    /// # Errors
    /// The receiver has closed the connection before that.
    pub async fn arrived(&mut self) -> Result<u64, String> {
        loop {
            let due = self.written.front().map(|(at, _)| *at + ARRIVED);
            let due = async {
                match due {
                    Some(due) => sleep_until(due).await,
                    None => pending().await,
                }
            };
            let connection = &mut self.connection;
            let closed = async {
                match connection {
                    Some(connection) => closed(connection.as_mut()).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                // what is on a connection that has ended has not arrived
                biased;
                () = closed => {
                    self.connection = None;
                    if !self.written.is_empty() {
                        return Err("the receiver has closed the connection".into());
                    }
                }
                () = due => {
                    if let Some((_, last)) = self.written.pop_front() {
                        return Ok(last);
                    }
                }
            }
        }
    }
}

/// Waits until the other side closes the connection. What it says has no meaning (RFC 6587, section 3.1).
async fn closed(connection: &mut (dyn Connection + '_)) {
    let mut said = [0; 256];
    while connection
        .read(&mut said)
        .await
        .is_ok_and(|octets| octets > 0)
    {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn few_times_are_kept_however_much_is_sent() {
        let target = Target::parse("syslog+tcp://localhost:514").unwrap();
        let mut stream = Stream::new(target, None);
        let begun = Instant::now();
        for last in 1..=10_000 {
            stream.remember(begun + Duration::from_micros(100) * last, last.into());
        }
        // 10,000 parts within a second
        assert!(stream.written.len() <= 11, "{}", stream.written.len());
        assert_eq!(stream.written.back().map(|(_, last)| *last), Some(10_000));
        let all = stream.written.iter();
        for ((at, last), written) in all.zip((0..).map(|k| begun + TOGETHER * k)) {
            // no part counts as written before it is
            let wrote = begun + Duration::from_micros(100) * *last as u32;
            assert!(*at >= wrote && *at >= written, "{last}");
        }
    }
}
