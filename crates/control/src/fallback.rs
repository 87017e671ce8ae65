//! What is known of subscribers when no RADIUS server answers: the last answer of a server for each access line and user name
//! (`fallback: last-policy`), in memory and in the store.

use crate::evaluate::AaaAnswer;
use crate::journal::Journal;
use crate::records::{extend, from_bytes_with_rest, take, to_bytes};
use crate::remembered::{KeyLine, Remember, Remembered};
use aaa::{AccessAccept, Authentic, FramedRoute, Outcome, Unavailable};
use core::net::{Ipv4Addr, Ipv6Addr};
use core::time::Duration;
use ipnet::{IpNet, Ipv6Net};
use policy::{Name, Overrides};
use serde::{Deserialize, Serialize};

/// Prefix of the keys of last answers, followed by an encoded [`AnswerKey`].
pub(crate) const LAST_ANSWER_PREFIX: &[u8] = b"last-answer/";

/// Who accepted the subscriber of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum AcceptedBy {
    /// A RADIUS server.
    #[default]
    Servers,
    /// The configured users, because the access profile names no server group.
    Users,
    /// The configured users, because no server answered.
    UsersInstead,
    /// The last answer of a server, because no server answered.
    LastAnswer,
}

impl AcceptedBy {
    /// Whether the configured users did.
    pub fn is_user(self) -> bool {
        matches!(self, AcceptedBy::Users | AcceptedBy::UsersInstead)
    }

    /// The configured word of the fallback by which the subscriber came in.
    pub fn fallback(self) -> Option<&'static str> {
        match self {
            AcceptedBy::Servers | AcceptedBy::Users => None,
            AcceptedBy::UsersInstead => Some("local-users"),
            AcceptedBy::LastAnswer => Some("last-policy"),
        }
    }

    /// Acct-Authentic (RFC 2866 §5.6). By a fallback, the gateway itself decides.
    pub fn authentic(self) -> Authentic {
        match self {
            AcceptedBy::Servers => Authentic::Radius,
            _ => Authentic::Local,
        }
    }
}

/// Whether no server answered, so that a fallback decides. A request that was not sent for another reason is no such case.
pub(crate) fn has_no_server(outcome: &Outcome) -> bool {
    let (silent, none) = (Unavailable::NoAnswer, Unavailable::NoServer);
    matches!(outcome, Outcome::Unavailable(why) if *why == silent || *why == none)
}

/// What must be the same for a last answer to be given again.
#[derive(Debug, Serialize)]
pub(crate) struct AnswerKey<'a> {
    pub servers: &'a str,
    pub line: KeyLine<'a>,
    /// MAC address, if nothing else distinguishes the lines of a port.
    pub mac: Option<[u8; 6]>,
    pub username: &'a [u8],
}

/// Access-Accept that may be given again. It has no secret.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LastAnswer {
    /// Time of the Access-Accept in seconds since 1970.
    pub accepted: u32,
    pub answer: AaaAnswer,
    /// Addresses, pools, class, profile and Port-Limit of the Access-Accept. Its other attributes are in `answer`.
    pub accept: AccessAccept,
}

/// [`LastAnswer`] in the store.
#[derive(Serialize, Deserialize)]
struct Stored {
    accepted: u32,
    profile: Option<Box<str>>,
    overrides: Vec<(u8, Vec<u8>)>,
    class: Vec<Vec<u8>>,
    ipv4: Option<Ipv4Addr>,
    ipv6_prefix: Option<Ipv6Net>,
    routes: Vec<IpNet>,
    interface_id: Option<u64>,
    ipv4_pool: Option<String>,
    ipv6_pool: Option<String>,
}

/// What version 9 added to [`Stored`] and the Port-Limit.
#[derive(Default, Serialize, Deserialize)]
struct More {
    /// Metrics of the routes.
    metrics: Vec<Option<u32>>,
    /// Prefixes of the link after the first.
    ipv6_prefixes: Vec<Ipv6Net>,
    ipv6_address: Option<Ipv6Addr>,
    ipv6_address_pool: Option<String>,
    delegated_prefixes: Vec<Ipv6Net>,
    delegated_pool: Option<String>,
}

