//! Tests of the runtime with a folder and loopback addresses of their own: alarms about the surroundings of the control plane,
//! and the ports of RADIUS sockets.

use super::*;
use crate::history::Bounds;
use crate::management::tests::{user_plane, user_plane_on};
use crate::store::tests::mortal_thread;
use config::{Checked, check};
use northbound::{
    Answer, Change, CommitRequest, ConfigurationClient, Refusal, Response, Session, change,
};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

const SECOND: Duration = Duration::from_secs(1);

/// State on the disk between the runs of a control plane.
struct Bench {
    folder: TempDir,
    document: String,
    /// Loopback addresses that no other test has.
    address: String,
}

impl Bench {
    fn new(document: &str) -> Self {
        static NEXT: AtomicU8 = AtomicU8::new(1);
        let [.., high, low] = std::process::id().to_be_bytes();
        let last = NEXT.fetch_add(1, Ordering::Relaxed);
        Bench {
            folder: tempfile::tempdir().unwrap(),
            document: document.into(),
            address: format!("127.{high}.{low}.{last}"),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs a control plane once.
    fn live<T>(&self, story: impl AsyncFnOnce(&mut Edge) -> T) -> T {
        let start = format!(
            "node-id: cp1\naddress: {}\nstate: {}\napi-socket: {}\n",
            self.address,
            self.path("state").display(),
            self.path("cp.sock").display()
        );
        let start = config::parse(&start, "cp.yaml").unwrap();
        let initial: Checked = check::read(&self.document).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(async {
            let mut edge = Edge::open(
                start,
                Dictionary::shipped(),
                Some(initial),
                Box::new(|_| {}),
            )
            .unwrap();
            edge.carry_out().await.unwrap();
            story(&mut edge).await
        })
    }
}

/// Raised alarms.
async fn alarms(edge: &mut Edge) -> Vec<String> {
    let (reply, answer) = oneshot::channel();
    edge.on_call((Request::ListAlarms, reply));
    edge.carry_out().await.unwrap();
    match answer.await.unwrap() {
        Ok(Response::Alarms(found)) => found.alarms.into_iter().map(|alarm| alarm.name).collect(),
        other => panic!("{other:?}"),
    }
}

/// Checks for faults for this many seconds of the alarms' clock. Returns the raised alarms.
async fn look(edge: &mut Edge, seconds: u32) -> Vec<String> {
    for _ in 0..seconds {
        edge.clock.uptime += SECOND;
        edge.look();
        edge.carry_out().await.unwrap();
    }
    alarms(edge).await
}

/// Runs the other tasks until an alarm is raised or cleared.
async fn until(edge: &mut Edge, name: &str, raised: bool) {
    for _ in 0..1200 {
        tokio::select! {
            Some(ask) = edge.asks.recv() => edge.on_ask(ask),
            () = tokio::time::sleep(Duration::from_millis(50)) => {}
        }
        let found = look(edge, 1).await;
        if found.iter().any(|alarm| alarm == name) == raised {
            return;
        }
    }
    panic!(
        "alarm {name} is not {}",
        if raised { "raised" } else { "cleared" }
    );
}

/// Waits until the store and the history have everything, or for a while.
async fn settle(edge: &mut Edge) {
    let _ = tokio::time::timeout(10 * SECOND, edge.settle_history()).await;
}

/// Records this many events of about 1,000 octets.
fn note_much(edge: &mut Edge, events: usize) {
    let text = "x".repeat(1000);
    (0..events).for_each(|_| edge.note(Kind::Committed, &text));
}

const NONE: [&str; 0] = [];

#[test]
fn a_store_that_writes_for_long_raises_an_alarm_until_it_has_written() {
    Bench::new("").live(async |edge| {
        settle(edge).await;
        edge.writing.clear();
        assert_eq!(look(edge, 20).await, NONE);
        // A batch that the disk has not taken.
        let began = Instant::now().checked_sub(5 * SECOND).unwrap();
        edge.writing.push_front(began);
        assert_eq!(look(edge, 3).await, ["store-slow"]);
        edge.writing.clear();
        assert_eq!(look(edge, 5).await, ["store-slow"], "it may come again");
        edge.writing.clear();
        assert_eq!(look(edge, 10).await, NONE);
    });
}

#[test]
fn a_store_without_its_thread_ends_the_control_plane() {
    Bench::new("").live(async |edge| {
        settle(edge).await;
        while !edge.writing.is_empty() {
            edge.durable.changed().await.unwrap();
            edge.on_durable();
        }
        edge.store = mortal_thread();
        edge.note(Kind::Started, "");
        assert_eq!(edge.carry_out().await, Ok(()));
        while !edge.store.has_ended() {
            tokio::time::sleep(SECOND / 20).await; // a panic takes its time
        }
        edge.note(Kind::Started, "");
        let ended = edge.carry_out().await;
        assert_eq!(ended, Err("the store's thread has ended".into()));
    });
}

#[test]
fn a_history_that_cannot_be_written_raises_an_alarm_until_it_can() {
    let bench = Bench::new("");
    let path = bench.path("state/history/events.db");
    bench.live(async |edge| {
        settle(edge).await;
        // Somebody else writes, and does not end.
        let flags = rusqlite::OpenFlags::default();
        let other = rusqlite::Connection::open_with_flags_and_vfs(&path, flags, "unix-excl");
        let other = other.unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        edge.note(Kind::Started, "");
        let settled = tokio::time::timeout(7 * SECOND, edge.settle_history()).await;
        assert!(settled.is_err(), "it cannot be written");
        assert_eq!(look(edge, 1).await, ["history-not-written"]);
        other.execute_batch("ROLLBACK").unwrap();
        settle(edge).await; // it is tried again after some seconds
        assert_eq!(look(edge, 15).await, NONE);
    });
}

#[test]
fn a_history_without_room_for_what_is_to_be_kept_raises_an_alarm_until_no_more_is() {
    Bench::new("").live(async |edge| {
        let keep = 1_000_000;
        edge.history.set_bounds(Bounds { keep, octets: 1 });
        for _ in 0..3 {
            note_much(edge, 9000); // more than a segment
            settle(edge).await;
        }
        assert_eq!(look(edge, 1).await, ["history-too-small"]);
        let octets = u64::MAX;
        edge.history.set_bounds(Bounds { keep: 0, octets });
        edge.note(Kind::Committed, "");
        settle(edge).await;
        tokio::time::sleep(2 * SECOND).await; // what went is older than is to be kept
        assert_eq!(look(edge, 1).await, NONE);
    });
}

#[test]
fn a_damaged_history_raises_an_alarm_until_a_start_without_the_damage() {
    let bench = Bench::new("");
    bench.live(async |edge| {
        for _ in 0..4 {
            note_much(edge, 10); // a block each
            settle(edge).await;
        }
        assert_eq!(look(edge, 1).await, NONE);
    });
    let path = bench.path("state/history/events.db");
    let mut octets = std::fs::read(&path).unwrap();
    octets[..100].fill(1);
    std::fs::write(&path, octets).unwrap();
    bench.live(async |edge| {
        assert_eq!(look(edge, 1).await, ["history-damaged"]);
        settle(edge).await;
    });
    bench.live(async |edge| {
        assert_eq!(
            alarms(edge).await,
            ["history-damaged"],
            "until it is looked"
        );
        assert_eq!(look(edge, 1).await, NONE);
    });
}

#[test]
fn a_version_that_waits_to_be_confirmed_raises_an_alarm_until_it_is() {
    let bench = Bench::new("");
    let socket = bench.path("cp.sock");
    bench.live(async |edge| {
        assert_eq!(look(edge, 1).await, NONE);
        let client = std::thread::spawn(move || {
            // The client blocks, and has a runtime of its own.
            let mut client = ConfigurationClient::connect(&socket, 60 * SECOND).unwrap();
            let document = "limits: {half-open: 77}".into();
            let commit = CommitRequest {
                change: Some(Change {
                    change: Some(change::Change::Document(document)),
                }),
                confirm_within: 600,
                ..Default::default()
            };
            client.commit(commit).unwrap();
            client
        });
        until(edge, "commit-unconfirmed", true).await;
        let confirmed = std::thread::spawn(move || {
            let mut client = client.join().unwrap();
            client.confirm(0).unwrap();
        });
        until(edge, "commit-unconfirmed", false).await;
        confirmed.join().unwrap();
    });
}

/// Others are answered while a document with many rules is read.
#[test]
fn a_large_document_is_read_beside_the_loop() {
    let bench = Bench::new("");
    let socket = bench.path("cp.sock");
    let rules = (1..=4_000).map(|n| format!("{n}: deny tcp from any to any {n}, "));
    let rules: String = rules.collect();
    let document = format!("acls: {{a: {{rules: {{{rules}}}}}, b: {{rules: {{{rules}}}}}}}");
    bench.live(async |edge| {
        let client = std::thread::spawn(move || {
            let mut client = ConfigurationClient::connect(&socket, 60 * SECOND).unwrap();
            let begun = Instant::now();
            let change = change::Change::Document(document);
            let change = Some(change);
            let checked = client.check(Change { change }).unwrap();
            assert!(checked.faults.is_empty(), "{:?}", checked.faults);
            begun.elapsed()
        });
        let (mut last, mut longest) = (Instant::now(), Duration::ZERO);
        while !client.is_finished() {
            tokio::select! {
                Some(ask) = edge.asks.recv() => edge.on_ask(ask),
                () = tokio::time::sleep(Duration::from_millis(1)) => {}
            }
            longest = longest.max(last.elapsed());
            last = Instant::now();
        }
        let took = client.join().unwrap();
        assert!(
            3 * longest < took,
            "the loop stood still for {longest:?} of {took:?}"
        );
    });
}

#[test]
fn a_user_plane_without_the_configuration_in_force_raises_an_alarm_until_it_has_it() {
    let socket = tempfile::tempdir().unwrap();
    let socket = socket.path().join("up1.sock");
    let document = format!(
        "user-planes: {{up1: {{address: 127.0.0.1, management: {}}}}}\n",
        socket.display()
    );
    Bench::new(&document).live(async |edge| {
        until(edge, "configuration-not-in-force", true).await;
        let mut told = user_plane(&socket);
        until(edge, "configuration-not-in-force", false).await;
        assert!(told.try_recv().is_ok(), "it was brought its document");
    });
}

#[test]
fn a_user_plane_whose_machine_lacks_something_raises_an_alarm_until_it_has_it() {
    let socket = tempfile::tempdir().unwrap();
    let socket = socket.path().join("up1.sock");
    let document = format!(
        "user-planes: {{up1: {{address: 127.0.0.1, management: {}}}}}\n",
        socket.display()
    );
    let lacking = Arc::new(Mutex::new(vec!["huge pages: none reserved.".to_owned()]));
    Bench::new(&document).live(async |edge| {
        let _told = user_plane_on(&socket, lacking.clone());
        until(edge, "host-lacking", true).await;
        lacking.lock().unwrap().clear();
        until(edge, "host-lacking", false).await;
    });
}

/// Serves the management interface of a user plane that has one ACL without rules and one session.
fn user_plane_with_policies(socket: &std::path::Path) {
    let (calls_in, mut calls) = mpsc::channel::<mi::Call>(16);
    tokio::spawn(mi::serve(socket, None, calls_in).unwrap());
    tokio::spawn(async move {
        while let Some((request, reply)) = calls.recv().await {
            let answer = match request {
                mi::Request::ListAclRules { acl, .. } if acl == "base" => {
                    Ok(mi::Response::AclRules(Default::default()))
                }
                mi::Request::ListPolicies => Ok(mi::Response::Policies {
                    policies: vec![Default::default()],
                }),
                mi::Request::GetSessionPolicy(place) if place.pppoe_session_id == 7 => {
                    Ok(mi::Response::SessionPolicy(Default::default()))
                }
                _ => Err(Refusal::NotFound("it is not there".into())),
            };
            let _ = reply.send(answer); // who asked may have gone
        }
    });
}

async fn ask(edge: &mut Edge, request: Request) -> Answer {
    let (reply, answer) = oneshot::channel();
    edge.on_call((request, reply));
    edge.carry_out().await.unwrap();
    answer.await.unwrap()
}

#[test]
fn questions_about_policies_are_passed_on_to_the_user_plane() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("up1.sock");
    let document = format!(
        "user-planes: {{up1: {{address: 127.0.0.1, management: {}}}}}\n",
        socket.display()
    );
    Bench::new(&document).live(async |edge| {
        user_plane_with_policies(&socket);
        // it is known as soon as the configuration is followed
        until(edge, "configuration-not-in-force", true).await;
        let mut of_user_plane = async |table| {
            let name = "up1".into();
            ask(edge, Request::UserPlane { name, table }).await
        };
        let acl = |acl: &str| UserPlaneTable::AclRules {
            acl: acl.into(),
            after: None,
        };
        let session = |pppoe_session_id| UserPlaneTable::SessionPolicy {
            session: Box::new(Session {
                mac: "02:00:00:00:00:07".into(),
                pppoe_session_id,
                ..Session::default()
            }),
        };
        let rules = of_user_plane(acl("base")).await;
        assert!(matches!(rules, Ok(Response::AclRules { more: false, .. })));
        let policies = of_user_plane(UserPlaneTable::Policies).await;
        assert!(matches!(policies, Ok(Response::Policies { policies }) if policies.len() == 1));
        let policy = of_user_plane(session(7)).await;
        assert!(matches!(policy, Ok(Response::SessionPolicy { .. })));
        for absent in [acl("bse"), session(8)] {
            let why = "user plane up1: it is not there".to_owned();
            assert_eq!(of_user_plane(absent).await, Err(Refusal::NotFound(why)));
        }
        let id = "7".into();
        let nobody = ask(edge, Request::GetSessionPolicy { id }).await;
        assert!(
            matches!(nobody, Err(Refusal::NotFound(why)) if why.contains("`7` does not exist"))
        );
    });
}

/// A server recognizes a repeated request by its source port, too.
#[test]
fn a_radius_socket_whose_port_is_taken_after_a_restart_has_another_one_from_then_on() {
    let bench = Bench::new(
        "aaa:
  servers: {one: {address: 192.0.2.9, secret-key: testing123}}
  server-groups: {radius: {servers: [one]}}
",
    );
    let ports = || {
        bench.live(async |edge| {
            settle(edge).await;
            edge.radius.ports()
        })
    };
    let first = ports();
    assert!(first.len() > 1);
    assert_eq!(ports(), first, "the same over a restart");
    let (key, port) = first.first_key_value().unwrap();
    let taken = std::net::UdpSocket::bind(("0.0.0.0", *port)).unwrap();
    let second = ports();
    assert!(second[key] != *port && second[key] != 0);
    let others =
        |ports: &BTreeMap<_, u16>| ports.iter().skip(1).map(|(_, p)| *p).collect::<Vec<_>>();
    assert_eq!(others(&second), others(&first));
    drop(taken);
    assert_eq!(ports(), second, "the store has the new one");
}

#[test]
fn radius_sockets_that_cannot_be_bound_raise_an_alarm_and_are_opened_as_soon_as_they_can_be() {
    let bench = Bench::new(
        "aaa:
  servers: {one: {address: 192.0.2.9, secret-key: testing123}}
  server-groups: {radius: {servers: [one], source-ipv4: 192.0.2.77}}
",
    );
    bench.live(async |edge| {
        assert_eq!(look(edge, 1).await, ["aaa-sockets-missing"]);
        let conditions = edge.radius.conditions();
        let [condition] = &conditions[..] else {
            panic!("{conditions:?}")
        };
        assert_eq!(condition.resource, "radius");
        let advice = "Give 192.0.2.77 to an interface of this machine, or change `aaa server-groups radius source-ipv4`";
        assert!(condition.text.contains(advice), "{}", condition.text);
        assert_eq!(edge.radius.open_missing(), None, "it is still missing");
        edge.radius.give_addresses("127.0.0.77".parse().unwrap());
        assert_eq!(look(edge, 1).await, NONE);
        let server = SocketAddr::from(([127, 0, 0, 1], 1812));
        let own = edge.radius.own(0, server);
        assert_eq!(own.ip().to_string(), "127.0.0.77");
        assert!(own.port() > 0);
    });
}

#[test]
fn a_port_for_changes_that_cannot_be_bound_raises_an_alarm_and_is_opened_as_soon_as_it_can_be() {
    let bench = Bench::new(
        "aaa: {dynamic-authorization: {clients: {one: {address: 192.0.2.9, secret-key: coa-secret}}}}",
    );
    let at = format!("{}:3799", bench.address);
    let taken = std::net::UdpSocket::bind(&at).unwrap();
    bench.live(async |edge| {
        assert_eq!(look(edge, 1).await, ["coa-port-missing"]);
        let conditions = edge.dynamic.conditions();
        let [condition] = &conditions[..] else {
            panic!("{conditions:?}")
        };
        assert_eq!(condition.resource, at);
        assert!(condition.text.contains("dynamic-authorization port"));
        drop(taken);
        assert_eq!(look(edge, 1).await, NONE);
        assert!(std::net::UdpSocket::bind(&at).is_err(), "it is open");
    });
}
