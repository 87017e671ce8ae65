//! The independent check of what goes over the wire: a whole exchange is written as a capture and decoded by tshark.
mod common;

use common::{CP, Sent, UP, World};
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use pfcp::Event;
use pfcp::bng::{
    self, Circuit, DecodedRules, DefaultSpec, Family, PoolNet, RuleSet, SessionSpec, Tunnel, Usage,
    UsageMeter, Volume,
};
use policy::{Access, Bindings, Forwarding, PacketSettings, Treatment};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use wire::eth::{MacAddr, TPID_8021AD, Tag, Tags};
use wire::pcap::{self, ETHERNET, RAW_IP};
use wire::pfcp::*;

const CP_SEID: u64 = 0xc0;
const UP_SEID: u64 = 0xd0;

fn spec() -> SessionSpec {
    SessionSpec {
        node_id: NodeId::from(CP.ip()),
        cp_f_seid: FSeid::new(CP_SEID, CP.ip()),
        circuit: Circuit {
            logical_port: b"access0".to_vec(),
            tags: Tags {
                outer: Some(Tag {
                    tpid: TPID_8021AD,
                    ..Tag::new(0x123)
                }),
                inner: Some(Tag::new(0xabc)),
            },
            mac: MacAddr([2, 0, 0, 0, 0, 1]),
            gateway_mac: MacAddr([2, 0, 0, 0, 0, 0xfe]),
        },
        access: Access::Pppoe(0x1001),
        subscriber: Some(77),
        uplink: Tunnel {
            teid: 0x10,
            address: CP.ip(),
        },
        downlink: Tunnel {
            teid: 0x20,
            address: UP.ip(),
        },
        forwarding: Forwarding::new(
            Bindings::of(
                Some([100, 64, 0, 2].into()),
                Some("2001:db8:0:1::/64".parse().unwrap()),
            ),
            Treatment {
                network_instance: "default".to_owned(),
                packets: PacketSettings::with_mtu(1492),
                ..Default::default()
            },
        ),
        urr_id: 1,
        usage_period: Some(600),
        echo_magic: None,
    }
}

fn default_spec() -> DefaultSpec {
    let net = |slot, net: &str| PoolNet {
        slot,
        network_instance: "default".to_owned(),
        net: net.parse().unwrap(),
    };
    DefaultSpec {
        node_id: NodeId::from(CP.ip()),
        cp_f_seid: FSeid::new(1, CP.ip()),
        logical_port: None,
        uplink: Tunnel {
            teid: 1,
            address: CP.ip(),
        },
        downlink: Some(Tunnel {
            teid: 2,
            address: UP.ip(),
        }),
        nets: vec![net(0, "100.64.0.0/24"), net(1, "2001:db8::/56")],
    }
}

/// The user plane's answers, made from the rules that it was given.
struct UserPlane {
    rules: RuleSet,
    meter: Option<UsageMeter>,
}

impl UserPlane {
    fn answer(&mut self, request: Message) -> Message {
        let cause = Cause::REQUEST_ACCEPTED;
        let ipv4 = Volume {
            up_packets: 3,
            up_octets: 300,
            down_packets: 4,
            down_octets: 4000,
        };
        let used = Usage::of_families(ipv4, Volume::default());
        match request {
            Message::SessionEstablishmentRequest(request) => {
                self.rules = RuleSet::establish(request).unwrap();
                if let DecodedRules::Session(decoded) = self.rules.decode().unwrap() {
                    self.meter = decoded
                        .usage
                        .map(|rule| UsageMeter::new(rule, Usage::default(), 3_900_000_200));
                }
                let node_id = NodeId::from(UP.ip());
                let up_f_seid = Some(FSeid::new(UP_SEID, UP.ip()));
                SessionEstablishmentResponse {
                    node_id,
                    cause,
                    up_f_seid,
                    ..Default::default()
                }
                .into()
            }
            Message::SessionModificationRequest(request) => {
                self.rules = self.rules.modify(&request).unwrap();
                self.rules.decode().unwrap();
                let reports = request
                    .query_urrs
                    .iter()
                    .filter_map(|_| self.report(used, UsageReportTrigger::IMMEDIATE));
                SessionModificationResponse {
                    cause,
                    usage_reports: reports.collect(),
                    ..Default::default()
                }
                .into()
            }
            Message::SessionDeletionRequest(_) => {
                let usage_reports = self
                    .report(used, UsageReportTrigger::TERMINATION)
                    .into_iter()
                    .collect();
                SessionDeletionResponse {
                    cause,
                    usage_reports,
                    ..Default::default()
                }
                .into()
            }
            other => panic!("the control plane sent {}", other.name()),
        }
    }

