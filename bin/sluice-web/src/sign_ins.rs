//! Sign-ins in force. They are in memory: a restart ends all of them.

use crate::links::Link;
use crate::lists::List;
use crate::role::Role;
use crate::secrets;
use crate::users::User;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How long a sign-in lasts, in seconds.
pub const LIFETIME: u64 = 12 * 60 * 60;
/// Maximum number of sign-ins. Above it, the one that expires first ends.
const MOST: usize = 1024;

/// By what somebody has signed in.
#[derive(Clone, Debug)]
pub enum Holder {
    /// A user with a password, as the user was then.
    User(User),
    /// A one-time link.
    Link(Link),
}

impl Holder {
    /// Name of the user, or the name that the link gives.
    pub fn name(&self) -> &str {
        match self {
            Holder::User(user) => &user.name,
            Holder::Link(link) => &link.name,
        }
    }

    /// What it may do.
    pub fn role(&self) -> Role {
        match self {
            Holder::User(user) => user.role,
            Holder::Link(link) => link.role,
        }
    }

    /// Whether it is as it was. A user who was removed, or has another password or role, has to sign in again.
    pub fn is_same(&self, users: &[User]) -> bool {
        match self {
            Holder::User(user) => users.contains(user),
            Holder::Link(_) => true,
        }
    }
}

/// A sign-in.
#[derive(Clone, Debug)]
pub struct SignIn {
    /// By what it was made.
    pub holder: Holder,
    /// When it expires, in seconds since 1970.
    pub expires: u64,
}

/// SHA-256 of a sign-in's secret.
type Key = [u8; 32];

#[derive(Debug, Default)]
struct Table {
    /// A hash of a secret that nobody guesses can be looked up in any time: how long that takes tells nothing of the secret.
    sign_ins: HashMap<Key, SignIn>,
    displaced: u64,
}

/// All sign-ins.
#[derive(Debug, Default)]
pub struct SignIns(Mutex<Table>);

impl SignIns {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a sign-in. Returns its secret, and when it expires.
    pub fn begin(&self, holder: Holder, now: u64) -> (String, u64) {
        let (secret, expires) = (secrets::generate(), now + LIFETIME);
        let mut table = self.table();
        let sign_ins = &mut table.sign_ins;
        sign_ins.retain(|_, sign_in| now < sign_in.expires);
        if sign_ins.len() >= MOST {
            let first = sign_ins.iter().min_by_key(|(_, sign_in)| sign_in.expires);
            if let Some(first) = first.map(|(key, _)| *key) {
                sign_ins.remove(&first);
                table.displaced += 1;
            }
        }
        let sign_in = SignIn { holder, expires };
        table.sign_ins.insert(key(&secret), sign_in);
        (secret, expires)
    }

    /// The sign-in whose secret is presented; `None` if it is not in force.
    pub fn find(&self, presented: &str, users: &List<User>, now: u64) -> Option<SignIn> {
        let (mut table, key) = (self.table(), key(presented));
        let sign_in = table.sign_ins.get(&key)?;
        let same = users.look(|users| sign_in.holder.is_same(users));
        if same && now < sign_in.expires {
            return Some(sign_in.clone());
        }
        table.sign_ins.remove(&key);
        None
    }

    /// Ends the sign-in whose secret is presented, if there is one.
    pub fn end(&self, presented: &str) {
        self.table().sign_ins.remove(&key(presented));
    }

    /// Number of sign-ins in force, and how many ended because there was no room for them.
    pub fn counts(&self, users: &List<User>, now: u64) -> (usize, u64) {
        let mut table = self.table();
        users.look(|users| {
            let in_force = |s: &SignIn| now < s.expires && s.holder.is_same(users);
            table.sign_ins.retain(|_, sign_in| in_force(sign_in));
        });
        (table.sign_ins.len(), table.displaced)
    }
}

fn key(secret: &str) -> Key {
    Sha256::digest(secret).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lists::ListFile;
    use crate::users::set_password;

    const PASSWORD: &str = "correct horse battery";

    struct Site {
        _folder: tempfile::TempDir,
        file: ListFile<User>,
        users: List<User>,
        sign_ins: SignIns,
    }

    impl Site {
        /// Alice may view.
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let file = ListFile::of(folder.path());
            let alice = User::new("alice", Role::View, PASSWORD, 0).unwrap();
            file.add(alice).unwrap();
            Site {
                users: List::open(file.clone()).unwrap(),
                _folder: folder,
                file,
                sign_ins: SignIns::default(),
            }
        }

        fn alice(&self) -> Holder {
            Holder::User(self.users.look(|users| users[0].clone()))
        }

        fn finds(&self, secret: &str, now: u64) -> bool {
            self.sign_ins.find(secret, &self.users, now).is_some()
        }
    }

    #[test]
    fn a_sign_in_lasts_until_it_expires_or_is_ended() {
        let site = Site::new();
        let (first, expires) = site.sign_ins.begin(site.alice(), 100);
        let (second, _) = site.sign_ins.begin(site.alice(), 100);
        assert_eq!(expires, 100 + 12 * 3600);
        assert!(site.finds(&first, expires - 1) && site.finds(&second, 100));
        site.sign_ins.end(&second);
        assert!(!site.finds(&second, 100) && !site.finds("", 100));
        assert_eq!(site.sign_ins.counts(&site.users, expires - 1), (1, 0));
        assert!(!site.finds(&first, expires));
        assert_eq!(site.sign_ins.counts(&site.users, 100), (0, 0));
    }

    #[test]
    fn what_changes_a_user_ends_the_sign_ins_of_this_user_alone() {
        type Change = fn(&ListFile<User>);
        let changes: [Change; 4] = [
            |file| file.remove("alice").unwrap(),
            |file| set_password(file, "alice", PASSWORD).unwrap(),
            |file| {
                file.change_one("alice", |user| user.role = Role::Configure)
                    .unwrap()
            },
            |file| {
                file.remove("alice").unwrap();
                let again = User::new("alice", Role::View, PASSWORD, 0).unwrap();
                file.add(again).unwrap();
            },
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let site = Site::new();
            let bob = User::new("bob", Role::View, PASSWORD, 0).unwrap();
            site.file.add(bob.clone()).unwrap();
            let (alice, _) = site.sign_ins.begin(site.alice(), 0);
            let (bob, _) = site.sign_ins.begin(Holder::User(bob), 0);
            assert!(site.finds(&alice, 0) && site.finds(&bob, 0));
            change(&site.file);
            assert_eq!(site.sign_ins.counts(&site.users, 0), (1, 0), "{number}");
            assert!(!site.finds(&alice, 0) && site.finds(&bob, 0), "{number}");
        }
    }

    #[test]
    fn above_the_bound_the_one_that_expires_first_ends() {
        let site = Site::new();
        let (first, _) = site.sign_ins.begin(site.alice(), 0);
        let (second, _) = site.sign_ins.begin(site.alice(), 1);
        for _ in 2..MOST {
            site.sign_ins.begin(site.alice(), 2);
        }
        assert!(site.finds(&first, 2));
        site.sign_ins.begin(site.alice(), 2);
        assert!(!site.finds(&first, 2) && site.finds(&second, 2));
        assert_eq!(site.sign_ins.counts(&site.users, 2), (MOST, 1));
        let debug = format!("{:?}", site.sign_ins);
        assert!(!debug.contains(&second), "{debug}");
    }
}