impl LastAnswer {
    /// What a server has just said.
    pub fn new(accepted: u32, accept: &AccessAccept) -> Self {
        LastAnswer {
            accepted,
            answer: AaaAnswer::of(accept, Duration::ZERO),
            accept: AccessAccept {
                framed_ip: accept.framed_ip,
                framed_ipv6_prefixes: accept.framed_ipv6_prefixes.clone(),
                framed_routes: accept.framed_routes.clone(),
                framed_interface_id: accept.framed_interface_id,
                framed_pool: accept.framed_pool.clone(),
                framed_ipv6_pool: accept.framed_ipv6_pool.clone(),
                framed_ipv6_address: accept.framed_ipv6_address,
                ipv6_address_pool: accept.ipv6_address_pool.clone(),
                delegated_prefixes: accept.delegated_prefixes.clone(),
                delegated_pool: accept.delegated_pool.clone(),
                filter_id: accept.filter_id.clone(),
                policy_up: accept.policy_up.clone(),
                policy_down: accept.policy_down.clone(),
                class: accept.class.clone(),
                port_limit: accept.port_limit,
                ..AccessAccept::default()
            },
        }
    }

    /// Whether less than `hours` have passed since the Access-Accept. A time in the future is now: the clock was set back.
    pub fn is_valid(&self, unix: u32, hours: u16) -> bool {
        unix.saturating_sub(self.accepted) < u32::from(hours) * 3600
    }

    /// Decodes a value of the store.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let (version, stored, mut rest): (_, Stored, _) = from_bytes_with_rest(bytes)?;
        let port_limit = match version {
            8.. => take(&mut rest)?,
            _ => None,
        };
        let more: More = match version {
            9.. => take(&mut rest)?,
            _ => More::default(),
        };
        let metrics = more.metrics.into_iter().chain(core::iter::repeat(None));
        let routes = stored.routes.into_iter().zip(metrics);
        let routes = routes.map(|(net, metric)| FramedRoute { net, metric });
        let prefixes = stored.ipv6_prefix.into_iter().chain(more.ipv6_prefixes);
        let overrides = Overrides::decoded(&stored.overrides)?;
        let policy = |name: &Option<Option<Name>>| Some(name.as_ref()?.as_ref()?.to_string());
        Ok(LastAnswer {
            accepted: stored.accepted,
            accept: AccessAccept {
                framed_ip: stored.ipv4,
                framed_ipv6_prefixes: prefixes.collect(),
                framed_routes: routes.collect(),
                framed_interface_id: stored.interface_id,
                framed_pool: stored.ipv4_pool,
                framed_ipv6_pool: stored.ipv6_pool,
                framed_ipv6_address: more.ipv6_address,
                ipv6_address_pool: more.ipv6_address_pool,
                delegated_prefixes: more.delegated_prefixes,
                delegated_pool: more.delegated_pool,
                filter_id: stored.profile.as_deref().map(str::to_owned),
                policy_up: policy(&overrides.policy_up),
                policy_down: policy(&overrides.policy_down),
                class: stored.class,
                port_limit,
                ..AccessAccept::default()
            },
            answer: AaaAnswer {
                profile: stored.profile,
                overrides,
            },
        })
    }
}

impl Remember for LastAnswer {
    const PREFIX: &'static [u8] = LAST_ANSWER_PREFIX;

    fn since(&self) -> u32 {
        self.accepted
    }

    fn to_bytes(&self) -> Vec<u8> {
        let accept = &self.accept;
        let stored = to_bytes(&Stored {
            accepted: self.accepted,
            profile: self.answer.profile.clone(),
            overrides: self.answer.overrides.encoded(),
            class: accept.class.clone(),
            ipv4: accept.framed_ip,
            ipv6_prefix: accept.framed_ipv6_prefixes.first().copied(),
            routes: accept.framed_routes.iter().map(|route| route.net).collect(),
            interface_id: accept.framed_interface_id,
            ipv4_pool: accept.framed_pool.clone(),
            ipv6_pool: accept.framed_ipv6_pool.clone(),
        });
        let metrics = accept.framed_routes.iter().map(|route| route.metric);
        let further = accept.framed_ipv6_prefixes.iter().skip(1).copied();
        let more = More {
            metrics: metrics.collect(),
            ipv6_prefixes: further.collect(),
            ipv6_address: accept.framed_ipv6_address,
            ipv6_address_pool: accept.ipv6_address_pool.clone(),
            delegated_prefixes: accept.delegated_prefixes.clone(),
            delegated_pool: accept.delegated_pool.clone(),
        };
        extend(&more, extend(&accept.port_limit, stored))
    }
}

/// Last answers of servers.
pub(crate) type LastAnswers = Remembered<LastAnswer>;

/// Maximum number of expired answers that are removed at a time.
const PORTION: usize = 1000;