    fn report(&mut self, used: Usage, trigger: UsageReportTrigger) -> Option<UsageReport> {
        self.meter
            .as_mut()
            .map(|meter| meter.report(used, 3_900_000_260, trigger))
    }
}

/// A request of one side, answered by the other, and the answer back.
fn ask(
    world: &mut World,
    from: SocketAddr,
    seid: u64,
    request: Message,
    answer: impl FnOnce(Message) -> Message,
) {
    let (to, answer_seid) = if from == CP {
        (UP, CP_SEID)
    } else {
        (CP, UP_SEID)
    };
    let now = world.now;
    world.node(from).request(now, to, seid, request, 1).unwrap();
    world.run(Duration::from_millis(20));
    let [Event::Request { id, message, .. }] = &world.take_events(to)[..] else {
        panic!("no request came")
    };
    world
        .node(to)
        .respond(*id, answer_seid, answer(message.clone()));
    world.run(Duration::from_millis(20));
    let [
        Event::Response {
            token: 1, message, ..
        },
    ] = &world.take_events(from)[..]
    else {
        panic!("no answer came")
    };
    assert_eq!(message.cause(), Some(Cause::REQUEST_ACCEPTED));
}

/// Association, default session, control-only session, both families, a report, a query, deletion, release.
fn exchange() -> Vec<Sent> {
    let mut world = World::associated(1);
    let mut default = UserPlane {
        rules: RuleSet::default(),
        meter: None,
    };
    let mut session = UserPlane {
        rules: RuleSet::default(),
        meter: None,
    };
    let (establishment, more) = default_spec().establish();
    assert!(more.is_empty());
    ask(&mut world, CP, 0, establishment.into(), |request| {
        default.answer(request)
    });
    let spec = spec();
    ask(
        &mut world,
        CP,
        0,
        spec.establish_control().into(),
        |request| session.answer(request),
    );
    for family in [Family::Ipv4, Family::Ipv6] {
        let request = spec.add_family(family).unwrap();
        ask(&mut world, CP, UP_SEID, request.into(), |request| {
            session.answer(request)
        });
    }
    let ipv6 = Volume {
        up_packets: 1,
        up_octets: 100,
        down_packets: 2,
        down_octets: 2000,
    };
    let used = Usage::of_families(Volume::default(), ipv6);
    let report = SessionReportRequest {
        report_type: ReportType::USAGE,
        usage_reports: session
            .report(used, UsageReportTrigger::PERIODIC)
            .into_iter()
            .collect(),
        unanswered_echoes: Some(3),
    };
    let taken = SessionReportResponse {
        cause: Cause::REQUEST_ACCEPTED,
        ..Default::default()
    };
    ask(&mut world, UP, CP_SEID, report.into(), |_| taken.into());
    ask(
        &mut world,
        CP,
        UP_SEID,
        bng::query_usage(1).into(),
        |request| session.answer(request),
    );
    ask(
        &mut world,
        CP,
        UP_SEID,
        spec.remove_family(Family::Ipv4).into(),
        |request| session.answer(request),
    );
    ask(&mut world, CP, UP_SEID, bng::delete().into(), |request| {
        session.answer(request)
    });
    ask(&mut world, CP, 0, spec.establish().into(), |request| {
        session.answer(request)
    });
    world.run(Duration::from_secs(11));
    let now = world.now;
    world.node(CP).release(now, UP);
    world.run(Duration::from_millis(20));
    world.sent
}

