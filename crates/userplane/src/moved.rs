//! VLANs that an operator has moved to another worker, on the disk: a restart finds them there.
//!
//! One file, with the worker of each VLAN of each access port by name: `{"access0":{"100":1}}`. It is written beside the control thread,
//! which does not wait for the disk.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};

use config::folder;
use tracing::warn;

/// The file's name in the folder of the user plane's state.
const NAME: &str = "moved";
/// Changes that wait for the disk.
const WAITING: usize = 16;

/// Workers of VLANs by port; untagged frames count as VLAN 0.
type Ports = BTreeMap<String, BTreeMap<u16, u16>>;

/// What is done when a change is on the disk, or could not be written.
type Then = Box<dyn FnOnce(io::Result<()>) + Send>;

/// The VLANs that were moved, and the thread that writes them.
pub struct Moved {
    ports: Ports,
    jobs: SyncSender<(String, Then)>,
}

impl Moved {
    /// Those in the folder of the state.
    ///
    /// # Errors
    /// The file cannot be read, or the thread not be started. A damaged file is left alone until the next move: without it, VLANs are at
    /// the workers that their sessions' lanes say.
    pub fn open(state: &Path) -> io::Result<Self> {
        let path = state.join(NAME);
        let ports = match fs::read(&path) {
            Ok(octets) => serde_json::from_slice(&octets).unwrap_or_else(|error| {
                warn!(path = %path.display(), %error, "cannot read which VLANs were moved to another worker: move them again");
                Ports::new()
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ports::new(),
            Err(error) => return Err(error),
        };
        let (jobs, asked) = sync_channel::<(String, Then)>(WAITING);
        let work = move || {
            for (text, then) in asked {
                then(folder::replace(&path, text.as_bytes()));
            }
        };
        std::thread::Builder::new()
            .name("moved".to_owned())
            .spawn(work)?;
        Ok(Moved { ports, jobs })
    }

    /// Notes the worker of VLANs of a port. [`Moved::keep`] writes it.
    pub fn note(&mut self, port: &str, vlans: &[RangeInclusive<u16>], worker: u16) {
        let of_port = self.ports.entry(port.to_owned()).or_default();
        let vlans = vlans.iter().flat_map(|range| range.clone());
        of_port.extend(vlans.map(|vlan| (vlan, worker)));
    }

    /// Forgets ports that are not there any more. [`Moved::keep`] writes it.
    pub fn retain(&mut self, is_there: impl Fn(&str) -> bool) {
        self.ports.retain(|port, _| is_there(port));
    }

    /// The VLANs of a port that were moved, each with its worker.
    pub fn of(&self, port: &str) -> impl Iterator<Item = (u16, u16)> {
        let vlans = self.ports.get(port).into_iter().flatten();
        vlans.map(|(vlan, worker)| (*vlan, *worker))
    }

    /// Writes what was noted, and says when it is on the disk. Later changes come later.
    pub fn keep(&self, then: impl FnOnce(io::Result<()>) + Send + 'static) {
        let text = serde_json::to_string(&self.ports).expect("maps of numbers");
        let asked = self.jobs.try_send((text, Box::new(then)));
        if let Err(TrySendError::Full((_, then)) | TrySendError::Disconnected((_, then))) = asked {
            then(Err(io::Error::other("the disk is too slow")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    fn of(moved: &Moved, port: &str) -> Vec<(u16, u16)> {
        moved.of(port).collect()
    }

    fn keep(moved: &Moved) -> io::Result<()> {
        let (done, wait) = channel();
        moved.keep(move |written| done.send(written).unwrap());
        wait.recv().unwrap()
    }

    #[test]
    fn a_restart_finds_the_last_worker_of_each_vlan() {
        let state = tempfile::tempdir().unwrap();
        let mut moved = Moved::open(state.path()).unwrap();
        assert_eq!(of(&moved, "access0"), []);
        moved.note("access0", &[100..=103, 200..=200], 1);
        moved.note("access0", &[102..=102], 2);
        moved.note("access1", &[0..=0], 1);
        keep(&moved).unwrap();
        moved.note("access0", &[300..=300], 3); // it was not written
        let mut again = Moved::open(state.path()).unwrap();
        let both = [(100, 1), (101, 1), (102, 2), (103, 1), (200, 1)];
        assert_eq!(of(&again, "access0"), both);
        assert_eq!(of(&again, "access1"), [(0, 1)]);
        again.retain(|port| port == "access1");
        keep(&again).unwrap();
        let last = Moved::open(state.path()).unwrap();
        assert_eq!(of(&last, "access0"), []);
        assert_eq!(of(&last, "access1"), [(0, 1)]);
    }

    #[test]
    fn a_damaged_file_is_as_none_and_a_folder_that_is_gone_is_told() {
        let state = tempfile::tempdir().unwrap();
        fs::write(state.path().join(NAME), "{\"access0\":").unwrap();
        let mut moved = Moved::open(state.path()).unwrap();
        assert_eq!(of(&moved, "access0"), []);
        moved.note("access0", &[100..=100], 1);
        keep(&moved).unwrap();
        let again = Moved::open(state.path()).unwrap();
        assert_eq!(of(&again, "access0"), [(100, 1)]);
        fs::remove_dir_all(state.path()).unwrap();
        assert!(keep(&moved).is_err());
    }
}
