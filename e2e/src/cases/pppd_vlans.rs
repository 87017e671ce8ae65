//! Linux's own VLAN devices in every form that an access network may have: the gateway answers with the tags that it got, TPID and all, as
//! otherwise another device would get the answer.

use crate::fixture::Fixture;
use crate::guard::PATIENCE;
use crate::home::Home;
use crate::site::Setup;
use anyhow::{Result, ensure};
use lab::topology::INTERNET_V4;

/// Protocol and id of each tag, the outer one first.
const LINES: [&[(&str, u16)]; 5] = [
    &[("802.1q", 0)], // priority-tagged (IEEE 802.1Q §9.6)
    &[("802.1q", 300)],
    &[("802.1ad", 300)], // the same id, and another VLAN
    &[("802.1q", 301), ("802.1q", 7)],
    &[("802.1ad", 302), ("802.1q", 7)],
];

pub fn run(fixture: &mut Fixture) -> Result<()> {
    let stage = fixture.stage(&Setup::default())?;
    let mut homes = Vec::new();
    for (number, tags) in (61..).zip(LINES) {
        let home = Home::build_with(stage.vm, number, tags)?;
        home.dial("alice", "wonderland")?;
        home.ping(&INTERNET_V4.to_string(), 3)?;
        homes.push(home);
    }
    let sessions = stage.site.sessions()?;
    ensure!(sessions.len() == LINES.len(), "{sessions:?}");
    for home in &homes {
        home.ping(&INTERNET_V4.to_string(), 3)?;
        home.hang_up()?;
    }
    stage.site.wait_empty(PATIENCE)
}
