//! The management interface over real sockets, with a user plane behind it that only keeps what it is told.

use config::start::{Management, Tls};
use mi::{
    Answer, ApplyResponse, Begun, Call, Client, Configured, DescribeResponse, Document,
    DocumentFault, Endpoint, GetSessionPolicyRequest, Keep, Kept, NetworkError, Request, Response,
    State, Written, serve,
};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tonic::Code;

const SOON: Duration = Duration::from_secs(10);

/// A user plane, and how often it was asked for its state.
struct UserPlane {
    configured: Configured,
    states: Arc<AtomicUsize>,
}

impl UserPlane {
    fn open(folder: &Path) -> Self {
        let kept = Kept::open(&folder.join("state")).unwrap();
        let document = kept.document().unwrap();
        let mut configured = Configured::new(kept);
        if let Some(document) = document {
            configured.resumed(&document, 1);
        }
        UserPlane {
            configured,
            states: Arc::default(),
        }
    }

    fn faults(document: &Document) -> Vec<DocumentFault> {
        let wrong = document.text.contains("wrong").then(|| DocumentFault {
            path: "ports access0".into(),
            message: "it is wrong".into(),
        });
        wrong.into_iter().collect()
    }

    fn apply(&mut self, document: Document) -> Answer {
        match self.configured.begin(document)? {
            Begun::Done(response) => Ok(response),
            Begun::Write(document) => {
                let written = self.configured.kept().begin(&document);
                if let Written::Done(response) = self.configured.written(&document, written)? {
                    return Ok(response);
                }
                match UserPlane::faults(&document) {
                    faults if faults.is_empty() => self.configured.finish(&document, 1_700_000_000),
                    faults => Ok(self.configured.give_up(faults)),
                }
            }
        }
    }

    fn answer(&mut self, request: Request) -> Answer {
        let in_force = self.configured.in_force().cloned();
        Ok(match request {
            Request::Describe => Response::Description(DescribeResponse {
                node_id: "up1".into(),
                in_force,
                ..Default::default()
            }),
            Request::Validate(document) => Response::Faults(UserPlane::faults(&document)),
            Request::Apply(document) => return self.apply(document),
            Request::GetState => {
                let asked = self.states.fetch_add(1, Ordering::Relaxed);
                Response::State(Box::new(State {
                    in_force,
                    sessions: asked as u64,
                    ports: vec![large_port(); 1000],
                    ..Default::default()
                }))
            }
            Request::Sample(_) => Response::Sampling,
            Request::ListPorts => Response::Ports { ports: vec![] },
            Request::ListRoutes { .. } => Response::Routes(Default::default()),
            Request::ListNeighbours { .. } => Response::Neighbours(Default::default()),
            Request::ListDrops => Response::Drops { drops: vec![] },
            Request::WatchRules { session, seconds } => {
                assert_eq!((session.pppoe_session_id, seconds), (7, 60));
                Response::WatchingRules
            }
            Request::ListAclRules { .. } => Response::AclRules(Default::default()),
            Request::ListPolicies => Response::Policies { policies: vec![] },
            Request::ListQueueAggregates { .. } => Response::QueueAggregates(Default::default()),
            Request::GetSessionPolicy(place) => {
                let name = format!("{}.{:?} {}", place.port, place.vids, place.pppoe_session_id);
                let down = Some(northbound::DirectionPolicy {
                    name,
                    ..Default::default()
                });
                Response::SessionPolicy(
                    northbound::SessionPolicy {
                        down,
                        ..northbound::SessionPolicy::default()
                    }
                    .into(),
                )
            }
            Request::MoveAggregate(request) => Response::Moved(northbound::MoveAggregateResponse {
                sessions: request.worker,
                split_subscribers: 7,
            }),
            Request::CheckLedger { .. } => Response::Ledger {
                ledger: Default::default(),
            },
        })
    }

    /// Serves until the task is ended.
    fn run(
        mut self,
        folder: &Path,
        management: Option<&Management>,
    ) -> Result<JoinHandle<()>, NetworkError> {
        let (calls, mut asked) = mpsc::channel::<Call>(4);
        let served = serve(&folder.join("up.sock"), management, calls)?;
        Ok(tokio::spawn(async move {
            let answering = async {
                while let Some((request, reply)) = asked.recv().await {
                    let _ = reply.send(self.answer(request));
                }
            };
            tokio::join!(served, answering);
        }))
    }
}

/// A thousand of them are a message that does not fit between two processes unread.
fn large_port() -> northbound::Port {
    northbound::Port {
        device: "x".repeat(200),
        ..Default::default()
    }
}

