use crate::fixture::Fixture;
use crate::guard::PATIENCE;
use crate::home::Home;
use crate::site::{Setup, UP};
use anyhow::{Context, Result, ensure};
use lab::topology::{INTERNET_V4, Lab, Place};
use std::net::{IpAddr, UdpSocket};

/// A Heartbeat Request of PFCP version 2, sequence number 7, with a Recovery Time Stamp.
const VERSION_2: [u8; 16] = [0x40, 1, 0, 12, 0, 0, 7, 0, 0, 96, 0, 4, 0xe0, 0, 0, 1];
/// Version Not Supported Response (TS 29.244 section 7.4.4.7).
const VERSION_NOT_SUPPORTED: u8 = 11;

pub fn run(fixture: &mut Fixture) -> Result<()> {
    let stage = fixture.stage(&Setup::default())?;
    let home = Home::build(stage.vm, 7)?;
    home.dial("alice", "wonderland")?;
    let before = stage.site.drops()?;
    ask(stage.lab, Place::UserPlane(UP), UP.control_plane()).context("sluice-cp")?;
    ask(stage.lab, Place::ControlPlane, UP.management()).context("sluice-up")?;
    let after = stage.site.drops()?;
    let grown = after.since(&before);
    for plane in ["control-plane", "up-e2e"] {
        let counted = grown.contains(&(plane, "pfcp-other-version", 1));
        ensure!(counted, "{plane} did not count it: {grown:?}");
    }
    home.ping(&INTERNET_V4.to_string(), 3)?;
    home.hang_up()
}

fn ask(lab: &Lab, from: Place, daemon: IpAddr) -> Result<()> {
    let socket = lab.netns(from).within(|| UdpSocket::bind("0.0.0.0:0"))??;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.send_to(&VERSION_2, (daemon, 8805))?;
    let mut answer = [0; 64];
    let length = socket
        .recv(&mut answer)
        .context("no answer to a message of version 2")?;
    let answer = &answer[..length];
    ensure!(
        length >= 8 && answer[0] >> 5 == 1 && answer[1] == VERSION_NOT_SUPPORTED,
        "answered {answer:02x?}"
    );
    Ok(())
}
