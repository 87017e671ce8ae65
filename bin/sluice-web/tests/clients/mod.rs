//! Clients that need a certificate, as curl has one.

use super::*;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

/// Writes an authority (`NAME-ca.pem`), and a certificate and key of a client that it has signed (`NAME.pem`, `NAME.key`).
fn client(folder: &Path, name: &str) {
    let write = |end: &str, text: String| std::fs::write(folder.join(format!("{name}{end}")), text);
    let key = KeyPair::generate().unwrap();
    let mut authority = CertificateParams::new([]).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    write("-ca.pem", authority.self_signed(&key).unwrap().pem()).unwrap();
    let issuer = Issuer::new(authority, key);
    let key = KeyPair::generate().unwrap();
    let own = CertificateParams::new([format!("{name}.example.net")]).unwrap();
    write(".pem", own.signed_by(&key, &issuer).unwrap().pem()).unwrap();
    write(".key", key.serialize_pem()).unwrap();
}

#[test]
fn clients_without_a_certificate_of_the_authority_do_not_get_in() {
    let plane = Plane::start();
    let folder = plane.folder.path().to_owned();
    client(&folder, "noc");
    client(&folder, "stranger");
    let authority = folder.join("noc-ca.pem");
    let clients = format!("client-authority: {}", authority.display());
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
    for more in [&[][..], &own("stranger")] {
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
    assert!(!gnmi(&[]));
}
