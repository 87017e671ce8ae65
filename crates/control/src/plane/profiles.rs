//! What the configuration says about a session: how it is met, and what it gets.

use super::ControlPlane;
use crate::entry::Entry;
use crate::topology::{SegmentId, Topology};
use config::Configuration;
use config::model::{AccessProfile, Authentication, SubscriberProfile};
use core::net::IpAddr;
use core::time::Duration;
use session::discovery::{Discovery, DiscoveryConfig};
use session::{AuthPolicy, SessionConfig};
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

/// What a cookie is good for: a home that takes longer between PADO and PADR asks again.
const COOKIE_LIFETIME: Duration = Duration::from_secs(30);
/// The largest MRU over PPPoE without PPP-Max-Payload (RFC 2516 §7).
const PPPOE_MRU: u16 = 1492;
/// How long a subscriber is left to speak first: Linux's pppd takes some 20 ms from its PADS to its first request.
const START_DELAY: Duration = Duration::from_millis(200);

static ACCESS_DEFAULTS: LazyLock<AccessProfile> = LazyLock::new(AccessProfile::default);
static SUBSCRIBER_DEFAULTS: LazyLock<SubscriberProfile> = LazyLock::new(SubscriberProfile::default);

/// An access profile at work.
pub(super) struct Access {
    pub discovery: Discovery,
    pub session: Arc<SessionConfig>,
}

impl Access {
    fn new(profile: &AccessProfile, cookie_key: [u8; 32]) -> Self {
        Access {
            discovery: Discovery::new(discovery_config(profile, cookie_key)),
            session: Arc::new(session_config(profile)),
        }
    }
}

/// All access profiles by name, and the defaults.
pub(super) type AccessProfiles = BTreeMap<Option<String>, Access>;

pub(super) fn access_profiles(configuration: &Configuration, key: [u8; 32]) -> AccessProfiles {
    let profiles = configuration.access_profiles.iter();
    let profiles = profiles.map(|(name, profile)| (Some(name.clone()), Access::new(profile, key)));
    let defaults = (None, Access::new(&ACCESS_DEFAULTS, key));
    profiles.chain([defaults]).collect()
}

fn discovery_config(profile: &AccessProfile, cookie_key: [u8; 32]) -> DiscoveryConfig {
    DiscoveryConfig {
        ac_name: profile.ac_name.clone(),
        service_names: profile.service_names.clone(),
        cookie_key,
        cookie_lifetime: COOKIE_LIFETIME,
        max_payload: (profile.max_mru > PPPOE_MRU).then_some(profile.max_mru),
    }
}

pub(super) fn session_config(profile: &AccessProfile) -> SessionConfig {
    use Authentication::{Chap, Pap};
    SessionConfig {
        name: profile.ac_name.clone(),
        auth: match profile.authentication[..] {
            [Chap] => AuthPolicy::Chap,
            [Pap] => AuthPolicy::Pap,
            [Pap, ..] => AuthPolicy::PapThenChap,
            _ => AuthPolicy::ChapThenPap,
        },
        mru: profile.max_mru.min(PPPOE_MRU),
        echo_interval: Duration::from_secs(profile.echo_interval.into()),
        echo_failures: profile.echo_failures,
        start_delay: START_DELAY,
        ..SessionConfig::default()
    }
}

/// A configuration, and the topology that follows it.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub configuration: &'a Configuration,
    pub topology: &'a Topology,
}

/// What holds for a session as long as it lasts, and changes with the configuration.
#[derive(Debug, PartialEq)]
pub(super) struct Terms<'a> {
    pub mtu: u16,
    /// Where AAA named none; `None`: for ever.
    pub timeout: Option<Duration>,
    /// Between interim records where AAA named none; `None`: none.
    pub interim: Option<Duration>,
    pub dns: &'a [IpAddr],
    /// What the PPP session is told.
    pub session: SessionTerms<'a>,
}

