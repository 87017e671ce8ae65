//! Rules: PDR, FAR, QER, URR and traffic endpoints, as they are created, updated and removed.
//!
//! Endpoints carry what TR-459 adds to them: logical port, tags, MAC address and PPPoE session id.
use super::bbf::{self, BbfOuterHeaderCreation, BbfOuterHeaderRemoval, PppProtocol};
use super::codec::{Change, group};
use super::ethernet::{MacAddresses, SdfFilter, VlanTag};
use super::features::{
    ApplyAction, MeasurementInformation, MeasurementMethod, ReportingTriggers, UsageReportTrigger,
};
use super::ie;
use super::kinds::{Interface, OuterHeaderRemoval};
use super::own::{self, Settings};
use super::usage::{BitRate, GateStatus, VolumeMeasurement};
use super::values::{FTeid, OuterHeaderCreation, UeIpAddress};

group! {
    /// Create PDR (table 7.5.2.2-1).
    pub struct CreatePdr {
        /// Rule id, unique in the session.
        required pdr_id: u16 = ie::PDR_ID,
        /// The rule with the lowest number is looked at first.
        required precedence: u32 = ie::PRECEDENCE,
        /// What packets.
        required pdi: Pdi = ie::PDI,
        /// A GTP-U header to take off.
        optional outer_header_removal: OuterHeaderRemoval = ie::OUTER_HEADER_REMOVAL,
        /// An access header to take off.
        optional bbf_outer_header_removal: BbfOuterHeaderRemoval = bbf::OUTER_HEADER_REMOVAL,
        /// What happens to them.
        optional far_id: u32 = ie::FAR_ID,
        /// How they are counted.
        repeated urr_ids: u32 = ie::URR_ID,
        /// How they are limited.
        repeated qer_ids: u32 = ie::QER_ID,
        /// Rules that the user plane knows by name.
        repeated predefined_rules: String = ie::ACTIVATE_PREDEFINED_RULES,
    }
}

group! {
    /// PDI: Packet Detection Information (table 7.5.2.2-2).
    pub struct Pdi {
        /// Where the packets come from.
        required source_interface: Interface = ie::SOURCE_INTERFACE,
        /// The tunnel that they come through.
        optional f_teid: FTeid = ie::F_TEID,
        /// The network instance that they come from.
        optional network_instance: String = ie::NETWORK_INSTANCE,
        /// The subscriber's addresses.
        repeated ue_ip_addresses: UeIpAddress = ie::UE_IP_ADDRESS,
        /// Endpoints, in place of tunnel, instance and addresses.
        repeated traffic_endpoints: u8 = ie::TRAFFIC_ENDPOINT_ID,
        /// IP packets: any of these.
        repeated sdf_filters: SdfFilter = ie::SDF_FILTER,
        /// Ethernet frames: any of these.
        repeated ethernet_filters: EthernetPacketFilter = ie::ETHERNET_PACKET_FILTER,
        /// IPv4 routes behind the subscriber (RFC 2865 §5.22).
        repeated framed_routes: String = ie::FRAMED_ROUTE,
        /// IPv6 routes behind the subscriber (RFC 3162 §2.5).
        repeated framed_ipv6_routes: String = ie::FRAMED_IPV6_ROUTE,
        /// The access port.
        optional logical_port: Vec<u8> = bbf::LOGICAL_PORT,
        /// The PPPoE session.
        optional pppoe_session_id: u16 = bbf::PPPOE_SESSION_ID,
        /// PPP packets: any of these.
        repeated ppp_protocols: PppProtocol = bbf::PPP_PROTOCOL,
    }
}

group! {
    /// Ethernet Packet Filter (table 7.5.2.2-3): all of what is given must match.
    pub struct EthernetPacketFilter {
        /// Any of these addresses.
        repeated mac_addresses: MacAddresses = ie::MAC_ADDRESS,
        /// The type behind the tags.
        optional ethertype: u16 = ie::ETHERTYPE,
        /// The inner tag.
        optional c_tag: VlanTag = ie::C_TAG,
        /// The outer tag.
        optional s_tag: VlanTag = ie::S_TAG,
        /// The packets in the frames: any of these.
        repeated sdf_filters: SdfFilter = ie::SDF_FILTER,
    }
}

