//! Address pools, which allocate prefix blocks to subscriber groups.
//!
//! A [`Pool`] is one prefix in one network instance. Its *units* are what one subscriber gets: addresses, or prefixes of one length. It
//! allocates prefix blocks to subscriber groups (by default 256 units each), and user planes announce them. A group without a free unit
//! gets another block, and releases a block in which no unit is in use. A released unit is allocated again after all other free ones:
//! first within the group, then, with its block, within the pool. There is no randomness, so the same calls in the same order allocate
//! the same units.
//!
//! Memory: 8 bytes for each unit of the allocated blocks, nothing for the rest of the prefix. No call but those that list everything
//! visits all units or blocks.
//!
//! ```
//! use control::pool::{Pool, PoolSettings};
//!
//! let settings = PoolSettings {
//!     own: vec!["100.64.0.1".parse().unwrap()], // the gateway's
//!     ..PoolSettings::new("100.64.0.0/10".parse().unwrap(), 24, 32)
//! };
//! let mut pool: Pool<u32> = Pool::new(&settings).unwrap();
//! let group = 1;
//! let lease = pool.allocate(group).unwrap();
//! assert_eq!(lease.unit, "100.64.0.2/32".parse().unwrap()); // not .0, not the gateway
//! assert_eq!(lease.new_net, Some("100.64.0.0/24".parse().unwrap())); // to be announced
//! assert_eq!(pool.release(lease.unit), Ok(Some((group, "100.64.0.0/24".parse().unwrap())))); // to be withdrawn
//! ```

use core::hash::Hash;
use core::net::IpAddr;
use core::ops::RangeInclusive;
use std::collections::{BTreeMap, HashMap};

use exclusions::Exclusions;
use ipnet::IpNet;
use returned::Returned;
use space::Space;

mod exclusions;
mod returned;
mod shares;
mod space;

pub use shares::Share;

/// Settings of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolSettings {
    /// Prefix of the pool.
    pub prefix: IpNet,
    /// Prefix length of a block.
    pub net_length: u8,
    /// Prefix length of a unit.
    pub unit_length: u8,
    /// The gateway's own addresses. Units that contain one are never allocated.
    pub own: Vec<IpAddr>,
    /// Addresses that the pool does not allocate by itself. Units that contain one are allocated on request only.
    pub excluded: Vec<RangeInclusive<IpAddr>>,
}

