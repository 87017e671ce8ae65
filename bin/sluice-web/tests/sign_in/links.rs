//! One-time links.

use super::{Browser, ME, SIGN_IN, run};
use crate::Web;
use serde_json::{Value, json};

/// The secret of a new link.
pub fn link(web: &Web, more: &[&str]) -> String {
    let words = [&["link", "--role", "view", "--at", &web.at], more].concat();
    let url = run(web, &words, "").unwrap();
    let start = format!("https://{}/#/sign-in?link=", web.at);
    url.strip_prefix(&start)
        .unwrap_or_else(|| panic!("{url}"))
        .to_owned()
}

#[test]
fn a_link_signs_in_once() {
    let web = Web::start();
    let use_it =
        |name: &str, secret: &str| Browser::new(&web, name).sign_in(&json!({"link": secret}));
    let secret = link(&web, &["--name", "visitor"]);
    let first = use_it("first", &secret);
    assert_eq!(first.status, 200, "{first:?}");
    assert_eq!(
        (&first.json()["name"], &first.json()["role"]),
        (&json!("visitor"), &json!("view"))
    );
    let second = use_it("second", &secret);
    assert_eq!(second.status, 401);
    assert!(second.detail().contains("it was used"), "{second:?}");
    let visitor = Browser::new(&web, "first");
    assert_eq!(visitor.ask(ME, &[]).json(), first.json());
    assert_eq!(visitor.status("/api/v1/sessions"), 403);

    let secret = link(&web, &[]);
    let body = json!({"link": secret}).to_string();
    let at_once: Vec<_> = (0..6)
        .map(|_| web.curl("", SIGN_IN, &["--data", &body]))
        .collect();
    let replies = at_once.into_iter().map(|curl| {
        let done = curl.wait_with_output().unwrap();
        String::from_utf8(done.stdout).unwrap()
    });
    let replies: Vec<_> = replies.collect();
    let won: Vec<_> = replies
        .iter()
        .filter(|reply| reply.contains("set-cookie"))
        .collect();
    assert_eq!(won.len(), 1, "{replies:#?}");
    assert!(won[0].contains(r#""name":"link""#), "{won:?}");
}

#[test]
fn a_link_is_refused_after_its_time() {
    let web = Web::start();
    let secret = link(&web, &["--minutes", "1"]);
    let file = web.folder().join("web/links.json");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(!text.contains(&secret), "{text}");
    let mut links: Value = serde_json::from_str(&text).unwrap();
    let expires = links[0]["expires"].as_u64().unwrap();
    let left = expires - northbound::time::now();
    assert!((50..=60).contains(&left), "{left}");
    links[0]["expires"] = (expires - 60).into();
    std::fs::write(&file, links.to_string()).unwrap();
    let late = Browser::new(&web, "late").sign_in(&json!({"link": secret}));
    assert_eq!(late.status, 401);
    assert!(late.detail().contains("has expired"), "{late:?}");
}