fn unix(folder: &Path) -> Client {
    let endpoint: Endpoint = format!("unix:{}/up.sock", folder.display())
        .parse()
        .unwrap();
    Client::new(&endpoint, None).unwrap()
}

#[tokio::test]
async fn a_document_is_validated_applied_and_there_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let served = UserPlane::open(dir.path()).run(dir.path(), None).unwrap();
    let mut client = unix(dir.path());
    let described = client.describe().await.unwrap();
    assert_eq!((&*described.node_id, described.in_force), ("up1", None));

    let good = Document::new(3, "{}".into());
    let wrong = Document::new(4, "{\"wrong\": 1}".into());
    assert!(client.validate(good.clone()).await.unwrap().is_empty());
    let faults = client.validate(wrong.clone()).await.unwrap();
    assert_eq!(faults[0].path, "ports access0");
    assert_eq!(
        client.describe().await.unwrap().in_force,
        None,
        "nothing changes"
    );

    let first = client.apply(good.clone()).await.unwrap();
    let in_force = first.in_force.clone().unwrap();
    assert_eq!((in_force.generation, &in_force.hash), (3, &good.hash));
    let refused = client.apply(wrong).await.unwrap();
    assert_eq!(refused.faults, faults);
    assert_eq!(
        refused.in_force, first.in_force,
        "what was in force still is"
    );
    assert_eq!(
        client.apply(good.clone()).await.unwrap(),
        first,
        "done already"
    );

    let other = Document::new(3, "{\"other\": 1}".into());
    for late in [other, Document::new(2, "{}".into())] {
        let refused = client.apply(late).await.unwrap_err();
        assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
    }

    served.abort();
    assert!(served.await.unwrap_err().is_cancelled());
    let described = client.describe().await;
    assert!(described.is_err(), "{described:?}");
    let _served = UserPlane::open(dir.path()).run(dir.path(), None).unwrap();
    let described = tokio::time::timeout(SOON, client.meet("up1"))
        .await
        .unwrap();
    let resumed = described.in_force.unwrap();
    assert_eq!((resumed.generation, resumed.hash), (3, good.hash));
}

#[tokio::test]
async fn a_document_that_is_not_whole_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let _served = UserPlane::open(dir.path()).run(dir.path(), None).unwrap();
    let mut client = unix(dir.path());
    let large = |octets: usize| Document::new(1, "x".repeat(octets));
    let mut changed = large(5);
    changed.text.push('y');
    for (document, code) in [
        (changed, Code::InvalidArgument),
        (Document::default(), Code::InvalidArgument),
        (Document::new(0, "{}".into()), Code::InvalidArgument),
        (large(mi::MAX_TEXT + 1), Code::InvalidArgument),
    ] {
        let refused = client.apply(document.clone()).await.unwrap_err();
        assert_eq!(refused.code(), code, "{refused}");
        let refused = client.validate(document).await.unwrap_err();
        assert_eq!(refused.code(), code, "{refused}");
    }
    let applied = client.apply(large(mi::MAX_TEXT)).await.unwrap();
    assert_eq!(applied.faults, []);
    // one that is far too large is not read at all
    let unread = client.apply(large(mi::MAX_TEXT + 2048)).await.unwrap_err();
    let in_force = client.describe().await.unwrap().in_force;
    assert_eq!(in_force, applied.in_force, "{unread}");
}

#[tokio::test]
async fn whoever_watches_slowly_misses_states_and_holds_up_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let user_plane = UserPlane::open(dir.path());
    let states = user_plane.states.clone();
    let _served = user_plane.run(dir.path(), None).unwrap();
    let mut client = unix(dir.path());
    for milliseconds in [0, 99, 60_001] {
        let refused = client.watch(Duration::from_millis(milliseconds)).await;
        assert_eq!(refused.unwrap_err().code(), Code::InvalidArgument);
    }
    let mut watched = client.watch(Duration::from_millis(100)).await.unwrap();
    for number in 0..3 {
        let state = watched.message().await.unwrap().unwrap();
        assert_eq!((state.sessions, state.ports.len()), (number, 1000));
    }
    // the connection takes in some states that nobody reads, and then the user plane is not asked any more
    let mut last = 0;
    while states.load(Ordering::Relaxed) != last {
        last = states.load(Ordering::Relaxed);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(client.describe().await.unwrap().node_id, "up1");
    }
    drop(watched);
    let mut watched = client.watch(Duration::from_millis(100)).await.unwrap();
    let state = watched.message().await.unwrap().unwrap();
    assert_eq!(
        state.sessions, last as u64,
        "a new reader has the newest state"
    );
}

