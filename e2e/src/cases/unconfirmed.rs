use super::commits::commit;
use crate::fixture::Fixture;
use crate::frames::{ac_name, padi};
use crate::guard::PATIENCE;
use crate::probe::Probe;
use crate::site::{CONFIGURED_AS, Setup, Site, daemon};
use anyhow::{Context, Result, ensure};
use lab::topology::{CORE_PORT, Lab, Place};
use nix::sys::signal::Signal;
use northbound::{Change, CommitRequest, CommitResponse, ConfigurationClient, change};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a version waits that is confirmed, in seconds.
const LONG: u32 = 120;
/// How long at least a version waits whose end is waited for, in seconds.
const SHORT: u64 = 3;
/// So many times what it took the version that was confirmed to be in force.
const TIMES_SHORT: u32 = 4;
/// How much longer is waited to see that nothing happens.
const LONGER: Duration = Duration::from_secs(2);
const TICK: Duration = Duration::from_millis(50);
/// What the version changes: the user plane's addresses, and what the control plane calls itself.
const ADDRESS: &str = "198.51.100.9";
const NAME: &str = "another";
/// A home that nobody knows, on a line that no other case uses.
const MAC: [u8; 6] = [2, 0, 0, 0, 0x77, 1];
const TAGS: [u16; 2] = [777, 1];

/// A version that nobody confirms goes again, on both planes: in time, when the control plane dies and comes back before the
/// time is over, and when it comes back later. One that is confirmed stays.
pub fn run(fixture: &mut Fixture) -> Result<()> {
    let (lab, site) = fixture.site(&Setup::default())?;
    let mut gateway = Gateway {
        lab,
        probe: Probe::join(lab)?,
        site,
        within: LONG,
    };
    gateway.wait_for(false)?;
    let took = gateway.confirmed()?;
    let short = Duration::from_secs(SHORT).max(TIMES_SHORT * took);
    gateway.within = short.as_secs_f64().ceil() as u32;
    println!(
        "        a version is in force after {took:.2?}: the next ones wait {} s",
        gateway.within
    );
    gateway.stays()?;
    gateway.given_up(Death::None)?;
    gateway.given_up(Death::Short)?;
    gateway.given_up(Death::Long)
}

/// What becomes of the control plane while a version waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Death {
    None,
    /// It is killed and started again at once.
    Short,
    /// It is killed and started again when the time is over.
    Long,
}

struct Gateway<'a> {
    lab: &'a Lab,
    probe: Probe,
    site: &'a mut Site,
    /// How long a version waits to be confirmed, in seconds.
    within: u32,
}