group! {
    /// Create FAR (table 7.5.2.3-1).
    pub struct CreateFar {
        /// Rule id, unique in the session.
        required far_id: u32 = ie::FAR_ID,
        /// What happens.
        required apply_action: ApplyAction = ie::APPLY_ACTION,
        /// Where to, when the action is to forward.
        optional forwarding_parameters: ForwardingParameters = ie::FORWARDING_PARAMETERS,
    }
}

group! {
    /// Forwarding Parameters (table 7.5.2.3-2).
    pub struct ForwardingParameters {
        /// Where to.
        required destination_interface: Interface = ie::DESTINATION_INTERFACE,
        /// In which network instance.
        optional network_instance: String = ie::NETWORK_INSTANCE,
        /// The tunnel to send through.
        optional outer_header_creation: OuterHeaderCreation = ie::OUTER_HEADER_CREATION,
        /// The endpoint on the other side.
        optional linked_traffic_endpoint: u8 = ie::TRAFFIC_ENDPOINT_ID,
        /// The access header to put on.
        optional bbf_outer_header_creation: BbfOuterHeaderCreation = bbf::OUTER_HEADER_CREATION,
        /// The largest packet that the other side takes.
        optional mtu: u16 = bbf::MTU,
        /// Further settings of the policy.
        optional settings: Settings = own::SETTINGS,
    }
}

group! {
    /// Create QER (table 7.5.2.5-1).
    pub struct CreateQer {
        /// Rule id, unique in the session.
        required qer_id: u32 = ie::QER_ID,
        /// Sessions with the same number share their limits.
        optional correlation_id: u32 = ie::QER_CORRELATION_ID,
        /// Open or closed.
        required gate_status: GateStatus = ie::GATE_STATUS,
        /// The most that passes.
        optional maximum_bit_rate: BitRate = ie::MBR,
        /// What shall pass.
        optional guaranteed_bit_rate: BitRate = ie::GBR,
        /// Rules of the subscriber alone (Sluice's own element).
        optional filter_rules: String = own::FILTER_RULES,
    }
}

group! {
    /// Create URR (table 7.5.2.4-1).
    pub struct CreateUrr {
        /// Rule id, unique in the session.
        required urr_id: u32 = ie::URR_ID,
        /// What is measured.
        required measurement_method: MeasurementMethod = ie::MEASUREMENT_METHOD,
        /// When it is reported.
        required reporting_triggers: ReportingTriggers = ie::REPORTING_TRIGGERS,
        /// Seconds between periodic reports.
        optional measurement_period: u32 = ie::MEASUREMENT_PERIOD,
        /// Finer points.
        optional measurement_information: MeasurementInformation = ie::MEASUREMENT_INFORMATION,
    }
}

group! {
    /// Create Traffic Endpoint (table 7.5.2.7-1).
    pub struct CreateTrafficEndpoint {
        /// Endpoint id, unique in the session.
        required id: u8 = ie::TRAFFIC_ENDPOINT_ID,
        /// Its tunnel.
        optional f_teid: FTeid = ie::F_TEID,
        /// Its network instance.
        optional network_instance: String = ie::NETWORK_INSTANCE,
        /// Its addresses.
        repeated ue_ip_addresses: UeIpAddress = ie::UE_IP_ADDRESS,
        /// IPv4 routes behind it.
        repeated framed_routes: String = ie::FRAMED_ROUTE,
        /// IPv6 routes behind it.
        repeated framed_ipv6_routes: String = ie::FRAMED_IPV6_ROUTE,
        /// Its access port.
        optional logical_port: Vec<u8> = bbf::LOGICAL_PORT,
        /// Its PPPoE session.
        optional pppoe_session_id: u16 = bbf::PPPOE_SESSION_ID,
        /// Its MAC address.
        optional mac_address: MacAddresses = ie::MAC_ADDRESS,
        /// Its outer tag.
        optional s_tag: VlanTag = ie::S_TAG,
        /// Its inner tag.
        optional c_tag: VlanTag = ie::C_TAG,
        /// The outer tag's TPID (Sluice's own element).
        optional outer_tpid: u16 = own::OUTER_TPID,
    }
}