/// An IP packet with a UDP datagram; checksums of IPv4 and UDP are left out where the protocols allow it.
fn datagram(from: SocketAddr, to: SocketAddr, payload: &[u8]) -> Vec<u8> {
    let length = 8 + payload.len() as u16;
    let mut packet = Vec::new();
    match (from.ip(), to.ip()) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            packet.extend_from_slice(&[0x45, 0]);
            packet.extend_from_slice(&(20 + length).to_be_bytes());
            packet.extend_from_slice(&[0, 0, 0x40, 0, 64, 17, 0, 0]);
            packet.extend_from_slice(&source.octets());
            packet.extend_from_slice(&destination.octets());
        }
        _ => panic!("both ends are reached over IPv4"),
    }
    for field in [from.port(), to.port(), length, 0] {
        packet.extend_from_slice(&field.to_be_bytes());
    }
    packet.extend_from_slice(payload);
    packet
}

/// A capture, of packets that begin as the link type says.
fn write_capture(path: &Path, link: u16, packets: &[(Duration, Vec<u8>)]) {
    let mut file = Vec::new();
    pcap::begin("", &mut file);
    pcap::Interface { name: None, link }.emit(&mut file);
    for (at, octets) in packets {
        let packet = pcap::Packet {
            interface: 0,
            at: at.as_nanos() as u64,
            length: octets.len() as u32,
            octets,
        };
        packet.emit("", None, &mut file);
    }
    std::fs::write(path, file).unwrap();
}

fn datagrams(sent: &[Sent]) -> Vec<(Duration, Vec<u8>)> {
    sent.iter()
        .map(|(at, from, to, payload)| (*at, datagram(*from, *to, payload)))
        .collect()
}

/// Runs tshark over packets.
fn tshark(link: u16, packets: &[(Duration, Vec<u8>)], options: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("exchange.pcapng");
    write_capture(&path, link, packets);
    let output = Command::new("tshark")
        .arg("-r")
        .arg(&path)
        .args(["-d", "udp.port==8805,pfcp"])
        .args(options)
        .output()
        .expect("tshark is needed: apt-get install tshark");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// What tshark makes of packets, one JSON object each, every field with its name.
fn decode_packets(link: u16, packets: &[(Duration, Vec<u8>)], options: &[&str]) -> Vec<Value> {
    let json = ["-T", "json", "--no-duplicate-keys"];
    let decoded: Vec<Value> =
        serde_json::from_str(&tshark(link, packets, &[&json, options].concat())).unwrap();
    assert_eq!(decoded.len(), packets.len());
    decoded
        .into_iter()
        .map(|packet| packet["_source"]["layers"].clone())
        .collect()
}

fn decode(sent: &[Sent]) -> Vec<Value> {
    decode_packets(RAW_IP, &datagrams(sent), &[])
}

/// Every field of that name, wherever it is.
fn fields<'a>(value: &'a Value, name: &str, found: &mut Vec<&'a Value>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                if key == name {
                    match value {
                        Value::Array(values) => found.extend(values),
                        value => found.push(value),
                    }
                }
                fields(value, name, found);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| fields(value, name, found)),
        _ => {}
    }
}

fn all<'a>(value: &'a Value, name: &str) -> Vec<&'a str> {
    let mut found = Vec::new();
    fields(value, name, &mut found);
    found.into_iter().filter_map(Value::as_str).collect()
}

fn has(value: &Value, name: &str) -> bool {
    let mut found = Vec::new();
    fields(value, name, &mut found);
    !found.is_empty()
}

/// The one message of that type, after `skip` others.
fn message<'a>(packets: &'a [Value], kind: &str, skip: usize) -> &'a Value {
    packets
        .iter()
        .filter(|packet| all(packet, "pfcp.msg_type") == [kind])
        .nth(skip)
        .expect("message is there")
}

/// Objects of the decoded tree that have this field themselves.
fn holders<'a>(value: &'a Value, name: &str, found: &mut Vec<&'a Value>) {
    match value {
        Value::Object(map) => {
            if map.contains_key(name) {
                found.push(value);
            }
            map.values().for_each(|value| holders(value, name, found));
        }
        Value::Array(values) => values.iter().for_each(|value| holders(value, name, found)),
        _ => {}
    }
}

