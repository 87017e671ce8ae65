use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn v4(prefix: &str, length: u8, excluded: &[&str]) -> Ipv4Pool<u8> {
    let excluded: Vec<Ipv4Addr> = excluded
        .iter()
        .map(|address| address.parse().unwrap())
        .collect();
    Pool::new(prefix.parse().unwrap(), length, &excluded).unwrap()
}

fn address(text: &str) -> Ipv4Addr {
    text.parse().unwrap()
}

#[test]
fn leaves_out_both_ends_of_a_net_and_the_gateway() {
    let mut pool = v4("10.0.0.0/24", 29, &["10.0.0.1", "10.0.0.6"]);
    let given: Vec<String> = (0..8)
        .map(|_| pool.allocate(0).unwrap().address.to_string())
        .collect();
    let hosts = [2, 3, 4, 5, 9, 10, 11, 12];
    assert_eq!(given, hosts.map(|host| format!("10.0.0.{host}")));
}

#[test]
fn gives_prefixes_of_64_bits() {
    let mut pool: Ipv6Pool<u8> = Pool::new("2001:db8::/48".parse().unwrap(), 56, &[]).unwrap();
    let lease = pool.allocate(0).unwrap();
    assert_eq!(lease.address, "2001:db8::/64".parse().unwrap());
    assert_eq!(lease.new_net, Some("2001:db8::/56".parse().unwrap()));
    assert_eq!(
        pool.allocate(0).unwrap().address,
        "2001:db8:0:1::/64".parse().unwrap()
    );
    assert_eq!(
        pool.allocate(1).unwrap().address,
        "2001:db8:0:100::/64".parse().unwrap()
    );
    assert_eq!(
        pool.reserve(0, "2001:db8::/60".parse().unwrap()),
        Err(PoolError::Foreign)
    );
}

#[test]
fn what_was_freed_rests_behind_the_others() {
    let mut pool = v4("10.0.0.0/28", 29, &[]);
    let first: Vec<_> = (0..3).map(|_| pool.allocate(0).unwrap().address).collect();
    pool.release(first[1]).unwrap();
    pool.release(first[0]).unwrap();
    let then: Vec<_> = (0..5).map(|_| pool.allocate(0).unwrap().address).collect();
    assert_eq!(
        then,
        ["10.0.0.4", "10.0.0.5", "10.0.0.6", "10.0.0.2", "10.0.0.1"].map(address)
    );
}

#[test]
fn a_net_given_back_rests_behind_the_others() {
    let mut pool = v4("10.0.0.0/28", 30, &[]);
    for third in [0, 4, 8, 12, 0, 4] {
        let lease = pool.allocate(0).unwrap();
        assert_eq!(lease.address, Ipv4Addr::new(10, 0, 0, third + 1));
        let released = pool.release(lease.address).unwrap();
        assert_eq!(released, lease.new_net.map(|net| (0, net)));
    }
}

#[test]
fn a_block_that_is_passed_on_is_the_other_groups() {
    let mut pool = v4("10.0.0.0/28", 29, &[]);
    let given: Vec<_> = (0..2).map(|_| pool.allocate(0).unwrap().address).collect();
    pool.pass_on("10.0.0.0/29".parse().unwrap(), 1);
    let lent = |pool: &Ipv4Pool<u8>| pool.lent_nets().collect::<Vec<_>>();
    assert_eq!(lent(&pool), [(1, "10.0.0.0/29".parse().unwrap())]);
    let own = pool.allocate(1).unwrap();
    assert_eq!((own.address, own.new_net), (address("10.0.0.3"), None));
    let other = pool.allocate(0).unwrap();
    assert_eq!(other.new_net, Some("10.0.0.8/29".parse().unwrap()));
    for address in [given[0], given[1], other.address] {
        pool.release(address).unwrap();
    }
    let released = pool.release(own.address).unwrap();
    assert_eq!(released, Some((1, "10.0.0.0/29".parse().unwrap())));
    assert_eq!((lent(&pool), pool.used()), (vec![], 0));
}

