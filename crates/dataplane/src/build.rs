//! Puts the data plane together.
use crate::Controller;
use crate::api::*;
use crate::controller::Link;
use crate::counters::{Shared, Wake};
use crate::graph::Tables;
use crate::moves::{Fence, HeldPackets};
use crate::nodes::lookup::Batch;
use crate::nodes::punt::Punter;
use crate::ports::Ports;
use crate::queues::{QueueLimits, Queues};
use crate::relocation::{Aliases, KeptOwners};
use crate::routes::{Generations, Routes};
use crate::shard::{Ids, Shard};
use crate::tables::adjacency::{Adjacencies, Asked};
use crate::tables::fib::{Reader, Writer};
use crate::tables::groups::Groups;
use crate::tables::interfaces::Interfaces;
use crate::tables::policies::CompiledPolicies;
use crate::tables::samples::Samples;
use crate::tables::sessions::Sessions;
use crate::worker::Worker;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use dpdk::{BURST, Burst, Eal, Exits, Pool, TxBuffers, tsc_hz};
use std::collections::BTreeMap;
use std::sync::Arc;
use wire::pfcp::Lanes;

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

/// Commands and events that may wait between a worker and the control thread.
const QUEUE: usize = 4096;
/// Packets that the control thread has injected and that wait for a worker.
pub(crate) const INJECTS: u32 = 2048;

/// Reports of offences that may wait; the others wait for the next second.
const OFFENCES: usize = 256;

/// So many times as many packets as may wait between two workers are held for sessions that move, in
/// each direction.
const HELD: usize = 2;

/// Data planes made so far.
static MADE: AtomicU32 = AtomicU32::new(0);

/// Makes a data plane without ports: the control thread's end, and the workers', each of which has to be [run](Worker::run) on
/// a thread. `pool` is for the packets that the control thread injects, for fragments, and for the copies of packets that are
/// sampled.
pub fn channel(eal: &Eal, pool: Pool, config: Config) -> Result<(Controller, Vec<Worker>), Error> {
    check(&config)?;
    let limits = config.limits;
    let wake = Arc::new(Wake::new()?);
    // DPDK's names are unique in a process.
    let name = MADE.fetch_add(1, Relaxed);
    let mut writer = Writer::new(limits.instances, limits.routes)?;
    let groups = Groups::new(limits.groups)?;
    let generations: Generations = (0..limits.sessions).map(|_| AtomicU32::new(0)).collect();
    let lanes = Lanes::even(config.workers);
    let (mut links, mut workers) = (Vec::new(), Vec::new());
    for own in 0..config.workers {
        let common = Common {
            eal,
            pool,
            config,
            wake: &wake,
            name: format!("{name}w{own}"),
            shard: Shard::new(own, config.workers),
            ids: Ids::new(own, &lanes),
            generations: &generations,
        };
        let (link, worker) = common.worker(writer.reader(), groups.clone())?;
        links.push(link);
        workers.push(worker);
    }
    for from in 0..workers.len() {
        for to in (0..workers.len()).filter(|to| *to != from) {
            let (tx, rx) = eal.ring(&format!("{name}over{from}-{to}"), limits.handed_over)?;
            workers[from].handed[to] = Some(tx);
            workers[to].taken[from] = Some(rx);
        }
    }
    let routes = Routes::new(&limits, writer, groups, generations);
    let no_room = "there is no room for each instance's routes";
    let controller = Controller {
        links: links.into(),
        wake,
        shard: Shard::new(0, config.workers),
        lanes,
        aliases: Aliases::default(),
        owners: BTreeMap::new(),
        kept: KeptOwners::default(),
        most_waiting: workers
            .first()
            .map_or(0, |worker| worker.tables.queues.most())
            + BURST,
        moving: None,
        hz: tsc_hz(eal),
        turn: 0,
        inspecting: false,
        pool,
        ports: Ports::new(&limits),
        policies: Vec::new(),
        rule_hits: Vec::new(),
        routes: routes.map_err(|_| Error::Config(no_room.into()))?,
        asked: None,
        limits,
        second: tsc_hz(eal),
    };
    Ok((controller, workers))
}

/// What a worker is made of.
struct Common<'a> {
    eal: &'a Eal,
    pool: Pool,
    config: Config,
    wake: &'a Arc<Wake>,
    name: String,
    shard: Shard,
    ids: Ids,
    generations: &'a Generations,
}

