//! Address pools, which allocate prefix blocks to subscriber groups.
//!
//! A [`Pool`] is one prefix in one network instance. It allocates prefix blocks to subscriber groups (by default a /24 of addresses, or a
//! /56 of /64 prefixes), and user planes announce them. A group without a free address gets another block, and releases a block in which
//! no address is in use. A released address is allocated again after all other free ones: first within the group, then, with its block,
//! within the pool. There is no randomness, so the same calls in the same order allocate the same addresses.
//!
//! Memory: 8 bytes for each address of the allocated blocks, nothing for the rest of the prefix.
//!
//! ```
//! use control::pool::Ipv4Pool;
//!
//! let gateway = "100.64.0.1".parse().unwrap();
//! let mut pool: Ipv4Pool<u32> = Ipv4Pool::new("100.64.0.0/10".parse().unwrap(), 24, &[gateway]).unwrap();
//! let group = 1;
//! let lease = pool.allocate(group).unwrap();
//! assert_eq!(lease.address, "100.64.0.2".parse::<std::net::Ipv4Addr>().unwrap()); // not .0, not the gateway
//! assert_eq!(lease.new_net, Some("100.64.0.0/24".parse().unwrap())); // to be announced
//! assert_eq!(pool.release(lease.address), Ok(Some((group, "100.64.0.0/24".parse().unwrap())))); // to be withdrawn
//! ```

use core::hash::Hash;
use core::net::{Ipv4Addr, Ipv6Addr};
use std::collections::{BTreeMap, HashMap, VecDeque};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

mod shares;

pub use shares::Share;

/// Pool of single IPv4 addresses.
pub type Ipv4Pool<G> = Pool<Ipv4Net, G>;

/// Pool of IPv6 prefixes of 64 bits.
pub type Ipv6Pool<G> = Pool<Ipv6Net, G>;

/// Address family of a pool. A *unit* is one subscriber's address or prefix.
pub trait Family: Copy + Eq + core::fmt::Debug + Into<IpNet> {
    /// Address or prefix of one subscriber.
    type Unit: Copy + Eq + core::fmt::Debug;
    /// Prefix length of a unit.
    const UNIT_LENGTH: u8;
    /// Whether the first and the last unit of a block are never allocated: some home routers reject .0 and .255 as their own address.
    const SKIP_ENDS: bool;

    /// Prefix length.
    fn length(self) -> u8;
    /// Number of the first unit among all units of the family.
    fn first(self) -> u64;
    /// Block of this length that begins at this unit.
    fn net(first: u64, length: u8) -> Self;
    /// Number of a unit; `None` for a prefix of another length.
    fn number(unit: Self::Unit) -> Option<u64>;
    /// Unit with this number.
    fn unit(number: u64) -> Self::Unit;
    /// Unit as a prefix.
    fn of_unit(unit: Self::Unit) -> IpNet;
    /// Unit that equals a prefix; `None` for a prefix of another length.
    fn unit_of(net: IpNet) -> Option<Self::Unit>;
}

impl Family for Ipv4Net {
    type Unit = Ipv4Addr;
    const UNIT_LENGTH: u8 = 32;
    const SKIP_ENDS: bool = true;

    fn length(self) -> u8 {
        self.prefix_len()
    }

    fn first(self) -> u64 {
        u64::from(u32::from(self.network()))
    }

    fn net(first: u64, length: u8) -> Self {
        Ipv4Net::new_assert(Ipv4Addr::from(first as u32), length)
    }

    fn number(unit: Ipv4Addr) -> Option<u64> {
        Some(u64::from(u32::from(unit)))
    }

    fn unit(number: u64) -> Ipv4Addr {
        Ipv4Addr::from(number as u32)
    }

    fn of_unit(unit: Ipv4Addr) -> IpNet {
        Ipv4Net::from(unit).into()
    }

    fn unit_of(net: IpNet) -> Option<Ipv4Addr> {
        match net {
            IpNet::V4(net) if net.prefix_len() == 32 => Some(net.addr()),
            _ => None,
        }
    }
}

