//! Tests of the engine between a control plane that uses `pfcp::bng` and a worker that behaves as the real one promises.

use std::collections::BTreeMap;

use dataplane::{PortIndex, Refusal};
use ipnet::IpNet;
use pfcp::bng::{
    Circuit, DefaultSpec, Family, PoolNet, SessionSpec, Tunnel, Volume, delete, query_usage,
};
use policy::{Access, Binding, Bindings, Forwarding, PacketSettings, Role, Treatment};
use wire::eth::{MacAddr, Tags};
use wire::pfcp::*;

use super::*;

mod audit;
mod echoes;
mod keepalive;
mod ledger;
mod moves;
mod nets;
mod path;
mod redirected;
mod rules;
mod usage;

const CP: &str = "192.0.2.1:8805";
const PORT: PortIndex = PortIndex(0);
const PORT_MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xaa]);

struct Bench {
    engine: Engine<u32>,
    now: Now,
    requests: u32,
    /// The worker's table.
    entries: BTreeMap<SessionIndex, SessionEntry>,
    /// The worker's counters.
    usage: BTreeMap<SessionIndex, Usage>,
    /// Refusal of the next entry, if any.
    refuse: Option<Refusal>,
    /// Commands that the worker has not handled yet.
    pending: VecDeque<WorkerCommand>,
    worker_runs: bool,
    responses: Vec<(u32, u64, Message)>,
    reports: Vec<(u64, SessionReportRequest)>,
    nets: Vec<(bool, Announcement)>,
    /// Frames for access ports.
    sent: Vec<Vec<u8>>,
    /// Sessions whose places the worker was to forget.
    forgotten: Vec<SessionIndex>,
}

fn cp() -> SocketAddr {
    CP.parse().unwrap()
}

fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

impl Bench {
    fn new() -> Self {
        Self::with_room_for(1000)
    }

    fn with_room_for(max_sessions: u32) -> Self {
        Self::with(max_sessions, 1)
    }

    fn with(max_sessions: u32, workers: u16) -> Self {
        let mut config = Config::new(NodeId::Fqdn("up1".into()), "192.0.2.2".parse().unwrap());
        (config.max_sessions, config.workers) = (max_sessions, workers);
        config
            .layout
            .access_ports
            .insert(b"access0".to_vec(), (PORT, PORT_MAC));
        config
            .layout
            .instances
            .insert("default".into(), InstanceIndex(0));
        let mut engine = Engine::new(config);
        let now = Now {
            monotonic: Duration::from_secs(1),
            ntp: 1_000,
        };
        engine.peer_up(now, cp());
        Self {
            engine,
            now,
            requests: 0,
            entries: BTreeMap::new(),
            usage: BTreeMap::new(),
            refuse: None,
            pending: VecDeque::new(),
            worker_runs: true,
            responses: Vec::new(),
            reports: Vec::new(),
            nets: Vec::new(),
            sent: Vec::new(),
            forgotten: Vec::new(),
        }
    }

    fn send(&mut self, seid: u64, message: impl Into<Message>) -> u32 {
        self.requests += 1;
        self.engine
            .request(self.now, self.requests, cp(), seid, message.into());
        self.run();
        self.requests
    }

    fn run(&mut self) {
        loop {
            while let Some(output) = self.engine.poll_output() {
                match output {
                    Output::Worker(command) => self.pending.push_back(command),
                    Output::Respond { to, seid, message } => {
                        self.responses.push((to, seid, message));
                    }
                    Output::Report {
                        token,
                        message: Message::SessionReportRequest(m),
                        ..
                    } => {
                        self.reports.push((token, m));
                    }
                    Output::Report { message, .. } => panic!("{message:?}"),
                    Output::Send(_, frame) => self.sent.push(frame),
                    Output::AddNet(_, net) => self.nets.push((true, net)),
                    Output::RemoveNet(_, net) => self.nets.push((false, net)),
                }
            }
            match self.pending.pop_front() {
                Some(command) if self.worker_runs => self.work(command),
                Some(command) => return self.pending.push_front(command),
                None => return,
            }
        }
    }

