//! `sluice test aaa`: what AAA says of a user, and what a session would get.

use super::password;
use super::table::{Column, Table};
use super::{Answer, Failure, Sockets};
use northbound::TestAaaResponse;

/// The password is asked for unseen, or is the first line of the input.
#[derive(Debug, clap::Args)]
pub struct TestAaa {
    /// The user name
    user: String,
    /// Access profile of the session; needed if there are several
    #[arg(long, value_name = "NAME")]
    access_profile: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl TestAaa {
    /// Asks AAA.
    pub fn answer(self, sockets: &Sockets) -> Result<Answer, Failure> {
        let password = password::read(false)?;
        let profile = self.access_profile.as_deref();
        let tested = sockets.control_plane(|cp| cp.test_aaa(&self.user, &password, profile))?;
        match self.json {
            true => Answer::json(&tested),
            false => Ok(Answer::of(page(&self.user, &tested))),
        }
    }
}

fn page(user: &str, tested: &TestAaaResponse) -> Vec<String> {
    let verdict = match tested.accepted {
        true => "accepted".to_owned(),
        false => format!("not accepted: {}", tested.reason),
    };
    let mut lines = vec![format!("{user} is {verdict} (asked: {})", tested.asked)];
    if !tested.reply.is_empty() {
        lines.push(format!("It is told \"{}\".", tested.reply));
    }
    if tested.results.is_empty() {
        return lines;
    }
    let mut table = Table::new(&[
        Column::words("NAME", 0),
        Column::words("VALUE", 0),
        Column::words("FROM", 0),
    ]);
    for result in &tested.results {
        let cells = [&result.name, &result.value, &result.origin];
        table.push(cells.map(String::clone));
    }
    lines.extend(table.render(None));
    lines
}
