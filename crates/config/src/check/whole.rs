//! What no single value shows: overlaps, things that exclude each other, names that are taken.

use crate::model::{
    AboveRate, AccessProfile, Acls, Algorithm, Configuration, MOST_ACL_RULES, MOST_ACLS,
    MOST_CLASSES, MOST_LAG_MEMBERS, MOST_POLICY_RULES, Overhead, Policer, Port, PortRole,
    RouterAdvertisements, TrafficPolicy, User, UserPlaneDocument,
};
use crate::{Fault, Path, password};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Maximum number of routes of a user. A session has room for 64 bindings.
const MOST_ROUTES: usize = 32;
/// Maximum number of delegated prefixes of a user.
const MOST_DELEGATED: usize = 8;

/// Maximum number of policies.
const MOST_POLICIES: usize = 4_096;

pub(super) fn check(configuration: &Configuration) -> Vec<Fault> {
    let mut found = Found::default();
    for (name, plane) in &configuration.user_planes {
        let here: Path = ["user-planes", name].into_iter().collect();
        if plane.address.is_unspecified() || plane.address.is_multicast() {
            found.at(
                &here,
                "address",
                format!("`{}` is not a unicast address", plane.address),
            );
        }
        found.doubled(&here, interfaces(configuration, &plane.ports));
        for (name, port) in &plane.ports {
            found.port(&here.join("ports").join(name), port);
        }
    }
    for (name, profile) in &configuration.access_profiles {
        found.access_profile(&Path::from_iter(["access-profiles", name]), profile);
        let here = Path::from_iter(["access-profiles", name, "router-advertisements"]);
        found.router_advertisements(&here, &profile.router_advertisements);
        let (here, rule) = (
            Path::from_iter(["access-profiles", name, "setup-back-off"]),
            &profile.setup_back_off,
        );
        found.doubling(&here, rule.first, rule.longest);
    }
    let rule = &configuration.protection.hold_down;
    found.doubling(
        &Path::from_iter(["protection", "hold-down"]),
        rule.first,
        rule.longest,
    );
    found.addresses(configuration);
    found.pools(configuration);
    found.default_instance(configuration);
    for (name, user) in &configuration.users {
        found.user(&["users", name].into_iter().collect(), user);
    }
    found.policies(&configuration.acls, &configuration.policies);
    found.policers(&configuration.policers);
    found.radius(&configuration.aaa);
    found.dynamic_clients(configuration);
    found.0
}

pub(super) fn user_plane(document: &UserPlaneDocument) -> Vec<Fault> {
    let mut found = Found::default();
    for (name, port) in &document.ports {
        found.port(&Path::from_iter(["ports", name]), port);
    }
    for (name, instance) in &document.network_instances {
        let here = Path::from_iter(["network-instances", name]);
        found.gateway(&here, &instance.gateway);
    }
    found.policies(&document.acls, &document.policies);
    found.policers(&document.policers);
    found.0
}

/// The kernel interfaces that a user plane makes, and the place that names each.
fn interfaces<'a>(
    configuration: &'a Configuration,
    ports: &'a BTreeMap<String, Port>,
) -> impl Iterator<Item = (String, Path)> + 'a {
    let instances = configuration
        .network_instances
        .iter()
        .map(|(name, instance)| {
            let interface = instance
                .interface
                .clone()
                .unwrap_or_else(|| format!("sl-{name}"));
            (
                interface,
                Path::from_iter(["network-instances", name, "interface"]),
            )
        });
    let core = ports.iter().filter(|(_, port)| port.role == PortRole::Core);
    let taps = core.flat_map(|(name, port)| {
        let below = port.subinterfaces.iter();
        let below = below.map(move |(own, sub)| (sub.tap_name(own), format!("{name}/{own}")));
        std::iter::once((port.tap_name(name), name.clone())).chain(below)
    });
    instances.chain(
        taps.map(|(interface, place)| (interface, Path::from_iter(["ports".to_owned(), place]))),
    )
}

#[derive(Default)]
pub(super) struct Found(pub(super) Vec<Fault>);

impl Found {
    pub(super) fn at(&mut self, place: &Path, part: &str, message: String) {
        let path = match part {
            "" => place.clone(),
            part => place.join(part),
        };
        self.0.push(Fault {
            line: 0,
            path,
            message,
        });
    }

    /// The first and the longest of times that double.
    fn doubling(&mut self, here: &Path, first: u32, longest: u32) {
        if longest < first {
            let message = format!("expected at least `first`, which is {first}");
            self.at(here, "longest", message);
        }
    }