    fn work(&mut self, command: WorkerCommand) {
        match command {
            WorkerCommand::Set(entry) => match self.refuse.take() {
                Some(refusal) => {
                    // Like the real worker: a refused session is not in the table afterwards.
                    self.entries.remove(&entry.index);
                    self.usage.remove(&entry.index);
                    self.engine.worker_refused(entry.index, refusal);
                }
                None => drop(self.entries.insert(entry.index, entry)),
            },
            WorkerCommand::Forget(index) => self.forgotten.push(index),
            WorkerCommand::Read(index) => {
                let usage = self.usage.get(&index).copied().unwrap_or_default();
                let gone = !self.entries.contains_key(&index);
                self.engine.worker_usage(self.now, index, usage, gone);
            }
            WorkerCommand::Remove(index) => {
                self.entries.remove(&index);
                let usage = self.usage.remove(&index).unwrap_or_default();
                self.engine.worker_usage(self.now, index, usage, true);
            }
        }
    }

    fn answer(&mut self, to: u32) -> Message {
        let at = self.responses.iter().position(|r| r.0 == to);
        self.responses.remove(at.expect("an answer")).2
    }

    fn establish(&mut self, spec: &SessionSpec) -> SessionEstablishmentResponse {
        let to = self.send(0, spec.establish_control());
        match self.answer(to) {
            Message::SessionEstablishmentResponse(response) => response,
            other => panic!("{other:?}"),
        }
    }

    fn established(&mut self, spec: &SessionSpec) -> u64 {
        let response = self.establish(spec);
        assert_eq!(response.cause, Cause::REQUEST_ACCEPTED);
        response.up_f_seid.unwrap().seid
    }

    /// Establishes the same session with the rules of all its families at once.
    fn established_whole(&mut self, spec: &SessionSpec) -> u64 {
        let to = self.send(0, spec.establish());
        match self.answer(to) {
            Message::SessionEstablishmentResponse(response) => response.up_f_seid.unwrap().seid,
            other => panic!("{other:?}"),
        }
    }

    /// Establishes the default session; returns our SEID.
    fn default_session(&mut self, nets: &[&str]) -> u64 {
        let to = self.send(0, default_spec(nets).establish().0);
        match self.answer(to) {
            Message::SessionEstablishmentResponse(response) => response.up_f_seid.unwrap().seid,
            other => panic!("{other:?}"),
        }
    }

    fn modify(
        &mut self,
        seid: u64,
        request: SessionModificationRequest,
    ) -> SessionModificationResponse {
        let to = self.send(seid, request);
        match self.answer(to) {
            Message::SessionModificationResponse(response) => response,
            other => panic!("{other:?}"),
        }
    }

    fn delete(&mut self, seid: u64) -> SessionDeletionResponse {
        let to = self.send(seid, delete());
        match self.answer(to) {
            Message::SessionDeletionResponse(response) => response,
            other => panic!("{other:?}"),
        }
    }

    fn pass(&mut self, seconds: u32) {
        self.now.monotonic += Duration::from_secs(seconds.into());
        self.now.ntp += seconds;
        self.engine.on_timeout(self.now);
        self.run();
    }

    fn count(&mut self, seid: u64, octets: u64) {
        let usage = self.usage.entry(Seid::from_u64(seid).index).or_default();
        let volume = Volume {
            up_octets: octets,
            up_packets: 1,
            down_octets: 2 * octets,
            down_packets: 2,
        };
        *usage = usage.plus(Usage::of_families(volume, Volume::default()));
    }

    /// Counts an IPv4 packet to the subscriber only.
    fn count_down(&mut self, seid: u64, octets: u64) {
        let usage = self.usage.entry(Seid::from_u64(seid).index).or_default();
        let volume = Volume {
            down_octets: octets,
            down_packets: 1,
            ..Volume::default()
        };
        *usage = usage.plus(Usage::of_families(volume, Volume::default()));
    }

    fn entry(&self, seid: u64) -> &SessionEntry {
        &self.entries[&Seid::from_u64(seid).index]
    }
}

