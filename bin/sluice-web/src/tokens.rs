//! Tokens: who a client is, and what it may do. The file has hashes of the tokens only.
//!
//! A token is 256 random bits, so that its SHA-256 need not be slow: nobody guesses it.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

/// What a token begins with, by which programs that look for secrets find it.
const PREFIX: &str = "sluice_";
/// Maximum number of tokens.
const MOST: usize = 256;
/// Maximum length of a name, in octets.
const NAME: usize = 64;

/// What somebody may do. Each may do what those before it may.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// See the gateway: metrics, and tables that name no subscriber
    View,
    /// See subscribers too: sessions, lines, events
    Support,
    /// Carry out actions, such as ending a session
    Operate,
    /// Change the configuration
    Configure,
}

impl Role {
    /// Its name.
    pub const fn word(self) -> &'static str {
        match self {
            Role::View => "view",
            Role::Support => "support",
            Role::Operate => "operate",
            Role::Configure => "configure",
        }
    }
}

/// A token, of which only the hash is known.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Token {
    /// Who uses it.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// SHA-256 of the token, in hexadecimal digits.
    sha256: String,
    /// When it was made, in seconds since 1970.
    created: u64,
    /// When it expires, in seconds since 1970; `None`: never.
    pub expires: Option<u64>,
}

/// The file of the tokens.
#[derive(Clone, Debug)]
pub struct TokenFile(PathBuf);

impl TokenFile {
    /// The file in this state folder.
    pub fn of(state: &Path) -> Self {
        TokenFile(state.join("tokens.json"))
    }

    /// The tokens; none if there is no file.
    pub fn read(&self) -> Result<Vec<Token>, String> {
        let said = |error: &dyn std::fmt::Display| format!("{}: {error}", self.0.display());
        match fs::read(&self.0) {
            Ok(text) => serde_json::from_slice(&text).map_err(|error| said(&error)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(said(&error)),
        }
    }

    /// Makes a token and returns it.
    pub fn add(
        &self,
        name: &str,
        role: Role,
        now: u64,
        expires: Option<u64>,
    ) -> Result<String, String> {
        let visible = name.chars().all(|c| c.is_ascii_graphic());
        if name.is_empty() || name.len() > NAME || !visible {
            return Err(format!(
                "`{name}` is no name: expected 1 to {NAME} visible ASCII characters without blanks"
            ));
        }
        let secret = format!("{PREFIX}{}", hexadecimal(&rand::random::<[u8; 32]>()));
        let token = Token {
            name: name.into(),
            role,
            sha256: hexadecimal(&Sha256::digest(&secret)),
            created: now,
            expires,
        };
        self.change(|tokens| {
            if tokens.iter().any(|token| token.name == name) {
                return Err(format!(
                    "there is a token `{name}` already: choose another name, or revoke it first"
                ));
            }
            if tokens.len() >= MOST {
                return Err(format!(
                    "there are {MOST} tokens already: revoke some that nobody uses"
                ));
            }
            tokens.push(token);
            Ok(())
        })?;
        Ok(secret)
    }

    /// Removes the token of this name.
    pub fn revoke(&self, name: &str) -> Result<(), String> {
        self.change(|tokens| {
            let before = tokens.len();
            tokens.retain(|token| token.name != name);
            if tokens.len() == before {
                return Err(format!(
                    "there is no token `{name}`: `sluice-web token list` lists them"
                ));
            }
            Ok(())
        })
    }

    /// Changes the file as a whole: whoever reads it sees the old one or the new one.
    fn change(
        &self,
        change: impl FnOnce(&mut Vec<Token>) -> Result<(), String>,
    ) -> Result<(), String> {
        let folder = self.0.parent().unwrap_or(Path::new("."));
        let said = |error: std::io::Error| format!("{}: {error}", self.0.display());
        config::folder::make(folder).map_err(said)?;
        let lock = File::open(folder).map_err(said)?;
        lock.lock().map_err(said)?;
        let mut tokens = self.read()?;
        change(&mut tokens)?;
        let text = serde_json::to_vec_pretty(&tokens).map_err(|error| error.to_string())?;
        crate::files::replace(&self.0, &text).map_err(said)
    }
}

/// Octets in hexadecimal digits.
pub fn hexadecimal(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// What a file was when it was read; [`None`]: it was not there.
type Version = Option<(u64, i64, i64, u64)>;

/// The tokens in force. The file is read again when it has changed.
#[derive(Debug)]
pub struct Tokens {
    file: TokenFile,
    read: Mutex<(Version, Vec<Token>)>,
}

impl Tokens {
    /// The tokens of a file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn open(file: TokenFile) -> Result<Self, String> {
        let read = (version(&file.0), file.read()?);
        Ok(Tokens {
            file,
            read: Mutex::new(read),
        })
    }

    /// Who presents this token, and what it may do; `None` if it is not in force.
    pub fn find(&self, presented: &str, now: u64) -> Option<(String, Role)> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let there = version(&self.file.0);
        if read.0 != there {
            // of a file that cannot be read no token is in force
            let tokens = self.file.read().unwrap_or_else(|error| {
                tracing::error!(error, "the tokens cannot be read: nobody is let in");
                Vec::new()
            });
            *read = (there, tokens);
        }
        let hash = hexadecimal(&Sha256::digest(presented));
        // every token is compared, each in the same time
        let (mut found, mut at) = (Choice::from(0), 0);
        for (number, token) in (0u32..).zip(&read.1) {
            let same = token.sha256.as_bytes().ct_eq(hash.as_bytes());
            at.conditional_assign(&number, same);
            found |= same;
        }
        let token = read.1.get(at as usize).filter(|_| found.into())?;
        let in_force = token.expires.is_none_or(|expires| now < expires);
        in_force.then(|| (token.name.clone(), token.role))
    }
}