    /// Times that depend on each other (RFC 4861 §6.2.1).
    fn router_advertisements(&mut self, here: &Path, times: &RouterAdvertisements) {
        let RouterAdvertisements {
            interval,
            router_lifetime,
            valid_lifetime,
            preferred_lifetime,
        } = *times;
        if router_lifetime != 0 && router_lifetime < interval {
            let message = format!("expected 0, or at least `interval`, which is {interval}");
            self.at(here, "router-lifetime", message);
        }
        if preferred_lifetime > valid_lifetime {
            let message = format!("expected at most `valid-lifetime`, which is {valid_lifetime}");
            self.at(here, "preferred-lifetime", message);
        }
    }

    /// What names no network instance is in `default`, which has to be there then.
    fn default_instance(&mut self, configuration: &Configuration) {
        let there = |name: &String| configuration.network_instances.contains_key(name);
        let four = configuration.ipv4_pools.iter();
        let four = four.map(|(name, pool)| ("ipv4-pools", name, &pool.network_instance));
        let six = configuration.ipv6_pools.iter();
        let six = six.map(|(name, pool)| ("ipv6-pools", name, &pool.network_instance));
        let profiles = configuration.subscriber_profiles.iter();
        let profiles = profiles.map(|(name, p)| ("subscriber-profiles", name, &p.network_instance));
        let planes = configuration.user_planes.iter();
        let planes = planes.flat_map(|(name, plane)| {
            let ports = plane.ports.values();
            ports.map(move |port| ("user-planes", name, &port.network_instance))
        });
        let mut users = four.chain(six).chain(profiles).chain(planes);
        if let Some((kind, name, missing)) = users.find(|(_, _, instance)| !there(instance)) {
            let place: Path = ["network-instances"].into_iter().collect();
            self.at(&place, "", format!("`{kind} {name}` is in network instance `{missing}`, which is not configured: `set \
                network-instances {missing}`"));
        }
    }

    fn doubled(&mut self, place: &Path, names: impl Iterator<Item = (String, Path)>) {
        let mut seen: BTreeMap<String, Path> = BTreeMap::new();
        for (name, what) in names {
            if name.len() > 15 {
                self.at(place, "", format!("kernel interface `{name}` of `{what}`: expected 1 to 15 octets; set the name \
                    with `tap` or `interface`"));
            }
            if let Some(other) = seen.get(&name) {
                self.at(place, "", format!("`{other}` and `{what}` both create the kernel interface `{name}`: expected \
                    different names"));
            }
            seen.insert(name, what);
        }
    }

    fn access_profile(&mut self, here: &Path, profile: &AccessProfile) {
        let (preferred, valid) = (
            profile.dhcpv6_preferred_lifetime,
            profile.dhcpv6_valid_lifetime,
        );
        if valid < preferred {
            let why =
                format!("less than `dhcpv6-preferred-lifetime`: expected at least {preferred}");
            self.at(here, "dhcpv6-valid-lifetime", why);
        }
    }

    fn user(&mut self, here: &Path, user: &User) {
        match (&user.password, &user.password_hash) {
            (None, None) => {
                let why = "neither `password` nor `password-hash` is set: expected one of them";
                self.at(here, "", why.into());
            }
            (Some(_), Some(_)) => {
                let why = "`password` is set, too: expected one of them";
                self.at(here, "password-hash", why.into());
            }
            (Some(_), None) => {}
            (None, Some(hash)) => {
                if let Err(why) = password::check(hash.reveal()) {
                    self.at(here, "password-hash", why);
                }
            }
        }
        let link = user.ipv6_prefix;
        if link.is_some_and(|prefix| prefix.prefix_len() != 64) {
            let why = "a link's prefix has 64 bits (RFC 4862): expected a /64";
            self.at(here, "ipv6-prefix", why.into());
        }
        if let Some(long) = user.delegated_prefixes.iter().find(|p| p.prefix_len() > 64) {
            let why = format!("{long} cannot be delegated: expected a prefix of at most 64 bits");
            self.at(here, "delegated-prefixes", why);
        }
        let delegated = user.delegated_prefixes.len();
        if delegated > MOST_DELEGATED {
            let why = format!("{delegated} prefixes: expected at most {MOST_DELEGATED}");
            self.at(here, "delegated-prefixes", why);
        }
        let routes = user.routes.len();
        if routes > MOST_ROUTES {
            let why = format!("{routes} routes: expected at most {MOST_ROUTES}");
            self.at(here, "routes", why);
        }
    }

