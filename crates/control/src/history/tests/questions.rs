//! Queries as the local API sends them.

use super::super::HistoryQueries;
use super::*;
use crate::alarms::Fault;
use northbound::{
    BindingRole, Call, EventKind, FindHoldersRequest, FindSubscriberResponse, HistoryCall,
    ListEventsRequest, ListFiguresRequest, Refusal, Response, Session, SessionState,
    SubscriberState,
};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};

/// History queries over a database. The control plane answers with these subscribers.
pub(super) fn queries(
    database: &Database,
    subscribers: Vec<SubscriberState>,
) -> mpsc::Sender<HistoryCall> {
    let (plane, mut asked) = mpsc::channel::<Call>(4);
    let (calls, received) = mpsc::channel(64);
    let (_, written) = watch::channel(0);
    tokio::spawn(HistoryQueries::new(database.reader(), written, plane, || 5000).run(received));
    tokio::spawn(async move {
        while let Some((_, reply)) = asked.recv().await {
            let found = FindSubscriberResponse {
                subscribers: subscribers.clone(),
                network_instances: 1,
                ..FindSubscriberResponse::default()
            };
            let _ = reply.send(Ok(Response::Subscriber { found, next: None }));
        }
    });
    calls
}

async fn holders(queries: &mpsc::Sender<HistoryCall>, address: &str) -> Vec<northbound::Holder> {
    let (reply, answer) = oneshot::channel();
    let request = FindHoldersRequest {
        address: address.into(),
        at: Some(5000),
    };
    queries
        .send(HistoryCall::Holders(request, reply))
        .await
        .unwrap();
    answer.await.unwrap().unwrap().holders
}

pub(super) fn run(test: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().unwrap();
    runtime.block_on(async {
        let done = tokio::time::timeout(Duration::from_secs(30), test).await;
        done.expect("answers");
    });
}

#[test]
fn a_name_that_cannot_be_shown_as_it_is_is_shown_the_same_by_whoever_knows_it() {
    let user = &b"al\xefce\n\"x\\"[..];
    let shown = user.escape_ascii().to_string();
    let live = SubscriberState {
        session: Some(Session {
            id: format!("{:016x}", 7),
            state: SessionState::Online.into(),
            user: shown.clone(),
            mac: "02:00:00:00:00:07".into(),
            network_instance: "default".into(),
            ipv4: Some("100.64.0.7".into()),
            ..Session::default()
        }),
        circuit_id: Some(b"olt\t1".escape_ascii().to_string()),
        online_since: Some(4000),
        ..SubscriberState::default()
    };
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path());
    run(async {
        let held = holders(&queries(&database, vec![live]), "100.64.0.7").await;
        let who = held[0].subscriber.clone().unwrap();
        assert_eq!(
            (who.user, who.circuit_id.as_deref()),
            (shown, Some("olt\\t1"))
        );
    });
}

fn row(role: BindingRole, prefix: &str) -> northbound::Binding {
    northbound::Binding {
        role: role.into(),
        prefix: prefix.into(),
    }
}

#[test]
fn who_has_or_had_an_address_in_a_prefix_is_told_with_the_roles() {
    let directory = tempfile::tempdir().unwrap();
    let mut database = open(directory.path());
    let delegated = (Role::Delegated, "2001:db8:7700::/56");
    let had = [(Role::Route, "203.0.113.0/24"), delegated];
    let has = [
        (Role::Route, "203.0.113.0/24"),
        (Role::Route, "203.0.113.64/26"),
    ];
    let own = || addresses(Some(7), None);
    let events = [
        online(4000, 7, with(own(), &had)),
        changed(4500, 7, with(own(), &had), with(own(), &has)),
    ];
    add(&mut database, 1, &block(&events));
    let routes = has.map(|(_, net)| row(BindingRole::Route, net));
    let live = SubscriberState {
        session: Some(Session {
            id: format!("{:016x}", 7),
            state: SessionState::Online.into(),
            mac: "02:00:00:00:00:07".into(),
            network_instance: "default".into(),
            ipv4: Some("100.64.0.7".into()),
            ..Session::default()
        }),
        other_bindings: routes.to_vec(),
        online_since: Some(4000),
        ..SubscriberState::default()
    };
    let empty = tempfile::tempdir().unwrap();
    let nothing = open(empty.path());
    run(async {
        // by the history, and by the control plane alone
        for database in [&database, &nothing] {
            let queries = queries(database, vec![live.clone()]);
            let held = holders(&queries, "203.0.113.70").await;
            assert_eq!((held.len(), held[0].now), (1, true));
            assert_eq!(held[0].other_bindings, routes);
            assert_eq!(held[0].binding, Some(routes[1].clone()), "the longest");
        }
        let queries = queries(&database, Vec::new());
        let delegated = row(BindingRole::Delegated, "2001:db8:7700::/56");
        let (reply, answer) = oneshot::channel();
        let request = FindHoldersRequest {
            address: "2001:db8:7700:9::1".into(),
            at: Some(4200),
        };
        let call = HistoryCall::Holders(request, reply);
        queries.send(call).await.unwrap();
        let held = answer.await.unwrap().unwrap().holders;
        assert_eq!((held.len(), held[0].to), (1, Some(4500)));
        assert_eq!(held[0].binding, Some(delegated.clone()));

        let (part, mut parts) = mpsc::channel(4);
        let request = ListEventsRequest {
            subscriber: "2001:db8:7700:9::1".into(),
            ..ListEventsRequest::default()
        };
        let call = HistoryCall::Events(request, part);
        queries.send(call).await.unwrap();
        let events = parts.recv().await.unwrap().unwrap().events;
        assert_eq!(events[0].other_bindings, [delegated, routes[0].clone()]);
        let before = "before: 100.64.0.7 and delegated 2001:db8:7700::/56 and route 203.0.113.0/24";
        assert_eq!(events[1].text, before);
    });
}