impl LastAnswers {
    /// Removes answers that are `hours` old or older, up to a portion of them.
    pub fn expire(&mut self, unix: u32, hours: u16, journal: &mut Journal) {
        for _ in 0..PORTION {
            let expired = self
                .oldest()
                .filter(|(_, last)| !last.is_valid(unix, hours));
            let Some(key) = expired.map(|(key, _)| key.clone()) else {
                return;
            };
            self.remove(&key, journal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::LineIds;
    use crate::remembered::encode_key;
    use std::collections::BTreeMap;
    use std::sync::Arc;

    fn key(n: u16) -> Arc<[u8]> {
        let line = KeyLine {
            user_plane: "up1",
            port: "access0",
            vlans: (Some(100), Some(n)),
            ids: &LineIds::default(),
        };
        encode_key(&AnswerKey {
            servers: "isp",
            line,
            mac: None,
            username: b"alice",
        })
    }

    #[test]
    fn a_key_is_that_of_earlier_releases() {
        let stored = b"\x03isp\x03up1\x07access0\x01\x64\x01\x07\0\0\0\x05alice";
        assert_eq!(*key(7), stored[..]);
    }

    fn answer(accepted: u32) -> LastAnswer {
        let accept = AccessAccept {
            framed_ip: Some([192, 0, 2, 7].into()),
            framed_ipv6_prefixes: vec![
                "2001:db8:9::/64".parse().unwrap(),
                "2001:db8:8::/64".parse().unwrap(),
            ],
            framed_routes: vec![
                "2001:db8:77::/48 :: 5".parse().unwrap(),
                "192.0.2.8/29".parse().unwrap(),
            ],
            filter_id: Some("gold".into()),
            class: vec![b"c".to_vec()],
            port_limit: Some(2),
            framed_ipv6_address: Some("2001:db8:77::2".parse().unwrap()),
            delegated_prefixes: vec!["2001:db8:7700::/56".parse().unwrap()],
            delegated_pool: Some("lans".into()),
            session_timeout: Some(Duration::from_secs(600)),
            reply_message: b"hello".to_vec(),
            ..AccessAccept::default()
        };
        LastAnswer::new(accepted, &accept)
    }

    #[test]
    fn an_answer_is_stored_with_its_policy() {
        let stored = answer(7).to_bytes();
        let read = LastAnswer::from_bytes(&stored).unwrap();
        assert_eq!(read, answer(7));
        let ten_minutes = Some(Some(Duration::from_secs(600)));
        assert_eq!(read.answer.overrides.session_timeout, ten_minutes);
        assert_eq!(read.accept.filter_id.as_deref(), Some("gold"));
        // version 8 ended before the metrics and delegated prefixes, and version 7 before the Port-Limit
        let first = answer(7).accept.framed_ipv6_prefixes[0];
        for (version, port_limit) in [(8, Some(2)), (7, None)] {
            let mut earlier = stored.clone();
            earlier[0] = version;
            let read = LastAnswer::from_bytes(&earlier).unwrap();
            assert_eq!((read.accept.port_limit, read.accepted), (port_limit, 7));
            assert_eq!(read.accept.framed_ipv6_prefixes, [first]);
            assert!(read.accept.delegated_prefixes.is_empty());
            let mut routes = read.accept.framed_routes.iter();
            assert!(routes.all(|route| route.metric.is_none()));
        }
        assert!(LastAnswer::from_bytes(&stored[..9]).is_err());
    }

    #[test]
    fn the_oldest_answer_gives_way_and_the_store_has_the_same_ones() {
        let mut journal = Journal::new(Vec::new());
        let mut answers = LastAnswers::default();
        assert!(!answers.put(key(1), answer(100), 2, &mut journal));
        assert!(!answers.put(key(2), answer(90), 2, &mut journal));
        assert!(!answers.put(key(1), answer(110), 2, &mut journal));
        assert!(answers.put(key(3), answer(120), 2, &mut journal));
        assert!(answers.get(&key(2)).is_none());
        assert_eq!(answers.keys().len(), 2);
        let mut live = BTreeMap::new();
        for record in journal.take_batch() {
            match record.value {
                Some(value) => live.insert(record.key, value),
                None => live.remove(&record.key),
            };
        }
        assert_eq!(live.into_keys().collect::<Vec<_>>(), answers.keys());
    }

    #[test]
    fn answers_expire_in_the_order_of_their_time() {
        let mut journal = Journal::new(Vec::new());
        let mut answers = LastAnswers::default();
        answers.put(key(1), answer(1000), 9, &mut journal);
        answers.put(key(2), answer(500), 9, &mut journal);
        answers.expire(4099, 1, &mut journal);
        assert_eq!(
            answers.keys().len(),
            2,
            "500 + 3600 is the first second too late"
        );
        answers.expire(4100, 1, &mut journal);
        assert!(answers.get(&key(2)).is_none() && answers.get(&key(1)).is_some());
        answers.expire(400, 1, &mut journal);
        assert_eq!(answers.keys().len(), 1, "the clock was set back");
        answers.expire(400, 0, &mut journal);
        assert_eq!(answers.keys().len(), 0, "no profile falls back any more");
    }
}
