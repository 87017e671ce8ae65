//! Local users.

use core::net::Ipv4Addr;
use std::collections::HashMap;

use ipnet::{IpNet, Ipv6Net};
use subtle::ConstantTimeEq;
use wire::radius::chap_response;

use crate::Secret;
use crate::message::{
    AccessAccept, AccessReject, AccessRequest, Credentials, Outcome, RejectReason,
};

/// Local users. They answer like the [`Client`](crate::Client), but at once.
#[derive(Debug, Default)]
pub struct Users {
    by_name: HashMap<Vec<u8>, User>,
}

/// Local user.
#[derive(Debug)]
pub struct User {
    /// Password for PAP and CHAP.
    pub password: Secret,
    /// Fixed IPv4 address.
    pub ipv4: Option<Ipv4Addr>,
    /// Fixed IPv6 prefix of the link, a /64.
    pub ipv6_prefix: Option<Ipv6Net>,
    /// Networks that are routed to the user's session.
    pub routes: Vec<IpNet>,
    /// Name of the subscriber profile.
    pub profile: Option<String>,
}

impl Users {
    /// Authenticates a subscriber. The time of a rejection does not depend on whether the name exists.
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
                framed_routes: user.routes.clone(),
                filter_id: user.profile.clone(),
                ..AccessAccept::default()
            })),
            None => Outcome::Reject(AccessReject {
                reply_message: Vec::new(),
                reason: RejectReason::Refused,
            }),
        }
    }
}

impl FromIterator<(String, User)> for Users {
    fn from_iter<I: IntoIterator<Item = (String, User)>>(users: I) -> Self {
        let users = users.into_iter();
        Users {
            by_name: users
                .map(|(name, user)| (name.into_bytes(), user))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NasPort;

    fn users() -> Users {
        let user = |password: &str| User {
            password: Secret::new(password),
            ipv4: None,
            ipv6_prefix: None,
            routes: Vec::new(),
            profile: None,
        };
        let bob = User {
            ipv4: Some(Ipv4Addr::new(100, 64, 9, 1)),
            ipv6_prefix: Some("2001:db8:9:1::/64".parse().unwrap()),
            routes: vec!["203.0.113.0/28".parse().unwrap()],
            profile: Some("gold".into()),
            ..user("12345")
        };
        let users = [
            ("alice".to_owned(), user("wonderland")),
            ("bob".to_owned(), bob),
        ];
        users.into_iter().collect()
    }

    fn ask(name: &str, credentials: Credentials) -> Outcome {
        let (username, acct_session_id, nas_port) = (name.into(), "1".into(), NasPort::default());
        users().authenticate(&AccessRequest {
            username,
            credentials,
            acct_session_id,
            nas_port,
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
            assert_eq!(bob.framed_routes, ["203.0.113.0/28".parse().unwrap()]);
            assert_eq!(bob.filter_id.as_deref(), Some("gold"));
        }
    }

    #[test]
    fn passwords_are_not_shown() {
        let users = format!("{:?}", users());
        assert!(users.contains("gold"), "{users}");
        for password in ["wonderland", "12345"] {
            let octets = format!("{:?}", password.as_bytes());
            let octets = octets.trim_matches(['[', ']']);
            assert!(!users.contains(password) && !users.contains(octets));
        }
    }
}
