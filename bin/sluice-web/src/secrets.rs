//! Secrets that this program makes: 256 random bits, of which it keeps the SHA-256 only. Nobody guesses 256 bits, so that their hash need
//! not be slow.

use sha2::{Digest, Sha256};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

/// A new secret, in hexadecimal digits.
pub fn generate() -> String {
    hexadecimal(&rand::random::<[u8; 32]>())
}

/// SHA-256 of a secret, in hexadecimal digits.
pub fn digest(secret: &str) -> String {
    hexadecimal(&Sha256::digest(secret))
}

/// Octets in hexadecimal digits.
pub fn hexadecimal(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// Finds the entry whose digest is that of the presented secret. All entries are compared, each in the same time.
pub fn find<'a, T>(
    entries: &'a [T],
    digest_of: impl Fn(&T) -> &str,
    presented: &str,
) -> Option<&'a T> {
    let presented = digest(presented);
    let (mut found, mut at) = (Choice::from(0), 0);
    for (number, entry) in (0u32..).zip(entries) {
        let same = digest_of(entry).as_bytes().ct_eq(presented.as_bytes());
        at.conditional_assign(&number, same);
        found |= same;
    }
    entries.get(at as usize).filter(|_| found.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_found_by_its_digest_alone() {
        let secrets = [generate(), generate()];
        let digests = secrets.each_ref().map(|secret| digest(secret));
        for (secret, digest) in secrets.iter().zip(&digests) {
            assert_eq!(secret.len(), 64);
            assert_eq!(find(&digests, |d| d, secret), Some(digest));
            assert_eq!(find(&digests, |d| d, digest), None, "a digest is no secret");
        }
        assert_eq!(find(&digests, |d| d, ""), None);
        assert_eq!(find(&[], |d: &String| d, &secrets[0]), None);
    }
}
