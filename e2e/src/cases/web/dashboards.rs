//! Debian's Prometheus scrapes the gateway; every query of the dashboards has an answer, and every alert is in force.

use super::{AT, Web};
use crate::guard::PATIENCE;
use anyhow::{Context, Result, ensure};
use lab::process::Process;
use lab::topology::{Lab, Place};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Where Prometheus listens, on the control plane's machine.
const PROMETHEUS: &str = "127.0.0.1:9090";
/// Grafana's `$__rate_interval`: four times the interval of scrapes, which is a second here.
const RATE_INTERVAL: &str = "4s";
/// How often an answer is looked for.
const TICK: Duration = Duration::from_millis(200);

/// A version waits for its confirmation meanwhile: the dashboard of alarms has one to show.
pub fn run(web: &Web<'_>) -> Result<()> {
    let before = web.get("configuration")?.right()?;
    let edits =
        json!({"edits": ["set access-profiles pppoe ac-name watched"], "confirm-within": 600});
    web.post("configuration/commit", &edits)?.right()?;
    let mut prometheus = Prometheus::start(web.lab)?;
    let mut known = BTreeSet::new();
    let boards = files("grafana", "json")?;
    ensure!(boards.len() >= 4, "{boards:?}");
    for path in boards {
        let board: Value = serde_json::from_str(&fs::read_to_string(&path)?)?;
        let title = path.display();
        ensure!(
            known.insert(board["uid"].as_str().map(str::to_owned)),
            "{title}: its uid is another one's"
        );
        prometheus
            .shows(&board)
            .with_context(|| format!("{title}"))?;
    }
    prometheus.has_alerts()?;
    prometheus.process.stop()?;
    web.post("configuration/confirm", &json!({}))?.right()?;
    let back = json!({"version": before["version"]});
    web.post("configuration/commit", &back)?.right().map(drop)
}

/// Files of a folder of `deploy`.
fn files(folder: &str, kind: &str) -> Result<Vec<PathBuf>> {
    let folder = deploy(folder);
    let all = fs::read_dir(&folder)?.map(|entry| Ok(entry?.path()));
    let mut all = all.collect::<Result<Vec<_>>>()?;
    all.retain(|path| path.extension().is_some_and(|found| found == kind));
    all.sort();
    Ok(all)
}

fn deploy(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../deploy")
        .join(file)
}

/// Debian's Prometheus, with the alerts that are shipped, and a token of the role `view`.
struct Prometheus<'l> {
    lab: &'l Lab,
    process: Process,
}

