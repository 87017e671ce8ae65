//! The configuration that a test starts with.
use super::UP;

/// A configuration whose ports, pools and limits a test may choose.
pub struct Choice {
    pub access_ports: &'static str,
    pub ipv4_pool: Option<&'static str>,
    pub ipv6_pool: Option<&'static str>,
    pub sessions: u32,
    pub half_open: u32,
    pub accounting_records: u32,
    /// AAA by RADIUS instead of users.
    pub radius: bool,
}

impl Default for Choice {
    fn default() -> Self {
        Choice {
            access_ports: "access0: {role: access, device: a}",
            ipv4_pool: Some("{prefix: 100.64.0.0/16}"),
            ipv6_pool: Some("{prefix: '2001:db8:100::/48'}"),
            sessions: 1000,
            half_open: 1000,
            accounting_records: 1000,
            radius: false,
        }
    }
}

impl Choice {
    /// AAA by RADIUS, all else as usual.
    pub fn radius() -> Self {
        Choice {
            radius: true,
            ..Choice::default()
        }
    }
}

impl Choice {
    /// The configuration, with a user for each home.
    pub fn document(&self, homes: usize) -> String {
        let pool = |key: &str, pool: Option<&str>| {
            pool.map_or(String::new(), |pool| format!("{key}: {{homes: {pool}}}\n"))
        };
        let aaa = match self.radius {
            true => "    server-group: radius
aaa:
  servers: {one: {address: 192.0.2.9, secret-key: testing123}}
  server-groups: {radius: {servers: [one], interim-interval: 0, interim-jitter: 0}}
"
            .into(),
            false => {
                let users = (0..homes).map(|n| format!("  home{n}: {{password: secret{n}}}\n"));
                format!("users:\n{}", users.collect::<String>())
            }
        };
        format!(
            "limits: {{sessions: {}, half-open: {}, accounting-records: {}}}
network-instances: {{default: {{gateway: [100.64.0.1]}}}}
user-planes:
  up1:
    address: {UP}
    management: /run/up1.sock
    ports: {{{}}}
subscriber-profiles: {{home: {{dns: [192.0.2.53, '2001:db8::53']}}}}
{}{}access-profiles:
  pppoe:
    subscriber-profile: home
{aaa}",
            self.sessions,
            self.half_open,
            self.accounting_records,
            self.access_ports
                .replace('}', ", segments: {all: {access-profile: pppoe}}}"),
            pool("ipv4-pools", self.ipv4_pool),
            pool("ipv6-pools", self.ipv6_pool),
        )
    }
}
