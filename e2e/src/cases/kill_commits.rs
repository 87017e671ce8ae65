use super::commits::commit;
use crate::background_lab::{BackgroundLab, id, socket};
use crate::fixture::Fixture;
use crate::guard::PATIENCE;
use anyhow::{Context, Result, ensure};
use config::history::KEPT;
use lab::topology::Lab;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use northbound::{ConfigurationClient, GetConfigurationResponse};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

const HOMES: u32 = 100;
/// Who is killed at each fault. The lab waits longer each time before it starts again what dies soon.
const FAULTS: [&[&str]; 6] = [
    &["cp"],
    &["up1"],
    &["cp"],
    &["cp", "up2"],
    &["up2", "up1"],
    &["cp", "up1"],
];
const BETWEEN: Duration = Duration::from_millis(1137);

/// Whoever dies in the middle of a commit: there is the version before or the new one, the same on all planes, and what was
/// acknowledged stays.
pub fn run(fixture: &mut Fixture) -> Result<()> {
    let own = fixture.without_site()?;
    let lab = BackgroundLab::start(own, HOMES)?;
    let over = AtomicBool::new(false);
    let writer = thread::scope(|scope| -> Result<Writer> {
        let writer = scope.spawn(|| write(own, &over));
        let mut dead = BTreeMap::new();
        let dealt = FAULTS.into_iter().try_for_each(|names| {
            sleep(BETWEEN);
            let mut names = names.iter();
            names.try_for_each(|name| strike(own, name, &mut dead))
        });
        sleep(BETWEEN);
        over.store(true, Ordering::Relaxed);
        let writer = writer.join();
        dealt?;
        writer.map_err(|_| anyhow::anyhow!("the writer panicked"))?
    })?;
    println!(
        "        {} commits acknowledged, {} torn of which {} are in force",
        writer.acknowledged, writer.torn, writer.torn_in_force
    );
    ensure!(writer.torn > 0, "no commit was hit: the faults miss");
    ensure!(writer.acknowledged > 0, "no commit was acknowledged");
    settled(own, &writer)?;
    let report = lab.end()?;
    println!("        {report:?}");
    report.homes(HOMES, 0)?;
    report.restarts(["cp", "up1", "up2"].map(struck))?;
    report.losses()
}

/// How often a daemon is killed.
fn struck(name: &str) -> u32 {
    let names = FAULTS.iter().flat_map(|names| names.iter());
    names.filter(|struck| **struck == name).count() as u32
}

/// Kills a daemon as soon as it runs, and not once more the process that was killed before.
fn strike(lab: &Lab, name: &'static str, dead: &mut BTreeMap<&str, i32>) -> Result<()> {
    let begun = Instant::now();
    loop {
        // The id is written down anew when it is started again; until somebody has looked, who is dead can be killed.
        if let Ok(id) = id(lab, name)
            && dead.get(name) != Some(&id)
            && kill(Pid::from_raw(id), Signal::SIGKILL).is_ok()
        {
            dead.insert(name, id);
            return Ok(());
        }
        ensure!(begun.elapsed() < PATIENCE, "{name} does not run");
        sleep(Duration::from_millis(20));
    }
}

/// Both user planes have the document of the version in force, which is the last one that the writer knows of.
fn settled(lab: &Lab, writer: &Writer) -> Result<()> {
    let begun = Instant::now();
    loop {
        let mut client = connect(lab)?;
        let managed = client.managed()?;
        if managed.len() == 2 && managed.iter().all(|plane| plane.in_force) {
            let versions: Vec<u64> = client.versions()?.iter().map(|v| v.version).collect();
            ensure!(
                versions.last() == Some(&writer.version),
                "in force is {:?}, acknowledged was {}",
                versions.last(),
                writer.version
            );
            ensure!(
                versions.len() >= KEPT.min(writer.acknowledged as usize)
                    && versions.windows(2).all(|two| two[0] + 1 == two[1]),
                "versions are missing: {versions:?}"
            );
            return Ok(());
        }
        ensure!(begun.elapsed() < PATIENCE, "not in force: {managed:?}");
        sleep(Duration::from_millis(100));
    }
}

/// Who commits, and what it knows.
#[derive(Default)]
struct Writer {
    version: u64,
    /// What the version in force says.
    value: u64,
    acknowledged: u32,
    torn: u32,
    torn_in_force: u32,
}

/// Commits one version after the other, each of which changes both user planes.
fn write(lab: &Lab, over: &AtomicBool) -> Result<Writer> {
    let mut writer = Writer {
        version: 1,
        ..Writer::default()
    };
    let mut client = connect(lab)?;
    while !over.load(Ordering::Relaxed) {
        let next = writer.value.max(100) + 1;
        let hold = next.to_string();
        let both = ["up1", "up2"].map(|plane| ["user-planes", plane, "hold-sessions", &hold]);
        match client.commit(commit(writer.version, &[&both[0], &both[1]])) {
            Ok(done) => {
                ensure!(done.faults.is_empty(), "refused: {:?}", done.faults);
                (writer.version, writer.value) = (done.version, next);
                writer.acknowledged += 1;
            }
            Err(_) => {
                writer.torn += 1;
                let found = in_force(lab)?;
                writer.look(&found, next)?;
                client = connect(lab)?;
            }
        }
    }
    Ok(writer)
}

impl Writer {
    /// Looks which version is in force after a commit that was not answered.
    fn look(&mut self, found: &GetConfigurationResponse, next: u64) -> Result<()> {
        let tree: serde_json::Value = serde_json::from_str(&found.tree)?;
        let hold = |plane: &str| {
            let value = &tree["user-planes"][plane]["hold-sessions"];
            let text = value.as_str().map(str::to_owned);
            text.unwrap_or_else(|| value.to_string())
        };
        let (one, two) = (hold("up1"), hold("up2"));
        let before =
            found.version == self.version && (self.value == 0 || one == self.value.to_string());
        let after = found.version == self.version + 1 && one == next.to_string();
        ensure!(
            one == two && (before || after),
            "acknowledged was version {} with {}, asked for {next}, found is version {} with {one} and {two}",
            self.version,
            self.value,
            found.version
        );
        if after {
            (self.version, self.value) = (found.version, next);
            self.torn_in_force += 1;
        }
        Ok(())
    }
}

/// The version in force, as soon as somebody lives long enough to tell.
fn in_force(lab: &Lab) -> Result<GetConfigurationResponse> {
    let begun = Instant::now();
    loop {
        let found = connect(lab)?.get(None);
        if found.is_ok() || begun.elapsed() > PATIENCE {
            return found.context("nobody tells the version in force");
        }
    }
}

/// A connection to the control plane, as soon as there is one.
fn connect(lab: &Lab) -> Result<ConfigurationClient> {
    let (path, begun) = (socket(lab), Instant::now());
    loop {
        let connected = ConfigurationClient::connect(&path, PATIENCE);
        if connected.is_ok() || begun.elapsed() > PATIENCE {
            return connected.context("the configuration cannot be reached");
        }
        sleep(Duration::from_millis(20));
    }
}
