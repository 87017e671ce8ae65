//! Users: people who sign in with a password. The file has hashes of the passwords only.

use crate::lists::{Entry, ListFile};
use crate::role::Role;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::RangeInclusive;

/// Number of characters of a password.
const LENGTH: RangeInclusive<usize> = 12..=256;
/// Maximum size of a password, in octets: each character has at most four in UTF-8.
pub const LONGEST: usize = 4 * *LENGTH.end();

/// A user, of whose password only the hash is known.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// By which name the user signs in.
    pub name: String,
    /// What the user may do.
    pub role: Role,
    /// Hash of the password: argon2id in the PHC format, with a salt of its own.
    argon2id: String,
    /// When the user was made, in seconds since 1970.
    pub created: u64,
}

impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut user = f.debug_struct("User");
        user.field("name", &self.name).field("role", &self.role);
        user.finish_non_exhaustive()
    }
}

impl Entry for User {
    const KIND: &'static str = "user";
    const MOST: usize = 256;

    fn name(&self) -> &str {
        &self.name
    }
}

impl User {
    /// Makes a user.
    ///
    /// # Errors
    /// The password is too short or too long, or the system has no random numbers or no memory.
    pub fn new(name: &str, role: Role, password: &str, now: u64) -> Result<Self, String> {
        Ok(User {
            name: name.into(),
            role,
            argon2id: hash(password)?,
            created: now,
        })
    }

    /// The hash of the password.
    pub fn hash(&self) -> &str {
        &self.argon2id
    }
}

/// Gives a user another password.
///
/// # Errors
/// As [`User::new`], or there is no such user.
pub fn set_password(file: &ListFile<User>, name: &str, password: &str) -> Result<(), String> {
    let hash = hash(password)?;
    file.change_one(name, |user| user.argon2id = hash)
}

/// Hash of a password. Its cost is [`config::password::hash`]'s: the least that OWASP recommends for argon2id, 19 MiB and two passes. The
/// second option of RFC 9106 (section 4) is 64 MiB and three passes. That would be more than three times the memory, which strangers could
/// make this server use, and what a stolen file costs to try out is decided by the length of the passwords more than by that.
fn hash(password: &str) -> Result<String, String> {
    let (least, most) = LENGTH.into_inner();
    match password.chars().count() {
        length if length < least => Err(format!(
            "the password has {length} characters: expected at least {least}"
        )),
        length if length > most => Err(format!(
            "the password has {length} characters: expected at most {most}"
        )),
        _ => config::password::hash(password.as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_has_12_to_256_characters_and_stays_out_of_file_and_debug() {
        let user = |password: &str| User::new("alice", Role::View, password, 0);
        for (wrong, says) in [
            ("elevenchars", "has 11 characters: expected at least 12"),
            (&*"x".repeat(257), "expected at most 256"),
        ] {
            let said = user(wrong).unwrap_err();
            assert!(said.contains(says), "{said}");
            assert!(!said.contains(wrong), "{said}");
        }
        assert!(user("twelve chärs").is_ok());
        assert!(user(&"ä".repeat(256)).is_ok());
        let alice = user("correct horse battery").unwrap();
        let text = serde_json::to_string(&alice).unwrap();
        assert!(text.contains("$argon2id$v=19$m=19456,t=2,p=1$"), "{text}");
        assert!(!text.contains("horse"), "{text}");
        let debug = format!("{alice:?}");
        assert!(!debug.contains("argon2id"), "{debug}");
    }

    #[test]
    fn another_password_is_another_user_also_if_it_is_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let file = ListFile::of(folder.path());
        let password = "correct horse battery";
        file.add(User::new("alice", Role::View, password, 0).unwrap())
            .unwrap();
        let before = file.read().unwrap();
        set_password(&file, "alice", password).unwrap();
        assert_ne!(file.read().unwrap(), before, "its salt is another");
        assert!(set_password(&file, "bob", password).is_err());
        assert!(set_password(&file, "alice", "short").is_err());
    }
}
