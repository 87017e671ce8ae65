//! Sessions that a filter means, compared with what a reader of the whole table would choose.

use crate::world::{Choice, World};
use core::time::Duration;
use ipnet::IpNet;
use northbound::{PAGE, Refusal, Request, Response, Session, SessionFilter};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

const MINUTE: Duration = Duration::from_secs(60);

/// The sessions that a filter means, by both ways of asking.
fn chosen(w: &mut World, filter: &SessionFilter) -> Vec<String> {
    let (mut listed, mut from) = (Vec::new(), Some(0));
    while let Some(place) = from {
        let request = Request::ListSessions {
            from: place,
            most: PAGE,
            filter: Box::new(filter.clone()),
        };
        match w.call(request) {
            Ok(Response::Sessions { sessions, next }) => {
                listed.extend(sessions.into_iter().map(|session| session.id));
                from = next;
            }
            other => panic!("{other:?}"),
        }
    }
    let request = Request::MatchSessions {
        from: 0,
        filter: Box::new(filter.clone()),
    };
    let Ok(Response::Matches { ids, next: None }) = w.call(request) else {
        panic!("few sessions are matched at once");
    };
    let ids: Vec<String> = ids.iter().map(|id| format!("{id:016x}")).collect();
    assert_eq!(listed, ids);
    if filter.is_empty() {
        let count = w.call(Request::CountSessions).unwrap();
        assert_eq!(count, Response::SessionCount(ids.len() as u64));
    }
    listed.sort();
    listed
}

fn prefixes(row: &Session) -> Vec<IpNet> {
    let address = row.ipv4.iter().map(|address| format!("{address}/32"));
    let routes = row.routes.iter().map(|route| {
        let prefix = route.split(' ').next();
        prefix.unwrap_or_default().to_owned()
    });
    let all = address.chain(row.ipv6_prefix.clone()).chain(routes);
    all.map(|text| text.parse().unwrap()).collect()
}

/// What a person would choose who reads the rows.
fn is_meant(filter: &SessionFilter, row: &Session, now: u64) -> bool {
    let is = |wanted: &str, text: &str| wanted.is_empty() || wanted == text;
    let state = serde_json::to_value(row).unwrap()["state"].clone();
    let since = (row.online_seconds > 0).then(|| now - row.online_seconds);
    let wanted: Option<IpNet> = filter.address.parse().ok();
    is(&filter.state, state.as_str().unwrap())
        && is(&filter.user, &row.user)
        && row.user.starts_with(&filter.user_prefix)
        && is(&filter.network_instance, &row.network_instance)
        && is(&filter.user_plane, &row.user_plane)
        && is(&filter.group, &row.group)
        && is(&filter.port, &row.port)
        && filter.s_tag.is_none_or(|tag| row.s_tag == Some(tag))
        && filter.c_tag.is_none_or(|tag| row.c_tag == Some(tag))
        && is(&filter.profile, &row.profile)
        && row.mac.starts_with(&filter.mac)
        && filter
            .online_before
            .is_none_or(|at| since.is_some_and(|since| since < at))
        && filter
            .online_after
            .is_none_or(|at| since.is_some_and(|since| since >= at))
        && wanted.is_none_or(|wanted| {
            let mut own = prefixes(row).into_iter();
            own.any(|own| own.contains(&wanted) || wanted.contains(&own))
        })
}

