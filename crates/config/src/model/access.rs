//! How subscribers are met.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How PPPoE subscribers are met on an access segment.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct AccessProfile {
    /// The AC-Name of PADO (RFC 2516 §5.2), and our name in CHAP challenges.
    pub ac_name: String,
    /// The services that are offered; without any, whatever is asked for.
    #[schemars(extend("x-example" = "internet"))]
    pub service_names: Vec<String>,
    /// The largest MRU that is agreed upon; above 1492 only with those that ask by PPP-Max-Payload (RFC 4638). For those
    /// that dial in from then on.
    #[schemars(range(min = 576, max = 9216), extend("x-unit" = "octets"))]
    pub max_mru: u16,
    /// The authentication protocols in order of preference. For those that dial in from then on.
    pub authentication: Vec<Authentication>,
    /// How long a silent subscriber is left alone before it is asked by an LCP echo whether it is there; 0: for ever.
    #[schemars(range(max = 3600), extend("x-unit" = "seconds"))]
    pub echo_interval: u16,
    /// How many echoes without an answer end the session.
    #[schemars(range(min = 1, max = 255))]
    pub echo_failures: u8,
    /// The RADIUS servers that know the subscribers; without it they are looked up among `users`. Records of a session go to
    /// the group that let it in.
    #[schemars(extend("x-reference" = "/aaa/server-groups"))]
    pub server_group: Option<String>,
    /// What those get of whom neither server nor user entry says otherwise; without it the defaults.
    #[schemars(extend("x-reference" = "/subscriber-profiles"))]
    pub subscriber_profile: Option<String>,
}

impl Default for AccessProfile {
    fn default() -> Self {
        AccessProfile {
            ac_name: "sluice".into(),
            service_names: Vec::new(),
            max_mru: 1492,
            authentication: vec![Authentication::Chap, Authentication::Pap],
            echo_interval: 30,
            echo_failures: 3,
            server_group: None,
            subscriber_profile: None,
        }
    }
}

/// A PPP authentication protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Authentication {
    /// CHAP with MD5 (RFC 1994).
    Chap,
    /// PAP (RFC 1334).
    Pap,
}
