//! The control plane's socket with a plane behind it that only tells what it was asked.

use northbound::control_plane_client::ControlPlaneClient;
use northbound::{
    AaaServer, Account, AcknowledgeAlarmRequest, AclRule, Answer, Association, CLEAR_RATE, Call,
    CallError, ClearSessionsRequest, ClearSessionsResponse, Client, ConfigurationClient,
    ConfigurationRequest, ConfigurationResponse, Connection, DirectionPolicy, DropCounter,
    FindSubscriberResponse, Finding, Ledger, ListAlarmsResponse, ListSessionsRequest, LiveCall,
    LiveClient, LiveRequest, LiveResponse, MAX_CONNECTIONS, MOST_CLEAR_RATE, MoveAggregateRequest,
    MoveAggregateResponse, PAGE, Pool, Port, Refusal, Request, Response, Route, Session,
    SessionClear, SessionFilter, SessionPolicy, SessionState, TablesClient, TestAaaResponse,
    TraceRequest, TracedPacket, Tracing, TrafficPolicy, TrafficPolicyState, UserPlane,
    UserPlaneTable, WatchStateResponse, serve,
};
use std::fs::Permissions;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;

const PATIENCE: Duration = Duration::from_secs(10);

/// A socket with nobody behind the configuration and the history.
fn serve_calls(
    path: &Path,
    calls: mpsc::Sender<Call>,
    live: mpsc::Sender<LiveCall>,
) -> io::Result<impl Future<Output = ()> + use<>> {
    serve(path, calls, mpsc::channel(1).0, live, mpsc::channel(1).0)
}

/// A daemon with so many sessions, whose ids fall from place to place; and how many pages of them it was asked for.
struct Daemon {
    path: PathBuf,
    pages: Arc<AtomicUsize>,
    _dir: tempfile::TempDir,
}

impl Daemon {
    fn start(sessions: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x/test.sock");
        let pages = Arc::new(AtomicUsize::new(0));
        let (served, asked) = (path.clone(), pages.clone());
        let (ready, is_ready) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = runtime.enable_all().build().unwrap();
            runtime.block_on(async move {
                let (calls, mut asked_for) = mpsc::channel::<Call>(4);
                let (live, mut watched) = mpsc::channel(4);
                tokio::spawn(serve_calls(&served, calls, live).unwrap());
                tokio::spawn(async move {
                    let mut at_milliseconds = 0;
                    while let Some((request, reply)) = watched.recv().await {
                        let _ = reply.send(Ok(match request {
                            LiveRequest::GetState => {
                                at_milliseconds += 1;
                                LiveResponse::State(Box::new(WatchStateResponse {
                                    at_milliseconds,
                                    ..WatchStateResponse::default()
                                }))
                            }
                            LiveRequest::Trace(_) => LiveResponse::Tracing(tracing()),
                        }));
                    }
                });
                ready.send(()).unwrap();
                while let Some((request, reply)) = asked_for.recv().await {
                    let _ = reply.send(answer(request, sessions, &asked));
                }
            });
        });
        is_ready.recv().unwrap();
        Daemon {
            path,
            pages,
            _dir: dir,
        }
    }

    fn client(&self) -> Client {
        Client::connect(&self.path, PATIENCE).unwrap()
    }
}

/// A trace of three packets that goes on.
fn tracing() -> Tracing {
    let (to, packets) = mpsc::channel(8);
    for length in 1..=3 {
        let packet = TracedPacket {
            length,
            ..TracedPacket::default()
        };
        to.try_send(packet).unwrap();
    }
    tokio::spawn(async move { to.closed().await });
    Tracing {
        followed: "02:00:00:00:00:09 at up1/access0.100.7".into(),
        packets,
        missed: Arc::new(7.into()),
    }
}

