//! The ledger: what is held, who says that it is theirs, and where the two differ.
//!
//! Both planes fill one in: for each kind of thing that is acquired and released they compare the table that lends it
//! with the owners that it was lent to, in both directions.
//!
//! ```
//! use northbound::{Kind, Ledger};
//!
//! const ADDRESS: Kind = Kind::new(
//!     "address",
//!     "no session has it, and nobody else can get it",
//!     "a session has it, but its pool may give it to another",
//! );
//! let mut ledger = Ledger::of("control-plane");
//! let lent = ["192.0.2.1", "192.0.2.2"];
//! let owned = [("192.0.2.1", "session 1"), ("192.0.2.3", "session 2")];
//! let differences = ledger.compare(&ADDRESS, lent, owned, |address| address.to_string());
//! assert_eq!(differences.without_owner, ["192.0.2.2"]);
//! assert_eq!(differences.missing, [("192.0.2.3", "session 2")]);
//! assert!(!ledger.is_balanced());
//! ```

use crate::{Account, Fault, Finding, Ledger};
use std::fmt::Display;

/// A kind of thing that is acquired and released.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// What it is called.
    pub name: &'static str,
    /// What it means when one has no owner, for the operator.
    pub without_owner: &'static str,
    /// What it means when an owner's is not booked, for the operator.
    pub missing: &'static str,
}

impl Kind {
    /// A kind by its name, and what the two differences mean.
    pub const fn new(
        name: &'static str,
        without_owner: &'static str,
        missing: &'static str,
    ) -> Self {
        Kind {
            name,
            without_owner,
            missing,
        }
    }
}

/// The most findings that are told one by one; accounts count them all.
const MAX_FINDINGS: usize = 1000;

/// What differs of one kind, for whoever repairs it.
#[derive(Debug, PartialEq, Eq)]
pub struct Differences<K, O> {
    /// Booked, and nobody's.
    pub without_owner: Vec<K>,
    /// Not booked, with their owner.
    pub missing: Vec<(K, O)>,
    /// Of several owners those after the first.
    pub twice: Vec<(K, O)>,
}

impl Ledger {
    /// An empty ledger of this plane.
    pub fn of(plane: &str) -> Self {
        Ledger {
            plane: plane.into(),
            ..Ledger::default()
        }
    }

    /// Adds the accounts and findings of another plane.
    pub fn add(&mut self, other: Ledger) {
        self.accounts.extend(other.accounts);
        self.findings.extend(other.findings);
    }

    /// Whether everything has its one owner, and every owner what it says that it has.
    pub fn is_balanced(&self) -> bool {
        self.accounts
            .iter()
            .all(|a| (a.without_owner, a.missing) == (0, 0))
    }

    /// How much is held of a kind, by the tables or by the owners, whichever says more; 0 for a kind that is not here.
    pub fn held(&self, kind: &str) -> u64 {
        let of_kind = self.accounts.iter().filter(|a| a.kind == kind);
        of_kind.map(|a| a.booked.max(a.owned)).sum()
    }

    /// Compares what is booked of a kind with what its owners say that they have. `name` says for people what it is.
    pub fn compare<K: Ord, O: Display>(
        &mut self,
        kind: &Kind,
        booked: impl IntoIterator<Item = K>,
        owned: impl IntoIterator<Item = (K, O)>,
        name: impl Fn(&K) -> String,
    ) -> Differences<K, O> {
        let mut booked = Vec::from_iter(booked);
        booked.sort_unstable();
        let mut claims = Vec::from_iter(owned);
        // stable: of two owners the one that was named first stays the first
        claims.sort_by(|a, b| a.0.cmp(&b.0));
        let (held, said) = (booked.len(), claims.len());
        let (owned, twice) = one_owner_each(claims);
        for (key, first, owner) in &twice {
            let whose = format!("{}, {owner}", owned[*first].1);
            self.find(kind, Fault::Twice, name(key), Some(whose));
        }
        let (without_owner, missing) = difference(booked, owned);
        for (key, owner) in &missing {
            self.find(kind, Fault::Missing, name(key), Some(owner.to_string()));
        }
        for key in &without_owner {
            self.find(kind, Fault::WithoutOwner, name(key), None);
        }
        self.accounts.push(Account {
            plane: self.plane.clone(),
            kind: kind.name.into(),
            booked: held as u64,
            owned: said as u64,
            without_owner: without_owner.len() as u64,
            missing: (missing.len() + twice.len()) as u64,
        });
        let twice = twice.into_iter().map(|(key, _, owner)| (key, owner));
        Differences {
            without_owner,
            missing,
            twice: twice.collect(),
        }
    }

    /// Counts what is booked and has its one owner, of the kind that was compared last, and was not named there: where there is
    /// very much of it.
    pub fn agreed(&mut self, count: u64) {
        if let Some(account) = self.accounts.last_mut() {
            account.booked += count;
            account.owned += count;
        }
    }

    /// Notes something that differs.
    fn find(&mut self, kind: &Kind, fault: Fault, what: String, whose: Option<String>) {
        if self.findings.len() >= MAX_FINDINGS {
            return;
        }
        self.findings.push(Finding {
            plane: self.plane.clone(),
            kind: kind.name.into(),
            fault: fault.into(),
            what,
            whose,
            meaning: match fault {
                Fault::WithoutOwner => kind.without_owner,
                _ => kind.missing,
            }
            .into(),
            repaired: false,
        });
    }

