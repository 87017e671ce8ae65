//! PFCP messages of somebody who says what is not so.

use rand::Rng;
use rand::rngs::StdRng;
use wire::pfcp::{
    AssociationReleaseRequest, AssociationSetupRequest, AssociationUpdateRequest, HeartbeatRequest,
    HeartbeatResponse, Message, NodeId, Packet, ReleaseRequest, ReportType, SEQUENCE_MASK,
    SessionDeletionRequest, SessionReportRequest, SessionRetentionInformation, UsageReport,
    VolumeMeasurement,
};

/// Something that would cost sessions if it were true, under the name of the other plane.
pub fn false_claim(
    random: &mut StdRng,
    name: String,
    to_control: bool,
    recovery_time_stamp: u32,
) -> Packet {
    let node_id = NodeId::Fqdn(name);
    let sequence = random.random_range(0..=SEQUENCE_MASK);
    let message: Message = match random.random_range(0..7) {
        0 | 1 => AssociationSetupRequest {
            node_id,
            recovery_time_stamp,
            session_retention: (!to_control && random.random_bool(0.5))
                .then(SessionRetentionInformation::default),
            ..Default::default()
        }
        .into(),
        2 => AssociationReleaseRequest { node_id }.into(),
        3 => AssociationUpdateRequest {
            node_id,
            release_request: Some(ReleaseRequest::RELEASE),
            ..Default::default()
        }
        .into(),
        4 => HeartbeatRequest {
            recovery_time_stamp,
        }
        .into(),
        5 => HeartbeatResponse {
            recovery_time_stamp,
            next_sequence: Some(random.random()),
        }
        .into(),
        _ => {
            let seid = random.random::<u64>() >> random.random_range(0..64);
            return Packet::session(seid, sequence, SessionDeletionRequest {});
        }
    };
    Packet::node(sequence, message)
}

/// A usage report of a session.
pub fn report(
    random: &mut StdRng,
    seid: u64,
    sequence: u32,
    number: u32,
    octets: [u64; 2],
) -> Packet {
    let [up, down] = octets;
    let volume = VolumeMeasurement {
        uplink_octets: Some(up),
        downlink_octets: Some(down),
        ..VolumeMeasurement::default()
    };
    let usage = UsageReport {
        urr_id: random.random_range(1..4),
        sequence: number,
        volume: Some(volume),
        ipv6_volume: Some(volume),
        ..UsageReport::default()
    };
    let report = SessionReportRequest {
        report_type: ReportType::USAGE | ReportType::INACTIVITY,
        usage_reports: vec![usage],
        unanswered_echoes: Some(3),
    };
    Packet::session(seid, sequence, report)
}

/// Where a datagram has its sequence number (TS 29.244 §7.2.2): bit 1 of the first octet says that there is a SEID before it.
fn sequence_at(bytes: &[u8]) -> usize {
    if bytes[0] & 1 == 1 { 12 } else { 4 }
}

/// The sequence number of a datagram.
pub fn sequence(bytes: &[u8]) -> u32 {
    let at = sequence_at(bytes);
    u32::from_be_bytes([0, bytes[at], bytes[at + 1], bytes[at + 2]])
}

/// Gives a datagram another sequence number.
pub fn set_sequence(bytes: &mut [u8], sequence: u32) {
    let at = sequence_at(bytes);
    bytes[at..at + 3].copy_from_slice(&sequence.to_be_bytes()[1..]);
}
