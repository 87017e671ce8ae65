use crate::access_network::AccessNetwork;
use crate::fixture::Fixture;
use crate::guard::PATIENCE;
use crate::site::{CONFIGURED_AS, Setup, Site, program};
use anyhow::{Context, Result, ensure};
use lab::process::Process;
use lab::topology::{Lab, Place};
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Homes that are online.
const HOMES: u16 = 3;
/// Where gNMI is served, on the control plane's machine.
const AT: &str = "127.0.0.1:9339";
/// Who configures, as the control plane knows it.
const BY: &str = "netops (root)";
/// The start file of `sluice-web`.
const START: &str = "gnmi.yaml";
/// Where the client and the .proto files lie.
const HERE: &str = env!("CARGO_MANIFEST_DIR");
/// Debian's own, for which its packages are.
pub const PYTHON: &str = "/usr/bin/python3";
/// The pool that is made.
const POOL: &str = "/configuration/ipv4-pools[name=more]";
/// Ports of the default network instance.
const PORTS: &str =
    "/network-instances/network-instance[name=default]/interfaces/interface/state/interface";
const PASSWORD: &str = "correct horse battery";

pub fn run(fixture: &mut Fixture) -> Result<()> {
    let (lab, site) = fixture.site(&Setup::default())?;
    let gnmi = Gnmi::start(lab)?;
    let network = AccessNetwork::dial(lab, HOMES)?;
    network.wait_online(PATIENCE)?;
    network.hush();

    reads(&gnmi, site)?;
    changes(&gnmi, site)?;
    refusals(&gnmi, site)?;
    network.hang_up(PATIENCE)?;
    let Gnmi { mut process, .. } = gnmi;
    process.stop()
}

/// What is told is what the command line tells.
fn reads(gnmi: &Gnmi<'_>, site: &Site) -> Result<()> {
    let own = site.sessions()?.into_iter().next().context("no session")?;
    let session = format!("/state/sessions[id={}]", own.id);
    let active = format!("/components/component[name={CONFIGURED_AS}]/state/oper-status");
    let ports = json!({"path": "/state/ports", "mode": "SAMPLE", "sample_interval": "1000000000"});
    let stream = json!({"subscription": [ports], "encoding": "JSON_IETF"});
    let told = gnmi.call(&json!([
        {"call": "capabilities"},
        {"call": "get", "request": {"path": [format!("{session}/user")]}},
        {"call": "get", "request": {"path": ["/configuration/ipv4-pools", "/interfaces"], "encoding": "JSON_IETF"}},
        {"call": "subscribe", "until": 9, "request": stream},
        {"call": "get", "request": {"path": [active, PORTS], "encoding": "JSON_IETF"}},
    ]))?;
    let [offered, users, both, samples, openconfig] = &*told else {
        anyhow::bail!("{told:?}");
    };
    ensure!(offered["gNMIVersion"] == "0.10.0", "{offered}");
    let user = &users[0]["update"][format!("{session}/user")];
    ensure!(*user == own.user, "{users}");
    let pools: Value = serde_json::from_str(&site.sluice().run(&["show", "pools", "--json"])?)?;
    let prefix = &both[0]["update"]["/configuration/ipv4-pools[name=homes]"];
    let prefix = &prefix["sluice-configuration:prefix"];
    let rows = pools.as_array().context("no list")?;
    ensure!(rows.iter().any(|pool| pool["prefix"] == *prefix), "{both}");
    let interfaces = &both[1]["update"]["/interfaces"]["openconfig-interfaces:interface"];
    ensure!(
        interfaces.as_array().is_some_and(|all| all.len() > 1),
        "{both}"
    );
    // the ports, that these were all, and the ports again
    let heard = samples.as_array().context("no samples")?;
    let synced = heard.iter().position(|heard| heard == "sync");
    ensure!(
        synced.is_some_and(|at| at >= 2 && at + 1 < heard.len()),
        "{heard:?}"
    );
    let active = openconfig[0]["update"][&active].as_str();
    let is_active = active.is_some_and(|status| status.ends_with(":ACTIVE"));
    let ports = openconfig[1]["update"].as_object();
    let core = format!("{CONFIGURED_AS}/core0");
    let has_core = ports.is_some_and(|ports| ports.values().any(|name| *name == core));
    ensure!(is_active && has_core, "{openconfig}");
    Ok(())
}

