//! A user plane whose configuration is in a file of its own, and a control plane with a store that is gone on with, but not back from.

use super::{Gateway, HOMES, Previous, control_plane, count, newcomer, unharmed, user_plane};
use crate::access_network::AccessNetwork;
use crate::accounting::AccountingRecords;
use crate::fixture::Fixture;
use crate::guard::PATIENCE;
use crate::radius::{ALONE, FreeRadius, SECRET};
use crate::site::{DNS, Setup, UP, forget, join_core, program};
use anyhow::{Context, Result, ensure};
use lab::gateway::{SUBSCRIBER_GATEWAY_V4, SUBSCRIBER_GATEWAY_V6};
use lab::routes::Routes;
use lab::topology::{
    ACCESS_PORT, CORE_PORT, CORE_V4_LEN, CORE_V6_LEN, Lab, SUBSCRIBERS_V4, SUBSCRIBERS_V6,
};
use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Sessions of the version before go on under this one, whichever plane is changed first; what cannot be is refused.
pub fn run(fixture: &mut Fixture) -> Result<()> {
    let old = Previous::find("previous-unmanaged")?;
    let lab = fixture.without_site()?;
    let dir = lab.dir();
    forget(dir)?;
    for (file, text) in [
        ("old-cp.yaml", old_control_plane(dir)),
        ("old-up.yaml", old_user_plane(dir)),
        ("cp.yaml", Setup::default().start(dir)),
        ("up.yaml", Setup::default().user_plane(dir)),
        ("sluice.yaml", Setup::default().configuration(dir)),
    ] {
        fs::write(dir.join(file), text)?;
    }
    let known = ALONE.records(lab)?.len();
    let radius = FreeRadius::start(lab, &ALONE, SECRET)?;
    let _routes = Routes::follow(lab, &[UP])?;
    let mut gateway = Gateway {
        lab,
        up: user_plane(lab, &old.up, "old-up.yaml")?,
        cp: control_plane(lab, &old.cp, "old-cp.yaml")?,
    };
    gateway.wait_open()?;
    join_core(lab, &mut gateway.up)?;
    let network = AccessNetwork::dial(lab, HOMES)?;
    network.wait_online(PATIENCE)?;

    gateway.change_control_plane(&program("sluice-cp")?, "cp.yaml")?;
    gateway.wait_whole()?;
    unharmed(&network, "this version's control plane took over the store")?;
    let managed = gateway.managed()?;
    ensure!(
        !managed.reached && managed.why.contains("cannot be reached"),
        "a user plane of the version before is said to be managed: {managed:?}"
    );
    let said = gateway.said_of_management()?;
    println!("        of the user plane of the version before: {said}");
    newcomer(lab, 900)?;

    let why = gateway.refuse_old_control_plane(&old)?;
    println!("        the control plane of the version before: {why}");
    unharmed(
        &network,
        "a control plane of the version before refused the store",
    )?;

    gateway.change_user_plane(&program("sluice-up")?, "up.yaml")?;
    gateway.wait_whole()?;
    unharmed(
        &network,
        "this version's user plane took the place of the one before",
    )?;
    ensure!(gateway.managed()?.in_force, "{:?}", gateway.managed()?);
    network.hang_up(PATIENCE)?;
    gateway.wait_empty()?;
    let records = AccountingRecords::of(ALONE.records(lab)?.into_iter().skip(known))?;
    ensure!(
        records.sessions() == usize::from(HOMES) + 1,
        "{} sessions",
        records.sessions()
    );
    records.check()?;

    gateway.stop()?;
    old_control_plane_with_new_user_plane(lab, &old)?;
    radius.stop()
}