#[tokio::test]
async fn a_session_is_named_by_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let _served = UserPlane::open(dir.path()).run(dir.path(), None).unwrap();
    let mut client = unix(dir.path());
    let session = GetSessionPolicyRequest {
        port: "access0".into(),
        s_tag: Some(100),
        c_tag: None,
        mac: "02:00:00:00:00:07".into(),
        pppoe_session_id: 7,
    };
    client.watch_rules(session.clone(), 60).await.unwrap();
    let aggregate = mi::MoveAggregateRequest {
        worker: 3,
        ..Default::default()
    };
    let moved = client.move_aggregate(aggregate).await.unwrap();
    assert_eq!((moved.sessions, moved.split_subscribers), (3, 7));
    let long = client.watch_rules(session.clone(), 3601).await.unwrap_err();
    assert_eq!(long.code(), Code::InvalidArgument);
    let policy = client.session_policy(session.clone()).await.unwrap();
    assert_eq!(policy.down.unwrap().name, "access0.(Some(100), None) 7");
    let wrong = |change: fn(&mut GetSessionPolicyRequest)| {
        let mut wrong = session.clone();
        change(&mut wrong);
        wrong
    };
    for wrong in [
        wrong(|session| session.mac.clear()),
        wrong(|session| session.c_tag = Some(1 << 16)),
        wrong(|session| session.pppoe_session_id = 1 << 16),
    ] {
        let refused = client.session_policy(wrong).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
    }
}

/// A connection that breaks is told in words for an operator, who knows nothing of gRPC.
#[tokio::test]
async fn a_user_plane_that_dies_is_told_in_a_sentence() {
    let dir = tempfile::tempdir().unwrap();
    let user_plane = UserPlane::open(dir.path());
    let folder = dir.path().to_owned();
    let (ready, is_ready) = tokio::sync::oneshot::channel();
    let (kill, killed) = tokio::sync::oneshot::channel::<()>();
    let dies = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(async {
            let _served = user_plane.run(&folder, None).unwrap();
            ready.send(()).unwrap();
            let _ = killed.await;
        });
    });
    is_ready.await.unwrap();
    let mut client = unix(dir.path());
    let mut watched = client.watch(Duration::from_millis(100)).await.unwrap();
    watched.message().await.unwrap();
    drop(kill);
    dies.join().unwrap();
    let dead = loop {
        match watched.message().await {
            Ok(state) => assert!(state.is_some(), "it ends in good order"),
            Err(status) => break status,
        }
    };
    let asked = client.describe().await.unwrap_err();
    let lost = "the answer did not come: the connection was lost";
    assert_eq!(mi::reason(&dead), lost, "{dead}");
    let nobody = "the answer did not come: No such file or directory (os error 2)";
    assert_eq!(mi::reason(&asked), nobody, "{asked}");
}

/// An authority with a certificate for a user plane on a loopback address and one for a control plane.
struct Authority {
    dir: tempfile::TempDir,
}

impl Authority {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap();
        std::fs::write(dir.path().join("ca.pem"), certificate.pem()).unwrap();
        let issuer = Issuer::new(params, key);
        for name in ["up", "cp"] {
            let key = KeyPair::generate().unwrap();
            let params = CertificateParams::new(vec![loopback().to_string()]).unwrap();
            let certificate = params.signed_by(&key, &issuer).unwrap();
            let file = |kind: &str| dir.path().join(format!("{name}.{kind}"));
            std::fs::write(file("pem"), certificate.pem()).unwrap();
            std::fs::write(file("key"), key.serialize_pem()).unwrap();
        }
        Authority { dir }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// What `name` says that it is, trusting this authority.
    fn tls(&self, name: &str) -> Tls {
        Tls {
            certificate: self.file(&format!("{name}.pem")),
            key: self.file(&format!("{name}.key")),
            authority: self.file("ca.pem"),
        }
    }
}

/// The loopback address that is this process' own, so that whoever else tests on this machine has other ports.
fn loopback() -> IpAddr {
    let [_, a, b, c] = std::process::id().to_be_bytes();
    IpAddr::from([127, a, b, c])
}

/// An address that nobody listens on, another one each time.
fn free() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(20_000);
    SocketAddr::new(loopback(), NEXT.fetch_add(1, Ordering::Relaxed))
}

