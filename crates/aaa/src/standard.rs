//! What the gateway does with each attribute that it knows itself: declared once, for the code that reads answers and requests, for the
//! reference manual, and for the tests (`tests/attributes.rs`).

use wire::radius::Kind;

/// Packets in which the gateway sends an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Access-Request.
    pub request: bool,
    /// Accounting-Request.
    pub record: bool,
}

/// What an attribute of an Access-Accept does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InAccept {
    /// It is carried out.
    Obeyed,
    /// There is nothing to be done about it.
    NoAction,
    /// It has no effect, unless a mapping gives it one.
    NotEnforced,
}

/// What an attribute of a CoA-Request does (RFC 5176 §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InChange {
    /// It says which session is meant.
    Identifies,
    /// It says which gateway is meant.
    NamesGateway,
    /// It is about the request itself.
    OfTheMessage,
    /// It changes the session.
    Changes,
    /// The request is rejected, unless a mapping gives it a meaning.
    Unsupported,
}

/// What the gateway does with an attribute.
#[derive(Clone, Copy, Debug)]
pub struct Standard {
    /// The attribute.
    pub kind: Kind,
    /// Where it is sent.
    pub sent: Sent,
    /// What it does in an Access-Accept.
    pub in_accept: InAccept,
    /// What it does in a CoA-Request.
    pub in_change: InChange,
    /// Meaning, for operators.
    pub meaning: &'static str,
    /// Tests that show its effect: behaviour tests of the control plane by file and name, and end-to-end cases.
    pub tests: &'static [&'static str],
}

const NOWHERE: Sent = Sent {
    request: false,
    record: false,
};
const REQUEST: Sent = Sent {
    request: true,
    record: false,
};
const RECORD: Sent = Sent {
    request: false,
    record: true,
};
const BOTH: Sent = Sent {
    request: true,
    record: true,
};

const fn row(
    kind: Kind,
    sent: Sent,
    in_accept: InAccept,
    in_change: InChange,
    meaning: &'static str,
    tests: &'static [&'static str],
) -> Standard {
    Standard {
        kind,
        sent,
        in_accept,
        in_change,
        meaning,
        tests,
    }
}