impl PoolSettings {
    /// Settings without exclusions.
    pub fn new(prefix: IpNet, net_length: u8, unit_length: u8) -> Self {
        PoolSettings {
            prefix,
            net_length,
            unit_length,
            own: Vec::new(),
            excluded: Vec::new(),
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
pub struct Lease<G> {
    /// Address or prefix.
    pub unit: IpNet,
    /// Group that has the unit's block and announces it. For a requested unit it may differ from the subscriber's group; the unit must
    /// then be announced by itself.
    pub net_of: G,
    /// Block that was allocated to the group for it. It must be announced before the unit is used.
    pub new_net: Option<IpNet>,
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

/// Allocated block.
struct Lent<G> {
    group: G,
    /// Its number among the blocks of the pool.
    number: u64,
    used: u32,
    units: Box<[Unit]>,
}

/// A group with at least one block.
struct Group {
    /// Its free units, the longest free first.
    head: u32,
    tail: u32,
    share: Share,
}

/// One prefix, allocated in blocks to groups `G`, and from there in units to subscribers.
pub struct Pool<G> {
    space: Space,
    exclusions: Exclusions,
    size: u64,
    lent: slab::Slab<Lent<G>>,
    by_number: BTreeMap<u64, usize>,
    groups: HashMap<G, Group>,
    /// Blocks below this number have been allocated at least once, or passed over.
    fresh: u64,
    returned: Returned,
    used: u64,
    /// Those of `used` that the pool does not allocate by itself.
    used_on_request: u64,
    /// Number of blocks that no group has and of which units are allocated without request.
    spare: u64,
}

impl<G: Copy + Eq + Hash> Pool<G> {
    /// Creates a pool with nothing allocated.
    ///
    /// # Errors
    /// Lengths that do not go together.
    pub fn new(settings: &PoolSettings) -> Result<Self, BadPool> {
        let space = Space::new(settings.prefix, settings.net_length, settings.unit_length)?;
        let exclusions = Exclusions::new(space, &settings.own, &settings.excluded);
        Ok(Self {
            size: exclusions.usable(),
            spare: exclusions.usable_nets(),
            space,
            exclusions,
            lent: slab::Slab::new(),
            by_number: BTreeMap::new(),
            groups: HashMap::new(),
            fresh: 0,
            returned: Returned::default(),
            used: 0,
            used_on_request: 0,
        })
    }

    /// Allocates the unit of the group that has been free the longest. A group without a free unit gets another block.
    ///
    /// # Errors
    /// [`PoolError::Exhausted`].
    pub fn allocate(&mut self, group: G) -> Result<Lease<G>, PoolError> {
        let new_net = match self.has_free(group) {
            true => None,
            false => {
                let number = self.next_net().ok_or(PoolError::Exhausted)?;
                Some(self.lend(number, group))
            }
        };
        let longest_free = self.group_mut(group).head;
        Ok(Lease {
            unit: self.take(longest_free),
            net_of: group,
            new_net,
        })
    }

    /// Allocates a unit that the subscriber had before, if it is free and no other group has its block. A free block is left to others if
    /// the group can do without it.
    pub fn allocate_again(&mut self, group: G, unit: IpNet) -> Option<Lease<G>> {
        let (number, _) = self.locate(unit).ok()?;
        if self.exclusions.contains(self.space.number(unit)?) {
            return None;
        }
        let is_open = match self.by_number.get(&number) {
            Some(slot) => self.lent[*slot].group == group,
            None => !self.has_free(group) || self.spare > 1,
        };
        is_open.then(|| self.reserve(group, unit).ok()).flatten()
    }

    /// Allocates a given unit: a static address, or one that a session had before a restart. Its block may belong to another group.
    ///
    /// # Errors
    /// The reason for which it is not available.
    pub fn reserve(&mut self, group: G, unit: IpNet) -> Result<Lease<G>, PoolError> {
        let (number, index) = self.locate(unit)?;
        if self.exclusions.is_own(self.number(number, index)) {
            return Err(PoolError::Excluded);
        }
        let new_net = match self.by_number.get(&number) {
            None if self.is_full() => return Err(PoolError::Exhausted),
            None => {
                self.returned.remove(number);
                Some(self.lend(number, group))
            }
            Some(_) => None,
        };
        let slot = self.by_number[&number];
        if self.lent[slot].units[index as usize] == Unit::USED {
            return Err(PoolError::InUse);
        }
        Ok(Lease {
            unit: self.take(self.handle(slot, index)),
            net_of: self.lent[slot].group,
            new_net,
        })
    }

    /// Releases a unit. If no unit of its block is in use then, the block is released too and returned with its group, to be withdrawn.
    ///
    /// # Errors
    /// The unit is not in use, or not of this pool.
    pub fn release(&mut self, unit: IpNet) -> Result<Option<(G, IpNet)>, PoolError> {
        let (number, index) = self.locate(unit)?;
        let slot = *self.by_number.get(&number).ok_or(PoolError::NotInUse)?;
        let lent = &mut self.lent[slot];
        if lent.units[index as usize] != Unit::USED {
            return Err(PoolError::NotInUse);
        }
        self.used -= 1;
        lent.used -= 1;
        let group = lent.group;
        self.group_mut(group).share.used -= 1;
        match self.exclusions.contains(self.number(number, index)) {
            true => {
                self.used_on_request -= 1;
                self.lent[slot].units[index as usize] = Unit::EXCLUDED;
            }
            false => self.push_back(self.handle(slot, index)),
        }
        Ok((self.lent[slot].used == 0).then(|| (group, self.give_back(slot))))
    }

    /// Whether a unit is in use.
    pub fn is_leased(&self, unit: IpNet) -> bool {
        let Ok((number, index)) = self.locate(unit) else {
            return false;
        };
        let slot = self.by_number.get(&number);
        slot.is_some_and(|slot| self.lent[*slot].units[index as usize] == Unit::USED)
    }

    /// Whether a unit is in this pool, allocated or not.
    pub fn contains(&self, unit: IpNet) -> bool {
        self.space.number(unit).is_some()
    }

    /// Allocated units with their groups.
    pub fn leases(&self) -> impl Iterator<Item = (G, IpNet)> {
        self.lent.iter().flat_map(move |(_, lent)| {
            let used = |(_, unit): &(u32, &Unit)| **unit == Unit::USED;
            let units = (0..).zip(lent.units.iter()).filter(used);
            units.map(move |(index, _)| {
                let number = self.number(lent.number, index);
                (lent.group, self.space.unit(number))
            })
        })
    }

    /// Allocated blocks with their groups, in order of address.
    pub fn lent_nets(&self) -> impl Iterator<Item = (G, IpNet)> {
        let lent = self.by_number.iter();
        lent.map(|(number, slot)| (self.lent[*slot].group, self.space.net(*number)))
    }

    /// Block of a unit of this pool, and the group that has it.
    pub fn net_of(&self, unit: IpNet) -> Option<(Option<G>, IpNet)> {
        let (number, _) = self.locate(unit).ok()?;
        let lent = self.by_number.get(&number);
        let group = lent.map(|slot| self.lent[*slot].group);
        Some((group, self.space.net(number)))
    }

    /// Passes a block on to another group, with its units that are not in use.
    pub fn pass_on(&mut self, net: IpNet, group: G) {
        let Some(slot) = self.lent_slot(net) else {
            return;
        };
        let handles = (0..self.space.net_units()).map(|index| self.handle(slot, index));
        let is_free = |handle: &u32| {
            let (slot, index) = self.place(*handle);
            !matches!(self.lent[slot].units[index], Unit::USED | Unit::EXCLUDED)
        };
        let free: Vec<u32> = handles.filter(is_free).collect();
        free.iter().for_each(|handle| self.unlink(*handle));
        let used = self.lent[slot].used.into();
        let before = std::mem::replace(&mut self.lent[slot].group, group);
        self.lose_net(before, used);
        self.gain_net(group, used);
        free.into_iter().for_each(|handle| self.push_back(handle));
    }

    /// Releases a leaked block, in which no unit is in use.
    pub fn reclaim(&mut self, net: IpNet) {
        let slot = self.lent_slot(net);
        if let Some(slot) = slot.filter(|slot| !self.lent[*slot].units.contains(&Unit::USED)) {
            self.give_back(slot);
        }
    }

    fn lent_slot(&self, net: IpNet) -> Option<usize> {
        let first = self.space.numbers(net.network(), net.network())?;
        let number = (first.start() / u128::from(self.space.net_units())) as u64;
        let slot = self.by_number.get(&number).copied();
        slot.filter(|_| self.space.net(number) == net)
    }

    /// Number of allocated units, also of those that are allocated on request only.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Number of allocated units that count in [`Pool::size`].
    pub fn used_of_size(&self) -> u64 {
        self.used - self.used_on_request
    }

    /// Number of units that the pool allocates by itself. A pool of more, such as all addresses of a /64, says the largest number.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Number of blocks.
    pub fn net_count(&self) -> u64 {
        self.space.net_count()
    }

    /// Whether a group has a free unit in its blocks.
    fn has_free(&self, group: G) -> bool {
        self.groups.get(&group).is_some_and(|of| of.head != NIL)
    }

    /// Whether no handles are left for another block.
    fn is_full(&self) -> bool {
        (self.lent.len() as u64 + 1) * u64::from(self.space.net_units()) >= MOST_UNITS
    }

    /// Next free block: first those that were never allocated, then the one that was released first.
    fn next_net(&mut self) -> Option<u64> {
        if self.is_full() {
            return None;
        }
        while let Some(number) = self.exclusions.next_usable_net(self.fresh) {
            self.fresh = number + 1;
            if !self.by_number.contains_key(&number) {
                return Some(number);
            }
        }
        self.returned.pop()
    }

    fn lend(&mut self, number: u64, group: G) -> IpNet {
        let units = vec![Unit::EXCLUDED; self.space.net_units() as usize].into_boxed_slice();
        let slot = self.lent.insert(Lent {
            group,
            number,
            used: 0,
            units,
        });
        self.by_number.insert(number, slot);
        self.spare -= u64::from(self.exclusions.usable_of_net(number) > 0);
        self.gain_net(group, 0);
        for index in 0..self.space.net_units() {
            if !self.exclusions.contains(self.number(number, index)) {
                self.push_back(self.handle(slot, index));
            }
        }
        self.space.net(number)
    }

    fn give_back(&mut self, slot: usize) -> IpNet {
        for index in 0..self.space.net_units() {
            if self.lent[slot].units[index as usize] != Unit::EXCLUDED {
                self.unlink(self.handle(slot, index));
            }
        }
        let lent = self.lent.remove(slot);
        self.by_number.remove(&lent.number);
        self.lose_net(lent.group, lent.used.into());
        if self.exclusions.usable_of_net(lent.number) > 0 {
            self.spare += 1;
            // One that was reserved ahead of its turn has its turn still to come.
            if lent.number < self.fresh {
                self.returned.push(lent.number);
            }
        }
        self.space.net(lent.number)
    }

    /// Notes that a group has one more block, with so many units in use.
    fn gain_net(&mut self, group: G, used: u64) {
        let group = self.groups.entry(group).or_insert(Group {
            head: NIL,
            tail: NIL,
            share: Share::default(),
        });
        group.share.nets += 1;
        group.share.used += used;
    }

    /// Notes that a group has one block less, and forgets it with its last one.
    fn lose_net(&mut self, group: G, used: u64) {
        let share = &mut self.group_mut(group).share;
        share.nets -= 1;
        share.used -= used;
        if share.nets == 0 {
            self.groups.remove(&group);
        }
    }

    fn group_mut(&mut self, group: G) -> &mut Group {
        let group = self.groups.get_mut(&group);
        group.expect("a group with a block is known")
    }

    /// Marks a free unit, or one that is allocated on request, as used.
    fn take(&mut self, handle: u32) -> IpNet {
        let (slot, index) = self.place(handle);
        match self.lent[slot].units[index] {
            Unit::EXCLUDED => self.used_on_request += 1,
            _ => self.unlink(handle),
        }
        let lent = &mut self.lent[slot];
        lent.units[index] = Unit::USED;
        lent.used += 1;
        self.used += 1;
        let (group, number) = (lent.group, lent.number);
        self.group_mut(group).share.used += 1;
        self.space.unit(self.number(number, index as u32))
    }

    fn push_back(&mut self, handle: u32) {
        let (slot, index) = self.place(handle);
        let group = self.lent[slot].group;
        let list = self.group_mut(group);
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
        match previous {
            NIL => self.group_mut(group).head = next,
            previous => self.unit_mut(previous).next = next,
        }
        match next {
            NIL => self.group_mut(group).tail = previous,
            next => self.unit_mut(next).previous = previous,
        }
    }

    fn unit_mut(&mut self, handle: u32) -> &mut Unit {
        let (slot, index) = self.place(handle);
        &mut self.lent[slot].units[index]
    }

    fn handle(&self, slot: usize, index: u32) -> u32 {
        slot as u32 * self.space.net_units() + index
    }

    fn place(&self, handle: u32) -> (usize, usize) {
        let units = self.space.net_units();
        ((handle / units) as usize, (handle % units) as usize)
    }

    /// Number of a unit of a block among all units.
    fn number(&self, net: u64, index: u32) -> u128 {
        u128::from(net) * u128::from(self.space.net_units()) + u128::from(index)
    }

    /// Number of a unit's block, and the unit's position in it.
    fn locate(&self, unit: IpNet) -> Result<(u64, u32), PoolError> {
        let number = self.space.number(unit).ok_or(PoolError::Foreign)?;
        let units = u128::from(self.space.net_units());
        Ok(((number / units) as u64, (number % units) as u32))
    }
}

#[cfg(test)]
mod tests;
