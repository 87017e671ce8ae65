//! The session store from outside: whether it is sound, a backup while it is in use, a store from a backup.

use super::Failure;
use super::show::{print_json, print_lines};
use super::units::octets;
use clap::Subcommand;
use control::Restored;
use control::store::{self, Checked, StoreError};
use serde::Serialize;
use std::path::{Path, PathBuf};

#[derive(Debug, Subcommand)]
pub(super) enum Store {
    /// Read a store or a backup from its first byte to its last; sluice-cp may be running
    Check {
        /// The folder of the store (`state` in cp.yaml), or a backup
        path: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Back up a store; sluice-cp may be running
    Export {
        /// The folder of the store
        directory: PathBuf,
        /// The backup, a file that does not exist yet
        file: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Make a store of a backup, for a sluice-cp that is not running
    Import {
        /// The backup
        file: PathBuf,
        /// The folder of the store, which holds none yet
        directory: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

impl Store {
    pub(super) fn run(&self) -> Result<(), Failure> {
        match self {
            Store::Check { path, json } => check(path, *json),
            Store::Export {
                directory,
                file,
                json,
            } => {
                store::export(directory, file)?;
                copied(file, "written", *json)
            }
            Store::Import {
                file,
                directory,
                json,
            } => {
                // A backup that sluice-cp would refuse is refused here.
                Report::of(&store::check(file)?)?;
                store::import(file, directory)?;
                copied(directory, "ready", *json)
            }
        }
    }
}

/// What is in a store.
#[derive(Debug, PartialEq, Serialize)]
struct Report {
    path: PathBuf,
    sound: bool,
    version: u16,
    sessions: usize,
    records: usize,
    octets: u64,
    live_octets: u64,
    batches: u64,
    half_written_octets: u64,
    sealed: bool,
}

/// Where a store is damaged.
#[derive(Serialize)]
struct Damage<'a> {
    path: &'a Path,
    sound: bool,
    offset: u64,
    what: &'a str,
}

impl Report {
    /// Reads the records too, as sluice-cp does.
    fn of(checked: &Checked) -> Result<Self, Failure> {
        let restored = Restored::read(checked.live.clone(), 0, "")
            .map_err(|why| Failure::Other(format!("{}: {why}", checked.path.display())))?;
        Ok(Self {
            path: checked.path.clone(),
            sound: true,
            version: checked.version,
            sessions: restored.session_count(),
            records: checked.live.len(),
            octets: checked.octets,
            live_octets: checked.live_octets,
            batches: checked.batches,
            half_written_octets: checked.half_written,
            sealed: checked.sealed,
        })
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = vec![
            format!("{}: sound", self.path.display()),
            format!(
                "{} sessions in {} records; {} of {} are alive, in {} batches of format {}",
                self.sessions,
                self.records,
                octets(self.live_octets),
                octets(self.octets),
                self.batches,
                self.version
            ),
        ];
        if self.half_written_octets > 0 {
            lines.push(format!(
                "the last {} are half a batch: it is being written now, or a crash cut it short and the next start of \
                 sluice-cp cuts it off",
                octets(self.half_written_octets)
            ));
        }
        lines
    }
}

fn check(path: &Path, json: bool) -> Result<(), Failure> {
    let checked = store::check(path);
    if json && let Err(StoreError::Damaged { path, offset, what }) = &checked {
        print_json(&Damage {
            path,
            sound: false,
            offset: *offset,
            what,
        })?;
    }
    let report = Report::of(&checked?)?;
    match json {
        true => print_json(&report),
        false => print_lines(&report.lines()),
    }
}

/// Reads back what was written, and says what is there now.
fn copied(to: &Path, done: &str, json: bool) -> Result<(), Failure> {
    let report = Report::of(&store::check(to)?)?;
    match json {
        true => print_json(&report),
        false => print_lines(&[format!(
            "{} is {done}: {} sessions, {}",
            to.display(),
            report.sessions,
            octets(report.octets)
        )]),
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Failure::Other(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use control::store::Record;

    /// A store as sluice-cp makes it, before its first session.
    fn a_store(directory: &Path) -> control::store::Store {
        let (mut store, _) = control::store::Store::open(directory).unwrap();
        store.append(&Record::put("recovery-time-stamp", [1, 2, 3, 4]));
        store.append(&Record::put("user-plane/up1", [5, 6, 7, 8]));
        store.sync().unwrap();
        store
    }

    fn run(store: Store) -> Result<(), String> {
        store.run().map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_store_in_use_is_checked_backed_up_and_made_again_elsewhere() {
        let place = tempfile::tempdir().unwrap();
        let [directory, file, other] =
            ["cp", "backup", "other"].map(|name| place.path().join(name));
        let store = a_store(&directory);
        let json = true;
        let check = |path: &Path| {
            let path = path.into();
            run(Store::Check { path, json })
        };
        check(&directory).unwrap();
        let export = || {
            run(Store::Export {
                directory: directory.clone(),
                file: file.clone(),
                json,
            })
        };
        let import = |to: &Path| {
            run(Store::Import {
                file: file.clone(),
                directory: to.into(),
                json,
            })
        };
        export().unwrap();
        check(&file).unwrap();
        assert!(export().unwrap_err().contains("exists already"));
        assert!(
            import(&directory)
                .unwrap_err()
                .contains("in use by another process")
        );
        drop(store);
        assert!(import(&directory).unwrap_err().contains("exists already"));
        import(&other).unwrap();
        assert_eq!(
            store::check(&other).unwrap().live,
            store::check(&directory).unwrap().live
        );
    }

    #[test]
    fn what_is_no_whole_store_is_refused_and_named() {
        let place = tempfile::tempdir().unwrap();
        let [directory, file] = ["cp", "backup"].map(|name| place.path().join(name));
        drop(a_store(&directory));
        let export = Store::Export {
            directory: directory.clone(),
            file: file.clone(),
            json: false,
        };
        run(export).unwrap();
        let whole = std::fs::read(&file).unwrap();
        let import = || {
            run(Store::Import {
                file: file.clone(),
                directory: place.path().join("new"),
                json: false,
            })
        };
        for end in 24..whole.len() {
            std::fs::write(&file, &whole[..end]).unwrap();
            let refused = import().unwrap_err();
            assert!(refused.contains("its end is missing"), "{end}: {refused}");
        }
        let mut damaged = whole.clone();
        damaged[50] ^= 1;
        std::fs::write(&file, &damaged).unwrap();
        let refused = import().unwrap_err();
        assert!(
            refused.contains("backup is damaged at byte 24"),
            "{refused}"
        );
        let nothing = Store::Check {
            path: place.path().into(),
            json: false,
        };
        assert!(run(nothing).unwrap_err().contains("no store"));
    }

    #[test]
    fn a_record_that_sluice_cp_would_not_read_is_named() {
        let place = tempfile::tempdir().unwrap();
        let mut store = a_store(place.path());
        store.append(&Record::put("session/12345678", [99, 0]));
        store.sync().unwrap();
        let check = Store::Check {
            path: place.path().into(),
            json: false,
        };
        let refused = run(check).unwrap_err();
        assert!(
            refused.contains("session/12345678") && refused.contains("version 99"),
            "{refused}"
        );
    }

    #[test]
    fn half_a_batch_is_told() {
        let report = Report {
            path: "/var/lib/sluice/cp/sessions.log".into(),
            sound: true,
            version: 2,
            sessions: 3,
            records: 5,
            octets: 2000,
            live_octets: 1500,
            batches: 4,
            half_written_octets: 120,
            sealed: false,
        };
        let text = report.lines().join("\n");
        assert!(
            text.contains("3 sessions") && text.contains("the last 120 B"),
            "{text}"
        );
    }
}
