use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn v4(prefix: &str, length: u8, own: &[&str]) -> Pool<u8> {
    let own = own.iter().map(|address| address.parse().unwrap());
    let settings = PoolSettings {
        own: own.collect(),
        ..PoolSettings::new(net(prefix), length, 32)
    };
    Pool::new(&settings).unwrap()
}

fn v6(prefix: &str, length: u8, unit_length: u8) -> Pool<u8> {
    Pool::new(&PoolSettings::new(net(prefix), length, unit_length)).unwrap()
}

fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

fn host(text: &str) -> IpNet {
    let address: IpAddr = text.parse().unwrap();
    address.into()
}

fn units(pool: &mut Pool<u8>, count: usize) -> Vec<IpNet> {
    (0..count).map(|_| pool.allocate(0).unwrap().unit).collect()
}

#[test]
fn leaves_out_both_ends_of_a_net_and_the_gateway() {
    let mut pool = v4("10.0.0.0/24", 29, &["10.0.0.1", "10.0.0.6"]);
    let hosts = [2, 3, 4, 5, 9, 10, 11, 12];
    let hosts = hosts.map(|last| host(&format!("10.0.0.{last}")));
    assert_eq!(units(&mut pool, 8), hosts);
}

#[test]
fn gives_prefixes_of_every_length() {
    for (length, block, first, second, others) in [
        (
            64,
            56,
            "2001:db8::/64",
            "2001:db8:0:1::/64",
            "2001:db8:0:100::/64",
        ),
        (
            56,
            48,
            "2001:db8::/56",
            "2001:db8:0:100::/56",
            "2001:db8:1::/56",
        ),
        (
            60,
            48,
            "2001:db8::/60",
            "2001:db8:0:10::/60",
            "2001:db8:1::/60",
        ),
        (
            44,
            40,
            "2001:db8::/44",
            "2001:db8:10::/44",
            "2001:db8:100::/44",
        ),
        (
            128,
            120,
            "2001:db8::/128",
            "2001:db8::1/128",
            "2001:db8::100/128",
        ),
    ] {
        let prefix = if length == 128 {
            "2001:db8::/64"
        } else {
            "2001:db8::/32"
        };
        let mut pool = v6(prefix, block, length);
        let lease = pool.allocate(0).unwrap();
        assert_eq!(lease.unit, net(first));
        let announced = IpNet::new(lease.unit.addr(), block).unwrap();
        assert_eq!(lease.new_net, Some(announced));
        assert_eq!(pool.allocate(0).unwrap().unit, net(second));
        assert_eq!(pool.allocate(1).unwrap().unit, net(others));
        let shorter = IpNet::new(lease.unit.addr(), length - 1).unwrap();
        assert_eq!(pool.reserve(0, shorter), Err(PoolError::Foreign));
        assert_eq!(pool.reserve(0, net(second)), Err(PoolError::InUse));
    }
}

/// What is excluded is for those to whom AAA gives it, and for those who had it before.
#[test]
fn excluded_units_are_given_on_request_only() {
    let range = |first: &str, last: &str| first.parse().unwrap()..=last.parse().unwrap();
    let mut pool: Pool<u8> = Pool::new(&PoolSettings {
        own: vec!["10.0.0.1".parse().unwrap()],
        excluded: vec![
            range("10.0.0.0", "10.0.0.9"),
            range("10.0.0.12", "10.0.0.12"),
        ],
        ..PoolSettings::new(net("10.0.0.0/27"), 29, 32)
    })
    .unwrap();
    assert_eq!(
        pool.size(),
        4 + 12,
        "no unit of the first block, two less of the second"
    );
    let reserved = pool.reserve(0, host("10.0.0.3")).unwrap();
    assert_eq!(reserved.new_net, Some(net("10.0.0.0/29")));
    assert_eq!(pool.reserve(0, host("10.0.0.1")), Err(PoolError::Excluded));
    assert_eq!(pool.allocate_again(0, host("10.0.0.4")), None);
    let first = [
        "10.0.0.10",
        "10.0.0.11",
        "10.0.0.13",
        "10.0.0.14",
        "10.0.0.17",
    ];
    let first = first.map(host);
    assert_eq!(units(&mut pool, 5)[..4], first[..4], "not .9 and not .12");
    let released = pool.release(host("10.0.0.3")).unwrap();
    assert_eq!(released, Some((0, net("10.0.0.0/29"))));
    let left = pool.size() - 5;
    assert_eq!(units(&mut pool, left as usize).len(), 11);
    assert_eq!(pool.allocate(0), Err(PoolError::Exhausted));
    assert!(pool.reserve(0, host("10.0.0.12")).is_ok());
    let size = pool.size();
    assert_eq!((pool.used(), pool.used_of_size()), (size + 1, size));
    pool.release(host("10.0.0.12")).unwrap();
    assert_eq!((pool.used(), pool.used_of_size()), (size, size));
}

