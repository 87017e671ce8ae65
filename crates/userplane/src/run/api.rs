//! Answers of the management interface: ports and counters.

use config::{Fault, UserPlaneDocument};
use dataplane::WorkerCounters;
use lacp::Standing;
use mi::{
    Answer, Begun, Call, Capability, Configured, DescribeResponse, Document, Request, Response,
    State,
};
use northbound::{DropCounter, LagMember, LagMemberState, Port as ShownPort, Process, Worker};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::oneshot;
use tracing::error;

use super::UserPlane;
use crate::configure::Change;
use crate::documents::{Purpose, Read};
use crate::lag::Lag;
use crate::managed::{Managed, Reading};

fn unix_time() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

impl Managed for UserPlane {
    type Kept = mi::Kept;

    fn configured(&mut self) -> &mut Configured {
        &mut self.configured
    }

    fn check(&self, document: &UserPlaneDocument) -> Vec<Fault> {
        UserPlane::check(self, document)
    }

    fn reconfigure(&mut self, document: &UserPlaneDocument) -> Result<(), Vec<Fault>> {
        self.put_in_force(document)
    }
}

impl UserPlane {
    pub(super) fn answer(&mut self, (request, reply): Call) {
        let answer = match request {
            Request::Sample(sampling) => self.begin_samples(sampling),
            Request::MoveAggregate(request) => return self.move_aggregate(&request, reply),
            Request::CheckLedger { repair } => return self.check_ledger(repair, reply),
            Request::Describe => Ok(Response::Description(self.describe())),
            Request::GetState => {
                self.read_queues();
                Ok(Response::State(self.state().into()))
            }
            Request::ListPorts => Ok(Response::Ports {
                ports: self.show_ports(),
            }),
            Request::ListRoutes { after } => Ok(Response::Routes(self.list_routes(after.as_ref()))),
            Request::ListNeighbours { after } => {
                let answer = self.list_neighbours(after.as_ref());
                Ok(Response::Neighbours(answer))
            }
            Request::ListAclRules { acl, after } => self.list_acl_rules(&acl, after.as_ref()),
            Request::ListPolicies => Ok(Response::Policies {
                policies: self.list_policies(),
            }),
            Request::ListQueueAggregates { after } => {
                Ok(Response::QueueAggregates(self.list_queues(after.as_ref())))
            }
            Request::GetSessionPolicy(place) => return self.ask_session_policy(&place, reply),
            Request::WatchRules { session, seconds } => self.watch_rules(&session, seconds),
            Request::ListDrops => Ok(Response::Drops {
                drops: self.show_drops(),
            }),
            Request::Validate(document) => {
                return self.read_document(Purpose::Validate, document, reply);
            }
            Request::Apply(document) => match self.configured.begin(document) {
                Ok(Begun::Done(response)) => Ok(response),
                Ok(Begun::Write(document)) => {
                    return self.read_document(Purpose::Apply, document, reply);
                }
                Err(refusal) => Err(refusal),
            },
        };
        // A failed reply is ignored: the caller may have gone away.
        let _ = reply.send(answer);
    }

    /// Has a document read by the thread for that; [`UserPlane::use_document`] goes on.
    fn read_document(
        &mut self,
        purpose: Purpose,
        document: Document,
        reply: oneshot::Sender<Answer>,
    ) {
        let Err((reply, refusal)) = self.documents.ask(purpose, document, reply) else {
            return;
        };
        if purpose == Purpose::Apply {
            self.configured.abandon();
        }
        let _ = reply.send(Err(refusal)); // the caller may have gone away
    }

    /// Does what a document was read for.
    pub(super) fn use_document(&mut self, read: Box<Read>) {
        if read.purpose == Purpose::Apply {
            return self.change(Change::Managed(read));
        }
        let answer = Ok(Response::Faults(self.validate(read.reading)));
        let _ = read.reply.send(answer); // the caller may have gone away
    }

    /// Applies a document that has been read and written.
    pub(crate) fn apply_read(&mut self, read: Read) {
        let answer = self.apply(&read.document, read.written, read.reading, unix_time());
        let _ = read.reply.send(answer); // the caller may have gone away
    }

    /// Applies the stored document, which has been read. If that fails, the user plane waits for its control plane.
    pub(crate) fn go_on_with(&mut self, document: &Document, reading: Reading) {
        for fault in self
            .resume(document, reading, unix_time())
            .err()
            .into_iter()
            .flatten()
        {
            error!(
                generation = document.generation, %fault,
                "cannot apply the last configuration from the control plane: nothing is forwarded until it is corrected"
            );
        }
    }

