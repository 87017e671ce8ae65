//! The configuration of a gateway for as many homes as one control plane serves.

use crate::radius::{ALONE, SECRET};
use ipnet::Ipv4Net;
use lab::gateway::Contents;
use lab::topology::UserPlane;
use std::net::Ipv4Addr;
use std::path::Path;

/// The lines of the homes: 20 S-tags of 4,000 C-tags each.
pub const LINES: &str = "100-119.1-4000";
/// The lines of homes that come and go beside them.
pub const OTHER_LINES: &str = "120.1-4000";

/// A /16, as the lab has it, ends at 65,536 homes.
const SUBSCRIBERS_V4: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(100, 64, 0, 0), 14);
/// A town that connects within a second sends more discovery packets than a port may by default, and so many sessions are half-open.
const LIMITS: &str = "limits: {sessions: 140000, half-open: 140000}
protection: {discovery: {vlan: 40000, port: 80000, total: 80000}}";
/// A segment has 65,534 PPPoE session ids, of which those that were released rest for a minute: hence several of them.
const SEGMENTS: &str = "a: {s-vlans: 100-106, access-profile: pppoe}, b: {s-vlans: 107-113, access-profile: pppoe}, \
    c: {s-vlans: 114-120, access-profile: pppoe}";

/// The configuration.
pub fn document(dir: &Path) -> String {
    let (server, secret) = (ALONE.address, SECRET);
    let aaa = format!(
        "    authentication: [chap]
    server-group: radius
aaa:
  servers: {{server: {{address: {server}, secret-key: {secret}}}}}
  server-groups: {{radius: {{servers: [server]}}}}
"
    );
    let contents = Contents {
        limits: LIMITS,
        segments: SEGMENTS,
        subscribers_v4: SUBSCRIBERS_V4,
        aaa: &aaa,
    };
    contents.configuration(dir, &UserPlane::ALL)
}
