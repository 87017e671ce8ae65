//! Puts the data plane together.
use crate::Controller;
use crate::api::*;
use crate::counters::{self, Shared};
use crate::graph::{Source, Tables};
use crate::nodes::lookup;
use crate::nodes::punt::Punter;
use crate::tables::adjacency::{Adjacencies, Asked};
use crate::tables::fib::{Fib, Owner};
use crate::tables::sessions::Sessions;
use crate::worker::{Worker, WorkerPort};
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use dpdk::{Burst, Eal, Outs, Pool, Rest, tsc_hz};
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::sync::Arc;
use wire::eth::MacAddr;

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

/// Commands, events and packets that may wait between worker and control thread.
const QUEUE: usize = 4096;
const PACKETS: u32 = 2048;

/// Data planes made so far.
static MADE: AtomicU32 = AtomicU32::new(0);

/// Makes a data plane: the control thread's end, and the worker's, which has to be [run](Worker::run) on a thread.
/// `pool` is for the packets that the control thread injects.
pub fn channel(eal: &Eal, pool: Pool, config: Config) -> Result<(Controller, Worker), Error> {
    check(&config)?;
    let Config {
        ports,
        limits,
        punts,
    } = config;
    let segments: Vec<_> = ports.iter().map(|p| segments(&p.role)).collect();
    let sessions = Sessions::new(limits.sessions, &segments).map_err(Error::Config)?;
    let ports: Vec<(WorkerPort, counters::Port)> = ports
        .into_iter()
        .enumerate()
        .map(|(i, p)| port(i, p))
        .collect();
    let (ports, port_counters): (Vec<_>, Vec<_>) = ports.into_iter().unzip();
    let flags = EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC;
    let shared = Arc::new(Shared::new(
        port_counters,
        EventFd::from_value_and_flags(0, flags)?,
    ));

    let (command_tx, command_rx) = rtrb::RingBuffer::new(QUEUE);
    let (event_tx, event_rx) = rtrb::RingBuffer::new(QUEUE);
    let (piece_tx, piece_rx) = rtrb::RingBuffer::new(1);
    // DPDK's names are unique in a process.
    let made = MADE.fetch_add(1, Relaxed);
    let (punt_tx, punt_rx) = eal.ring(&format!("punts{made}"), PACKETS)?;
    let (inject_tx, inject_rx) = eal.ring(&format!("injects{made}"), PACKETS)?;
    let fibs: Vec<Fib> = (0..limits.instances).map(|_| fib()).collect();
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
        handles: ports.iter().map(|p| p.port.handle()).collect(),
        limits,
    };
    let worker = Worker {
        eal: *eal,
        outs: Outs::new(ports.len()),
        ports,
        punter: Punter::new(&punts, punt_tx, second),
        injects: inject_rx,
        commands: command_rx,
        pieces: piece_tx,
        limits,
        routes: fibs.iter().map(Fib::len).sum(),
        shared,
        burst: Burst::new(),
        rest: Rest::default(),
        report_at: 0,
        tables: Tables {
            sessions,
            fibs,
            adjacencies: Adjacencies::new(limits.adjacencies),
            asked: Asked::new(),
            events: event_tx,
            now: 0,
            second,
        },
    };
    Ok((controller, worker))
}

fn check(config: &Config) -> Result<(), Error> {
    let Config { ports, limits, .. } = config;
    let fault = |text: String| Err(Error::Config(text));
    if ports.is_empty() || ports.len() > u16::MAX as usize {
        return fault(format!("{} ports", ports.len()));
    }
    if limits.sessions >= 1 << 29 || limits.adjacencies >= 1 << 29 {
        return fault("a limit is larger than the tables can be".into());
    }
    for p in ports {
        if let Role::Core { instance } = p.role
            && instance.0 >= limits.instances
        {
            return fault(format!(
                "port {}: there is no network instance {}",
                p.port.name(),
                instance.0
            ));
        }
    }
    Ok(())
}

fn segments(role: &Role) -> Option<Vec<core::ops::RangeInclusive<u16>>> {
    match role {
        Role::Access { segments } => Some(segments.clone()),
        Role::Core { .. } => None,
    }
}

fn port(index: usize, config: PortConfig) -> (WorkerPort, counters::Port) {
    let PortConfig { port, mac, role } = config;
    let own = mac.unwrap_or(MacAddr(port.mac()));
    let counters = counters::Port::new(
        port.name().to_owned(),
        own,
        matches!(role, Role::Access { .. }),
    );
    let (source, mtu) = (Source::of(index, &role, own), port.mtu());
    (
        WorkerPort {
            port,
            source,
            own,
            mtu,
        },
        counters,
    )
}

/// The routes of an instance before anybody has set any.
fn fib() -> Fib {
    let mut fib = Fib::new();
    for net in lookup::unroutable() {
        fib.set(net, Owner::Route, Some(Destination::Discard));
    }
    fib
}