/// No complaint, and nothing that tshark does not know but Sluice's own elements.
#[test]
fn tshark_has_nothing_to_complain_of() {
    let sent = exchange();
    let kinds: std::collections::BTreeSet<u8> = sent.iter().map(|(.., bytes)| bytes[1]).collect();
    assert_eq!(
        Vec::from_iter(kinds),
        [1, 2, 5, 6, 7, 8, 9, 10, 50, 51, 52, 53, 54, 55, 56, 57]
    );
    for packet in decode(&sent) {
        assert!(
            has(&packet, "pfcp.msg_type"),
            "not decoded as PFCP: {packet}"
        );
        for complaint in [
            "_ws.malformed",
            "_ws.expert",
            "_ws.unreassembled",
            "data.data",
        ] {
            assert!(!has(&packet, complaint), "{complaint}: {packet:#}");
        }
        let mut vendors = Vec::new();
        holders(&packet, "pfcp.enterprise_id", &mut vendors);
        for element in vendors {
            let (id, raw) = (
                &element["pfcp.enterprise_id"],
                &element["pfcp.enterprise_ie_data"],
            );
            assert!(
                id == "3561" && raw.is_null() || id == "32473" && !raw.is_null(),
                "{element:#}"
            );
        }
        assert_eq!(all(&packet, "pfcp.msg_type").len(), 1);
    }
    let text = tshark(RAW_IP, &datagrams(&sent), &["-V"]);
    for complaint in [
        "Malformed",
        "Expert",
        "not dissected",
        "not decoded",
        "Unknown (",
    ] {
        assert!(!text.contains(complaint), "{complaint}: {text}");
    }
}

/// Messages of one direction in one datagram (TS 29.244 §6.5).
#[test]
fn tshark_takes_several_messages_out_of_a_datagram() {
    let messages = exchange().into_iter().filter(|(_, from, ..)| *from == CP);
    let mut messages: Vec<Vec<u8>> = messages.map(|(.., bytes)| bytes).collect();
    let last = messages.len() - 1;
    messages[..last].iter_mut().for_each(|m| mark_followed(m));
    let whole = [(Duration::ZERO, datagram(CP, UP, &messages.concat()))];
    let fields = ["-T", "fields", "-e", "pfcp.msg_type", "-e", "pfcp.seqno"];
    let seen = tshark(RAW_IP, &whole, &fields);
    let told = |of: fn(&Packet) -> u32| {
        let packets = messages.iter().map(|bytes| parse(bytes).unwrap().packet);
        let told: Vec<String> = packets.map(|packet| of(&packet).to_string()).collect();
        told.join(",")
    };
    let kinds = told(|packet| packet.message.kind().into());
    let expected = format!("{kinds}\t{}", told(|packet| packet.sequence));
    assert_eq!(seen.trim_end(), expected);
    let (first, rest) = split(&whole[0].1[28..]);
    assert_eq!((first, rest.is_empty()), (&messages[0][..], false));
}

#[test]
fn tshark_reads_the_association() {
    let packets = decode(&exchange());
    let setup = message(&packets, "5", 0);
    assert_eq!(all(setup, "pfcp.node_id_ipv4"), ["192.0.2.1"]);
    assert_eq!(all(setup, "pfcp.s"), ["0"]);
    let response = message(&packets, "6", 0);
    assert_eq!(all(response, "pfcp.cause"), ["1"]);
    assert_eq!(all(response, "pfcp.bbf.up_function_features.pppoe"), ["1"]);
    assert_eq!(all(response, "pfcp.bbf.up_function_features.lns"), ["0"]);
    for feature in ["pdiu", "frrt", "mnop", "ip6pl"] {
        assert_eq!(
            all(response, &format!("pfcp.up_function_features.{feature}")),
            ["1"],
            "{feature}"
        );
    }
    assert_eq!(all(response, "pfcp.up_function_features.ftup"), ["0"]);
    // Every response is recognised as the one to its request.
    for packet in &packets {
        let kind: u8 = all(packet, "pfcp.msg_type")[0].parse().unwrap();
        assert_eq!(
            has(packet, "pfcp.response_to"),
            !is_request(kind),
            "{packet:#}"
        );
    }
}

