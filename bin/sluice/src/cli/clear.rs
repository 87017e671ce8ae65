//! `sluice clear sessions`: a look at the sessions that a filter means, and the order to end them.

use super::ask::{Failure, Sockets};
use super::filter::Filter;
use super::listing::table;
use super::show::{Answer, print_lines, terminal_width};
use super::units::{counted, duration};
use northbound::catalogue::SESSIONS;
use northbound::{ClearSessionsRequest, ListSessionsRequest, MOST_CLEAR_RATE, SessionFilter};
use std::io::{BufRead, IsTerminal, Write};

/// Sessions of which the row is shown before they end.
const SHOWN: u64 = 5;

/// What `clear sessions` is told.
#[derive(Debug, clap::Args)]
pub struct ClearSessions {
    #[command(flatten)]
    filter: Filter,
    /// How many sessions match, as was seen before; if another number matches now, none ends
    #[arg(long, value_name = "NUMBER")]
    expect: Option<u64>,
    /// How many end in a second [default: 100]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_CLEAR_RATE)))]
    rate: Option<u32>,
    /// End no more sessions for the last `clear sessions`
    #[arg(long)]
    stop: bool,
    /// Do not ask before
    #[arg(long)]
    yes: bool,
}

impl ClearSessions {
    /// Shows which sessions are meant, asks, and has them ended.
    pub fn answer(&self, sockets: &Sockets) -> Result<Answer, Failure> {
        if self.stop {
            return stop(sockets);
        }
        let filter = self.filter.read()?;
        if filter.is_empty() {
            return Err(Failure::Other(
                "which sessions are to end is not said: give a filter, such as `--state online` for all that are online"
                    .into(),
            ));
        }
        let expect = match self.expect {
            Some(expect) => expect,
            None => match self.seen(sockets, &filter)? {
                0 => return Ok(Answer::of(vec!["no session matches".into()])),
                seen => seen,
            },
        };
        let request = ClearSessionsRequest {
            filter: Some(filter),
            expect,
            rate: self.rate.unwrap_or_default(),
            stop: false,
        };
        let begun = sockets.control_plane(|cp| cp.clear_sessions(request))?;
        let seconds = begun.sessions.div_ceil(begun.rate.max(1).into());
        Ok(Answer::of(vec![
            format!(
                "{} will end, {} a second: in about {}",
                sessions(begun.sessions),
                begun.rate,
                duration(seconds)
            ),
            "`show session-clears` says how far it is, `clear sessions --stop` ends no more".into(),
        ]))
    }

    /// How many sessions match, and that a person wants those to end.
    fn seen(&self, sockets: &Sockets, filter: &SessionFilter) -> Result<u64, Failure> {
        let seen = sockets.control_plane(|cp| cp.count_sessions(filter.clone()))?;
        if seen == 0 || self.yes {
            return Ok(seen);
        }
        let first = ListSessionsRequest {
            from: 0,
            most: SHOWN,
            filter: Some(filter.clone()),
        };
        let first = sockets.control_plane(|cp| cp.sessions_of(first))?;
        print_lines(&table(&SESSIONS, &first, |_, _| ()).render(terminal_width()))?;
        if seen > first.len() as u64 {
            let more = seen - first.len() as u64;
            print_lines(&[format!("and {} more", sessions(more))])?;
        }
        match is_wanted(seen)? {
            true => Ok(seen),
            false => Err(Failure::Other("no session ends".into())),
        }
    }
}

fn stop(sockets: &Sockets) -> Result<Answer, Failure> {
    let request = ClearSessionsRequest {
        stop: true,
        ..ClearSessionsRequest::default()
    };
    let stopped = sockets.control_plane(|cp| cp.clear_sessions(request))?;
    let stay = sessions(stopped.sessions);
    Ok(Answer::of(vec![format!("{stay} will not end")]))
}

/// Asks on a terminal. Elsewhere nobody can be asked.
fn is_wanted(seen: u64) -> Result<bool, Failure> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Err(Failure::Other(format!(
            "{} would end, and nobody can be asked: say `--yes`, or `--expect {seen}`",
            sessions(seen)
        )));
    }
    print!("End {}? Type yes: ", sessions(seen));
    std::io::stdout().flush()?;
    let mut typed = String::new();
    stdin.lock().read_line(&mut typed)?;
    Ok(typed.trim() == "yes")
}

fn sessions(number: u64) -> String {
    counted(number, "session")
}