#[tokio::test]
async fn over_the_network_both_sides_have_to_be_vouched_for() {
    let (dir, at) = (tempfile::tempdir().unwrap(), free());
    let (ours, strange) = (Authority::new(), Authority::new());
    let management = Management {
        listen: vec![at],
        tls: Some(ours.tls("up")),
    };
    let user_plane = UserPlane::open(dir.path());
    let _served = user_plane.run(dir.path(), Some(&management)).unwrap();
    let endpoint: Endpoint = at.to_string().parse().unwrap();
    let ask = async |tls: Option<Tls>| {
        let mut client = Client::new(&endpoint, tls.as_ref()).unwrap();
        let answer = tokio::time::timeout(SOON, client.describe()).await.unwrap();
        answer.map(|described| described.node_id)
    };
    assert_eq!(ask(Some(ours.tls("cp"))).await.unwrap(), "up1");
    for (stranger, why) in [
        (None, "without TLS"),
        (Some(strange.tls("cp")), "neither trusts the other"),
        (
            Some(Tls {
                authority: ours.file("ca.pem"),
                ..strange.tls("cp")
            }),
            "the control plane is a stranger",
        ),
        (
            Some(Tls {
                authority: strange.file("ca.pem"),
                ..ours.tls("cp")
            }),
            "the user plane is a stranger",
        ),
    ] {
        let answer = ask(stranger).await;
        assert!(answer.is_err(), "{why}: {answer:?}");
    }
    // the Unix socket is there beside it
    assert_eq!(unix(dir.path()).describe().await.unwrap().node_id, "up1");
}

#[tokio::test]
async fn without_tls_only_a_loopback_address_is_served_and_asked() {
    let (dir, at) = (tempfile::tempdir().unwrap(), free());
    let mut management = Management {
        listen: vec![at],
        tls: None,
    };
    let user_plane = UserPlane::open(dir.path());
    let _served = user_plane.run(dir.path(), Some(&management)).unwrap();
    let mut client = Client::new(&Endpoint::Tcp(at), None).unwrap();
    assert_eq!(client.describe().await.unwrap().node_id, "up1");

    let open: SocketAddr = "0.0.0.0:0".parse().unwrap();
    management.listen = vec![open];
    let other = tempfile::tempdir().unwrap();
    let refused = UserPlane::open(other.path()).run(other.path(), Some(&management));
    let refused = refused.unwrap_err();
    assert!(matches!(&refused, NetworkError::Open(_)), "{refused}");
    assert!(
        !other.path().join("up.sock").exists(),
        "nothing is half started"
    );
    let far = Endpoint::Tcp("192.0.2.2:8806".parse().unwrap());
    let refused = Client::new(&far, None).unwrap_err();
    assert!(matches!(refused, NetworkError::Open(_)), "{refused}");
}

#[tokio::test]
async fn what_cannot_be_used_is_named() {
    let (dir, ours) = (tempfile::tempdir().unwrap(), Authority::new());
    std::fs::write(ours.file("up.key"), "no key").unwrap();
    let mut management = Management {
        listen: vec![free()],
        tls: Some(ours.tls("up")),
    };
    let refused = UserPlane::open(dir.path()).run(dir.path(), Some(&management));
    let refused = refused.unwrap_err();
    assert!(matches!(refused, NetworkError::Tls(_)), "{refused}");
    management.tls = Some(ours.tls("nobody"));
    let refused = UserPlane::open(dir.path()).run(dir.path(), Some(&management));
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("nobody.pem"), "{refused}");
    for wrong in ["up1", "192.0.2.2", "up.sock", ""] {
        let refused = wrong.parse::<Endpoint>().unwrap_err().to_string();
        assert!(refused.contains("expected"), "{refused}");
    }
    let path = Endpoint::Unix("/run/sluice/up.sock".into());
    assert_eq!("/run/sluice/up.sock".parse::<Endpoint>().unwrap(), path);
}

/// What is wrong is told without a state of the user plane's being lost.
#[test]
fn a_document_that_could_not_be_kept_is_kept_when_it_is_sent_again() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("state");
    let mut configured = Configured::new(Kept::open(&folder).unwrap());
    let document = Document::new(1, "{}".into());
    let begin = |configured: &mut Configured| {
        let Begun::Write(begun) = configured.begin(document.clone()).unwrap() else {
            panic!("it was in force and kept");
        };
        let written = configured.kept().begin(&begun);
        configured.written(&begun, written)
    };
    assert!(matches!(begin(&mut configured), Ok(Written::Apply)));
    configured.begin(document.clone()).unwrap_err(); // another change is under way
    // somebody takes the folder away between writing and renaming
    std::fs::remove_dir_all(&folder).unwrap();
    configured.finish(&document, 1).unwrap_err();
    assert_eq!(configured.in_force(), Some(&document.in_force(1)));
    begin(&mut configured).unwrap_err();
    std::fs::create_dir(&folder).unwrap();
    let Ok(Written::Done(Response::Applied(ApplyResponse { in_force, .. }))) =
        begin(&mut configured)
    else {
        panic!("it is in force");
    };
    assert_eq!(in_force, Some(document.in_force(1)));
    let kept = Kept::open(&folder).unwrap();
    assert_eq!(kept.document().unwrap(), Some(document));
}
