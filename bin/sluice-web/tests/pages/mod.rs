//! The web manager's pages, as the build found them in web/dist.

use crate::Web;
use std::path::{Path, PathBuf};
use std::process::Command;

fn dist() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/dist")
}

/// Every file of web/dist, with its path.
fn files() -> Vec<(String, Vec<u8>)> {
    let (mut files, mut folders) = (Vec::new(), vec![dist()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(dist()).unwrap().to_str().unwrap();
            let at = match name {
                "index.html" => "/".to_owned(),
                _ => format!("/{name}"),
            };
            files.push((at, std::fs::read(&path).unwrap()));
        }
    }
    files
}

/// What curl writes to a file, which need not be text.
fn content(web: &Web, path: &str, more: &[&str]) -> Vec<u8> {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--fail", "--cacert"])
        .arg(web.folder().join("web/certificate.pem"))
        .args(more)
        .arg(format!("https://{}{path}", web.at));
    let done = curl.output().unwrap();
    assert!(done.status.success(), "{path}: {done:?}");
    done.stdout
}

#[test]
fn everybody_gets_every_page_as_it_is_or_compressed() {
    let web = Web::start();
    let files = files();
    assert!(files.iter().any(|(path, _)| path == "/"));
    assert!(
        files
            .iter()
            .any(|(path, _)| path.starts_with("/assets/") && path.ends_with(".js"))
    );
    for (path, octets) in &files {
        assert_eq!(&content(&web, path, &[]), octets, "{path}");
        assert_eq!(&content(&web, path, &["--compressed"]), octets, "{path}");
        let head = web.ask("", path, &["--head"]);
        assert_eq!(
            head.header("content-length"),
            Some(&*octets.len().to_string()),
            "{path}"
        );
        assert_eq!(head.body, "");
        let kept = match path.starts_with("/assets/") {
            true => "public, max-age=31536000, immutable",
            false => "no-cache",
        };
        assert_eq!(head.header("cache-control"), Some(kept), "{path}");
    }
}

#[test]
fn a_page_has_a_policy_and_is_sent_once() {
    let web = Web::start();
    let page = web.ask("", "/", &[]);
    for (name, value) in [
        (
            "content-security-policy",
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; \
             manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
        ),
        ("content-type", "text/html; charset=utf-8"),
        ("cache-control", "no-cache"),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
    ] {
        assert_eq!(page.header(name), Some(value), "{name}");
    }
    let script = files().into_iter().map(|(path, _)| path);
    let script = script.filter(|path| path.ends_with(".js")).max().unwrap();
    let plain = web.ask("", &script, &["--head"]);
    assert_eq!(
        plain.header("content-type"),
        Some("text/javascript; charset=utf-8")
    );
    assert_eq!(plain.header("content-encoding"), None);
    let gzip = ["-H", "Accept-Encoding: br, gzip"];
    let gzip = web.ask("", &script, &[&["--head"], &gzip[..]].concat());
    assert_eq!(gzip.header("content-encoding"), Some("gzip"));
    for reply in [&plain, &gzip] {
        assert_eq!(reply.header("vary"), Some("Accept-Encoding"));
    }
    let tags = [&plain, &gzip].map(|reply| reply.header("etag").unwrap());
    assert_ne!(
        tags[0], tags[1],
        "each form has its own (RFC 9110, section 8.8.3)"
    );
    let known = format!("If-None-Match: {}", tags[0]);
    let again = web.ask("", &script, &["-H", &known]);
    assert_eq!((again.status, &*again.body), (304, ""));
    assert_eq!(again.header("cache-control"), plain.header("cache-control"));
    let other = web.ask(
        "",
        &script,
        &["--head", "-H", &known, "-H", "Accept-Encoding: gzip"],
    );
    assert_eq!(other.status, 200);
}

#[test]
fn what_is_no_page_is_as_before() {
    let web = Web::start();
    for path in [
        "/nothing",
        "/index.html",
        "/assets/",
        "/assets/../index.html",
        "/api",
        "/api/v2/x",
    ] {
        let nowhere = web.ask("", path, &["--path-as-is"]);
        assert_eq!(nowhere.status, 404, "{path}");
        assert!(nowhere.detail().contains("openapi.json"));
        let policy = nowhere.header("content-security-policy");
        assert_eq!(policy, Some("default-src 'none'; frame-ancestors 'none'"));
    }
    for path in [
        "/metrics",
        "/api/v1/pools",
        "/api/v1/nothing",
        "/api/v1/openapi.json",
    ] {
        assert_eq!(web.ask("", path, &[]).status, 401, "{path}");
    }
    assert_eq!(web.ask("", "/", &["--data", "x"]).status, 405);
    let rebound = web.ask("", "/", &["-H", "Host: evil.example"]);
    assert_eq!(rebound.status, 400, "{rebound:?}");
}
