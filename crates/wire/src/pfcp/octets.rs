//! Elements and messages of PFCP octet by octet, written by hand from TS 29.244 and TR-459. Reading and writing are checked
//! against these octets, because both planes use this codec: a mistake in it would be made alike on both sides.

use super::codec::{Value, put};
use super::*;
use crate::eth::MacAddr;
use crate::octets::hex;
use core::fmt::Debug;
use core::net::{Ipv4Addr, Ipv6Addr};

/// The element is written as these octets, and read from them.
fn agree<T: Value + PartialEq + Debug>(id: IeId, value: T, text: &str) {
    let octets = hex(text);
    let mut written = Vec::new();
    put(id, &value, &mut written);
    assert_eq!(written, octets, "{value:?}");
    let header = if octets[0] & 0x80 != 0 { 6 } else { 4 };
    assert_eq!(T::read(&octets[header..], &mut 0), Ok(value));
}

/// The message is written as these octets, and read from them.
fn message_agrees(packet: Packet, text: &str) {
    let octets = hex(text);
    let mut written = Vec::new();
    packet.emit(&mut written).unwrap();
    assert_eq!(written, octets, "{packet:?}");
    let ignored = 0;
    assert_eq!(parse(&octets), Ok(Received { packet, ignored }));
}

const IPV6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
const IPV6_OCTETS: &str = "2001 0db8 0000 0000 0000 0000 0000 0001";

fn ipv4() -> Ipv4Addr {
    [192, 0, 2, 1].into()
}

fn report(urr_id: u32, sequence: u32, trigger: UsageReportTrigger) -> UsageReport {
    UsageReport {
        urr_id,
        sequence,
        trigger,
        ..Default::default()
    }
}

#[test]
fn volumes_are_total_up_down_octets_then_packets() {
    let id = ie::VOLUME_MEASUREMENT;
    let all = VolumeMeasurement {
        total_octets: Some(0x01),
        uplink_octets: Some(0x02),
        downlink_octets: Some(0x03),
        total_packets: Some(0x04),
        uplink_packets: Some(0x05),
        downlink_packets: Some(0x06),
    };
    // §8.2.44: bit 1 TOVOL, 2 ULVOL, 3 DLVOL, 4 TONOP, 5 ULNOP, 6 DLNOP, and the fields in this order
    let octets = "0042 0031 3f
        0000000000000001 0000000000000002 0000000000000003
        0000000000000004 0000000000000005 0000000000000006";
    agree(id, all, octets);
    let up = VolumeMeasurement {
        uplink_octets: Some(0x1122_3344_5566_7788),
        ..Default::default()
    };
    agree(id, up, "0042 0009 02 1122334455667788");
    let down = VolumeMeasurement {
        downlink_octets: Some(7),
        ..Default::default()
    };
    agree(id, down, "0042 0009 04 0000000000000007");
    let up_packets = VolumeMeasurement {
        uplink_packets: Some(5),
        ..Default::default()
    };
    agree(id, up_packets, "0042 0009 10 0000000000000005");
}

#[test]
fn a_report_of_the_user_plane_s_own_accord() {
    let usage = UsageReport {
        start_time: Some(3_900_000_200),
        end_time: Some(3_900_000_260),
        volume: Some(VolumeMeasurement {
            uplink_octets: Some(100),
            downlink_octets: Some(2000),
            uplink_packets: Some(1),
            downlink_packets: Some(2),
            ..Default::default()
        }),
        duration: Some(60),
        ..report(1, 2, UsageReportTrigger::PERIODIC)
    };
    let request = SessionReportRequest {
        report_type: ReportType::USAGE,
        usage_reports: vec![usage],
        unanswered_echoes: None,
    };
    let octets = "
        21 38 0068               # version 1 with SEID (§7.2.2), Session Report Request, length
        0000000000000abc 010203 00 # SEID, sequence number, spare
        0027 0001 02             # Report Type (§8.2.21): USAR
        0050 0053                # Usage Report in a Session Report Request (table 7.5.8.3-1)
          0051 0004 00000001     # URR ID
          0068 0004 00000002     # UR-SEQN
          003f 0002 0100         # Usage Report Trigger (§8.2.41): PERIO
          004b 0004 e87547c8     # Start Time
          004c 0004 e8754804     # End Time
          0042 0021 36           # Volume Measurement: ULVOL, DLVOL, ULNOP, DLNOP
            0000000000000064 00000000000007d0 0000000000000001 0000000000000002
          0043 0004 0000003c     # Duration Measurement";
    message_agrees(Packet::session(0xabc, 0x0001_0203, request), octets);
}