fn spec(n: u16) -> SessionSpec {
    SessionSpec {
        node_id: NodeId::Ipv4([192, 0, 2, 1].into()),
        cp_f_seid: FSeid::new(0x1000 + u64::from(n), cp().ip()),
        circuit: Circuit {
            logical_port: b"access0".to_vec(),
            tags: Tags::qinq(100, n),
            mac: MacAddr([2, 0, 0, 0, 1, n as u8]),
            gateway_mac: MacAddr([2, 0, 0, 0, 0, 0xfe]),
        },
        access: Access::Pppoe(n),
        subscriber: Some(77),
        uplink: Tunnel {
            teid: 0x100 + u32::from(n),
            address: cp().ip(),
        },
        downlink: Tunnel {
            teid: 0x200 + u32::from(n),
            address: [192, 0, 2, 2].into(),
        },
        forwarding: Forwarding::new(
            Bindings::of(
                Some([100, 64, 0, n as u8].into()),
                Some("2001:db8:64:1::/64".parse().unwrap()),
            ),
            Treatment {
                network_instance: "default".into(),
                packets: PacketSettings::with_mtu(1480),
                ..Default::default()
            },
        ),
        urr_id: 1,
        usage_period: None,
        echo_magic: None,
    }
}

/// Two clients behind one MAC address.
#[test]
fn sessions_of_one_line_stand_side_by_side() {
    let mut bench = Bench::new();
    let mut other = spec(8);
    other.circuit = spec(7).circuit;
    for spec in [spec(7), other] {
        bench.send(0, spec.establish());
    }
    let ids: Vec<u16> = bench.entries.values().map(|e| e.pppoe_session_id).collect();
    assert_eq!(ids, [7, 8]);
}

fn with_period(n: u16, seconds: u32) -> SessionSpec {
    SessionSpec {
        urr_id: 1,
        usage_period: Some(seconds),
        ..spec(n)
    }
}

fn default_spec(nets: &[&str]) -> DefaultSpec {
    let pool = |(slot, text): (usize, &&str)| PoolNet {
        slot: slot as u16,
        network_instance: "default".into(),
        net: net(text),
    };
    DefaultSpec {
        node_id: NodeId::Ipv4([192, 0, 2, 1].into()),
        cp_f_seid: FSeid::new(1, cp().ip()),
        logical_port: None,
        uplink: Tunnel {
            teid: 1,
            address: cp().ip(),
        },
        downlink: Some(Tunnel {
            teid: 2,
            address: [192, 0, 2, 2].into(),
        }),
        nets: nets.iter().enumerate().map(pool).collect(),
    }
}

fn octets(report: &UsageReport) -> (Option<u64>, Option<u64>) {
    let volume = report.volume.unwrap();
    (volume.uplink_octets, volume.downlink_octets)
}

#[test]
fn a_session_grows_by_families_and_ends_with_its_usage() {
    let mut bench = Bench::new();
    let spec = spec(7);
    let bindings = spec.forwarding.bindings.clone();
    let seid = bench.established(&spec);
    let entry = bench.entry(seid);
    assert_eq!(
        (entry.port, entry.pppoe_session_id, entry.tags),
        (PORT, 7, Tags::qinq(100, 7))
    );
    assert_eq!(
        (entry.peer_mac, entry.gateway_mac),
        (spec.circuit.mac, spec.circuit.gateway_mac)
    );
    assert_eq!((entry.ipv4, entry.ipv6, entry.subscriber), (None, None, 77));

    let response = bench.modify(seid, spec.add_family(Family::Ipv4).unwrap());
    assert_eq!(response.cause, Cause::REQUEST_ACCEPTED);
    assert_eq!(
        (bench.entry(seid).ipv4, bench.entry(seid).packets),
        (bindings.ipv4(), PacketSettings::with_mtu(1480))
    );
    bench.modify(seid, spec.add_family(Family::Ipv6).unwrap());
    assert_eq!(bench.entry(seid).ipv6, bindings.ipv6());
    bench.modify(seid, spec.remove_family(Family::Ipv4));
    assert_eq!(
        (bench.entry(seid).ipv4, bench.entry(seid).ipv6),
        (None, bindings.ipv6())
    );

    let known = SessionSpec {
        subscriber: Some(78),
        ..spec.clone()
    };
    let response = bench.modify(seid, known.change_from(&spec.told()).unwrap());
    assert_eq!(response.cause, Cause::REQUEST_ACCEPTED);
    assert_eq!(bench.entry(seid).subscriber, 78);

    bench.count(seid, 500);
    bench.now.ntp += 60;
    let response = bench.delete(seid);
    assert_eq!(response.cause, Cause::REQUEST_ACCEPTED);
    let [report] = &response.usage_reports[..] else {
        panic!("{response:?}")
    };
    assert_eq!(octets(report), (Some(500), Some(1000)));
    assert_eq!(report.duration, Some(60));
    assert!(report.trigger.contains(UsageReportTrigger::TERMINATION));
    assert!(bench.entries.is_empty());
    assert_eq!(bench.engine.sessions(), 0);
    let again = bench.modify(seid, query_usage(1));
    assert_eq!(again.cause, Cause::SESSION_CONTEXT_NOT_FOUND);
}