/// A way to a keeper of the configuration that is not there.
fn answer(request: Request, sessions: usize, pages: &AtomicUsize) -> Answer {
    Ok(match request {
        Request::ListSessions { from, most, .. } => {
            pages.fetch_add(1, Ordering::Relaxed);
            let end = sessions.min(from + most);
            Response::Sessions {
                sessions: (from..end).map(|n| session(sessions - n)).collect(),
                next: (end < sessions).then_some(end),
            }
        }
        Request::CountSessions => Response::SessionCount(sessions as u64),
        Request::MatchSessions { from, filter } => {
            assert_eq!(filter.user_prefix, "home");
            let end = sessions.min(from + PAGE);
            Response::Matches {
                ids: (from..end).map(|n| n as u64).collect(),
                next: (end < sessions).then_some(end),
            }
        }
        Request::ClearSessions { ids, rate, by, .. } => {
            assert!(!by.is_empty());
            Response::Clearing(ClearSessionsResponse {
                sessions: ids.len() as u64,
                rate,
            })
        }
        Request::StopClear { .. } => Response::Clearing(ClearSessionsResponse::default()),
        Request::ListSessionClears => Response::SessionClears {
            clears: vec![SessionClear::default()],
        },
        Request::GetSession { id } if id == "7" => Response::Session {
            session: Box::new(session(7)),
        },
        Request::ClearSession { id, .. } if id == "7" => Response::Done,
        Request::WatchRules { id, seconds } => {
            assert_eq!((&*id, seconds), ("7", 60));
            Response::Done
        }
        Request::ClearBackOff { who } if who == "olt1 1/2" => Response::Done,
        Request::AcknowledgeAlarm { alarm, by, .. } => {
            assert!(alarm == "store-slow" && !by.is_empty());
            Response::Done
        }
        Request::ClearBackOff { who } => {
            return Err(Refusal::NotFound(format!("nobody backs off at {who}")));
        }
        Request::GetSession { id } | Request::ClearSession { id, .. } => {
            return Err(Refusal::NotFound(format!("there is no session {id}")));
        }
        Request::TestAaa { user, password, .. } => Response::AaaTested(TestAaaResponse {
            accepted: password.0 == "wonderland",
            asked: user,
            ..TestAaaResponse::default()
        }),
        Request::FindSubscriber { .. } => Response::Subscriber {
            found: FindSubscriberResponse::default(),
            next: None,
        },
        Request::ListAlarms => Response::Alarms(ListAlarmsResponse::default()),
        Request::ListUserPlanes => Response::UserPlanes {
            user_planes: ["up1", "up2", "up3"].map(user_plane).into(),
        },
        Request::ListPools => Response::Pools {
            pools: vec![Pool {
                name: "homes".into(),
                ..Pool::default()
            }],
        },
        Request::ListAssociations => Response::Associations {
            associations: ["up1", "up2", "up3"]
                .map(|name| Association {
                    node_id: name.into(),
                    ..Association::default()
                })
                .into(),
        },
        Request::ListAaaServers => Response::AaaServers {
            servers: vec![AaaServer::default(); 2],
        },
        Request::UserPlane { name, table } => return table_of(&name, table),
        Request::GetSessionPolicy { id } => Response::SessionPolicy {
            policy: Box::new(SessionPolicy {
                up: Some(DirectionPolicy {
                    name: id,
                    ..DirectionPolicy::default()
                }),
                ..SessionPolicy::default()
            }),
        },
        Request::ListDrops => Response::Drops {
            drops: vec![DropCounter {
                name: "bad-cookie".into(),
                count: u64::MAX,
                ..DropCounter::default()
            }],
        },
        Request::CheckLedger { repair } => Response::Ledger {
            ledger: Ledger {
                accounts: vec![Account {
                    booked: repair.into(),
                    ..Account::default()
                }],
                ..Ledger::default()
            },
        },
    })
}

fn user_plane(name: &str) -> UserPlane {
    UserPlane {
        node_id: name.into(),
        ..UserPlane::default()
    }
}