impl Family for Ipv6Net {
    type Unit = Ipv6Net;
    const UNIT_LENGTH: u8 = 64;
    const SKIP_ENDS: bool = false;

    fn length(self) -> u8 {
        self.prefix_len()
    }

    fn first(self) -> u64 {
        (u128::from(self.network()) >> 64) as u64
    }

    fn net(first: u64, length: u8) -> Self {
        Ipv6Net::new_assert(Ipv6Addr::from(u128::from(first) << 64), length)
    }

    fn number(unit: Ipv6Net) -> Option<u64> {
        (unit.prefix_len() == 64).then(|| unit.first())
    }

    fn unit(number: u64) -> Ipv6Net {
        Self::net(number, 64)
    }

    fn of_unit(unit: Ipv6Net) -> IpNet {
        unit.into()
    }

    fn unit_of(net: IpNet) -> Option<Ipv6Net> {
        match net {
            IpNet::V6(net) if net.prefix_len() == 64 => Some(net),
            _ => None,
        }
    }
}

/// Reason for which a pool cannot be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPool {
    /// A block must be inside the prefix and contain at least one unit.
    #[error("prefix blocks of /{net} do not fit between /{prefix} and /{unit}")]
    NetLength {
        /// Length of a block.
        net: u8,
        /// Length of the pool's prefix.
        prefix: u8,
        /// Length of a unit.
        unit: u8,
    },
    /// A block has more than 65,536 units.
    #[error("prefix blocks of /{0} are too large: at most 65536 addresses or prefixes each")]
    NetTooLarge(u8),
}

/// Reason for which no unit was allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PoolError {
    /// Every unit is in use or belongs to another group.
    #[error("the pool is exhausted")]
    Exhausted,
    /// The unit is outside the pool's prefix or has another prefix length.
    #[error("not an address of this pool")]
    Foreign,
    /// Another subscriber has the unit.
    #[error("the address is in use")]
    InUse,
    /// The unit is never allocated: the first or last of a block, or the gateway's own address.
    #[error("the address is kept from subscribers")]
    Excluded,
    /// The prefix overlaps another subscriber's prefix.
    #[error("it overlaps {0} of another subscriber")]
    Overlaps(IpNet),
    /// The prefix overlaps a pool and is not a unit of it.
    #[error("it overlaps the pool {0}")]
    OverlapsPool(IpNet),
    /// No subscriber has the unit.
    #[error("the address is not in use")]
    NotInUse,
}

/// Allocated unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease<F: Family, G> {
    /// Address or prefix.
    pub address: F::Unit,
    /// Group that has the unit's block and announces it. For a requested unit it may differ from the subscriber's group; the unit must
    /// then be announced by itself.
    pub net_of: G,
    /// Block that was allocated to the group for it. It must be announced before the address is used.
    pub new_net: Option<F>,
}

const NIL: u32 = u32::MAX;
/// Handles of units have 32 bits, the last few of which mean other things.
const MOST_UNITS: u64 = NIL as u64 - 2;

/// State of a unit. A free unit has its neighbours in the group's list, as handles (block slot × units of a block + unit).
#[derive(Clone, Copy, PartialEq, Eq)]
struct Unit {
    previous: u32,
    next: u32,
}

impl Unit {
    const USED: Self = Self {
        previous: NIL - 1,
        next: NIL - 1,
    };
    const EXCLUDED: Self = Self {
        previous: NIL - 2,
        next: NIL - 2,
    };
}

/// A net lent to a group.
struct Lent<G> {
    group: G,
    /// Its number among the nets of the pool.
    number: u32,
    used: u32,
    units: Box<[Unit]>,
}

/// The free units of a group, longest free first.
#[derive(Clone, Copy)]
struct FreeList {
    head: u32,
    tail: u32,
}

