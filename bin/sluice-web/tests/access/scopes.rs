//! What tokens with scopes may be used for.

use super::*;
use crate::gnmi::{bearer, error, get};

/// Every scope, as the command line lists them.
const SCOPES: &str = "metrics,tables,events,records,trace,actions,configuration,gnmi";
/// What goes on until its client goes.
const STREAMS: [&str; 3] = [
    "/api/v1/top",
    "/api/v1/events/stream",
    "/api/v1/trace?who=home0001",
];

/// What comes of a request without arguments.
fn try_out(web: &Web, token: &str, method: &str, path: &str) -> Reply {
    let body: &[&str] = match method {
        "post" => &["--data", "{}"],
        _ => &[],
    };
    // requests of an address have a limit
    std::thread::sleep(std::time::Duration::from_millis(20));
    web.ask(token, path, body)
}

#[test]
fn a_token_may_be_used_for_its_scopes_and_for_nothing_else() {
    let web = Web::start();
    let all = SCOPES.split(',');
    let with: Vec<(&str, String)> = all
        .clone()
        .map(|scope| (scope, web.token(scope, "configure", &["--scope", scope])))
        .collect();
    let without: Vec<(&str, String)> = all
        .clone()
        .map(|scope| {
            let others: Vec<&str> = all.clone().filter(|other| *other != scope).collect();
            let name = format!("no-{scope}");
            let more = ["--scope", &others.join(",")];
            (scope, web.token(&name, "configure", &more))
        })
        .collect();
    let of = |tokens: &[(&str, String)], scope: &str| {
        let token = tokens.iter().find(|(of, _)| *of == scope);
        token
            .unwrap_or_else(|| panic!("no scope {scope}"))
            .1
            .clone()
    };
    // every token may read the description
    let described = web.rows(&of(&with, "gnmi"), "/api/v1/openapi.json");
    let mut seen = std::collections::BTreeSet::new();
    for (path, operations) in described["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let Some(scope) = operation["x-sluice-scope"].as_str() else {
                // who the caller is, and sign-ins
                assert!(path.ends_with("/me") || path.contains("/sign-"), "{path}");
                continue;
            };
            seen.insert(scope.to_owned());
            let refused = try_out(&web, &of(&without, scope), method, path);
            assert_eq!(refused.status, 403, "{method} {path}: {refused:?}");
            let said = refused.detail();
            assert!(said.contains(&format!("--scope {scope}")), "{path}: {said}");
            assert_eq!(
                refused.header("www-authenticate"),
                Some(&*format!(
                    "Bearer realm=\"sluice\", error=\"insufficient_scope\", scope=\"{scope}\""
                ))
            );
            if !STREAMS.iter().any(|stream| stream.starts_with(path)) {
                let served = try_out(&web, &of(&with, scope), method, path);
                assert_ne!(served.status, 403, "{method} {path}: {served:?}");
                assert_ne!(served.status, 429, "{method} {path}: {served:?}");
            }
        }
    }
    let rest = all.filter(|scope| *scope != "gnmi").map(str::to_owned);
    assert_eq!(seen, rest.collect(), "scopes of HTTP");
    let me = web.rows(&of(&with, "events"), "/api/v1/me");
    assert_eq!(me["scopes"], json!(["events"]));
    for stream in STREAMS {
        let scope = match stream {
            "/api/v1/top" => "tables",
            "/api/v1/events/stream" => "events",
            _ => "trace",
        };
        let mut curl = web.curl(&of(&with, scope), stream, &["--no-buffer"]);
        let mut head = String::new();
        let mut answer = BufReader::new(curl.stdout.take().unwrap());
        answer.read_line(&mut head).unwrap();
        curl.kill().unwrap();
        curl.wait().unwrap();
        assert!(head.starts_with("HTTP/2 200"), "{stream}: {head}");
    }

    let (with, without) = (of(&with, "gnmi"), of(&without, "gnmi"));
    let told = web.gnmi(&json!([
        get(&bearer(&with), "/state/ports"),
        get(&bearer(&without), "/state/ports"),
    ]));
    assert!(told[0].is_array(), "{told:?}");
    let (code, said) = error(&told[1]);
    assert_eq!(code, "PERMISSION_DENIED", "{told:?}");
    assert!(said.contains("--scope gnmi"), "{said}");
}

#[test]
fn a_role_bounds_a_scope_and_the_list_says_both() {
    let web = Web::start();
    let reader = web.token(
        "reader",
        "view",
        &["--scope", "tables", "--scope", "metrics"],
    );
    web.token("noc", "operate", &["--expires", "never"]);
    assert_eq!(web.ask(&reader, "/api/v1/ports", &[]).status, 200);
    let role = web.ask(&reader, "/api/v1/sessions", &[]).detail();
    assert!(role.contains("--role support"), "{role}");
    let listed = program(&web.folder(), &["token", "list"]).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let mut lines = listed.lines();
    assert!(
        lines.next().unwrap().ends_with("  tables, metrics"),
        "{listed}"
    );
    assert!(lines.next().unwrap().ends_with("  everything"), "{listed}");
    for (more, says) in [
        (&["--scope", "actions"][..], "choose the role operate"),
        (
            &["--scope", "everything"],
            SCOPES.split(',').next().unwrap(),
        ),
    ] {
        let words = [&["token", "add", "x", "--role", "view"], more].concat();
        let refused = program(&web.folder(), &words).output().unwrap();
        let said = String::from_utf8(refused.stderr).unwrap();
        assert!(!refused.status.success() && said.contains(says), "{said}");
    }
}