    /// ACLs and policies are bounded: each policy is compiled as a whole.
    fn policies(&mut self, acls: &Acls, policies: &BTreeMap<String, TrafficPolicy>) {
        if acls.len() > MOST_ACLS {
            let why = format!("{} ACLs: expected at most {MOST_ACLS}", acls.len());
            self.at(&Path::from_iter(["acls"]), "", why);
        }
        for (name, acl) in acls {
            if acl.rules.contains_key(&0) {
                let why = "rule 0: expected numbers from 1 on".to_owned();
                self.at(&Path::from_iter(["acls", name]), "rules", why);
            }
            let rules = acl.rules.len();
            if rules > MOST_ACL_RULES {
                let why = format!("{rules} rules: expected at most {MOST_ACL_RULES}");
                self.at(&Path::from_iter(["acls", name]), "rules", why);
            }
        }
        if policies.len() > MOST_POLICIES {
            let why = format!(
                "{} policies: expected at most {MOST_POLICIES}",
                policies.len()
            );
            self.at(&Path::from_iter(["policies"]), "", why);
        }
        for (name, policy) in policies {
            self.classes(&Path::from_iter(["policies", name]), policy, acls);
            self.queues(&Path::from_iter(["policies", name]), policy);
            self.portal(&Path::from_iter(["policies", name]), policy, acls);
            let rules = policy.acls.iter().filter_map(|name| acls.get(name));
            let rules: usize = rules.map(|acl| acl.rules.len()).sum();
            if rules > MOST_POLICY_RULES {
                let why = format!("{rules} rules together: expected at most {MOST_POLICY_RULES}");
                self.at(&Path::from_iter(["policies", name]), "acls", why);
            }
        }
    }

    /// Classes are few, a code point or priority is of one of them, and rules name those that there are.
    fn classes(&mut self, here: &Path, policy: &TrafficPolicy, acls: &Acls) {
        let classes = &policy.classes;
        for name in classes.keys().skip(MOST_CLASSES) {
            let why = format!(
                "class `{name}` is beyond the {MOST_CLASSES} that a policy may have: {} classes",
                classes.len()
            );
            self.at(&here.join("classes"), name, why);
        }
        let (mut of_dscp, mut of_priority) = (BTreeMap::new(), BTreeMap::new());
        for (name, class) in classes {
            let place = here.join("classes").join(name);
            for dscp in &class.dscp {
                if let Some(other) = of_dscp.insert(acl::dscp_value(dscp), name) {
                    let why =
                        format!("class `{other}` has {dscp}, too: expected each DSCP in one class");
                    self.at(&place, "dscp", why);
                }
            }
            for priority in &class.vlan_priority {
                if let Some(other) = of_priority.insert(priority, name) {
                    let why = format!(
                        "class `{other}` has {priority}, too: expected each priority in one class"
                    );
                    self.at(&place, "vlan-priority", why);
                }
            }
        }
        for acl in &policy.acls {
            let rules = acls.get(acl).into_iter().flat_map(|acl| &acl.rules);
            let unknown = rules.filter_map(|(number, rule)| Some((number, rule.0.class()?)));
            let mut unknown = unknown.filter(|(_, class)| !classes.contains_key(*class));
            if let Some((number, class)) = unknown.next() {
                let why = format!(
                    "rule {number} of `{acl}` names class `{class}`, which this policy does not have: add it to `classes`"
                );
                self.at(here, "acls", why);
            }
        }
    }

    /// What is redirected has somewhere to go.
    fn portal(&mut self, here: &Path, policy: &TrafficPolicy, acls: &Acls) {
        if policy.portal.is_some() {
            return;
        }
        for name in &policy.acls {
            let rules = acls.get(name).into_iter().flat_map(|acl| &acl.rules);
            let mut redirecting =
                rules.filter(|(_, rule)| rule.0.action() == acl::Action::Redirect);
            if let Some((number, _)) = redirecting.next() {
                let why = format!(
                    "rule {number} of `{name}` redirects, and this policy does not say where to: add `portal`"
                );
                self.at(here, "acls", why);
            }
        }
    }