#[test]
fn a_subscriber_who_answers_no_echo_requests_is_reported_in_an_element_of_our_own() {
    let request = SessionReportRequest {
        report_type: ReportType::INACTIVITY,
        usage_reports: Vec::new(),
        unanswered_echoes: Some(3),
    };
    let octets = "
        21 38 0019               # version 1 with SEID (§7.2.2), Session Report Request, length
        0000000000000abc 010203 00 # SEID, sequence number, spare
        0027 0001 08             # Report Type (§8.2.21): UPIR
        8009 0004 7ed9 0003        # Unanswered Echoes of enterprise 32473";
    message_agrees(Packet::session(0xabc, 0x0001_0203, request), octets);
}

/// The element is our own. Who does not know it skips it by its length.
#[test]
fn ipv6_volume_is_a_volume_measurement_of_our_own() {
    let usage = UsageReport {
        ipv6_volume: Some(VolumeMeasurement {
            uplink_octets: Some(0x11),
            ..Default::default()
        }),
        ..report(1, 2, UsageReportTrigger::PERIODIC)
    };
    let octets = "
        0050 0025                # Usage Report in a Session Report Request
          0051 0004 00000001     # URR ID
          0068 0004 00000002     # UR-SEQN
          003f 0002 0100         # Usage Report Trigger: PERIO
          8008 000b 7ed9         # IPv6 Volume of enterprise 32473
            02 0000000000000011  # ULVOL";
    agree(ie::USAGE_REPORT_IN_REPORT, usage, octets);
}

#[test]
fn reports_in_answers_have_types_of_their_own() {
    let volume = Some(VolumeMeasurement {
        uplink_octets: Some(0x11),
        downlink_octets: Some(0x22),
        ..Default::default()
    });
    let last = UsageReport {
        volume,
        ..report(1, 9, UsageReportTrigger::TERMINATION)
    };
    let response = SessionDeletionResponse {
        cause: Cause::REQUEST_ACCEPTED,
        usage_reports: vec![last],
        ..Default::default()
    };
    let octets = "
        21 37 0040 0000000000000abc 000007 00 # Session Deletion Response
        0013 0001 01             # Cause (§8.2.1): Request accepted
        004f 002b                # Usage Report in a Session Deletion Response (table 7.5.7.2-1)
          0051 0004 00000001
          0068 0004 00000009
          003f 0002 0008         # TERMR: octet 6, bit 4
          0042 0011 06 0000000000000011 0000000000000022";
    message_agrees(Packet::session(0xabc, 7, response), octets);
    let asked = UsageReport {
        volume,
        ..report(1, 9, UsageReportTrigger::IMMEDIATE)
    };
    let response = SessionModificationResponse {
        cause: Cause::REQUEST_ACCEPTED,
        usage_reports: vec![asked],
        ..Default::default()
    };
    let octets = "
        21 35 0040 0000000000000abc 000007 00 # Session Modification Response
        0013 0001 01
        004e 002b                # Usage Report in a Session Modification Response (table 7.5.5.2-1)
          0051 0004 00000001
          0068 0004 00000009
          003f 0002 8000         # IMMER: octet 5, bit 8
          0042 0011 06 0000000000000011 0000000000000022";
    message_agrees(Packet::session(0xabc, 7, response), octets);
}

#[test]
fn usage_is_asked_for_by_rule() {
    let request = SessionModificationRequest {
        query_urrs: vec![QueryUrr { urr_id: 1 }],
        ..Default::default()
    };
    let octets = "
        21 34 0018 0000000000000abc 000007 00 # Session Modification Request
        004d 0008 0051 0004 00000001          # Query URR (table 7.5.4.10-1): URR ID";
    message_agrees(Packet::session(0xabc, 7, request), octets);
    let all = ModificationFlags::QUERY_ALL_URRS;
    agree(ie::PFCPSMREQ_FLAGS, all, "0031 0001 04"); // §8.2.35: QAURR is bit 3
    // §8.2.21: bit 1 DLDR, 2 USAR, 3 ERIR, 4 UPIR
    let idle = ReportType::USAGE | ReportType::INACTIVITY;
    agree(ie::REPORT_TYPE, idle, "0027 0001 0a");
}