impl<'l> Prometheus<'l> {
    fn start(lab: &'l Lab) -> Result<Self> {
        let dir = lab.dir().join("prometheus");
        if dir.exists() {
            fs::remove_dir_all(&dir)?;
        }
        fs::create_dir_all(&dir)?;
        let secret = super::token(lab, "prometheus", "view")?;
        let token = dir.join("token");
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).mode(0o600).open(&token)?;
        file.write_all(secret.as_bytes())?;
        let configuration = json!({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [fs::canonicalize(deploy("prometheus/alerts.yaml"))?],
            "scrape_configs": [{
                "job_name": "sluice",
                "scheme": "https",
                "authorization": {"credentials_file": token},
                "tls_config": {"ca_file": lab.dir().join("web/certificate.pem")},
                "static_configs": [{"targets": [AT]}],
            }],
        });
        // JSON is YAML
        let file = dir.join("prometheus.yml");
        fs::write(&file, configuration.to_string())?;
        let netns = lab.netns(Place::ControlPlane);
        let mut command = netns.command("/usr/bin/prometheus");
        command
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", dir.display()))
            .arg(format!("--web.listen-address={PROMETHEUS}"));
        let process = Process::spawn(lab.dir(), "prometheus", command)?;
        let mut prometheus = Prometheus { lab, process };
        prometheus.wait_for("answers yet", Self::is_ready)?;
        prometheus.wait("up{job=\"sluice\"} == 1")?;
        Ok(prometheus)
    }

    /// Asks its API.
    fn ask(&self, path: &str, parameters: &[(&str, &str)]) -> Result<Value> {
        let mut curl = self.lab.netns(Place::ControlPlane).command("/usr/bin/curl");
        curl.args(["--silent", "--show-error", "--get"]);
        for (name, value) in parameters {
            curl.args(["--data-urlencode", &format!("{name}={value}")]);
        }
        let done = curl
            .arg(format!("http://{PROMETHEUS}/api/v1/{path}"))
            .output()?;
        let said = String::from_utf8_lossy(&done.stderr);
        ensure!(done.status.success(), "{path}: {}", said.trim());
        let told: Value = serde_json::from_slice(&done.stdout)?;
        ensure!(
            told["status"] == "success",
            "{path} {parameters:?}: {}",
            told["error"]
        );
        Ok(told["data"].clone())
    }

    /// Whether it answers queries. Until then it has other answers to them.
    fn is_ready(&self) -> Result<bool> {
        let mut curl = self.lab.netns(Place::ControlPlane).command("/usr/bin/curl");
        curl.args(["--silent", "--fail"]);
        let done = curl.arg(format!("http://{PROMETHEUS}/-/ready")).output()?;
        Ok(done.status.success())
    }

    /// Waits until a query has at least one series. A query that is none fails at once.
    fn wait(&mut self, query: &str) -> Result<()> {
        self.wait_for(&format!("series: {query}"), |prometheus| {
            let told = prometheus.ask("query", &[("query", query)])?;
            Ok(told["result"].as_array().is_some_and(|all| !all.is_empty()))
        })
    }

    fn wait_for(&mut self, what: &str, is_there: impl Fn(&Self) -> Result<bool>) -> Result<()> {
        let start = Instant::now();
        while !is_there(self)? {
            ensure!(
                start.elapsed() < PATIENCE,
                "no {what}\n{}",
                self.process.tail()
            );
            ensure!(
                self.process.ended()?.is_none(),
                "Prometheus has ended:\n{}",
                self.process.tail()
            );
            sleep(TICK);
        }
        Ok(())
    }

    /// Every query of a dashboard has data, with its variables as Grafana fills them in.
    fn shows(&mut self, board: &Value) -> Result<()> {
        let values = self.values(board)?;
        let panels = board["panels"].as_array().context("no panels")?;
        let mut queries = 0;
        for panel in panels.iter().filter(|panel| panel["type"] != "row") {
            let targets = panel["targets"].as_array().into_iter().flatten();
            for target in targets {
                ensure!(
                    panel["datasource"]["uid"] == "${datasource}"
                        && target["datasource"] == panel["datasource"],
                    "{}: its data source is no variable",
                    panel["title"]
                );
                let query = target["expr"].as_str().context("no query")?;
                let filled = filled(query, &values);
                self.wait(&filled)
                    .with_context(|| format!("the panel {}", panel["title"]))?;
                queries += 1;
            }
        }
        ensure!(queries > 5, "{queries} queries");
        Ok(())
    }

    /// What Grafana puts in the place of each variable while all of its values are selected.
    fn values(&mut self, board: &Value) -> Result<BTreeMap<String, String>> {
        let mut values = BTreeMap::from([("__rate_interval".into(), RATE_INTERVAL.into())]);
        for variable in board["templating"]["list"].as_array().into_iter().flatten() {
            let name = variable["name"].as_str().context("no name")?;
            if variable["type"] == "datasource" {
                continue;
            }
            let query = variable["query"]["query"].as_str().context("no query")?;
            let asked = query.strip_prefix("label_values(");
            let asked = asked.and_then(|asked| asked.strip_suffix(')')?.split_once(", "));
            let (series, label) = asked.with_context(|| format!("`{query}` is no label_values"))?;
            self.wait(series)?;
            let told = self.ask(&format!("label/{label}/values"), &[("match[]", series)])?;
            let told = told.as_array().into_iter().flatten();
            let all: Vec<_> = told.filter_map(Value::as_str).map(escaped).collect();
            let all = match all.as_slice() {
                [] => anyhow::bail!("the variable {name} has no value"),
                [one] => one.clone(),
                several => format!("({})", several.join("|")),
            };
            values.insert(name.to_owned(), all);
        }
        Ok(values)
    }

    /// The rules are loaded, and each can be evaluated.
    fn has_alerts(&mut self) -> Result<()> {
        let written = fs::read_to_string(deploy("prometheus/alerts.yaml"))?;
        let written = written.matches("- alert: ").count();
        let start = Instant::now();
        loop {
            let told = self.ask("rules", &[])?;
            let groups = told["groups"].as_array().into_iter().flatten();
            let rules = groups.flat_map(|group| group["rules"].as_array().into_iter().flatten());
            let rules: Vec<_> = rules.collect();
            ensure!(rules.len() == written, "{written} alerts: {told}");
            let failed = rules.iter().find(|rule| rule["health"] == "err");
            ensure!(failed.is_none(), "{failed:?}");
            if rules.iter().all(|rule| rule["health"] == "ok") {
                return Ok(());
            }
            ensure!(start.elapsed() < PATIENCE, "not evaluated: {told}");
            sleep(TICK);
        }
    }
}

/// A query with the values of its variables. A longer name is another variable than one that it begins with.
fn filled(query: &str, values: &BTreeMap<String, String>) -> String {
    let mut filled = query.to_owned();
    for (name, value) in values.iter().rev() {
        filled = filled.replace(&format!("${name}"), value);
    }
    filled
}

/// A value in a regular expression in a quoted text of PromQL.
fn escaped(value: &str) -> String {
    let mut escaped = String::new();
    for letter in value.chars() {
        if r"\^$*+?.()|[]{}".contains(letter) {
            escaped.push_str(r"\\");
        }
        escaped.push(letter);
    }
    escaped
}