/// What a user plane tells: three pages of routes, one of neighbours, one port; the second one does not answer.
fn table_of(name: &str, table: UserPlaneTable) -> Answer {
    match (name, table) {
        ("up1" | "up3", UserPlaneTable::Ports) => Ok(Response::Ports {
            ports: vec![Port {
                user_plane: name.into(),
                ..Port::default()
            }],
        }),
        ("up1" | "up3", UserPlaneTable::Routes { after }) => {
            let from = after.map_or(0, |after| after.prefix.parse::<usize>().unwrap() + 1);
            let route = |number: usize| Route {
                user_plane: name.into(),
                prefix: number.to_string(),
                ..Route::default()
            };
            Ok(Response::Routes {
                routes: (from..from + PAGE).map(route).collect(),
                more: from < 2 * PAGE,
            })
        }
        ("up1" | "up3", UserPlaneTable::Neighbours { .. }) => Ok(Response::Neighbours {
            neighbours: Vec::new(),
            more: true,
        }),
        ("up1" | "up3", UserPlaneTable::AclRules { acl, after }) => {
            let from = after.map_or(1, |after| after.number + 1);
            let rule = |number| AclRule {
                user_plane: name.into(),
                acl: acl.clone(),
                number,
                ..AclRule::default()
            };
            Ok(Response::AclRules {
                rules: (from..from + PAGE as u32).map(rule).collect(),
                more: from == 1,
            })
        }
        ("up1" | "up3", UserPlaneTable::Policies) => Ok(Response::Policies {
            policies: vec![TrafficPolicy {
                user_plane: name.into(),
                state: TrafficPolicyState::Missing.into(),
                ..TrafficPolicy::default()
            }],
        }),
        ("up1", UserPlaneTable::Drops) => Ok(Response::Drops {
            drops: vec![DropCounter {
                plane: name.into(),
                ..DropCounter::default()
            }],
        }),
        ("up1", UserPlaneTable::MoveAggregate(request)) => {
            Ok(Response::Moved(MoveAggregateResponse {
                sessions: request.s_tag.unwrap_or_default() + request.worker,
                split_subscribers: 3,
            }))
        }
        ("up1", UserPlaneTable::Ledger { repair }) => Ok(Response::Ledger {
            ledger: Ledger {
                plane: name.into(),
                findings: vec![Finding {
                    repaired: repair,
                    ..Finding::default()
                }],
                ..Ledger::default()
            },
        }),
        ("up2", _) => Err(Refusal::Unreachable("up2 does not answer".into())),
        _ => Err(Refusal::NotFound(format!("there is no {name}"))),
    }
}

fn session(number: usize) -> Session {
    Session {
        id: format!("{number:016x}"),
        state: SessionState::Online.into(),
        user: format!("home{number}@sluice.example"),
        s_tag: Some(100),
        network_instance: "default".into(),
        ipv6_prefix: Some("2001:db8:100:7::/64".into()),
        ..Session::default()
    }
}

#[test]
fn every_call_meets_its_answer() {
    let daemon = Daemon::start(1000);
    let mut client = daemon.client();
    let sessions = client.sessions().unwrap();
    let in_order: Vec<Session> = (1..=1000).map(session).collect();
    assert_eq!(sessions, in_order);
    assert_eq!(daemon.pages.load(Ordering::Relaxed), 2);
    assert_eq!(client.session("7").unwrap(), session(7));
    let policy = client.session_policy("7").unwrap();
    assert_eq!((policy.up.unwrap().name, policy.down), ("7".into(), None));
    client.watch_rules("7", 60).unwrap();
    let refused = client.watch_rules("7", 3601).unwrap_err();
    let why = "3601 seconds: expected 0 to 3600";
    assert!(matches!(refused, CallError::Refused(told) if told == why));
    client.clear_session("7").unwrap();
    let tested = client.test_aaa("alice", "wonderland", None).unwrap();
    assert_eq!((tested.accepted, &*tested.asked), (true, "alice"));
    assert_eq!(client.user_planes().unwrap()[0].node_id, "up1");
    assert_eq!(client.drops().unwrap()[0].count, u64::MAX);
    for repair in [false, true] {
        let ledger = client.check_ledger(repair).unwrap();
        assert_eq!(ledger.accounts[0].booked, u64::from(repair));
    }
    assert!(Daemon::start(0).client().sessions().unwrap().is_empty());
}

#[test]
fn a_user_plane_is_asked_by_its_name_and_its_refusal_is_passed_on() {
    let daemon = Daemon::start(0);
    let mut client = daemon.client();
    assert_eq!(client.user_plane_drops("up1").unwrap()[0].plane, "up1");
    for repair in [false, true] {
        let ledger = client.check_user_plane_ledger("up1", repair).unwrap();
        assert_eq!(ledger.findings[0].repaired, repair);
    }
    let aggregate = |name: &str| MoveAggregateRequest::named(name, 2).unwrap();
    let moved = client.move_aggregate(aggregate("up1/access0/olt1.100"));
    let moved = moved.unwrap();
    assert_eq!((moved.sessions, moved.split_subscribers), (102, 3));
    for refused in [
        client.move_aggregate(aggregate("up2/access0/olt1")).err(),
        client.user_plane_drops("up2").err(),
        client.check_user_plane_ledger("up2", false).err(),
    ] {
        let Some(CallError::Refused(message)) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(message, "up2 does not answer");
    }
}