#[test]
fn tshark_reads_the_default_session() {
    let packets = decode(&exchange());
    let request = message(&packets, "50", 0);
    assert!(!has(request, "pfcp.pdn_type"));
    assert_eq!(all(request, "pfcp.bbf.outer_hdr_desc"), ["256"]);
    assert_eq!(all(request, "pfcp.ethertype"), ["0x8863"]);
    assert_eq!(all(request, "pfcp.outer_hdr_creation.teid"), ["0x00000001"]);
    assert_eq!(all(request, "pfcp.f_teid.teid"), ["0x00000002"]);
    assert_eq!(all(request, "pfcp.framed_route"), ["100.64.0.0/24"]);
    assert_eq!(all(request, "pfcp.framed_ipv6_route"), ["2001:db8::/56"]);
    assert_eq!(all(request, "pfcp.apply_action.drop"), ["0", "0", "1"]);
}

#[test]
fn tshark_reads_the_control_only_session() {
    let packets = decode(&exchange());
    let request = message(&packets, "50", 1);
    assert_eq!(all(request, "pfcp.pdn_type"), ["5"]);
    assert_eq!(all(request, "pfcp.bbf.logical_port_id_str"), ["access0"]);
    assert_eq!(all(request, "pfcp.s_tag.svid"), ["0x0123"]);
    assert_eq!(all(request, "pfcp.c_tag.cvid"), ["0x0abc"]);
    assert_eq!(all(request, "pfcp.bbf.pppoe_session_id"), ["0x1001"]);
    assert_eq!(all(request, "pfcp.bbf.protocol_flags.control"), ["1"]);
    assert_eq!(all(request, "pfcp.mac_address.sour"), ["02:00:00:00:00:01"]);
    assert_eq!(all(request, "pfcp.qer_correlation_id"), ["77"]);
    assert_eq!(all(request, "pfcp.measurement_period"), ["600"]);
    assert_eq!(all(request, "pfcp.reporting_triggers_flags.perio"), ["1"]);
    assert_eq!(all(request, "pfcp.measurement_info.mnop"), ["1"]);
    assert_eq!(all(request, "pfcp.bbf.outer_hdr_desc"), [""; 0]);
}

#[test]
fn tshark_reads_the_families() {
    let packets = decode(&exchange());
    let ipv4 = message(&packets, "52", 0);
    assert_eq!(
        all(ipv4, "pfcp.ue_ip_addr_ipv4"),
        ["100.64.0.2", "100.64.0.2"]
    );
    assert_eq!(all(ipv4, "pfcp.bbf.out_hdr_desc"), ["3"]);
    assert_eq!(all(ipv4, "pfcp.bbf.outer_hdr_desc"), ["512"]);
    assert_eq!(all(ipv4, "pfcp.bbf.protocol_flags.protocol"), ["0x0021"]);
    assert_eq!(all(ipv4, "pfcp.bbf.mtu"), ["1492"]);
    assert_eq!(all(ipv4, "pfcp.network_instance"), ["default"; 3]);
    let ipv6 = message(&packets, "52", 1);
    assert_eq!(
        all(ipv6, "pfcp.ue_ip_addr_ipv6"),
        ["2001:db8:0:1::", "2001:db8:0:1::"]
    );
    assert_eq!(
        all(ipv6, "pfcp.bbf.protocol_flags.protocol"),
        ["0x0057", "0x0057"]
    );
    let flows = [
        "permit out 58 from any to assigned icmptypes 133-137",
        "permit out 17 from any 547 to assigned",
    ];
    assert_eq!(all(ipv6, "pfcp.flow_desc"), flows);
}