fn version(path: &Path) -> Version {
    let there = fs::metadata(path).ok()?;
    Some((there.ino(), there.mtime(), there.mtime_nsec(), there.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_token_is_in_force_until_it_expires_or_is_revoked() {
        let folder = tempfile::tempdir().unwrap();
        let file = TokenFile::of(&folder.path().join("web"));
        let tokens = Tokens::open(file.clone()).unwrap();
        let scraper = file.add("scraper", Role::View, 100, Some(200)).unwrap();
        let noc = file.add("noc", Role::Operate, 100, None).unwrap();
        let named = |name: &str, role| Some((name.to_owned(), role));
        assert_eq!(tokens.find(&scraper, 199), named("scraper", Role::View));
        assert_eq!(tokens.find(&scraper, 200), None, "it has expired");
        assert_eq!(tokens.find(&noc, u64::MAX), named("noc", Role::Operate));
        for wrong in ["", "sluice_", &noc[..noc.len() - 1], &format!("{noc}0")] {
            assert_eq!(tokens.find(wrong, 100), None, "{wrong}");
        }
        file.revoke("noc").unwrap();
        assert_eq!(tokens.find(&noc, 100), None);
        assert!(file.revoke("noc").unwrap_err().contains("token list"));
    }

    #[test]
    fn the_file_has_no_token_and_is_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = TokenFile::of(folder.path());
        let token = file.add("noc", Role::View, 0, None).unwrap();
        let text = fs::read_to_string(&file.0).unwrap();
        assert!(!text.contains(&token[PREFIX.len()..]), "{text}");
        let mode = fs::metadata(&file.0).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn names_are_unique_and_tokens_have_a_bound() {
        let folder = tempfile::tempdir().unwrap();
        let file = TokenFile::of(folder.path());
        for wrong in ["", "a b", "naïve", &"x".repeat(NAME + 1)] {
            assert!(file.add(wrong, Role::View, 0, None).is_err(), "{wrong}");
        }
        file.add("noc", Role::View, 0, None).unwrap();
        assert!(file.add("noc", Role::View, 0, None).is_err());
        let token = Token {
            name: "x".into(),
            role: Role::View,
            sha256: String::new(),
            created: 0,
            expires: None,
        };
        file.change(|tokens| {
            tokens.resize(MOST, token);
            Ok(())
        })
        .unwrap();
        assert!(file.add("more", Role::View, 0, None).is_err());
    }

    #[test]
    fn nobody_is_let_in_by_a_file_that_cannot_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = TokenFile::of(folder.path());
        let token = file.add("noc", Role::View, 0, None).unwrap();
        let tokens = Tokens::open(file.clone()).unwrap();
        assert!(tokens.find(&token, 0).is_some());
        fs::write(&file.0, "{}").unwrap();
        assert_eq!(tokens.find(&token, 0), None);
    }

    #[test]
    fn roles_rise() {
        assert!(Role::View < Role::Support && Role::Support < Role::Operate);
    }
}