#[test]
fn what_is_measured_and_when_it_is_told() {
    let both = MeasurementMethod::DURATION | MeasurementMethod::VOLUME;
    agree(ie::MEASUREMENT_METHOD, both, "003e 0001 03"); // §8.2.40: DURAT bit 1, VOLUM bit 2
    let periodic = ReportingTriggers::PERIODIC;
    agree(ie::REPORTING_TRIGGERS, periodic, "0025 0002 0100"); // §8.2.19: PERIO octet 5, bit 1
    let quota = ReportingTriggers::VOLUME_QUOTA;
    agree(ie::REPORTING_TRIGGERS, quota, "0025 0002 0001"); // VOLQU octet 6, bit 1
    let packets = MeasurementInformation::PACKETS;
    agree(ie::MEASUREMENT_INFORMATION, packets, "0064 0001 10"); // §8.2.68: MNOP bit 5
    agree(ie::MEASUREMENT_PERIOD, 300u32, "0040 0004 0000012c");
}

#[test]
fn gates_and_rates_are_the_uplink_s_first() {
    let up_closed = GateStatus {
        uplink_open: false,
        downlink_open: true,
    };
    agree(ie::GATE_STATUS, up_closed, "0019 0001 04"); // §8.2.7: bits 3 and 4 uplink, 1 and 2 downlink; 1 is closed
    let down_closed = GateStatus {
        uplink_open: true,
        downlink_open: false,
    };
    agree(ie::GATE_STATUS, down_closed, "0019 0001 01");
    let rate = BitRate {
        uplink_kbps: 50_000,
        downlink_kbps: 0x01_0000_0001,
    };
    // §8.2.8 and §8.2.9: five octets up, five octets down
    agree(ie::MBR, rate, "001a 000a 000000c350 0100000001");
    agree(ie::GBR, rate, "001b 000a 000000c350 0100000001");
    agree(ie::QER_CORRELATION_ID, 77u32, "001c 0004 0000004d");
}

#[test]
fn interfaces_and_actions() {
    // §8.2.2 and §8.2.24: Access 0, Core 1, SGi-LAN 2, CP-function 3
    agree(ie::SOURCE_INTERFACE, Interface::Access, "0014 0001 00");
    agree(ie::SOURCE_INTERFACE, Interface::Core, "0014 0001 01");
    agree(
        ie::DESTINATION_INTERFACE,
        Interface::CpFunction,
        "002a 0001 03",
    );
    // §8.2.26: DROP bit 1, FORW bit 2, BUFF bit 3, NOCP bit 4, DUPL bit 5
    agree(ie::APPLY_ACTION, ApplyAction::DROP, "002c 0001 01");
    agree(ie::APPLY_ACTION, ApplyAction::FORW, "002c 0001 02");
    agree(ie::PDN_TYPE, PdnType::Ethernet, "0071 0001 05"); // §8.2.79
    agree(ie::PRECEDENCE, 200u32, "001d 0004 000000c8"); // §8.2.11
    // §8.2.64: 0 GTP-U/UDP/IPv4, 6 GTP-U/UDP/IP
    agree(
        ie::OUTER_HEADER_REMOVAL,
        OuterHeaderRemoval::GTPU_IPV4,
        "005f 0001 00",
    );
    agree(
        ie::OUTER_HEADER_REMOVAL,
        OuterHeaderRemoval::GTPU_IP,
        "005f 0001 06",
    );
}

#[test]
fn who_and_which_session() {
    // §8.2.38: type 0 IPv4, 1 IPv6, 2 FQDN as labels of RFC 1035
    agree(ie::NODE_ID, NodeId::Ipv4(ipv4()), "003c 0005 00 c0000201");
    let octets = format!("003c 0011 01 {IPV6_OCTETS}");
    agree(ie::NODE_ID, NodeId::Ipv6(IPV6), &octets);
    let name = NodeId::Fqdn("up1.example".into());
    agree(
        ie::NODE_ID,
        name,
        "003c 000d 02 03 757031 07 6578616d706c65",
    );
    // §8.2.37: bit 1 V6, bit 2 V4; SEID, IPv4, IPv6
    let f_seid = FSeid::new(0x0102_0304_0506_0708, ipv4().into());
    agree(ie::F_SEID, f_seid, "0039 000d 02 0102030405060708 c0000201");
    let both = FSeid {
        ipv6: Some(IPV6),
        ..f_seid
    };
    let octets = format!("0039 001d 03 0102030405060708 c0000201 {IPV6_OCTETS}");
    agree(ie::F_SEID, both, &octets);
    agree(
        ie::RECOVERY_TIME_STAMP,
        3_900_000_000u32,
        "0060 0004 e8754700",
    );
    assert_eq!(ntp_seconds(0), 0x83aa_7e80, "1970 in seconds since 1900");
}

