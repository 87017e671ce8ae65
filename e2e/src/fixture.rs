//! What the cases share: one network, one virtual subscriber, and the daemons as each case wants them.

use crate::guard;
use crate::home;
use crate::load::{self, Loaded};
use crate::site::{Setup, Site};
use crate::vm::Vm;
use anyhow::{Context, Result};
use lab::claim;
use lab::topology::Lab;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The name that tells the tests' labs from `make run`'s, before their numbers.
pub const FAMILY: &str = "e2e";
/// How long sessions of the case before may take to go once their homes are gone.
const SETTLE: Duration = Duration::from_secs(10);

/// Everything that outlives a case.
pub struct Fixture {
    // Dropped in this order: processes before the namespaces that they run in.
    loaded: Option<Loaded>,
    site: Option<Site>,
    vm: Option<Vm>,
    lab: Lab,
    /// Verified packets a second of a gateway under load.
    rate: u32,
}

/// What a case works with.
pub struct Stage<'a> {
    /// The network.
    pub lab: &'a Lab,
    /// The virtual machine in which the homes live; no home is there yet.
    pub vm: &'a Vm,
    /// The daemons and the RADIUS server, without a session.
    pub site: &'a mut Site,
}

impl Fixture {
    /// An empty network for cases; everything else is started when one asks for it.
    pub fn new() -> Result<Self> {
        Self::with_rate(load::RATE)
    }

    /// The same, where a gateway under load carries so many packets a second.
    pub fn with_rate(rate: u32) -> Result<Self> {
        claim::clear_dead(FAMILY)?;
        let lab = Lab::numbered(FAMILY)?;
        guard::protect(&lab);
        Ok(Fixture {
            loaded: None,
            site: None,
            vm: None,
            lab,
            rate,
        })
    }

    /// The network alone.
    pub fn lab(&self) -> &Lab {
        &self.lab
    }

    /// Ends the daemons, if they run: for cases that start some themselves.
    pub fn without_site(&mut self) -> Result<&Lab> {
        if let Some(loaded) = self.loaded.take() {
            loaded.close()?;
        }
        if let Some(site) = self.site.take() {
            site.stop()?;
        }
        Ok(&self.lab)
    }

    /// A gateway under load, as the cases before have left it or a new one.
    pub fn loaded(&mut self) -> Result<(&Lab, &Vm, &mut Loaded)> {
        if self.loaded.is_none() {
            self.without_site()?;
            self.vacant()?;
            let vm = self.vm.as_ref().context("no virtual machine")?;
            self.loaded = Some(Loaded::start(&self.lab, vm, self.rate)?);
        }
        Ok((
            &self.lab,
            self.vm.as_ref().context("no virtual machine")?,
            self.loaded.as_mut().context("no load")?,
        ))
    }

    /// The homes of the gateway under load leave, and what they leave behind is looked at.
    pub fn unload(&mut self) -> Result<()> {
        let loaded = self.loaded.take().context("no load")?;
        loaded.finish(&self.lab, self.vm.as_ref().context("no virtual machine")?)
    }

    /// The network and the virtual machine without homes, and no daemons: for cases with another access concentrator.
    pub fn machine(&mut self) -> Result<(&Lab, &Vm)> {
        self.without_site()?;
        self.vacant()?;
        Ok((&self.lab, self.vm.as_ref().context("no virtual machine")?))
    }

    /// The virtual machine without homes.
    fn vacant(&mut self) -> Result<()> {
        let vm = match self.vm.take() {
            Some(vm) => vm,
            None => Vm::boot(&self.lab)?,
        };
        home::evict(&vm)?;
        self.vm = Some(vm);
        Ok(())
    }

    /// The daemons, set up like this and without a session, and a virtual machine without homes.
    pub fn stage(&mut self, setup: &Setup) -> Result<Stage<'_>> {
        self.vacant()?;
        self.settle(setup)?;
        Ok(Stage {
            lab: &self.lab,
            vm: self.vm.as_ref().context("no virtual machine")?,
            site: self.site.as_mut().context("no site")?,
        })
    }

    /// The daemons, set up like this and without a session: for cases whose homes are emulated.
    pub fn site(&mut self, setup: &Setup) -> Result<(&Lab, &mut Site)> {
        if let Some(vm) = &self.vm {
            home::evict(vm)?;
        }
        self.settle(setup)?;
        Ok((&self.lab, self.site.as_mut().context("no site")?))
    }

    /// Keeps the daemons if they are set up like this and every session goes, or starts them.
    fn settle(&mut self, setup: &Setup) -> Result<()> {
        if let Some(loaded) = self.loaded.take() {
            loaded.close()?;
        }
        let reusable = match &mut self.site {
            Some(site) => site.setup() == setup && site.wait_empty(SETTLE).is_ok(),
            None => false,
        };
        if !reusable {
            if let Some(old) = self.site.take() {
                old.stop()?;
            }
            self.site = Some(Site::start(&self.lab, setup)?);
        }
        Ok(())
    }

    /// After a failed case: keeps its logs, says where they are and what they end with, and gives the next case a
    /// fresh start.
    pub fn post_mortem(&mut self, case: &str) -> String {
        let mut said = String::new();
        if let Some(loaded) = self.loaded.take()
            && let Err(error) = loaded.close()
        {
            said.push_str(&format!("        {error:#}\n"));
        }
        if let Some(site) = self.site.take() {
            said.push_str(&site.tails());
            if let Err(error) = site.stop() {
                said.push_str(&format!("        {error:#}\n"));
            }
        }
        if let Some(vm) = self.vm.take() {
            let logs = home::logs(&vm).unwrap_or_else(|error| format!("{error:#}"));
            if let Err(error) = std::fs::write(self.lab.dir().join("pppd.log"), logs) {
                said.push_str(&format!("        {error}\n"));
            }
        }
        let kept = failures().join(case);
        match keep(&self.lab, &kept) {
            Ok(()) => said.push_str(&format!("        logs and captures: {}", kept.display())),
            Err(error) => said.push_str(&format!("        logs could not be kept: {error:#}")),
        }
        said
    }

    /// Ends everything and removes the namespaces.
    pub fn close(mut self) -> Result<()> {
        self.without_site()?;
        self.vm = None;
        self.lab.close()
    }
}

/// Where the logs of failed cases are kept.
fn failures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/e2e")
}

/// Copies the plain files of a lab, and of those that belong to it.
fn keep(lab: &Lab, to: &Path) -> Result<()> {
    copy(lab.dir(), to)?;
    for part in claim::parts(lab.name())? {
        copy(&claim::directory(&part), &to.join(part))?;
    }
    Ok(())
}

/// Copies the plain files of a folder.
fn copy(from: &Path, to: &Path) -> Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            std::fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}
