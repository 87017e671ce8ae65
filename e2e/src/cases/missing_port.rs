use crate::fixture::Fixture;
use crate::guard::PATIENCE;
use crate::site::{Setup, UP, forget, program};
use anyhow::{Result, ensure};
use lab::topology::Place;
use std::fs;

pub fn run(fixture: &mut Fixture) -> Result<()> {
    let lab = fixture.without_site()?;
    let file = lab.dir().join("up.yaml");
    let (start, document) = Setup::user_plane_alone(lab.dir());
    fs::write(&file, start)?;
    let document = document.replace("iface=core0", "iface=nowhere0");
    fs::write(lab.dir().join("document.yaml"), document)?;
    forget(lab.dir())?;
    // By name: a device keeps the kernel's own flags, promiscuous mode among them.
    let links = || {
        lab.netns(Place::UserPlane(UP))
            .run(&["ls", "/sys/class/net"])
    };
    let before = links()?;
    let mut command = lab.netns(Place::UserPlane(UP)).command("timeout");
    let done = command
        .arg(PATIENCE.as_secs().to_string())
        .arg(program("sluice-up")?)
        .arg(&file)
        .output()?;
    let said =
        String::from_utf8_lossy(&done.stderr).into_owned() + &String::from_utf8_lossy(&done.stdout);
    ensure!(
        matches!(done.status.code(), Some(1..124)),
        "sluice-up ended with {}: {said}",
        done.status
    );
    let own = said
        .lines()
        .filter(|line| line.contains("ports core0 device") && line.contains("`nowhere0`"));
    ensure!(
        own.count() > 0,
        "no line names the port and what it lacks: {said}"
    );
    ensure!(
        links()? == before,
        "interfaces are left behind: {before}\n{}",
        links()?
    );
    ensure!(
        !lab.dir().join("up.sock").exists(),
        "a socket is left behind"
    );
    Ok(())
}
