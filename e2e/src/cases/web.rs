pub mod crowd;
mod dashboards;

use crate::access_network::AccessNetwork;
use crate::fixture::Fixture;
use crate::guard::PATIENCE;
use crate::site::{CONFIGURED_AS, Setup, Site, program};
use anyhow::{Context, Result, ensure};
use lab::process::Process;
use lab::topology::{Lab, Place};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::process::{Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// Homes that are online.
const HOMES: u16 = 3;
/// Where the server listens, on the control plane's machine.
pub const AT: &str = "127.0.0.1:8443";
/// Who configures, as the control plane knows it.
const BY: &str = "netops (root)";
/// Its start file.
const START: &str = "web.yaml";

pub fn run(fixture: &mut Fixture) -> Result<()> {
    let (lab, site) = fixture.site(&Setup::default())?;
    let mut web = Web::start(lab, "{}")?;
    let mut network = None;
    crowd::run(&web, || {
        let homes = network.insert(AccessNetwork::dial(lab, HOMES)?);
        homes.wait_online(PATIENCE).map(drop)
    })?;
    let network = network.context("nobody has dialled")?;
    network.hush();

    sessions(&web, site)?;
    dashboards::run(&web)?;
    daemons(&web)?;
    changes(&web, site)?;
    drains(&web)?;
    refusals(&web)?;
    web.die()?;
    ends(&web, site)?;
    let (homes, _) = network.hang_up(PATIENCE)?;
    ensure!(homes.ends.len() <= 1, "sessions ended: {:?}", homes.ends);
    site.wait_empty(PATIENCE)?;
    let audit = web
        .post("actions/check", &json!({"resources": true}))?
        .right()?;
    ensure!(audit["balanced"] == true, "{audit}");
    web.process.stop()
}

/// What is told of sessions is what the command line tells.
fn sessions(web: &Web, site: &Site) -> Result<()> {
    let rows = web.get("sessions?limit=2")?.right()?;
    ensure!(
        rows["rows"].as_array().map(Vec::len) == Some(2) && rows["next"] == 2,
        "{rows}"
    );
    let own = site
        .sessions()?
        .into_iter()
        .find(|session| session.user == "home2");
    let own = own.context("home2 is not online")?;
    let told = web.get(&format!("session?session={}", own.id))?.right()?;
    let printed = site.sluice().run(&["show", "session", &own.id, "--json"])?;
    let printed: Value = serde_json::from_str(&printed)?;
    for member in ["user", "mac", "ipv4", "settings", "policy", "limited_by"] {
        ensure!(
            told[member] == printed[member],
            "{member}: {told} is not {printed}"
        );
    }
    ensure!(
        told["settings"]
            .as_array()
            .is_some_and(|all| !all.is_empty()),
        "{told}"
    );
    let address = own.ipv4.context("no IPv4 address")?;
    let who = web.get(&format!("who?address={address}"))?.right()?;
    ensure!(who["holders"][0]["subscriber"]["user"] == "home2", "{who}");
    let found = web.get("subscriber?subscriber=home2")?.right()?;
    ensure!(found[0]["id"] == own.id, "{found}");
    Ok(())
}

/// Each daemon tells of its process.
fn daemons(web: &Web) -> Result<()> {
    let told = web.get("daemons")?.right()?;
    ensure!(told["missing"] == json!([]), "{told}");
    let rows = told["rows"].as_array().context("no rows")?;
    let names = rows.iter().map(|row| (&row["name"], &row["user_plane"]));
    let names: Vec<_> = names
        .map(|(name, of)| (name.as_str(), of.as_str()))
        .collect();
    let all = [
        ("sluice-cp", ""),
        ("sluice-up", CONFIGURED_AS),
        ("sluice-web", ""),
    ];
    ensure!(
        names == all.map(|(name, of)| (Some(name), Some(of))),
        "{told}"
    );
    for figure in [
        "resident_octets",
        "cpu_microseconds",
        "threads",
        "descriptors",
        "started_at",
    ] {
        let is_there = |row: &Value| row[figure].as_u64().is_some_and(|value| value > 0);
        ensure!(rows.iter().all(is_there), "{figure}: {told}");
    }
    Ok(())
}

/// A change is checked, committed until it is confirmed, confirmed, and taken back. Sessions stay.
fn changes(web: &Web, site: &Site) -> Result<()> {
    let name = |tree: &Value| tree["access-profiles"]["pppoe"]["ac-name"].clone();
    let before = web.get("configuration")?.right()?;
    let edits = json!({"edits": ["set access-profiles pppoe ac-name by-web"], "comment": "tried", "confirm-within": 600});
    let would = web.post("configuration/check", &edits)?.right()?;
    ensure!(
        would["faults"] == json!([]) && name(&would["tree"]) == "by-web",
        "{would}"
    );
    let done = web.post("configuration/commit", &edits)?.right()?;
    let version = done["version"].as_u64().context("no version")?;
    ensure!(Some(version) > before["version"].as_u64(), "{done}");
    let newest = |versions: Value| {
        versions["rows"]
            .as_array()
            .and_then(|rows| rows.last().cloned())
    };
    let row = newest(web.get("versions")?.right()?).context("no version")?;
    ensure!(
        row["by"] == BY && row["comment"] == "tried" && row["confirm_by"].is_u64(),
        "{row}"
    );
    let kept = web.post("configuration/confirm", &json!({}))?.right()?;
    ensure!(kept == json!({"version": version}), "{kept}");
    let row = newest(web.get("versions")?.right()?).context("no version")?;
    ensure!(row["confirm_by"].is_null(), "{row}");
    let shown = site.sluice().run(&["show", "configuration"])?;
    ensure!(shown.contains("by-web"), "{shown}");

    let back = json!({"version": before["version"]});
    web.post("configuration/commit", &back)?.right()?;
    let after = web.get("configuration")?.right()?;
    ensure!(after["tree"] == before["tree"], "{after} is not {before}");
    ensure!(
        site.sessions()?.len() == usize::from(HOMES),
        "a session ended"
    );
    Ok(())
}

/// A user plane is drained, and takes new sessions again.
fn drains(web: &Web) -> Result<()> {
    let drain = || -> Result<Value> {
        let planes = web.get("user-planes")?.right()?;
        Ok(planes["rows"][0]["drain"].clone())
    };
    let mut order = json!({"user-plane": CONFIGURED_AS});
    web.post("actions/drain-user-plane", &order)?.right()?;
    let told = drain()?;
    ensure!(told["sessions_before"] == HOMES, "{told}");
    order["stop"] = true.into();
    web.post("actions/drain-user-plane", &order)?.right()?;
    ensure!(drain()?.is_null(), "{}", drain()?);
    Ok(())
}

/// What is wrong is refused with a sentence, and nothing changes.
fn refusals(web: &Web) -> Result<()> {
    let before = web.get("configuration")?.right()?;
    let secret = json!({"document": before["document"]});
    for (body, status, says) in [
        (
            json!({"edits": ["set access-profiles pppoe ac-nam x"]}),
            422,
            "ac-nam",
        ),
        (secret, 422, "placeholder of a hidden secret"),
        (json!({"version": 999_999}), 422, "999999 does not exist"),
        (json!({"edits": "all"}), 400, "expected a sequence"),
    ] {
        let reply = web.post("configuration/commit", &body)?;
        let detail = reply.body["detail"].as_str().unwrap_or_default();
        ensure!(
            reply.status == status && detail.contains(says),
            "{body}: {reply:?}"
        );
    }
    let after = web.get("configuration")?.right()?;
    ensure!(after == before, "{after} is not {before}");
    Ok(())
}

/// A session is ended, and everybody can read who did that.
fn ends(web: &Web, site: &mut Site) -> Result<()> {
    let first = site.sessions()?.into_iter().next().context("no session")?;
    let body = json!({"session": first.id});
    let reply = web.post("actions/clear-session", &body)?;
    ensure!(reply.status == 204, "{reply:?}");
    site.wait_for("the end in the history", PATIENCE, |_| {
        let asked = format!("events?subscriber={}", first.user);
        let events = web.get(&asked)?.right()?;
        let rows = events["rows"].as_array().cloned().unwrap_or_default();
        Ok(rows
            .iter()
            .any(|event| event["kind"] == "ended" && event["by"] == BY))
    })?;
    site.wait_for("the record of its traffic", PATIENCE, |site| {
        let (_, text) = web.curl("records", &[])?;
        let (lines, status) = text.rsplit_once('\n').context("no status")?;
        ensure!(status == "200", "{text}");
        let printed = site.sluice().run(&["export", "records"])?;
        let is_own = |line: &str| {
            let record = serde_json::from_str::<Value>(line).unwrap_or_default();
            record["subscriber"]["session"] == *first.id && record["traffic"].is_object()
        };
        Ok(lines.lines().any(is_own) && printed.lines().any(is_own))
    })
}

/// `sluice-web` beside the control plane, and a client with a token.
pub struct Web<'l> {
    lab: &'l Lab,
    pub process: Process,
    token: String,
}

