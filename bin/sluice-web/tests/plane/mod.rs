//! A control plane that only tells what it is asked, behind the real local API.

mod configuration;

use configuration::{InForce, is_slow};
use northbound::{
    AaaRole, AaaServer, AaaServerState, Acknowledgement, Alarm, AlarmSeverity, Association,
    AssociationState, BackupResponse, Call, Change, CheckChangeResponse, ClearSessionsResponse,
    CommitResponse, ConfigurationCall, ConfigurationFault, ConfigurationRequest,
    ConfigurationResponse, DirectionPolicy, DropCounter, Edit, Effect, Event, EventKind, Figure,
    FindHoldersResponse, FindSubscriberResponse, FollowEventsRequest, FollowEventsResponse,
    GetConfigurationResponse, HistoryCall, Holder, Ledger, ListAlarmsResponse, ListEventsResponse,
    ListFiguresResponse, ListLinesResponse, ListTroubleResponse, LiveCall, LiveRequest,
    LiveResponse, PolicySetting, Pool, Port, Process, QueueLimit, QueueState, Refusal, Request,
    Response, Session, SessionClear, SessionCounts, SessionPolicy, SessionState, Subscriber,
    SubscriberState, TestAaaResponse, TracedPacket, TracedPath, Tracing, Traffic, Trouble,
    TroubleHour, UserPlane, UserPlaneState, UserPlaneTable, Version, Waits, WatchStateResponse,
    WatchedUserPlane, Worker, change, serve,
};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::sync::{mpsc, oneshot, watch};

/// How many sessions there are.
const SESSIONS: usize = 1300;
/// Events behind this one are records, too.
const RECORDS: u64 = 1_000;
/// Text of an event behind which an answer ends too early.
const CUT_OFF: &str = "cut off";
/// Time that a slow commit takes.
const SLOW: Duration = Duration::from_secs(4);

/// A frame of a home that looks for a gateway.
const PADI: &[u8] = b"\xff\xff\xff\xff\xff\xff\x02\0\x5e\x10\0\x01\x88\x63\x11\x09\0\0\0\0";

/// A control plane.
pub struct Plane {
    pub folder: tempfile::TempDir,
    most: Arc<AtomicUsize>,
    /// What happened.
    events: Arc<watch::Sender<Vec<Event>>>,
    running: Option<(oneshot::Sender<()>, std::thread::JoinHandle<()>)>,
}

impl Plane {
    pub fn start() -> Self {
        let mut plane = Plane {
            folder: tempfile::tempdir().unwrap(),
            most: Arc::default(),
            events: Arc::default(),
            running: None,
        };
        plane.resume();
        plane
    }

    /// Listens (again).
    pub fn resume(&mut self) {
        let socket = self.folder.path().join("cp.sock");
        let (most, events) = (self.most.clone(), self.events.clone());
        let (ready, is_ready) = std::sync::mpsc::channel();
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                listen(&socket, most, events);
                ready.send(()).unwrap();
                let _ = stopped.await;
            });
            // as after a crash, its socket is left
        });
        is_ready.recv().unwrap();
        self.running = Some((stop, thread));
    }

    /// Ends with all of its connections.
    pub fn stop(&mut self) {
        let (stop, thread) = self.running.take().unwrap();
        stop.send(()).unwrap();
        thread.join().unwrap();
    }

    /// So many events happen: one in four is an alarm, the others are of sessions. Returns the number of the last one; the first of all
    /// has the number 1.
    pub fn happens(&self, count: usize) -> u64 {
        self.events.send_modify(|events| {
            for _ in 0..count {
                events.push(event(events.last().map_or(1, |event| event.number + 1)));
            }
        });
        self.events.borrow().last().map_or(0, |event| event.number)
    }

    /// An answer that has come to here ends too early.
    pub fn is_cut_off(&self) {
        self.events.send_modify(|events| {
            if let Some(last) = events.last_mut() {
                last.text = CUT_OFF.into();
            }
        });
    }

    /// The history does not reach back to this event any more.
    pub fn forgets(&self, number: u64) {
        let is_kept = |event: &Event| event.number > number;
        self.events.send_modify(|events| events.retain(is_kept));
    }

    /// The most sessions that were asked for at once.
    pub fn most_asked(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }
}

