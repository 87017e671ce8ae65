//! The graph: what becomes of a burst. Read this first.
//!
//! ```text
//!  access port ─▶ classify ─▶ session ─▶ ip ──┐                    ┌─▶ rewrite ─▶ access port
//!                    │           │            ├─▶ lookup ─▶ hop ───┤      └─(fragment)─▶ either, or punt
//!  core port ───▶ classify ──(untag)────▶ ip ─┤      │             └─▶ rewrite ─▶ core port
//!                    │                        │      │
//!  gateway ───────────────────────────▶ ip ───┘      │
//!  other workers ─▶ (as from an access port, or behind lookup) and the other way round for what is theirs
//!                    └───────────┬───────────────────┴─▶ punt ─▶ control thread
//! ```
//!
//! Each burst is passed over twice: the first pass looks at the headers and asks for the tables' lines that the second
//! will need, which asks for them once more a few packets ahead (`docs/performance.md` says why). In between, IPv6
//! destinations are looked up, all of the burst together; and those of what comes from the core, as only then the session's
//! line is known. A packet either goes out by a port, or is punted, or is dropped for a named reason.
//!
//! What comes from an access port goes by `graph/uplink.rs`, what comes from the core by `graph/downlink.rs`, and both behind `lookup` by
//! `graph/forward.rs`.
//!
//! The ways have names (`edges`), and `took` says which one a packet takes. Only a graph that is traced notes that
//! (`TRACE`); in the other nothing is left of it.
mod downlink;
mod forward;
mod uplink;

use crate::api::{Event, InstanceIndex, Ipv4Options, PortIndex, Role, SessionIndex};
use crate::compiled::CompiledPolicy;
use crate::edges::Edge;
use crate::nodes::Exit;
use crate::nodes::classify::{self, ETHERNET, TAG};
use crate::nodes::lookup::Batch;
use crate::queues::Queues;
use crate::routes::Generations;
use crate::tables::adjacency::{Adjacencies, Asked};
use crate::tables::fib::Reader;
use crate::tables::groups::Groups;
use crate::tables::interfaces::Interfaces;
use crate::tables::policies::{CompiledPolicies, Passes};
use crate::tables::samples::Samples;
use crate::tables::sessions::Sessions;
use ::policy::Direction;
use dpdk::{Burst, Exits, HEAD, Pool, TxBuffers};
use wire::eth::MacAddr;

/// Where a burst came from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source {
    /// A port that leads to subscribers, or another worker that has received a frame there.
    Access { port: u16, edge: Edge },
    /// A port that leads to the core of an instance, and the gateway's address there.
    Core { port: u16, instance: u16, own: u64 },
    /// The gateway itself: IP packets behind 14 octets that mean nothing.
    Gateway { instance: u16 },
    /// Another worker, which has looked up where it leads: IP packets behind a note ([`NOTE`]).
    Worker,
    /// The same, and the hop is counted.
    Held,
}

impl Source {
    pub fn of(PortIndex(port): PortIndex, role: &Role, own: MacAddr) -> Self {
        match role {
            Role::Access { .. } => Source::Access {
                port,
                edge: Edge::AccessFrame,
            },
            Role::Core { instance } => Source::Core {
                port,
                instance: instance.0,
                own: classify::number(own),
            },
        }
    }
}

/// Where IP starts in the window of a frame without tags.
const IP: usize = HEAD + ETHERNET;

/// Where IP starts in the window of a frame with one tag.
const TAGGED_IP: usize = IP + TAG;

/// What the nodes work with.
pub(crate) struct Tables {
    pub interfaces: Interfaces,
    pub sessions: Sessions,
    pub policies: CompiledPolicies,
    pub fibs: Reader,
    /// The instance of the last packet from a subscriber, and so probably of the next.
    pub likely: InstanceIndex,
    /// The burst's IPv6 destinations, and after them its sources where they are checked.
    pub six: Batch,
    pub ipv4_options: Ipv4Options,
    pub groups: Groups,
    pub adjacencies: Adjacencies,
    pub asked: Asked,
    pub samples: Samples,
    pub generations: Generations,
    /// The way out to worker 0; those of the others follow.
    pub others: usize,
    /// The way out to the queues of port 0; those of the others follow.
    pub queued: usize,
    /// Whether packets are held whose sessions are on their way to this worker.
    pub holds: bool,
    pub queues: Queues,
    /// For fragments.
    pub pool: Pool,
    pub events: rtrb::Producer<Event>,
    /// The TSC when the burst came, and its ticks in a second.
    pub now: u64,
    pub second: u64,
    /// The edges that packets took, one after the other, if the graph is traced.
    pub path: Vec<Edge>,
}

/// Passes a burst through the graph.
pub(crate) fn run<const TRACE: bool>(
    source: Source,
    tables: &mut Tables,
    burst: &mut Burst,
    outs: &mut TxBuffers,
    rest: &mut Exits<Exit>,
) {
    match source {
        Source::Access { port, edge } => {
            uplink::from_access::<TRACE>(port, edge, tables, burst, outs, rest);
        }
        Source::Core {
            port,
            instance,
            own,
        } => downlink::from_core::<TRACE>(port, instance, own, tables, burst, outs, rest),
        Source::Gateway { instance } => {
            downlink::from_gateway::<TRACE>(instance, tables, burst, outs, rest);
        }
        Source::Worker => forward::from_worker::<TRACE, false>(tables, burst, outs, rest),
        Source::Held => forward::from_worker::<TRACE, true>(tables, burst, outs, rest),
    }
}

impl Tables {
    /// The way out for packets that are held: behind those to the workers.
    pub fn held(&self) -> usize {
        self.queued - 1
    }

    /// Asks for the lines that packets of a session will need to pass; their policy, if it is there.
    #[inline(always)]
    pub fn ask_for_policy(
        &self,
        way: (SessionIndex, Direction),
        passes: Passes,
    ) -> Option<&CompiledPolicy> {
        let compiled = match passes {
            Passes::Freely => return None,
            Passes::ByRate => None,
            Passes::By(policy) => self.policies.get(policy),
        };
        self.sessions.ask_for_policy(way, compiled);
        let (index, direction) = way;
        if direction == Direction::Down
            && compiled.is_some_and(|compiled| compiled.queues().is_some())
        {
            let place = self.sessions.shard.place(index.0);
            self.queues.ask_for(place as usize);
        }
        compiled
    }

    /// A packet takes this edge.
    #[inline(always)]
    pub fn took<const TRACE: bool>(&mut self, edge: Edge) {
        if TRACE {
            self.path.push(edge);
        }
    }
}