#[test]
fn tables_of_user_planes_come_page_by_page_and_one_that_is_missing_is_told() {
    let daemon = Daemon::start(0);
    let mut tables = TablesClient::connect(&daemon.path, PATIENCE).unwrap();
    assert_eq!(tables.pools().unwrap()[0].name, "homes");
    assert_eq!(tables.associations().unwrap().len(), 3);
    assert_eq!(tables.aaa_servers().unwrap().len(), 2);

    let (routes, missing) = tables.routes(None).unwrap();
    let told: Vec<(&str, usize)> = routes
        .iter()
        .map(|route| (&*route.user_plane, route.prefix.parse().unwrap()))
        .collect();
    let of = |name| (0..3 * PAGE).map(move |number| (name, number));
    assert_eq!(told, of("up1").chain(of("up3")).collect::<Vec<_>>());
    assert_eq!(missing, ["up2 does not answer"]);
    let (ports, missing) = tables.ports(Some("up3")).unwrap();
    assert_eq!((ports.len(), missing.len()), (1, 0));
    assert_eq!(tables.neighbours(None).unwrap().0, []);
    let (policies, missing) = tables.policies(None).unwrap();
    assert_eq!((policies.len(), missing.len()), (2, 1));
    let (rules, missing) = tables.acl_rules("base", None).unwrap();
    assert_eq!((rules.len(), missing.len()), (4 * PAGE, 1));
    assert_eq!(rules[0].acl, "base");
    let (rules, _) = tables.acl_rules("base", Some("up3")).unwrap();
    let numbers: Vec<u32> = rules.iter().map(|rule| rule.number).collect();
    assert_eq!(numbers, (1..=2 * PAGE as u32).collect::<Vec<_>>());
    for (name, why) in [("up2", "up2 does not answer"), ("up9", "there is no up9")] {
        let refused = tables.routes(Some(name)).unwrap_err();
        assert!(
            matches!(&refused, CallError::Refused(said) if said == why),
            "{refused:?}"
        );
    }
}

#[test]
fn a_lock_that_nobody_waits_for_any_more_is_let_go_of() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("test.sock");
    let (served, (configuration, mut keeper)) = (path.clone(), mpsc::channel(4));
    let (ready, is_ready) = std::sync::mpsc::channel();
    let keeps = std::thread::spawn(move || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        runtime.block_on(async move {
            // nobody asks these, and they last as long as the daemon
            let ((calls, _calls), (live, _live)) = (mpsc::channel(1), mpsc::channel(1));
            let (history, _history) = mpsc::channel(1);
            tokio::spawn(serve(&served, calls, configuration, live, history).unwrap());
            ready.send(()).unwrap();
            let (asked, reply) = keeper.recv().await.unwrap();
            assert!(matches!(asked, ConfigurationRequest::Lock { .. }));
            // for longer than who asked for it waits
            tokio::time::sleep(Duration::from_millis(500)).await;
            let _ = reply.send(Ok(ConfigurationResponse::Locked(7)));
            let next = tokio::time::timeout(PATIENCE, keeper.recv()).await;
            next.unwrap().unwrap().0
        })
    });
    is_ready.recv().unwrap();
    let patience = Duration::from_millis(100);
    let mut client = ConfigurationClient::connect(&path, patience).unwrap();
    assert!(client.lock().is_err(), "it took too long");
    drop(client);
    let next = keeps.join().unwrap();
    assert!(matches!(next, ConfigurationRequest::Unlock(7)), "{next:?}");
}

#[test]
fn a_refusal_is_told_in_the_words_of_the_plane() {
    let daemon = Daemon::start(0);
    let mut client = daemon.client();
    for refused in [client.session("9").err(), client.clear_session("9").err()] {
        let Some(CallError::Refused(message)) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(message, "there is no session 9");
    }
}

