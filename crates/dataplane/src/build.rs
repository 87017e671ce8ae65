//! Puts the data plane together.
use crate::Controller;
use crate::api::*;
use crate::counters::Shared;
use crate::graph::Tables;
use crate::nodes::lookup::Batch;
use crate::nodes::punt::Punter;
use crate::ports::Ports;
use crate::routes::Routes;
use crate::tables::adjacency::{Adjacencies, Asked};
use crate::tables::fib::Writer;
use crate::tables::groups::Groups;
use crate::tables::interfaces::Interfaces;
use crate::tables::samples::Samples;
use crate::tables::sessions::Sessions;
use crate::worker::Worker;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use dpdk::{Burst, Eal, Outs, Pool, Rest, tsc_hz};
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::sync::Arc;

/// Why a data plane cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// DPDK refused something.
    #[error(transparent)]
    Dpdk(#[from] dpdk::Error),
    /// The system refused something.
    #[error("eventfd: {0}")]
    System(#[from] nix::Error),
    /// The configuration contradicts itself.
    #[error("{0}")]
    Config(String),
}

/// Commands and events that may wait between worker and control thread, and packets that the latter injects.
const QUEUE: usize = 4096;
const INJECTS: u32 = 2048;

/// Data planes made so far.
static MADE: AtomicU32 = AtomicU32::new(0);

/// Makes a data plane without ports: the control thread's end, and the worker's, which has to be [run](Worker::run) on a thread.
/// `pool` is for the packets that the control thread injects, for fragments, and for the copies of packets that are sampled.
pub fn channel(eal: &Eal, pool: Pool, config: Config) -> Result<(Controller, Worker), Error> {
    check(&config)?;
    let Config { limits, punts } = config;
    let flags = EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC;
    let shared = Arc::new(Shared::new(
        limits.interfaces,
        EventFd::from_value_and_flags(0, flags)?,
    ));

    let (command_tx, command_rx) = rtrb::RingBuffer::new(QUEUE);
    let (event_tx, event_rx) = rtrb::RingBuffer::new(QUEUE);
    let (piece_tx, piece_rx) = rtrb::RingBuffer::new(1);
    let most_ports = dpdk::MAX_PORTS as usize;
    let (removed_tx, removed_rx) = rtrb::RingBuffer::new(most_ports);
    // DPDK's names are unique in a process.
    let made = MADE.fetch_add(1, Relaxed);
    let (punt_tx, punt_rx) = eal.ring(&format!("punts{made}"), punts.queue)?;
    let (inject_tx, inject_rx) = eal.ring(&format!("injects{made}"), INJECTS)?;
    let mut writer = Writer::new(limits.instances, limits.routes)?;
    let fibs = writer.reader();
    let groups = Groups::new(limits.groups)?;
    let routes = Routes::new(&limits, writer, groups.clone());
    let no_room = "there is no room for each instance's routes";
    let routes = routes.map_err(|_| Error::Config(no_room.into()))?;
    let (gone_tx, gone_rx) = rtrb::RingBuffer::new(QUEUE);
    let second = tsc_hz(eal);
    let controller = Controller {
        commands: command_tx,
        events: event_rx,
        pieces: piece_rx,
        inspecting: false,
        punts: punt_rx,
        injects: inject_tx,
        pool,
        shared: shared.clone(),
        ports: Ports::new(&limits),
        routes,
        gone: gone_rx,
        sent: 0,
        after: 0,
        asked: None,
        removed: removed_rx,
        limits,
        second,
    };
    let worker = Worker {
        eal: *eal,
        outs: Outs::new(limits.interfaces as usize),
        ports: Vec::with_capacity(most_ports),
        sweep: None,
        removed: removed_tx,
        punter: Punter::new(&punts, punt_tx, second),
        injects: inject_rx,
        commands: command_rx,
        pieces: piece_tx,
        limits,
        shared,
        burst: Burst::new(),
        rest: Rest::default(),
        report_at: 0,
        busy_since: None,
        tables: Tables {
            interfaces: Interfaces::new(limits.interfaces),
            sessions: Sessions::new(&limits)?,
            fibs,
            likely: InstanceIndex(0),
            six: Batch::new(),
            groups,
            adjacencies: Adjacencies::new(limits.adjacencies),
            asked: Asked::new(),
            samples: Samples::new(pool),
            pool,
            events: event_tx,
            now: 0,
            second,
            path: Vec::new(),
        },
        serials: Vec::new(),
        gone: gone_tx,
    };
    Ok((controller, worker))
}

fn check(config: &Config) -> Result<(), Error> {
    let limits = &config.limits;
    let fault = |text: String| Err(Error::Config(text));
    if limits.interfaces == u16::MAX
        || limits.segments == u16::MAX
        || limits.sessions >= 1 << 29
        || limits.adjacencies >= 1 << 29
        || limits.groups >= 1 << 29
    {
        return fault("a limit is larger than the tables can be".into());
    }
    Ok(())
}
