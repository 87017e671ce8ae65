//! The configuration of a gateway for as many homes as one control plane serves.

use crate::radius::{ALONE, SECRET};
use lab::daemon::Daemon;
use lab::gateway::{SUBSCRIBER_GATEWAY_V4, SUBSCRIBER_GATEWAY_V6, socket};
use lab::topology::{
    ACCESS_PORT, CORE_PORT, CORE_V4_LEN, CORE_V6_LEN, DELEGATED_V6, INTERNET_V4, INTERNET_V6,
    SUBSCRIBERS_V6, UserPlane,
};
use std::path::Path;

/// The lines of the homes: 20 S-tags of 4,000 C-tags each.
pub const LINES: &str = "100-119.1-4000";
/// The lines of homes that come and go beside them.
pub const OTHER_LINES: &str = "120.1-4000";
/// A /16, as the lab has it, ends at 65,536 homes.
const SUBSCRIBERS_V4: &str = "100.64.0.0/14";

/// The configuration.
pub fn document(dir: &Path) -> String {
    let planes: String = UserPlane::ALL.iter().map(|up| plane(dir, *up)).collect();
    let (server, secret) = (ALONE.address, SECRET);
    // A segment has 65,534 PPPoE session ids, of which those that were released rest for a minute: hence several of them. A town that
    // connects within a second sends more discovery packets than a port may by default, and so many sessions are half-open.
    format!(
        "limits: {{sessions: 140000, half-open: 140000}}
protection: {{discovery: {{vlan: 40000, port: 80000, total: 80000}}}}
network-instances:
  default: {{gateway: ['{SUBSCRIBER_GATEWAY_V4}', '{SUBSCRIBER_GATEWAY_V6}']}}
user-planes:
{planes}subscriber-profiles:
  home: {{dns: ['{INTERNET_V4}', '{INTERNET_V6}'], delegated-pools: [delegated]}}
ipv4-pools: {{homes: {{prefix: '{SUBSCRIBERS_V4}'}}}}
ipv6-pools:
  homes: {{prefix: '{SUBSCRIBERS_V6}'}}
  delegated: {{prefix: '{DELEGATED_V6}', prefix-length: 56}}
access-profiles:
  pppoe: {{subscriber-profile: home, authentication: [chap], server-group: radius}}
aaa:
  servers: {{server: {{address: {server}, secret-key: {secret}}}}}
  server-groups: {{radius: {{servers: [server]}}}}
"
    )
}

fn plane(dir: &Path, up: UserPlane) -> String {
    let (name, address) = (up.name(), up.management());
    let socket = socket(dir, Daemon::UserPlane(up));
    let (socket, core_v4, core_v6) = (socket.display(), up.core_v4(), up.core_v6());
    format!(
        "  {name}:
    address: '{address}'
    management: {socket}
    ports:
      {ACCESS_PORT}:
        role: access
        device: 'net_af_xdp0,iface={ACCESS_PORT}'
        segments:
          a: {{s-vlans: 100-106, access-profile: pppoe}}
          b: {{s-vlans: 107-113, access-profile: pppoe}}
          c: {{s-vlans: 114-120, access-profile: pppoe}}
      {CORE_PORT}:
        role: core
        device: 'net_af_xdp1,iface={CORE_PORT}'
        addresses: ['{core_v4}/{CORE_V4_LEN}', '{core_v6}/{CORE_V6_LEN}']
"
    )
}