#[test]
fn garbage_and_requests_that_are_too_large_are_refused_and_the_daemon_lives() {
    let daemon = Daemon::start(1);
    let mut stream = UnixStream::connect(&daemon.path).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
        .write_all(b"{\"request\":\"show-sessions\"}\n")
        .unwrap();
    let hung_up = stream.read_to_end(&mut Vec::new()).map_err(|e| e.kind());
    assert!(
        matches!(hung_up, Ok(_) | Err(io::ErrorKind::ConnectionReset)),
        "{hung_up:?}"
    );

    let mut client = daemon.client();
    let refused = client.session(&"7".repeat(64 * 1024)).unwrap_err();
    assert!(
        matches!(&refused, CallError::Refused(why) if why.contains("too large")),
        "{refused:?}"
    );
    assert_eq!(client.sessions().unwrap().len(), 1);
}

/// A whole gateway's sessions are not put together for a reader that does not read.
#[test]
fn a_slow_reader_holds_up_nothing_but_itself() {
    let daemon = Daemon::start(1000 * PAGE);
    let slow = Connection::open(&daemon.path, PATIENCE).unwrap();
    let mut client = ControlPlaneClient::new(slow.channel());
    let mut listing = slow
        .wait(client.list_sessions(ListSessionsRequest::default()))
        .unwrap()
        .into_inner();
    let first = slow.wait(listing.message()).unwrap().unwrap();
    assert_eq!(first.sessions.len(), PAGE);
    // while it does not read, others are served, and no more is asked for than fits on the way to it
    let mut last = usize::MAX;
    while daemon.pages.load(Ordering::Relaxed) != last {
        last = daemon.pages.load(Ordering::Relaxed);
        assert_eq!(daemon.client().drops().unwrap().len(), 1);
        slow.wait(async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            Ok(())
        })
        .unwrap();
    }
    assert!(last < 100, "{last} pages were asked for");
    let second = slow.wait(listing.message()).unwrap().unwrap();
    assert_ne!(first.sessions, second.sessions);
}

#[test]
fn one_connection_too_many_waits_until_another_one_ends() {
    let daemon = Daemon::start(0);
    let mut clients: Vec<Client> = (0..MAX_CONNECTIONS).map(|_| daemon.client()).collect();
    for client in &mut clients {
        client.drops().unwrap();
    }
    let impatient = Client::connect(&daemon.path, Duration::from_millis(300));
    let late = impatient.unwrap().drops().unwrap_err();
    assert!(
        matches!(&late, CallError::Broken(why) if why.kind() == io::ErrorKind::TimedOut),
        "{late:?}"
    );
    clients.pop();
    daemon.client().drops().unwrap();
}

/// The number that a person has seen keeps a filter from ending others.
#[test]
fn sessions_are_ended_if_as_many_match_as_were_seen() {
    let daemon = Daemon::start(2 * PAGE + 7);
    let mut client = daemon.client();
    let filter = SessionFilter {
        user_prefix: "home".into(),
        ..SessionFilter::default()
    };
    let seen = client.count_sessions(filter.clone()).unwrap();
    assert_eq!(seen, 2 * PAGE as u64 + 7);
    let all = client.count_sessions(SessionFilter::default());
    assert_eq!(all.unwrap(), seen);
    let request = |expect, rate| ClearSessionsRequest {
        filter: Some(filter.clone()),
        expect,
        rate,
        stop: false,
    };
    let begun = client.clear_sessions(request(seen, 0)).unwrap();
    assert_eq!((begun.sessions, begun.rate), (seen, CLEAR_RATE));
    let all = ClearSessionsRequest {
        filter: None,
        ..request(seen, 0)
    };
    for (refused, says) in [
        (request(seen - 11, 0), "1031 sessions match now"),
        (request(seen, MOST_CLEAR_RATE + 1), "expected 1 to 1000"),
        (all, "give a filter"),
    ] {
        let said = client.clear_sessions(refused).unwrap_err().to_string();
        assert!(said.contains(says), "{said}");
    }
    let stop = ClearSessionsRequest {
        stop: true,
        ..ClearSessionsRequest::default()
    };
    assert_eq!(client.clear_sessions(stop).unwrap().sessions, 0);
    assert_eq!(client.session_clears().unwrap().len(), 1);
}

