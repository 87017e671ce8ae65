//! `sluice hash-password`: a hash for `users NAME password-hash`.

use super::Failure;
use super::show::print_lines;

/// Longest password in octets: what fits into the field of a PAP request (RFC 1334 §2.2.1).
const LONGEST: usize = 255;

/// Asks for a password, twice and unseen on a terminal, and prints its hash. Elsewhere the password is the first line of the input.
pub(super) fn hash() -> Result<(), Failure> {
    let password = read(true)?;
    let hash = config::password::hash(password.as_bytes()).map_err(Failure::Other)?;
    print_lines(&[hash])
}

/// A password that is typed unseen on a terminal, twice if it must be right; elsewhere the first line of the input.
pub(super) fn read(twice: bool) -> Result<String, Failure> {
    let password = config::prompt::password(twice, LONGEST);
    password.map_err(|error| Failure::Other(format!("no password: {error}")))
}