/// A change is one commit, whoever subscribes hears of it, and it is known who made it.
fn changes(gnmi: &Gnmi<'_>, site: &Site) -> Result<()> {
    let pool = json!({"path": POOL, "val": {"json": {"prefix": "100.96.0.0/16"}}});
    let set = json!({"call": "set", "as": gnmi.bearer(), "request": {"update": [pool]}});
    let more = json!({"path": "/configuration/ipv4-pools", "mode": "ON_CHANGE"});
    let told = gnmi.call(&json!([
        {"call": "subscribe", "until": 3, "then": [set],
         "request": {"subscription": [more], "updates_only": true, "encoding": "JSON_IETF"}},
    ]))?;
    let heard = told[0].as_array().with_context(|| format!("{told:?}"))?;
    ensure!(
        heard[0] == "sync" && heard[1]["then"] == json!([["UPDATE", POOL]]),
        "{heard:?}"
    );
    let prefix = &heard[2]["update"][format!("{POOL}/prefix")];
    ensure!(prefix == "100.96.0.0/16", "{heard:?}");
    let versions = site.sluice().run(&["show", "versions", "--json"])?;
    let versions: Vec<Value> = serde_json::from_str(&versions)?;
    let by = |version: &Value| version["by"] == BY && version["comment"] == "gNMI";
    ensure!(versions.iter().any(by), "{versions:?}");
    let replace =
        json!({"path": POOL, "val": {"json": {"prefix": "100.97.0.0/16", "net-length": 25}}});
    let deleted = json!({"call": "set", "request": {"delete": [POOL]}});
    let told = gnmi.call(&json!([
        {"call": "set", "request": {"replace": [replace]}},
        {"call": "get", "request": {"path": [POOL]}},
        deleted,
        {"call": "get", "request": {"path": [POOL]}},
    ]))?;
    let now = json!({"name": "more", "prefix": "100.97.0.0/16", "net-length": 25});
    ensure!(told[1][0]["update"][POOL] == now, "{told:?}");
    ensure!(told[3]["error"] == "NOT_FOUND", "{told:?}");
    // a client that keeps a wished state sends all of it again, also what it cannot read
    let secret = json!({"path": "/configuration/users[name=keeper]", "val": {"json": {"password": PASSWORD}}});
    let set = json!({"call": "set", "request": {"update": [secret]}});
    let newest = |site: &Site| site.sluice().run(&["show", "versions", "--json"]);
    let first = gnmi.call(&json!([set]))?;
    let kept = newest(site)?;
    let again = gnmi.call(&json!([set]))?;
    ensure!(
        again == first && again[0].get("error").is_none(),
        "{first:?}: {again:?}"
    );
    ensure!(
        newest(site)? == kept,
        "a version is written in which nothing changes"
    );
    Ok(())
}

/// What is wrong is refused as a whole, and who is not known as well.
fn refusals(gnmi: &Gnmi<'_>, site: &Site) -> Result<()> {
    let before = site.sluice().run(&["show", "configuration"])?;
    let right = json!({"path": POOL, "val": {"json": {"prefix": "100.96.0.0/16"}}});
    let wrong = json!({"path": "/configuration/limits/sessions", "val": {"int_val": 0}});
    let password = |password: &str| json!({"username": "alice", "password": password});
    let expired = gnmi.token("short", &["--expires", "1s"])?;
    std::thread::sleep(std::time::Duration::from_secs(2));
    let told = gnmi.call(&json!([
        {"call": "set", "request": {"update": [right, wrong]}},
        {"call": "capabilities", "as": password("correct horse batteri")},
        {"call": "capabilities", "as": password(PASSWORD)},
        {"call": "capabilities", "as": {"authorization": format!("Bearer {expired}")}},
        {"call": "set", "as": password(PASSWORD), "request": {"delete": [POOL]}},
    ]))?;
    for (number, code, says) in [
        (0, "INVALID_ARGUMENT", "/configuration/limits/sessions"),
        (1, "UNAUTHENTICATED", "password is wrong"),
        (3, "UNAUTHENTICATED", "token is not in force"),
        (4, "PERMISSION_DENIED", "needs the role configure"),
    ] {
        let (error, detail) = (&told[number]["error"], told[number]["detail"].as_str());
        let is_said = detail.is_some_and(|detail| detail.contains(says));
        ensure!(*error == code && is_said, "{number}: {told:?}");
    }
    ensure!(told[2]["gNMIVersion"] == "0.10.0", "{told:?}");
    let after = site.sluice().run(&["show", "configuration"])?;
    ensure!(after == before, "{after} is not {before}");
    Ok(())
}

