use super::commits::commit;
use crate::fixture::Fixture;
use crate::frames::{ac_name, padi};
use crate::probe::Probe;
use crate::site::{CONFIGURED_AS, Setup, Site, daemon};
use anyhow::{Context, Result, ensure};
use lab::topology::{CORE_PORT, Lab, Place};
use nix::sys::signal::Signal;
use northbound::{Change, CommitRequest, CommitResponse, ConfigurationClient, change};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a version waits to be confirmed, in seconds.
const WITHIN: u32 = 3;
/// How much longer is waited to see that nothing happens.
const LONGER: Duration = Duration::from_secs(2);
/// No time is measured that way: it ends a wait for what does not come.
const LIMIT: Duration = Duration::from_secs(60);
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
    };
    gateway.wait_for(false)?;
    gateway.given_up(Death::None)?;
    gateway.given_up(Death::Short)?;
    gateway.given_up(Death::Long)?;
    gateway.confirmed()
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
}

impl Gateway<'_> {
    /// A version that nobody confirms.
    fn given_up(&mut self, death: Death) -> Result<()> {
        let before = self.client()?.get(None)?;
        let begun = Instant::now();
        let version = self.commit()?;
        if death == Death::None {
            self.keeps_others_out(version)?;
        } else {
            self.site.cp.signal(Signal::SIGKILL)?;
            self.site.cp.stop()?;
        }
        if death == Death::Long {
            sleep(Duration::from_secs(WITHIN.into()) + LONGER);
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
        let least = Duration::from_secs(u64::from(WITHIN) - 1);
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

    /// A version that is confirmed in time.
    fn confirmed(&mut self) -> Result<()> {
        let before = self.client()?.get(None)?.version;
        let version = self.commit()?;
        let confirmed = self.client()?.confirm(0)?;
        ensure!(confirmed == version, "version {confirmed} is confirmed");
        sleep(Duration::from_secs(WITHIN.into()) + LONGER);
        let mut client = self.client()?;
        let last = client.versions()?.pop().context("no version")?;
        ensure!(
            last.version == version && last.confirm_by.is_none(),
            "{last:?}"
        );
        self.wait_for(true)?;
        let back = CommitRequest {
            change: Some(Change {
                change: Some(change::Change::Version(before)),
            }),
            ..CommitRequest::default()
        };
        accepted(&client.commit(back)?)?;
        self.wait_for(false)
    }

    /// Commits a version that waits to be confirmed, and sees it in force.
    fn commit(&mut self) -> Result<u64> {
        let mut client = self.client()?;
        let port = ["user-planes", CONFIGURED_AS, "ports", CORE_PORT];
        let address = format!("{ADDRESS}/24");
        let waiting = CommitRequest {
            confirm_within: WITHIN,
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
        self.wait_for(true)?;
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
                begun.elapsed() < LIMIT,
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
                begun.elapsed() < LIMIT,
                "the control plane calls itself {name:?}; does the user plane answer for {ADDRESS}: {answers}"
            );
            sleep(TICK);
        }
    }

    /// What the control plane calls itself, as a home hears it.
    fn name(&self) -> Result<Option<String>> {
        self.probe.send(&padi(MAC, TAGS))?;
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
            ensure!(begun.elapsed() < LIMIT, "{}", self.site.cp.tail());
            sleep(TICK);
        }
        Ok(())
    }

    fn client(&self) -> Result<ConfigurationClient> {
        let socket = self.lab.dir().join("cp.sock");
        Ok(ConfigurationClient::connect(&socket, LIMIT)?)
    }
}

fn accepted(done: &CommitResponse) -> Result<()> {
    ensure!(
        done.faults.is_empty() && done.pending.is_empty(),
        "{done:?}"
    );
    Ok(())
}