impl Gateway<'_> {
    /// A version that nobody confirms.
    fn given_up(&mut self, death: Death) -> Result<()> {
        let before = self.client()?.get(None)?;
        let begun = Instant::now();
        let version = self.commit()?;
        self.wait_for(true)?;
        if death != Death::None {
            self.site.cp.signal(Signal::SIGKILL)?;
            self.site.cp.stop()?;
        }
        if death == Death::Long {
            self.outlast();
            ensure!(
                self.address_answers(),
                "a user plane without its control plane gave the version up"
            );
        }
        if death != Death::None {
            self.start_again()?;
        }
        self.wait_for(false)?;
        // The time of a version is counted in whole seconds.
        let least = self.time() - Duration::from_secs(1);
        ensure!(begun.elapsed() >= least, "{death:?}: it went too early");
        let mut client = self.client()?;
        let (versions, after) = (client.versions()?, client.get(None)?);
        let last = versions.last().context("no version")?;
        let why = format!(
            "version {version} was not confirmed: {} is back",
            before.version
        );
        ensure!(
            last.version == version + 1
                && last.by == "sluice-cp"
                && last.comment == why
                && last.confirm_by.is_none(),
            "{death:?}: {last:?}"
        );
        ensure!(
            after.document == before.document,
            "{death:?}: in force is {}",
            after.document
        );
        self.is_in_the_history(last.version, &why)
    }

    /// A version that keeps others out until it is confirmed; how long it took to be in force.
    fn confirmed(&mut self) -> Result<Duration> {
        let before = self.client()?.get(None)?.version;
        let begun = Instant::now();
        let version = self.commit()?;
        self.wait_for(true)?;
        let took = begun.elapsed();
        self.keeps_others_out(version)?;
        self.confirm(version)?;
        self.go_back(before)?;
        Ok(took)
    }

    /// A version that is confirmed is there when its time is over.
    fn stays(&mut self) -> Result<()> {
        let before = self.client()?.get(None)?.version;
        let version = self.commit()?;
        self.confirm(version)?;
        self.outlast();
        self.is_confirmed(version)?;
        self.wait_for(true)?;
        self.go_back(before)
    }

    fn confirm(&self, version: u64) -> Result<()> {
        let confirmed = self.client()?.confirm(0)?;
        ensure!(confirmed == version, "version {confirmed} is confirmed");
        self.is_confirmed(version)
    }

    /// This version is the last one, and waits for nobody.
    fn is_confirmed(&self, version: u64) -> Result<()> {
        let last = self.client()?.versions()?.pop().context("no version")?;
        ensure!(
            last.version == version && last.confirm_by.is_none(),
            "{last:?}"
        );
        Ok(())
    }

    /// Waits until a version that was committed before would have been given up.
    fn outlast(&self) {
        sleep(self.time() + LONGER);
    }

    fn time(&self) -> Duration {
        Duration::from_secs(self.within.into())
    }

    /// Makes an earlier version the last one.
    fn go_back(&self, before: u64) -> Result<()> {
        let back = CommitRequest {
            change: Some(Change {
                change: Some(change::Change::Version(before)),
            }),
            ..CommitRequest::default()
        };
        accepted(&self.client()?.commit(back)?)?;
        self.wait_for(false)
    }

    /// Commits a version that waits to be confirmed.
    fn commit(&self) -> Result<u64> {
        let mut client = self.client()?;
        let port = ["user-planes", CONFIGURED_AS, "ports", CORE_PORT];
        let address = format!("{ADDRESS}/24");
        let waiting = CommitRequest {
            confirm_within: self.within,
            ..commit(
                client.get(None)?.version,
                &[
                    &[&port[..], &["addresses", &address]].concat(),
                    &["access-profiles", "pppoe", "ac-name", NAME],
                ],
            )
        };
        let done = client.commit(waiting)?;
        accepted(&done)?;
        Ok(done.version)
    }

    /// While a version waits, no other change is made.
    fn keeps_others_out(&self, version: u64) -> Result<()> {
        let other = commit(version, &[&["users", "nobody", "password", "secret"]]);
        let done = self.client()?.commit(other)?;
        ensure!(
            done.faults.len() == 1 && done.faults[0].message.contains("is not confirmed yet"),
            "{done:?}"
        );
        Ok(())
    }

    fn is_in_the_history(&self, version: u64, why: &str) -> Result<()> {
        let resource = format!("version {version}");
        let begun = Instant::now();
        loop {
            let events = self.site.sluice().run(&["show", "events", "--json"])?;
            let events: Vec<serde_json::Value> = serde_json::from_str(&events)?;
            let is_it = |event: &&serde_json::Value| {
                event["kind"] == "rolled-back" && event["resource"] == *resource
            };
            if let Some(event) = events.iter().find(is_it) {
                ensure!(
                    event["by"] == "sluice-cp" && event["text"] == *why,
                    "{event:#}"
                );
                return Ok(());
            }
            ensure!(
                begun.elapsed() < PATIENCE,
                "{resource} is not in the history: {events:#?}"
            );
            sleep(TICK);
        }
    }

    /// Waits until both planes show by packets that the version is in force, or that it is not.
    fn wait_for(&self, in_force: bool) -> Result<()> {
        let begun = Instant::now();
        loop {
            let (name, answers) = (self.name()?, self.address_answers());
            let is_named = name.as_deref() == Some(NAME);
            if name.is_some() && is_named == in_force && answers == in_force {
                return Ok(());
            }
            ensure!(
                begun.elapsed() < PATIENCE + self.time(),
                "the control plane calls itself {name:?}; does the user plane answer for {ADDRESS}: {answers}"
            );
            sleep(TICK);
        }
    }

    /// What the control plane calls itself, as a home hears it.
    fn name(&self) -> Result<Option<String>> {
        self.probe.send(&padi(MAC, &TAGS))?;
        sleep(TICK);
        let mut name = None;
        while let Some(frame) = self.probe.receive()? {
            name = ac_name(&frame, MAC).or(name);
        }
        Ok(name)
    }

    /// Whether the user plane answers for the address, as its neighbour on the core link sees it.
    fn address_answers(&self) -> bool {
        let ping = ["ping", "-n", "-c", "1", "-W", "1", ADDRESS];
        self.lab.netns(Place::Internet).run(&ping).is_ok()
    }

    fn start_again(&mut self) -> Result<()> {
        let file = self.lab.dir().join("cp.yaml");
        self.site.cp = daemon(self.lab, Place::ControlPlane, "sluice-cp", &file)?;
        let begun = Instant::now();
        while self.client().is_err() {
            ensure!(begun.elapsed() < PATIENCE, "{}", self.site.cp.tail());
            sleep(TICK);
        }
        Ok(())
    }

    fn client(&self) -> Result<ConfigurationClient> {
        let socket = self.lab.dir().join("cp.sock");
        Ok(ConfigurationClient::connect(&socket, PATIENCE)?)
    }
}

fn accepted(done: &CommitResponse) -> Result<()> {
    ensure!(
        done.faults.is_empty() && done.pending.is_empty(),
        "{done:?}"
    );
    Ok(())
}
