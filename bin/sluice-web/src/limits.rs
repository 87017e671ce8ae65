//! Limits of each address: connections, requests in a second, and a lock-out after wrong tokens and passwords. The table has a bound.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of addresses that are remembered. A new one is refused while all of them are in use.
const ADDRESSES: usize = 4096;
/// Maximum number of connections of an address.
const CONNECTIONS: u16 = 32;
/// Requests of an address in a second, for longer.
const RATE: u32 = 20;
/// Requests of an address at once.
const BURST: u32 = 100;
/// Wrong tokens and passwords after which an address is locked out.
const WRONG: u32 = 10;
/// How long it is locked out, and after how long without a wrong one the earlier ones are forgotten.
pub const LOCKED: Duration = Duration::from_secs(300);

/// Why an address is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It has too many connections.
    Connections,
    /// It asks too often.
    Rate,
    /// It has presented too many wrong tokens and passwords.
    LockedOut,
    /// Too many addresses are in use.
    Addresses,
}

impl Refused {
    /// All of them.
    pub const ALL: [Refused; 4] = [
        Refused::Connections,
        Refused::Rate,
        Refused::LockedOut,
        Refused::Addresses,
    ];

    /// Its name in the metrics.
    pub const fn word(self) -> &'static str {
        match self {
            Refused::Connections => "connections",
            Refused::Rate => "rate",
            Refused::LockedOut => "locked-out",
            Refused::Addresses => "addresses",
        }
    }
}

/// What an address did.
#[derive(Debug)]
struct Entry {
    connections: u16,
    /// Requests that it may make now, as of `at`.
    allowance: f64,
    at: Instant,
    wrong_tokens: u32,
    wrong_passwords: u32,
    last_wrong: Instant,
}

impl Entry {
    fn new(now: Instant) -> Self {
        Entry {
            connections: 0,
            allowance: BURST.into(),
            at: now,
            wrong_tokens: 0,
            wrong_passwords: 0,
            last_wrong: now,
        }
    }

    /// Brings it up to date.
    fn pass(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.allowance = f64::from(BURST).min(self.allowance + passed * f64::from(RATE));
        self.at = now;
        if now.saturating_duration_since(self.last_wrong) >= LOCKED {
            (self.wrong_tokens, self.wrong_passwords) = (0, 0);
        }
    }

    /// What was wrong since.
    fn wrong(&self) -> u32 {
        self.wrong_tokens + self.wrong_passwords
    }

    fn check(&self) -> Result<(), Refused> {
        match self.wrong() >= WRONG {
            true => Err(Refused::LockedOut),
            false => Ok(()),
        }
    }

    /// Forgetting it changes nothing.
    fn is_idle(&mut self, now: Instant) -> bool {
        self.pass(now);
        self.connections == 0 && self.wrong() == 0 && self.allowance >= f64::from(BURST)
    }
}

#[derive(Debug, Default)]
struct Table {
    entries: HashMap<IpAddr, Entry>,
    refused: [u64; Refused::ALL.len()],
    wrong: u64,
}

/// The limits of all addresses.
#[derive(Clone, Debug, Default)]
pub struct Limits(Arc<Mutex<Table>>);

/// A connection of an address, which counts until this is dropped.
#[derive(Debug)]
pub struct Connected {
    limits: Limits,
    address: IpAddr,
}

impl Drop for Connected {
    fn drop(&mut self) {
        let mut table = self.limits.table();
        if let Some(entry) = table.entries.get_mut(&self.address) {
            entry.connections = entry.connections.saturating_sub(1);
        }
    }
}

impl Limits {
    fn table(&self) -> std::sync::MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An address connects.
    pub fn connect(&self, address: IpAddr, now: Instant) -> Result<Connected, Refused> {
        let address = network(address);
        self.table().try_with(address, now, |entry| {
            if entry.connections >= CONNECTIONS {
                return Err(Refused::Connections);
            }
            entry.connections += 1;
            Ok(())
        })?;
        Ok(Connected {
            limits: self.clone(),
            address,
        })
    }

    /// An address makes a request.
    pub fn admit(&self, address: IpAddr, now: Instant) -> Result<(), Refused> {
        self.table().try_with(network(address), now, |entry| {
            if entry.allowance < 1.0 {
                return Err(Refused::Rate);
            }
            entry.allowance -= 1.0;
            Ok(())
        })
    }

    /// Lets an address try a password, unless it is locked out. What has the right token or cookie is let in all the same: nobody guesses
    /// 256 bits, and many people share an address.
    pub fn may_guess(&self, address: IpAddr, now: Instant) -> Result<(), Refused> {
        let check = |entry: &mut Entry| entry.check();
        self.table().try_with(network(address), now, check)
    }

    /// An address has presented a wrong token. Returns whether that locks it out.
    pub fn wrong_token(&self, address: IpAddr, now: Instant) -> bool {
        self.wrong(address, now, |entry| entry.wrong_tokens += 1)
    }

    /// A wrong link was presented. It locks nobody out: any page can have a browser open links.
    pub fn wrong_link(&self) {
        self.table().wrong += 1;
    }

    /// An address has presented a wrong password. Returns whether that locks it out.
    pub fn wrong_password(&self, address: IpAddr, now: Instant) -> bool {
        self.wrong(address, now, |entry| entry.wrong_passwords += 1)
    }

    fn wrong(&self, address: IpAddr, now: Instant, count: impl FnOnce(&mut Entry)) -> bool {
        let mut table = self.table();
        table.wrong += 1;
        let locked = table.try_with(network(address), now, |entry| {
            count(entry);
            entry.last_wrong = now;
            Ok(entry.wrong() == WRONG)
        });
        locked.unwrap_or(false)
    }

