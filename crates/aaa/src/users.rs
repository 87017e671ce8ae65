//! Local users.

use core::net::{Ipv4Addr, Ipv6Addr};
use std::collections::HashMap;

use ipnet::{IpNet, Ipv6Net};
use subtle::ConstantTimeEq;
use wire::mschapv2::Exchange;
use wire::radius::chap_response;

use crate::FramedRoute;
use crate::Secret;
use crate::message::{
    AccessAccept, AccessReject, AccessRequest, Credentials, Outcome, RejectReason,
};

/// Local users. They answer like the [`Client`](crate::Client), but at once, unless a password has to be compared with a hash.
#[derive(Debug, Default)]
pub struct Users {
    by_name: HashMap<Vec<u8>, User>,
    /// Hash of the first user that has one, with which passwords for unknown names are compared.
    decoy: Option<Secret>,
}

/// Password of a local user.
#[derive(Debug)]
pub enum Password {
    /// The password itself, for PAP, CHAP and MS-CHAPv2.
    Plain(Secret),
    /// Hash of the password, for PAP. What it means is up to who verifies it.
    Hash(Secret),
}

/// What the local users say to a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The answer.
    Known(Outcome),
    /// Compare this password with this hash, which takes a while. [`Users::verified`] then has the answer.
    Verify {
        /// The user's hash.
        hash: Secret,
        /// The password that the subscriber sent.
        password: Secret,
    },
}

/// Local user.
#[derive(Debug)]
pub struct User {
    /// Password, or its hash.
    pub password: Password,
    /// Fixed IPv4 address.
    pub ipv4: Option<Ipv4Addr>,
    /// Fixed IPv6 prefix of the link, a /64.
    pub ipv6_prefix: Option<Ipv6Net>,
    /// Fixed IPv6 address of the router.
    pub ipv6_address: Option<Ipv6Addr>,
    /// Fixed prefixes that are delegated to the router, of at most 64 bits.
    pub delegated_prefixes: Vec<Ipv6Net>,
    /// Networks that are routed to the user's session.
    pub routes: Vec<IpNet>,
    /// Name of the subscriber profile.
    pub profile: Option<String>,
}

impl Users {
    /// Authenticates a subscriber. The time of a rejection does not depend on whether the name exists, as long as all users have
    /// passwords, or all have hashes.
    pub fn authenticate(&self, request: &AccessRequest) -> Verdict {
        let user = self.by_name.get(&request.username);
        let nobody = Secret::default();
        let password = match (user.map(|user| &user.password), &request.credentials) {
            (_, Credentials::AuthorizeOnly) => &nobody, // which they never are
            (Some(Password::Plain(password)), _) => password,
            (Some(Password::Hash(hash)), Credentials::Pap { password }) => {
                return verify(hash, password);
            }
            (Some(Password::Hash(_)), Credentials::Chap { .. } | Credentials::MsChapV2 { .. }) => {
                return Verdict::Known(rejected(RejectReason::NeedsPassword));
            }
            (None, Credentials::Pap { password }) if self.decoy.is_some() => {
                return verify(self.decoy.as_ref().unwrap_or(&nobody), password);
            }
            (None, _) => &nobody,
        };
        let mut proof = None;
        let right = match &request.credentials {
            Credentials::Pap { password: given } => password.matches(given.expose()),
            Credentials::Chap {
                id,
                challenge,
                response,
            } => chap_response(*id, password.expose(), challenge)
                .ct_eq(response)
                .into(),
            Credentials::MsChapV2 {
                challenge,
                response,
                ..
            } => {
                let exchange = Exchange {
                    challenge: *challenge,
                    peer_challenge: response.peer_challenge,
                    username: &request.username,
                };
                let (password, given) = (password.expose(), &response.nt_response);
                proof = Some(exchange.authenticator_response(password, given));
                exchange.nt_response(password).ct_eq(given).into()
            }
            Credentials::AuthorizeOnly => false,
        };
        Verdict::Known(match user.filter(|_| right) {
            Some(user) => user.accept(proof),
            None => rejected(RejectReason::Refused),
        })
    }

    /// Answer after a password was compared with the hash that [`Users::authenticate`] has returned.
    pub fn verified(&self, username: &[u8], is_right: bool) -> Outcome {
        let user = self.by_name.get(username);
        let hashed = user.filter(|user| matches!(user.password, Password::Hash(_)));
        match hashed.filter(|_| is_right) {
            Some(user) => user.accept(None),
            None => rejected(RejectReason::Refused),
        }
    }
}

fn verify(hash: &Secret, password: &Secret) -> Verdict {
    let (hash, password) = (hash.clone(), password.clone());
    Verdict::Verify { hash, password }
}

fn rejected(reason: RejectReason) -> Outcome {
    Outcome::Reject(AccessReject {
        reply_message: Vec::new(),
        mschap_error: None,
        reason,
    })
}

impl User {
    fn accept(&self, mschapv2_proof: Option<[u8; 20]>) -> Outcome {
        Outcome::Accept(Box::new(AccessAccept {
            framed_ip: self.ipv4,
            framed_ipv6_prefixes: self.ipv6_prefix.into_iter().collect(),
            framed_ipv6_address: self.ipv6_address,
            delegated_prefixes: self.delegated_prefixes.clone(),
            framed_routes: self.routes.iter().copied().map(FramedRoute::from).collect(),
            filter_id: self.profile.clone(),
            mschapv2_proof,
            ..AccessAccept::default()
        }))
    }
}