/// Values of which many are those of some sessions.
fn filters(rows: &[Session], now: u64) -> impl Strategy<Value = SessionFilter> + use<> {
    let text = |of: fn(&Session) -> String| {
        let mut known: Vec<String> = rows.iter().map(of).collect();
        known.extend(["".into(), "nobody".into()]);
        known.sort();
        known.dedup();
        option::weighted(0.2, select(known)).prop_map(Option::unwrap_or_default)
    };
    let tag = |of: fn(&Session) -> Option<u32>| {
        let mut known: Vec<u32> = rows.iter().filter_map(of).collect();
        known.push(9);
        option::weighted(0.1, select(known))
    };
    let moment = || option::weighted(0.2, now - 400..now);
    let address = |row: &Session| {
        let own = prefixes(row).into_iter();
        let wider = own.flat_map(|own| {
            let shorter = [own.prefix_len(), own.prefix_len() - 3, 8];
            shorter.map(|bits| IpNet::new(own.addr(), bits).unwrap().trunc().to_string())
        });
        wider.collect::<Vec<_>>()
    };
    let mut addresses: Vec<String> = rows.iter().flat_map(address).collect();
    addresses.push("192.0.2.0/24".into());
    let addresses = option::weighted(0.3, select(addresses)).prop_map(Option::unwrap_or_default);
    let state = select(vec!["", "", "", "connecting", "online", "closing"]);
    let names = (
        state,
        text(|row| row.user.clone()),
        text(|row| row.user.chars().take(5).collect()),
        text(|row| row.network_instance.clone()),
        text(|row| row.user_plane.clone()),
        text(|row| row.group.clone()),
        text(|row| row.port.clone()),
        text(|row| row.profile.clone()),
    );
    let others = (
        tag(|row| row.s_tag),
        tag(|row| row.c_tag),
        addresses,
        text(|row| row.mac.chars().take(11).collect()),
        text(|row| row.mac.clone()),
        moment(),
        moment(),
    );
    (names, others).prop_map(|(names, others)| {
        let (state, user, user_prefix, network_instance, user_plane, group, port, profile) = names;
        let (s_tag, c_tag, address, vendor, mac, online_before, online_after) = others;
        let known = |text: String| match text.as_str() {
            "nobody" => "02:99".into(),
            _ => text,
        };
        SessionFilter {
            state: state.into(),
            user,
            user_prefix,
            network_instance,
            user_plane,
            group,
            port,
            s_tag,
            c_tag,
            profile,
            address,
            mac: if mac.is_empty() {
                known(vendor)
            } else {
                known(mac)
            },
            online_before,
            online_after,
            ..SessionFilter::default()
        }
    })
}

/// Homes that came at different times, of which one is still connecting.
fn world() -> World {
    let mut w = World::new(30, Choice::default());
    for n in 0..29 {
        w.dial(n);
        w.run(Duration::from_secs(10));
    }
    w.run(MINUTE);
    w.disk_stalls = true;
    w.dial(29);
    // whoever has come online has been so for some seconds
    w.run(Duration::from_secs(3));
    w
}

#[test]
fn a_filter_means_what_a_reader_of_the_table_would_choose() {
    let mut w = world();
    let rows = w.sessions();
    let now = u64::from(w.moment().unix);
    let states: std::collections::BTreeSet<_> = rows.iter().map(|row| row.state).collect();
    assert!(states.len() > 1, "{states:?}");
    let w = std::cell::RefCell::new(w);
    proptest!(|(filter in filters(&rows, now))| {
        let meant = rows.iter().filter(|row| is_meant(&filter, row, now));
        let meant: Vec<&String> = meant.map(|row| &row.id).collect();
        let chosen = chosen(&mut w.borrow_mut(), &filter);
        prop_assert_eq!(chosen.iter().collect::<Vec<_>>(), meant);
    });
}

#[test]
fn what_cannot_be_is_refused_with_what_is_expected() {
    let mut w = World::new(1, Choice::default());
    let filter = SessionFilter::default;
    for (filter, says) in [
        (
            SessionFilter {
                state: "gone".into(),
                ..filter()
            },
            "expected connecting",
        ),
        (
            SessionFilter {
                mac: "02:0".into(),
                ..filter()
            },
            "no beginning of one",
        ),
        (
            SessionFilter {
                address: "home".into(),
                ..filter()
            },
            "address or prefix",
        ),
    ] {
        let filter = Box::new(filter);
        let list = Request::ListSessions {
            from: 0,
            most: 1,
            filter: filter.clone(),
        };
        let matches = Request::MatchSessions { from: 0, filter };
        for request in [list, matches] {
            match w.call(request) {
                Err(Refusal::Invalid(said)) => assert!(said.contains(says), "{said}"),
                other => panic!("{other:?}"),
            }
        }
    }
}
