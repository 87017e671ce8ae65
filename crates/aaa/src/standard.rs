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
    /// It changes what the subscriber gets from its next connection on.
    ChangesNext,
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
) -> Standard {
    Standard {
        kind,
        sent,
        in_accept,
        in_change,
        meaning,
    }
}

/// Every attribute of the codec's dictionary but Vendor-Specific, in the order of vendors and numbers.
#[rustfmt::skip]
pub static STANDARD: &[Standard] = &[
    row(Kind::USER_NAME, BOTH, InAccept::NotEnforced, InChange::Identifies, "Name of the subscriber, as its server group writes it."),
    row(Kind::USER_PASSWORD, REQUEST, InAccept::NotEnforced, InChange::Unsupported, "Password of PAP."),
    row(Kind::CHAP_PASSWORD, REQUEST, InAccept::NotEnforced, InChange::Unsupported, "Response of CHAP."),
    row(Kind::NAS_IP_ADDRESS, BOTH, InAccept::NotEnforced, InChange::NamesGateway, "Address of the gateway."),
    row(Kind::NAS_PORT, NOWHERE, InAccept::NotEnforced, InChange::Unsupported, "A number has no room for what NAS-Port-Id says."),
    row(Kind::SERVICE_TYPE, BOTH, InAccept::Obeyed, InChange::OfTheMessage, "Framed; Authorize-Only in requests without a proof."),
    row(Kind::FRAMED_PROTOCOL, BOTH, InAccept::Obeyed, InChange::OfTheMessage, "PPP."),
    row(Kind::FRAMED_IP_ADDRESS, RECORD, InAccept::Obeyed, InChange::Identifies, "IPv4 address of the subscriber."),
    row(Kind::FRAMED_IP_NETMASK, NOWHERE, InAccept::NotEnforced, InChange::Unsupported, "PPP gives the subscriber no mask. 255.255.255.255 needs no action; a Framed-Route routes a network."),
    row(Kind::FRAMED_ROUTING, NOWHERE, InAccept::NotEnforced, InChange::Unsupported, "No routing protocol runs with the subscriber. 0 needs no action."),
    row(Kind::FILTER_ID, RECORD, InAccept::Obeyed, InChange::Changes, "Name of the subscriber profile; with `.in` or `.out` behind it, name of the policy of packets from or to the subscriber."),
    row(Kind::FRAMED_MTU, NOWHERE, InAccept::Obeyed, InChange::Changes, "Largest IP packet to the subscriber, 576 to 9,216 octets."),
    row(Kind::FRAMED_COMPRESSION, NOWHERE, InAccept::NoAction, InChange::Unsupported, "The link negotiates compression (RFC 2865 §5.13)."),
    row(Kind::LOGIN_IP_HOST, NOWHERE, InAccept::NotEnforced, InChange::Unsupported, "Of a service that the gateway does not offer."),
    row(Kind::LOGIN_SERVICE, NOWHERE, InAccept::NotEnforced, InChange::Unsupported, "Of a service that the gateway does not offer."),
    row(Kind::LOGIN_TCP_PORT, NOWHERE, InAccept::NotEnforced, InChange::Unsupported, "Of a service that the gateway does not offer."),
    row(Kind::REPLY_MESSAGE, NOWHERE, InAccept::Obeyed, InChange::OfTheMessage, "Text for the subscriber, in the answer of PAP, CHAP or MS-CHAPv2."),
    row(Kind::CALLBACK_NUMBER, NOWHERE, InAccept::NotEnforced, InChange::Unsupported, "Of a service that the gateway does not offer."),
    row(Kind::CALLBACK_ID, NOWHERE, InAccept::NotEnforced, InChange::Unsupported, "Of a service that the gateway does not offer."),
    row(Kind::FRAMED_ROUTE, RECORD, InAccept::Obeyed, InChange::Changes, "IPv4 network behind the subscriber. Its first metric is that of the route which is announced. A gateway has no effect."),
    row(Kind::FRAMED_IPX_NETWORK, NOWHERE, InAccept::NotEnforced, InChange::Unsupported, "Of a service that the gateway does not offer."),
    row(Kind::STATE, REQUEST, InAccept::NoAction, InChange::OfTheMessage, "Repeated in the request that Termination-Action or Authorize-Only asks for."),
    row(Kind::CLASS, RECORD, InAccept::Obeyed, InChange::Changes, "Repeated in accounting."),
    row(Kind::SESSION_TIMEOUT, NOWHERE, InAccept::Obeyed, InChange::Changes, "Time after which the session ends, from the answer on."),
    row(Kind::IDLE_TIMEOUT, NOWHERE, InAccept::Obeyed, InChange::Changes, "Time without packets from the subscriber after which the session ends."),
    row(Kind::TERMINATION_ACTION, NOWHERE, InAccept::Obeyed, InChange::Changes, "1: the subscriber is authenticated again when Session-Timeout has passed."),
    row(Kind::CALLED_STATION_ID, BOTH, InAccept::NotEnforced, InChange::Unsupported, "By the template of the server group; without one, the PPPoE service name that the subscriber asked for."),
    row(Kind::CALLING_STATION_ID, BOTH, InAccept::NotEnforced, InChange::Identifies, "MAC address of the subscriber, or by the template of the server group."),
    row(Kind::NAS_IDENTIFIER, BOTH, InAccept::NotEnforced, InChange::NamesGateway, "Name of the gateway."),
    row(Kind::PROXY_STATE, NOWHERE, InAccept::NoAction, InChange::OfTheMessage, "Repeated in the answer to a request."),
    row(Kind::LOGIN_LAT_SERVICE, NOWHERE, InAccept::NotEnforced, InChange::Unsupported, "Of a service that the gateway does not offer."),
    row(Kind::LOGIN_LAT_NODE, NOWHERE, InAccept::NotEnforced, InChange::Unsupported, "Of a service that the gateway does not offer."),
    row(Kind::LOGIN_LAT_GROUP, NOWHERE, InAccept::NotEnforced, InChange::Unsupported, "Of a service that the gateway does not offer."),
    row(Kind::ACCT_STATUS_TYPE, RECORD, InAccept::NotEnforced, InChange::Unsupported, "Start, Interim-Update, Stop, Accounting-On or Accounting-Off."),
    row(Kind::ACCT_DELAY_TIME, NOWHERE, InAccept::NotEnforced, InChange::Unsupported, "A repeated record is the same datagram; Event-Timestamp has the time."),
    row(Kind::ACCT_INPUT_OCTETS, RECORD, InAccept::NotEnforced, InChange::Unsupported, "Octets from the subscriber."),
    row(Kind::ACCT_OUTPUT_OCTETS, RECORD, InAccept::NotEnforced, InChange::Unsupported, "Octets to the subscriber."),
    row(Kind::ACCT_SESSION_ID, BOTH, InAccept::NotEnforced, InChange::Identifies, "Id of the session, unique for the lifetime of the store."),
    row(Kind::ACCT_AUTHENTIC, RECORD, InAccept::NotEnforced, InChange::Unsupported, "RADIUS, or Local by a fallback."),
    row(Kind::ACCT_SESSION_TIME, RECORD, InAccept::NotEnforced, InChange::Unsupported, "Seconds since the session began."),
    row(Kind::ACCT_INPUT_PACKETS, RECORD, InAccept::NotEnforced, InChange::Unsupported, "Packets from the subscriber."),
    row(Kind::ACCT_OUTPUT_PACKETS, RECORD, InAccept::NotEnforced, InChange::Unsupported, "Packets to the subscriber."),
    row(Kind::ACCT_TERMINATE_CAUSE, RECORD, InAccept::NotEnforced, InChange::OfTheMessage, "Why the session ended."),
    row(Kind::ACCT_MULTI_SESSION_ID, RECORD, InAccept::NotEnforced, InChange::Unsupported, "The same for all sessions of a subscriber that overlap."),
    row(Kind::ACCT_LINK_COUNT, NOWHERE, InAccept::NotEnforced, InChange::Unsupported, "Multilink PPP is not offered."),
    row(Kind::ACCT_INPUT_GIGAWORDS, RECORD, InAccept::NotEnforced, InChange::Unsupported, "High 32 bits of Acct-Input-Octets."),
    row(Kind::ACCT_OUTPUT_GIGAWORDS, RECORD, InAccept::NotEnforced, InChange::Unsupported, "High 32 bits of Acct-Output-Octets."),
    row(Kind::EVENT_TIMESTAMP, RECORD, InAccept::NotEnforced, InChange::OfTheMessage, "Time of the event. A request outside the time window is dropped."),
    row(Kind::CHAP_CHALLENGE, REQUEST, InAccept::NotEnforced, InChange::Unsupported, "Challenge of CHAP."),
    row(Kind::NAS_PORT_TYPE, BOTH, InAccept::NotEnforced, InChange::Unsupported, "PPPoEoE, PPPoEoVLAN or PPPoEoQinQ."),
    row(Kind::PORT_LIMIT, NOWHERE, InAccept::Obeyed, InChange::Unsupported, "Maximum number of sessions of the subscriber."),
    row(Kind::LOGIN_LAT_PORT, NOWHERE, InAccept::NotEnforced, InChange::Unsupported, "Of a service that the gateway does not offer."),
    row(Kind::CONNECT_INFO, BOTH, InAccept::NotEnforced, InChange::Unsupported, "Rates of the access line in bit/s."),
    row(Kind::EAP_MESSAGE, NOWHERE, InAccept::NoAction, InChange::Unsupported, "The gateway does not offer EAP."),
    row(Kind::MESSAGE_AUTHENTICATOR, REQUEST, InAccept::NoAction, InChange::OfTheMessage, "Proves who sent the packet."),
    row(Kind::ACCT_INTERIM_INTERVAL, NOWHERE, InAccept::Obeyed, InChange::Changes, "Time between interim records, at least 60 s."),
    row(Kind::NAS_PORT_ID, BOTH, InAccept::NotEnforced, InChange::Identifies, "User plane, port and VLAN ids, or by the template of the server group."),
    row(Kind::FRAMED_POOL, NOWHERE, InAccept::Obeyed, InChange::ChangesNext, "IPv4 pool of the subscriber."),
    row(Kind::NAS_FILTER_RULE, NOWHERE, InAccept::Obeyed, InChange::Changes, "Rules of the subscriber alone, tried before those of policies."),
    row(Kind::NAS_IPV6_ADDRESS, BOTH, InAccept::NotEnforced, InChange::NamesGateway, "Address of the gateway."),
    row(Kind::FRAMED_INTERFACE_ID, RECORD, InAccept::Obeyed, InChange::Unsupported, "Interface identifier that the subscriber must use."),
    row(Kind::FRAMED_IPV6_PREFIX, RECORD, InAccept::Obeyed, InChange::Identifies, "Prefixes of the link, up to 8, each a /64."),
    row(Kind::LOGIN_IPV6_HOST, NOWHERE, InAccept::NotEnforced, InChange::Unsupported, "Of a service that the gateway does not offer."),
    row(Kind::FRAMED_IPV6_ROUTE, RECORD, InAccept::Obeyed, InChange::Changes, "IPv6 network behind the subscriber. Its first metric is that of the route which is announced. A gateway has no effect."),
    row(Kind::FRAMED_IPV6_POOL, NOWHERE, InAccept::Obeyed, InChange::ChangesNext, "IPv6 pool of the subscriber."),
    row(Kind::ERROR_CAUSE, NOWHERE, InAccept::NotEnforced, InChange::Unsupported, "In a NAK: why a request is rejected."),
    row(Kind::DELEGATED_IPV6_PREFIX, RECORD, InAccept::Obeyed, InChange::Identifies, "Prefix that is delegated to the subscriber's router, of at most 64 bits. Up to 16 are possible."),
    row(Kind::FRAMED_IPV6_ADDRESS, RECORD, InAccept::Obeyed, InChange::Identifies, "IPv6 address of the subscriber's router."),
    row(Kind::DNS_SERVER_IPV6_ADDRESS, NOWHERE, InAccept::Obeyed, InChange::Changes, "DNS server."),
    row(Kind::ROUTE_IPV6_INFORMATION, NOWHERE, InAccept::NotEnforced, InChange::Unsupported, "Router Advertisements have no such option yet."),
    row(Kind::DELEGATED_IPV6_PREFIX_POOL, NOWHERE, InAccept::Obeyed, InChange::ChangesNext, "IPv6 pool of the delegated prefix."),
    row(Kind::STATEFUL_IPV6_ADDRESS_POOL, NOWHERE, InAccept::Obeyed, InChange::ChangesNext, "IPv6 pool of the router's address."),
    row(Kind::MS_CHAP_ERROR, NOWHERE, InAccept::NotEnforced, InChange::Unsupported, "In an Access-Reject: error code and text of MS-CHAPv2's Failure. R is always 0."),
    row(Kind::MS_MPPE_ENCRYPTION_POLICY, NOWHERE, InAccept::NotEnforced, InChange::Unsupported, "The gateway offers no encryption. 1, which allows it, needs no action."),
    row(Kind::MS_MPPE_ENCRYPTION_TYPES, NOWHERE, InAccept::NoAction, InChange::Unsupported, "The gateway offers no encryption."),
    row(Kind::MS_CHAP_CHALLENGE, REQUEST, InAccept::NotEnforced, InChange::Unsupported, "Challenge of MS-CHAPv2."),
    row(Kind::MS_MPPE_SEND_KEY, NOWHERE, InAccept::NoAction, InChange::Unsupported, "The gateway offers no encryption."),
    row(Kind::MS_MPPE_RECV_KEY, NOWHERE, InAccept::NoAction, InChange::Unsupported, "The gateway offers no encryption."),
    row(Kind::MS_CHAP2_RESPONSE, REQUEST, InAccept::NotEnforced, InChange::Unsupported, "Response of MS-CHAPv2."),
    row(Kind::MS_CHAP2_SUCCESS, NOWHERE, InAccept::Obeyed, InChange::Unsupported, "Proof for the subscriber, in MS-CHAPv2's Success. Without it, an MS-CHAPv2 subscriber is rejected."),
    row(Kind::ADSL_FORUM_AGENT_CIRCUIT_ID, BOTH, InAccept::NotEnforced, InChange::Identifies, "Circuit id of the access node."),
    row(Kind::ADSL_FORUM_AGENT_REMOTE_ID, BOTH, InAccept::NotEnforced, InChange::Identifies, "Remote id of the access node."),
    row(Kind::ADSL_FORUM_ACTUAL_DATA_RATE_UPSTREAM, BOTH, InAccept::NotEnforced, InChange::Unsupported, "Characteristic of the access line: actual data rate upstream."),
    row(Kind::ADSL_FORUM_ACTUAL_DATA_RATE_DOWNSTREAM, BOTH, InAccept::NotEnforced, InChange::Unsupported, "Characteristic of the access line: actual data rate downstream."),
    row(Kind::ADSL_FORUM_MINIMUM_DATA_RATE_UPSTREAM, RECORD, InAccept::NotEnforced, InChange::Unsupported, "Characteristic of the access line: minimum data rate upstream."),
    row(Kind::ADSL_FORUM_MINIMUM_DATA_RATE_DOWNSTREAM, RECORD, InAccept::NotEnforced, InChange::Unsupported, "Characteristic of the access line: minimum data rate downstream."),
    row(Kind::ADSL_FORUM_ATTAINABLE_DATA_RATE_UPSTREAM, RECORD, InAccept::NotEnforced, InChange::Unsupported, "Characteristic of the access line: attainable data rate upstream."),
    row(Kind::ADSL_FORUM_ATTAINABLE_DATA_RATE_DOWNSTREAM, RECORD, InAccept::NotEnforced, InChange::Unsupported, "Characteristic of the access line: attainable data rate downstream."),
    row(Kind::ADSL_FORUM_MAXIMUM_DATA_RATE_UPSTREAM, RECORD, InAccept::NotEnforced, InChange::Unsupported, "Characteristic of the access line: maximum data rate upstream."),
    row(Kind::ADSL_FORUM_MAXIMUM_DATA_RATE_DOWNSTREAM, RECORD, InAccept::NotEnforced, InChange::Unsupported, "Characteristic of the access line: maximum data rate downstream."),
    row(Kind::ADSL_FORUM_MINIMUM_DATA_RATE_UPSTREAM_LOW_POWER, RECORD, InAccept::NotEnforced, InChange::Unsupported, "Characteristic of the access line: minimum data rate upstream low power."),
    row(Kind::ADSL_FORUM_MINIMUM_DATA_RATE_DOWNSTREAM_LOW_POWER, RECORD, InAccept::NotEnforced, InChange::Unsupported, "Characteristic of the access line: minimum data rate downstream low power."),
    row(Kind::ADSL_FORUM_MAXIMUM_INTERLEAVING_DELAY_UPSTREAM, RECORD, InAccept::NotEnforced, InChange::Unsupported, "Characteristic of the access line: maximum interleaving delay upstream."),
    row(Kind::ADSL_FORUM_ACTUAL_INTERLEAVING_DELAY_UPSTREAM, RECORD, InAccept::NotEnforced, InChange::Unsupported, "Characteristic of the access line: actual interleaving delay upstream."),
    row(Kind::ADSL_FORUM_MAXIMUM_INTERLEAVING_DELAY_DOWNSTREAM, RECORD, InAccept::NotEnforced, InChange::Unsupported, "Characteristic of the access line: maximum interleaving delay downstream."),
    row(Kind::ADSL_FORUM_ACTUAL_INTERLEAVING_DELAY_DOWNSTREAM, RECORD, InAccept::NotEnforced, InChange::Unsupported, "Characteristic of the access line: actual interleaving delay downstream."),
    row(Kind::ADSL_FORUM_ACCESS_LOOP_ENCAPSULATION, BOTH, InAccept::NotEnforced, InChange::Unsupported, "Encapsulation of the access line."),
    row(Kind::ADSL_FORUM_IWF_SESSION, BOTH, InAccept::NotEnforced, InChange::Unsupported, "PPP over ATM is converted."),
];

/// What the gateway does with an attribute; `None` if it does not know it itself.
pub fn standard(kind: Kind) -> Option<&'static Standard> {
    let found = STANDARD.binary_search_by_key(&kind, |standard| standard.kind);
    found.ok().map(|index| &STANDARD[index])
}