    fn describe(&self) -> DescribeResponse {
        let can = self.capabilities();
        let limit = |name: &str, limit: u32| Capability {
            name: name.into(),
            limit: Some(limit.into()),
            values: Vec::new(),
        };
        let values = |name: &str, values: &[String]| Capability {
            name: name.into(),
            limit: None,
            values: values.to_vec(),
        };
        let mut capabilities = vec![
            limit("ports", can.ports),
            limit("interfaces", can.interfaces),
            limit("segments", can.segments),
            limit("sessions", can.sessions),
            values("network-instances", &can.network_instances),
            values("drivers", &can.drivers),
        ];
        if can.subinterfaces {
            capabilities.push(values("subinterfaces", &[]));
        }
        DescribeResponse {
            node_id: self.name.clone(),
            software: env!("CARGO_PKG_VERSION").into(),
            capabilities,
            in_force: self.configured.in_force().cloned(),
        }
    }

    fn state(&self) -> State {
        let workers = self.controller.workers().zip(0..);
        let worker = |(worker, number): (WorkerCounters, u32)| Worker {
            number,
            punted: worker.punted,
            injected: worker.injected,
            busy_nanoseconds: worker.busy.as_nanos() as u64,
            busy_cycles: worker.busy_cycles,
            bursts: worker.bursts,
            rx_packets: worker.rx_packets,
            tx_packets: worker.tx_packets,
            handed_over: worker.handed_over,
            taken_over: worker.taken_over,
        };
        let (queue_aggregates, split_aggregates) = self.notable_queues();
        State {
            in_force: self.configured.in_force().cloned(),
            ports: self.show_ports(),
            drops: self.show_drops(),
            workers: workers.map(worker).collect(),
            sessions: self.engine.subscriber_sessions() as u64,
            sampled: self.samples.sessions(),
            host: self.host.clone(),
            offenders: self.show_offenders(),
            queue_aggregates,
            split_aggregates,
            lag_members: self.show_lag_members(),
            process: Some(Process::own()),
        }
    }

    fn show_ports(&self) -> Vec<ShownPort> {
        let counted = self.controller.ports();
        let shown = self.ports.iter().filter_map(|(name, port)| {
            let counted = counted.iter().find(|counted| counted.index == port.index)?;
            Some((name, port, counted))
        });
        shown
            .map(|(name, port, counted)| ShownPort {
                name: name.clone(),
                role: if counted.access { "access" } else { "core" }.into(),
                device: port.config.devices().collect::<Vec<_>>().join(" + "),
                mac: counted.mac.to_string(),
                rx_packets: counted.rx_packets,
                rx_octets: counted.rx_octets,
                tx_packets: counted.tx_packets,
                tx_octets: counted.tx_octets,
                tx_dropped: counted.tx_dropped,
                user_plane: self.name.clone(),
                link_up: counted.up,
                rx_lost: counted.rx_lost,
            })
            .collect()
    }

    fn show_lag_members(&self) -> Vec<LagMember> {
        let members = self.ports.iter().flat_map(|(name, port)| {
            let members = port.lag.iter().flat_map(Lag::members);
            let speeds = port.lag.iter().flat_map(Lag::speeds);
            let devices = port.config.devices().zip(speeds);
            members
                .zip(devices)
                .map(move |(member, device)| (name, member, device))
        });
        members
            .map(
                |(port, (standing, partner, counters), (device, speed))| LagMember {
                    user_plane: self.name.clone(),
                    port: port.clone(),
                    device: device.to_owned(),
                    link_up: standing != Standing::LinkDown,
                    state: state_of(standing).into(),
                    partner: partner.map_or(String::new(), |partner| partner.system.to_string()),
                    partner_key: partner.map(|partner| partner.key.into()),
                    partner_port: partner.map(|partner| partner.port.into()),
                    tx_lacpdus: counters.sent,
                    rx_lacpdus: counters.received,
                    rx_malformed: counters.malformed,
                    speed_bits_per_second: speed.map(|mbps| u64::from(mbps.get()) * 1_000_000),
                },
            )
            .collect()
    }

    fn show_drops(&self) -> Vec<DropCounter> {
        let counter = |name: &str, count, meaning: &str| DropCounter {
            plane: "user-plane".into(),
            name: name.into(),
            count,
            meaning: meaning.into(),
        };
        let ports = self.controller.ports();
        let lost = ports.iter().map(|port| port.rx_lost).sum();
        let unaggregated = ports.iter().map(|port| port.unaggregated).sum();
        let mut drops: Vec<DropCounter> = self
            .controller
            .drops()
            .into_iter()
            .map(|d| counter(d.reason.name(), d.packets, d.reason.description()))
            .collect();
        drops.push(counter(
            "rx-lost",
            lost,
            "The ports' drivers lost a packet: queue full, damaged, or no buffer.",
        ));
        drops.push(counter(
            "not-aggregated",
            unaggregated,
            "A frame came by a member of a LAG that is not used: see `show lag-members`.",
        ));
        let own = self.control_counters().into_iter();
        let own = own.chain(self.node.counters().named());
        drops.extend(own.map(|(name, count, meaning)| counter(name, count, meaning)));
        drops
    }

