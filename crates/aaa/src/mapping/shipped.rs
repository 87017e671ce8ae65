//! The shipped mappings.

use super::{AttributeMapping, Setting, Unit};

/// Attribute, key of its text, setting, unit of its number.
type Row = (&'static str, Option<&'static str>, Setting, Option<Unit>);

const BIT: Option<Unit> = Some(Unit::BitPerSecond);

/// Attributes whose meaning their vendors document. Names of QoS profiles are left to the operator, except Nokia's SLA profile, which
/// is what a subscriber profile is here.
const ROWS: &[Row] = &[
    // RFC 6911 §3.2
    ("DNS-Server-IPv6-Address", None, Setting::Dns, None),
    (
        "Cisco-AVPair",
        Some("ip:addr-pool"),
        Setting::Ipv4Pool,
        None,
    ),
    (
        "Cisco-AVPair",
        Some("ipv6:addr-pool"),
        Setting::Ipv6Pool,
        None,
    ),
    ("Cisco-AVPair", Some("ip:dns-servers"), Setting::Dns, None),
    (
        "Cisco-AVPair",
        Some("ipv6:ipv6-dns-servers-addr"),
        Setting::Dns,
        None,
    ),
    ("Cisco-AVPair", Some("ip:route"), Setting::Route, None),
    ("Cisco-AVPair", Some("ipv6:route"), Setting::Route, None),
    ("ERX-Primary-Dns", None, Setting::Dns, None),
    ("ERX-Secondary-Dns", None, Setting::Dns, None),
    ("ERX-Ipv6-Primary-Dns", None, Setting::Dns, None),
    ("ERX-Ipv6-Secondary-Dns", None, Setting::Dns, None),
    ("ERX-Ingress-Policy-Name", None, Setting::PolicyUp, None),
    ("ERX-Egress-Policy-Name", None, Setting::PolicyDown, None),
    ("ERX-Address-Pool-Name", None, Setting::Ipv4Pool, None),
    ("ERX-IPv6-NdRa-Pool-Name", None, Setting::Ipv6Pool, None),
    ("Alc-Primary-Dns", None, Setting::Dns, None),
    ("Alc-Secondary-Dns", None, Setting::Dns, None),
    ("Alc-Ipv6-Primary-Dns", None, Setting::Dns, None),
    ("Alc-Ipv6-Secondary-Dns", None, Setting::Dns, None),
    ("Alc-SLA-Prof-Str", None, Setting::Profile, None),
    ("Alc-SLAAC-IPv6-Pool", None, Setting::Ipv6Pool, None),
    ("Huawei-Input-Average-Rate", None, Setting::RateUp, BIT),
    ("Huawei-Output-Average-Rate", None, Setting::RateDown, BIT),
    ("Huawei-Primary-DNS", None, Setting::Dns, None),
    ("Huawei-Secondary-DNS", None, Setting::Dns, None),
    ("Huawei-DNS-Server-IPv6-address", None, Setting::Dns, None),
    ("Huawei-Framed-Pool", None, Setting::Ipv4Pool, None),
    // RFC 2548 §2.7.1, §2.7.2
    ("MS-Primary-DNS-Server", None, Setting::Dns, None),
    ("MS-Secondary-DNS-Server", None, Setting::Dns, None),
    // RX is what the router receives: from the subscriber
    ("Mikrotik-Rate-Limit", None, Setting::RateUpDown, BIT),
    ("Client-DNS-Pri", None, Setting::Dns, None),
    ("Client-DNS-Sec", None, Setting::Dns, None),
    ("Ip-Address-Pool-Name", None, Setting::Ipv4Pool, None),
    ("WISPr-Bandwidth-Max-Up", None, Setting::RateUp, BIT),
    ("WISPr-Bandwidth-Max-Down", None, Setting::RateDown, BIT),
];

pub(super) fn mappings() -> impl Iterator<Item = AttributeMapping> {
    ROWS.iter()
        .map(|&(attribute, key, setting, unit)| AttributeMapping {
            attribute: attribute.to_owned(),
            key: key.map(str::to_owned),
            setting,
            unit,
        })
}
