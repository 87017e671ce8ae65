//! The worker.
use crate::Controller;
use crate::api::*;
use crate::counters::{Port, Shared};
use crate::message::Command;
use dpdk::{Consumer, Eal, Pool, Producer};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The worker's end.
pub struct Worker {
    commands: rtrb::Consumer<Command>,
    events: rtrb::Producer<Event>,
    punts: Producer,
    injects: Consumer,
    shared: Arc<Shared>,
}

/// Puts the data plane together.
pub fn channel(eal: &Eal, pool: Pool, config: Config) -> Result<(Controller, Worker), Error> {
    let _ = (eal, pool, config, Port::new);
    Err(Error::Config("not yet".into()))
}

impl Worker {
    /// Runs until `stop` is set.
    pub fn run(&mut self, _stop: &AtomicBool) {
        let _ = (
            &self.commands,
            &self.events,
            &self.punts,
            &self.injects,
            &self.shared,
        );
    }
    /// One round.
    pub fn step(&mut self) -> usize {
        0
    }
}

/// Why.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// D.
    #[error("{0}")]
    Dpdk(#[from] dpdk::Error),
    /// C.
    #[error("{0}")]
    Config(String),
}