fn listen(socket: &Path, most: Arc<AtomicUsize>, events: Arc<watch::Sender<Vec<Event>>>) {
    let (calls, mut asked) = mpsc::channel::<Call>(8);
    let (live, mut watched) = mpsc::channel::<LiveCall>(8);
    let (history, mut past) = mpsc::channel::<HistoryCall>(8);
    let (configuration, mut versions) = mpsc::channel::<ConfigurationCall>(8);
    tokio::spawn(serve(socket, calls, configuration, live, history).unwrap());
    tokio::spawn(async move {
        while let Some((request, reply)) = asked.recv().await {
            let _ = reply.send(answer(request, &most));
        }
    });
    tokio::spawn(async move {
        while let Some((request, reply)) = watched.recv().await {
            let _ = reply.send(watch(request));
        }
    });
    tokio::spawn(async move {
        while let Some(call) = past.recv().await {
            match call {
                HistoryCall::Follow(asked, part) => {
                    tokio::spawn(follow(asked, part, events.subscribe()));
                }
                call => remember(call).await,
            }
        }
    });
    tokio::spawn(async move {
        let mut in_force = InForce::default();
        while let Some((request, reply)) = versions.recv().await {
            if is_slow(&request) {
                tokio::time::sleep(SLOW).await;
            }
            let _ = reply.send(in_force.configure(request));
        }
    });
}

fn answer(request: Request, most_asked: &AtomicUsize) -> Result<Response, Refusal> {
    Ok(match request {
        Request::ListSessions { from, most, filter } => {
            most_asked.fetch_max(most, Ordering::Relaxed);
            let of_user = |session: &Session| session.user.starts_with(&filter.user_prefix);
            let meant = sessions().filter(of_user).count();
            let end = meant.min(from + most);
            Response::Sessions {
                sessions: sessions().filter(of_user).skip(from).take(most).collect(),
                next: (end < meant).then_some(end),
            }
        }
        Request::CountSessions => Response::SessionCount(sessions().count() as u64),
        Request::MatchSessions { from: 0, filter } => {
            if filter.mac == "x" {
                return Err(Refusal::Invalid("`x` is no MAC address".into()));
            }
            let prefix = filter.user_prefix.clone();
            let meant = (0..).zip(sessions());
            let meant = meant.filter(|(_, session)| session.user.starts_with(&prefix));
            Response::Matches {
                ids: meant.map(|(id, _)| id).collect(),
                next: None,
            }
        }
        Request::ClearSessions { ids, rate, by, .. } => {
            assert_eq!(by.split(' ').next(), Some("noc"));
            Response::Clearing(ClearSessionsResponse {
                sessions: ids.len() as u64,
                rate,
            })
        }
        Request::StopClear { .. } => {
            return Err(Refusal::NotFound("no `clear sessions` is under way".into()));
        }
        Request::ListSessionClears => Response::SessionClears {
            clears: vec![SessionClear {
                by: "noc".into(),
                sessions: 100,
                ended: 30,
                ..SessionClear::default()
            }],
        },
        Request::ListUserPlanes => Response::UserPlanes {
            user_planes: vec![
                user_plane("up1", UserPlaneState::Associated),
                user_plane("up2", UserPlaneState::Lost),
            ],
        },
        Request::ListAssociations => Response::Associations {
            associations: ["up1", "up2"].map(association).into(),
        },
        Request::ListPools => Response::Pools { pools: pools() },
        Request::ListDrops => Response::Drops {
            drops: drops()[..1].to_vec(),
        },
        Request::ListAaaServers => Response::AaaServers {
            servers: vec![server()],
        },
        Request::UserPlane { name, table } => return of_user_plane(&name, table),
        Request::GetSession { id } => match sessions().find(|session| session.id == id) {
            Some(session) => Response::Session {
                session: Box::new(session),
            },
            None => return Err(Refusal::NotFound(format!("there is no session {id}"))),
        },
        Request::GetSessionPolicy { id } if id.ends_with('2') => Response::SessionPolicy {
            policy: with_queue().into(),
        },
        Request::GetSessionPolicy { .. } => {
            return Err(Refusal::Unreachable("up2 does not answer".into()));
        }
        Request::CheckLedger { repair: false } => Response::Ledger {
            ledger: Ledger::of("cp1"),
        },
        Request::ClearSession { id, by } => {
            let by = by.split(' ').next();
            assert_eq!(
                by,
                Some("noc"),
                "the person, beside the user of the process"
            );
            match id.as_str() {
                "0000000000000007" => Response::Done,
                id => return Err(Refusal::NotFound(format!("there is no session {id}"))),
            }
        }
        Request::TestAaa {
            user,
            password,
            access_profile,
        } => Response::AaaTested(TestAaaResponse {
            accepted: user == "alice" && password.0 == "wonderland",
            asked: access_profile,
            ..TestAaaResponse::default()
        }),
        Request::AcknowledgeAlarm {
            alarm,
            resource,
            comment,
            by,
        } => {
            assert_eq!(by.split(' ').next(), Some("noc"));
            match (alarm.as_str(), resource.as_deref(), comment.as_str()) {
                ("aaa-server-out", Some("first"), "its rack moves") => Response::Done,
                ("aaa-server-out", None, "") => Response::Done,
                _ => return Err(Refusal::NotFound(format!("no alarm `{alarm}` is raised"))),
            }
        }
        other => panic!("{other:?} is no table"),
    })
}

