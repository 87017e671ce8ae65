//! `sluice explain`: why a home is online or not, and where its packets go.

use super::ask::{Failure, Sockets};
use super::show::Answer;

/// `sluice explain`.
#[derive(Debug, clap::Args)]
pub struct Explain {
    /// A name, a line, a circuit id, a MAC address, a session, or an address
    #[arg(value_name = "SUBSCRIBER")]
    subscriber: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Explain {
    /// Asks what is known of a subscriber, and says what follows.
    pub fn answer(&self, sockets: &Sockets) -> Result<Answer, Failure> {
        let explanation = sockets.history(|history| history.explain(&self.subscriber))?;
        match self.json {
            true => Answer::json(&explanation),
            false => Ok(Answer::of(explanation.page())),
        }
    }
}