#[test]
fn the_control_plane_is_told_only_when_the_worker_is_done() {
    let mut bench = Bench::new();
    bench.worker_runs = false;
    let spec = spec(7);
    let to = bench.send(0, spec.establish_control());
    assert!(bench.responses.is_empty());
    bench.worker_runs = true;
    bench.run();
    let Message::SessionEstablishmentResponse(response) = bench.answer(to) else {
        panic!()
    };
    let seid = response.up_f_seid.unwrap().seid;

    // Both families and the deletion at once: each waits for the one before.
    bench.worker_runs = false;
    let v4 = bench.send(seid, spec.add_family(Family::Ipv4).unwrap());
    let v6 = bench.send(seid, spec.add_family(Family::Ipv6).unwrap());
    let end = bench.send(seid, delete());
    assert!(bench.responses.is_empty());
    bench.worker_runs = true;
    bench.run();
    let order: Vec<u32> = bench.responses.iter().map(|r| r.0).collect();
    assert_eq!(order, [v4, v6, end]);
    assert!(
        bench
            .responses
            .iter()
            .all(|r| r.2.cause() == Some(Cause::REQUEST_ACCEPTED))
    );
}

#[test]
fn requests_that_wait_are_bounded() {
    let mut bench = Bench::new();
    let seid = bench.established(&spec(7));
    bench.worker_runs = false;
    for _ in 0..MAX_WAITING + 2 {
        bench.send(seid, query_usage(1));
    }
    let causes: Vec<_> = bench
        .responses
        .iter()
        .map(|r| r.2.cause().unwrap())
        .collect();
    assert_eq!(causes, [Cause::ENTITY_IN_CONGESTION]);
    assert_eq!(bench.engine.counters.congested, 1);
}

/// A control plane without an answer asks again and again, each time with a new request.
#[test]
fn a_deletion_always_waits_and_the_last_one_is_answered() {
    let mut bench = Bench::new();
    let seid = bench.established(&spec(7));
    bench.worker_runs = false;
    bench.send(seid, query_usage(1));
    for _ in 0..3 * MAX_WAITING {
        bench.send(seid, delete());
    }
    bench.worker_runs = true;
    bench.run();
    let causes: Vec<_> = bench
        .responses
        .iter()
        .map(|r| r.2.cause().unwrap())
        .collect();
    let (last, given_up) = causes.split_last().unwrap();
    assert_eq!(*last, Cause::REQUEST_ACCEPTED);
    let in_vain = |cause: &&Cause| **cause == Cause::ENTITY_IN_CONGESTION;
    let in_vain = given_up.iter().filter(in_vain).count();
    assert_eq!(in_vain, 3 * MAX_WAITING - 1, "{causes:?}");
    assert_eq!(bench.engine.sessions(), 0);
}