    /// Nothing is said of queues that there are not, strict ones leave something to the others, and nothing else limits the session.
    fn queues(&mut self, here: &Path, policy: &TrafficPolicy) {
        let of_classes = policy.classes.iter();
        let of_classes =
            of_classes.map(|(name, class)| (here.join("classes").join(name), &class.queue));
        let all = of_classes.chain([(here.clone(), &policy.queue)]);
        let waits = policy.above_rate == AboveRate::Wait;
        for (place, queue) in all {
            let Some(queue) = queue else {
                continue;
            };
            if !waits {
                let why = "has no effect where `above-rate` is `drop`: set it to `wait`";
                self.at(&place, "queue", why.into());
            } else if queue.strict && queue.rate.is_none() {
                let why = "a strict queue without a rate may starve the others: add `rate`";
                self.at(&place.join("queue"), "strict", why.into());
            }
        }
        let without_effect = [
            ("overhead", policy.overhead != Overhead::Ip),
            ("weight", policy.weight != 1),
        ];
        for (leaf, is_set) in without_effect {
            if is_set && !waits {
                let why = "has no effect where `above-rate` is `drop`: set it to `wait`";
                self.at(here, leaf, why.into());
            }
        }
        if waits && policy.policer.is_some() {
            let why = "limits the session beside `above-rate: wait`, which keeps its rate: remove one of them";
            self.at(here, "policer", why.into());
        }
    }

    /// Each algorithm has rates and bursts of its own.
    fn policers(&mut self, policers: &BTreeMap<String, Policer>) {
        for (name, policer) in policers {
            self.policer(&Path::from_iter(["policers", name]), policer);
        }
    }

    fn policer(&mut self, here: &Path, policer: &Policer) {
        let (algorithm, needed, others): (_, _, &[&str]) = match policer.algorithm {
            Algorithm::SingleRate => (
                "single-rate",
                None,
                &["peak-rate", "peak-burst", "excess-rate"],
            ),
            Algorithm::TwoRate => (
                "two-rate",
                Some("peak-rate"),
                &["excess-rate", "excess-burst"],
            ),
            Algorithm::TwoRateDifferentiated => (
                "two-rate-differentiated",
                Some("excess-rate"),
                &["peak-rate", "peak-burst"],
            ),
        };
        let leaves = [
            ("peak-rate", policer.peak_rate),
            ("peak-burst", policer.peak_burst),
            ("excess-rate", policer.excess_rate),
            ("excess-burst", policer.excess_burst),
        ];
        for (leaf, value) in leaves {
            if value.is_some() && others.contains(&leaf) {
                let why = format!("`{algorithm}` has none: delete it, or change `algorithm`");
                self.at(here, leaf, why);
            }
            if value.is_none() && needed == Some(leaf) {
                let why = format!(
                    "`{leaf}` is missing: `{algorithm}` needs it; `single-rate` has one rate"
                );
                self.at(here, "", why);
            }
        }
        if policer.algorithm == Algorithm::TwoRate
            && policer
                .peak_rate
                .is_some_and(|peak| peak < policer.committed_rate)
        {
            let why = format!(
                "this is below `committed-rate`: expected at least {}",
                policer.committed_rate
            );
            self.at(here, "peak-rate", why);
        }
    }

    fn port(&mut self, here: &Path, port: &Port) {
        let only = |what: &str| {
            format!("this is valid for {what} ports only: delete it, or change `role`")
        };
        self.devices(here, port);
        match port.role {
            PortRole::Access => {
                let parts = [
                    ("tap", port.tap.is_some()),
                    ("addresses", !port.addresses.is_empty()),
                    ("subinterfaces", !port.subinterfaces.is_empty()),
                    ("source-check", !port.source_check.is_off()),
                ];
                for (part, _) in parts.into_iter().filter(|(_, there)| *there) {
                    self.at(here, part, only("core"));
                }
                self.segments(here, port);
            }
            PortRole::Core => {
                let parts = [
                    ("segments", !port.segments.is_empty()),
                    ("subscriber-group", port.subscriber_group.is_some()),
                ];
                for (part, _) in parts.into_iter().filter(|(_, there)| *there) {
                    self.at(here, part, only("access"));
                }
                self.subinterfaces(here, port);
            }
        }
    }

