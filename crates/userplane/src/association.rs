//! Connects PFCP's transport, the sessions and the worker, without I/O. [`crate::run::UserPlane`] and the simulation both use it.

use std::net::SocketAddr;
use std::time::Duration;

use dataplane::SessionIndex;
use pfcp::bng::{Usage, Volume};
use pfcp::{DownReason, Event, Node, RequestId};
use tracing::{error, info, warn};
use wire::pfcp::NodeId;

use crate::engine::{Engine, Now, Output};

/// Passes an event of the PFCP transport to the sessions.
pub fn hear(node: &Node, engine: &mut Engine<RequestId>, now: Now, event: Event) {
    match event {
        Event::AssociationUp { peer, info } => {
            if info.restarted && !info.retain_sessions {
                // TS 23.527 §4.2: with another time stamp its sessions are gone.
                let sessions = engine.forget_peer(peer);
                info!(%peer, sessions, "the control plane was reset: its sessions are deleted");
            }
            if let Some(former) = info.moved_from {
                let sessions = engine.move_peer(former, peer);
                info!(%peer, %former, sessions, "the control plane has a new address: its sessions stay");
            }
            engine.peer_up(now, peer);
            info!(%peer, node = %name(&info.node_id), "associated with the control plane");
        }
        Event::AssociationDown { peer, reason } => down(engine, now, peer, reason),
        Event::NodeIdTaken {
            peer,
            node_id,
            owner,
        } => {
            // Logs only at powers of two: a peer that retries for ever must not fill the log.
            let refused = node.counters().node_id_taken;
            if refused.is_power_of_two() {
                error!(
                    %peer, node = %name(&node_id), %owner, refused,
                    "rejected a control plane with the node id of another one that is still reachable: give each its own \
                        `node-id`, or stop the one that is not needed"
                );
            }
        }
        Event::NotBelieved { from, doubt, times } => warn!(%from, times, "{doubt}"),
        Event::VersionMismatch { peer, version } => warn!(
            %peer, version,
            "the control plane uses another PFCP version: expected version 1; it got an error response"
        ),
        Event::Request { id, seid, message } => engine.request(now, id, id.peer, seid, message),
        Event::Response { token, message, .. } => engine.reported(token, message.cause()),
        Event::Failed { token, .. } => engine.reported(token, None),
        Event::EstablishedLate { .. } => {} // a user plane asks nobody for sessions
        Event::AssociationRejected { peer, cause } => {
            warn!(%peer, %cause, "the control plane rejected the association");
        }
    }
}

fn down(engine: &mut Engine<RequestId>, now: Now, peer: SocketAddr, reason: DownReason) {
    let sessions = engine.peer_lost(now, peer);
    match reason {
        DownReason::Released => {
            let sessions = engine.forget_peer(peer);
            info!(%peer, sessions, "the association was released: its sessions are deleted");
        }
        DownReason::PathLost => warn!(
            %peer, sessions,
            "the control plane does not answer: its sessions are held (`hold-sessions`) and keep forwarding"
        ),
        reason => info!(%peer, sessions, ?reason, "the association ended; its sessions are held"),
    }
}

/// Sends the sessions' PFCP messages to their control planes. Returns any other output.
pub fn carry(
    node: &mut Node,
    engine: &mut Engine<RequestId>,
    now: Duration,
    output: Output<RequestId>,
) -> Option<Output<RequestId>> {
    match output {
        Output::Respond { to, seid, message } => node.respond(to, seid, message),
        Output::Report {
            peer,
            seid,
            token,
            message,
        } => {
            if node.request(now, peer, seid, message, token).is_err() {
                engine.reported(token, None);
            }
        }
        other => return Some(other),
    }
    None
}

/// Passes the worker's counters of a session to the engine. `gone`: the worker has removed the session.
pub fn count(
    engine: &mut Engine<RequestId>,
    now: Now,
    index: SessionIndex,
    usage: dataplane::Usage,
    gone: bool,
) {
    let volume = |counted: dataplane::Volume| Volume {
        up_packets: counted.up_packets,
        up_octets: counted.up_octets,
        down_packets: counted.down_packets,
        down_octets: counted.down_octets,
    };
    let usage = Usage::of_families(volume(usage.ipv4), volume(usage.ipv6));
    engine.worker_usage(now, index, usage, gone);
}

fn name(node_id: &NodeId) -> String {
    match node_id {
        NodeId::Ipv4(address) => address.to_string(),
        NodeId::Ipv6(address) => address.to_string(),
        NodeId::Fqdn(name) => name.clone(),
    }
}
