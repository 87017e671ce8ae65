//! What calls cost: `cargo run --release -p northbound --example listing`. A plane with 131,072 sessions is listed, and
//! asked for its counters, over its socket; processor time is that of each side's thread.

use northbound::{
    Call, Client, DropCounter, Request, Response, Session, SessionState, Traffic, serve,
};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

const SESSIONS: usize = 131_072;
const CALLS: u32 = 200;
const PATIENCE: Duration = Duration::from_secs(10);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("cp.sock");
    let (served, serving) = (path.clone(), std::sync::mpsc::channel());
    let ready = serving.0;
    std::thread::spawn(move || plane(&served, &ready));
    serving.1.recv()?;
    for _ in 0..3 {
        let mut client = Client::connect(&path, PATIENCE)?;
        let (began, own) = (Instant::now(), processor_time());
        let sessions = client.sessions()?;
        let (took, own) = (began.elapsed(), processor_time() - own);
        assert_eq!(sessions.len(), SESSIONS);
        println!("{SESSIONS} sessions: {took:.0?}, of which the client's processor {own:.0?}");
    }
    let began = Instant::now();
    for _ in 0..CALLS {
        Client::connect(&path, PATIENCE)?.drops()?;
    }
    println!("connection and counters: {:.0?}", began.elapsed() / CALLS);
    let mut client = Client::connect(&path, PATIENCE)?;
    let began = Instant::now();
    for _ in 0..CALLS {
        client.drops()?;
    }
    println!("counters: {:.0?}", began.elapsed() / CALLS);
    Ok(())
}

/// Processor time of this thread.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text.split(' ').next().and_then(|n| n.parse().ok());
    Duration::from_nanos(first.unwrap_or_default())
}

fn plane(path: &std::path::Path, ready: &std::sync::mpsc::Sender<()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(async {
        let (calls, mut asked) = mpsc::channel::<Call>(64);
        let (configuration, _nobody) = mpsc::channel(1);
        let (live, _watched) = mpsc::channel(1);
        let (history, _past) = mpsc::channel(1);
        tokio::spawn(serve(path, calls, configuration, live, history).expect("a socket"));
        ready.send(()).expect("somebody waits");
        let mut own = processor_time();
        while let Some((request, reply)) = asked.recv().await {
            let answer = match request {
                Request::ListSessions { from, most, .. } => {
                    let end = SESSIONS.min(from + most);
                    if from == 0 {
                        own = processor_time();
                    }
                    if end == SESSIONS {
                        println!("the plane's processor: {:.0?}", processor_time() - own);
                    }
                    Response::Sessions {
                        sessions: (from..end).map(session).collect(),
                        next: (end < SESSIONS).then_some(end),
                    }
                }
                _ => Response::Drops {
                    drops: (0..60).map(counter).collect(),
                },
            };
            let _ = reply.send(Ok(answer));
        }
    });
}

fn session(number: usize) -> Session {
    Session {
        id: format!("{number:016x}"),
        state: SessionState::Online.into(),
        profile: "home".into(),
        user: format!("home{number}@sluice.example"),
        user_plane: "up1".into(),
        port: "access0".into(),
        s_tag: Some(100),
        c_tag: Some(7),
        mac: "02:00:00:00:00:07".into(),
        pppoe_session_id: 7,
        group: "up1/access0".into(),
        network_instance: "default".into(),
        ipv4: Some("100.64.0.9".into()),
        ipv6_prefix: Some("2001:db8:100:7::/64".into()),
        routes: Vec::new(),
        subscriber: "up1/access0.100.7".into(),
        subscriber_handle: Some(number as u32),
        fallback: String::new(),
        access_loop: Vec::new(),
        without_effect: Vec::new(),
        next_connection: Vec::new(),
        line: "up1/access0.100.7".into(),
        online_seconds: 125,
        traffic: Some(Traffic::default()),
        ipv4_traffic: Some(Traffic::default()),
        ipv6_traffic: Some(Traffic::default()),
    }
}

fn counter(number: usize) -> DropCounter {
    DropCounter {
        plane: "control-plane".into(),
        name: format!("counter-{number}"),
        count: number as u64,
        meaning: "A packet was dropped because there was a reason to drop it.".into(),
    }
}
