//! Tokens: who a program is, and what it may do. The file has hashes of the tokens only.

use crate::lists::Entry;
use crate::role::Role;
use crate::scope::Scope;
use crate::secrets;
use serde::{Deserialize, Serialize};

/// What a token begins with, by which programs that look for secrets find it.
const PREFIX: &str = "sluice_";

/// A token, of which only the hash is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// Who uses it.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// What it may be used for; none: everything that the role allows. Tokens of earlier versions have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<Scope>,
    /// SHA-256 of the token, in hexadecimal digits.
    sha256: String,
    /// When it was made, in seconds since 1970.
    created: u64,
    /// When it expires, in seconds since 1970; `None`: never.
    pub expires: Option<u64>,
}

impl Entry for Token {
    const KIND: &'static str = "token";
    const MOST: usize = 256;

    fn name(&self) -> &str {
        &self.name
    }
}

impl Token {
    /// Makes a token, and the secret that whoever uses it presents.
    pub fn generate(
        name: &str,
        role: Role,
        scopes: Vec<Scope>,
        now: u64,
        expires: Option<u64>,
    ) -> (Self, String) {
        let secret = format!("{PREFIX}{}", secrets::generate());
        let token = Token {
            name: name.into(),
            role,
            scopes,
            sha256: secrets::digest(&secret),
            created: now,
            expires,
        };
        (token, secret)
    }

    /// Whether it has not expired.
    pub fn is_in_force(&self, now: u64) -> bool {
        self.expires.is_none_or(|expires| now < expires)
    }
}

/// The token whose secret is presented; `None` if it is not in force.
pub fn find<'a>(tokens: &'a [Token], presented: &str, now: u64) -> Option<&'a Token> {
    let token = secrets::find(tokens, |token| &token.sha256, presented)?;
    token.is_in_force(now).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lists::{List, ListFile};

    #[test]
    fn a_token_is_in_force_until_it_expires_or_is_revoked() {
        let folder = tempfile::tempdir().unwrap();
        let file = ListFile::of(&folder.path().join("web"));
        let tokens = List::open(file.clone()).unwrap();
        let add = |name, role, expires| {
            let (token, secret) = Token::generate(name, role, Vec::new(), 100, expires);
            file.add(token).unwrap();
            secret
        };
        let find = |presented: &str, now| {
            tokens.look(|tokens| find(tokens, presented, now).map(|t| (t.name.clone(), t.role)))
        };
        let scraper = add("scraper", Role::View, Some(200));
        let noc = add("noc", Role::Operate, None);
        let named = |name: &str, role| Some((name.to_owned(), role));
        assert_eq!(find(&scraper, 199), named("scraper", Role::View));
        assert_eq!(find(&scraper, 200), None, "it has expired");
        assert_eq!(find(&noc, u64::MAX), named("noc", Role::Operate));
        for wrong in ["", "sluice_", &noc[..noc.len() - 1], &format!("{noc}0")] {
            assert_eq!(find(wrong, 100), None, "{wrong}");
        }
        file.remove("noc").unwrap();
        assert_eq!(find(&noc, 100), None);
        let text = std::fs::read_to_string(folder.path().join("web/tokens.json")).unwrap();
        assert!(!text.contains(&scraper[PREFIX.len()..]), "{text}");
    }

    #[test]
    fn a_token_of_an_earlier_version_may_be_used_for_everything() {
        let (mut token, _) = Token::generate("noc", Role::View, vec![Scope::Metrics], 100, None);
        let mut stored = serde_json::json!(token);
        assert_eq!(stored["scopes"], serde_json::json!(["metrics"]));
        stored.as_object_mut().unwrap().remove("scopes");
        token.scopes.clear();
        assert_eq!(serde_json::json!(token), stored);
        assert_eq!(serde_json::from_value::<Token>(stored).unwrap(), token);
    }
}
