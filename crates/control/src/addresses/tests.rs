use super::*;
use crate::topology::Numbers;
use std::sync::Arc;

const POOLS: &str = "ipv4-pools: {homes: {prefix: 100.64.0.0/23}}
ipv6-pools: {homes: {prefix: '2001:db8::/48'}, lans: {prefix: '2001:db8:40::/44', prefix-length: 56}, \
    routers: {prefix: '2001:db8:50::/112', prefix-length: 128}}
";

fn world(pools: &str) -> (Configuration, Topology) {
    let text =
        format!("network-instances: {{default: {{gateway: [100.64.0.1]}}, red: {{}}}}\n{pools}");
    let checked = config::check::read(&text).unwrap_or_else(|faults| panic!("{faults:?}"));
    let topology = Topology::new(&checked.configuration, Numbers::new());
    (Arc::unwrap_or_clone(checked.configuration), topology)
}

fn addresses() -> Addresses {
    let (configuration, topology) = world(POOLS);
    Addresses::new(&configuration, &topology).unwrap()
}

const HERE: InstanceId = InstanceId(0);
const HOME: Holder = Holder {
    instance: HERE,
    group: GroupId(0),
    session: 0,
};
const OTHER: Holder = Holder {
    group: GroupId(1),
    session: 1,
    ..HOME
};

fn take(addresses: &mut Addresses, net: impl Into<IpNet>) -> Option<(GroupId, Net)> {
    let net = net.into();
    let instance = HERE;
    addresses.take(Net { instance, net })
}

fn host(address: &str) -> IpNet {
    let address: core::net::IpAddr = address.parse().unwrap();
    address.into()
}

fn prefix(text: &str) -> IpNet {
    text.parse().unwrap()
}

/// From a pool, or a fixed address.
fn give(addresses: &mut Addresses, fixed: Option<&str>) -> Result<Given, PoolError> {
    match fixed {
        Some(fixed) => fix(addresses, HOME, Kind::Ipv4Address, host(fixed)),
        None => any(addresses, Kind::Ipv4Address),
    }
}

fn any(addresses: &mut Addresses, kind: Kind) -> Result<Given, PoolError> {
    let given = addresses.allocate(HOME, kind, &[], std::iter::empty());
    given.expect("a pool")
}

fn fix(
    addresses: &mut Addresses,
    holder: Holder,
    kind: Kind,
    net: IpNet,
) -> Result<Given, PoolError> {
    addresses.give_fixed(holder, kind, net, &Bindings::default())
}

#[test]
fn nets_are_announced_with_their_first_address_and_withdrawn_with_their_last() {
    let mut a = addresses();
    let one = give(&mut a, None).unwrap();
    let net = Net {
        instance: HERE,
        net: "100.64.0.0/24".parse().unwrap(),
    };
    assert_eq!(
        (one.prefix, one.new_net),
        (host("100.64.0.2"), Some(net)),
        "not the gateway's"
    );
    let two = give(&mut a, None).unwrap();
    assert_eq!(two.new_net, None);
    let freed = Some((HOME.group, net));
    assert_eq!(take(&mut a, one.prefix), None);
    assert_eq!(take(&mut a, two.prefix), freed);
    assert_eq!(take(&mut a, two.prefix), None, "already back");
    let short = prefix("2001:db8:1::/56");
    assert_eq!(
        fix(&mut a, HOME, Kind::Link, short),
        Err(PoolError::Foreign)
    );
    let six = any(&mut a, Kind::Link).unwrap();
    let freed = six.new_net.map(|net| (HOME.group, net));
    assert_eq!(take(&mut a, six.prefix), freed);
}

#[test]
fn fixed_addresses_inside_and_outside_of_the_pool() {
    let mut a = addresses();
    assert!(give(&mut a, Some("100.64.1.9")).unwrap().new_net.is_some());
    assert_eq!(give(&mut a, Some("100.64.1.9")), Err(PoolError::InUse));
    let given = give(&mut a, Some("203.0.113.7")).unwrap();
    assert_eq!((given.new_net, given.is_alone), (None, true));
    assert_eq!(give(&mut a, Some("203.0.113.7")), Err(PoolError::InUse));
    assert_eq!(take(&mut a, given.prefix), None);
    assert!(give(&mut a, Some("203.0.113.7")).is_ok());
    assert!(
        give(&mut a, Some("100.64.0.1")).is_err(),
        "the gateway's own"
    );
}