/// One prefix, lent in nets to groups `G`, and from there in units to subscribers.
pub struct Pool<F: Family, G> {
    first: u64,
    net_length: u8,
    /// How many units a net has.
    net_units: u32,
    net_count: u64,
    excluded: Vec<u64>,
    lent: slab::Slab<Lent<G>>,
    by_number: BTreeMap<u32, usize>,
    groups: HashMap<G, FreeList>,
    /// Nets below this number have been lent at least once.
    fresh: u64,
    /// Nets that were lent and are not now, longest free first.
    returned: VecDeque<u32>,
    used: u64,
    family: core::marker::PhantomData<F>,
}

impl<F: Family, G: Copy + Eq + Hash> Pool<F, G> {
    /// A pool of `prefix`, cut into nets of `net_length`, without the units that are `excluded` (the gateway's own).
    pub fn new(prefix: F, net_length: u8, excluded: &[F::Unit]) -> Result<Self, BadPool> {
        let (length, unit) = (prefix.length(), F::UNIT_LENGTH);
        if net_length < length || net_length > unit || net_length - length > 31 {
            return Err(BadPool::NetLength {
                net: net_length,
                prefix: length,
                unit,
            });
        }
        if unit - net_length > 16 {
            return Err(BadPool::NetTooLarge(net_length));
        }
        Ok(Self {
            first: prefix.first(),
            net_length,
            net_units: 1 << (unit - net_length),
            net_count: 1 << (net_length - length),
            excluded: excluded
                .iter()
                .filter_map(|&unit| F::number(unit))
                .collect(),
            lent: slab::Slab::new(),
            by_number: BTreeMap::new(),
            groups: HashMap::new(),
            fresh: 0,
            returned: VecDeque::new(),
            used: 0,
            family: core::marker::PhantomData,
        })
    }

    /// Gives the unit of the group that has been free the longest, and lends the group another net if it has none free.
    pub fn allocate(&mut self, group: G) -> Result<Lease<F, G>, PoolError> {
        let mut new_net = None;
        let handle = loop {
            match self.groups.get(&group).map_or(NIL, |list| list.head) {
                NIL => {
                    let number = self.next_net().ok_or(PoolError::Exhausted)?;
                    if self.usable_units(number) > 0 {
                        new_net = Some(self.lend(number, group));
                    }
                }
                head => break head,
            }
        };
        Ok(Lease {
            address: self.take(handle),
            net_of: group,
            new_net,
        })
    }

    /// Allocates a given unit: a static address, or one that a session had before a restart. Its block may belong to another group.
    pub fn reserve(&mut self, group: G, address: F::Unit) -> Result<Lease<F, G>, PoolError> {
        let (number, index) = self.locate(address)?;
        if self.is_excluded(number, index) {
            return Err(PoolError::Excluded);
        }
        let new_net = match self.by_number.get(&number) {
            None => {
                self.returned.retain(|&returned| returned != number);
                Some(self.lend(number, group))
            }
            Some(_) => None,
        };
        let slot = self.by_number[&number];
        if self.lent[slot].units[index as usize] == Unit::USED {
            return Err(PoolError::InUse);
        }
        Ok(Lease {
            address: self.take(self.handle(slot, index)),
            net_of: self.lent[slot].group,
            new_net,
        })
    }

    /// Releases a unit. If no unit of its block is in use then, the block is released too and returned with its group, to be withdrawn.
    pub fn release(&mut self, address: F::Unit) -> Result<Option<(G, F)>, PoolError> {
        let (number, index) = self.locate(address)?;
        let slot = *self.by_number.get(&number).ok_or(PoolError::NotInUse)?;
        if self.lent[slot].units[index as usize] != Unit::USED {
            return Err(PoolError::NotInUse);
        }
        self.used -= 1;
        self.lent[slot].used -= 1;
        self.push_back(self.handle(slot, index));
        let group = self.lent[slot].group;
        Ok((self.lent[slot].used == 0).then(|| (group, self.give_back(slot))))
    }

    /// Whether a unit is in use.
    pub fn is_leased(&self, unit: F::Unit) -> bool {
        let Ok((number, index)) = self.locate(unit) else {
            return false;
        };
        let slot = self.by_number.get(&number);
        slot.is_some_and(|slot| self.lent[*slot].units[index as usize] == Unit::USED)
    }

