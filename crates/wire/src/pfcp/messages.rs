//! The messages (TS 29.244 §7.4 and §7.5).
use super::bbf::{self, BbfUpFeatures, PppLcpConnectivity};
use super::cause::Cause;
use super::codec::{Fault, Outcome, Value, group};
use super::features::*;
use super::ie;
use super::kinds::{FailedRule, PdnType};
use super::own::{self, Audit, AuditResult, KnownSettings, Lanes, SluiceFeatures};
use super::rules::*;
use super::values::{EntityAddress, FSeid, NodeId};

group! {
    /// Heartbeat Request: are you there?
    pub struct HeartbeatRequest {
        /// When the sender started, in seconds since 1900.
        required recovery_time_stamp: u32 = ie::RECOVERY_TIME_STAMP,
    }
}

group! {
    /// Heartbeat Response.
    pub struct HeartbeatResponse {
        /// When the sender started, in seconds since 1900.
        required recovery_time_stamp: u32 = ie::RECOVERY_TIME_STAMP,
        /// Number of the sender's next request, if it counts all of them with one counter.
        optional next_sequence: u32 = own::NEXT_SEQUENCE,
    }
}

group! {
    /// PFCP Session Retention Information: the user plane shall keep the sessions that it has from before.
    pub struct SessionRetentionInformation {
        /// Those of these addresses of the control plane; without any, all.
        repeated addresses: EntityAddress = ie::CP_PFCP_ENTITY_IP_ADDRESS,
    }
}

group! {
    /// Association Setup Request.
    pub struct AssociationSetupRequest {
        /// Who asks.
        required node_id: NodeId = ie::NODE_ID,
        /// When it started, in seconds since 1900.
        required recovery_time_stamp: u32 = ie::RECOVERY_TIME_STAMP,
        /// What it can do, if it is a user plane.
        optional up_features: UpFunctionFeatures = ie::UP_FUNCTION_FEATURES,
        /// What it can do, if it is a control plane.
        optional cp_features: CpFunctionFeatures = ie::CP_FUNCTION_FEATURES,
        /// Sessions to keep.
        optional session_retention: SessionRetentionInformation = ie::SESSION_RETENTION_INFORMATION,
        /// What it can do of TR-459.
        optional bbf_features: BbfUpFeatures = bbf::UP_FUNCTION_FEATURES,
        /// What it can do of our own.
        optional sluice_features: SluiceFeatures = own::FEATURES,
        /// Worker of each lane of session ids. User plane only.
        optional lanes: Lanes = own::LANES,
        /// Policy settings that it can carry out. User plane only.
        optional known_settings: KnownSettings = own::KNOWN_SETTINGS,
    }
}

group! {
    /// Association Setup Response.
    pub struct AssociationSetupResponse {
        /// Who answers.
        required node_id: NodeId = ie::NODE_ID,
        /// Accepted or not.
        required cause: Cause = ie::CAUSE,
        /// When it started, in seconds since 1900.
        required recovery_time_stamp: u32 = ie::RECOVERY_TIME_STAMP,
        /// What it can do, if it is a user plane.
        optional up_features: UpFunctionFeatures = ie::UP_FUNCTION_FEATURES,
        /// What it can do, if it is a control plane.
        optional cp_features: CpFunctionFeatures = ie::CP_FUNCTION_FEATURES,
        /// What it can do of TR-459.
        optional bbf_features: BbfUpFeatures = bbf::UP_FUNCTION_FEATURES,
        /// What it can do of our own.
        optional sluice_features: SluiceFeatures = own::FEATURES,
        /// Worker of each lane of session ids. User plane only.
        optional lanes: Lanes = own::LANES,
        /// Policy settings that it can carry out. User plane only.
        optional known_settings: KnownSettings = own::KNOWN_SETTINGS,
    }
}

group! {
    /// Association Update Request.
    pub struct AssociationUpdateRequest {
        /// Who asks.
        required node_id: NodeId = ie::NODE_ID,
        /// What it can do, if it is a user plane.
        optional up_features: UpFunctionFeatures = ie::UP_FUNCTION_FEATURES,
        /// What it can do, if it is a control plane.
        optional cp_features: CpFunctionFeatures = ie::CP_FUNCTION_FEATURES,
        /// A user plane wants to leave.
        optional release_request: ReleaseRequest = ie::PFCP_ASSOCIATION_RELEASE_REQUEST,
        /// What it can do of TR-459.
        optional bbf_features: BbfUpFeatures = bbf::UP_FUNCTION_FEATURES,
        /// What it can do of our own.
        optional sluice_features: SluiceFeatures = own::FEATURES,
    }
}

group! {
    /// Association Update Response.
    pub struct AssociationUpdateResponse {
        /// Who answers.
        required node_id: NodeId = ie::NODE_ID,
        /// Accepted or not.
        required cause: Cause = ie::CAUSE,
        /// What it can do, if it is a user plane.
        optional up_features: UpFunctionFeatures = ie::UP_FUNCTION_FEATURES,
        /// What it can do, if it is a control plane.
        optional cp_features: CpFunctionFeatures = ie::CP_FUNCTION_FEATURES,
    }
}

