//! Clients that need a certificate, as curl has one.

use super::*;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

/// Writes an authority (`NAME-ca.pem`).
fn authority(folder: &Path, name: &str) -> Issuer<'static, KeyPair> {
    let key = KeyPair::generate().unwrap();
    let mut authority = CertificateParams::new([]).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let text = authority.self_signed(&key).unwrap().pem();
    std::fs::write(folder.join(format!("{name}-ca.pem")), text).unwrap();
    Issuer::new(authority, key)
}

/// Writes a certificate and key of a client (`NAME.pem`, `NAME.key`) that this authority has signed, to expire in this year.
fn client(folder: &Path, name: &str, issuer: &Issuer<'static, KeyPair>, expires: i32) {
    let write = |end: &str, text: String| std::fs::write(folder.join(format!("{name}{end}")), text);
    let key = KeyPair::generate().unwrap();
    let mut own = CertificateParams::new([format!("{name}.example.net")]).unwrap();
    own.not_before = rcgen::date_time_ymd(2020, 1, 1);
    own.not_after = rcgen::date_time_ymd(expires, 1, 1);
    write(".pem", own.signed_by(&key, issuer).unwrap().pem()).unwrap();
    write(".key", key.serialize_pem()).unwrap();
}

#[test]
fn clients_without_a_certificate_of_the_authority_do_not_get_in() {
    let plane = Plane::start();
    let folder = plane.folder.path().to_owned();
    let noc = authority(&folder, "noc");
    client(&folder, "noc", &noc, 4000);
    client(&folder, "expired", &noc, 2021);
    client(&folder, "stranger", &authority(&folder, "stranger"), 4000);
    let clients = format!("client-authority: {}", folder.join("noc-ca.pem").display());
    let web = Web::start_of(plane, "info", &clients);
    let token = web.token("noc", "view", &[]);
    let own = |name: &str| {
        let of = |end: &str| folder.join(format!("{name}{end}")).display().to_string();
        [
            String::from("--cert"),
            of(".pem"),
            "--key".into(),
            of(".key"),
        ]
    };
    let ask = |token: &str, more: &[String]| {
        let more: Vec<&str> = more.iter().map(String::as_str).collect();
        let done = web
            .curl(token, "/api/v1/ports", &more)
            .wait_with_output()
            .unwrap();
        String::from_utf8(done.stdout).unwrap()
    };
    assert!(ask(&token, &own("noc")).contains(" 200"));
    // a certificate is no right
    assert!(ask("", &own("noc")).contains(" 401"));
    for more in [&[][..], &own("stranger"), &own("expired")] {
        assert_eq!(ask(&token, more), "", "{more:?}");
    }
    // gNMI has the same door
    let gnmi = |more: &[String]| {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--http2", "--cacert"])
            .arg(folder.join("web/certificate.pem"))
            .args(more)
            .arg(format!("https://{}/", web.gnmi));
        curl.stdout(Stdio::null()).status().unwrap().success()
    };
    assert!(gnmi(&own("noc")));
    assert!(!gnmi(&own("stranger")));
    assert!(!gnmi(&own("expired")));
    assert!(!gnmi(&[]));
}
