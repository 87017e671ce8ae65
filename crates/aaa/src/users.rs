//! The users file: the embedded default where there is no RADIUS server.
//!
//! ```yaml
//! users:
//!   - name: alice
//!     password: wonderland
//!   - name: bob
//!     password: builder
//!     ipv4: 100.64.9.1                # optional: always this address
//!     ipv6-prefix: 2001:db8:9:1::/64  # optional: always this prefix on his link
//! ```

use core::net::Ipv4Addr;
use std::collections::HashMap;
use std::path::Path;

use ipnet::Ipv6Net;
use serde::Deserialize;
use serde_saphyr::Spanned;
use subtle::ConstantTimeEq;
use wire::radius::chap_response;

use crate::Secret;
use crate::message::{
    AccessAccept, AccessReject, AccessRequest, Credentials, Outcome, RejectReason,
};

/// Those who may come in without asking a server. Answers like the [`Client`](crate::Client), only at once.
#[derive(Debug)]
pub struct Users {
    by_name: HashMap<Vec<u8>, User>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    users: Vec<Spanned<User>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct User {
    name: String,
    password: Secret,
    ipv4: Option<Ipv4Addr>,
    ipv6_prefix: Option<Ipv6Net>,
}

/// Why a users file is refused. Never shows a password.
#[derive(Debug, thiserror::Error)]
pub enum UsersError {
    /// The file cannot be read.
    #[error("{file}: cannot be read: {source}")]
    Unreadable {
        /// The file.
        file: String,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// The file does not say what a users file says.
    #[error("{file}:{line}: {message}")]
    Invalid {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
        /// What is wrong and what is expected.
        message: String,
    },
}

impl Users {
    /// Reads a users file.
    pub fn load(path: &Path) -> Result<Self, UsersError> {
        let file = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(&text, &file),
            Err(source) => Err(UsersError::Unreadable { file, source }),
        }
    }

    /// Reads the text of a users file; `file` is its name for messages.
    pub fn parse(text: &str, file: &str) -> Result<Self, UsersError> {
        let invalid = |line, message| UsersError::Invalid {
            file: file.to_owned(),
            line,
            message,
        };
        let document: Document = serde_saphyr::from_str(text).map_err(|error| {
            let line = error.location().map_or(1, |location| location.line());
            invalid(line, describe(&error.without_snippet().to_string()))
        })?;
        let mut by_name = HashMap::new();
        for entry in document.users {
            let (line, user) = (entry.referenced.line(), entry.value);
            user.check().map_err(|message| invalid(line, message))?;
            let name = user.name.clone();
            if by_name.insert(name.clone().into_bytes(), user).is_some() {
                return Err(invalid(line, format!("the user {name} is there already")));
            }
        }
        Ok(Self { by_name })
    }