    /// A port has one device, or a LAG of different ones.
    fn devices(&mut self, here: &Path, port: &Port) {
        let lag = match (&port.device, &port.lag) {
            (Some(_), None) => return,
            (None, None) => {
                let why = "has no device: expected `device`, or `lag` with its `members`";
                return self.at(here, "", why.into());
            }
            (Some(_), Some(_)) => {
                let why = "is valid for ports without `device` only: delete one of both";
                return self.at(here, "lag", why.into());
            }
            (None, Some(lag)) => lag,
        };
        let here = here.join("lag");
        let members = lag.members.len();
        if !(1..=MOST_LAG_MEMBERS).contains(&members) {
            let why = format!("{members} members: expected 1 to {MOST_LAG_MEMBERS}");
            self.at(&here, "members", why);
        } else if usize::from(lag.minimum_links) > members {
            let why = format!("expected at most {members}, the number of `members`");
            self.at(&here, "minimum-links", why);
        }
    }

    fn segments(&mut self, here: &Path, port: &Port) {
        for (name, other) in port.overlapping_segments() {
            self.at(
                &here.join("segments").join(name),
                "s-vlans",
                format!(
                    "segment `{other}` has some of these VLANs: expected each VLAN in one segment"
                ),
            );
        }
        for (name, segment) in &port.segments {
            let rates = [
                ("the port's `egress-rate`", port.egress_rate),
                ("`egress-rate`", segment.egress_rate),
                ("`vlan-egress-rate`", segment.vlan_egress_rate),
            ];
            self.segment_rates(&here.join("segments").join(name), &rates);
        }
    }

    /// No part of a port has more than the whole.
    fn segment_rates(&mut self, here: &Path, rates: &[(&str, Option<u32>)]) {
        let there = |(what, rate): &(_, Option<u32>)| Some((*what, (*rate)?));
        let there: Vec<(&str, u32)> = rates.iter().filter_map(there).collect();
        for pair in there.windows(2) {
            let [(above, most), (what, rate)] = pair else {
                continue;
            };
            if rate > most {
                let why = format!("{rate} kbit/s is above {above}, {most} kbit/s");
                self.at(here, what.trim_matches('`'), why);
            }
        }
    }

    fn subinterfaces(&mut self, here: &Path, port: &Port) {
        let mut owner = BTreeMap::new();
        for (name, sub) in &port.subinterfaces {
            if let Some(other) = owner.insert(sub.vlan_id, name) {
                let place = here.join("subinterfaces").join(name);
                self.at(
                    &place,
                    "vlan-id",
                    format!(
                        "`{other}` has VLAN {}: expected each VLAN in one sub-interface",
                        sub.vlan_id
                    ),
                );
            }
        }
    }

    fn gateway(&mut self, here: &Path, addresses: &[IpAddr]) {
        for address in addresses {
            if address.is_unspecified() || address.is_multicast() || address.is_loopback() {
                let message = format!("`{address}` is not a unicast address");
                self.at(here, "gateway", message);
            }
        }
    }

    /// A gateway address is one in its network instance; the fixed addresses of users are nobody else's.
    fn addresses(&mut self, configuration: &Configuration) {
        for (name, instance) in &configuration.network_instances {
            let here = Path::from_iter(["network-instances", name]);
            self.gateway(&here, &instance.gateway);
        }
        let mut owner: BTreeMap<IpAddr, &String> = BTreeMap::new();
        for (name, user) in &configuration.users {
            let six = user.ipv6_prefix.map(|prefix| IpAddr::V6(prefix.addr()));
            let addresses = [
                (user.ipv4_address.map(IpAddr::V4), "ipv4-address"),
                (user.ipv6_address.map(IpAddr::V6), "ipv6-address"),
                (six, "ipv6-prefix"),
            ];
            let delegated = user.delegated_prefixes.iter();
            let delegated = delegated.map(|prefix| Some(IpAddr::V6(prefix.addr())));
            let delegated = delegated.map(|address| (address, "delegated-prefixes"));
            for (address, part) in addresses.into_iter().chain(delegated) {
                if let Some(address) = address
                    && let Some(other) = owner.insert(address, name)
                    && other != name
                {
                    let place: Path = ["users", name].into_iter().collect();
                    self.at(
                        &place,
                        part,
                        format!("user `{other}` has it, too: expected one user for each address"),
                    );
                }
            }
        }
    }

    /// A client of dynamic authorization is known by its address alone.
    fn dynamic_clients(&mut self, configuration: &Configuration) {
        let mut owner: BTreeMap<IpAddr, &String> = BTreeMap::new();
        for (name, client) in &configuration.aaa.dynamic_authorization.clients {
            if let Some(other) = owner.insert(client.address, name) {
                let place = ["aaa", "dynamic-authorization", "clients", name];
                let why =
                    format!("client `{other}` has it, too: expected one client for each address");
                self.at(&place.into_iter().collect(), "address", why);
            }
        }
    }
}
