//! Values of filters as they are read, and filters before a full table.

use super::*;
use crate::entry::Started;
use crate::plane::{Input, Output};
use crate::topology::{GroupId, InstanceId, SegmentId, Seid, UserPlaneId};
use crate::world::{Choice, World};
use core::net::Ipv4Addr;
use core::time::Duration;
use northbound::{PAGE, Request, Response};
use policy::{Access, Binding, Role};
use proptest::prelude::*;
use session::Circuit;
use std::time::Instant;
use wire::eth::{MacAddr, Tags};

/// Sessions of a full control plane.
pub(in crate::plane) const FULL: u32 = 131_072;
/// Sessions that are looked at for one request.
const AT_ONCE: usize = 1024;

#[test]
fn addresses_and_beginnings_of_mac_addresses_are_read() {
    let prefix = |text: &str| address(text).unwrap().map(|prefix| prefix.to_string());
    assert_eq!(prefix(""), None);
    assert_eq!(prefix("100.64.0.9").as_deref(), Some("100.64.0.9/32"));
    assert_eq!(prefix("100.64.0.9/24").as_deref(), Some("100.64.0.0/24"));
    assert_eq!(prefix("2001:db8::7").as_deref(), Some("2001:db8::7/128"));
    for wrong in ["100.64", "100.64.0.0/33", "home", "::/200"] {
        assert!(address(wrong).is_err(), "{wrong}");
    }
    assert_eq!(octets("02-00-5E").unwrap(), [2, 0, 0x5e]);
    assert_eq!(octets("02:00:5e:").unwrap(), [2, 0, 0x5e]);
    assert_eq!(octets("02:00:5e:10:00:01").unwrap().len(), MAC);
    for wrong in ["2", "02:0", "02:00:5e:10:00:01:02", "zz", "+1", ":"] {
        assert!(octets(wrong).is_err(), "{wrong}");
    }
    let state = SessionFilter {
        state: "gone".into(),
        ..SessionFilter::default()
    };
    assert!(Filter::read(state).is_err());
}

proptest! {
    /// Hostile names are compared as they are shown.
    #[test]
    fn names_are_compared_as_they_are_shown(name: Vec<u8>, text in "[a-z\\\\x0-9]{0,6}") {
        let whole = name.escape_ascii().to_string();
        prop_assert!(shown(&name, &whole) && begins(&name, &whole) && begins(&name, ""));
        prop_assert_eq!(shown(&name, &text), whole == text);
        prop_assert_eq!(begins(&name, &text), whole.starts_with(&text));
    }
}

/// A table of sessions that are online, each with a name, a service, a circuit id and an address.
pub(in crate::plane) fn full() -> World {
    let mut w = World::new(0, Choice::default());
    let now = w.moment();
    for n in 0..FULL {
        let index = w.plane.sessions.next_index();
        let [_, a, b, c] = n.to_be_bytes();
        let circuit = Circuit {
            logical_port: b"access0".as_slice().into(),
            mac: MacAddr([2, 0, 0x5e, a, b, c]),
            tags: Tags::default(),
        };
        let mut entry = Entry::new(
            Seid::new(u64::from(n) + 1, index),
            UserPlaneId(0),
            SegmentId(0),
            GroupId(0),
            InstanceId(0),
            circuit,
            Access::Pppoe((n % 65_000) as u16 + 1),
        );
        entry.teid = n + 1;
        entry.who.username = format!("home{n}").into_bytes().into();
        entry.tags.service = b"internet".as_slice().into();
        entry.tags.line.circuit_id = Some(format!("olt1 {n}").into_bytes().into());
        entry.account.started = Some(Started {
            at: now.at,
            before: 0,
            unix: now.unix - n % 86_400,
        });
        let address = Ipv4Addr::from_bits(Ipv4Addr::new(100, 64, 0, 0).to_bits() + n);
        entry.hold(Binding::new(Role::Host, IpNet::from(IpAddr::from(address))));
        w.plane.sessions.insert(now.at, entry);
        w.plane.sessions.open(index);
    }
    w
}

/// Answer to a request, and how long it took the control plane.
fn timed(w: &mut World, call: Request) -> (Response, Duration) {
    let now = w.moment();
    let begun = Instant::now();
    w.plane.handle(now, Input::Call { ticket: 1, call });
    let took = begun.elapsed();
    let mut outputs = std::iter::from_fn(|| w.plane.poll_output());
    let answer = outputs.find_map(|output| match output {
        Output::Answer { answer, .. } => Some(answer.unwrap()),
        _ => None,
    });
    (answer.expect("an answer"), took)
}

/// What a filter finds in a full table, in how many requests, and how long these took.
fn walk(w: &mut World, filter: &SessionFilter) -> (usize, usize) {
    let (mut found, mut from, mut times) = (0, Some(0), Vec::new());
    while let Some(place) = from {
        let request = Request::MatchSessions {
            from: place,
            filter: Box::new(filter.clone()),
        };
        let (Response::Matches { ids, next }, took) = timed(w, request) else {
            panic!("ids are asked for");
        };
        times.push(took);
        found += ids.len();
        from = next;
    }
    let (sum, longest): (Duration, _) = (times.iter().sum(), times.iter().max());
    println!(
        "{}: {found} found in {sum:?}, at most {longest:?} at once",
        filter.text()
    );
    (found, times.len())
}

#[test]
fn of_a_full_table_some_sessions_are_looked_at_for_each_request() {
    let mut w = full();
    let requests = FULL as usize / AT_ONCE + 1;
    let filter = SessionFilter::default;
    for (filter, found) in [
        (
            SessionFilter {
                user: "nobody".into(),
                ..filter()
            },
            0,
        ),
        (
            SessionFilter {
                profile: "nobody".into(),
                ..filter()
            },
            0,
        ),
        (
            SessionFilter {
                address: "192.0.2.0/24".into(),
                ..filter()
            },
            0,
        ),
        (
            SessionFilter {
                user: "home77777".into(),
                ..filter()
            },
            1,
        ),
        (
            SessionFilter {
                circuit_id: "olt1 77777".into(),
                ..filter()
            },
            1,
        ),
        (
            SessionFilter {
                address: "100.64.1.0/24".into(),
                ..filter()
            },
            256,
        ),
        (
            SessionFilter {
                mac: "02:00:5e:01".into(),
                ..filter()
            },
            65_536,
        ),
        (
            SessionFilter {
                user_prefix: "home".into(),
                user_plane: "up1".into(),
                profile: "home".into(),
                ..filter()
            },
            FULL as usize,
        ),
        (
            SessionFilter {
                state: "online".into(),
                ..filter()
            },
            FULL as usize,
        ),
    ] {
        assert_eq!(
            walk(&mut w, &filter),
            (found, requests),
            "{}",
            filter.text()
        );
    }
    let request = Request::ListSessions {
        from: 1,
        most: PAGE,
        filter: Box::new(SessionFilter {
            state: "online".into(),
            ..filter()
        }),
    };
    let (Response::Sessions { sessions, .. }, took) = timed(&mut w, request) else {
        panic!("sessions are asked for");
    };
    println!("a page of {PAGE} rows: {took:?}");
    assert_eq!(sessions.len(), PAGE);
}
