//! How the configuration changes: a change is put onto what is in force, checked whole, and then becomes the next version.
//!
//! A change is made of edits to a version (its base). Others may have committed since: what they changed elsewhere stays, and
//! where both changed the same, nobody wins and the change is refused.

use crate::check::{self, Checked};
use crate::edit::{self, Edit, EditError};
use crate::history::{History, HistoryError, Version};
use crate::model::share_acls;
use crate::{Fault, Path};
use serde_json::Value;
use std::sync::Arc;

/// What is to become of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is edited.
    Edits {
        /// The version that the editor saw; 0 is the empty one.
        base: u64,
        /// What the editor did.
        edits: Vec<Edit>,
    },
    /// It becomes this document.
    Document(String),
    /// It becomes what it was.
    Version(u64),
}

/// Who commits, when and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Author {
    /// Their name.
    pub name: String,
    /// The lock that they hold, if they do.
    pub lock: Option<u64>,
    /// Seconds since 1970.
    pub at: u64,
}

/// Nobody but its holder changes the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    /// Tells it from others.
    pub number: u64,
    /// Who holds it.
    pub holder: String,
    /// Since when, in seconds since 1970.
    pub since: u64,
}

/// Why a change does not happen. The configuration is as it was.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// Somebody else has locked the configuration.
    #[error("{holder} has locked the configuration since {since}: ask {holder} to leave `configure exclusive`", holder = .0.holder, since = .0.since)]
    Locked(Lock),
    /// The version in force waits for its confirmation.
    #[error("version {version} by {by} is not confirmed yet: `commit confirm` keeps it, `rollback {before}` discards it", version = .0.version, by = .0.by, before = .1)]
    Unconfirmed(Box<Version>, u64),
    /// An edit has no place to go.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// Others have changed the same meanwhile.
    #[error("somebody else changed {} after version {base}: check `show | compare {base}` and edit again", list(.places))]
    Conflict {
        /// What the change was made of.
        base: u64,
        /// Where both changed something.
        places: Vec<Path>,
    },
    /// It would be no configuration.
    #[error("{}", faults(.0))]
    Faults(Vec<Fault>),
    /// There is nothing to change.
    #[error("nothing changes")]
    Nothing,
    /// A version cannot be read or written.
    #[error(transparent)]
    History(#[from] HistoryError),
}

fn list(places: &[Path]) -> String {
    let shown: Vec<String> = places
        .iter()
        .take(5)
        .map(|place| format!("`{place}`"))
        .collect();
    match places.len() {
        n if n > 5 => format!("{} and {} more places", shown.join(", "), n - 5),
        _ => shown.join(", "),
    }
}