/// A reader that wants few sessions gets so many, and where to go on.
#[test]
fn sessions_are_listed_a_few_at_a_time() {
    let daemon = Daemon::start(2 * PAGE);
    let connection = Connection::open(&daemon.path, PATIENCE).unwrap();
    let mut client = ControlPlaneClient::new(connection.channel());
    let mut few = |from, most| {
        let request = ListSessionsRequest {
            from,
            most,
            filter: None,
        };
        let mut listing = connection
            .wait(client.list_sessions(request))
            .unwrap()
            .into_inner();
        let (mut listed, mut next) = (0, None);
        while let Some(part) = connection.wait(listing.message()).unwrap() {
            (listed, next) = (listed + part.sessions.len(), part.next);
        }
        (listed, next)
    };
    assert_eq!(few(0, 3), (3, Some(3)));
    let (end, over) = (2 * PAGE as u64, PAGE as u64 + 1);
    assert_eq!(few(3, over), (PAGE + 1, Some(over + 3)));
    assert_eq!(few(end - 2, 0), (2, None));
    assert_eq!(few(end, 5), (0, None));
}

#[test]
fn states_come_when_it_is_time_and_there_is_room_for_them() {
    let daemon = Daemon::start(0);
    let watch = |milliseconds| {
        let client = LiveClient::connect(&daemon.path, PATIENCE).unwrap();
        client.watch_state(Duration::from_millis(milliseconds))
    };
    for wrong in [0, 99, 60_001] {
        let refused = watch(wrong).err().unwrap();
        assert!(
            matches!(&refused, CallError::Refused(why) if why.contains("expected 100 to 60000")),
            "{refused:?}"
        );
    }
    let mut states = watch(100).unwrap();
    let mut next = || states.wait().unwrap().unwrap().at_milliseconds;
    assert_eq!([next(), next(), next()], [1, 2, 3]);
}

#[test]
fn a_trace_says_whom_it_follows_what_was_missed_and_why_it_ends() {
    let daemon = Daemon::start(0);
    let trace = |seconds| {
        let client = LiveClient::connect(&daemon.path, PATIENCE).unwrap();
        client.trace(TraceRequest {
            subject: "alice".into(),
            seconds,
            sample_one_in: 1,
            samples_per_second: 0,
        })
    };
    for wrong in [0, 3601] {
        assert!(matches!(trace(wrong), Err(CallError::Refused(_))));
    }
    let mut trace = trace(1).unwrap();
    let mut next = || trace.next(PATIENCE).unwrap().unwrap();
    assert_eq!(next().followed, "02:00:00:00:00:09 at up1/access0.100.7");
    let mut packets = Vec::new();
    let last = loop {
        let part = next();
        packets.extend(part.packets.iter().map(|packet| packet.length));
        assert_eq!(part.missed, 7);
        if !part.ended.is_empty() {
            break part;
        }
    };
    assert_eq!(packets, [1, 2, 3]);
    assert_eq!(last.ended, "its time is over");
}

#[test]
fn a_second_daemon_does_not_take_the_socket() {
    let daemon = Daemon::start(0);
    let (calls, _asked) = mpsc::channel(1);
    let (live, _watched) = mpsc::channel(1);
    let error = serve_calls(&daemon.path, calls, live).err().unwrap();
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    daemon.client().drops().unwrap();
}

#[tokio::test]
async fn a_stale_socket_is_replaced_and_the_socket_goes_with_the_daemon() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("test.sock");
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists(), "left by a daemon that was killed");
    let (calls, asked) = mpsc::channel(1);
    let (live, _watched) = mpsc::channel(1);
    let served = tokio::spawn(serve_calls(&path, calls, live).unwrap());
    let there = path.clone();
    let connect = move || Connection::open(&there, PATIENCE).map(drop);
    tokio::task::spawn_blocking(connect).await.unwrap().unwrap();
    drop(asked);
    served.await.unwrap();
    assert!(!path.exists());
}

/// Names the socket for the stranger below, who is a process of this test.
const FOR_A_STRANGER: &str = "SLUICE_TEST_SOCKET";

