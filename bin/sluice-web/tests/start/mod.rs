//! The start file, and a control plane that is away.

use super::*;

#[test]
fn a_control_plane_that_is_away_is_said_and_comes_back() {
    let mut web = Web::start();
    let token = web.token("viewer", "view", &[]);
    assert_eq!(web.ask(&token, "/api/v1/pools", &[]).status, 200);
    web.plane.stop();
    let away = web.ask(&token, "/api/v1/pools", &[]);
    assert_eq!(away.status, 503, "{away:?}");
    let detail = away.detail();
    assert!(detail.contains("check that sluice-cp runs"), "{detail}");
    let metrics = web.ask(&token, "/metrics", &["--http1.1"]).body;
    assert!(metrics.contains("sluice_scrape_complete{table=\"pools\"} 0\n"));
    web.plane.resume();
    assert_eq!(web.ask(&token, "/api/v1/pools", &[]).status, 200);
}

#[test]
fn a_start_file_that_is_wrong_ends_it_with_its_own_code() {
    let folder = tempfile::tempdir().unwrap();
    let run = |text: &str, words: &[&str]| {
        std::fs::write(folder.path().join("web.yaml"), text).unwrap();
        let done = program(folder.path(), words).output().unwrap();
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        (done.status.code(), said)
    };
    let (code, said) = run("listen: ['0.0.0.0:8443']", &[]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("by which names clients call"), "{said}");
    assert_eq!(run("hosts: [gateway.example.net]", &["--check"]).0, Some(0));
    // certificates lie beside the start file
    let own = rcgen::generate_simple_self_signed(["gateway.example.net".into()]).unwrap();
    for (name, text) in [
        ("web.pem", own.cert.pem()),
        ("web.key", own.signing_key.serialize_pem()),
    ] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let tls = "tls: {certificate: web.pem, key: web.key}";
    let clients = "client-authority: web.pem";
    let (code, said) = run(&format!("{tls}\n{clients}"), &["--check"]);
    assert_eq!(code, Some(0), "{said}");
    for (wrong, says) in [
        (tls.replace("web.pem", "none.pem"), "none.pem: "),
        (tls.replace("web.key", "web.pem"), "web.pem: "),
        (
            clients.replace("web.pem", "web.key"),
            "no certificate of an authority",
        ),
    ] {
        for words in [["--check"].as_slice(), &[]] {
            let (code, said) = run(&wrong, words);
            assert_eq!(code, Some(2), "{said}");
            assert!(said.contains(says), "{said}");
        }
    }
    let state = folder.path().join("state");
    let (code, said) = run(&format!("state: {}", state.display()), &["--check"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(!state.exists(), "a check makes something");
    let state = folder.path().join("web.yaml").join("state");
    let (code, said) = run(&format!("state: {}", state.display()), &[]);
    assert_eq!(code, Some(1), "{said}");
    let (code, said) = run("{}", &["token", "add", "a b", "--role", "view"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("expected 1 to 64 visible"), "{said}");
}
