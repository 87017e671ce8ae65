//! The bit fields: what nodes can do, what rules ask for, what reports say.
use super::codec::flags;

flags! {
    /// UP Function Features (§8.2.25).
    pub struct UpFunctionFeatures(u64), least 2 {
        /// FTUP: the user plane can choose F-TEIDs.
        F_TEID_ALLOCATION = 0x10,
        /// TREU: traffic redirection enforcement by the user plane.
        REDIRECTION = 0x80,
        /// PDIU: traffic endpoints.
        TRAFFIC_ENDPOINTS = 0x02 << 8,
        /// UDBC.
        BUFFERING_CONTROL = 0x04 << 8,
        /// FRRT: framed routes.
        FRAMED_ROUTES = 0x20 << 8,
        /// UEIP: the user plane can choose UE addresses.
        UE_ADDRESS_ALLOCATION = 0x04 << 16,
        /// MNOP: packets can be counted as well as octets.
        PACKET_COUNTS = 0x10 << 16,
        /// BUNDL: several messages in one datagram.
        BUNDLING = 0x40 << 16,
        /// VTIME: quota validity time.
        QUOTA_VALIDITY = 0x04 << 24,
        /// IP6PL: IPv6 prefixes of other lengths than 64, and several UE addresses in a rule.
        PREFIX_LENGTHS = 0x20 << 24,
    }
}

flags! {
    /// CP Function Features (§8.2.58).
    pub struct CpFunctionFeatures(u16), least 1 {
        /// BUNDL: several messages in one datagram.
        BUNDLING = 0x10,
    }
}

flags! {
    /// Apply Action (§8.2.26).
    pub struct ApplyAction(u16), least 1 {
        /// Discard.
        DROP = 0x01,
        /// Forward as the forwarding parameters say.
        FORW = 0x02,
        /// Hold.
        BUFF = 0x04,
        /// Notify the control plane.
        NOCP = 0x08,
        /// Copy.
        DUPL = 0x10,
    }
}

flags! {
    /// Measurement Method (§8.2.40).
    pub struct MeasurementMethod(u8), least 1 {
        /// DURAT: how long.
        DURATION = 0x01,
        /// VOLUM: how much.
        VOLUME = 0x02,
        /// EVENT: how often.
        EVENT = 0x04,
    }
}

flags! {
    /// Reporting Triggers (§8.2.19).
    pub struct ReportingTriggers(u32), least 2 {
        /// PERIO: every Measurement Period.
        PERIODIC = 0x01,
        /// VOLTH: a volume threshold.
        VOLUME_THRESHOLD = 0x02,
        /// TIMTH: a time threshold.
        TIME_THRESHOLD = 0x04,
        /// VOLQU: a volume quota.
        VOLUME_QUOTA = 0x01 << 8,
        /// TIMQU: a time quota.
        TIME_QUOTA = 0x02 << 8,
    }
}

flags! {
    /// Usage Report Trigger (§8.2.41).
    pub struct UsageReportTrigger(u32), least 2 {
        /// PERIO: the Measurement Period is over.
        PERIODIC = 0x01,
        /// IMMER: the control plane asked.
        IMMEDIATE = 0x80,
        /// TERMR: the session or the rule is no more.
        TERMINATION = 0x08 << 8,
    }
}

flags! {
    /// Measurement Information (§8.2.68).
    pub struct MeasurementInformation(u8), least 1 {
        /// INAM: do not measure for now.
        INACTIVE = 0x02,
        /// MNOP: count packets as well as octets.
        PACKETS = 0x10,
    }
}

flags! {
    /// Report Type (§8.2.21).
    pub struct ReportType(u8), least 1 {
        /// DLDR: downlink data.
        DOWNLINK_DATA = 0x01,
        /// USAR: usage.
        USAGE = 0x02,
        /// ERIR: a GTP-U peer did not know a tunnel.
        ERROR_INDICATION = 0x04,
        /// UPIR: the subscriber has been quiet.
        INACTIVITY = 0x08,
    }
}

flags! {
    /// PFCPSMReq-Flags (§8.2.35), of a Session Modification Request.
    pub struct ModificationFlags(u8), least 1 {
        /// DROBU: drop what is buffered.
        DROP_BUFFERED = 0x01,
        /// QAURR: report the usage of all URRs.
        QUERY_ALL_URRS = 0x04,
    }
}

flags! {
    /// PFCP Association Release Request (§8.2.77): a user plane asks for its release.
    pub struct ReleaseRequest(u8), least 1 {
        /// SARR: once usage is reported.
        RELEASE = 0x01,
        /// URSS: usage of all sessions was reported.
        REPORTED = 0x02,
    }
}