fn faults(faults: &[Fault]) -> String {
    let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// The configuration in force, those before it, and who may change it.
#[derive(Debug)]
pub struct Transactions {
    history: History,
    lock: Option<Lock>,
    locks: u64,
}

impl Transactions {
    /// Goes on with what a folder has.
    pub fn new(history: History) -> Self {
        Transactions {
            history,
            lock: None,
            locks: 0,
        }
    }

    /// Every version.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// What is in force.
    pub fn current(&self) -> &Checked {
        self.history.current()
    }

    /// The number of the version in force; 0: there was never one, and it is empty.
    pub fn version(&self) -> u64 {
        self.history.version().unwrap_or(0)
    }

    /// Who has locked it.
    pub fn lock(&self) -> Option<&Lock> {
        self.lock.as_ref()
    }

    /// Locks it until [`Transactions::unlock`].
    ///
    /// # Errors
    /// Somebody else has.
    pub fn acquire(&mut self, holder: &str, since: u64) -> Result<u64, Refusal> {
        if let Some(lock) = &self.lock {
            return Err(Refusal::Locked(lock.clone()));
        }
        self.locks += 1;
        self.lock = Some(Lock {
            number: self.locks,
            holder: holder.into(),
            since,
        });
        Ok(self.locks)
    }

    /// Lets go of a lock.
    pub fn unlock(&mut self, number: u64) {
        self.lock.take_if(|lock| lock.number == number);
    }

    /// What a version was; 0 is the empty one.
    ///
    /// # Errors
    /// It is not kept any more, or cannot be read.
    pub fn load(&self, version: u64) -> Result<Checked, HistoryError> {
        match version {
            0 => Ok(Checked::default()),
            same if same == self.version() => Ok(self.current().clone()),
            other => self.history.load(other),
        }
    }

    /// What the configuration would be.
    ///
    /// # Errors
    /// What is wrong with the change.
    pub fn candidate(&self, change: &Change) -> Result<Checked, Refusal> {
        let checked = match change {
            Change::Edits { base, edits } => check::check(&self.edited(*base, edits)?),
            Change::Version(version) => check::check(&self.load(*version)?.tree),
            Change::Document(text) => check::read(text),
        };
        let mut checked = checked.map_err(Refusal::Faults)?;
        // nobody else has it yet
        if let Some(configuration) = Arc::get_mut(&mut checked.configuration) {
            let current = &self.current().configuration;
            share_acls(&mut configuration.acls, &current.acls);
        }
        Ok(checked)
    }

    fn edited(&self, base: u64, edits: &[Edit]) -> Result<Value, Refusal> {
        let edited = |tree: &Value| {
            let mut tree = tree.clone();
            edits.iter().try_for_each(|edit| edit.apply(&mut tree))?;
            Ok::<_, Refusal>(tree)
        };
        let current = &self.current().tree;
        if base == self.version() {
            return edited(current);
        }
        let base_tree = self.load(base)?.tree;
        let wanted = edited(&base_tree)?;
        let edits = edit::difference(&base_tree, &wanted);
        edit::merge(&base_tree, &edits, current)
            .map_err(|places| Refusal::Conflict { base, places })
    }

    /// Whether this author may commit this change now.
    ///
    /// # Errors
    /// Who or what stands in the way.
    pub fn may_commit(&self, author: &Author, change: &Change) -> Result<(), Refusal> {
        if let Some(lock) = self
            .lock
            .as_ref()
            .filter(|lock| Some(lock.number) != author.lock)
        {
            return Err(Refusal::Locked(lock.clone()));
        }
        let waits = self
            .history
            .versions()
            .next_back()
            .filter(|last| last.confirm_by.is_some());
        match (waits, change) {
            (Some(version), Change::Edits { .. } | Change::Document(_)) => {
                let before = self.history.last_confirmed().unwrap_or(0);
                Err(Refusal::Unconfirmed(Box::new(version.clone()), before))
            }
            _ => Ok(()),
        }
    }

    /// Makes a candidate the version in force. It is durable when this returns, with its number and what was in force before. Takes long if it
    /// is large.
    ///
    /// # Errors
    /// It is what is in force already, or could not be written.
    pub fn commit(
        &mut self,
        candidate: Checked,
        author: &Author,
        comment: &str,
        confirm_by: Option<u64>,
    ) -> Result<(u64, Checked), Refusal> {
        if candidate.tree == self.current().tree
            && self.version() > 0
            && self.history.confirm_by().is_none()
        {
            return Err(Refusal::Nothing);
        }
        let (at, by) = (author.at, &author.name);
        let committed = self
            .history
            .commit(candidate, at, by, comment, confirm_by)?;
        Ok(committed)
    }

    /// Takes the last commit back, which gave what was in force before.
    ///
    /// # Errors
    /// It will be in force after the next start.
    pub fn take_back(&mut self, former: Checked) -> Result<(), HistoryError> {
        self.history.take_back(former)
    }

    /// Keeps the version in force, which waits for that.
    ///
    /// # Errors
    /// It waits for nothing, or the confirmation could not be written.
    pub fn confirm(&mut self) -> Result<u64, Refusal> {
        if self.history.confirm_by().is_none() {
            return Err(Refusal::Nothing);
        }
        self.history.confirm()?;
        Ok(self.version())
    }

    /// What comes back when the version in force is not confirmed; `None` if it does not wait for that.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn unconfirmed(&self) -> Result<Option<(Checked, String)>, HistoryError> {
        if self.history.confirm_by().is_none() {
            return Ok(None);
        }
        let before = self.history.last_confirmed().unwrap_or(0);
        let comment = format!(
            "version {} was not confirmed: {before} is back",
            self.version()
        );
        Ok(Some((self.load(before)?, comment)))
    }
}
