//! Access and subscriber profiles of sessions.

use super::ControlPlane;
use crate::entry::Entry;
use crate::evaluate::{self, AaaAnswer, PolicyInputs};
use crate::topology::{SegmentId, Topology};
use config::Configuration;
use config::model::{AccessProfile, Authentication, RouterAdvertisements, SubscriberProfile};
use core::time::Duration;
use policy::{Origins, PPPOE_MTU, Policy};
use session::discovery::{Discovery, DiscoveryConfig};
use session::{AuthProtocol, DhcpConfig, RaConfig, SessionConfig};
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use wire::access_loop::LoopValue;

/// Lifetime of an AC-Cookie. A home that takes longer between PADO and PADR sends a new PADI.
const COOKIE_LIFETIME: Duration = Duration::from_secs(60);
/// Time in which the subscriber may send LCP first. Linux's pppd takes about 20 ms from PADS to its first request.
const START_DELAY: Duration = Duration::from_millis(200);

static ACCESS_DEFAULTS: LazyLock<AccessProfile> = LazyLock::new(AccessProfile::default);

/// Access profile in use.
pub(super) struct Access {
    pub discovery: Discovery,
    pub session: Arc<SessionConfig>,
}

impl Access {
    fn new(profile: &AccessProfile, gateway: &Gateway) -> Self {
        Access {
            discovery: Discovery::new(discovery_config(profile, gateway.cookie_key)),
            session: Arc::new(session_config(profile, gateway.dhcp.clone())),
        }
    }
}

/// What is the same in all access profiles, and outlives a commit.
pub(super) struct Gateway {
    /// Key of the AC-Cookies.
    pub cookie_key: [u8; 32],
    /// DUID and key of the DHCPv6 server.
    pub dhcp: DhcpConfig,
}

/// Access profiles in use.
pub(super) struct AccessProfiles {
    gateway: Gateway,
    named: BTreeMap<String, Access>,
    built_in: Access,
}

impl AccessProfiles {
    pub fn new(configuration: &Configuration, gateway: Gateway) -> Self {
        let mut profiles = AccessProfiles {
            built_in: Access::new(&ACCESS_DEFAULTS, &gateway),
            named: BTreeMap::new(),
            gateway,
        };
        profiles.update(configuration);
        profiles
    }

    /// Follows the configuration.
    pub fn update(&mut self, configuration: &Configuration) {
        let profiles = configuration.access_profiles.iter();
        let access = |profile| Access::new(profile, &self.gateway);
        self.named = profiles
            .map(|(name, p)| (name.clone(), access(p)))
            .collect();
    }
}

fn discovery_config(profile: &AccessProfile, cookie_key: [u8; 32]) -> DiscoveryConfig {
    DiscoveryConfig {
        ac_name: profile.ac_name.clone(),
        service_names: offered(profile),
        accepts_any_service: profile.service_names.is_empty(),
        cookie_key,
        cookie_lifetime: COOKIE_LIFETIME,
        trusts_access_line: profile.trust_line_tags,
        max_payload: (profile.max_mru > PPPOE_MTU).then_some(profile.max_mru),
    }
}

/// Service names that are offered, each once.
fn offered(profile: &AccessProfile) -> Vec<String> {
    let mut names = profile.service_names.clone();
    let profiles = profile.service_profiles.iter();
    names.extend(
        profiles
            .filter(|name| !profile.service_names.contains(name))
            .cloned(),
    );
    names
}

fn auth_protocol(authentication: Authentication) -> AuthProtocol {
    match authentication {
        Authentication::Chap => AuthProtocol::Chap,
        Authentication::Pap => AuthProtocol::Pap,
        Authentication::MsChapV2 => AuthProtocol::MsChapV2,
    }
}

pub(super) fn session_config(profile: &AccessProfile, dhcp: DhcpConfig) -> SessionConfig {
    let authentication = match profile.authentication[..] {
        [] => AccessProfile::default().authentication,
        _ => profile.authentication.clone(),
    };
    SessionConfig {
        name: profile.ac_name.clone(),
        auth: authentication.into_iter().map(auth_protocol).collect(),
        mru: profile.max_mru.min(PPPOE_MTU),
        echo_interval: Duration::from_secs(profile.echo_interval.into()),
        echo_failures: profile.echo_failures,
        start_delay: START_DELAY,
        dhcp: DhcpConfig {
            preferred_lifetime: profile.dhcpv6_preferred_lifetime,
            valid_lifetime: profile.dhcpv6_valid_lifetime,
            ..dhcp
        },
        restart_interval: Duration::from_secs(profile.restart_interval.into()),
        max_configure: profile.max_configure,
        max_terminate: profile.max_terminate,
        max_failure: profile.max_failure,
        setup_timeout: Duration::from_secs(profile.setup_timeout.into()),
        ra: ra_config(&profile.router_advertisements),
    }
}

fn ra_config(times: &RouterAdvertisements) -> RaConfig {
    RaConfig {
        interval: Duration::from_secs(times.interval.into()),
        router_lifetime: times.router_lifetime,
        valid_lifetime: times.valid_lifetime,
        preferred_lifetime: times.preferred_lifetime,
    }
}