impl Common<'_> {
    fn worker(self, fibs: Reader, groups: Groups) -> Result<(Link, Worker), Error> {
        let Common { eal, pool, .. } = self;
        let Config { limits, punts, .. } = self.config;
        let shared = Arc::new(Shared::new(limits.interfaces));
        let (command_tx, command_rx) = rtrb::RingBuffer::new(QUEUE);
        let (event_tx, event_rx) = rtrb::RingBuffer::new(QUEUE);
        let (piece_tx, piece_rx) = rtrb::RingBuffer::new(1);
        let (gone_tx, gone_rx) = rtrb::RingBuffer::new(QUEUE);
        let (offence_tx, offence_rx) = rtrb::RingBuffer::new(OFFENCES);
        let most_ports = dpdk::MAX_PORTS as usize;
        let (removed_tx, removed_rx) = rtrb::RingBuffer::new(most_ports);
        let (transfer_tx, transfer_rx) = rtrb::RingBuffer::new(QUEUE);
        let (punt_tx, punt_rx) = eal.ring(&format!("{}punts", self.name), limits.punted)?;
        let (inject_tx, inject_rx) = eal.ring(&format!("{}injects", self.name), INJECTS)?;
        let link = Link {
            commands: command_tx,
            events: event_rx,
            pieces: piece_rx,
            punts: punt_rx,
            injects: inject_tx,
            gone: gone_rx,
            offences: offence_rx,
            removed: removed_rx,
            transfers: transfer_rx,
            shared: shared.clone(),
            sent: 0,
            after: 0,
        };
        let (others, workers) = (limits.interfaces as usize, self.config.workers as usize);
        // one more way is that of packets that are held
        let queued = others + workers + 1;
        let second = tsc_hz(eal);
        let queue_limits = QueueLimits {
            ports: limits.interfaces,
            sessions: self.shard.places(limits.sessions) as usize,
            // half of the buffers are for packets that arrive, however many ports the others wait for
            packets: pool.available() as usize / 2 / workers,
            worker: self.shard.own,
            workers: self.config.workers,
            hz: second,
        };
        let worker = Worker {
            eal: *eal,
            outs: TxBuffers::new(queued + others),
            ports: Vec::with_capacity(most_ports),
            sweep: None,
            removed: removed_tx,
            fence: Fence::new(workers),
            held: HeldPackets::new(HELD * limits.handed_over as usize),
            adopted: Vec::with_capacity(QUEUE),
            transfers: transfer_tx,
            punter: Punter::new(&punts, punt_tx, limits.punted, second),
            injects: inject_rx,
            taken: (0..workers).map(|_| None).collect(),
            handed: (0..workers).map(|_| None).collect(),
            commands: command_rx,
            pieces: piece_tx,
            limits,
            shared,
            wake: self.wake.clone(),
            inbox: Burst::new(),
            burst: Burst::new(),
            rest: Exits::default(),
            report_at: 0,
            offences: offence_tx,
            offences_at: 0,
            busy_since: None,
            tables: Tables {
                interfaces: Interfaces::new(limits.interfaces),
                sessions: Sessions::new(&limits, self.shard, self.ids, second)?,
                policies: CompiledPolicies::new(limits.policies),
                fibs,
                likely: InstanceIndex(0),
                six: Batch::new(),
                ipv4_options: Ipv4Options::default(),
                groups,
                adjacencies: Adjacencies::new(limits.adjacencies),
                asked: Asked::new(),
                samples: Samples::new(pool),
                generations: self.generations.clone(),
                others,
                queued,
                holds: false,
                queues: Queues::new(queue_limits),
                pool,
                events: event_tx,
                now: 0,
                second,
                path: Vec::new(),
            },
            serials: Vec::new(),
            gone: gone_tx,
        };
        Ok((link, worker))
    }
}

fn check(config: &Config) -> Result<(), Error> {
    let Config {
        workers, limits, ..
    } = config;
    let fault = |text: String| Err(Error::Config(text));
    if !workers.is_power_of_two() || *workers > 16 {
        return fault(format!("{workers} workers: there can be 1, 2, 4, 8 or 16"));
    }
    if limits.interfaces == u16::MAX
        || limits.segments == u16::MAX
        || limits.sessions >= 1 << 29
        || limits.adjacencies >= 1 << 29
        || limits.groups >= 1 << 24
    {
        return fault("a limit is larger than the tables can be".into());
    }
    Ok(())
}
