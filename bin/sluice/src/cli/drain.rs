//! `sluice drain`: a commit made for whoever wants a user plane empty.

use super::ask::{Failure, Sockets};
use super::show::Answer;
use northbound::{DrainOrder, catalogue};

/// What is to be drained.
#[derive(Debug, clap::Subcommand)]
pub enum Drain {
    #[command(about = catalogue::DRAIN_USER_PLANE.about)]
    UserPlane {
        /// Its node id
        #[arg(value_name = "USER-PLANE")]
        name: String,
        /// End its sessions, so many in a second
        #[arg(long, value_name = "RATE", value_parser = clap::value_parser!(u16).range(1..=10_000))]
        end_sessions: Option<u16>,
        /// Take new sessions again
        #[arg(long, conflicts_with = "end_sessions")]
        stop: bool,
    },
}

impl Drain {
    /// Does it.
    pub fn run(self, sockets: &Sockets) -> Result<Answer, Failure> {
        let Drain::UserPlane {
            name,
            end_sessions,
            stop,
        } = self;
        let order = DrainOrder {
            user_plane: name,
            end_sessions,
            stop,
        };
        let mut configuration = sockets.configuration()?;
        let in_force = configuration.ask(|c| c.get(None))?;
        let commit = order.commit(&in_force);
        let commit = commit.map_err(|refusal| Failure::Other(refusal.to_string()))?;
        let Some(commit) = commit else {
            let how = if stop {
                "is not drained"
            } else {
                "is drained like that already"
            };
            let line = format!("user plane {} {how}", order.user_plane);
            return Ok(Answer::of(vec![line]));
        };
        let done = configuration.ask(|c| c.commit(commit))?;
        if !done.faults.is_empty() {
            let why = done.faults.iter().map(|fault| fault.message.as_str());
            return Err(Failure::Other(why.collect::<Vec<_>>().join("\n")));
        }
        let mut lines: Vec<String> = done.effects.into_iter().map(|e| e.text).collect();
        lines.extend(done.pending.iter().map(|why| not_there_yet(why)));
        if !stop {
            lines.push("`show user-planes` says how far it is".into());
        }
        Ok(Answer::of(lines))
    }
}

/// What a commit says of a user plane that does not have it yet.
pub fn not_there_yet(why: &str) -> String {
    format!("not there yet: {why}")
}