#[test]
fn tunnels() {
    // §8.2.3: bit 1 V4, bit 2 V6, bit 3 CHOOSE, bit 4 CHOOSE ID
    let f_teid = FTeid::new(0x20, ipv4().into());
    agree(ie::F_TEID, f_teid, "0015 0009 01 00000020 c0000201");
    let octets = format!("0015 0015 02 00000020 {IPV6_OCTETS}");
    agree(ie::F_TEID, FTeid::new(0x20, IPV6.into()), &octets);
    let choose = FTeid::Choose {
        ipv4: true,
        ipv6: false,
        id: Some(9),
    };
    agree(ie::F_TEID, choose, "0015 0002 0d 09");
    // §8.2.56, octet 5: bit 1 GTP-U/UDP/IPv4, 2 GTP-U/UDP/IPv6, 3 UDP/IPv4, 5 IPv4, 7 C-TAG, 8 S-TAG
    let id = ie::OUTER_HEADER_CREATION;
    let gtpu = OuterHeaderCreation::gtpu(0x10, ipv4().into());
    agree(id, gtpu, "0054 000a 0100 00000010 c0000201");
    let octets = format!("0054 0016 0200 00000010 {IPV6_OCTETS}");
    agree(id, OuterHeaderCreation::gtpu(0x10, IPV6.into()), &octets);
    let udp = OuterHeaderCreation {
        ipv4: Some(ipv4()),
        port: Some(0x1234),
        ..Default::default()
    };
    agree(id, udp, "0054 0008 0400 c0000201 1234");
    let tagged = OuterHeaderCreation {
        teid: Some(0x10),
        ipv4: Some(ipv4()),
        c_tag: Some(VlanTag::vid(0xabc)),
        s_tag: Some(VlanTag::vid(0x123)),
        ..Default::default()
    };
    let octets = "0054 0010 c100 00000010 c0000201 04a0bc 041023";
    agree(id, tagged, octets);
}

#[test]
fn a_subscriber_s_addresses() {
    // §8.2.62: bit 1 V6, 2 V4, 3 S/D, 4 IPv6D, 5 CHV4, 6 CHV6, 7 IP6PL
    let id = ie::UE_IP_ADDRESS;
    let source = UeIpAddress::v4([100, 64, 0, 2].into());
    agree(id, source, "005d 0005 02 64400002");
    let destination = UeIpAddress {
        destination: true,
        ..source
    };
    agree(id, destination, "005d 0005 06 64400002");
    let octets = format!("005d 0011 01 {IPV6_OCTETS}");
    agree(id, UeIpAddress::v6(IPV6, 64), &octets);
    let octets = format!("005d 0012 41 {IPV6_OCTETS} 38");
    agree(id, UeIpAddress::v6(IPV6, 56), &octets);
    let delegated = UeIpAddress {
        delegation_bits: Some(8),
        ..UeIpAddress::v6(IPV6, 64)
    };
    let octets = format!("005d 0012 09 {IPV6_OCTETS} 08");
    agree(id, delegated, &octets);
    let chosen = UeIpAddress {
        choose_ipv4: true,
        ..Default::default()
    };
    agree(id, chosen, "005d 0001 10");
    let chosen = UeIpAddress {
        choose_ipv6: true,
        ..Default::default()
    };
    agree(id, chosen, "005d 0001 20");
    agree(
        ie::FRAMED_ROUTE,
        "10.0.0.0/8".to_owned(),
        "0099 000a 31302e302e302e302f38",
    );
    agree(
        ie::NETWORK_INSTANCE,
        "vpn1".to_owned(),
        "0016 0004 76706e31",
    );
}

