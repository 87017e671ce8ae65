use super::web::Web;
use crate::access_network::AccessNetwork;
use crate::certificates;
use crate::fixture::Fixture;
use crate::guard::PATIENCE;
use crate::site::Setup;
use anyhow::{Context, Result, ensure};
use lab::process::Process;
use lab::topology::{Lab, Place};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};

/// Homes that come and go.
const HOMES: u16 = 5;
/// Where rsyslog listens, on the control plane's machine.
const SYSLOG: &str = "127.0.0.1:6601";
/// A webhook in Python, which checks signatures.
const WEBHOOK: &str = "../bin/sluice-web/tests/peers/webhook.py";

pub fn run(fixture: &mut Fixture) -> Result<()> {
    let (lab, site) = fixture.site(&Setup::default())?;
    let folder = fresh(lab)?;
    let receivers = Receivers::start(lab, &folder)?;
    let at = folder.display();
    let destinations = format!(
        "{{noc: {{to: 'syslog+tcp://{SYSLOG}'}}, \
         crm: {{to: 'https://localhost:{}/', authority: {at}/ca.pem, secret: {at}/secret}}}}",
        receivers.port
    );
    let mut web = Web::start(lab, &destinations)?;
    let mut begun = None;
    site.wait_for("the destinations to begin", PATIENCE, |_| {
        begun = places(&web)?;
        Ok(begun.is_some())
    })?;
    let begun = begun.context("no place")?;

    let network = AccessNetwork::dial(lab, HOMES)?;
    network.wait_online(PATIENCE)?;
    network.hush();
    fs::write(folder.join("refuse"), "")?;
    let first = site.sessions()?.into_iter().next().context("no session")?;
    let reply = web.post("actions/clear-session", &json!({"session": first.id}))?;
    ensure!(reply.status == 204, "{reply:?}");
    site.wait_for("the webhook to refuse the end", PATIENCE, |_| {
        let all = web.get("destinations")?.right()?;
        Ok(all["rows"][0]["failures"].as_u64() > Some(0))
    })?;
    web.die()?;
    fs::remove_file(folder.join("refuse"))?;
    network.hang_up(PATIENCE)?;
    site.wait_empty(PATIENCE)?;

    site.wait_for("every event to arrive", PATIENCE, |_| {
        let history = history(&web, begun)?;
        let [noc, crm] = receivers.got()?;
        // each of them came online and went
        Ok(history.len() >= 2 * usize::from(HOMES) && noc == history && crm == history)
    })?;
    streamed(&web, begun)?;
    web.process.stop()
}

/// A folder with certificates and a secret, without what an earlier run left.
fn fresh(lab: &Lab) -> Result<PathBuf> {
    let folder = lab.dir().join("events-out");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    certificates::write(&folder, &[("webhook", "localhost")])?;
    fs::write(folder.join("secret"), "a secret of these cases")?;
    Ok(folder)
}

/// The earliest place of the destinations, if each has one.
fn places(web: &Web) -> Result<Option<u64>> {
    let all = web.get("destinations")?.right()?;
    let rows = all["rows"].as_array().context("no rows")?;
    let places: Option<Vec<u64>> = rows.iter().map(|row| row["last"].as_u64()).collect();
    Ok(places.and_then(|places| places.into_iter().min()))
}

/// Numbers of the events behind this one, as the table has them.
fn history(web: &Web, begun: u64) -> Result<BTreeSet<u64>> {
    let events = web.get("events?last=1000&limit=1000")?.right()?;
    let rows = events["rows"].as_array().context("no rows")?;
    let numbers = rows.iter().filter_map(|row| row["number"].as_u64());
    Ok(numbers.filter(|number| *number > begun).collect())
}

/// A stream that goes on behind this event has each event of the table once.
fn streamed(web: &Web, begun: u64) -> Result<()> {
    let id = format!("Last-Event-ID: {begun}");
    let more = ["--no-buffer", "--max-time", "3", "--header", &id];
    let (_, text) = web.curl("events/stream", &more)?;
    let events = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let mut numbers = Vec::new();
    for event in events {
        let event: Value = serde_json::from_str(event)?;
        numbers.push(event["number"].as_u64().context("no number")?);
    }
    let all: Vec<u64> = history(web, begun)?.into_iter().collect();
    ensure!(numbers == all, "{numbers:?} are not {all:?}");
    Ok(())
}

/// Debian's rsyslog and a webhook, on the control plane's machine.
struct Receivers {
    folder: PathBuf,
    port: u16,
    _processes: [Process; 2],
}

impl Receivers {
    fn start(lab: &Lab, folder: &Path) -> Result<Self> {
        let netns = lab.netns(Place::ControlPlane);
        let mut python = netns.command("/usr/bin/python3");
        python.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(WEBHOOK));
        for name in ["webhook.pem", "webhook.key", "secret", "."] {
            python.arg(folder.join(name));
        }
        let mut webhook = Process::spawn(lab.dir(), "webhook", python)?;
        let log = webhook.log().to_owned();
        let port = || fs::read_to_string(&log).ok()?.trim().parse().ok();
        webhook.wait_until("the webhook's port", PATIENCE, || port().is_some())?;

        let (address, number) = SYSLOG.split_once(':').context("no port")?;
        let got = folder.join("noc");
        let configuration = format!(
            "module(load=\"imtcp\")\nmodule(load=\"mmpstrucdata\")\n\
             input(type=\"imtcp\" port=\"{number}\" address=\"{address}\")\n\
             action(type=\"mmpstrucdata\")\n\
             template(name=\"number\" type=\"string\" string=\"%$!rfc5424-sd!sluice@32473!number%\\n\")\n\
             action(type=\"omfile\" file=\"{}\" template=\"number\")\n",
            got.display()
        );
        fs::write(folder.join("rsyslog.conf"), configuration)?;
        let mut rsyslog = netns.command("/usr/sbin/rsyslogd");
        rsyslog.arg("-n").arg("-f").arg(folder.join("rsyslog.conf"));
        rsyslog.arg("-i").arg(folder.join("rsyslog.pid"));
        let mut rsyslog = Process::spawn(lab.dir(), "rsyslog", rsyslog)?;
        let listens = || {
            netns
                .within(|| TcpStream::connect(SYSLOG).is_ok())
                .unwrap_or(false)
        };
        rsyslog.wait_until("rsyslog to listen", PATIENCE, listens)?;
        Ok(Receivers {
            folder: folder.to_owned(),
            port: port().context("no port")?,
            _processes: [webhook, rsyslog],
        })
    }

    /// Numbers of the events that rsyslog and the webhook have got. Some may have come more than once.
    fn got(&self) -> Result<[BTreeSet<u64>; 2]> {
        let read = |name: &str| {
            let text = fs::read_to_string(self.folder.join(name)).unwrap_or_default();
            let numbers = text.lines().map(|line| line.parse().context("no number"));
            numbers.collect::<Result<BTreeSet<u64>>>()
        };
        Ok([read("noc")?, read("got")?])
    }
}