/// What of an access profile a PPP session that has begun goes by.
#[derive(Debug, PartialEq)]
pub(super) struct SessionTerms<'a> {
    name: &'a str,
    authentication: &'a [Authentication],
    echo: (u16, u8),
}

/// A time in seconds; none if it is 0.
fn seconds(seconds: u32) -> Option<Duration> {
    (seconds > 0).then(|| Duration::from_secs(seconds.into()))
}

impl<'a> View<'a> {
    /// How subscribers of a segment are met.
    pub fn access_profile(&self, segment: SegmentId) -> &'a AccessProfile {
        let name = self.topology.segment(segment).access_profile.as_ref();
        let named = name.and_then(|name| self.configuration.access_profiles.get(name));
        named.unwrap_or(&ACCESS_DEFAULTS)
    }

    /// The name of what a session gets: as AAA says, or else as its access profile does.
    pub fn profile_name<'b>(&self, entry: &'b Entry) -> Option<&'b str>
    where
        'a: 'b,
    {
        let of_access = || {
            self.access_profile(entry.segment)
                .subscriber_profile
                .as_deref()
        };
        entry.profile.as_deref().or_else(of_access)
    }

    /// What those get of whom AAA says this, on this segment.
    pub fn profile(&self, segment: SegmentId, of_aaa: Option<&str>) -> &'a SubscriberProfile {
        let of_access = || self.access_profile(segment).subscriber_profile.as_deref();
        let name = of_aaa.or_else(of_access);
        let named = name.and_then(|name| self.configuration.subscriber_profiles.get(name));
        named.unwrap_or(&SUBSCRIBER_DEFAULTS)
    }

    /// A session's terms.
    pub fn terms(&self, entry: &Entry) -> Terms<'a> {
        let profile = self.profile(entry.segment, entry.profile.as_deref());
        let access = self.access_profile(entry.segment);
        let link = entry.link.as_ref().map_or(PPPOE_MRU, |link| link.mtu());
        let groups = &self.configuration.aaa.server_groups;
        let servers = entry.servers.as_deref().and_then(|name| groups.get(name));
        Terms {
            mtu: link.min(profile.mtu),
            timeout: seconds(profile.session_timeout),
            interim: seconds(servers.map_or(0, |servers| servers.interim_interval)),
            dns: &profile.dns,
            session: SessionTerms {
                name: &access.ac_name,
                authentication: &access.authentication,
                echo: (access.echo_interval, access.echo_failures),
            },
        }
    }
}

impl ControlPlane {
    /// The present configuration.
    pub(super) fn view(&self) -> View<'_> {
        View {
            configuration: &self.configuration,
            topology: &self.topology,
        }
    }

    /// How subscribers of a segment are met.
    pub(super) fn access(&self, segment: SegmentId) -> &Access {
        let name = &self.topology.segment(segment).access_profile;
        let named = self.access.get(name);
        named.unwrap_or_else(|| &self.access[&None])
    }

    /// What a session gets.
    pub(super) fn subscriber_profile(&self, entry: &Entry) -> &SubscriberProfile {
        self.view().profile(entry.segment, entry.profile.as_deref())
    }

    /// The times that AAA did not name are those of the configuration.
    pub(super) fn set_times(&mut self, index: u32) {
        let terms = self.view().terms(&self.sessions[index as usize]);
        let (interim, timeout) = (terms.interim, terms.timeout);
        let account = &mut self.entry(index).account;
        let [interim_of_aaa, timeout_of_aaa] = account.of_aaa;
        if !interim_of_aaa {
            account.interim = interim;
        }
        if !timeout_of_aaa {
            account.session_timeout = timeout;
        }
    }

    /// The name servers are those of the session's profile.
    pub(super) fn set_dns(&mut self, index: u32) {
        let profile = self.subscriber_profile(&self.sessions[index as usize]);
        let (ipv4, ipv6) = (profile.dns_ipv4(), profile.dns_ipv6());
        if let Some(link) = &mut self.entry(index).link {
            link.set_dns(ipv4, ipv6);
        }
    }
}