#[test]
fn frames_and_flows() {
    // §8.2.93: bit 1 SOUR, 2 DEST, 3 USOU, 4 UDES, and the addresses in this order
    let macs = MacAddresses {
        source: Some(MacAddr([2, 0, 0, 0, 0, 1])),
        destination: Some(MacAddr([2, 0, 0, 0, 0, 0xfe])),
        ..Default::default()
    };
    agree(
        ie::MAC_ADDRESS,
        macs,
        "0085 000d 03 020000000001 0200000000fe",
    );
    let range = MacAddresses {
        destination: None,
        upper_source: Some(MacAddr([2, 0, 0, 0, 0, 9])),
        ..macs
    };
    agree(
        ie::MAC_ADDRESS,
        range,
        "0085 000d 05 020000000001 020000000009",
    );
    agree(ie::ETHERTYPE, 0x8863u16, "0088 0002 8863"); // §8.2.96
    // §8.2.5: bit 1 FD, 2 TTC, 3 SPI, 4 FL, 5 BID; a spare octet; the description with its length
    let all = SdfFilter {
        flow_description: Some("permit".into()),
        traffic_class: Some(0xb8fc),
        spi: Some(0x0102_0304),
        flow_label: Some(0xabcde),
        filter_id: Some(7),
    };
    let octets = "0017 0017 1f 00 0006 7065726d6974 b8fc 01020304 0abcde 00000007";
    agree(ie::SDF_FILTER, all, octets);
}

#[test]
fn what_was_wrong() {
    // §8.2.80: 0 PDR, 1 FAR, 2 QER, 3 URR; a PDR's id has two octets, the others' four
    let id = ie::FAILED_RULE_ID;
    agree(id, FailedRule::Pdr(3), "0072 0003 00 0003");
    agree(id, FailedRule::Far(3), "0072 0005 01 00000003");
    agree(id, FailedRule::Qer(3), "0072 0005 02 00000003");
    agree(id, FailedRule::Urr(3), "0072 0005 03 00000003");
    agree(ie::OFFENDING_IE, 93u16, "0028 0002 005d");
    // table 8.2.1-1
    for (cause, octet) in [
        (Cause::REQUEST_ACCEPTED, 1),
        (Cause::REQUEST_REJECTED, 64),
        (Cause::SESSION_CONTEXT_NOT_FOUND, 65),
        (Cause::MANDATORY_IE_MISSING, 66),
        (Cause::MANDATORY_IE_INCORRECT, 69),
        (Cause::NO_ESTABLISHED_ASSOCIATION, 72),
        (Cause::RULE_CREATION_FAILURE, 73),
        (Cause::ENTITY_IN_CONGESTION, 74),
        (Cause::NO_RESOURCES_AVAILABLE, 75),
        (Cause::SERVICE_NOT_SUPPORTED, 76),
    ] {
        agree(ie::CAUSE, cause, &format!("0013 0001 {octet:02x}"));
    }
}

#[test]
fn rules_that_change() {
    let pdr = UpdatePdr {
        pdr_id: 3,
        precedence: Some(200),
        outer_header_removal: Some(Change::Clear),
        far_id: Some(4),
        urr_ids: vec![5],
        qer_ids: vec![6],
        predefined_rules: vec!["gold".into()],
        former_predefined_rules: vec!["old".into()],
        ..Default::default()
    };
    let octets = "
        0009 0039                # Update PDR (table 7.5.4.2-1)
          0038 0002 0003         # PDR ID
          001d 0004 000000c8     # Precedence
          005f 0000              # Outer Header Removal: none any more
          006c 0004 00000004     # FAR ID
          0051 0004 00000005     # URR ID
          006d 0004 00000006     # QER ID
          006a 0004 676f6c64     # Activate Predefined Rules (§8.2.72)
          006b 0003 6f6c64       # Deactivate Predefined Rules (§8.2.73)";
    agree(ie::UPDATE_PDR, pdr, octets);
    let urr = UpdateUrr {
        urr_id: 1,
        measurement_method: Some(MeasurementMethod::VOLUME),
        reporting_triggers: Some(ReportingTriggers::PERIODIC),
        measurement_period: Some(60),
        measurement_information: Some(MeasurementInformation::PACKETS),
    };
    let octets = "
        000d 0020                # Update URR (table 7.5.4.4-1)
          0051 0004 00000001     # URR ID
          003e 0001 02           # Measurement Method: VOLUM
          0025 0002 0100         # Reporting Triggers: PERIO
          0040 0004 0000003c     # Measurement Period
          0064 0001 10           # Measurement Information: MNOP";
    agree(ie::UPDATE_URR, urr, octets);
    let endpoint = UpdateTrafficEndpoint {
        id: 2,
        f_teid: Some(FTeid::new(0x20, ipv4().into())),
        ue_ip_addresses: vec![UeIpAddress::v4([100, 64, 0, 2].into())],
        ..Default::default()
    };
    let octets = "
        0081 001b                # Update Traffic Endpoint (table 7.5.4.13-1)
          0083 0001 02           # Traffic Endpoint ID
          0015 0009 01 00000020 c0000201
          005d 0005 02 64400002";
    agree(ie::UPDATE_TRAFFIC_ENDPOINT, endpoint, octets);
}