group! {
    /// Association Release Request.
    pub struct AssociationReleaseRequest {
        /// Who asks.
        required node_id: NodeId = ie::NODE_ID,
    }
}

group! {
    /// Association Release Response.
    pub struct AssociationReleaseResponse {
        /// Who answers.
        required node_id: NodeId = ie::NODE_ID,
        /// Accepted or not.
        required cause: Cause = ie::CAUSE,
    }
}

group! {
    /// Version Not Supported Response: the header alone says which version is.
    pub struct VersionNotSupportedResponse {
    }
}

group! {
    /// Session Establishment Request.
    pub struct SessionEstablishmentRequest {
        /// Who asks.
        required node_id: NodeId = ie::NODE_ID,
        /// The control plane's name for the session.
        required cp_f_seid: FSeid = ie::F_SEID,
        /// What packets.
        needed create_pdrs: CreatePdr = ie::CREATE_PDR,
        /// What happens to them.
        needed create_fars: CreateFar = ie::CREATE_FAR,
        /// How they are counted.
        repeated create_urrs: CreateUrr = ie::CREATE_URR,
        /// How they are limited.
        repeated create_qers: CreateQer = ie::CREATE_QER,
        /// Where they come from and go to.
        repeated create_traffic_endpoints: CreateTrafficEndpoint = ie::CREATE_TRAFFIC_ENDPOINT,
        /// What kind of session; a default session has none.
        optional pdn_type: PdnType = ie::PDN_TYPE,
        /// The user plane shall keep the PPP link alive.
        optional lcp_connectivity: PppLcpConnectivity = bbf::PPP_LCP_CONNECTIVITY,
    }
}

group! {
    /// Session Establishment Response.
    pub struct SessionEstablishmentResponse {
        /// Who answers.
        required node_id: NodeId = ie::NODE_ID,
        /// Accepted or not.
        required cause: Cause = ie::CAUSE,
        /// What was wrong.
        optional offending_ie: u16 = ie::OFFENDING_IE,
        /// The user plane's name for the session.
        optional up_f_seid: FSeid = ie::F_SEID,
        /// Which rule was wrong.
        optional failed_rule: FailedRule = ie::FAILED_RULE_ID,
    }
}

group! {
    /// Session Modification Request.
    pub struct SessionModificationRequest {
        /// A new name of the control plane for the session.
        optional cp_f_seid: FSeid = ie::F_SEID,
        /// Rules that go.
        repeated remove_pdrs: RemovePdr = ie::REMOVE_PDR,
        /// Rules that go.
        repeated remove_fars: RemoveFar = ie::REMOVE_FAR,
        /// Rules that go.
        repeated remove_urrs: RemoveUrr = ie::REMOVE_URR,
        /// Rules that go.
        repeated remove_qers: RemoveQer = ie::REMOVE_QER,
        /// Endpoints that go.
        repeated remove_traffic_endpoints: RemoveTrafficEndpoint = ie::REMOVE_TRAFFIC_ENDPOINT,
        /// Rules that come.
        repeated create_pdrs: CreatePdr = ie::CREATE_PDR,
        /// Rules that come.
        repeated create_fars: CreateFar = ie::CREATE_FAR,
        /// Rules that come.
        repeated create_urrs: CreateUrr = ie::CREATE_URR,
        /// Rules that come.
        repeated create_qers: CreateQer = ie::CREATE_QER,
        /// Endpoints that come.
        repeated create_traffic_endpoints: CreateTrafficEndpoint = ie::CREATE_TRAFFIC_ENDPOINT,
        /// Rules that change.
        repeated update_pdrs: UpdatePdr = ie::UPDATE_PDR,
        /// Rules that change.
        repeated update_fars: UpdateFar = ie::UPDATE_FAR,
        /// Rules that change.
        repeated update_urrs: UpdateUrr = ie::UPDATE_URR,
        /// Rules that change.
        repeated update_qers: UpdateQer = ie::UPDATE_QER,
        /// Endpoints that change.
        repeated update_traffic_endpoints: UpdateTrafficEndpoint = ie::UPDATE_TRAFFIC_ENDPOINT,
        /// Finer points.
        optional flags: ModificationFlags = ie::PFCPSMREQ_FLAGS,
        /// Usage wanted now.
        repeated query_urrs: QueryUrr = ie::QUERY_URR,
        /// The user plane shall keep the PPP link alive.
        optional lcp_connectivity: PppLcpConnectivity = bbf::PPP_LCP_CONNECTIVITY,
        /// What the user plane should have (Sluice's own element).
        optional audit: Audit = own::AUDIT,
    }
}

group! {
    /// Session Modification Response.
    pub struct SessionModificationResponse {
        /// Accepted or not.
        required cause: Cause = ie::CAUSE,
        /// What was wrong.
        optional offending_ie: u16 = ie::OFFENDING_IE,
        /// What was used.
        repeated usage_reports: UsageReport = ie::USAGE_REPORT_IN_MODIFICATION,
        /// Which rule was wrong.
        optional failed_rule: FailedRule = ie::FAILED_RULE_ID,
        /// What it has otherwise (Sluice's own element).
        optional audit_result: AuditResult = own::AUDIT_RESULT,
    }
}