    /// How many users there are.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Whether a subscriber may come in. What it takes to say no does not tell whether the name exists.
    pub fn authenticate(&self, request: &AccessRequest) -> Outcome {
        let user = self.by_name.get(&request.username);
        let nobody = Secret::default();
        let password = user.map_or(&nobody, |user| &user.password);
        let right = match &request.credentials {
            Credentials::Pap { password: given } => password.matches(given.expose()),
            Credentials::Chap {
                id,
                challenge,
                response,
            } => chap_response(*id, password.expose(), challenge)
                .ct_eq(response)
                .into(),
        };
        match user.filter(|_| right) {
            Some(user) => Outcome::Accept(Box::new(AccessAccept {
                framed_ip: user.ipv4,
                framed_ipv6_prefix: user.ipv6_prefix,
                ..AccessAccept::default()
            })),
            None => Outcome::Reject(AccessReject {
                reply_message: Vec::new(),
                reason: RejectReason::Refused,
            }),
        }
    }
}

impl User {
    fn check(&self) -> Result<(), String> {
        let Self {
            name,
            password,
            ipv4: _,
            ipv6_prefix,
        } = self;
        if name.is_empty() {
            return Err("name: expected at least one character".into());
        }
        if password.expose().is_empty() {
            return Err(format!("the password of {name} is empty"));
        }
        match ipv6_prefix {
            Some(prefix) if prefix.prefix_len() != 64 || prefix.trunc() != *prefix => Err(format!(
                "ipv6-prefix: expected a /64 such as {}, found {prefix}",
                example(*prefix)
            )),
            _ => Ok(()),
        }
    }
}

/// The /64 around an address.
fn example(prefix: Ipv6Net) -> Ipv6Net {
    Ipv6Net::new_assert(prefix.addr(), 64).trunc()
}

/// The parser's message without its own place, which is said already.
fn describe(message: &str) -> String {
    message
        .split(" at line ")
        .next()
        .unwrap_or(message)
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Line;

    const FILE: &str = "users:
  - name: alice
    password: wonderland
  - name: bob
    password: 12345
    ipv4: 100.64.9.1
    ipv6-prefix: 2001:db8:9:1::/64
";

    fn ask(name: &str, credentials: Credentials) -> Outcome {
        let users = Users::parse(FILE, "users.yaml").unwrap();
        let (username, acct_session_id, line) = (name.into(), "1".into(), Line::default());
        users.authenticate(&AccessRequest {
            username,
            credentials,
            acct_session_id,
            line,
        })
    }

    fn pap(password: &str) -> Credentials {
        Credentials::Pap {
            password: Secret::new(password),
        }
    }

    fn chap(password: &str) -> Credentials {
        let challenge = vec![3; 16];
        let response = chap_response(9, password.as_bytes(), &challenge);
        Credentials::Chap {
            id: 9,
            challenge,
            response,
        }
    }

    fn refused() -> Outcome {
        Outcome::Reject(AccessReject {
            reply_message: Vec::new(),
            reason: RejectReason::Refused,
        })
    }

    #[test]
    fn who_knows_the_password_comes_in_by_pap_and_by_chap() {
        for method in [pap, chap] {
            assert_eq!(
                ask("alice", method("wonderland")),
                Outcome::Accept(Box::default())
            );
            assert_eq!(ask("alice", method("wonderlan")), refused());
            assert_eq!(ask("alice", method("")), refused());
            assert_eq!(ask("carol", method("wonderland")), refused());
            assert_eq!(ask("carol", method("")), refused());
            let Outcome::Accept(bob) = ask("bob", method("12345")) else {
                panic!("bob is refused")
            };
            assert_eq!(bob.framed_ip, Some(Ipv4Addr::new(100, 64, 9, 1)));
            assert_eq!(
                bob.framed_ipv6_prefix,
                Some("2001:db8:9:1::/64".parse().unwrap())
            );
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line_and_without_passwords() {
        let cases = [
            ("users:\n  - name: alice\n", 2, "missing field `password`"),
            (
                "users:\n  - name: a\n    password: hunter2\n    ipv4: hunter\n",
                4,
                "IP",
            ),
            (
                "users:\n  - name: a\n    password: [hunter2]\n",
                3,
                "expected",
            ),
            ("users:\n  - name: a\n    password: ''\n", 2, "empty"),
            (
                "users:\n  - name: a\n    pasword: hunter2\n",
                3,
                "unknown field `pasword`",
            ),
            (
                "users:\n  - name: a\n    password: hunter2\n    ipv6-prefix: 2001:db8::/48\n",
                2,
                "expected a /64",
            ),
            (
                "users:\n  - {name: a, password: hunter2}\n  - {name: a, password: hunter2}\n",
                3,
                "the user a is there already",
            ),
            ("user: []\n", 1, "unknown field `user`"),
        ];
        for (text, line, expected) in cases {
            let error = Users::parse(text, "users.yaml").unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("users.yaml:{line}: ")),
                "{text}: {error}"
            );
            assert!(error.contains(expected), "{text}: {error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
        let error = Users::load(Path::new("/nowhere/users.yaml"))
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("/nowhere/users.yaml: cannot be read"),
            "{error}"
        );
    }

    #[test]
    fn passwords_are_not_shown() {
        let users = format!("{:?}", Users::parse(FILE, "users.yaml").unwrap());
        assert!(
            users.contains("alice") && !users.contains("wonderland") && !users.contains("12345")
        );
    }
}