#[test]
fn rules_that_go() {
    let request = SessionModificationRequest {
        remove_pdrs: vec![RemovePdr { pdr_id: 3 }],
        remove_fars: vec![RemoveFar { far_id: 4 }],
        remove_urrs: vec![RemoveUrr { urr_id: 5 }],
        remove_qers: vec![RemoveQer { qer_id: 6 }],
        remove_traffic_endpoints: vec![RemoveTrafficEndpoint { id: 7 }],
        ..Default::default()
    };
    let octets = "
        21 34 0043 0000000000000abc 000007 00 # Session Modification Request
        000f 0006 0038 0002 0003      # Remove PDR: PDR ID
        0010 0008 006c 0004 00000004  # Remove FAR: FAR ID
        0011 0008 0051 0004 00000005  # Remove URR: URR ID
        0012 0008 006d 0004 00000006  # Remove QER: QER ID
        0082 0005 0083 0001 07        # Remove Traffic Endpoint: Traffic Endpoint ID";
    message_agrees(Packet::session(0xabc, 7, request), octets);
}

#[test]
fn an_association_and_its_end() {
    let request = AssociationSetupRequest {
        node_id: NodeId::Ipv4(ipv4()),
        recovery_time_stamp: 1,
        up_features: Some(
            UpFunctionFeatures::TRAFFIC_ENDPOINTS
                | UpFunctionFeatures::FRAMED_ROUTES
                | UpFunctionFeatures::PACKET_COUNTS
                | UpFunctionFeatures::PREFIX_LENGTHS,
        ),
        cp_features: Some(CpFunctionFeatures::BUNDLING),
        session_retention: Some(SessionRetentionInformation {
            addresses: vec![EntityAddress {
                ipv4: Some(ipv4()),
                ipv6: None,
            }],
        }),
        bbf_features: Some(BbfUpFeatures::PPPOE),
        sluice_features: Some(SluiceFeatures::DEFAULT_CP_TO_UP_RULE),
        lanes: None,
        known_settings: None,
    };
    let octets = "
        20 05 0040 000001 00          # version 1 without SEID, Association Setup Request
        003c 0005 00 c0000201         # Node ID
        0060 0004 00000001            # Recovery Time Stamp
        002b 0004 00 22 10 20         # UP Function Features (§8.2.25): PDIU, FRRT; MNOP; IP6PL
        0059 0001 10                  # CP Function Features (§8.2.58): BUNDL
        00b7 0009                     # PFCP Session Retention Information
          00b9 0005 02 c0000201       # CP PFCP Entity IP Address (§8.2.131): bit 1 V6, bit 2 V4
        8000 0006 0de9 01 00 00 00    # BBF UP Function Features, in the first octet
        8001 0003 7ed9 01             # our own features";
    message_agrees(Packet::node(1, request), octets);
    let release = AssociationReleaseRequest {
        node_id: NodeId::Ipv4(ipv4()),
    };
    let octets = "20 09 000d 000002 00 003c 0005 00 c0000201";
    message_agrees(Packet::node(2, release), octets);
    // §8.2.77: bit 1 SARR, 2 URSS
    let id = ie::PFCP_ASSOCIATION_RELEASE_REQUEST;
    agree(id, ReleaseRequest::RELEASE, "006f 0001 01");
    let heartbeat = HeartbeatResponse {
        recovery_time_stamp: 1,
        next_sequence: Some(0xabcdef),
    };
    message_agrees(
        Packet::node(3, heartbeat),
        "20 02 0016 000003 00 0060 0004 00000001 800a 0006 7ed9 00abcdef",
    );
}

