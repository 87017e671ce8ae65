use super::commits::commit;
use crate::access_network::AccessNetwork;
use crate::disk::loss::Loss;
use crate::disk::{self, Disk, image::Change, image::Image};
use crate::fixture::Fixture;
use crate::guard::PATIENCE;
use crate::site::{CONFIGURED_AS, Setup, Site};
use anyhow::{Context, Result, ensure};
use config::folder;
use config::history::History;
use control::Restored;
use control::history::{Bounds, Database, Event, Query, Step, What, events};
use control::store::{Store, StoreError, check, export, import};
use core::ops::ControlFlow;
use cpe::State;
use lab::topology::Lab;
use mi::Kept;
use northbound::{CommitRequest, ConfigurationClient};
use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File};
use std::hash::{Hash, Hasher};
use std::io::Write;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

const HOMES: u16 = 8;
const TICK: Duration = Duration::from_millis(2);
/// The folder of the disk in the lab's, and on it that of the state folders, which the daemons make.
const DISK: &str = "disk";
const STATE: &str = "state";
const BELOW: &str = "disk/state";
/// A backup on the disk, and a store that is made of it.
const BACKUP: &str = "monday";
const IMPORTED: &str = "another";
/// State folders that a process has left in a hurry.
const LEFT: &str = "left";
/// What a seal of the store takes, in octets; so much of the batch before it is a part of that.
const SEAL: usize = 20;

/// Whenever the power is lost, what was acknowledged until then is there afterwards, and everything opens: sessions, accounting
/// records, events, versions of the configuration, and the user plane's document.
pub fn run(fixture: &mut Fixture) -> Result<()> {
    let lab = fixture.without_site()?;
    disk::apart(|| {
        let (changes, promises) = record(lab)?;
        let replay = lab.dir().join("replay");
        fs::create_dir_all(&replay)?;
        disk::memory(&replay, None)?;
        judge(&changes, &promises, &replay)
    })
}

/// What somebody was told. It holds from one change of the disk on, and until what was told last was to end.
struct Promise {
    what: String,
    from: usize,
    until: usize,
}

/// What was promised so far.
struct Promises<'a> {
    disk: &'a Disk,
    all: Vec<Promise>,
}

impl Promises<'_> {
    /// Somebody has just been told.
    fn add(&mut self, what: String) {
        if self.all.iter().all(|promise| promise.what != what) {
            let (from, until) = (self.disk.position(), usize::MAX);
            self.all.push(Promise { what, from, until });
        }
    }

    /// What begins with this is to end now.
    fn end(&mut self, with: &str) {
        let now = self.disk.position();
        let ending = self.all.iter_mut().filter(|p| p.what.starts_with(with));
        ending.for_each(|promise| promise.until = now);
    }
}

/// The life of a gateway on a disk that records it.
fn record(lab: &Lab) -> Result<(Vec<Change>, Vec<Promise>)> {
    let at = lab.dir().join(DISK);
    fs::create_dir_all(&at)?;
    let disk = Disk::mount(&at)?;
    let mut promises = Promises {
        disk: &disk,
        all: Vec::new(),
    };
    let setup = Setup {
        state: BELOW,
        ..Setup::default()
    };
    let mut site = Site::start(lab, &setup)?;
    let mut client = ConfigurationClient::connect(&lab.dir().join("cp.sock"), PATIENCE)?;
    configured(&mut client, &mut promises)?;
    let network = AccessNetwork::dial(lab, HOMES)?;
    all_online(&network, &mut promises)?;
    commits(&mut client, &mut promises)?;
    backup(&at, &mut promises)?;
    // From here on records of accounting stay, because nobody takes them.
    site.radius.take().context("no RADIUS server")?.stop()?;
    promises.end("session");
    network.hang_up(PATIENCE)?;
    site.wait_empty(PATIENCE)?;
    for home in 1..=HOMES {
        promises.add(format!("record of home{home}"));
        promises.add(format!("end of home{home}"));
    }
    site.stop()?;
    left_behind(&at, &mut promises)?;
    let promises = promises.all;
    Ok((disk.changes(), promises))
}

/// Waits until every home is online, and notes when each came.
fn all_online(network: &AccessNetwork, promises: &mut Promises<'_>) -> Result<()> {
    let begun = Instant::now();
    loop {
        let rows = network.status().rows;
        let online = rows.iter().filter(|row| row.state == State::Online);
        let users: Vec<&str> = online.map(|row| row.user.as_str()).collect();
        for user in &users {
            promises.add(format!("session of {user}"));
            promises.add(format!("beginning of {user}"));
        }
        if users.len() == usize::from(HOMES) {
            return Ok(());
        }
        ensure!(begun.elapsed() < PATIENCE, "online are only {users:?}");
        sleep(TICK);
    }
}

