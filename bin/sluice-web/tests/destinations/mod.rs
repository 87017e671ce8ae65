//! Events that are sent: to Debian's rsyslog, and to receivers in Python.

use super::*;
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// What anything may take: it ends a hang, and is no promise.
const PATIENCE: Duration = Duration::from_secs(60);

/// A receiver that runs, with a folder of its own.
struct Receiver {
    child: Child,
    folder: PathBuf,
    port: String,
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Receiver {
    fn new(command: &mut Command, folder: &Path, port: Option<u16>) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("a receiver");
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = match port {
            Some(port) => port.to_string(),
            None => said.next().expect("it says its port").unwrap(),
        };
        Receiver {
            child,
            folder: folder.to_owned(),
            port,
        }
    }

    /// A Python script with the certificate of this folder.
    fn python(script: &str, folder: &Path, more: &[&Path]) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/peers")
            .join(script);
        let mut python = Command::new("/usr/bin/python3");
        python
            .arg(script)
            .args(["tls.pem", "tls.key"].map(|name| folder.join(name)));
        Receiver::new(python.args(more).arg(folder), folder, None)
    }

    /// Debian's rsyslog, which listens at a port of TCP and of UDP, and writes what it understood.
    fn rsyslog(folder: &Path, port: u16) -> Self {
        let at = folder.display();
        let configuration = format!(
            "module(load=\"imtcp\")\nmodule(load=\"imudp\")\nmodule(load=\"mmpstrucdata\")\n\
             input(type=\"imtcp\" port=\"{port}\" address=\"127.0.0.1\")\n\
             input(type=\"imudp\" port=\"{port}\" address=\"127.0.0.1\")\n\
             action(type=\"mmpstrucdata\")\n\
             template(name=\"got\" type=\"string\" string=\"%syslogseverity-text% %app-name% %msgid% %$!rfc5424-sd% %msg%\\n\")\n\
             action(type=\"omfile\" file=\"{at}/got\" template=\"got\")\n"
        );
        fs::write(folder.join("rsyslog.conf"), configuration).unwrap();
        let mut rsyslog = Command::new("/usr/sbin/rsyslogd");
        rsyslog.arg("-n").arg("-f").arg(folder.join("rsyslog.conf"));
        rsyslog.arg("-i").arg(folder.join("rsyslog.pid"));
        Receiver::new(&mut rsyslog, folder, Some(port))
    }

    fn got(&self) -> Vec<String> {
        let text = fs::read_to_string(self.folder.join("got")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn set(&self, flag: &str) {
        fs::write(self.folder.join(flag), "").unwrap();
    }

    fn unset(&self, flag: &str) {
        fs::remove_file(self.folder.join(flag)).unwrap();
    }
}

fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < PATIENCE, "{what} does not come");
        sleep(Duration::from_millis(50));
    }
}

fn folder(plane: &Plane, name: &str) -> PathBuf {
    let folder = plane.folder.path().join(name);
    fs::create_dir(&folder).unwrap();
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    fs::write(folder.join("tls.pem"), made.cert.pem()).unwrap();
    fs::write(folder.join("tls.key"), made.signing_key.serialize_pem()).unwrap();
    fs::write(folder.join("secret"), "0123456789abcdef").unwrap();
    folder
}

impl Web {
    fn destination(&self, token: &str, name: &str) -> Value {
        let all = self.rows(token, "/api/v1/destinations");
        let rows = all["rows"].as_array().unwrap();
        rows.iter().find(|row| row["name"] == name).unwrap().clone()
    }
}

/// Waits until every destination has begun.
fn begun(web: &Web, token: &str) {
    wait("the begin", || {
        let all = web.rows(token, "/api/v1/destinations");
        all["rows"]
            .as_array()
            .unwrap()
            .iter()
            .all(|row| row["last"].is_u64())
    });
}

/// Numbers in the order in which they came first; a number may come again.
fn numbers(lines: &[String]) -> Vec<u64> {
    let mut seen = Vec::new();
    for line in lines {
        let number = line
            .split_once("number")
            .map_or(line.as_str(), |(_, rest)| rest);
        let digits: String = number
            .chars()
            .skip_while(|c| !c.is_ascii_digit())
            .take_while(char::is_ascii_digit)
            .collect();
        let number = digits.parse().unwrap();
        if !seen.contains(&number) {
            seen.push(number);
        }
    }
    seen
}