#[test]
fn elements_of_the_bbf() {
    agree(
        bbf_ie::LOGICAL_PORT,
        b"access0".to_vec(),
        "8001 0009 0de9 61636365737330",
    );
    let endpoint = BbfOuterHeaderCreation::TRAFFIC_ENDPOINT;
    let octets = "8002 0008 0de9 0200 0000 0000"; // description, tunnel id, session id
    agree(bbf_ie::OUTER_HEADER_CREATION, endpoint, octets);
    let l2tp = BbfOuterHeaderCreation {
        description: 0x0400,
        tunnel_id: 0x1111,
        session_id: 0x2222,
    };
    let octets = "8002 0008 0de9 0400 1111 2222";
    agree(bbf_ie::OUTER_HEADER_CREATION, l2tp, octets);
    for (removal, octet) in [
        (BbfOuterHeaderRemoval::ETHERNET, "01"),
        (BbfOuterHeaderRemoval::PPPOE, "02"),
        (BbfOuterHeaderRemoval::PPP, "03"),
    ] {
        let octets = format!("8003 0003 0de9 {octet}");
        agree(bbf_ie::OUTER_HEADER_REMOVAL, removal, &octets);
    }
    agree(bbf_ie::PPPOE_SESSION_ID, 0x1001u16, "8004 0004 0de9 1001");
    let data = PppProtocol::Data;
    agree(bbf_ie::PPP_PROTOCOL, data, "8005 0003 0de9 02");
    let timers = VerificationTimers {
        interval: 10,
        count: 3,
    };
    let octets = "8006 0005 0de9 000a 03"; // seconds, then how often
    agree(bbf_ie::VERIFICATION_TIMERS, timers, octets);
    let magic = MagicNumbers {
        transmitted: 0x1111_1111,
        received: 0x2222_2222,
    };
    let octets = "8007 000a 0de9 11111111 22222222"; // ours, then the subscriber's
    agree(bbf_ie::PPP_LCP_MAGIC_NUMBER, magic, octets);
    agree(bbf_ie::MTU, 1492u16, "8008 0004 0de9 05d4");
    let connectivity = PppLcpConnectivity {
        traffic_endpoint: Some(1),
        timers: Some(timers),
        magic_numbers: Some(magic),
    };
    let octets = "
        800c 001e 0de9                      # PPP LCP Connectivity
          0083 0001 01                      # Traffic Endpoint ID
          8006 0005 0de9 000a 03            # Verification Timers
          8007 000a 0de9 11111111 22222222  # PPP LCP Magic Number";
    agree(bbf_ie::PPP_LCP_CONNECTIVITY, connectivity, octets);
}

#[test]
fn elements_of_our_own() {
    // enterprise 32473 (RFC 5612); the layouts are in `own`
    agree(own::OUTER_TPID, 0x88a8u16, "8002 0004 7ed9 88a8");
    let audit = Audit {
        epoch: 0x0102_0304,
        last: true,
        sessions: vec![(0x11, 0x22), (0x33, 0x44)],
    };
    let octets = "8003 0027 7ed9 01020304 01
        0000000000000011 0000000000000022 0000000000000033 0000000000000044";
    agree(own::AUDIT, audit, octets);
    let result = AuditResult {
        wrong: vec![0, 0x0102],
        unknown_sessions: vec![(0x55, 0x66)],
    };
    let octets = "8004 0018 7ed9 0002 0000 0102 0000000000000055 0000000000000066";
    agree(own::AUDIT_RESULT, result, octets);
    let settings = Settings(vec![(5, vec![6]), (9, vec![])]);
    agree(own::SETTINGS, settings, "8005 0007 7ed9 05 01 06 09 00");
    let octets = format!("8006 0102 7ed9 {}", "00 01 02 03".repeat(64));
    agree(own::LANES, Lanes::even(4), &octets);
    let known = KnownSettings::of([9, 1, 200]);
    let rules = "deny in ip from any to any\0".to_owned();
    let octets = "800b 001d 7ed9 64656e7920 696e20 697020 66726f6d20 616e7920 746f20 616e79 00";
    agree(own::FILTER_RULES, rules, octets);
    agree(own::KNOWN_SETTINGS, known, "8007 0005 7ed9 01 09 c8");
    assert!(known.contains(200) && !known.contains(8));
}
