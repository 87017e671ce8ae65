//! What the configured users say of themselves.

use crate::evaluate::{name, rate, seconds};
use aaa::{Password, Secret};
use config::model::User;
use policy::Overrides;

/// A user, as AAA knows it.
pub(crate) fn known(user: &User) -> aaa::User {
    let secret = |secret: &config::Secret| Secret::new(secret.reveal());
    let hash = user.password_hash.as_ref().map(secret);
    let password = user.password.as_ref().map(secret);
    aaa::User {
        password: match hash {
            Some(hash) => Password::Hash(hash),
            None => Password::Plain(password.unwrap_or_default()),
        },
        ipv4: user.ipv4_address,
        ipv6_prefix: user.ipv6_prefix,
        ipv6_address: user.ipv6_address,
        delegated_prefixes: user.delegated_prefixes.clone(),
        routes: user.routes.clone(),
        profile: user.subscriber_profile.clone(),
    }
}

/// Settings of a user in place of its profile's.
pub(crate) fn overrides(user: &User) -> Overrides {
    Overrides {
        mtu: user.mtu.map(Some),
        vlan_priority: user.vlan_priority,
        idle_timeout: user.idle_timeout.map(seconds),
        idle_both_ways: user.idle_both_ways,
        rate_up: user.rate_up.map(rate),
        rate_down: user.rate_down.map(rate),
        committed_rate_up: user.committed_rate_up.map(rate),
        committed_rate_down: user.committed_rate_down.map(rate),
        subscriber_rate_up: user.subscriber_rate_up.map(rate),
        subscriber_rate_down: user.subscriber_rate_down.map(rate),
        priority_source: None,
        session_timeout: user.session_timeout.map(seconds),
        interim_interval: user.interim_interval.map(seconds),
        dns: (!user.dns.is_empty()).then(|| user.dns.clone()),
        policy_up: user.policy_up.is_some().then(|| name(&user.policy_up)),
        policy_down: user.policy_down.is_some().then(|| name(&user.policy_down)),
        filter_rules: None,
        timeout_action: None,
        keepalive: None,
    }
}