    /// An address has presented a right token: its wrong tokens are forgotten. Its wrong passwords are not: whoever has a token, or
    /// signs in as one user, could else guess the passwords of others.
    pub fn right_token(&self, address: IpAddr) {
        if let Some(entry) = self.table().entries.get_mut(&network(address)) {
            entry.wrong_tokens = 0;
        }
    }

    /// How often each reason refused somebody, and how many wrong tokens, passwords and links were presented.
    pub fn counts(&self) -> ([(Refused, u64); Refused::ALL.len()], u64) {
        let table = self.table();
        let refused = Refused::ALL.map(|reason| (reason, table.refused[reason as usize]));
        (refused, table.wrong)
    }
}

impl Table {
    /// Does something to the entry of an address, and counts if it is refused.
    fn try_with<T>(
        &mut self,
        address: IpAddr,
        now: Instant,
        act: impl FnOnce(&mut Entry) -> Result<T, Refused>,
    ) -> Result<T, Refused> {
        if !self.entries.contains_key(&address) && self.entries.len() >= ADDRESSES {
            self.entries.retain(|_, entry| !entry.is_idle(now));
        }
        let full = self.entries.len() >= ADDRESSES && !self.entries.contains_key(&address);
        let done = match full {
            true => Err(Refused::Addresses),
            false => {
                let entry = self.entries.entry(address);
                let entry = entry.or_insert_with(|| Entry::new(now));
                entry.pass(now);
                act(entry)
            }
        };
        if let Err(reason) = done {
            self.refused[reason as usize] += 1;
        }
        done
    }
}

/// Who is limited together: an IPv4 address, or an IPv6 /64, within which a host chooses its addresses (RFC 8981).
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let bits = address.to_bits() >> 64 << 64;
            IpAddr::V6(Ipv6Addr::from_bits(bits))
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u32) -> IpAddr {
        IpAddr::V4(number.into())
    }

    #[test]
    fn an_address_may_ask_at_its_rate() {
        let (limits, now) = (Limits::default(), Instant::now());
        for _ in 0..BURST {
            limits.admit(address(1), now).unwrap();
        }
        assert_eq!(limits.admit(address(1), now), Err(Refused::Rate));
        assert_eq!(limits.admit(address(2), now), Ok(()));
        let later = now + Duration::from_secs(1);
        let admitted = (0..BURST).filter(|_| limits.admit(address(1), later).is_ok());
        assert_eq!(admitted.count(), RATE as usize);
        let (refused, _) = limits.counts();
        assert_eq!(refused[1], (Refused::Rate, 1 + u64::from(BURST - RATE)));
    }

    #[test]
    fn wrong_tokens_lock_out_for_a_while_and_a_right_one_forgets_them() {
        let (limits, now) = (Limits::default(), Instant::now());
        for _ in 1..WRONG {
            assert!(!limits.wrong_token(address(1), now));
        }
        limits.right_token(address(1));
        for _ in 1..WRONG {
            assert!(!limits.wrong_token(address(1), now));
        }
        assert_eq!(limits.admit(address(1), now), Ok(()));
        assert!(limits.wrong_token(address(1), now));
        assert_eq!(limits.may_guess(address(1), now), Err(Refused::LockedOut));
        assert_eq!(limits.admit(address(1), now), Ok(()));
        assert_eq!(limits.may_guess(address(2), now), Ok(()));
        assert_eq!(limits.may_guess(address(1), now + LOCKED), Ok(()));
        assert_eq!(limits.counts().1, u64::from(2 * WRONG - 1));
    }

    #[test]
    fn a_right_token_forgets_no_wrong_password() {
        let (limits, now) = (Limits::default(), Instant::now());
        for _ in 1..WRONG {
            assert!(!limits.wrong_password(address(1), now));
            limits.right_token(address(1));
        }
        assert_eq!(limits.may_guess(address(1), now), Ok(()));
        assert!(limits.wrong_password(address(1), now));
        assert_eq!(limits.may_guess(address(1), now), Err(Refused::LockedOut));
        assert_eq!(limits.may_guess(address(1), now + LOCKED), Ok(()));
        // both count together
        for _ in 0..WRONG / 2 {
            limits.wrong_password(address(2), now);
            limits.wrong_token(address(2), now);
        }
        assert_eq!(limits.may_guess(address(2), now), Err(Refused::LockedOut));
    }

    #[test]
    fn connections_of_an_address_are_limited_and_given_back() {
        let (limits, now) = (Limits::default(), Instant::now());
        let connect = |host: &str| limits.connect(host.parse().unwrap(), now);
        let mut open: Vec<_> = (0..CONNECTIONS)
            .map(|n| connect(&format!("2001:db8::{n:x}")).unwrap())
            .collect();
        assert_eq!(
            connect("2001:db8::ffff:1").unwrap_err(),
            Refused::Connections
        );
        assert!(connect("2001:db8:0:1::1").is_ok(), "another /64");
        open.pop();
        assert!(connect("2001:db8::1").is_ok());
        // a mapped address is that of IPv4
        let own = connect("192.0.2.1").unwrap();
        let mapped = connect("::ffff:192.0.2.1").unwrap();
        assert_eq!(own.address, mapped.address);
    }

    #[test]
    fn the_table_has_a_bound_and_forgets_the_idle_alone() {
        let (limits, now) = (Limits::default(), Instant::now());
        for number in 0..ADDRESSES as u32 {
            limits.wrong_token(address(number), now);
        }
        let new = address(ADDRESSES as u32);
        assert_eq!(limits.admit(new, now), Err(Refused::Addresses));
        assert_eq!(limits.admit(address(7), now), Ok(()), "it is known");
        assert_eq!(limits.admit(new, now + LOCKED), Ok(()));
        assert_eq!(limits.table().entries.len(), 1);
    }
}