#[test]
fn a_full_pool_says_so_and_serves_the_next_release() {
    let mut pool = v4("10.0.0.0/29", 29, &[]);
    let given: Vec<_> = (0..6).map(|_| pool.allocate(0).unwrap().address).collect();
    assert_eq!(pool.allocate(0), Err(PoolError::Exhausted));
    assert_eq!(pool.allocate(1), Err(PoolError::Exhausted));
    pool.release(given[3]).unwrap();
    assert_eq!(pool.allocate(0).unwrap().address, given[3]);
}

#[test]
fn a_certain_address_can_be_reserved_once() {
    let mut pool = v4("10.0.0.0/24", 29, &["10.0.0.9"]);
    let lease = pool.reserve(0, address("10.0.0.10")).unwrap();
    assert_eq!(lease.new_net, Some("10.0.0.8/29".parse().unwrap()));
    assert_eq!(pool.reserve(0, address("10.0.0.10")), Err(PoolError::InUse));
    assert_eq!((lease.net_of, lease.address), (0, address("10.0.0.10")));
    assert_eq!(
        pool.reserve(0, address("10.0.0.9")),
        Err(PoolError::Excluded)
    );
    assert_eq!(
        pool.reserve(0, address("10.0.0.15")),
        Err(PoolError::Excluded)
    );
    assert_eq!(
        pool.reserve(0, address("10.0.1.1")),
        Err(PoolError::Foreign)
    );
    assert_eq!(
        pool.reserve(0, address("9.255.255.255")),
        Err(PoolError::Foreign)
    );
    assert_eq!(pool.allocate(0).unwrap().address, address("10.0.0.11"));
    assert_eq!(
        pool.nets(0).collect::<Vec<_>>(),
        ["10.0.0.8/29".parse().unwrap()]
    );
}

#[test]
fn a_certain_address_in_a_net_of_another_group_is_given_as_such() {
    let mut pool = v4("10.0.0.0/24", 29, &[]);
    let net = "10.0.0.0/29".parse().unwrap();
    let own = pool.allocate(0).unwrap();
    let foreign = pool.reserve(1, address("10.0.0.4")).unwrap();
    assert_eq!((foreign.net_of, foreign.new_net), (0, None));
    assert_eq!(pool.net_of(foreign.address), Some((Some(0), net)));
    assert_eq!(pool.release(own.address), Ok(None), "somebody is in it yet");
    assert_ne!(
        pool.allocate(1).unwrap().net_of,
        0,
        "it has a net of its own"
    );
    assert_eq!(pool.release(foreign.address), Ok(Some((0, net))));
    assert_eq!(pool.net_of(foreign.address), Some((None, net)));
}

#[test]
fn what_nobody_has_cannot_be_released() {
    let mut pool = v4("10.0.0.0/24", 29, &[]);
    assert_eq!(pool.release(address("10.0.0.1")), Err(PoolError::NotInUse));
    let lease = pool.allocate(0).unwrap();
    pool.release(lease.address).unwrap();
    assert_eq!(pool.release(lease.address), Err(PoolError::NotInUse));
}

#[test]
fn lengths_that_make_no_sense_are_refused() {
    let new =
        |prefix: &str, length| Ipv4Pool::<u8>::new(prefix.parse().unwrap(), length, &[]).err();
    assert_eq!(
        new("10.0.0.0/24", 23),
        Some(BadPool::NetLength {
            net: 23,
            prefix: 24,
            unit: 32
        })
    );
    assert_eq!(
        new("10.0.0.0/24", 33),
        Some(BadPool::NetLength {
            net: 33,
            prefix: 24,
            unit: 32
        })
    );
    assert_eq!(new("10.0.0.0/8", 12), Some(BadPool::NetTooLarge(12)));
    assert_eq!(new("10.0.0.0/24", 32), None);
}

#[test]
fn a_hundred_thousand_sessions_come_and_go() {
    let mut pool: Ipv6Pool<u8> = Pool::new("2001:db8::/32".parse().unwrap(), 56, &[]).unwrap();
    let given: Vec<_> = (0..131_072)
        .map(|session| pool.allocate((session % 7) as u8).unwrap().address)
        .collect();
    assert_eq!(pool.used(), 131_072);
    assert!(pool.lent() < 131_072 / 256 + 7);
    let freed = given
        .into_iter()
        .filter_map(|prefix| pool.release(prefix).unwrap())
        .count();
    assert!(freed >= 512);
    assert_eq!((pool.used(), pool.lent(), pool.groups.len()), (0, 0, 0));
    assert_eq!(size_of::<Unit>(), 8);
}