#[test]
fn the_next_pool_is_used_when_one_is_exhausted() {
    let pools = "ipv4-pools:
  a: {prefix: 100.64.0.0/30, net-length: 30}
  b: {prefix: 100.64.1.0/30, net-length: 30}
  c: {prefix: 100.64.2.0/30, net-length: 30, network-instance: red}
";
    let (configuration, topology) = world(pools);
    let mut a = Addresses::new(&configuration, &topology).unwrap();
    let named = ["b".to_owned(), "a".to_owned()];
    let give = |a: &mut Addresses, pools: &[String]| {
        let nothing = std::iter::empty();
        let given = a.allocate(HOME, Kind::Ipv4Address, pools, nothing).unwrap();
        given.map(|given| given.prefix.addr().to_string())
    };
    let in_order: Vec<_> = (0..3).map(|_| give(&mut a, &named).unwrap()).collect();
    assert_eq!(in_order, ["100.64.1.1", "100.64.1.2", "100.64.0.2"]);
    assert_eq!(
        give(&mut a, &[]),
        Err(PoolError::Exhausted),
        "not of another instance"
    );
    let nothing = std::iter::empty();
    let other = a.allocate(HOME, Kind::Ipv4Address, &["c".to_owned()], nothing);
    assert!(other.is_none());
}