#[test]
fn tshark_reads_usage_in_its_three_forms() {
    let packets = decode(&exchange());
    let volumes = |packet: &Value| {
        let number = |name: String| all(packet, &name)[0].parse::<u64>().unwrap();
        ["ulvol", "dlvol", "ulnop", "dlnop"]
            .map(|name| number(format!("pfcp.volume_measurement.{name}")))
    };
    let report = message(&packets, "56", 0);
    assert_eq!(volumes(report), [100, 2000, 1, 2]);
    assert_eq!(all(report, "pfcp.report_type.usar"), ["1"]);
    assert_eq!(all(report, "pfcp.usage_report_trigger_flags.perio"), ["1"]);
    let queried = packets.iter().find(|packet| {
        all(packet, "pfcp.msg_type") == ["53"] && has(packet, "pfcp.volume_measurement.ulvol")
    });
    let queried = queried.unwrap();
    assert_eq!(volumes(queried), [200, 2000, 2, 2]);
    assert_eq!(all(queried, "pfcp.usage_report_trigger.immer"), ["1"]);
    let last = message(&packets, "55", 0);
    assert_eq!(volumes(last), [0, 0, 0, 0]);
    assert_eq!(all(last, "pfcp.usage_report_trigger.term"), ["1"]);
    assert_eq!(all(last, "pfcp.ur_seqn"), ["2"]);
}

/// The tunnels of redirected control packets: plain frames per session, and CPR-NSH in the default session.
#[test]
fn tshark_reads_the_tunnels() {
    let header = wire::eth::Header {
        destination: MacAddr::BROADCAST,
        source: MacAddr([2, 0, 0, 0, 0, 1]),
        tags: Tags {
            outer: Some(Tag {
                tpid: TPID_8021AD,
                ..Tag::new(0x123)
            }),
            inner: Some(Tag::new(0xabc)),
        },
        ethertype: wire::eth::PPPOE_DISCOVERY,
    };
    let mut frame = Vec::new();
    header.emit(&mut frame);
    // PADI with an empty Service-Name.
    frame.extend_from_slice(&[0x11, 0x09, 0, 0, 0, 4, 1, 1, 0, 0]);
    let mut tunnelled = Vec::new();
    wire::gtpu::emit_gpdu(0x10, &frame, &mut tunnelled).unwrap();
    let port = wire::gtpu::PORT;
    let sent = (
        Duration::ZERO,
        SocketAddr::new(UP.ip(), port),
        SocketAddr::new(CP.ip(), port),
        tunnelled,
    );
    let options = ["-o", "gtp.dissect_tpdu_as:ETHERNET"];
    let plain = &decode_packets(RAW_IP, &datagrams(&[sent]), &options)[0];
    assert_eq!(all(plain, "gtp.teid"), ["0x00000010"]);
    assert_eq!(all(plain, "gtp.flags.s"), ["0"]);
    assert_inner(plain);

    // tshark has no way to see NSH inside GTP-U, so the redirection header is shown to it in a frame of its own.
    let mut redirected = [&[2; 12][..], &[0x89, 0x4f]].concat();
    wire::nsh::Packet {
        logical_port: b"access0",
        frame: &frame,
    }
    .emit(&mut redirected)
    .unwrap();
    let nsh = &decode_packets(ETHERNET, &[(Duration::ZERO, redirected)], &[])[0];
    assert_eq!(all(nsh, "nsh.mdtype"), ["2"]);
    assert_eq!(all(nsh, "nsh.metadataclass"), ["512"]);
    assert_eq!(all(nsh, "nsh.nextproto"), ["3"]);
    assert_eq!(all(nsh, "nsh.metadatatype"), ["0"]);
    assert_eq!(all(nsh, "nsh.metadatalen"), ["0x07"]);
    assert_eq!(all(nsh, "nsh.metadata"), ["61:63:63:65:73:73:30"]);
    assert_inner(nsh);
}

/// The PADI inside, with both of its tags.
fn assert_inner(packet: &Value) {
    assert!(
        !has(packet, "_ws.malformed") && !has(packet, "_ws.expert"),
        "{packet:#}"
    );
    assert!(
        all(packet, "eth.src").contains(&"02:00:00:00:00:01"),
        "{packet:#}"
    );
    assert_eq!(all(packet, "ieee8021ad.id"), ["291"], "{packet:#}");
    assert_eq!(all(packet, "vlan.id"), ["2748"], "{packet:#}");
    assert_eq!(all(packet, "pppoe.code"), ["0x09"], "{packet:#}");
}
