use super::*;
use crate::topology::Numbers;
use std::sync::Arc;

const POOLS: &str = "ipv4-pools: {homes: {prefix: 100.64.0.0/23}}
ipv6-pools: {homes: {prefix: '2001:db8::/48'}}
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

fn host(address: Ipv4Addr) -> Ipv4Net {
    address.into()
}

fn give(addresses: &mut Addresses, fixed: Option<&str>) -> Result<Given<Ipv4Addr>, PoolError> {
    let fixed = fixed.map(|address| address.parse().unwrap());
    addresses.give_ipv4(HOME, &[], fixed).expect("a pool")
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
        (one.address, one.new_net),
        ("100.64.0.2".parse().unwrap(), Some(net)),
        "not the gateway's"
    );
    let two = give(&mut a, None).unwrap();
    assert_eq!(two.new_net, None);
    let freed = Some((HOME.group, net));
    assert_eq!(take(&mut a, host(one.address)), None);
    assert_eq!(take(&mut a, host(two.address)), freed);
    assert_eq!(take(&mut a, host(two.address)), None, "already back");
    let short = Some("2001:db8:1::/56".parse().unwrap());
    assert_eq!(a.give_ipv6(HOME, &[], short), Some(Err(PoolError::Foreign)));
    let six = a.give_ipv6(HOME, &[], None).unwrap().unwrap();
    let freed = six.new_net.map(|net| (HOME.group, net));
    assert_eq!(take(&mut a, six.address), freed);
}

#[test]
fn fixed_addresses_inside_and_outside_of_the_pool() {
    let mut a = addresses();
    assert!(give(&mut a, Some("100.64.1.9")).unwrap().new_net.is_some());
    assert_eq!(give(&mut a, Some("100.64.1.9")), Err(PoolError::InUse));
    let given = give(&mut a, Some("203.0.113.7")).unwrap();
    assert_eq!((given.new_net, given.is_alone), (None, true));
    assert_eq!(give(&mut a, Some("203.0.113.7")), Err(PoolError::InUse));
    assert_eq!(take(&mut a, host(given.address)), None);
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
        let given = a.give_ipv4(HOME, pools, None).unwrap();
        given.map(|given| given.address.to_string())
    };
    let in_order: Vec<_> = (0..3).map(|_| give(&mut a, &named).unwrap()).collect();
    assert_eq!(in_order, ["100.64.1.1", "100.64.1.2", "100.64.0.2"]);
    assert_eq!(
        give(&mut a, &[]),
        Err(PoolError::Exhausted),
        "not of another instance"
    );
    assert!(a.give_ipv4(HOME, &["c".to_owned()], None).is_none());
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
    assert!(take(&mut a, host(has.address)).is_some());
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
    let fixed = "100.64.0.9".parse().unwrap();
    let given = a.give_ipv4(OTHER, &[], Some(fixed)).unwrap().unwrap();
    assert_eq!((given.new_net, given.is_alone), (None, true));
    let net = Net {
        instance: HERE,
        net: host(fixed).into(),
    };
    let (group, of_pool) = a.net_of(net).unwrap();
    assert_eq!((group, Some(of_pool)), (HOME.group, first.new_net));
    // The net stays as long as somebody has an address of it, and is taken from the group that has it.
    assert_eq!(take(&mut a, host(first.address)), None);
    assert_eq!(take(&mut a, host(fixed)), Some((HOME.group, of_pool)));
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
        let given = a.give_prefix(HOME, net.parse().unwrap());
        assert_eq!(given, Err(PoolError::OverlapsPool(pool)));
    }
    let elsewhere = Holder {
        instance: InstanceId(1),
        ..HOME
    };
    let net = "100.64.1.0/29".parse().unwrap();
    assert_eq!(a.give_prefix(elsewhere, net), Ok(()));
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
        (Role::Route, "203.0.113.0/29", true),
        (Role::Route, "2001:db8:ff::/48", true),
    ] {
        let mut a = addresses();
        let binding = Binding::new(role, prefix.parse().unwrap());
        let (again, new_net) = a.give_binding(HOME, &binding).unwrap();
        let expected = Binding {
            is_announced,
            ..binding
        };
        assert_eq!(again, expected);
        assert_eq!(new_net.is_none(), is_announced, "{binding}");
        assert_eq!(a.give_binding(OTHER, &binding), Err(PoolError::InUse));
        take(&mut a, binding.prefix);
        assert_eq!(a.given().count(), 0, "{binding}");
        assert!(a.give_binding(OTHER, &binding).is_ok(), "{binding}");
    }
}
