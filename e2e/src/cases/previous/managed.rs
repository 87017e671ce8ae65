//! A user plane that its control plane configures. The files of this version are those of that one.

use super::{Gateway, HOMES, Previous, control_plane, newcomer, unharmed, user_plane};
use crate::access_network::AccessNetwork;
use crate::accounting::AccountingRecords;
use crate::cases::commits::commit;
use crate::command::Sluice;
use crate::fixture::Fixture;
use crate::guard::PATIENCE;
use crate::radius::{ALONE, FreeRadius, SECRET};
use crate::site::{CONFIGURED_AS, Setup, UP, forget, join_core, program};
use anyhow::{Result, ensure};
use lab::routes::Routes;
use lab::topology::Lab;
use northbound::ConfigurationClient;
use serde_json::Value;
use std::fs;

/// What is changed.
#[derive(Clone, Copy, Debug)]
enum Plane {
    Control,
    User,
}

/// Sessions of the version before go on under this one, whichever plane is changed first. In between both planes work together.
pub fn run(fixture: &mut Fixture) -> Result<()> {
    let old = Previous::find("previous")?;
    let lab = fixture.without_site()?;
    let (dir, setup) = (lab.dir(), Setup::default());
    for (file, text) in [
        ("cp.yaml", setup.start(dir)),
        ("up.yaml", setup.user_plane(dir)),
        ("sluice.yaml", setup.configuration(dir)),
    ] {
        fs::write(dir.join(file), text)?;
    }
    let radius = FreeRadius::start(lab, &ALONE, SECRET)?;
    let _routes = Routes::follow(lab, &[UP])?;
    upgrade(lab, &old, [Plane::Control, Plane::User])?;
    upgrade(lab, &old, [Plane::User, Plane::Control])?;
    radius.stop()
}

/// Changes one plane, then the other.
fn upgrade(lab: &Lab, old: &Previous, order: [Plane; 2]) -> Result<()> {
    forget(lab.dir())?;
    let known = ALONE.records(lab)?.len();
    let mut gateway = Gateway {
        lab,
        up: user_plane(lab, &old.up, "up.yaml")?,
        cp: control_plane(lab, &old.cp, "cp.yaml")?,
    };
    gateway.wait_open()?;
    join_core(lab, &mut gateway.up)?;
    let network = AccessNetwork::dial(lab, HOMES)?;
    network.wait_online(PATIENCE)?;
    for (number, plane) in (900..).zip(order) {
        match plane {
            Plane::Control => gateway.change_control_plane(&program("sluice-cp")?, "cp.yaml")?,
            Plane::User => gateway.change_user_plane(&program("sluice-up")?, "up.yaml")?,
        }
        gateway.wait_whole()?;
        gateway.wait_in_force()?;
        unharmed(&network, &format!("{plane:?} plane of this version"))?;
        gateway.sluice().ledger()?;
        gateway.configure(number)?;
        newcomer(lab, number)?;
    }
    gateway.knows("home1")?;
    network.hang_up(PATIENCE)?;
    gateway.wait_empty()?;
    let records = AccountingRecords::of(ALONE.records(lab)?.into_iter().skip(known))?;
    ensure!(
        records.sessions() == usize::from(HOMES) + order.len(),
        "{} sessions",
        records.sessions()
    );
    records.check()?;
    gateway.stop()
}

impl Gateway<'_> {
    /// The user plane has the configuration in force.
    fn wait_in_force(&mut self) -> Result<()> {
        let socket = self.lab.dir().join("cp.sock");
        let in_force = || -> Result<bool> {
            let managed = ConfigurationClient::connect(&socket, PATIENCE)?.managed()?;
            Ok(managed.len() == 1 && managed[0].in_force)
        };
        self.cp
            .wait_until("the configuration to be in force", PATIENCE, || {
                in_force().unwrap_or(false)
            })
    }

    /// A change of the configuration reaches the user plane.
    fn configure(&self, seconds: u16) -> Result<()> {
        let socket = self.lab.dir().join("cp.sock");
        let mut client = ConfigurationClient::connect(&socket, PATIENCE)?;
        let hold = seconds.to_string();
        let hold = ["user-planes", CONFIGURED_AS, "hold-sessions", &hold];
        let base = client.get(None)?.version;
        let done = client.commit(commit(base, &[&hold]))?;
        ensure!(
            done.version == base + 1 && done.faults.is_empty() && done.pending.is_empty(),
            "{done:?}"
        );
        Ok(())
    }

    /// The history has what the version before wrote of a subscriber.
    fn knows(&self, user: &str) -> Result<()> {
        let events = self.sluice().run(&["show", "events", user, "--json"])?;
        let events: Vec<Value> = serde_json::from_str(&events)?;
        ensure!(
            events.iter().any(|event| event["kind"] == "online"),
            "{events:#?}"
        );
        Ok(())
    }

    fn sluice(&self) -> Sluice {
        Sluice::new(self.lab.dir().join("cp.sock"))
    }
}