/// What came back.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    body: Value,
}

impl Reply {
    /// The answer, unless it is an error.
    pub fn right(self) -> Result<Value> {
        ensure!(self.status == 200, "{self:?}");
        Ok(self.body)
    }
}

impl<'l> Web<'l> {
    /// With these destinations of events, and without what an earlier case left.
    pub fn start(lab: &'l Lab, destinations: &str) -> Result<Self> {
        let state = lab.dir().join("web");
        if state.exists() {
            fs::remove_dir_all(state)?;
        }
        let dir = lab.dir().display();
        let start = format!(
            "{{listen: ['{AT}'], state: {dir}/web, api-socket: {dir}/cp.sock, destinations: {destinations}}}"
        );
        fs::write(lab.dir().join(START), start)?;
        let process = serve(lab)?;
        let token = token(lab, "netops", "configure")?;
        Ok(Web {
            lab,
            process,
            token,
        })
    }

    /// It is killed, and started again.
    pub fn die(&mut self) -> Result<()> {
        self.process.signal(Signal::SIGKILL)?;
        while self.process.ended()?.is_none() {
            sleep(Duration::from_millis(10));
        }
        self.process = serve(self.lab)?;
        Ok(())
    }

    pub fn get(&self, path: &str) -> Result<Reply> {
        self.ask(path, &[])
    }