fn of_user_plane(name: &str, table: UserPlaneTable) -> Result<Response, Refusal> {
    match (name, table) {
        ("up2", _) => Err(Refusal::Unreachable("up2 does not answer".into())),
        ("up1", UserPlaneTable::Drops) => Ok(Response::Drops {
            drops: drops()[1..].to_vec(),
        }),
        ("up1", UserPlaneTable::MoveAggregate(request)) => {
            Ok(Response::Moved(northbound::MoveAggregateResponse {
                sessions: request.s_tag.unwrap_or_default() + request.worker,
                split_subscribers: 2,
            }))
        }
        ("up1", UserPlaneTable::Ledger { .. }) => Ok(Response::Ledger {
            ledger: Ledger::of("up1"),
        }),
        ("up1", UserPlaneTable::Ports) => Ok(Response::Ports { ports: ports() }),
        ("up1", UserPlaneTable::Routes { .. }) => Ok(Response::Routes {
            routes: Vec::new(),
            more: false,
        }),
        ("up1", UserPlaneTable::Neighbours { .. }) => Ok(Response::Neighbours {
            neighbours: Vec::new(),
            more: false,
        }),
        ("up1", UserPlaneTable::AclRules { acl, .. }) => {
            assert_eq!(acl, "base");
            Ok(Response::AclRules {
                rules: Vec::new(),
                more: false,
            })
        }
        ("up1", UserPlaneTable::Policies) => Ok(Response::Policies {
            policies: Vec::new(),
        }),
        _ => Err(Refusal::NotFound(format!("there is no {name}"))),
    }
}

async fn follow(
    asked: FollowEventsRequest,
    parts: mpsc::Sender<Result<FollowEventsResponse, Refusal>>,
    mut events: watch::Receiver<Vec<Event>>,
) {
    let newest = |events: &[Event]| events.last().map_or(0, |event| event.number);
    let mut place = asked.after.unwrap_or(newest(&events.borrow()));
    let oldest = events.borrow().first().map_or(1, |event| event.number);
    let mut lost = oldest.saturating_sub(place + 1);
    if let (None, Some(since)) = (asked.after, asked.since) {
        let all = events.borrow();
        let first = all.iter().find(|event| event.at >= since);
        place = first.map_or(place, |first| first.number - 1);
        lost = 0;
    }
    let kinds: Vec<_> = asked.kinds().collect();
    let is_wanted = |event: &&Event| kinds.is_empty() || kinds.contains(&event.kind());
    loop {
        let all = events.borrow_and_update().clone();
        let behind = all.iter().filter(|event| event.number > place).take(128);
        let behind: Vec<_> = behind.cloned().collect();
        place = place.max(newest(&behind));
        // a control plane that ends in between says no more
        let is_cut_off = behind.iter().any(|event| event.text == CUT_OFF);
        let complete = asked.until.is_some() && place >= newest(&all) && !is_cut_off;
        let part = FollowEventsResponse {
            events: behind.iter().filter(is_wanted).cloned().collect(),
            last: place,
            lost: std::mem::take(&mut lost),
            complete,
        };
        if parts.send(Ok(part)).await.is_err() || complete || is_cut_off {
            return;
        }
        if place >= newest(&all) {
            tokio::select! {
                more = events.changed() => if more.is_err() { return },
                () = parts.closed() => return,
            }
        }
    }
}

