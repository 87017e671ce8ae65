//! `sluice backup`: copies of what the control plane keeps, made while it works.

use super::ask::{Failure, Sockets};
use super::show::Answer;
use super::units::octets;
use northbound::catalogue;
use std::io::{IsTerminal, stderr};

/// What is to be copied.
#[derive(Debug, clap::Subcommand)]
pub enum Backup {
    #[command(about = catalogue::BACKUP_HISTORY.about)]
    History,
}

impl Backup {
    /// Does it. A terminal shows how far it is.
    pub fn run(self, sockets: &Sockets) -> Result<Answer, Failure> {
        let Backup::History = self;
        let is_watched = stderr().is_terminal();
        let made = sockets.history(|history| {
            history.backup(|told| {
                if is_watched && told.path.is_none() {
                    let (written, of) = (octets(told.octets), octets(told.of));
                    eprint!("\r{written} of {of} are copied \x1b[K");
                }
            })
        });
        if is_watched {
            eprint!("\r\x1b[K");
        }
        let made = made?;
        let (path, size) = (made.path.unwrap_or_default(), octets(made.octets));
        Ok(Answer::of(vec![format!(
            "{path} has the history up to now, {size}: the next backup takes its place"
        )]))
    }
}