/// What the configuration service says is in force is promised.
fn configured(client: &mut ConfigurationClient, promises: &mut Promises<'_>) -> Result<()> {
    let managed = client.managed()?;
    let plane = managed.first().context("no user plane")?;
    ensure!(plane.in_force, "not in force: {}", plane.why);
    let generation = plane.generation.context("without a generation")?;
    promises.add(format!("document {generation}"));
    let last = client.versions()?.pop().context("no version")?;
    promises.add(format!("version {}", last.version));
    Ok(())
}

/// Versions that concern the control plane, the user plane, and one that is confirmed.
fn commits(client: &mut ConfigurationClient, promises: &mut Promises<'_>) -> Result<()> {
    let hold = ["user-planes", CONFIGURED_AS, "hold-sessions", "120"];
    for (base, edit) in [
        (1, &["users", "nobody", "password", "secret"][..]),
        (2, &hold),
    ] {
        let done = client.commit(commit(base, &[edit]))?;
        ensure!(
            done.faults.is_empty() && done.pending.is_empty(),
            "{done:?}"
        );
        promises.add(format!("version {}", done.version));
        configured(client, promises)?;
    }
    let waiting = CommitRequest {
        confirm_within: 600,
        ..commit(3, &[&["users", "nobody", "password", "other"]])
    };
    let done = client.commit(waiting)?;
    ensure!(done.faults.is_empty(), "{done:?}");
    promises.add(format!("version {}", done.version));
    let confirmed = client.confirm(0)?;
    promises.add(format!("version {confirmed}, confirmed"));
    Ok(())
}

/// A process that was killed has written, and given names, without a sync. Its successor relies on what it reads.
fn left_behind(disk: &Path, promises: &mut Promises<'_>) -> Result<()> {
    let (from, to) = (disk.join(STATE), disk.join(LEFT));
    let versions = Path::new("store").join("configuration");
    let last = fs::read_dir(from.join(&versions))?.count();
    let files = [
        versions.join(format!("{last:06}.yaml")),
        "store/sessions.log".into(),
        "up/document".into(),
    ];
    folder::make(&to.join(&versions))?;
    folder::make(&to.join("up"))?;
    for file in &files {
        let (mut content, to) = (fs::read(from.join(file))?, to.join(file));
        let mut rest = Vec::new();
        if file.ends_with("sessions.log") {
            // Its last batch is written behind its name; the seal behind that would say that it is synced.
            content.truncate(content.len() - SEAL);
            rest = content.split_off(content.len() - SEAL);
        }
        let new = to.with_extension("new");
        let mut copy = File::create(&new)?;
        copy.write_all(&content)?;
        copy.sync_all()?;
        fs::rename(&new, &to)?;
        copy.write_all(&rest)?;
    }
    for what in look(&to)? {
        promises.add(format!("{LEFT}: {what}"));
    }
    Ok(())
}

/// A backup while the store is in use, and a store made of it.
fn backup(disk: &Path, promises: &mut Promises<'_>) -> Result<()> {
    let written = export(&disk.join(STATE).join("store"), &disk.join(BACKUP))?;
    promises.add(format!("{BACKUP} of {} records", written.records));
    let read = import(&disk.join(BACKUP), &disk.join(IMPORTED))?;
    promises.add(format!("{IMPORTED} of {} records", read.records));
    Ok(())
}

/// Loses the power after each change, in every way, and looks what is found then.
fn judge(changes: &[Change], promises: &[Promise], replay: &Path) -> Result<()> {
    let mut loss = Loss::default();
    let (mut known, mut states) = (HashMap::new(), 0);
    for at in 0..=changes.len() {
        if let Some(last) = at.checked_sub(1) {
            loss.take(&changes[last]);
        }
        for image in loss.states() {
            states += 1;
            let opened = known
                .entry(key(&image))
                .or_insert_with(|| opened(&image, replay));
            let when = || when(at, changes);
            let found = opened.as_ref();
            let found = found.map_err(|why| anyhow::anyhow!("{why}, {}", when()))?;
            let due = promises.iter().filter(|p| p.from <= at && at <= p.until);
            let missing: Vec<&str> = due
                .map(|promise| promise.what.as_str())
                .filter(|what| !found.contains(*what))
                .collect();
            ensure!(missing.is_empty(), "lost: {missing:?}, {}", when());
        }
    }
    println!(
        "        {} changes and syncs, {} promises; {states} losses of power leave {} disks",
        changes.len(),
        promises.len(),
        known.len()
    );
    ensure!(
        promises.len() > usize::from(4 * HOMES) && known.len() > promises.len(),
        "that was hardly anything"
    );
    Ok(())
}

