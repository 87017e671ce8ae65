//! Commands from the control thread to the worker.
use crate::api::*;
use crate::inspect::{Held, Part};
use ipnet::IpNet;

/// A change to the tables or a question; applied between bursts.
#[derive(Debug)]
pub(crate) enum Command {
    SetSession(SessionEntry),
    RemoveSession(SessionIndex),
    ReadUsage(SessionIndex),
    SetRoute(InstanceIndex, IpNet, Destination),
    RemoveRoute(InstanceIndex, IpNet),
    SetAdjacency(AdjacencyIndex, Option<Adjacency>),
    /// With room for the answer.
    Inspect(Part, Vec<Held>),
    RemoveStrayId(u32),
    RemoveHostRoute(InstanceIndex, IpNet),
}