#[test]
fn a_pool_changes_under_those_who_have_addresses_of_it_as_far_as_it_keeps_these() {
    let mut a = addresses();
    let has = give(&mut a, Some("100.64.1.9")).unwrap();
    let change = |a: &Addresses, from: &str, to: &str| {
        let (configuration, topology) = world(&POOLS.replace(from, to));
        a.change(&configuration, &topology)
    };
    for (from, to) in [
        ("100.64.0.0/23", "100.64.0.0/24"),
        ("ipv4-pools: {homes:", "ipv4-pools: {others:"),
        ("100.64.0.0/23}", "100.64.0.0/23, network-instance: red}"),
    ] {
        let faults = change(&a, from, to).err().expect(to);
        assert!(
            faults[0].to_string().contains("such as 100.64.1.9"),
            "{faults:?}"
        );
        assert!(faults[0].path.to_string().starts_with("ipv4-pools homes"));
    }
    let wider = change(&a, "100.64.0.0/23", "100.64.0.0/16").unwrap();
    assert!(
        wider.lent.is_empty() && wider.withdrawn.is_empty(),
        "nets as before"
    );
    a.apply(wider);
    let finer = change(&a, "100.64.0.0/23}", "100.64.0.0/16, net-length: 25}").unwrap();
    let nets = |nets: &[(GroupId, Net)]| {
        nets.iter()
            .map(|(_, n)| n.net.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(nets(&finer.lent), ["100.64.1.0/25"]);
    assert_eq!(nets(&finer.withdrawn), ["100.64.1.0/24"]);
    a.apply(finer);
    assert_eq!(give(&mut a, Some("100.64.1.9")), Err(PoolError::InUse));
    assert!(take(&mut a, has.prefix).is_some());
    assert!(change(&a, "ipv4-pools: {homes:", "ipv4-pools: {others:").is_ok());
}

#[test]
fn a_new_pool_leaves_fixed_addresses_alone() {
    let mut a = addresses();
    give(&mut a, Some("203.0.113.7")).unwrap();
    let (configuration, topology) =
        world(&POOLS.replace("}}\nipv6", "}, new: {prefix: 203.0.113.0/24}}\nipv6"));
    let faults = a.change(&configuration, &topology).err().expect("a fault");
    assert!(faults[0].to_string().contains("203.0.113.7"), "{faults:?}");
}

/// Each user plane announces what its own subscribers have: one group the net, another the one address in it.
#[test]
fn a_fixed_address_in_a_net_of_another_group_is_announced_by_itself() {
    let mut a = addresses();
    let first = give(&mut a, None).unwrap();
    let fixed = host("100.64.0.9");
    let given = fix(&mut a, OTHER, Kind::Ipv4Address, fixed).unwrap();
    assert_eq!((given.new_net, given.is_alone), (None, true));
    let net = Net {
        instance: HERE,
        net: fixed,
    };
    let (group, of_pool) = a.net_of(net).unwrap();
    assert_eq!((group, Some(of_pool)), (HOME.group, first.new_net));
    // The net stays as long as somebody has an address of it, and is taken from the group that has it.
    assert_eq!(take(&mut a, first.prefix), None);
    assert_eq!(take(&mut a, fixed), Some((HOME.group, of_pool)));
}

#[test]
fn a_prefix_that_overlaps_a_pool_is_refused_by_name() {
    let mut a = addresses();
    for (net, pool) in [
        ("100.64.1.0/29", "100.64.0.0/23"),
        ("100.64.0.0/10", "100.64.0.0/23"),
        ("2001:db8:0:7700::/56", "2001:db8::/48"),
    ] {
        let pool = pool.parse().unwrap();
        let given = a.give_prefix(HOME, prefix(net), &Bindings::default());
        assert_eq!(given, Err(PoolError::OverlapsPool(pool)));
    }
    let elsewhere = Holder {
        instance: InstanceId(1),
        ..HOME
    };
    let net = "100.64.1.0/29".parse().unwrap();
    assert_eq!(a.give_prefix(elsewhere, net, &Bindings::default()), Ok(()));
}

/// After a restart a session has its bindings again, and nobody else can have them meanwhile.
#[test]
fn bindings_of_every_role_are_allocated_again() {
    for (role, prefix, is_announced) in [
        (Role::Host, "100.64.0.9/32", false),
        (Role::Host, "203.0.113.1/32", true),
        (Role::Host, "2001:db8:5::1/128", true),
        (Role::Link, "2001:db8:0:7::/64", false),
        (Role::Link, "2001:db8:6:7::/64", true),
        (Role::Delegated, "2001:db8:7700::/56", true),
        (Role::Delegated, "2001:db8:40:300::/56", false),
        (Role::Host, "2001:db8:50::3/128", false),
        (Role::Route, "203.0.113.0/29", true),
        (Role::Route, "2001:db8:ff::/48", true),
    ] {
        let mut a = addresses();
        let (binding, none) = (
            Binding::new(role, prefix.parse().unwrap()),
            Bindings::default(),
        );
        let (again, new_net) = a.give_binding(HOME, &binding, &none).unwrap();
        let expected = Binding {
            is_announced,
            ..binding
        };
        assert_eq!(again, expected);
        assert_eq!(new_net.is_none(), is_announced, "{binding}");
        assert_eq!(
            a.give_binding(OTHER, &binding, &none),
            Err(PoolError::InUse)
        );
        take(&mut a, binding.prefix);
        assert_eq!(a.given().count(), 0, "{binding}");
        assert!(a.give_binding(OTHER, &binding, &none).is_ok(), "{binding}");
    }
}

#[test]
fn each_kind_is_of_its_own_pools() {
    let mut a = addresses();
    for (kind, first, second, block) in [
        (
            Kind::Link,
            "2001:db8::/64",
            "2001:db8:0:1::/64",
            "2001:db8::/56",
        ),
        (
            Kind::Ipv6Address,
            "2001:db8:50::/128",
            "2001:db8:50::1/128",
            "2001:db8:50::/120",
        ),
    ] {
        let (one, two) = (any(&mut a, kind).unwrap(), any(&mut a, kind).unwrap());
        assert_eq!((one.prefix, two.prefix), (prefix(first), prefix(second)));
        assert_eq!(one.new_net.unwrap().net, prefix(block));
    }
    let lans = ["routers".to_owned(), "lans".to_owned()];
    let given = a.allocate(HOME, Kind::Delegated, &lans, std::iter::empty());
    let given = given.unwrap().unwrap();
    assert_eq!(given.prefix, prefix("2001:db8:40::/56"));
    assert_eq!(given.new_net.unwrap().net, prefix("2001:db8:40::/48"));
    let routers = ["routers".to_owned()];
    assert!(
        a.allocate(HOME, Kind::Link, &routers, std::iter::empty())
            .is_none()
    );
}

#[test]
fn a_subscriber_gets_what_it_had_from_whichever_pool_that_is() {
    let mut a = addresses();
    let lans = ["homes".to_owned(), "lans".to_owned()];
    let before = [
        prefix("100.64.0.9/32"),
        prefix("2001:db8:41:500::/56"),
        prefix("2001:db8:0:9::/64"),
    ];
    let mut give = |holder, before: &[IpNet]| {
        let given = a.allocate(holder, Kind::Delegated, &lans, before.iter().copied());
        given.unwrap().unwrap().prefix
    };
    assert_eq!(give(HOME, &before), before[1]);
    assert_eq!(give(HOME, &before), before[2], "the other one is in use");
    assert_eq!(give(HOME, &before), prefix("2001:db8::/64"));
    assert_eq!(
        give(OTHER, &[prefix("2001:db8:41:600::/56")]),
        prefix("2001:db8:0:100::/64"),
        "of another group's block"
    );
}

/// AAA may give the router an address in the prefix of its link (RFC 6911 §2.1), or a route in its delegated prefix.
#[test]
fn what_is_inside_a_sessions_own_prefix_of_a_pool_is_its_own() {
    let mut a = addresses();
    let link = any(&mut a, Kind::Link).unwrap().prefix;
    let own = Bindings::new([Binding::new(Role::Link, link)]).unwrap();
    let router = host("2001:db8::2");
    let refused = fix(&mut a, OTHER, Kind::Ipv6Address, router);
    assert!(matches!(refused, Err(PoolError::OverlapsPool(_))));
    let given = a.give_fixed(HOME, Kind::Ipv6Address, router, &own).unwrap();
    assert_eq!(
        (given.new_net, given.is_alone),
        (None, false),
        "the link's block covers it"
    );
    let taken = a.give_fixed(OTHER, Kind::Ipv6Address, router, &own);
    assert_eq!(taken, Err(PoolError::InUse));
    // it is no obstacle to a change of the pool
    let (configuration, topology) =
        world(&POOLS.replace("2001:db8::/48'", "2001:db8::/48', net-length: 60"));
    let change = a.change(&configuration, &topology).unwrap();
    a.apply(change);
    take(&mut a, link);
    take(&mut a, router);
    assert_eq!(a.given().count(), 0);
}

/// What is excluded goes to nobody by itself, and those who have it keep it.
#[test]
fn an_exclusion_is_a_live_change() {
    let mut a = addresses();
    let has = give(&mut a, None).unwrap();
    let (configuration, topology) = world(&POOLS.replace(
        "0.0/23",
        "0.0/23, exclude: [100.64.0.0/24, 100.64.1.1-100.64.1.4]",
    ));
    let change = a.change(&configuration, &topology).unwrap();
    assert!(change.lent.is_empty() && change.withdrawn.is_empty());
    a.apply(change);
    assert_eq!(
        give(&mut a, Some("100.64.0.2")),
        Err(PoolError::InUse),
        "who has it keeps it"
    );
    let next = give(&mut a, None).unwrap();
    assert_eq!(next.prefix, host("100.64.1.5"));
    let block = prefix("100.64.0.0/24");
    assert_eq!(take(&mut a, has.prefix).unwrap().1.net, block);
    let again = a.allocate(HOME, Kind::Ipv4Address, &[], [has.prefix].into_iter());
    assert_eq!(again.unwrap().unwrap().prefix, host("100.64.1.6"));
    assert!(
        give(&mut a, Some("100.64.0.2")).is_ok(),
        "AAA may still give it"
    );
}