fn event(number: u64) -> Event {
    let event = Event {
        number,
        at: northbound::time::now(),
        text: format!("event \"{number}\" ] ü"),
        ..Event::default()
    };
    match number % 4 {
        2 if number > RECORDS => Event {
            kind: EventKind::Counted.into(),
            ended: Some(event.at),
            traffic: Some(Traffic {
                up_octets: number,
                ..Traffic::default()
            }),
            ..event
        },
        0 => Event {
            kind: EventKind::AlarmRaised.into(),
            alarm: Some("pool-full".into()),
            severity: AlarmSeverity::Critical.into(),
            resource: "homes".into(),
            ..event
        },
        _ => Event {
            kind: EventKind::Online.into(),
            subscriber: Some(Subscriber {
                user: format!("home{number}"),
                ..Subscriber::default()
            }),
            ipv4: Some("100.64.0.9".into()),
            ..event
        },
    }
}

async fn remember(call: HistoryCall) {
    match call {
        HistoryCall::Follow(..) => unreachable!("it is followed elsewhere"),
        HistoryCall::Events(asked, part) => {
            // four match, of which one is told
            let kind = asked.kinds().next().unwrap_or(EventKind::Online);
            let told = Event {
                kind: kind.into(),
                text: format!("{} and {}", asked.subscriber, asked.also),
                ..Event::default()
            };
            let told = ListEventsResponse {
                events: vec![told],
                matching: asked.count.then_some(4),
                or_more: asked.count && asked.also == "many",
            };
            let _ = part.send(Ok(told)).await;
        }
        HistoryCall::Lines(_, part) => {
            let _ = part.send(Ok(ListLinesResponse::default())).await;
        }
        HistoryCall::Trouble(asked, reply) => {
            let trouble = vec![trouble(asked.kind(), asked.until)];
            let _ = reply.send(Ok(ListTroubleResponse { trouble }));
        }
        HistoryCall::Figures(asked, part) => {
            let figure = Figure {
                name: "online".into(),
                resource: asked.resource.unwrap_or_else(|| "everything".into()),
                mean: 7,
                ..Figure::default()
            };
            let figures = vec![figure];
            let _ = part.send(Ok(ListFiguresResponse { figures })).await;
        }
        HistoryCall::Backup(part) => {
            let backup = BackupResponse {
                octets: 4096,
                path: Some("/var/lib/sluice/history/backup.db".into()),
                ..BackupResponse::default()
            };
            let _ = part.send(Ok(backup)).await;
        }
        HistoryCall::Alarms(reply) => {
            let alarm = Alarm {
                name: "aaa-server-out".into(),
                severity: AlarmSeverity::Minor.into(),
                resource: "first".into(),
                acknowledged: Some(Acknowledgement {
                    by: "alice".into(),
                    at: 7,
                    comment: "its rack moves".into(),
                }),
                ..Alarm::default()
            };
            let _ = reply.send(Ok(ListAlarmsResponse {
                alarms: vec![alarm],
                minor: 1,
                ..ListAlarmsResponse::default()
            }));
        }
        HistoryCall::Subscriber(asked, reply) => {
            let who = asked.subscriber;
            let own = sessions().filter(|session| session.id == who || session.user == who);
            let states = own.map(|session| SubscriberState {
                session: Some(session),
                policy: vec![setting()],
                ..SubscriberState::default()
            });
            let _ = reply.send(Ok(FindSubscriberResponse {
                subscribers: states.collect(),
                ..FindSubscriberResponse::default()
            }));
        }
        HistoryCall::Holders(asked, reply) => {
            let _ = reply.send(Ok(holders(&asked.address, asked.at)));
        }
    }
}

/// What ended and failed in the hour that is asked for.
fn trouble(kind: EventKind, until: Option<u64>) -> Trouble {
    let ended = if kind == EventKind::Failed { 0 } else { 12 };
    Trouble {
        lines: "up1/access0.100.*".into(),
        ended,
        failed: 3,
        hours: vec![TroubleHour {
            at: until.unwrap_or(7200),
            ended,
            failed: 3,
            refused: 0,
        }],
        ..Trouble::default()
    }
}

/// The only setting of every session.
pub fn setting() -> PolicySetting {
    PolicySetting {
        label: "policy up".into(),
        value: "home-up".into(),
        ..PolicySetting::default()
    }
}

/// Who had an address.
pub fn holders(address: &str, at: Option<u64>) -> FindHoldersResponse {
    FindHoldersResponse {
        at: at.unwrap_or(1),
        holders: vec![Holder {
            ipv4: Some(address.into()),
            ..Holder::default()
        }],
        ..FindHoldersResponse::default()
    }
}

