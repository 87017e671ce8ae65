//! Devices of new ports, opened beside the control thread before their document is applied. Everything goes on while a driver takes its
//! time, sessions too.

use std::collections::BTreeMap;

use config::model::Port as PortDocument;
use config::{Fault, UserPlaneDocument};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, spawn_blocking};

use super::Source;
use super::ports::open;
use crate::documents::Read;
use crate::run::UserPlane;

/// Devices that were opened, or why that failed, by the names of their ports.
pub(crate) type Opened = BTreeMap<String, Result<dpdk::Port, dpdk::Error>>;

/// Document that is to be applied, with the way for the answer.
pub(crate) enum Change {
    /// From the management interface.
    Managed(Box<Read>),
    /// From a test. It is right in itself.
    Tested(
        Box<UserPlaneDocument>,
        oneshot::Sender<Result<(), Vec<Fault>>>,
    ),
}

impl Change {
    /// The document, if it can be applied.
    fn document(&self) -> Option<&UserPlaneDocument> {
        match self {
            Change::Managed(read) if read.written.is_err() => None,
            Change::Managed(read) => read.reading.as_ref().ok(),
            Change::Tested(document, _) => Some(document),
        }
    }
}

/// Document that waits for the devices of its new ports.
pub(crate) struct Opening {
    change: Change,
    task: JoinHandle<Opened>,
}

impl Opening {
    /// Waits for the devices. Those that are missing are opened while the document is applied.
    pub(crate) async fn opened(&mut self) -> Opened {
        (&mut self.task).await.unwrap_or_default()
    }
}

impl UserPlane {
    /// Applies a document when the devices of its new ports are open. No other document is looked at before.
    pub(crate) fn change(&mut self, change: Change) {
        let document = change.document();
        let ports = document.map_or_else(Vec::new, |document| self.ports_to_open(document));
        if ports.is_empty() {
            return self.apply_change(change);
        }
        let source = self.source;
        // The runtime ends after the task, so that no driver is interrupted.
        let task = spawn_blocking(move || open_all(source, ports));
        self.opening = Some(Opening { change, task });
    }

    /// Applies the document whose devices are open.
    pub(crate) fn end_opening(&mut self, opened: Opened) {
        if let Some(Opening { change, .. }) = self.opening.take() {
            self.opened = opened;
            self.apply_change(change);
        }
    }

    fn apply_change(&mut self, change: Change) {
        match change {
            Change::Managed(read) => self.apply_read(*read),
            Change::Tested(document, reply) => {
                let _ = reply.send(self.put_in_force(&document)); // the caller may have gone away
            }
        }
        self.close_unused();
    }

    /// New ports that need nothing of an open one, unless the document has a fault.
    fn ports_to_open(&self, document: &UserPlaneDocument) -> Vec<(String, PortDocument)> {
        if !self.check(document).is_empty() {
            return Vec::new();
        }
        let ports = document.ports.iter();
        let new = ports.filter(|(name, port)| !self.is_blocked(name, port));
        new.map(|(name, port)| (name.clone(), port.clone()))
            .collect()
    }

    /// Closes the devices of a document that was rejected.
    pub(super) fn close_unused(&mut self) {
        let unused = std::mem::take(&mut self.opened);
        if !unused.is_empty() {
            // Without a thread they are closed all the same.
            let _ = self.meanwhile(|| drop(unused));
        }
    }
}

/// Opens the devices of all ports, up to one that fails.
fn open_all(source: Source, ports: Vec<(String, PortDocument)>) -> Opened {
    let mut opened = Opened::new();
    for (name, port) in ports {
        let device = open(source, &port);
        let failed = device.is_err();
        opened.insert(name, device);
        if failed {
            break;
        }
    }
    opened
}