/// Every attribute of the codec's dictionary but Vendor-Specific, in the order of vendors and numbers.
#[rustfmt::skip]
pub static STANDARD: &[Standard] = &[
    row(Kind::USER_NAME, BOTH, InAccept::NotEnforced, InChange::Identifies, "Name of the subscriber, as its server group writes it.", &["names::a_session_has_the_same_names_in_all_its_requests", "dynamic::a_session_is_found_by_every_identifier_and_only_one"]),
    row(Kind::USER_PASSWORD, REQUEST, InAccept::NotEnforced, InChange::Unsupported, "Password of PAP.", &["e2e pppd-pap"]),
    row(Kind::CHAP_PASSWORD, REQUEST, InAccept::NotEnforced, InChange::Unsupported, "Response of CHAP.", &["e2e pppd-chap"]),
    row(Kind::NAS_IP_ADDRESS, BOTH, InAccept::NotEnforced, InChange::NamesGateway, "Address of the gateway.", &["dynamic::changes_of_one_session_are_carried_out_in_order"]),
    row(Kind::NAS_PORT, NOWHERE, InAccept::NotEnforced, InChange::Unsupported, "A number has no room for what NAS-Port-Id says.", &[]),
    row(Kind::SERVICE_TYPE, BOTH, InAccept::Obeyed, InChange::OfTheMessage, "Framed; Authorize-Only in requests without a proof.", &["reauthorize::a_server_that_wants_to_be_asked_is_asked"]),
    row(Kind::FRAMED_PROTOCOL, BOTH, InAccept::Obeyed, InChange::OfTheMessage, "PPP.", &["e2e tshark-wire"]),
    row(Kind::FRAMED_IP_ADDRESS, RECORD, InAccept::Obeyed, InChange::Identifies, "IPv4 address of the subscriber.", &["bindings::prefixes_of_aaa_are_announced_by_the_session_that_has_them", "bindings::a_router_that_reboots_has_its_fixed_addresses_again_at_once"]),
    row(Kind::FRAMED_IP_NETMASK, NOWHERE, InAccept::NotEnforced, InChange::Unsupported, "PPP gives the subscriber no mask. 255.255.255.255 needs no action; a Framed-Route routes a network.", &["aaa_answer::a_session_shows_what_of_its_answer_has_no_effect"]),
    row(Kind::FRAMED_ROUTING, NOWHERE, InAccept::NotEnforced, InChange::Unsupported, "No routing protocol runs with the subscriber. 0 needs no action.", &["aaa_answer::a_session_shows_what_of_its_answer_has_no_effect"]),
    row(Kind::FILTER_ID, RECORD, InAccept::Obeyed, InChange::Changes, "Name of the subscriber profile.", &["dynamic::a_change_is_acknowledged_when_user_plane_and_store_have_it", "dynamic::a_profile_that_is_not_there_or_of_another_instance_is_rejected"]),
    row(Kind::FRAMED_MTU, NOWHERE, InAccept::Obeyed, InChange::Changes, "Largest IP packet to the subscriber, 576 to 9,216 octets.", &["change::framed_mtu_comes_before_the_profile_s_and_outlives_a_restart"]),
    row(Kind::FRAMED_COMPRESSION, NOWHERE, InAccept::NoAction, InChange::Unsupported, "The link negotiates compression (RFC 2865 §5.13).", &[]),
    row(Kind::LOGIN_IP_HOST, NOWHERE, InAccept::NotEnforced, InChange::Unsupported, "Of a service that the gateway does not offer.", &[]),
    row(Kind::LOGIN_SERVICE, NOWHERE, InAccept::NotEnforced, InChange::Unsupported, "Of a service that the gateway does not offer.", &[]),
    row(Kind::LOGIN_TCP_PORT, NOWHERE, InAccept::NotEnforced, InChange::Unsupported, "Of a service that the gateway does not offer.", &[]),
    row(Kind::REPLY_MESSAGE, NOWHERE, InAccept::Obeyed, InChange::OfTheMessage, "Text for the subscriber, in the answer of PAP or CHAP.", &["plane::a_wrong_password_is_told_and_leaves_nothing"]),
    row(Kind::CALLBACK_NUMBER, NOWHERE, InAccept::NotEnforced, InChange::Unsupported, "Of a service that the gateway does not offer.", &[]),
    row(Kind::CALLBACK_ID, NOWHERE, InAccept::NotEnforced, InChange::Unsupported, "Of a service that the gateway does not offer.", &[]),
    row(Kind::FRAMED_ROUTE, RECORD, InAccept::Obeyed, InChange::Changes, "IPv4 network behind the subscriber. Gateway and metric have no effect.", &["bindings::prefixes_of_aaa_are_announced_by_the_session_that_has_them", "dynamic::routes_of_a_family_are_replaced_together"]),
    row(Kind::FRAMED_IPX_NETWORK, NOWHERE, InAccept::NotEnforced, InChange::Unsupported, "Of a service that the gateway does not offer.", &[]),
    row(Kind::STATE, REQUEST, InAccept::NoAction, InChange::OfTheMessage, "Repeated in the request that Termination-Action or Authorize-Only asks for.", &["reauthorize::at_its_timeout_a_session_goes_on_with_a_new_answer"]),
    row(Kind::CLASS, RECORD, InAccept::Obeyed, InChange::Changes, "Repeated in accounting.", &["dynamic::interim_interval_and_class_apply_to_the_records_that_follow"]),
    row(Kind::SESSION_TIMEOUT, NOWHERE, InAccept::Obeyed, InChange::Changes, "Time after which the session ends, from the answer on.", &["aaa_answer::the_time_out_of_an_accept_counts_from_that", "dynamic::time_outs_count_from_the_request_and_zero_is_none"]),
    row(Kind::IDLE_TIMEOUT, NOWHERE, InAccept::Obeyed, InChange::Changes, "Time without packets from the subscriber after which the session ends.", &["change::an_idle_session_ends_and_its_record_says_why"]),
    row(Kind::TERMINATION_ACTION, NOWHERE, InAccept::Obeyed, InChange::Changes, "1: the subscriber is authenticated again when Session-Timeout has passed.", &["reauthorize::at_its_timeout_a_session_goes_on_with_a_new_answer", "reauthorize::who_is_not_let_in_again_goes"]),
    row(Kind::CALLED_STATION_ID, BOTH, InAccept::NotEnforced, InChange::Unsupported, "By the template of the server group; without one it is not sent.", &["names::a_session_has_the_same_names_in_all_its_requests"]),
    row(Kind::CALLING_STATION_ID, BOTH, InAccept::NotEnforced, InChange::Identifies, "MAC address of the subscriber, or by the template of the server group.", &["names::a_session_has_the_same_names_in_all_its_requests", "dynamic::a_session_is_found_by_every_identifier_and_only_one"]),
    row(Kind::NAS_IDENTIFIER, BOTH, InAccept::NotEnforced, InChange::NamesGateway, "Name of the gateway.", &["e2e coa"]),
    row(Kind::PROXY_STATE, NOWHERE, InAccept::NoAction, InChange::OfTheMessage, "Repeated in the answer to a request.", &["e2e coa"]),
    row(Kind::LOGIN_LAT_SERVICE, NOWHERE, InAccept::NotEnforced, InChange::Unsupported, "Of a service that the gateway does not offer.", &[]),
    row(Kind::LOGIN_LAT_NODE, NOWHERE, InAccept::NotEnforced, InChange::Unsupported, "Of a service that the gateway does not offer.", &[]),
    row(Kind::LOGIN_LAT_GROUP, NOWHERE, InAccept::NotEnforced, InChange::Unsupported, "Of a service that the gateway does not offer.", &[]),
    row(Kind::ACCT_STATUS_TYPE, RECORD, InAccept::NotEnforced, InChange::Unsupported, "Start, Interim-Update, Stop, Accounting-On or Accounting-Off.", &["radius_records::a_session_is_accounted_from_start_to_stop", "announcements::servers_are_told_that_accounting_begins_if_no_session_lives_on"]),
    row(Kind::ACCT_DELAY_TIME, NOWHERE, InAccept::NotEnforced, InChange::Unsupported, "A repeated record is the same datagram; Event-Timestamp has the time.", &[]),
    row(Kind::ACCT_INPUT_OCTETS, RECORD, InAccept::NotEnforced, InChange::Unsupported, "Octets from the subscriber.", &["radius_records::the_uplink_of_a_report_is_the_input_of_the_record"]),
    row(Kind::ACCT_OUTPUT_OCTETS, RECORD, InAccept::NotEnforced, InChange::Unsupported, "Octets to the subscriber.", &["radius_records::the_uplink_of_a_report_is_the_input_of_the_record"]),
    row(Kind::ACCT_SESSION_ID, BOTH, InAccept::NotEnforced, InChange::Identifies, "Id of the session, unique for the lifetime of the store.", &["dynamic::a_session_is_found_by_every_identifier_and_only_one"]),
    row(Kind::ACCT_AUTHENTIC, RECORD, InAccept::NotEnforced, InChange::Unsupported, "RADIUS, or Local by a fallback.", &["fallback::the_last_policy_comes_again_after_a_restart"]),
    row(Kind::ACCT_SESSION_TIME, RECORD, InAccept::NotEnforced, InChange::Unsupported, "Seconds since the session began.", &["radius_records::a_step_of_the_wall_clock_changes_neither_timers_nor_session_times"]),
    row(Kind::ACCT_INPUT_PACKETS, RECORD, InAccept::NotEnforced, InChange::Unsupported, "Packets from the subscriber.", &["radius_records::the_uplink_of_a_report_is_the_input_of_the_record"]),
    row(Kind::ACCT_OUTPUT_PACKETS, RECORD, InAccept::NotEnforced, InChange::Unsupported, "Packets to the subscriber.", &["radius_records::the_uplink_of_a_report_is_the_input_of_the_record"]),
    row(Kind::ACCT_TERMINATE_CAUSE, RECORD, InAccept::NotEnforced, InChange::OfTheMessage, "Why the session ended.", &["reauthorize::who_is_not_let_in_again_goes"]),
    row(Kind::ACCT_MULTI_SESSION_ID, RECORD, InAccept::NotEnforced, InChange::Unsupported, "The same for all sessions of a subscriber that overlap.", &["subscribers::sessions_of_a_subscriber_that_overlap_have_one_multi_session_id"]),
    row(Kind::ACCT_LINK_COUNT, NOWHERE, InAccept::NotEnforced, InChange::Unsupported, "Multilink PPP is not offered.", &[]),
    row(Kind::ACCT_INPUT_GIGAWORDS, RECORD, InAccept::NotEnforced, InChange::Unsupported, "High 32 bits of Acct-Input-Octets.", &["radius_records::the_uplink_of_a_report_is_the_input_of_the_record"]),
    row(Kind::ACCT_OUTPUT_GIGAWORDS, RECORD, InAccept::NotEnforced, InChange::Unsupported, "High 32 bits of Acct-Output-Octets.", &["radius_records::the_uplink_of_a_report_is_the_input_of_the_record"]),
    row(Kind::EVENT_TIMESTAMP, RECORD, InAccept::NotEnforced, InChange::OfTheMessage, "Time of the event. A request outside the time window is dropped.", &["radius_records::a_step_of_the_wall_clock_changes_neither_timers_nor_session_times"]),
    row(Kind::CHAP_CHALLENGE, REQUEST, InAccept::NotEnforced, InChange::Unsupported, "Challenge of CHAP.", &["e2e pppd-chap"]),
    row(Kind::NAS_PORT_TYPE, BOTH, InAccept::NotEnforced, InChange::Unsupported, "PPPoEoE, PPPoEoVLAN or PPPoEoQinQ.", &["e2e tshark-wire"]),
    row(Kind::PORT_LIMIT, NOWHERE, InAccept::Obeyed, InChange::Unsupported, "Maximum number of sessions of the subscriber.", &["subscribers::a_subscriber_has_as_many_sessions_as_aaa_allows"]),
    row(Kind::LOGIN_LAT_PORT, NOWHERE, InAccept::NotEnforced, InChange::Unsupported, "Of a service that the gateway does not offer.", &[]),
    row(Kind::CONNECT_INFO, BOTH, InAccept::NotEnforced, InChange::Unsupported, "Rates of the access line in bit/s.", &["e2e accounting-on"]),
    row(Kind::EAP_MESSAGE, NOWHERE, InAccept::NoAction, InChange::Unsupported, "The gateway does not offer EAP.", &[]),
    row(Kind::MESSAGE_AUTHENTICATOR, REQUEST, InAccept::NoAction, InChange::OfTheMessage, "Proves who sent the packet.", &["e2e radius-bad-authenticator"]),
    row(Kind::ACCT_INTERIM_INTERVAL, NOWHERE, InAccept::Obeyed, InChange::Changes, "Time between interim records, at least 60 s.", &["dynamic::interim_interval_and_class_apply_to_the_records_that_follow"]),
    row(Kind::NAS_PORT_ID, BOTH, InAccept::NotEnforced, InChange::Identifies, "User plane, port and VLAN ids, or by the template of the server group.", &["names::a_session_has_the_same_names_in_all_its_requests", "dynamic::a_session_is_found_by_every_identifier_and_only_one"]),
    row(Kind::FRAMED_POOL, NOWHERE, InAccept::Obeyed, InChange::Unsupported, "IPv4 pool of the subscriber.", &["aaa_answer::a_pool_that_aaa_names_is_used_in_place_of_the_profiles", "aaa_answer::a_pool_that_is_not_there_refuses_the_subscriber_by_name"]),
    row(Kind::NAS_IPV6_ADDRESS, BOTH, InAccept::NotEnforced, InChange::NamesGateway, "Address of the gateway.", &["e2e radius-servers"]),
    row(Kind::FRAMED_INTERFACE_ID, RECORD, InAccept::Obeyed, InChange::Unsupported, "Interface identifier that the subscriber must use.", &["plane::homes_come_and_go_and_leave_nothing"]),
    row(Kind::FRAMED_IPV6_PREFIX, RECORD, InAccept::Obeyed, InChange::Identifies, "Prefix of the link, a /64.", &["bindings::prefixes_of_aaa_are_announced_by_the_session_that_has_them", "dynamic::a_session_is_found_by_every_identifier_and_only_one"]),
    row(Kind::LOGIN_IPV6_HOST, NOWHERE, InAccept::NotEnforced, InChange::Unsupported, "Of a service that the gateway does not offer.", &[]),
    row(Kind::FRAMED_IPV6_ROUTE, RECORD, InAccept::Obeyed, InChange::Changes, "IPv6 network behind the subscriber. Gateway and metric have no effect.", &["bindings::prefixes_of_aaa_are_announced_by_the_session_that_has_them", "dynamic::routes_of_a_family_are_replaced_together"]),
    row(Kind::FRAMED_IPV6_POOL, NOWHERE, InAccept::Obeyed, InChange::Unsupported, "IPv6 pool of the subscriber.", &["aaa_answer::a_pool_that_aaa_names_is_used_in_place_of_the_profiles", "aaa_answer::a_pool_that_is_not_there_refuses_the_subscriber_by_name"]),
    row(Kind::ERROR_CAUSE, NOWHERE, InAccept::NotEnforced, InChange::Unsupported, "In a NAK: why a request is rejected.", &["e2e coa"]),
    row(Kind::DELEGATED_IPV6_PREFIX, RECORD, InAccept::NotEnforced, InChange::Unsupported, "Delegation by DHCPv6 is not offered yet.", &["aaa_answer::a_session_shows_what_of_its_answer_has_no_effect"]),
    row(Kind::FRAMED_IPV6_ADDRESS, NOWHERE, InAccept::NotEnforced, InChange::Unsupported, "Addresses by DHCPv6 are not offered yet.", &["aaa_answer::a_session_shows_what_of_its_answer_has_no_effect"]),
    row(Kind::DNS_SERVER_IPV6_ADDRESS, NOWHERE, InAccept::Obeyed, InChange::Changes, "DNS server.", &["aaa_answer::what_vendors_attributes_say_reaches_the_user_plane_and_the_subscriber"]),
    row(Kind::ROUTE_IPV6_INFORMATION, NOWHERE, InAccept::NotEnforced, InChange::Unsupported, "Router Advertisements have no such option yet.", &["aaa_answer::a_session_shows_what_of_its_answer_has_no_effect"]),
    row(Kind::DELEGATED_IPV6_PREFIX_POOL, NOWHERE, InAccept::NotEnforced, InChange::Unsupported, "Delegation by DHCPv6 is not offered yet.", &["aaa_answer::a_session_shows_what_of_its_answer_has_no_effect"]),
    row(Kind::STATEFUL_IPV6_ADDRESS_POOL, NOWHERE, InAccept::NotEnforced, InChange::Unsupported, "Addresses by DHCPv6 are not offered yet.", &["aaa_answer::a_session_shows_what_of_its_answer_has_no_effect"]),
    row(Kind::ADSL_FORUM_AGENT_CIRCUIT_ID, BOTH, InAccept::NotEnforced, InChange::Identifies, "Circuit id of the access node.", &["e2e accounting-on"]),
    row(Kind::ADSL_FORUM_AGENT_REMOTE_ID, BOTH, InAccept::NotEnforced, InChange::Identifies, "Remote id of the access node.", &["e2e accounting-on"]),
    row(Kind::ADSL_FORUM_ACTUAL_DATA_RATE_UPSTREAM, BOTH, InAccept::NotEnforced, InChange::Unsupported, "Characteristic of the access line: actual data rate upstream.", &["e2e accounting-on"]),
    row(Kind::ADSL_FORUM_ACTUAL_DATA_RATE_DOWNSTREAM, BOTH, InAccept::NotEnforced, InChange::Unsupported, "Characteristic of the access line: actual data rate downstream.", &["e2e accounting-on"]),
    row(Kind::ADSL_FORUM_MINIMUM_DATA_RATE_UPSTREAM, RECORD, InAccept::NotEnforced, InChange::Unsupported, "Characteristic of the access line: minimum data rate upstream.", &["e2e accounting-on"]),
    row(Kind::ADSL_FORUM_MINIMUM_DATA_RATE_DOWNSTREAM, RECORD, InAccept::NotEnforced, InChange::Unsupported, "Characteristic of the access line: minimum data rate downstream.", &["e2e accounting-on"]),
    row(Kind::ADSL_FORUM_ATTAINABLE_DATA_RATE_UPSTREAM, RECORD, InAccept::NotEnforced, InChange::Unsupported, "Characteristic of the access line: attainable data rate upstream.", &["e2e accounting-on"]),
    row(Kind::ADSL_FORUM_ATTAINABLE_DATA_RATE_DOWNSTREAM, RECORD, InAccept::NotEnforced, InChange::Unsupported, "Characteristic of the access line: attainable data rate downstream.", &["e2e accounting-on"]),
    row(Kind::ADSL_FORUM_MAXIMUM_DATA_RATE_UPSTREAM, RECORD, InAccept::NotEnforced, InChange::Unsupported, "Characteristic of the access line: maximum data rate upstream.", &["e2e accounting-on"]),
    row(Kind::ADSL_FORUM_MAXIMUM_DATA_RATE_DOWNSTREAM, RECORD, InAccept::NotEnforced, InChange::Unsupported, "Characteristic of the access line: maximum data rate downstream.", &["e2e accounting-on"]),
    row(Kind::ADSL_FORUM_MINIMUM_DATA_RATE_UPSTREAM_LOW_POWER, RECORD, InAccept::NotEnforced, InChange::Unsupported, "Characteristic of the access line: minimum data rate upstream low power.", &["e2e accounting-on"]),
    row(Kind::ADSL_FORUM_MINIMUM_DATA_RATE_DOWNSTREAM_LOW_POWER, RECORD, InAccept::NotEnforced, InChange::Unsupported, "Characteristic of the access line: minimum data rate downstream low power.", &["e2e accounting-on"]),
    row(Kind::ADSL_FORUM_MAXIMUM_INTERLEAVING_DELAY_UPSTREAM, RECORD, InAccept::NotEnforced, InChange::Unsupported, "Characteristic of the access line: maximum interleaving delay upstream.", &["e2e accounting-on"]),
    row(Kind::ADSL_FORUM_ACTUAL_INTERLEAVING_DELAY_UPSTREAM, RECORD, InAccept::NotEnforced, InChange::Unsupported, "Characteristic of the access line: actual interleaving delay upstream.", &["e2e accounting-on"]),
    row(Kind::ADSL_FORUM_MAXIMUM_INTERLEAVING_DELAY_DOWNSTREAM, RECORD, InAccept::NotEnforced, InChange::Unsupported, "Characteristic of the access line: maximum interleaving delay downstream.", &["e2e accounting-on"]),
    row(Kind::ADSL_FORUM_ACTUAL_INTERLEAVING_DELAY_DOWNSTREAM, RECORD, InAccept::NotEnforced, InChange::Unsupported, "Characteristic of the access line: actual interleaving delay downstream.", &["e2e accounting-on"]),
    row(Kind::ADSL_FORUM_ACCESS_LOOP_ENCAPSULATION, BOTH, InAccept::NotEnforced, InChange::Unsupported, "Encapsulation of the access line.", &["e2e accounting-on"]),
    row(Kind::ADSL_FORUM_IWF_SESSION, BOTH, InAccept::NotEnforced, InChange::Unsupported, "PPP over ATM is converted.", &["e2e accounting-on"]),
];

/// What the gateway does with an attribute; `None` if it does not know it itself.
pub fn standard(kind: Kind) -> Option<&'static Standard> {
    let found = STANDARD.binary_search_by_key(&kind, |standard| standard.kind);
    found.ok().map(|index| &STANDARD[index])
}
