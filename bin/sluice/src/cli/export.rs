//! `sluice export`: what the control plane keeps, for other programs.

use super::ask::{Failure, Sockets};
use super::history::read;
use super::show::Answer;
use northbound::{Event, FollowEventsRequest, catalogue};
use std::io::{self, ErrorKind, Write};

/// What is exported.
#[derive(Debug, clap::Subcommand)]
pub enum Export {
    #[command(about = catalogue::EXPORT_RECORDS.about)]
    Records {
        /// Only sessions that were counted then or later: 2026-11-22T07:15:00Z, 07:15 (UTC), or -2h
        #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
        since: Option<String>,
        /// Only sessions that were counted before this [default: all up to now]
        #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
        until: Option<String>,
        /// Only those behind the record with this number, of which none may be missing
        #[arg(long, value_name = "NUMBER")]
        after: Option<u64>,
    },
}

impl Export {
    /// Prints line by line, as it comes.
    pub fn run(self, sockets: &Sockets) -> Result<Answer, Failure> {
        let Export::Records {
            since,
            until,
            after,
        } = self;
        let (since, until) = (read(since.as_ref())?, read(until.as_ref())?);
        let request = FollowEventsRequest::of_records(since, until, after);
        let mut printed = Ok(());
        sockets.history(|history| {
            history.records(request, |records| {
                printed = print(&records);
                printed.is_ok()
            })
        })?;
        match printed {
            // `sluice export records | head` is no error
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
            done => done?,
        }
        Ok(Answer::default())
    }
}

fn print(records: &[Event]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for record in records {
        writeln!(out, "{}", serde_json::to_string(record)?)?;
    }
    out.flush()
}