/// A user plane that keeps its ports in a document of its own works with a control plane of the version before; one that waits
/// to be told says so.
fn old_control_plane_with_new_user_plane(lab: &Lab, old: &Previous) -> Result<()> {
    let dir = lab.dir();
    forget(dir)?;
    let mut gateway = Gateway {
        lab,
        up: user_plane(lab, &program("sluice-up")?, "up.yaml")?,
        cp: control_plane(lab, &old.cp, "old-cp.yaml")?,
    };
    let log = gateway.up.log().to_owned();
    gateway
        .up
        .wait_until("the user plane without a configuration", PATIENCE, || {
            count(&log, "this user plane has no configuration") > 0
        })?;
    gateway.stop()?;
    let (start, document) = Setup::user_plane_alone(dir);
    fs::write(dir.join("alone.yaml"), start)?;
    fs::write(dir.join("document.yaml"), document)?;
    forget(dir)?;
    let mut gateway = Gateway {
        lab,
        up: user_plane(lab, &program("sluice-up")?, "alone.yaml")?,
        cp: control_plane(lab, &old.cp, "old-cp.yaml")?,
    };
    gateway.wait_open()?;
    join_core(lab, &mut gateway.up)?;
    let network = AccessNetwork::dial(lab, HOMES)?;
    network.wait_online(PATIENCE)?;
    unharmed(
        &network,
        "a control plane of the version before met this version's user plane",
    )?;
    network.hang_up(PATIENCE)?;
    gateway.stop()
}

impl Gateway<'_> {
    /// What the log says of a user plane without a management interface: whom it is about, and what to do.
    fn said_of_management(&mut self) -> Result<String> {
        let log = self.cp.log().to_owned();
        let line = || {
            let text = fs::read_to_string(&log).unwrap_or_default();
            let mut lines = text.lines().map(str::to_owned);
            lines.rfind(|line| line.contains("up-e2e") && line.contains("same version"))
        };
        self.cp
            .wait_until("word of the management interface", PATIENCE, || {
                line().is_some()
            })?;
        line().context("just there")
    }

    /// The version before does not start on this one's store, and leaves it as it is.
    fn refuse_old_control_plane(&mut self, old: &Previous) -> Result<String> {
        self.cp.stop()?;
        let store = self.lab.dir().join("store/sessions.log");
        let before = fs::read(&store)?;
        let mut refused = control_plane(self.lab, &old.cp, "old-cp.yaml")?;
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = refused.ended()? {
                break status;
            }
            ensure!(begun.elapsed() < PATIENCE, "it started\n{}", refused.tail());
            sleep(Duration::from_millis(50));
        };
        let said = fs::read_to_string(refused.log())?;
        ensure!(
            !status.success() && said.contains("was it written by a later version?"),
            "it ended with {status}: {said}"
        );
        ensure!(fs::read(&store)? == before, "it changed the store");
        self.cp = control_plane(self.lab, &program("sluice-cp")?, "cp.yaml")?;
        self.wait_whole()?;
        Ok(said.lines().last().unwrap_or_default().to_owned())
    }
}

/// The control plane's document in the version before.
fn old_control_plane(dir: &Path) -> String {
    let (dir, own, up) = (dir.display(), UP.control_plane(), UP.management());
    let [dns1, dns2] = DNS;
    format!(
        "node-id: cp-e2e
address: {own}
api-socket: {dir}/cp.sock
store: {dir}/store
user-planes:
  - node-id: up-e2e
    address: {up}
    access-ports: [{{port: {ACCESS_PORT}}}]
network-instances:
  default:
    gateway: {SUBSCRIBER_GATEWAY_V4}
    ipv4-pool: {{prefix: {SUBSCRIBERS_V4}, net-length: 24}}
    ipv6-pool: {{prefix: '{SUBSCRIBERS_V6}', net-length: 56}}
    dns: [{dns1}, {dns2}, '2001:db8::53']
pppoe:
  authentication: [chap]
  echo: {{interval: 10, failures: 3}}
aaa:
  radius:
    servers: [{{address: {}, secret: {SECRET}}}]
    interim-interval: 300
",
        ALONE.address
    )
}

/// The user plane's document in the version before.
fn old_user_plane(dir: &Path) -> String {
    let (dir, own) = (dir.display(), UP.management());
    let (core_v4, core_v6) = (UP.core_v4(), UP.core_v6());
    format!(
        "node-id: up-e2e
address: {own}
api-socket: {dir}/up.sock
memory: 128
max-sessions: 1024
ports:
  - {{name: {ACCESS_PORT}, role: access, device: 'net_af_xdp0,iface={ACCESS_PORT}'}}
  - name: {CORE_PORT}
    role: core
    device: net_af_xdp1,iface={CORE_PORT}
    tap: sl-core0
    addresses: [{core_v4}/{CORE_V4_LEN}, '{core_v6}/{CORE_V6_LEN}']
network-instances:
  default: {{device: sl-default, gateway: [{SUBSCRIBER_GATEWAY_V4}, '{SUBSCRIBER_GATEWAY_V6}']}}
"
    )
}