group! {
    /// Update PDR (table 7.5.4.2-1).
    pub struct UpdatePdr {
        /// Which rule.
        required pdr_id: u16 = ie::PDR_ID,
        /// A new precedence.
        optional precedence: u32 = ie::PRECEDENCE,
        /// A new PDI, in place of the old one.
        optional pdi: Pdi = ie::PDI,
        /// A new removal, or none.
        optional outer_header_removal: Change<OuterHeaderRemoval> = ie::OUTER_HEADER_REMOVAL,
        /// A new removal, or none.
        optional bbf_outer_header_removal: Change<BbfOuterHeaderRemoval> = bbf::OUTER_HEADER_REMOVAL,
        /// Another FAR.
        optional far_id: u32 = ie::FAR_ID,
        /// Other URRs, in place of the old ones.
        repeated urr_ids: u32 = ie::URR_ID,
        /// Other QERs, in place of the old ones.
        repeated qer_ids: u32 = ie::QER_ID,
        /// Further rules that the user plane knows by name.
        repeated predefined_rules: String = ie::ACTIVATE_PREDEFINED_RULES,
        /// Those among the old ones that end.
        repeated former_predefined_rules: String = ie::DEACTIVATE_PREDEFINED_RULES,
    }
}

group! {
    /// Update FAR (table 7.5.4.3-1).
    pub struct UpdateFar {
        /// Which rule.
        required far_id: u32 = ie::FAR_ID,
        /// What happens from now on.
        optional apply_action: ApplyAction = ie::APPLY_ACTION,
        /// What changes of where to.
        optional forwarding_parameters: UpdateForwardingParameters = ie::UPDATE_FORWARDING_PARAMETERS,
    }
}

group! {
    /// Update Forwarding Parameters (table 7.5.4.3-2).
    pub struct UpdateForwardingParameters {
        /// Where to.
        optional destination_interface: Interface = ie::DESTINATION_INTERFACE,
        /// In which network instance.
        optional network_instance: Change<String> = ie::NETWORK_INSTANCE,
        /// The tunnel to send through.
        optional outer_header_creation: Change<OuterHeaderCreation> = ie::OUTER_HEADER_CREATION,
        /// The endpoint on the other side.
        optional linked_traffic_endpoint: Change<u8> = ie::TRAFFIC_ENDPOINT_ID,
        /// The access header to put on.
        optional bbf_outer_header_creation: Change<BbfOuterHeaderCreation> = bbf::OUTER_HEADER_CREATION,
        /// The largest packet that the other side takes.
        optional mtu: Change<u16> = bbf::MTU,
        /// Further settings of the policy, in place of all that were there.
        optional settings: Settings = own::SETTINGS,
    }
}

group! {
    /// Update QER (table 7.5.4.5-1).
    pub struct UpdateQer {
        /// Which rule.
        required qer_id: u32 = ie::QER_ID,
        /// Another group to share with.
        optional correlation_id: u32 = ie::QER_CORRELATION_ID,
        /// Open or closed.
        optional gate_status: GateStatus = ie::GATE_STATUS,
        /// The most that passes.
        optional maximum_bit_rate: BitRate = ie::MBR,
        /// What shall pass.
        optional guaranteed_bit_rate: BitRate = ie::GBR,
        /// Other rules of the subscriber alone, or none.
        optional filter_rules: String = own::FILTER_RULES,
    }
}