    /// Blocks of a group, in order of address.
    pub fn nets(&self, group: G) -> impl Iterator<Item = F> {
        let nets = self.by_number.iter();
        nets.filter(move |&(_, &slot)| self.lent[slot].group == group)
            .map(|(&number, _)| self.net(number))
    }

    /// Whether a unit is in this pool, allocated or not.
    pub fn contains(&self, unit: F::Unit) -> bool {
        self.locate(unit).is_ok()
    }

    /// Allocated units with their groups.
    pub fn leases(&self) -> impl Iterator<Item = (G, F::Unit)> {
        self.lent.iter().flat_map(move |(_, lent)| {
            let used = |(_, unit): &(u64, &Unit)| **unit == Unit::USED;
            let units = (0..).zip(lent.units.iter()).filter(used);
            let first = self.first + u64::from(lent.number) * u64::from(self.net_units);
            units.map(move |(index, _)| (lent.group, F::unit(first + index)))
        })
    }

    /// Allocated blocks with their groups.
    pub fn lent_nets(&self) -> impl Iterator<Item = (G, F)> {
        let lent = self.lent.iter();
        lent.map(|(_, lent)| (lent.group, self.net(lent.number)))
    }

    /// Block of a unit of this pool, and the group that has it.
    pub fn net_of(&self, address: F::Unit) -> Option<(Option<G>, F)> {
        let (number, _) = self.locate(address).ok()?;
        let lent = self.by_number.get(&number);
        Some((lent.map(|slot| self.lent[*slot].group), self.net(number)))
    }

    /// Passes a block on to another group, with its units that are not in use.
    pub fn pass_on(&mut self, net: F, group: G) {
        let Some(slot) = self.lent_slot(net) else {
            return;
        };
        let handles = (0..self.net_units).map(|index| self.handle(slot, index));
        let is_free = |handle: &u32| {
            let (slot, index) = self.place(*handle);
            !matches!(self.lent[slot].units[index], Unit::USED | Unit::EXCLUDED)
        };
        let free: Vec<u32> = handles.filter(is_free).collect();
        free.iter().for_each(|handle| self.unlink(*handle));
        let before = std::mem::replace(&mut self.lent[slot].group, group);
        self.forget_list(before);
        free.into_iter().for_each(|handle| self.push_back(handle));
    }

    /// Forgets the list of a group without blocks.
    fn forget_list(&mut self, group: G) {
        let has_free = self.groups.get(&group).is_some_and(|list| list.head != NIL);
        if !has_free && self.lent.iter().all(|(_, lent)| lent.group != group) {
            self.groups.remove(&group);
        }
    }

    /// Releases a leaked block, in which no unit is in use.
    pub fn reclaim(&mut self, net: F) {
        let slot = self.lent_slot(net);
        if let Some(slot) = slot.filter(|slot| !self.lent[*slot].units.contains(&Unit::USED)) {
            self.used -= u64::from(self.lent[slot].used);
            self.give_back(slot);
        }
    }

    fn lent_slot(&self, net: F) -> Option<usize> {
        let mut slots = self.lent.iter();
        slots.find_map(|(slot, lent)| (self.net(lent.number) == net).then_some(slot))
    }

    /// Number of allocated units.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Number of allocated blocks.
    pub fn lent(&self) -> usize {
        self.lent.len()
    }

    /// Number of blocks.
    pub fn net_count(&self) -> u64 {
        self.net_count
    }

    /// Next free block: first those that were never allocated, then the one that was released first.
    fn next_net(&mut self) -> Option<u32> {
        if (self.lent.len() as u64 + 1) * u64::from(self.net_units) >= MOST_UNITS {
            return None;
        }
        while self.fresh < self.net_count {
            let number = self.fresh as u32;
            self.fresh += 1;
            if !self.by_number.contains_key(&number) {
                return Some(number);
            }
        }
        self.returned.pop_front()
    }