/// Only root can become somebody else.
#[test]
fn whoever_is_not_in_the_daemons_group_may_only_read() {
    if let Some(path) = std::env::var_os(FOR_A_STRANGER) {
        return try_as_a_stranger(Path::new(&path));
    }
    assert!(nix::unistd::geteuid().is_root(), "this test needs root");
    let daemon = Daemon::start(8);
    let folder = daemon._dir.path();
    for (path, mode) in [(folder, 0o755), (&daemon.path, 0o666)] {
        std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }
    let test = folder.join("test");
    std::fs::copy(std::env::current_exe().unwrap(), &test).unwrap();
    let mut stranger = Command::new(test);
    stranger.args([
        "--exact",
        "whoever_is_not_in_the_daemons_group_may_only_read",
    ]);
    stranger.env(FOR_A_STRANGER, &daemon.path).current_dir("/");
    let done = stranger.uid(65_534).gid(65_534).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    daemon.client().clear_session("7").unwrap();
    daemon.client().clear_back_off("olt1 1/2").unwrap();
    let acknowledge = |comment| daemon.client().acknowledge_alarm(acknowledgement(comment));
    acknowledge(1000).unwrap();
    let refused = acknowledge(1001).unwrap_err().to_string();
    assert!(refused.contains("expected at most 1000"), "{refused}");
    assert!(daemon.client().check_ledger(true).is_ok());
}

/// An acknowledgement with a comment of so many characters.
fn acknowledgement(comment: usize) -> AcknowledgeAlarmRequest {
    AcknowledgeAlarmRequest {
        alarm: "store-slow".into(),
        resource: None,
        comment: "é".repeat(comment),
    }
}

fn try_as_a_stranger(path: &Path) {
    let mut client = Client::connect(path, PATIENCE).unwrap();
    assert_eq!(client.sessions().unwrap().len(), 8);
    client.check_ledger(false).unwrap();
    let live = LiveClient::connect(path, PATIENCE).unwrap();
    let refused = [
        client.clear_session("7").err(),
        client.clear_back_off("olt1 1/2").err(),
        client.acknowledge_alarm(acknowledgement(0)).err(),
        client.test_aaa("alice", "wonderland", None).err(),
        client.check_ledger(true).err(),
        client.check_user_plane_ledger("up1", true).err(),
        client
            .move_aggregate(MoveAggregateRequest::named("up1/access0/olt1", 0).unwrap())
            .err(),
        live.trace(TraceRequest::default()).err(),
    ];
    for error in refused {
        let why = error.expect("a stranger changed something").to_string();
        assert!(why.contains("members of the daemon's group"), "{why}");
    }
}

#[test]
fn nobody_there_is_said_plainly() {
    let error = Client::connect(Path::new("/nonexistent/cp.sock"), PATIENCE).err();
    assert!(
        matches!(error, Some(CallError::Unreachable { .. })),
        "{error:?}"
    );
}

/// A daemon that speaks JSON lines, as those before gRPC did.
#[test]
fn a_daemon_of_another_version_is_told_from_one_that_does_not_answer() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("old.sock");
    let listener = UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        let mut open = Vec::new(); // closing one that has something unread resets it
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(b"{\"response\":\"error\",\"message\":\"not a request\"}\n");
            open.push(stream);
        }
    });
    let error = Client::connect(&path, PATIENCE).and_then(|mut client| client.drops());
    assert!(matches!(error, Err(CallError::Unknown(_))), "{error:?}");
}

#[test]
fn a_daemon_that_dies_is_told_from_one_of_another_version() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("test.sock");
    let (there, (ready, is_ready)) = (path.clone(), std::sync::mpsc::channel());
    let (kill, killed) = tokio::sync::oneshot::channel::<()>();
    let dies = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(async {
            let (calls, _asked) = mpsc::channel(1);
            let (live, mut watched) = mpsc::channel::<LiveCall>(1);
            tokio::spawn(serve_calls(&there, calls, live).unwrap());
            tokio::spawn(async move {
                while let Some((_, reply)) = watched.recv().await {
                    let _ = reply.send(Ok(LiveResponse::Tracing(tracing())));
                }
            });
            ready.send(()).unwrap();
            let _ = killed.await;
        });
    });
    is_ready.recv().unwrap();
    let client = LiveClient::connect(&path, PATIENCE).unwrap();
    let request = TraceRequest {
        subject: "alice".into(),
        seconds: 60,
        sample_one_in: 1,
        samples_per_second: 0,
    };
    let mut trace = client.trace(request).unwrap();
    drop(kill);
    dies.join().unwrap();
    let error = loop {
        match trace.next(PATIENCE) {
            Ok(part) => assert!(part.is_some_and(|part| part.ended.is_empty())),
            Err(error) => break error,
        }
    };
    let lost = "the answer did not come: the connection was lost";
    assert_eq!(error.to_string(), lost, "{error:?}");
}