#[test]
fn the_last_block_that_others_can_use_is_left_to_them() {
    let mut pool: Pool<u8> = Pool::new(&PoolSettings {
        excluded: vec!["10.0.0.8".parse().unwrap()..="10.0.0.15".parse().unwrap()],
        ..PoolSettings::new(net("10.0.0.0/27"), 29, 32)
    })
    .unwrap();
    pool.allocate(0).unwrap();
    let again = pool.allocate_again(0, host("10.0.0.18")).unwrap();
    assert_eq!(again.new_net, Some(net("10.0.0.16/29")));
    let last = pool.allocate_again(0, host("10.0.0.26"));
    assert_eq!(last, None, "nobody gets anything of the excluded one");
    pool.release(again.unit).unwrap();
    assert!(pool.allocate_again(0, host("10.0.0.26")).is_some());
}

#[test]
fn a_subscriber_gets_its_unit_again_where_that_takes_nothing_from_others() {
    let mut pool = v4("10.0.0.0/27", 29, &[]);
    let had = units(&mut pool, 8);
    for unit in &had[1..] {
        pool.release(*unit).unwrap();
    }
    assert_eq!(
        pool.allocate(0).unwrap().unit,
        host("10.0.0.2"),
        "the longest free"
    );
    assert_eq!(pool.allocate_again(0, had[4]).unwrap().unit, had[4]);
    assert_eq!(pool.allocate_again(0, had[4]), None, "in use");
    assert_eq!(pool.allocate_again(0, net("10.0.0.0/30")), None, "no unit");
    // its block is free, and so are others
    let again = pool.allocate_again(0, had[7]).unwrap();
    assert_eq!(again.new_net, Some(net("10.0.0.8/29")));
    assert_eq!(
        pool.allocate_again(1, had[5]),
        None,
        "another group has its block"
    );
    pool.allocate(1).unwrap();
    assert_eq!(
        pool.allocate_again(0, host("10.0.0.25")),
        None,
        "the last free block"
    );
    assert!(
        pool.allocate_again(2, host("10.0.0.25")).is_some(),
        "it needs a block anyway"
    );
}

#[test]
fn what_was_freed_rests_behind_the_others() {
    let mut pool = v4("10.0.0.0/28", 29, &[]);
    let first = units(&mut pool, 3);
    pool.release(first[1]).unwrap();
    pool.release(first[0]).unwrap();
    let then = ["10.0.0.4", "10.0.0.5", "10.0.0.6", "10.0.0.2", "10.0.0.1"];
    assert_eq!(units(&mut pool, 5), then.map(host));
}

#[test]
fn a_net_given_back_rests_behind_the_others() {
    let mut pool = v4("10.0.0.0/28", 30, &[]);
    for third in [0, 4, 8, 12, 0, 4] {
        let lease = pool.allocate(0).unwrap();
        assert_eq!(lease.unit, host(&format!("10.0.0.{}", third + 1)));
        let released = pool.release(lease.unit).unwrap();
        assert_eq!(released, lease.new_net.map(|net| (0, net)));
    }
}

#[test]
fn a_block_that_is_passed_on_is_the_other_groups() {
    let mut pool = v4("10.0.0.0/28", 29, &[]);
    let given = units(&mut pool, 2);
    pool.pass_on(net("10.0.0.0/29"), 1);
    let lent = |pool: &Pool<u8>| pool.lent_nets().collect::<Vec<_>>();
    assert_eq!(lent(&pool), [(1, net("10.0.0.0/29"))]);
    let own = pool.allocate(1).unwrap();
    assert_eq!((own.unit, own.new_net), (host("10.0.0.3"), None));
    let other = pool.allocate(0).unwrap();
    assert_eq!(other.new_net, Some(net("10.0.0.8/29")));
    for unit in [given[0], given[1], other.unit] {
        pool.release(unit).unwrap();
    }
    let released = pool.release(own.unit).unwrap();
    assert_eq!(released, Some((1, net("10.0.0.0/29"))));
    assert_eq!((lent(&pool), pool.used()), (vec![], 0));
}