impl FromIterator<(String, User)> for Users {
    fn from_iter<I: IntoIterator<Item = (String, User)>>(users: I) -> Self {
        let mut decoy = None;
        let by_name = users.into_iter().map(|(name, user)| {
            if let (None, Password::Hash(hash)) = (&decoy, &user.password) {
                decoy = Some(hash.clone());
            }
            (name.into_bytes(), user)
        });
        let by_name = by_name.collect();
        Users { by_name, decoy }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NasPort;
    use wire::mschapv2::Response;

    fn users() -> Users {
        let user = |password: &str| User {
            password: Password::Plain(Secret::new(password)),
            ipv4: None,
            ipv6_prefix: None,
            ipv6_address: None,
            delegated_prefixes: Vec::new(),
            routes: Vec::new(),
            profile: None,
        };
        let bob = User {
            ipv4: Some(Ipv4Addr::new(100, 64, 9, 1)),
            ipv6_prefix: Some("2001:db8:9:1::/64".parse().unwrap()),
            ipv6_address: Some("2001:db8:9:1::2".parse().unwrap()),
            delegated_prefixes: vec!["2001:db8:9100::/56".parse().unwrap()],
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

    fn request(name: &str, credentials: Credentials) -> AccessRequest {
        AccessRequest {
            username: name.into(),
            sent_name: None,
            credentials,
            acct_session_id: "1".into(),
            nas_port: NasPort::default(),
            state: Vec::new(),
        }
    }

    fn ask(name: &str, credentials: Credentials) -> Outcome {
        match users().authenticate(&request(name, credentials)) {
            Verdict::Known(outcome) => outcome,
            verify => panic!("{verify:?}"),
        }
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

    fn mschapv2(name: &str, password: &str) -> (Credentials, [u8; 20]) {
        let exchange = Exchange {
            challenge: [3; 16],
            peer_challenge: [4; 16],
            username: name.as_bytes(),
        };
        let nt_response = exchange.nt_response(password.as_bytes());
        let proof = exchange.authenticator_response(password.as_bytes(), &nt_response);
        let credentials = Credentials::MsChapV2 {
            id: 9,
            challenge: [3; 16],
            response: Response {
                peer_challenge: [4; 16],
                nt_response,
            },
        };
        (credentials, proof)
    }

    fn refused() -> Outcome {
        rejected(RejectReason::Refused)
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
                bob.framed_ipv6_prefixes,
                ["2001:db8:9:1::/64".parse().unwrap()]
            );
            assert_eq!(bob.framed_routes, ["203.0.113.0/28".parse().unwrap()]);
            let router = "2001:db8:9:1::2".parse().unwrap();
            assert_eq!(bob.framed_ipv6_address, Some(router));
            let delegated = ["2001:db8:9100::/56".parse().unwrap()];
            assert_eq!(bob.delegated_prefixes, delegated);
            assert_eq!(bob.filter_id.as_deref(), Some("gold"));
        }
    }

    #[test]
    fn who_knows_the_password_comes_in_by_mschapv2_and_gets_a_proof() {
        let (credentials, proof) = mschapv2("alice", "wonderland");
        let Outcome::Accept(accept) = ask("alice", credentials.clone()) else {
            panic!("alice is refused")
        };
        assert_eq!(accept.mschapv2_proof, Some(proof));
        assert_eq!(ask("bob", credentials), refused());
        assert_eq!(ask("alice", mschapv2("alice", "wonderlan").0), refused());
        assert_eq!(ask("carol", mschapv2("carol", "").0), refused());
    }

    #[test]
    fn a_hash_is_verified_elsewhere_and_is_for_pap() {
        let dora = User {
            password: Password::Hash(Secret::new("a hash")),
            ipv4: None,
            ipv6_prefix: None,
            ipv6_address: None,
            delegated_prefixes: Vec::new(),
            routes: Vec::new(),
            profile: Some("gold".into()),
        };
        let users: Users = [("dora".to_owned(), dora)].into_iter().collect();
        let verify = Verdict::Verify {
            hash: Secret::new("a hash"),
            password: Secret::new("x"),
        };
        assert_eq!(users.authenticate(&request("dora", pap("x"))), verify);
        // a name that nobody has costs as much
        assert_eq!(users.authenticate(&request("carol", pap("x"))), verify);
        assert_eq!(users.verified(b"dora", false), refused());
        assert_eq!(users.verified(b"carol", true), refused());
        let Outcome::Accept(accept) = users.verified(b"dora", true) else {
            panic!("dora is refused")
        };
        assert_eq!(accept.filter_id.as_deref(), Some("gold"));
        let by_chap = users.authenticate(&request("dora", chap("x")));
        let needs = Verdict::Known(rejected(RejectReason::NeedsPassword));
        assert_eq!(by_chap, needs);
        let by_mschapv2 = users.authenticate(&request("dora", mschapv2("dora", "x").0));
        assert_eq!(by_mschapv2, needs);
        assert!(!format!("{users:?}").contains("a hash"));
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