    /// This ledger after a repair: what `before` had found and is no longer found is told as put right.
    pub fn after_repair_of(mut self, before: Ledger) -> Self {
        let same = |a: &Finding, b: &Finding| {
            (&a.kind, a.fault, &a.what, &a.whose) == (&b.kind, b.fault, &b.what, &b.whose)
        };
        let gone = before.findings.into_iter();
        let gone = gone.filter(|old| !self.findings.iter().any(|new| same(old, new)));
        let repaired: Vec<Finding> = gone
            .map(|f| Finding {
                repaired: true,
                ..f
            })
            .collect();
        self.findings.splice(0..0, repaired);
        self
    }
}

/// Claims in order of their keys, as those that come first of each key and those that come after: these with the place
/// of the first one.
#[allow(clippy::type_complexity)]
fn one_owner_each<K: Ord, O>(claims: Vec<(K, O)>) -> (Vec<(K, O)>, Vec<(K, usize, O)>) {
    let (mut first, mut others): (Vec<(K, O)>, _) = (Vec::with_capacity(claims.len()), Vec::new());
    for (key, owner) in claims {
        match first.last() {
            Some((last, _)) if *last == key => others.push((key, first.len() - 1, owner)),
            _ => first.push((key, owner)),
        }
    }
    (first, others)
}

/// What is on one side alone; both are in order of their keys.
#[allow(clippy::type_complexity)]
fn difference<K: Ord, O>(booked: Vec<K>, owned: Vec<(K, O)>) -> (Vec<K>, Vec<(K, O)>) {
    let (mut without_owner, mut missing) = (Vec::new(), Vec::new());
    let mut booked = booked.into_iter().peekable();
    for (key, owner) in owned {
        while let Some(before) = booked.next_if(|b| *b < key) {
            without_owner.push(before);
        }
        if booked.next_if(|b| *b == key).is_none() {
            missing.push((key, owner));
        }
    }
    without_owner.extend(booked);
    (without_owner, missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: Kind = Kind::new("thing", "nobody has it", "it is not booked");

    fn ledger(booked: &[u32], owned: &[(u32, char)]) -> (Ledger, Differences<u32, char>) {
        let mut ledger = Ledger::of("cp1");
        let differences =
            ledger.compare(&KIND, booked.iter().copied(), owned.iter().copied(), |k| {
                k.to_string()
            });
        (ledger, differences)
    }

    #[test]
    fn what_is_booked_and_owned_once_is_balanced() {
        let (ledger, _) = ledger(&[3, 1, 2], &[(2, 'b'), (1, 'a'), (3, 'c')]);
        assert!(ledger.is_balanced() && ledger.findings.is_empty());
        assert_eq!((ledger.held("thing"), ledger.held("other")), (3, 0));
    }

    #[test]
    fn every_difference_is_found_named_and_counted() {
        let (ledger, found) = ledger(&[9, 1, 2, 2], &[(1, 'a'), (1, 'b'), (2, 'a'), (5, 'c')]);
        assert_eq!(found.without_owner, [2, 9], "booked twice, owned once");
        assert_eq!(
            (found.missing, found.twice),
            (vec![(5, 'c')], vec![(1, 'b')])
        );
        let told = ledger.findings.iter();
        let told: Vec<_> = told
            .map(|f| (f.fault(), &*f.what, f.whose.as_deref()))
            .collect();
        assert_eq!(
            told,
            [
                (Fault::Twice, "1", Some("a, b")),
                (Fault::Missing, "5", Some("c")),
                (Fault::WithoutOwner, "2", None),
                (Fault::WithoutOwner, "9", None),
            ]
        );
        let account = &ledger.accounts[0];
        assert_eq!((account.booked, account.owned), (4, 4));
        assert_eq!((account.without_owner, account.missing), (2, 2));
        assert!(!ledger.is_balanced());
    }

    #[test]
    fn what_a_repair_put_right_is_told_as_such_and_the_rest_stays() {
        let (before, _) = ledger(&[1, 2], &[]);
        let (after, _) = ledger(&[2], &[]);
        let after = after.after_repair_of(before);
        let told: Vec<_> = after
            .findings
            .iter()
            .map(|f| (&*f.what, f.repaired))
            .collect();
        assert_eq!(told, [("1", true), ("2", false)]);
        assert!(!after.is_balanced());
    }

    #[test]
    fn what_agrees_need_not_be_named() {
        let (mut ledger, _) = ledger(&[1], &[(2, 'a')]);
        ledger.agreed(1000);
        let account = &ledger.accounts[0];
        assert_eq!((account.booked, account.owned), (1001, 1001));
        assert_eq!((account.without_owner, account.missing), (1, 1));
    }

    #[test]
    fn very_many_findings_are_counted_and_not_all_told() {
        let booked: Vec<u32> = (0..5000).collect();
        let (ledger, found) = ledger(&booked, &[]);
        assert_eq!(
            (ledger.findings.len(), found.without_owner.len()),
            (1000, 5000)
        );
        assert_eq!(ledger.accounts[0].without_owner, 5000);
    }
}