#[test]
fn a_full_pool_says_so_and_serves_the_next_release() {
    let mut pool = v4("10.0.0.0/29", 29, &[]);
    let given = units(&mut pool, 6);
    assert_eq!(pool.allocate(0), Err(PoolError::Exhausted));
    assert_eq!(pool.allocate(1), Err(PoolError::Exhausted));
    pool.release(given[3]).unwrap();
    assert_eq!(pool.allocate(0).unwrap().unit, given[3]);
}

#[test]
fn a_certain_address_can_be_reserved_once() {
    let mut pool = v4("10.0.0.0/24", 29, &["10.0.0.9"]);
    let lease = pool.reserve(0, host("10.0.0.10")).unwrap();
    assert_eq!(lease.new_net, Some(net("10.0.0.8/29")));
    assert_eq!(pool.reserve(0, host("10.0.0.10")), Err(PoolError::InUse));
    assert_eq!((lease.net_of, lease.unit), (0, host("10.0.0.10")));
    assert_eq!(pool.reserve(0, host("10.0.0.9")), Err(PoolError::Excluded));
    assert_eq!(pool.reserve(0, host("10.0.0.15")), Err(PoolError::Excluded));
    assert_eq!(pool.reserve(0, host("10.0.1.1")), Err(PoolError::Foreign));
    assert_eq!(
        pool.reserve(0, host("9.255.255.255")),
        Err(PoolError::Foreign)
    );
    assert_eq!(pool.allocate(0).unwrap().unit, host("10.0.0.11"));
    let lent: Vec<_> = pool.lent_nets().collect();
    assert_eq!(lent, [(0, net("10.0.0.8/29"))]);
}

#[test]
fn a_certain_address_in_a_net_of_another_group_is_given_as_such() {
    let mut pool = v4("10.0.0.0/24", 29, &[]);
    let block = net("10.0.0.0/29");
    let own = pool.allocate(0).unwrap();
    let foreign = pool.reserve(1, host("10.0.0.4")).unwrap();
    assert_eq!((foreign.net_of, foreign.new_net), (0, None));
    assert_eq!(pool.net_of(foreign.unit), Some((Some(0), block)));
    assert_eq!(pool.release(own.unit), Ok(None), "somebody is in it yet");
    assert_ne!(
        pool.allocate(1).unwrap().net_of,
        0,
        "it has a net of its own"
    );
    assert_eq!(pool.release(foreign.unit), Ok(Some((0, block))));
    assert_eq!(pool.net_of(foreign.unit), Some((None, block)));
}

#[test]
fn what_nobody_has_cannot_be_released() {
    let mut pool = v4("10.0.0.0/24", 29, &[]);
    assert_eq!(pool.release(host("10.0.0.1")), Err(PoolError::NotInUse));
    let lease = pool.allocate(0).unwrap();
    pool.release(lease.unit).unwrap();
    assert_eq!(pool.release(lease.unit), Err(PoolError::NotInUse));
}

#[test]
fn lengths_that_make_no_sense_are_refused() {
    let new = |prefix: &str, length| {
        let settings = PoolSettings::new(net(prefix), length, 32);
        Pool::<u8>::new(&settings).err()
    };
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
    let too_long = PoolSettings::new(net("10.0.0.0/24"), 32, 40);
    assert!(Pool::<u8>::new(&too_long).is_err());
}