    fn lend(&mut self, number: u32, group: G) -> F {
        let units = vec![Unit::EXCLUDED; self.net_units as usize].into_boxed_slice();
        let slot = self.lent.insert(Lent {
            group,
            number,
            used: 0,
            units,
        });
        self.by_number.insert(number, slot);
        for index in 0..self.net_units {
            if !self.is_excluded(number, index) {
                self.push_back(self.handle(slot, index));
            }
        }
        self.net(number)
    }

    fn give_back(&mut self, slot: usize) -> F {
        for index in 0..self.net_units {
            if self.lent[slot].units[index as usize] != Unit::EXCLUDED {
                self.unlink(self.handle(slot, index));
            }
        }
        let Lent { number, group, .. } = self.lent.remove(slot);
        self.by_number.remove(&number);
        self.forget_list(group);
        // One that was reserved ahead of its turn has its turn still to come.
        if u64::from(number) < self.fresh {
            self.returned.push_back(number);
        }
        self.net(number)
    }

    /// Marks a free unit as used.
    fn take(&mut self, handle: u32) -> F::Unit {
        self.unlink(handle);
        let (slot, index) = self.place(handle);
        let lent = &mut self.lent[slot];
        lent.units[index] = Unit::USED;
        lent.used += 1;
        self.used += 1;
        F::unit(self.first + u64::from(lent.number) * u64::from(self.net_units) + index as u64)
    }

    fn push_back(&mut self, handle: u32) {
        let (slot, index) = self.place(handle);
        let list = self
            .groups
            .entry(self.lent[slot].group)
            .or_insert(FreeList {
                head: NIL,
                tail: NIL,
            });
        let last = core::mem::replace(&mut list.tail, handle);
        if last == NIL {
            list.head = handle;
        }
        self.lent[slot].units[index] = Unit {
            previous: last,
            next: NIL,
        };
        if last != NIL {
            self.unit_mut(last).next = handle;
        }
    }

    fn unlink(&mut self, handle: u32) {
        let Unit { previous, next } = *self.unit_mut(handle);
        let group = self.lent[self.place(handle).0].group;
        let list = self
            .groups
            .get_mut(&group)
            .expect("a group with a net has a list");
        match previous {
            NIL => list.head = next,
            previous => self.unit_mut(previous).next = next,
        }
        let list = self
            .groups
            .get_mut(&group)
            .expect("a group with a net has a list");
        match next {
            NIL => list.tail = previous,
            next => self.unit_mut(next).previous = previous,
        }
    }

    fn unit_mut(&mut self, handle: u32) -> &mut Unit {
        let (slot, index) = self.place(handle);
        &mut self.lent[slot].units[index]
    }

    fn handle(&self, slot: usize, index: u32) -> u32 {
        slot as u32 * self.net_units + index
    }

    fn place(&self, handle: u32) -> (usize, usize) {
        (
            (handle / self.net_units) as usize,
            (handle % self.net_units) as usize,
        )
    }

    fn net(&self, number: u32) -> F {
        F::net(
            self.first + u64::from(number) * u64::from(self.net_units),
            self.net_length,
        )
    }

    /// Number of a unit's block, and the unit's position in it.
    fn locate(&self, address: F::Unit) -> Result<(u32, u32), PoolError> {
        let number = F::number(address).ok_or(PoolError::Foreign)?;
        let offset = number.checked_sub(self.first).ok_or(PoolError::Foreign)?;
        let net = offset / u64::from(self.net_units);
        if net >= self.net_count {
            return Err(PoolError::Foreign);
        }
        Ok((net as u32, (offset % u64::from(self.net_units)) as u32))
    }

    fn is_excluded(&self, net: u32, index: u32) -> bool {
        let ends =
            F::SKIP_ENDS && self.net_units > 2 && (index == 0 || index == self.net_units - 1);
        let number = self.first + u64::from(net) * u64::from(self.net_units) + u64::from(index);
        ends || self.excluded.contains(&number)
    }

    fn usable_units(&self, net: u32) -> usize {
        (0..self.net_units)
            .filter(|&index| !self.is_excluded(net, index))
            .count()
    }
}

#[cfg(test)]
mod tests;