fn watch(request: LiveRequest) -> Result<LiveResponse, Refusal> {
    let asked = match request {
        LiveRequest::GetState => return Ok(LiveResponse::State(Box::new(state()))),
        LiveRequest::Trace(asked) => asked,
    };
    if asked.subject == "nobody" {
        return Err(Refusal::NotFound("`nobody` is no subscriber".into()));
    }
    let (packet, packets) = mpsc::channel(8);
    let padi = TracedPacket {
        at_nanoseconds: 1_700_000_000_000_000_000,
        path: TracedPath::Access.into(),
        octets: PADI.into(),
        length: PADI.len() as u32,
        ..TracedPacket::default()
    };
    packet.try_send(padi).unwrap();
    if asked.seconds > 1 {
        // it goes on until its client goes
        tokio::spawn(async move { packet.closed().await });
    }
    Ok(LiveResponse::Tracing(Tracing {
        followed: format!("{} at up1/access0.100.7", asked.subject),
        packets,
        missed: Arc::default(),
    }))
}

fn state() -> WatchStateResponse {
    let worker = Worker {
        busy_nanoseconds: 1_500_000_000,
        ..Worker::default()
    };
    WatchStateResponse {
        sessions: Some(SessionCounts {
            connecting: 1,
            online: 2,
            closing: 0,
            begun: 9,
            opened: 8,
            ended: 6,
        }),
        user_planes: vec![WatchedUserPlane {
            node_id: "up1".into(),
            associated: true,
            reached: true,
            workers: vec![worker],
            process: Some(Process {
                resident_octets: 1 << 20,
                cpu_microseconds: 2_500_000,
                ..Process::default()
            }),
            ..WatchedUserPlane::default()
        }],
        waits: Some(Waits {
            longest_microseconds: 1500,
            long: 2,
        }),
        process: Some(Process::own()),
        ..WatchStateResponse::default()
    }
}

/// All sessions, in the order in which they are listed.
pub fn sessions() -> impl Iterator<Item = Session> {
    (0..SESSIONS).map(|number| Session {
        id: format!("{number:016x}"),
        state: SessionState::Online.into(),
        user: format!("home{number:04}"),
        mac: "02:00:5e:00:00:01".into(),
        ipv4: Some("100.64.0.9".into()),
        ..Session::default()
    })
}

/// A policy with a queue, of which a packet in ten has waited for more than a millisecond.
fn with_queue() -> SessionPolicy {
    let voice = QueueState {
        class: "voice".into(),
        full_drops: 3,
        waits: vec![9, 1],
        limited_by: QueueLimit::Subscriber.into(),
        ..QueueState::default()
    };
    let down = DirectionPolicy {
        queues: vec![voice],
        ..DirectionPolicy::default()
    };
    SessionPolicy {
        down: Some(down),
        ..SessionPolicy::default()
    }
}

/// All pools.
pub fn pools() -> Vec<Pool> {
    vec![Pool {
        name: "homes".into(),
        prefix: "100.64.0.0/16".into(),
        network_instance: "default".into(),
        size: 65_023,
        used: 20,
        ..Pool::default()
    }]
}

/// The ports of the first user plane.
pub fn ports() -> Vec<Port> {
    vec![Port {
        user_plane: "up1".into(),
        name: "core0".into(),
        role: "core".into(),
        link_up: true,
        rx_octets: 1500,
        ..Port::default()
    }]
}

/// The counters of the control plane and of the first user plane.
pub fn drops() -> Vec<DropCounter> {
    let of = |plane: &str, name: &str, count| DropCounter {
        plane: plane.into(),
        name: name.into(),
        count,
        ..DropCounter::default()
    };
    vec![
        of("control-plane", "bad-cookie", 0),
        of("up1", "ttl-expired", 7),
    ]
}

fn server() -> AaaServer {
    AaaServer {
        name: "first".into(),
        group: "main".into(),
        role: AaaRole::Authentication.into(),
        state: AaaServerState::Out.into(),
        ..AaaServer::default()
    }
}

fn user_plane(name: &str, state: UserPlaneState) -> UserPlane {
    UserPlane {
        node_id: name.into(),
        state: state.into(),
        ..UserPlane::default()
    }
}

fn association(name: &str) -> Association {
    let state = match name {
        "up1" => AssociationState::Up,
        _ => AssociationState::Down,
    };
    Association {
        node_id: name.into(),
        state: state.into(),
        ..Association::default()
    }
}
