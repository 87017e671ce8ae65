//! A user plane whose `management` is changed at run time.

use super::*;
use mi::{ApplyResponse, Call, DescribeResponse, InForce, Request, Response};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// A user plane's management interface, which takes every document and passes it on.
pub(crate) fn user_plane(socket: &Path) -> mpsc::UnboundedReceiver<String> {
    user_plane_that(socket, |_| Vec::new(), Arc::default())
}

/// One whose machine lacks this.
pub(crate) fn user_plane_on(
    socket: &Path,
    lacking: Arc<Mutex<Vec<String>>>,
) -> mpsc::UnboundedReceiver<String> {
    user_plane_that(socket, |_| Vec::new(), lacking)
}

/// One that finds so many faults in a document; it takes those without any.
fn user_plane_that(
    socket: &Path,
    faults: fn(&Document) -> Vec<DocumentFault>,
    lacking: Arc<Mutex<Vec<String>>>,
) -> mpsc::UnboundedReceiver<String> {
    let (calls_in, mut calls) = mpsc::channel::<Call>(16);
    tokio::spawn(mi::serve(socket, None, calls_in).unwrap());
    let (told, hears) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut in_force: Option<InForce> = None;
        while let Some((request, reply)) = calls.recv().await {
            let answer = match request {
                Request::Describe => Response::Description(DescribeResponse {
                    in_force: in_force.clone(),
                    ..Default::default()
                }),
                Request::GetState => Response::State(Box::new(State {
                    in_force: in_force.clone(),
                    host: lacking.lock().unwrap().clone(),
                    ..Default::default()
                })),
                Request::Apply(document) => {
                    let faults = faults(&document);
                    if faults.is_empty() {
                        in_force = Some(document.in_force(0));
                    }
                    let _ = told.send(document.text); // the test may be over
                    Response::Applied(ApplyResponse {
                        faults,
                        in_force: in_force.clone(),
                    })
                }
                other => panic!("nobody asks for {other:?} here"),
            };
            let _ = reply.send(Ok(answer)); // so may who asked
        }
    });
    hears
}

/// The next document that a user plane is told.
async fn next(told: &mut mpsc::UnboundedReceiver<String>) -> String {
    let document = timeout(Duration::from_secs(20), told.recv()).await;
    document.expect("nothing is told").expect("it serves")
}

fn follow(management: &mut Management, configuration: &Configuration, version: u64) {
    let documents = Wanted::all(configuration, version);
    management.follow(configuration, documents);
}

#[tokio::test]
async fn what_is_configured_goes_where_management_leads() {
    let folder = tempfile::tempdir().unwrap();
    let [first, second] = ["first", "second"].map(|name| folder.path().join(name));
    let (mut told_first, mut told_second) = (user_plane(&first), user_plane(&second));
    let configuration = |socket: &Path, level: &str| {
        let text = format!(
            "logging: {{level: {level}}}\nuser-planes: {{up1: {{address: 192.0.2.2, management: {}}}}}\n",
            socket.display()
        );
        config::check::read(&text).unwrap().configuration
    };
    let (plane, mut heard) = mpsc::channel(16);
    tokio::spawn(async move { while heard.recv().await.is_some() {} });
    let mut management = Management::new(None, plane);

    follow(&mut management, &configuration(&first, "info"), 1);
    assert!(next(&mut told_first).await.contains("info"));
    // The same place, another document.
    follow(&mut management, &configuration(&first, "warn"), 2);
    assert!(next(&mut told_first).await.contains("warn"));
    assert!(told_second.try_recv().is_err(), "nothing leads there yet");
    // Another place: what is there already is brought there, and what comes then.
    follow(&mut management, &configuration(&second, "warn"), 3);
    assert!(next(&mut told_second).await.contains("warn"));
    follow(&mut management, &configuration(&second, "debug"), 4);
    assert!(next(&mut told_second).await.contains("debug"));
    assert!(told_first.try_recv().is_err(), "nothing leads there now");
    // Nowhere.
    follow(&mut management, &Configuration::default(), 5);
    assert_eq!(management.managed().count(), 0);
}

/// A user plane that refused a document is asked again when there is another one, or after a while: not for a commit that
/// changes nothing for it.
#[tokio::test]
async fn what_was_refused_is_not_offered_again_for_a_commit_that_does_not_change_it() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("refuses");
    let mut told = user_plane_that(
        &socket,
        |document| {
            let refused = document.text.contains("info");
            let fault = DocumentFault {
                path: "logging.level".into(),
                message: "not here".into(),
            };
            refused.then_some(fault).into_iter().collect()
        },
        Arc::default(),
    );
    let configuration = |level: &str| {
        let text = format!(
            "logging: {{level: {level}}}\nuser-planes: {{up1: {{address: 192.0.2.2, management: {}}}}}\n",
            socket.display()
        );
        config::check::read(&text).unwrap().configuration
    };
    let (plane, mut heard) = mpsc::channel(16);
    tokio::spawn(async move { while heard.recv().await.is_some() {} });
    let mut management = Management::new(None, plane);
    let refused = async |management: &Management| {
        let mut standing = management.links["up1"].standing.clone();
        let refused = standing.wait_for(|standing| standing.refused.is_some());
        timeout(Duration::from_secs(20), refused)
            .await
            .unwrap()
            .unwrap();
    };

    follow(&mut management, &configuration("info"), 1);
    assert!(next(&mut told).await.contains("info"));
    refused(&management).await;
    follow(&mut management, &configuration("info"), 2);
    // What comes next is the next document, not the one before once more.
    tokio::time::sleep(Duration::from_millis(200)).await;
    follow(&mut management, &configuration("warn"), 3);
    assert!(next(&mut told).await.contains("warn"));
}

/// It puts in force what an earlier life of the control plane sent.
#[tokio::test]
async fn a_busy_user_plane_is_asked_again_on_the_same_connection() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("up.sock");
    let (calls_in, mut calls) = mpsc::channel::<Call>(16);
    tokio::spawn(mi::serve(&socket, None, calls_in).unwrap());
    let (told, mut hears) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut described = 0;
        let mut busy = 1;
        while let Some((request, reply)) = calls.recv().await {
            let answer = match request {
                Request::Describe => {
                    described += 1;
                    Ok(Response::Description(DescribeResponse::default()))
                }
                Request::Apply(_) if busy > 0 => {
                    busy -= 1;
                    Err(northbound::Refusal::Busy("another document".into()))
                }
                Request::Apply(document) => {
                    let _ = told.send(described); // the test may be over
                    Ok(Response::Applied(ApplyResponse {
                        in_force: Some(document.in_force(0)),
                        ..Default::default()
                    }))
                }
                Request::GetState => Ok(Response::State(Box::default())),
                other => panic!("nobody asks for {other:?} here"),
            };
            let _ = reply.send(answer); // so may who asked
        }
    });
    let text = format!(
        "user-planes: {{up1: {{address: 192.0.2.2, management: {}}}}}\n",
        socket.display()
    );
    let configuration = config::check::read(&text).unwrap().configuration;
    let (plane, mut heard) = mpsc::channel(16);
    let mut management = Management::new(None, plane);
    follow(&mut management, &configuration, 1);
    let met = timeout(Duration::from_secs(20), hears.recv()).await;
    assert_eq!(met.unwrap(), Some(1), "it was met once");
    assert!(matches!(heard.recv().await, Some(ToPlane::Told(name)) if name == "up1"));
}