    fn control_counters(&self) -> [(&'static str, u64, &'static str); 29] {
        let (io, cpri) = (self.counters, self.redirection.counters);
        let sessions = self.engine.counters;
        let fibs = || self.instances.values().map(|instance| &instance.fib);
        let fragmented = self.controller.fragments().packets;
        let suppressed = self.instances.values().map(|i| i.errors.suppressed).sum();
        let full: u64 = fibs().map(|fib| fib.adjacencies_refused).sum();
        let adjacencies = full + io.adjacencies_refused;
        let groups: u64 = fibs().map(|fib| fib.groups_refused()).sum();
        [
            (
                "inject-busy",
                io.inject_busy,
                "A packet of kernel or control plane found the worker's queue full.",
            ),
            (
                "offender-table-full",
                self.controller.unnamed_offences(),
                "A packet exceeded a rate of `protection`, and there was no room to name its sender in `show protection`.",
            ),
            (
                "device-full",
                io.device_full,
                "A packet for the kernel was dropped: its TAP or TUN was full or down.",
            ),
            (
                "send-failed",
                io.send_failed,
                "Sending a PFCP or GTP-U datagram failed.",
            ),
            (
                "route-table-full",
                io.routes_refused,
                "A route of the kernel did not fit into the worker's table.",
            ),
            (
                "adjacency-table-full",
                adjacencies,
                "A next hop did not fit into the table.",
            ),
            (
                "group-table-full",
                groups,
                "A multipath route did not fit into the table and uses only its first next hop.",
            ),
            (
                "neighbour-request-failed",
                io.neighbour_requests_failed,
                "The kernel rejected a request to resolve a neighbour.",
            ),
            (
                "neighbour-request-limited",
                fibs().map(|fib| fib.requests_limited).sum(),
                "A neighbour on a connected network was to be resolved, but the limit of requests to the kernel was reached.",
            ),
            (
                "netlink-overrun",
                self.kernel.overruns,
                "Netlink messages were lost; the kernel's tables were read again.",
            ),
            (
                "icmp-limited",
                suppressed,
                "An ICMP error was due but exceeded the limit.",
            ),
            (
                "fragmented",
                fragmented,
                "A packet was larger than the next hop's MTU and was fragmented.",
            ),
            (
                "gtpu-malformed",
                cpri.malformed,
                "A packet violated GTP-U or CPR-NSH.",
            ),
            (
                "gtpu-unknown-teid",
                cpri.unknown_teid,
                "A packet used a tunnel that belongs to no current or recent session.",
            ),
            (
                "gtpu-stale-teid",
                cpri.stale_teid,
                "A packet used the tunnel of an ended session, or of one that the control plane has not established again \
                    yet: expected when sessions end and after restarts.",
            ),
            (
                "gtpu-wrong-peer",
                cpri.wrong_peer,
                "A packet used a tunnel of a session whose control plane has another address, or an echo request came from no control \
                    plane.",
            ),
            (
                "gtpu-unknown-port",
                cpri.unknown_port,
                "A packet of the control plane named an unknown access port.",
            ),
            (
                "gtpu-error-indication",
                cpri.error_indications,
                "The control plane did not know the tunnel of a packet.",
            ),
            (
                "gtpu-error-limited",
                cpri.indications_limited,
                "An Error Indication was due but exceeded the limit.",
            ),
            (
                "punt-no-tunnel",
                cpri.no_tunnel,
                "No control plane's session had a tunnel for a control packet.",
            ),
            (
                "session-table-full",
                sessions.table_full,
                "A session was rejected because the session table is full.",
            ),
            (
                "session-rules-refused",
                sessions.rules_refused,
                "Rules were rejected because the user plane cannot carry them out.",
            ),
            (
                "session-teid-taken",
                sessions.teid_taken,
                "A session was rejected because another session has its tunnel.",
            ),
            (
                "session-refused",
                sessions.worker_refused,
                "The worker rejected a session: its id or address is in use, or its segment does not exist.",
            ),
            (
                "session-unknown",
                sessions.unknown_session,
                "A PFCP request named an unknown session.",
            ),
            (
                "pfcp-congested",
                sessions.congested,
                "A PFCP request was rejected because too many were waiting.",
            ),
            (
                "session-hold-expired",
                sessions.hold_expired,
                "A session was removed: its control plane did not come back in time.",
            ),
            (
                "unreported-octets",
                sessions.unreported_octets,
                "Octets of a session that was removed before its next usage report.",
            ),
            (
                "usage-report-kept",
                sessions.reports_kept,
                "A usage report was not acknowledged and will be sent again.",
            ),
        ]
    }
}

fn state_of(standing: Standing) -> LagMemberState {
    match standing {
        Standing::Used => LagMemberState::Used,
        Standing::LinkDown => LagMemberState::LinkDown,
        Standing::Silent => LagMemberState::Silent,
        Standing::Looped => LagMemberState::Looped,
        Standing::OtherPartner => LagMemberState::OtherPartner,
        Standing::OtherSpeed => LagMemberState::OtherSpeed,
        Standing::Waiting => LagMemberState::Waiting,
        Standing::TooFew => LagMemberState::TooFew,
    }
}