#[test]
fn a_name_is_found_as_it_is_shown_and_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let mut database = open(directory.path());
    let names: Vec<Vec<u8>> = (0..=255)
        .map(|octet| vec![b'x', octet, b'y'])
        .chain([br"CORP\nadia".to_vec()])
        .collect();
    for (n, name) in names.iter().enumerate() {
        let mut event = online(n as u32, 0, Bindings::default());
        if let What::Subscriber(who, _) = &mut event.what {
            who.user = name;
        }
        add(&mut database, n as u64 + 1, &block(&[event]));
    }
    let reader = database.reader();
    for (n, name) in names.iter().enumerate() {
        let shown = name.escape_ascii().to_string();
        assert_eq!(times(&reader, &shown), [n as u32], "{shown}");
    }
    assert_eq!(times(&reader, r"CORP\nadia"), [256]);
    assert_eq!(times(&reader, &"x".repeat(60_000)), [0; 0]);
}

#[test]
fn who_does_not_read_an_answer_holds_up_nobody() {
    let directory = tempfile::tempdir().unwrap();
    let mut database = open(directory.path());
    let events: Vec<Event<'_>> = (0..8000)
        .map(|n| online(n, 1, addresses(Some(1), None)))
        .collect();
    add(&mut database, 1, &block(&events));
    run(async {
        let queries = queries(&database, Vec::new());
        let mut listings = Vec::new();
        for _ in 0..8 {
            let (part, parts) = mpsc::channel(4);
            let request = ListEventsRequest::default();
            queries
                .send(HistoryCall::Events(request, part))
                .await
                .unwrap();
            listings.push(parts);
        }
        // each has begun, and waits
        while listings.iter().any(|parts| parts.len() < 3) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let held = holders(&queries, "100.64.0.1").await;
        assert_eq!(held.len(), 1);
        // and goes on when it is read
        let mut told = 0;
        while let Some(part) = listings[0].recv().await {
            let events = part.unwrap().events;
            assert!(events.iter().all(|e| e.kind() == EventKind::Online));
            told += events.len();
        }
        assert_eq!(told, 8000);
    });
}

#[test]
fn which_alarms_are_raised_is_known_from_the_whole_history() {
    let directory = tempfile::tempdir().unwrap();
    let mut database = open(directory.path());
    let names: Vec<String> = (0..400).map(|n| format!("up{n}")).collect();
    for (n, name) in names.iter().enumerate() {
        let change = |raised| Event {
            unix: n as u32,
            what: What::Alarm {
                raised,
                fault: Fault::UserPlaneLost,
                resource: name,
                text: "",
            },
        };
        let events = match n % 2 {
            0 => vec![change(true)],
            _ => vec![change(true), change(false)],
        };
        add(&mut database, n as u64 + 1, &block(&events));
    }
    let reader = database.reader();
    let alarms = reader.alarms();
    let mut raised = alarms.raised();
    raised.sort_by_key(|alarm| alarm.raised);
    let last = raised.last().unwrap();
    assert_eq!(
        (last.condition.resource.as_str(), last.raised),
        ("up398", 398)
    );
    assert!(raised.iter().all(|alarm| alarm.raised % 2 == 0));
    assert_eq!(raised.len(), 200);
}

#[test]
fn what_cannot_be_asked_is_refused_as_such() {
    let directory = tempfile::tempdir().unwrap();
    let database = open(directory.path());
    run(async {
        let queries = queries(&database, Vec::new());
        let (part, mut parts) = mpsc::channel(4);
        let backward = ListFiguresRequest {
            since: Some(20),
            until: Some(10),
            ..ListFiguresRequest::default()
        };
        let call = HistoryCall::Figures(backward, part);
        queries.send(call).await.unwrap();
        assert!(matches!(parts.recv().await, Some(Err(Refusal::Invalid(_)))));
        let (reply, answer) = oneshot::channel();
        let nowhere = FindHoldersRequest {
            address: "nowhere".into(),
            at: None,
        };
        let call = HistoryCall::Holders(nowhere, reply);
        queries.send(call).await.unwrap();
        assert!(matches!(answer.await, Ok(Err(Refusal::Invalid(_)))));
    });
}