/// `sluice-web` beside the control plane, and a client with a token.
struct Gnmi<'l> {
    lab: &'l Lab,
    process: Process,
    token: String,
}

impl<'l> Gnmi<'l> {
    fn start(lab: &'l Lab) -> Result<Self> {
        let dir = lab.dir().display();
        let start = format!(
            "{{listen: ['127.0.0.1:8443'], gnmi: {{listen: ['{AT}']}}, state: {dir}/gnmi, api-socket: {dir}/cp.sock}}"
        );
        fs::write(lab.dir().join(START), start)?;
        let mut process = Process::spawn(lab.dir(), "sluice-web", command(lab)?)?;
        let log = process.log().to_owned();
        process.wait_until("the server to be ready", PATIENCE, || {
            fs::read_to_string(&log).is_ok_and(|text| text.contains("serves gNMI"))
        })?;
        let mut gnmi = Gnmi {
            lab,
            process,
            token: String::new(),
        };
        gnmi.token = gnmi.token("netops", &[])?;
        let mut adds = command(lab)?;
        adds.args(["user", "add", "alice", "--role", "view"]);
        let mut adds = adds.stdin(Stdio::piped()).spawn()?;
        writeln!(adds.stdin.take().context("piped")?, "{PASSWORD}")?;
        ensure!(adds.wait()?.success(), "no user");
        Ok(gnmi)
    }

    /// A token with the role `configure`.
    fn token(&self, name: &str, more: &[&str]) -> Result<String> {
        let words = [&["token", "add", name, "--role", "configure"], more].concat();
        let made = command(self.lab)?.args(words).output()?;
        ensure!(made.status.success(), "{made:?}");
        Ok(String::from_utf8(made.stdout)?.trim().to_owned())
    }

    fn bearer(&self) -> Value {
        json!({"authorization": format!("Bearer {}", self.token)})
    }

    /// What comes of these calls, with the token where they do not say otherwise.
    fn call(&self, calls: &Value) -> Result<Vec<Value>> {
        let mut calls = calls.clone();
        for call in calls.as_array_mut().context("no calls")? {
            if call.get("as").is_none() {
                call["as"] = self.bearer();
            }
        }
        let python = self.lab.netns(Place::ControlPlane).command(PYTHON);
        peer(
            python,
            AT,
            &self.lab.dir().join("gnmi/certificate.pem"),
            &calls,
        )
    }
}

/// What comes of calls of Google's gRPC for Python at this address.
pub fn peer(
    mut python: Command,
    at: &str,
    certificate: &Path,
    calls: &Value,
) -> Result<Vec<Value>> {
    let here = Path::new(HERE);
    python
        .arg(here.join("gnmi-peer/peer.py"))
        .arg(here.with_file_name("proto"))
        .arg(at)
        .arg(certificate)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut peer = python.spawn().context("cannot run Debian's Python")?;
    let mut input = peer.stdin.take().context("piped")?;
    input.write_all(calls.to_string().as_bytes())?;
    drop(input);
    let done = peer.wait_with_output()?;
    let said = String::from_utf8_lossy(&done.stderr);
    ensure!(done.status.success(), "the peer failed: {said}");
    Ok(serde_json::from_slice(&done.stdout)?)
}

/// `sluice-web` with its start file, on the control plane's machine.
fn command(lab: &Lab) -> Result<Command> {
    let netns = lab.netns(Place::ControlPlane);
    let mut command = netns.command(program("sluice-web")?);
    command.arg("--start").arg(lab.dir().join(START));
    Ok(command)
}