#[derive(Clone, Debug)]
enum Step {
    Allocate(u8),
    Reserve(u8, u8),
    Release(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0u8..3).prop_map(Step::Allocate),
        1 => (0u8..3, any::<u8>()).prop_map(|(group, host)| Step::Reserve(group, host)),
        4 => any::<usize>().prop_map(Step::Release),
    ];
    prop::collection::vec(step, 1..300)
}

/// The same, the plain way: who has what, and which net is whose.
#[derive(Default)]
struct Model {
    used: Vec<(u8, Ipv4Addr)>,
    nets: BTreeSet<(u8, Ipv4Net)>,
}

impl Model {
    fn gained(&mut self, asked: u8, lease: Lease<Ipv4Net, u8>) {
        let net = Ipv4Net::new(lease.address, 29).unwrap().trunc();
        let holder = self.nets.iter().find(|(_, lent)| *lent == net);
        let group = holder.map_or(asked, |(group, _)| *group);
        assert_eq!(lease.net_of, group);
        assert!(
            self.used.iter().all(|&(_, used)| used != lease.address),
            "given twice: {lease:?}"
        );
        assert!(![net.network(), net.broadcast(), address("10.0.0.1")].contains(&lease.address));
        assert_eq!(lease.new_net, self.nets.insert((group, net)).then_some(net));
        assert!(
            self.nets
                .iter()
                .all(|&(owner, lent)| lent != net || owner == group),
            "lent twice: {net}"
        );
        self.used.push((group, lease.address));
    }

    fn lost(&mut self, index: usize, freed: Option<(u8, Ipv4Net)>) {
        let (group, address) = self.used.remove(index);
        let net = Ipv4Net::new(address, 29).unwrap().trunc();
        let left = self.used.iter().any(|(_, used)| net.contains(used));
        assert_eq!(freed, (!left).then_some((group, net)));
        if !left {
            self.nets.remove(&(group, net));
        }
    }

    /// Whether the group has nothing left: its nets full and every net lent.
    fn is_exhausted(&self, group: u8) -> bool {
        let free = |&(owner, net): &(u8, Ipv4Net)| {
            let usable = if net.contains(&address("10.0.0.1")) {
                5
            } else {
                6
            };
            owner == group
                && self
                    .used
                    .iter()
                    .filter(|(_, used)| net.contains(used))
                    .count()
                    < usable
        };
        self.nets.len() == 16 && !self.nets.iter().any(free)
    }
}

proptest! {
    #[test]
    fn keeps_to_a_plain_model(steps in steps()) {
        let (mut pool, mut model) = (v4("10.0.0.0/25", 29, &["10.0.0.1"]), Model::default());
        for step in steps {
            match step {
                Step::Allocate(group) => match pool.allocate(group) {
                    Ok(lease) => model.gained(group, lease),
                    Err(error) => {
                        prop_assert_eq!(error, PoolError::Exhausted);
                        prop_assert!(model.is_exhausted(group));
                    }
                },
                Step::Reserve(group, host) => {
                    if let Ok(lease) = pool.reserve(group, Ipv4Addr::new(10, 0, 0, host)) {
                        model.gained(group, lease);
                    }
                }
                Step::Release(index) if !model.used.is_empty() => {
                    let index = index % model.used.len();
                    model.lost(index, pool.release(model.used[index].1).unwrap());
                }
                Step::Release(_) => {}
            }
            prop_assert_eq!(pool.used(), model.used.len() as u64);
            for group in 0..3 {
                let nets: Vec<_> = model.nets.iter().filter(|(owner, _)| *owner == group).map(|(_, net)| *net).collect();
                prop_assert_eq!(pool.nets(group).collect::<Vec<_>>(), nets);
            }
        }
        while let Some(&(_, address)) = model.used.first() {
            model.lost(0, pool.release(address).unwrap());
        }
        prop_assert_eq!((pool.lent(), model.nets.len()), (0, 0));
    }
}