fn key(image: &Image) -> u64 {
    let mut hasher = DefaultHasher::new();
    image.hash(&mut hasher);
    hasher.finish()
}

/// The changes before a loss of power, for whoever looks for the sync that is missing.
fn when(at: usize, changes: &[Change]) -> String {
    let names = changes.iter().filter_map(|change| match change {
        Change::Make { node, name, .. } => Some((*node, name.as_str())),
        _ => None,
    });
    let names = names.collect();
    let before = &changes[at.saturating_sub(12)..at];
    let told = |change: &Change| format!("\n          {}", change.told(&names));
    let lines: String = before.iter().map(told).collect();
    format!("if the power is lost after change {at}:{lines}")
}

/// What the daemons' own code finds on a disk, or why it does not open.
fn opened(image: &Image, replay: &Path) -> Result<BTreeSet<String>, String> {
    let open = || -> Result<BTreeSet<String>> {
        for entry in fs::read_dir(replay)? {
            let path = entry?.path();
            match path.is_dir() {
                true => fs::remove_dir_all(path)?,
                false => fs::remove_file(path)?,
            }
        }
        image.write_to(replay)?;
        let mut found = look(&replay.join(STATE))?;
        let left = look(&replay.join(LEFT))?;
        found.extend(left.iter().map(|what| format!("{LEFT}: {what}")));
        for copy in [replay.join(BACKUP), replay.join(IMPORTED)] {
            backups(&copy, &mut found)?;
        }
        Ok(found)
    };
    open().map_err(|error| format!("{error:#}"))
}

/// What is in the state folders of both daemons.
fn look(state: &Path) -> Result<BTreeSet<String>> {
    let (cp, up) = (state.join("store"), state.join("up"));
    let mut found = BTreeSet::new();
    versions(&cp, &mut found)?;
    sessions(&cp, &mut found)?;
    history(&cp, &mut found)?;
    document(&up, &mut found)?;
    Ok(found)
}

fn versions(cp: &Path, found: &mut BTreeSet<String>) -> Result<()> {
    let history = History::open(&cp.join("configuration"))?;
    for version in history.versions() {
        let number = version.version;
        history.load(number)?;
        found.insert(format!("version {number}"));
        if version.confirm_by.is_none() {
            found.insert(format!("version {number}, confirmed"));
        }
    }
    Ok(())
}

/// Sessions, records of accounting, and events that are not in the history yet.
fn sessions(cp: &Path, found: &mut BTreeSet<String>) -> Result<()> {
    let (_, opened) = Store::open(cp)?;
    for (key, value) in &opened.live {
        for home in 1..=HOMES {
            let name = format!("home{home}");
            let is_about = value
                .windows(name.len())
                .any(|part| part == name.as_bytes());
            if is_about && key.starts_with(b"session/") {
                found.insert(format!("session of {name}"));
            }
            if is_about && key.starts_with(b"accounting/") {
                found.insert(format!("record of {name}"));
            }
        }
        if key.starts_with(b"history/") {
            events(value).for_each(|event| note(&event, found));
        }
    }
    Restored::read(opened.live, 0, "another boot").map_err(anyhow::Error::msg)?;
    Ok(())
}

fn history(cp: &Path, found: &mut BTreeSet<String>) -> Result<()> {
    let bounds = Bounds {
        keep: u32::MAX,
        octets: u64::MAX,
    };
    let database = Database::open(&cp.join("history"), bounds)?;
    database.reader().forward(&Query::default(), |event| {
        note(event, found);
        ControlFlow::Continue(())
    });
    Ok(())
}

fn note(event: &Event<'_>, found: &mut BTreeSet<String>) {
    if let What::Subscriber(who, step) = &event.what {
        let user = String::from_utf8_lossy(who.user);
        match step {
            Step::Online { .. } => found.insert(format!("beginning of {user}")),
            Step::Ended { .. } => found.insert(format!("end of {user}")),
            _ => false,
        };
    }
}

/// A backup, or a store made of one: it is whole as soon as it has its name.
fn backups(copy: &Path, found: &mut BTreeSet<String>) -> Result<()> {
    match check(copy) {
        Err(StoreError::Missing(_)) => {}
        checked => {
            let checked = checked?;
            ensure!(checked.sealed, "{} is not whole", checked.path.display());
            let name = copy.file_name().unwrap_or_default().to_string_lossy();
            found.insert(format!("{name} of {} records", checked.live.len()));
        }
    }
    Ok(())
}

/// The document, which is there if a later one is.
fn document(up: &Path, found: &mut BTreeSet<String>) -> Result<()> {
    let last = Kept::open(up)?.document()?;
    let generation = last.map_or(0, |document| document.generation);
    found.extend((1..=generation).map(|earlier| format!("document {earlier}")));
    Ok(())
}