#[test]
fn rules_that_cannot_be_done_are_refused_with_their_element() {
    let mut bench = Bench::new();
    type Change = fn(&mut SessionSpec);
    let cases: [(Change, Cause, IeId); 5] = [
        (
            |s| s.circuit.logical_port = b"nowhere".to_vec(),
            Cause::RULE_CREATION_FAILURE,
            bbf_ie::LOGICAL_PORT,
        ),
        (
            |s| s.access = Access::Pppoe(0),
            Cause::RULE_CREATION_FAILURE,
            bbf_ie::PPPOE_SESSION_ID,
        ),
        (
            |s| s.circuit.mac = MacAddr::BROADCAST,
            Cause::CONDITIONAL_IE_MISSING,
            ie::MAC_ADDRESS,
        ),
        (
            |s| s.downlink.address = [192, 0, 2, 99].into(),
            Cause::RULE_CREATION_FAILURE,
            ie::F_TEID,
        ),
        (
            |s| s.uplink.address = "2001:db8::1".parse().unwrap(),
            Cause::INVALID_FORWARDING_POLICY,
            ie::OUTER_HEADER_CREATION,
        ),
    ];
    for (change, cause, offending) in cases {
        let mut spec = spec(7);
        change(&mut spec);
        let response = bench.establish(&spec);
        assert_eq!(response.cause, cause, "{response:?}");
        assert_eq!(response.offending_ie, Some(offending.kind), "{response:?}");
        assert_eq!(response.up_f_seid, None);
    }
    assert_eq!(bench.engine.sessions(), 0);
    assert_eq!(bench.engine.counters.rules_refused, 5);

    // A rejection because of a rule names the rule, too.
    let mut unknown = spec(7).establish_control();
    unknown.create_pdrs[0].far_id = Some(99);
    let to = bench.send(0, unknown);
    let Message::SessionEstablishmentResponse(response) = bench.answer(to) else {
        panic!("an answer")
    };
    let rule = FailedRule::Pdr(spec(7).establish_control().create_pdrs[0].pdr_id);
    assert_eq!(response.failed_rule, Some(rule), "{response:?}");

    let seid = bench.established(&spec(7));
    let mut elsewhere = spec(7);
    elsewhere.forwarding.network_instance = "red".into();
    let response = bench.modify(seid, elsewhere.add_family(Family::Ipv4).unwrap());
    assert_eq!(response.cause, Cause::RULE_CREATION_FAILURE);
    assert_eq!(response.offending_ie, Some(ie::NETWORK_INSTANCE.kind));
    assert_eq!(bench.entry(seid).ipv4, None);
}

#[test]
fn a_full_table_says_so_and_others_are_untouched() {
    let mut bench = Bench::with_room_for(2);
    let to = bench.send(0, default_spec(&[]).establish().0);
    assert_eq!(bench.answer(to).cause(), Some(Cause::REQUEST_ACCEPTED));
    let a = bench.established(&spec(1));
    bench.established(&spec(2));
    assert_eq!(
        bench.establish(&spec(3)).cause,
        Cause::NO_RESOURCES_AVAILABLE
    );
    assert_eq!(bench.engine.counters.table_full, 1);
    bench.delete(a);
    bench.established(&spec(3));
    assert_eq!(bench.entries.len(), 2);
}

/// The one that would take its place has no room until the worker has let go of the old one: that one stays, with its counters.
#[test]
fn a_session_that_cannot_be_replaced_stays() {
    let mut bench = Bench::with_room_for(1);
    let seid = bench.established(&spec(1));
    let refused = bench.establish(&spec(1));
    assert_eq!(refused.cause, Cause::NO_RESOURCES_AVAILABLE);
    let stays = refused.up_f_seid.map(|f_seid| f_seid.seid);
    assert_eq!(stays, Some(seid), "a control plane may have forgotten it");
    assert_eq!(bench.entries.len(), 1);
    assert_eq!(bench.delete(seid).cause, Cause::REQUEST_ACCEPTED);
}

#[test]
fn default_sessions_are_bounded_and_take_no_room_from_subscribers() {
    let mut bench = Bench::with_room_for(2);
    let own = |n: usize| DefaultSpec {
        cp_f_seid: FSeid::new(0x10_0000 + n as u64, cp().ip()),
        downlink: Some(Tunnel {
            teid: 0x10_0000 + n as u32,
            address: [192, 0, 2, 2].into(),
        }),
        ..default_spec(&[])
    };
    let establish = |bench: &mut Bench, n| {
        let to = bench.send(0, own(n).establish().0);
        match bench.answer(to) {
            Message::SessionEstablishmentResponse(response) => response,
            other => panic!("{other:?}"),
        }
    };
    let accepted: Vec<_> = (0..256).map(|n| establish(&mut bench, n)).collect();
    assert!(accepted.iter().all(|r| r.cause == Cause::REQUEST_ACCEPTED));
    let refused = establish(&mut bench, 256);
    assert_eq!(refused.cause, Cause::NO_RESOURCES_AVAILABLE);
    assert_eq!(bench.engine.counters.table_full, 1);
    assert_eq!(bench.engine.sessions(), 256);
    bench.established(&spec(1));
    bench.established(&spec(2));
    bench.delete(accepted[0].up_f_seid.unwrap().seid);
    assert_eq!(establish(&mut bench, 256).cause, Cause::REQUEST_ACCEPTED);
}

