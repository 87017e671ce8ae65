//! Commands from the control thread to a worker.
use crate::api::*;
use crate::compiled::{CompiledPolicy, RuleHits};
use crate::inspect::{Held, Part};
use crate::moves::Transfer;
use crate::protection::Untrusted;
use crate::punt::PuntLimits;
use crate::queues::PartState;
use crate::routes::Admitted;
use crate::shard::Owners;
use crate::tables::Vlans;
use crate::tables::sessions::Sources;
use crate::worker::WorkerPort;
use policy::{Direction, PrioritySource};
use scheduler::SharedRate;
use std::sync::Arc;

/// A change to the tables or a question; applied between bursts.
pub(crate) enum Command {
    /// With what else it may send from.
    SetSession(SessionEntry, Sources, Admitted),
    /// It is not to be there, and this is told.
    Refuse(SessionIndex, Refusal),
    RemoveSession(SessionIndex),
    ReadUsage(SessionIndex),
    ReadPolicy(SessionIndex, Direction),
    /// The queues of a port, from a number on. With room for the answer.
    ReadQueues(PortIndex, u32, Vec<PartState>),
    WatchRules(SessionIndex, Direction, Option<Arc<RuleHits>>),
    Sample(SessionIndex, Option<SampleRate>),
    SetAdjacency(AdjacencyIndex, Option<Adjacency>),
    /// With room for the answer.
    Inspect(Part, Vec<Held>),
    RemoveStrayId(u32),
    RemoveStrayQueues(u32),
    /// In the order of commands.
    Tell(Event),
    /// With its access segments' banks, or with nothing for a core port's VLANs.
    AddPort(WorkerPort, Box<Vlans>),
    SetSegments(PortIndex, Box<Vlans>),
    RemovePort(PortIndex),
    AddSubinterface(PortIndex, Subinterface),
    RemoveSubinterface(PortIndex),
    SetMtu(PortIndex, u16),
    SetSourceCheck(PortIndex, SourceCheck),
    SetPrioritySource(PortIndex, PrioritySource),
    SetSegmentRates(PortIndex, Arc<[SegmentRates]>),
    SetEgressRate(PortIndex, Option<Arc<SharedRate>>),
    SetPuntLimits(Box<PuntLimits>),
    SetUntrusted(Arc<Untrusted>),
    SetIpv4Options(Ipv4Options),
    SetPolicy(PolicyIndex, Option<Arc<CompiledPolicy>>),
    /// Hold what comes for VLANs of a port that move here.
    Hold(PortIndex, Arc<Owners>),
    /// VLANs of a port are other workers' from now on. With the flag frames that other workers have handed over go by the owners of before,
    /// until the end of the move.
    SetOwners(PortIndex, Arc<Owners>, bool),
    /// Commands wait until what other workers had handed over by now is done; with the flag also until what waits in no session's queue
    /// has left.
    Fence(bool),
    /// Sessions leave for another worker.
    Release(Box<Transfer>),
    /// Sessions come from another worker.
    Adopt(Box<Transfer>),
    /// The sessions are here: what was held goes on.
    Unhold(PortIndex, Arc<Owners>),
    /// No frames are on their way any more that go by the owners of before.
    EndMove,
}