/// Configuration with its topology.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub configuration: &'a Configuration,
    pub topology: &'a Topology,
}

/// Settings of an access profile that apply to running PPP sessions.
#[derive(Debug, PartialEq)]
pub(super) struct LinkSettings<'a> {
    name: &'a str,
    authentication: &'a [Authentication],
    echo: (u16, u8),
    dhcpv6_lifetimes: (u32, u32),
    restart_interval: u8,
    /// Max-Configure, Max-Terminate and Max-Failure.
    most: [u8; 3],
    router_advertisements: &'a RouterAdvertisements,
}

impl<'a> View<'a> {
    /// Access profile of a segment.
    pub fn access_profile(&self, segment: SegmentId) -> &'a AccessProfile {
        let name = self.topology.segment(segment).access_profile.as_ref();
        let named = name.and_then(|name| self.configuration.access_profiles.get(name));
        named.unwrap_or(&ACCESS_DEFAULTS)
    }

    /// Subscriber profile of a segment whose subscriber is not known yet.
    pub fn profile(&self, segment: SegmentId) -> &'a SubscriberProfile {
        let of_access = self.access_profile(segment).subscriber_profile.as_deref();
        evaluate::profile(self.configuration, of_access).0
    }

    /// Inputs of a session's policy.
    pub fn policy_inputs<'b>(&self, entry: &'b Entry) -> PolicyInputs<'b>
    where
        'a: 'b,
    {
        self.policy_inputs_with(entry, &entry.answer)
    }

    /// Inputs of a session's policy with another answer of AAA.
    pub fn policy_inputs_with<'b>(
        &self,
        entry: &'b Entry,
        answer: &'b AaaAnswer,
    ) -> PolicyInputs<'b>
    where
        'a: 'b,
    {
        PolicyInputs {
            configuration: self.configuration,
            access: self.access_profile(entry.segment),
            service: &entry.tags.service,
            servers: entry.servers.as_deref(),
            link_mtu: entry.status().map_or(PPPOE_MTU, |status| status.mtu),
            line_rate_down: entry
                .tags
                .access_loop
                .as_ref()
                .and_then(|line| line.get(LoopValue::ActualRateDown)),
            answer,
            user: self.user(entry),
        }
    }

    /// Policy of a session as AAA and the change of authorization that is under way want it.
    pub fn evaluate_wanted(&self, entry: &Entry) -> Policy {
        let instance = &self.topology.instance(entry.instance).name;
        let (bindings, answer) = (entry.wanted_bindings(), entry.wanted_answer());
        let inputs = self.policy_inputs_with(entry, &answer);
        inputs.evaluate(instance, &bindings).0
    }

    /// Current policy of a session, with the origin of each value.
    pub fn evaluate(&self, entry: &Entry) -> (Policy, Origins) {
        let instance = &self.topology.instance(entry.instance).name;
        let bindings = &entry.policy.forwarding.bindings;
        self.policy_inputs(entry).evaluate(instance, bindings)
    }

    /// Settings of a segment's access profile that apply to running sessions.
    pub fn link_settings(&self, segment: SegmentId) -> LinkSettings<'a> {
        let access = self.access_profile(segment);
        LinkSettings {
            name: &access.ac_name,
            authentication: &access.authentication,
            echo: (access.echo_interval, access.echo_failures),
            dhcpv6_lifetimes: (
                access.dhcpv6_preferred_lifetime,
                access.dhcpv6_valid_lifetime,
            ),
            restart_interval: access.restart_interval,
            most: [
                access.max_configure,
                access.max_terminate,
                access.max_failure,
            ],
            router_advertisements: &access.router_advertisements,
        }
    }
}

impl ControlPlane {
    /// Current configuration and topology.
    pub(super) fn view(&self) -> View<'_> {
        View {
            configuration: &self.configuration,
            topology: &self.topology,
        }
    }

    /// Access profile of a segment.
    pub(super) fn access(&self, segment: SegmentId) -> &Access {
        let name = &self.topology.segment(segment).access_profile;
        let named = name.as_ref().and_then(|name| self.access.named.get(name));
        named.unwrap_or(&self.access.built_in)
    }

    /// Subscriber profile of a session.
    pub(super) fn subscriber_profile<'a>(&'a self, entry: &'a Entry) -> &'a SubscriberProfile {
        self.view().policy_inputs(entry).profile().0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::model::Authentication::{Chap, MsChapV2, Pap};

    #[test]
    fn authentication_is_tried_in_the_order_of_the_profile() {
        let policy = |authentication: &[Authentication]| {
            let profile = AccessProfile {
                authentication: authentication.to_vec(),
                ..AccessProfile::default()
            };
            session_config(&profile, DhcpConfig::default()).auth
        };
        let default = [AuthProtocol::Chap, AuthProtocol::Pap];
        assert_eq!(policy(&[Chap]), [AuthProtocol::Chap]);
        assert_eq!(
            policy(&[Pap, MsChapV2, Chap]),
            [
                AuthProtocol::Pap,
                AuthProtocol::MsChapV2,
                AuthProtocol::Chap
            ]
        );
        assert_eq!(policy(&[Chap, Pap]), default);
        assert_eq!(policy(&[]), default);
    }
}