#[test]
fn a_worker_that_does_not_keep_up_is_spared() {
    let mut bench = Bench::new();
    bench.engine.worker_behind = true;
    assert_eq!(bench.establish(&spec(1)).cause, Cause::ENTITY_IN_CONGESTION);
}

#[test]
fn a_tunnel_has_one_session() {
    let mut bench = Bench::new();
    bench.established(&spec(1));
    let clash = SessionSpec {
        downlink: spec(1).downlink,
        ..spec(2)
    };
    let response = bench.establish(&clash);
    assert_eq!(response.cause, Cause::RULE_CREATION_FAILURE);
    assert_eq!(response.offending_ie, Some(ie::F_TEID.kind));
    assert_eq!(bench.engine.counters.teid_taken, 1);
    assert_eq!(bench.entries.len(), 1);
}

#[test]
fn a_session_established_anew_takes_the_place_of_its_orphan() {
    let mut bench = Bench::new();
    let orphan = bench.established(&spec(1));
    let seid = bench.established(&spec(1));
    assert_ne!(orphan, seid);
    assert_eq!(bench.entries.len(), 1);
    assert_eq!(bench.delete(orphan).cause, Cause::SESSION_CONTEXT_NOT_FOUND);
    assert_eq!(bench.delete(seid).cause, Cause::REQUEST_ACCEPTED);

    // A control plane that restarted and kept its sessions has a new default session.
    bench.send(0, default_spec(&["100.64.0.0/24"]).establish().0);
    let anew = DefaultSpec {
        cp_f_seid: FSeid::new(0x99, cp().ip()),
        ..default_spec(&["100.64.0.0/24", "100.64.1.0/24"])
    };
    let to = bench.send(0, anew.establish().0);
    assert_eq!(bench.answer(to).cause(), Some(Cause::REQUEST_ACCEPTED));
    assert_eq!(bench.engine.sessions(), 1);
    let last: Vec<_> = bench.nets.iter().rev().take(2).collect();
    assert_eq!(
        last,
        [
            &(true, net("100.64.1.0/24").into()),
            &(true, net("100.64.0.0/24").into())
        ]
    );
}

#[test]
fn what_the_worker_refuses_leaves_nothing_behind() {
    let mut bench = Bench::new();
    for (refusal, cause, offending) in [
        (
            Refusal::IdTaken,
            Cause::RULE_CREATION_FAILURE,
            Some(bbf_ie::PPPOE_SESSION_ID.kind),
        ),
        (
            Refusal::NoSegment,
            Cause::RULE_CREATION_FAILURE,
            Some(bbf_ie::LOGICAL_PORT.kind),
        ),
        (
            Refusal::AddressTaken,
            Cause::RULE_CREATION_FAILURE,
            Some(ie::UE_IP_ADDRESS.kind),
        ),
        (Refusal::TableFull, Cause::NO_RESOURCES_AVAILABLE, None),
    ] {
        bench.refuse = Some(refusal);
        let response = bench.establish(&spec(1));
        assert_eq!((response.cause, response.offending_ie), (cause, offending));
        assert_eq!(bench.engine.sessions(), 0);
    }
    // A rejected modification leaves the session as it was.
    let seid = bench.established(&spec(1));
    bench.count(seid, 9);
    bench.modify(seid, query_usage(1));
    bench.refuse = Some(Refusal::AddressTaken);
    let response = bench.modify(seid, spec(1).add_family(Family::Ipv4).unwrap());
    assert_eq!(response.offending_ie, Some(ie::UE_IP_ADDRESS.kind));
    assert_eq!(bench.entry(seid).ipv4, None);
    let response = bench.modify(seid, spec(1).add_family(Family::Ipv4).unwrap());
    assert_eq!(response.cause, Cause::REQUEST_ACCEPTED);
    bench.count(seid, 4);
    assert_eq!(
        octets(&bench.delete(seid).usage_reports[0]),
        (Some(4), Some(8))
    );
}