group! {
    /// Session Deletion Request: the header names the session.
    pub struct SessionDeletionRequest {
    }
}

group! {
    /// Session Deletion Response.
    pub struct SessionDeletionResponse {
        /// Accepted or not.
        required cause: Cause = ie::CAUSE,
        /// What was wrong.
        optional offending_ie: u16 = ie::OFFENDING_IE,
        /// What was used.
        repeated usage_reports: UsageReport = ie::USAGE_REPORT_IN_DELETION,
    }
}

group! {
    /// Session Report Request.
    pub struct SessionReportRequest {
        /// What is reported.
        required report_type: ReportType = ie::REPORT_TYPE,
        /// What was used.
        repeated usage_reports: UsageReport = ie::USAGE_REPORT_IN_REPORT,
        /// How many LCP echo requests the subscriber has not answered, who is gone by that.
        optional unanswered_echoes: u16 = own::UNANSWERED_ECHOES,
    }
}

group! {
    /// Session Report Response.
    pub struct SessionReportResponse {
        /// Accepted or not.
        required cause: Cause = ie::CAUSE,
        /// What was wrong.
        optional offending_ie: u16 = ie::OFFENDING_IE,
    }
}

macro_rules! messages {
    ($( $kind:literal $name:ident, )*) => {
        /// The body of a message.
        #[allow(clippy::large_enum_variant, reason = "messages are short-lived and handled one at a time")]
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Message {
            $(
                #[doc = concat!("Message type ", $kind, ".")]
                $name($name),
            )*
        }

        $(
            impl From<$name> for Message {
                fn from(body: $name) -> Message {
                    Message::$name(body)
                }
            }
        )*

        impl Message {
            /// The message type (table 7.3-1).
            pub const fn kind(&self) -> u8 {
                match self {
                    $( Message::$name(_) => $kind, )*
                }
            }

            /// The name that TS 29.244 gives the message, in one word.
            pub const fn name(&self) -> &'static str {
                match self {
                    $( Message::$name(_) => stringify!($name), )*
                }
            }

            pub(super) const fn is_known(kind: u8) -> bool {
                matches!(kind, $( $kind )|*)
            }

            pub(super) fn read(kind: u8, body: &[u8], ignored: &mut u32) -> Outcome<Message> {
                match kind {
                    $( $kind => $name::read(body, ignored).map(Message::$name), )*
                    _ => Err(Fault::INCORRECT),
                }
            }

            pub(super) fn write(&self, out: &mut Vec<u8>) {
                match self {
                    $( Message::$name(body) => body.write(out), )*
                }
            }
        }

        #[cfg(test)]
        impl super::tests::Sample for Message {
            fn sample(e: &mut super::tests::Entropy) -> Self {
                let all: &[fn(&mut super::tests::Entropy) -> Message] =
                    &[$( |e| Message::$name(super::tests::Sample::sample(e)) ),*];
                e.pick(all)(e)
            }
        }
    };
}

messages! {
    1 HeartbeatRequest,
    2 HeartbeatResponse,
    5 AssociationSetupRequest,
    6 AssociationSetupResponse,
    7 AssociationUpdateRequest,
    8 AssociationUpdateResponse,
    9 AssociationReleaseRequest,
    10 AssociationReleaseResponse,
    11 VersionNotSupportedResponse,
    50 SessionEstablishmentRequest,
    51 SessionEstablishmentResponse,
    52 SessionModificationRequest,
    53 SessionModificationResponse,
    54 SessionDeletionRequest,
    55 SessionDeletionResponse,
    56 SessionReportRequest,
    57 SessionReportResponse,
}

/// Is this the type of a request (and not of a response)?
pub const fn is_request(kind: u8) -> bool {
    matches!(kind, 1 | 3 | 5 | 7 | 9 | 12 | 14 | 16 | 50 | 52 | 54 | 56)
}

/// Is this the type of a message about a session (and not about a node)?
pub const fn is_about_session(kind: u8) -> bool {
    kind >= 50
}

impl Message {
    /// Does it want an answer?
    pub const fn is_request(&self) -> bool {
        is_request(self.kind())
    }

    /// Is it about a session, so that its header carries a SEID?
    pub const fn is_about_session(&self) -> bool {
        is_about_session(self.kind())
    }

    /// The cause that a response states; heartbeats and Version Not Supported state none.
    pub const fn cause(&self) -> Option<Cause> {
        match self {
            Message::AssociationSetupResponse(m) => Some(m.cause),
            Message::AssociationUpdateResponse(m) => Some(m.cause),
            Message::AssociationReleaseResponse(m) => Some(m.cause),
            Message::SessionEstablishmentResponse(m) => Some(m.cause),
            Message::SessionModificationResponse(m) => Some(m.cause),
            Message::SessionDeletionResponse(m) => Some(m.cause),
            Message::SessionReportResponse(m) => Some(m.cause),
            _ => None,
        }
    }
}