group! {
    /// Update URR (table 7.5.4.4-1).
    pub struct UpdateUrr {
        /// Which rule.
        required urr_id: u32 = ie::URR_ID,
        /// What is measured.
        optional measurement_method: MeasurementMethod = ie::MEASUREMENT_METHOD,
        /// When it is reported.
        optional reporting_triggers: ReportingTriggers = ie::REPORTING_TRIGGERS,
        /// Seconds between periodic reports.
        optional measurement_period: u32 = ie::MEASUREMENT_PERIOD,
        /// Finer points.
        optional measurement_information: MeasurementInformation = ie::MEASUREMENT_INFORMATION,
    }
}

group! {
    /// Update Traffic Endpoint (table 7.5.4.13-1): what is given takes the place of what was.
    pub struct UpdateTrafficEndpoint {
        /// Which endpoint.
        required id: u8 = ie::TRAFFIC_ENDPOINT_ID,
        /// Its tunnel.
        optional f_teid: FTeid = ie::F_TEID,
        /// Its network instance.
        optional network_instance: String = ie::NETWORK_INSTANCE,
        /// Its addresses.
        repeated ue_ip_addresses: UeIpAddress = ie::UE_IP_ADDRESS,
        /// IPv4 routes behind it.
        repeated framed_routes: String = ie::FRAMED_ROUTE,
        /// IPv6 routes behind it.
        repeated framed_ipv6_routes: String = ie::FRAMED_IPV6_ROUTE,
        /// Its access port.
        optional logical_port: Vec<u8> = bbf::LOGICAL_PORT,
        /// Its PPPoE session.
        optional pppoe_session_id: u16 = bbf::PPPOE_SESSION_ID,
        /// Its MAC address.
        optional mac_address: MacAddresses = ie::MAC_ADDRESS,
        /// Its outer tag.
        optional s_tag: VlanTag = ie::S_TAG,
        /// Its inner tag.
        optional c_tag: VlanTag = ie::C_TAG,
        /// The outer tag's TPID (Sluice's own element).
        optional outer_tpid: u16 = own::OUTER_TPID,
    }
}

group! {
    /// Remove PDR.
    pub struct RemovePdr {
        /// Which rule.
        required pdr_id: u16 = ie::PDR_ID,
    }
}

group! {
    /// Remove FAR.
    pub struct RemoveFar {
        /// Which rule.
        required far_id: u32 = ie::FAR_ID,
    }
}

group! {
    /// Remove URR.
    pub struct RemoveUrr {
        /// Which rule.
        required urr_id: u32 = ie::URR_ID,
    }
}

group! {
    /// Remove QER.
    pub struct RemoveQer {
        /// Which rule.
        required qer_id: u32 = ie::QER_ID,
    }
}

group! {
    /// Remove Traffic Endpoint.
    pub struct RemoveTrafficEndpoint {
        /// Which endpoint.
        required id: u8 = ie::TRAFFIC_ENDPOINT_ID,
    }
}

group! {
    /// Query URR.
    pub struct QueryUrr {
        /// Which rule.
        required urr_id: u32 = ie::URR_ID,
    }
}

group! {
    /// Usage Report, the same in a modification's response, a deletion's response and a report (tables 7.5.5.2-1,
    /// 7.5.7.2-1, 7.5.8.3-1). It counts from the report before it.
    pub struct UsageReport {
        /// Which rule measured.
        required urr_id: u32 = ie::URR_ID,
        /// The number of this report of that rule, from 0.
        required sequence: u32 = ie::UR_SEQN,
        /// Why now.
        required trigger: UsageReportTrigger = ie::USAGE_REPORT_TRIGGER,
        /// Since when, in seconds since 1900.
        optional start_time: u32 = ie::START_TIME,
        /// Until when, in seconds since 1900.
        optional end_time: u32 = ie::END_TIME,
        /// How much.
        optional volume: VolumeMeasurement = ie::VOLUME_MEASUREMENT,
        /// How long, in seconds.
        optional duration: u32 = ie::DURATION_MEASUREMENT,
        /// How much of the volume is IPv6 (Sluice's own element).
        optional ipv6_volume: VolumeMeasurement = own::IPV6_VOLUME,
    }
}