/// A time at which the control plane has established all of its sessions again.
const LATER: Duration = Duration::from_secs(60);

#[test]
fn tunnels_lead_to_their_sessions_from_their_control_plane_only() {
    let mut bench = Bench::new();
    bench.engine.peer_up(Now::default(), cp());
    bench.send(0, default_spec(&[]).establish().0);
    let seid = bench.established(&spec(7));
    let index = Seid::from_u64(seid).index;
    let engine = &bench.engine;
    assert_eq!(engine.downlink(LATER, 2, cp().ip()), Ok(Downlink::Default));
    assert_eq!(
        engine.downlink(LATER, 0x207, cp().ip()),
        Ok(Downlink::Session(index, PORT))
    );
    assert_eq!(
        engine.downlink(LATER, 0x208, cp().ip()),
        Err(NoDownlink::Unknown)
    );
    let unknown_peer = "192.0.2.66".parse().unwrap();
    assert_eq!(
        engine.downlink(LATER, 0x207, unknown_peer),
        Err(NoDownlink::WrongPeer)
    );
    assert_eq!(engine.control_tunnel(index), Some(spec(7).uplink));
    assert_eq!(
        engine.discovery_tunnel(PORT),
        Some(default_spec(&[]).uplink)
    );
    bench.delete(seid);
    assert_eq!(
        bench.engine.downlink(LATER, 0x207, cp().ip()),
        Err(NoDownlink::Stale)
    );
}

/// Of a control plane that removed this user plane while it could not be reached, and added it again.
#[test]
fn a_port_has_the_latest_default_session_of_a_control_plane() {
    let mut bench = Bench::new();
    let own = |n: u32, nets: &[&str]| DefaultSpec {
        cp_f_seid: FSeid::new(n.into(), cp().ip()),
        logical_port: Some(b"access0".to_vec()),
        downlink: Some(Tunnel {
            teid: n,
            address: [192, 0, 2, 2].into(),
        }),
        ..default_spec(nets)
    };
    bench.send(0, own(2, &["100.64.0.0/24"]).establish().0);
    let to = bench.send(0, own(3, &["100.64.1.0/24"]).establish().0);
    assert_eq!(bench.answer(to).cause(), Some(Cause::REQUEST_ACCEPTED));
    assert_eq!(bench.engine.sessions(), 1);
    // it may announce these again
    bench.pass(600);
    let told = [
        (true, net("100.64.0.0/24").into()),
        (true, net("100.64.1.0/24").into()),
        (false, net("100.64.0.0/24").into()),
    ];
    assert_eq!(bench.nets, told);
}

#[test]
fn a_ports_own_default_session_comes_before_that_of_all_ports() {
    let mut bench = Bench::new();
    bench.send(0, default_spec(&[]).establish().0);
    let own = DefaultSpec {
        cp_f_seid: FSeid::new(2, cp().ip()),
        logical_port: Some(b"access0".to_vec()),
        uplink: Tunnel {
            teid: 0x51,
            address: cp().ip(),
        },
        downlink: Some(Tunnel {
            teid: 0x52,
            address: [192, 0, 2, 2].into(),
        }),
        ..default_spec(&[])
    };
    bench.send(0, own.establish().0);
    assert_eq!(bench.engine.discovery_tunnel(PORT), Some(own.uplink));
    assert_eq!(bench.engine.discovery_tunnel(PortIndex(1)).unwrap().teid, 1);
}

#[test]
fn the_page_about_performance_has_the_sizes() {
    let page = include_str!("../../../../docs/performance.md");
    let size = size_of::<Session<pfcp::RequestId>>();
    let row = format!("| `userplane::Session` | {size} |");
    assert!(page.contains(&row), "no row {row}");
}