#[test]
fn a_webhook_gets_every_event_whatever_dies_and_holds_back_nobody_else() {
    let plane = Plane::start();
    plane.happens(3);
    let (hook, other) = (folder(&plane, "hook"), folder(&plane, "other"));
    let receivers =
        [&hook, &other].map(|at| Receiver::python("webhook.py", at, &[&at.join("secret")]));
    let [first, second] = &receivers;
    let of = |receiver: &Receiver| {
        let (port, at) = (&receiver.port, receiver.folder.display());
        format!(
            "{{to: 'https://localhost:{port}/hook?key=hidden', authority: {at}/tls.pem, secret: {at}/secret}}"
        )
    };
    let all = format!(
        "destinations: {{hook: {}, other: {}}}",
        of(first),
        of(second)
    );
    let mut web = Web::start_of(plane, "info", &all);
    let token = web.token("noc", "view", &[]);
    begun(&web, &token);
    assert_eq!(
        web.destination(&token, "hook")["last"],
        3,
        "it begins with now"
    );

    let last = web.plane.happens(200);
    wait("all", || numbers(&first.got()).len() == 200);
    assert_eq!(numbers(&first.got()), (4..=203).collect::<Vec<_>>());
    wait("the place", || {
        web.destination(&token, "hook")["last"] == last
    });
    let row = web.destination(&token, "hook");
    assert_eq!(
        (&row["behind_seconds"], &row["error"], &row["sent"]),
        (&json!(0), &json!(""), &json!(200))
    );
    assert!(!row.to_string().contains("hidden"), "{row}");

    // one refuses, then hangs, and its program dies meanwhile
    first.set("refuse");
    web.plane.happens(10);
    wait("the other", || numbers(&second.got()).len() == 210);
    wait("a failure", || {
        web.destination(&token, "hook")["failures"].as_u64() > Some(1)
    });
    wait("a second", || {
        web.destination(&token, "hook")["behind_seconds"].as_u64() > Some(0)
    });
    let row = web.destination(&token, "hook");
    assert_eq!(
        (&row["last"], &row["sent"]),
        (&json!(last), &json!(200)),
        "{row}"
    );
    assert!(row["error"].as_str().unwrap().contains("500"), "{row}");
    let metrics = web.ask(&token, "/metrics", &[]).body;
    assert!(
        metrics.contains("sluice_destinations_behind_seconds{name=\"other\"} 0\n"),
        "{metrics}"
    );
    assert!(
        metrics.contains("sluice_destinations_sent_total{name=\"other\"} 210\n"),
        "{metrics}"
    );
    first.set("hang");
    first.unset("refuse");
    web.die();
    web.plane.happens(10);
    wait("the other", || numbers(&second.got()).len() == 220);
    web.die();
    first.unset("hang");
    wait("all", || numbers(&first.got()).len() == 220);
    let log = web.log().join("\n");
    assert!(
        !log.contains("hidden") && !log.contains("0123456789abcdef"),
        "{log}"
    );
}

#[test]
fn what_left_the_history_meanwhile_is_told() {
    let plane = Plane::start();
    let hook = folder(&plane, "hook");
    let receiver = Receiver::python("webhook.py", &hook, &[&hook.join("secret")]);
    receiver.set("refuse");
    let (port, at) = (&receiver.port, hook.display());
    let all = format!(
        "destinations: {{hook: {{to: 'https://localhost:{port}/', authority: {at}/tls.pem, secret: {at}/secret, kinds: [alarm-raised]}}}}"
    );
    let web = Web::start_of(plane, "info", &all);
    let token = web.token("noc", "view", &[]);
    begun(&web, &token);
    web.plane.happens(100);
    wait("a failure", || {
        web.destination(&token, "hook")["failures"].as_u64() > Some(0)
    });
    web.plane.forgets(50);
    receiver.unset("refuse");
    wait("the rest", || {
        web.destination(&token, "hook")["last"] == 100
    });
    let alarms: Vec<_> = (51..=100).filter(|number| number % 4 == 0).collect();
    assert_eq!(
        numbers(&receiver.got()),
        alarms,
        "of the kinds that it wants"
    );
    let lost = web.destination(&token, "hook")["lost"].as_u64().unwrap();
    assert!((47..=50).contains(&lost), "{lost}");
    let log = web.log().join("\n");
    assert!(
        log.contains("left the history before they could be sent"),
        "{log}"
    );
}