/// 40,000 allocated blocks have room for 10,240,000 addresses. With a scan of them in any of these calls it would take hours.
#[test]
fn the_units_of_forty_thousand_blocks_are_never_looked_through() {
    const BLOCKS: u32 = 40_000;
    let address = |second, third, last| IpAddr::from([10, second, third, last]);
    let excluded = (0..100).map(|second| address(second, 7, 7)..=address(second, 7, 9));
    let settings = PoolSettings {
        own: vec![address(0, 0, 1)],
        excluded: excluded.collect(),
        ..PoolSettings::new(net("10.0.0.0/8"), 24, 32)
    };
    let mut pool: Pool<u32> = Pool::new(&settings).unwrap();
    let unit = |block: u32, last: u128| u128::from(block) * 256 + last;
    for block in 0..BLOCKS {
        for last in [20, 21] {
            let own = pool.space.unit(unit(block, last));
            pool.reserve(block % 50, own).unwrap();
        }
    }
    assert_eq!(pool.lent.len() as u32, BLOCKS);
    for block in 0..BLOCKS {
        let own = pool.space.unit(unit(block, 20));
        assert_eq!(pool.release(own), Ok(None));
        let again = pool.allocate_again(block % 50, own).unwrap();
        assert_eq!((again.unit, again.net_of), (own, block % 50));
        let other = pool.allocate(block % 50).unwrap();
        assert_eq!(other.new_net, None);
        pool.release(other.unit).unwrap();
        let block = pool.net_of(own).unwrap().1;
        pool.pass_on(block, 50 + again.net_of);
    }
    let freed = (0..BLOCKS).filter(|block| {
        let own = [unit(*block, 20), unit(*block, 21)].map(|number| pool.space.unit(number));
        own.map(|unit| pool.release(unit).unwrap())[1].is_some()
    });
    assert_eq!(freed.count() as u32, BLOCKS);
    assert_eq!((pool.used(), pool.lent.len(), pool.groups.len()), (0, 0, 0));
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

fn block(unit: IpNet) -> IpNet {
    IpNet::new(unit.addr(), 29).unwrap().trunc()
}

/// The same, the plain way: who has what, and which net is whose.
#[derive(Default)]
struct Model {
    used: Vec<(u8, IpNet)>,
    nets: BTreeSet<(u8, IpNet)>,
}

impl Model {
    fn gained(&mut self, asked: u8, lease: Lease<u8>) {
        let net = block(lease.unit);
        let holder = self.nets.iter().find(|(_, lent)| *lent == net);
        let group = holder.map_or(asked, |(group, _)| *group);
        assert_eq!(lease.net_of, group);
        assert!(
            self.used.iter().all(|&(_, used)| used != lease.unit),
            "given twice: {lease:?}"
        );
        let never = [net.network(), net.broadcast(), [10, 0, 0, 1].into()];
        assert!(!never.contains(&lease.unit.addr()));
        assert_eq!(lease.new_net, self.nets.insert((group, net)).then_some(net));
        assert!(
            self.nets
                .iter()
                .all(|&(owner, lent)| lent != net || owner == group),
            "lent twice: {net}"
        );
        self.used.push((group, lease.unit));
    }

    fn lost(&mut self, index: usize, freed: Option<(u8, IpNet)>) {
        let (group, unit) = self.used.remove(index);
        let net = block(unit);
        let left = self.used.iter().any(|(_, used)| net.contains(used));
        assert_eq!(freed, (!left).then_some((group, net)));
        if !left {
            self.nets.remove(&(group, net));
        }
    }

    /// Whether the group has nothing left: its nets full and every net lent.
    fn is_exhausted(&self, group: u8) -> bool {
        let free = |&(owner, net): &(u8, IpNet)| {
            let usable = if net.contains(&host("10.0.0.1")) {
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
                Step::Reserve(group, last) => {
                    if let Ok(lease) = pool.reserve(group, IpAddr::from([10, 0, 0, last]).into()) {
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
            let mut nets: Vec<_> = pool.lent_nets().collect();
            nets.sort();
            prop_assert_eq!(nets, model.nets.iter().copied().collect::<Vec<_>>());
            for (group, share) in pool.shares() {
                let nets = model.nets.iter().filter(|(owner, _)| *owner == group).count();
                let used = model.used.iter().filter(|(owner, _)| *owner == group).count();
                prop_assert_eq!((share.nets, share.used), (nets as u64, used as u64));
            }
        }
        while let Some(&(_, unit)) = model.used.first() {
            model.lost(0, pool.release(unit).unwrap());
        }
        prop_assert_eq!((pool.lent.len(), model.nets.len()), (0, 0));
    }
}
