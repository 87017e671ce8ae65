//! What the configured users say of themselves.

use crate::evaluate::{rate, seconds};
use config::model::User;
use policy::Overrides;

/// Settings of a user in place of its profile's.
pub(crate) fn overrides(user: &User) -> Overrides {
    Overrides {
        mtu: user.mtu.map(Some),
        vlan_priority: user.vlan_priority,
        idle_timeout: user.idle_timeout.map(seconds),
        idle_both_ways: user.idle_both_ways,
        rate_up: user.rate_up.map(rate),
        rate_down: user.rate_down.map(rate),
        session_timeout: user.session_timeout.map(seconds),
        interim_interval: user.interim_interval.map(seconds),
        dns: (!user.dns.is_empty()).then(|| user.dns.clone()),
    }
}