    pub fn post(&self, path: &str, body: &Value) -> Result<Reply> {
        self.ask(path, &["--data-binary", &body.to_string()])
    }

    /// Asks as Debian's curl does, with the token where other users do not see it.
    fn ask(&self, path: &str, more: &[&str]) -> Result<Reply> {
        let (done, text) = self.curl(path, more)?;
        ensure!(done.success(), "{path}: {done}");
        let (body, status) = text.rsplit_once('\n').context("no status")?;
        Ok(Reply {
            status: status.parse()?,
            body: serde_json::from_str(body).unwrap_or_default(),
        })
    }

    /// How curl ended, and what it got.
    pub fn curl(&self, path: &str, more: &[&str]) -> Result<(ExitStatus, String)> {
        let mut curl = self.lab.netns(Place::ControlPlane).command("/usr/bin/curl");
        curl.args([
            "--silent",
            "--show-error",
            "--config",
            "-",
            "--write-out",
            "\n%{http_code}",
        ])
        .arg("--cacert")
        .arg(self.lab.dir().join("web/certificate.pem"))
        .args(more)
        .arg(format!("https://{AT}/api/v1/{path}"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
        let mut curl = curl.spawn()?;
        let mut input = curl.stdin.take().context("piped")?;
        writeln!(input, "header = \"Authorization: Bearer {}\"", self.token)?;
        drop(input);
        let done = curl.wait_with_output()?;
        Ok((done.status, String::from_utf8(done.stdout)?))
    }
}

/// A new token with this role.
pub fn token(lab: &Lab, name: &str, role: &str) -> Result<String> {
    let words = ["token", "add", name, "--role", role];
    let made = command(lab)?.args(words).output()?;
    ensure!(made.status.success(), "{made:?}");
    Ok(String::from_utf8(made.stdout)?.trim().to_owned())
}

/// A new link that signs a browser in once, with this role.
pub fn link(lab: &Lab, role: &str) -> Result<String> {
    let made = command(lab)?
        .args(["link", "--role", role, "--at", AT])
        .output()?;
    ensure!(made.status.success(), "{made:?}");
    Ok(String::from_utf8(made.stdout)?.trim().to_owned())
}

/// `sluice-web` with its start file, on the control plane's machine.
fn command(lab: &Lab) -> Result<Command> {
    let netns = lab.netns(Place::ControlPlane);
    let mut command = netns.command(program("sluice-web")?);
    command.arg("--start").arg(lab.dir().join(START));
    Ok(command)
}

fn serve(lab: &Lab) -> Result<Process> {
    let mut process = Process::spawn(lab.dir(), "sluice-web", command(lab)?)?;
    let log = process.log().to_owned();
    process.wait_until("the server to be ready", PATIENCE, || {
        fs::read_to_string(&log).is_ok_and(|text| text.contains("serves HTTPS"))
    })?;
    Ok(process)
}
