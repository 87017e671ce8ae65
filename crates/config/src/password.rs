//! Hashes of passwords: argon2id (RFC 9106) in the PHC string format, `$argon2id$v=19$m=19456,t=2,p=1$SALT$HASH`.

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{ARGON2ID_IDENT, Argon2, Params, Version};

/// Maximum memory of a hash, in KiB. The control plane computes two hashes at a time.
pub const MOST_MEMORY: u32 = 64 * 1024;
/// Maximum number of passes over the memory.
pub const MOST_PASSES: u32 = 10;
/// Maximum number of lanes.
pub const MOST_LANES: u32 = 4;

/// Whether a hash can be used, at a cost that the control plane bears.
///
/// # Errors
/// What is wrong with it, and what is expected.
pub fn check(hash: &str) -> Result<(), String> {
    let expected = "expected argon2id in the PHC format, as `sluice hash-password` prints it";
    let parsed = PasswordHash::new(hash).map_err(|_| format!("not a hash: {expected}"))?;
    let version = parsed.version == Some(Version::V0x13.into());
    if parsed.algorithm != ARGON2ID_IDENT || !version {
        return Err(format!("another algorithm or version: {expected}"));
    }
    if parsed.salt.is_none() || parsed.hash.is_none() {
        return Err(format!("without salt or hash: {expected}"));
    }
    let params = Params::try_from(&parsed).map_err(|_| format!("wrong parameters: {expected}"))?;
    for (name, value, most) in [
        ("m", params.m_cost(), MOST_MEMORY),
        ("t", params.t_cost(), MOST_PASSES),
        ("p", params.p_cost(), MOST_LANES),
    ] {
        if value > most {
            return Err(format!(
                "its parameter {name} is {value}, and a login may not cost so much: expected at most {most}"
            ));
        }
    }
    Ok(())
}

/// Hash of a password with 19 MiB of memory, two passes, one lane, and a random salt.
///
/// # Errors
/// The system has no random numbers, or no memory.
pub fn hash(password: &[u8]) -> Result<String, String> {
    let hash = Argon2::default().hash_password(password);
    let hash = hash.map_err(|error| format!("cannot hash the password: {error}"))?;
    Ok(hash.to_string())
}

/// Whether a password has this hash. It takes as long as the hash's parameters say, some 10 ms by default.
pub fn verify(hash: &str, password: &[u8]) -> bool {
    Argon2::default().verify_password(password, hash).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_knows_its_password_and_no_other() {
        let made = hash(b"wonderland").unwrap();
        assert!(
            made.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"),
            "{made}"
        );
        assert_eq!(check(&made), Ok(()));
        assert!(verify(&made, b"wonderland"));
        assert!(!verify(&made, b"wonderlan") && !verify(&made, b""));
        assert_ne!(hash(b"wonderland").unwrap(), made, "each has its salt");
        assert!(!verify("nothing", b"wonderland"));
    }

    #[test]
    fn a_hash_that_costs_too_much_or_is_none_is_refused() {
        let with = |head: &str| {
            let salt = "c29tZXNhbHRzb21lc2FsdA";
            let hash = "Y2FuIGJlIGFueXRoaW5nIG9mIDMyIG9jdGV0cy4uLi4";
            check(&format!("{head}${salt}${hash}"))
        };
        assert_eq!(with("$argon2id$v=19$m=65536,t=10,p=4"), Ok(()));
        for (head, says) in [
            ("$argon2id$v=19$m=65537,t=1,p=1", "m is 65537"),
            ("$argon2id$v=19$m=4294967295,t=1,p=1", "m is 4294967295"),
            ("$argon2id$v=19$m=64,t=11,p=1", "t is 11"),
            ("$argon2id$v=19$m=64,t=1,p=5", "p is 5"),
            ("$argon2id$v=19$m=7,t=1,p=1", "wrong parameters"),
            ("$argon2id$v=19$m=64,t=0,p=1", "wrong parameters"),
            ("$argon2i$v=19$m=64,t=1,p=1", "another algorithm"),
            ("$argon2id$v=16$m=64,t=1,p=1", "another algorithm"),
            ("$argon2id$m=64,t=1,p=1", "another algorithm"),
            ("$2b$12", "not a hash"),
        ] {
            let why = with(head).unwrap_err();
            assert!(why.contains(says), "{head}: {why}");
        }
        for (text, says) in [
            ("hunter2", "not a hash"),
            ("", "not a hash"),
            ("$argon2id$v=19$m=64,t=1,p=1", "without salt"),
        ] {
            let why = check(text).unwrap_err();
            assert!(why.contains(says), "{text}: {why}");
            assert!(!why.contains("hunter2"), "it may be a password");
        }
    }
}