#[test]
fn rsyslog_reads_the_fields_and_misses_none() {
    let plane = Plane::start();
    let (tcp, udp) = (folder(&plane, "tcp"), folder(&plane, "udp"));
    let free = || {
        std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port()
    };
    let ports = [free(), free()];
    let mut by_tcp = Receiver::rsyslog(&tcp, ports[0]);
    let by_udp = Receiver::rsyslog(&udp, ports[1]);
    let all = format!(
        "destinations: {{tcp: {{to: 'syslog+tcp://127.0.0.1:{}'}}, udp: {{to: 'syslog+udp://127.0.0.1:{}'}}}}",
        ports[0], ports[1]
    );
    let mut web = Web::start_of(plane, "info", &all);
    let token = web.token("noc", "view", &[]);
    begun(&web, &token);
    wait("rsyslog", || {
        std::net::TcpStream::connect(("127.0.0.1", ports[1])).is_ok()
    });
    web.plane.happens(4);
    for receiver in [&by_tcp, &by_udp] {
        wait("four", || receiver.got().len() == 4);
        let got = receiver.got();
        let (before, rest) = got[3].split_once('{').unwrap();
        assert_eq!(before, "alert sluice alarm-raised ", "{got:?}");
        let (data, message) = rest.rsplit_once('}').unwrap();
        let data: Value = serde_json::from_str(&format!("{{{data}}}")).unwrap();
        let fields = &data["sluice@32473"];
        for (name, value) in [
            ("number", "4"),
            ("alarm", "pool-full"),
            ("severity", "critical"),
            ("text", "event \"4\" ] ü"),
        ] {
            assert_eq!(fields[name], value, "{fields}");
        }
        assert!(
            message.ends_with("alarm raised pool-full homes: event \"4\" ] ü"),
            "{message}"
        );
        assert!(got[0].starts_with("info sluice online "), "{got:?}");
    }

    // the program dies, then the server, and events happen meanwhile
    web.die();
    web.plane.happens(50);
    wait("all", || numbers(&by_tcp.got()).len() == 54);
    by_tcp.child.kill().unwrap();
    by_tcp.child.wait().unwrap();
    web.plane.happens(50);
    wait("a failure", || {
        web.destination(&token, "tcp")["failures"].as_u64() > Some(0)
    });
    fs::remove_file(tcp.join("rsyslog.pid")).unwrap();
    let by_tcp = Receiver::rsyslog(&tcp, ports[0]);
    wait("all", || numbers(&by_tcp.got()).len() == 104);
    wait("the others", || numbers(&by_udp.got()).len() == 104);
    wait("the end of doubt", || {
        web.destination(&token, "tcp")["last"] == 104
    });
}

#[test]
fn syslog_with_tls_comes_from_whom_the_authority_has_signed() {
    let plane = Plane::start();
    let (right, wrong) = (folder(&plane, "right"), folder(&plane, "wrong"));
    let receiver = Receiver::python("syslog_tls.py", &right, &[]);
    let of = |at: &Path| {
        format!(
            "{{to: 'syslog+tls://localhost:{}', authority: {}/tls.pem}}",
            receiver.port,
            at.display()
        )
    };
    let web = Web::start_of(
        plane,
        "info",
        &format!(
            "destinations: {{right: {}, wrong: {}}}",
            of(&right),
            of(&wrong)
        ),
    );
    let token = web.token("noc", "view", &[]);
    begun(&web, &token);
    web.plane.happens(8);
    wait("a refusal", || {
        web.destination(&token, "wrong")["error"]
            .as_str()
            .is_some_and(|why| why.contains("no TLS"))
    });
    wait("all", || numbers(&receiver.got()).len() == 8);
    assert_eq!(web.destination(&token, "wrong")["sent"], 0);
}
