//! The client against a real server: FreeRADIUS 3, started on the loopback address for this test alone.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

use aaa::{
    AccessAccept, AccessRequest, AccountingKind, AccountingRecord, Authentic, Client, ClientConfig,
    Credentials, Delivery, FamilyCounters, FamilyTraffic, FamilyUsage, FramedRoute, Nas, NasPort,
    Outcome, Output, RejectReason, Secret, ServerConfig, Slot, TerminateCause, Traffic,
};
use policy::Rate;
use tempfile::TempDir;
use wire::mschapv2::{Exchange, Response};
use wire::radius::chap_response;

/// A FreeRADIUS of our own. It ends with this value.
struct FreeRadius {
    process: Child,
    directory: TempDir,
    authentication: SocketAddr,
    accounting: SocketAddr,
}

impl FreeRadius {
    fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let [authentication, accounting] = own_ports();
        let mut process = Command::new("/usr/sbin/freeradius")
            .arg("-X")
            .arg("-d")
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/raddb"))
            .env("TZ", "UTC")
            .env("RADIUS_DIR", directory.path())
            .env("RADIUS_ADDRESS", authentication.ip().to_string())
            .env("RADIUS_AUTH_PORT", authentication.port().to_string())
            .env("RADIUS_ACCT_PORT", accounting.port().to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("Debian's package freeradius is installed");
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut said = String::new();
        let server = Self {
            process,
            directory,
            authentication,
            accounting,
        };
        for line in lines.by_ref().map_while(Result::ok) {
            if line.contains("Ready to process requests") {
                thread::spawn(move || lines.for_each(drop));
                return server;
            }
            said += &line;
            said.push('\n');
        }
        panic!("FreeRADIUS does not start:\n{said}");
    }

    fn client(&self) -> Driver {
        let nas = Nas {
            identifier: "bng1".into(),
            ipv4: Some([127, 0, 0, 1].into()),
            ipv6: None,
        };
        let mut config = ClientConfig::new(nas);
        config.family_counters = FamilyCounters::Erx;
        config.authentication.push(ServerConfig::new(
            self.authentication,
            Secret::new("testing123"),
        ));
        config.accounting.push(ServerConfig::new(
            self.accounting,
            Secret::new("testing123"),
        ));
        config.max_sockets = 1;
        Driver {
            client: Client::new(config, [9; 32]),
            socket: UdpSocket::bind("127.0.0.1:0").unwrap(),
            began: Instant::now(),
        }
    }

    fn detail(&self) -> String {
        fs::read_to_string(self.directory.path().join("detail")).unwrap_or_default()
    }
}

impl Drop for FreeRadius {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Two ports, other ones each time, of the loopback address that is this process' own: whoever else tests on this machine
/// has another one.
fn own_ports() -> [SocketAddr; 2] {
    static NEXT: AtomicU16 = AtomicU16::new(20_000);
    let [_, a, b, c] = std::process::id().to_be_bytes();
    [(); 2].map(|()| SocketAddr::from(([127, a, b, c], NEXT.fetch_add(1, Ordering::Relaxed))))
}

/// Gives the client a socket and a clock.
struct Driver {
    client: Client,
    socket: UdpSocket,
    began: Instant,
}

impl Driver {
    /// Lets client and server talk until the client has something to say that is no datagram.
    fn run(&mut self) -> Output {
        let mut buffer = [0; 4096];
        loop {
            while let Some(output) = self.client.poll_output() {
                match output {
                    Output::Transmit { socket, to, bytes } => {
                        assert_eq!(socket, 0);
                        self.socket.send_to(&bytes, to).unwrap();
                    }
                    ended => return ended,
                }
            }
            let wait = self
                .client
                .poll_at()
                .unwrap()
                .saturating_sub(self.began.elapsed());
            self.socket
                .set_read_timeout(Some(wait.max(Duration::from_millis(1))))
                .unwrap();
            match self.socket.recv_from(&mut buffer) {
                Ok((length, from)) => {
                    self.client
                        .handle(self.began.elapsed(), 0, from, &buffer[..length])
                }
                Err(_) => self.client.on_timeout(self.began.elapsed()),
            }
        }
    }

    fn authenticate(&mut self, username: &str, credentials: Credentials) -> Outcome {
        let (username, acct_session_id, nas_port) =
            (username.into(), "bng1-0001".into(), nas_port());
        let request = AccessRequest {
            username,
            sent_name: None,
            credentials,
            acct_session_id,
            nas_port,
            state: Vec::new(),
        };
        self.client.authenticate(self.began.elapsed(), 1, request);
        match self.run() {
            Output::Done { outcome, .. } => outcome,
            other => panic!("{other:?}"),
        }
    }

    fn account(&mut self, kind: AccountingKind) -> Slot {
        let slot = self.client.take_slot().unwrap();
        self.account_in(slot, kind, Delivery::UntilRecorded);
        slot
    }

    fn account_in(&mut self, slot: Slot, kind: AccountingKind, delivery: Delivery) {
        let attributes = self.client.accounting_attributes(&record(kind)).unwrap();
        let now = self.began.elapsed();
        self.client.account(now, 1, slot, attributes, delivery);
        let recorded = Output::Accounted {
            token: 1,
            recorded: true,
        };
        assert_eq!(self.run(), recorded);
    }
}

fn nas_port() -> NasPort {
    NasPort {
        port_id: Some("up1/access0:100.7".into()),
        calling_station: Some("02:00:00:00:00:07".into()),
        circuit_id: Some(b"olt1 eth 1/1:100.7".to_vec()),
        remote_id: Some(b"line 7".to_vec()),
        ..NasPort::default()
    }
}

fn record(kind: AccountingKind) -> AccountingRecord {
    AccountingRecord {
        kind,
        username: b"alice".to_vec(),
        acct_session_id: "bng1-0001".into(),
        multi_session_id: None,
        nas_port: nas_port(),
        class: vec![b"gold".to_vec()],
        framed_ip: Some([100, 64, 0, 7].into()),
        framed_ipv6_prefixes: vec!["2001:db8:0:7::/64".parse().unwrap()],
        framed_ipv6_address: Some("2001:db8:0:7::2".parse().unwrap()),
        framed_interface_id: Some(0x0200_0000_0000_0007),
        framed_routes: vec![
            "198.51.100.0/24".parse().unwrap(),
            "2001:db8:77::/48".parse().unwrap(),
        ],
        delegated_prefixes: vec!["2001:db8:100::/56".parse().unwrap()],
        filter_id: Some("gold".into()),
        authentic: Authentic::Radius,
        event_time: 1_700_000_000,
        session_time: Duration::from_secs(61),
        input: Traffic {
            octets: (3 << 32) + 17,
            packets: 5,
        },
        output: Traffic {
            octets: (4 << 32) + 18,
            packets: 6,
        },
        families: Some(FamilyUsage {
            ipv6: FamilyTraffic {
                input: Traffic {
                    octets: (2 << 32) + 7,
                    packets: 3,
                },
                output: Traffic {
                    octets: 9,
                    packets: 1,
                },
            },
            ..FamilyUsage::default()
        }),
    }
}

fn pap(password: &str) -> Credentials {
    Credentials::Pap {
        password: Secret::new(password),
    }
}

fn chap(password: &str) -> Credentials {
    let challenge: Vec<u8> = (0..16).collect();
    let response = chap_response(7, password.as_bytes(), &challenge);
    Credentials::Chap {
        id: 7,
        challenge,
        response,
    }
}

/// The credentials, and the proof of a server that knows the password.
fn mschapv2(username: &str, password: &str) -> (Credentials, [u8; 20]) {
    let (challenge, peer_challenge) = ([3; 16], [4; 16]);
    let exchange = Exchange {
        challenge,
        peer_challenge,
        username: username.as_bytes(),
    };
    let nt_response = exchange.nt_response(password.as_bytes());
    let proof = exchange.authenticator_response(password.as_bytes(), &nt_response);
    let credentials = Credentials::MsChapV2 {
        id: 7,
        challenge,
        response: Response {
            peer_challenge,
            nt_response,
        },
    };
    (credentials, proof)
}

fn alice() -> AccessAccept {
    AccessAccept {
        framed_ip: Some([100, 64, 0, 7].into()),
        framed_ipv6_prefixes: vec!["2001:db8:0:7::/64".parse().unwrap()],
        framed_routes: ["192.0.2.0/29", "2001:db8:77::/48"]
            .map(|net| FramedRoute {
                net: net.parse().unwrap(),
                metric: Some(1),
            })
            .into(),
        framed_interface_id: None,
        filter_id: None,
        framed_pool: Some("homes".into()),
        framed_ipv6_pool: Some("homes6".into()),
        class: vec![b"gold".to_vec(), b"second".to_vec()],
        session_timeout: Some(Duration::from_secs(86_400)),
        idle_timeout: Some(Duration::from_secs(600)),
        acct_interim: Some(Duration::from_secs(300)),
        framed_mtu: Some(1492),
        reply_message: b"Hello, Alice".to_vec(),
        ..AccessAccept::default()
    }
}

#[test]
fn freeradius_sends_attributes_of_vendors_and_they_become_settings() {
    let server = FreeRadius::start();
    let mut client = server.client();
    let dns = ["2001:db8::54", "2001:db8::53", "192.0.2.53"];
    let not_enforced = ["ERX-Service-Activate", "Tunnel-Type"];
    let expected = AccessAccept {
        rate_up: Rate::new(5_000),
        rate_down: Rate::new(20_000),
        dns: dns.map(|address| address.parse().unwrap()).into(),
        filter_id: Some("gold".into()),
        framed_pool: Some("homes".into()),
        framed_routes: vec!["192.0.2.0/29".parse().unwrap()],
        not_enforced: not_enforced.map(str::to_owned).into(),
        unknown: vec!["Attr-26.24757".into()], // WiMAX
        ..AccessAccept::default()
    };
    assert_eq!(
        client.authenticate("bob", pap("12345")),
        Outcome::Accept(Box::new(expected))
    );
}

/// The server also allows an encryption that nobody asks for (MS-MPPE-Encryption-Policy): that is nothing to be named.
#[test]
fn freeradius_proves_itself_by_mschapv2() {
    let server = FreeRadius::start();
    let mut client = server.client();
    let (credentials, proof) = mschapv2("alice", "wonderland");
    let expected = AccessAccept {
        mschapv2_proof: Some(proof),
        ..alice()
    };
    assert_eq!(
        client.authenticate("alice", credentials),
        Outcome::Accept(Box::new(expected))
    );
    let (wrong, _) = mschapv2("alice", "looking-glass");
    let Outcome::Reject(reject) = client.authenticate("alice", wrong) else {
        panic!("alice got in")
    };
    assert_eq!(
        (reject.reason, reject.mschap_error),
        (RejectReason::Refused, Some(691))
    );
}

#[test]
fn freeradius_authenticates_and_accounts() {
    let server = FreeRadius::start();
    let mut client = server.client();

    for credentials in [pap("wonderland"), chap("wonderland")] {
        assert_eq!(
            client.authenticate("alice", credentials),
            Outcome::Accept(Box::new(alice()))
        );
    }
    for credentials in [
        pap("looking-glass"),
        chap("looking-glass"),
        pap(&"x".repeat(100)),
    ] {
        let Outcome::Reject(reject) = client.authenticate("alice", credentials) else {
            panic!("alice got in")
        };
        assert_eq!(reject.reason, RejectReason::Refused);
    }
    let Outcome::Reject(reject) = client.authenticate("mallory", pap("wonderland")) else {
        panic!("mallory got in")
    };
    assert_eq!(reject.reply_message, b"Who are you?");

    client.account(AccountingKind::Start);
    client.account(AccountingKind::Interim);
    client.account(AccountingKind::Stop(TerminateCause::UserRequest));
    let counters = client.client.counters();
    assert_eq!(
        (counters.unauthentic_replies, counters.unexpected_replies),
        (0, 0)
    );
    assert_eq!(
        (counters.accepts, counters.rejects, counters.recorded),
        (2, 4, 3)
    );

    let detail = server.detail();
    let records: Vec<&str> = detail.split_terminator("\n\n").collect();
    let [start, interim, stop] = records[..] else {
        panic!("three records expected:\n{detail}")
    };
    let everywhere = [
        "User-Name = \"alice\"",
        "Acct-Session-Id = \"bng1-0001\"",
        "NAS-Identifier = \"bng1\"",
        "NAS-IP-Address = 127.0.0.1",
        "NAS-Port-Id = \"up1/access0:100.7\"",
        "NAS-Port-Type = PPPoEoQinQ",
        "Calling-Station-Id = \"02:00:00:00:00:07\"",
        "ADSL-Agent-Circuit-Id = 0x",
        "Framed-IP-Address = 100.64.0.7",
        "Framed-IPv6-Prefix = 2001:db8:0:7::/64",
        "Framed-IPv6-Address = 2001:db8:0:7::2",
        "Framed-Interface-Id = 200:0:0:7",
        "Framed-Route = \"198.51.100.0/24 0.0.0.0 1\"",
        "Framed-IPv6-Route = \"2001:db8:77::/48 :: 1\"",
        "Delegated-IPv6-Prefix = 2001:db8:100::/56",
        "Filter-Id = \"gold\"",
        "Class = 0x676f6c64",
        "Event-Timestamp = \"Nov 14 2023",
    ];
    for record in [start, interim, stop] {
        for attribute in everywhere {
            assert!(record.contains(attribute), "{attribute}:\n{record}");
        }
    }
    let usage = [
        "Acct-Session-Time = 61",
        "Acct-Input-Octets = 17",
        "Acct-Input-Gigawords = 3",
        "Acct-Input-Packets = 5",
        "Acct-Output-Octets = 18",
        "Acct-Output-Gigawords = 4",
        "ERX-IPv6-Acct-Input-Octets = 7",
        "ERX-IPv6-Acct-Input-Gigawords = 2",
        "ERX-IPv6-Acct-Input-Packets = 3",
        "ERX-IPv6-Acct-Output-Octets = 9",
        "ERX-IPv6-Acct-Output-Gigawords = 0",
        "ERX-IPv6-Acct-Output-Packets = 1",
        "Acct-Output-Packets = 6",
    ];
    for attribute in usage {
        assert!(
            !start.contains(attribute) && interim.contains(attribute) && stop.contains(attribute),
            "{detail}"
        );
    }
    assert!(
        start.contains("Acct-Status-Type = Start")
            && interim.contains("Acct-Status-Type = Interim-Update")
    );
    assert!(
        stop.contains("Acct-Status-Type = Stop")
            && stop.contains("Acct-Terminate-Cause = User-Request")
    );
}

#[test]
fn freeradius_writes_a_record_down_once_that_another_life_of_the_client_sends_again() {
    let server = FreeRadius::start();
    let mut client = server.client();
    let stop = AccountingKind::Stop(TerminateCause::UserRequest);
    let slots = [AccountingKind::Start, stop].map(|kind| client.account(kind));
    // What it knew goes, its port stays: nobody has heard of the answers.
    let Driver { socket, .. } = client;
    let mut client = server.client();
    client.socket = socket;
    for (slot, kind) in slots.into_iter().zip([AccountingKind::Start, stop]) {
        assert!(client.client.claim_slot(slot));
        client.account_in(slot, kind, Delivery::Resumed);
    }
    client.account(stop); // in another slot, it is another record
    let detail = server.detail();
    let count = |what: &str| detail.matches(what).count();
    assert_eq!(count("Acct-Status-Type = Start"), 1, "{detail}");
    assert_eq!(count("Acct-Status-Type = Stop"), 2, "{detail}");
}

/// Both ports of a server are considered dead, because nothing came back; then it is reachable again.
#[test]
fn freeradius_answers_status_server_on_both_ports() {
    let server = FreeRadius::start();
    let mut driver = server.client();
    let mut config = ClientConfig::new(Nas {
        identifier: "bng1".into(),
        ..Nas::default()
    });
    let at = |address| ServerConfig {
        status_interval: Some(Duration::from_secs(10)),
        ..ServerConfig::new(address, Secret::new("testing123"))
    };
    config.authentication.push(at(server.authentication));
    config.max_sockets = 1;
    config.accounting.push(at(server.accounting));
    driver.client = Client::new(config, [9; 32]);
    let client = &mut driver.client;
    let credentials = pap("wonderland");
    let request = AccessRequest {
        username: b"alice".to_vec(),
        sent_name: None,
        credentials,
        acct_session_id: "bng1-0001".into(),
        nas_port: nas_port(),
        state: Vec::new(),
    };
    client.authenticate(Duration::ZERO, 1, request);
    let interim = record(AccountingKind::Interim);
    let attributes = client.accounting_attributes(&interim).unwrap();
    let slot = client.take_slot().unwrap();
    client.account(Duration::ZERO, 2, slot, attributes, Delivery::Once);
    let mut now = Duration::ZERO;
    while client.counters().deaths < 2 {
        now = client.poll_at().unwrap();
        client.on_timeout(now);
    }
    while client.poll_output().is_some() {}
    let mut buffer = [0; 4096];
    while client.servers(now).any(|(_, alive)| !alive) {
        now = client.poll_at().unwrap();
        client.on_timeout(now);
        while let Some(output) = client.poll_output() {
            let Output::Transmit { to, bytes, .. } = output else {
                panic!("{output:?}")
            };
            assert_eq!(bytes[0], 12);
            driver.socket.send_to(&bytes, to).unwrap();
            let timeout = Some(Duration::from_secs(30));
            driver.socket.set_read_timeout(timeout).unwrap();
            let (length, from) = driver.socket.recv_from(&mut buffer).unwrap();
            client.handle(now, 0, from, &buffer[..length]);
        }
    }
    let servers = client.authentication_servers(now);
    let servers: Vec<_> = servers.chain(client.accounting_servers(now)).collect();
    assert!(servers.iter().all(|s| s.probes.answered == 1));
}

#[test]
fn freeradius_does_not_hear_a_client_with_another_secret() {
    let server = FreeRadius::start();
    let mut client = server.client();
    let mut config = ClientConfig::new(Nas {
        identifier: "bng1".into(),
        ..Nas::default()
    });
    let mut stranger = ServerConfig::new(server.authentication, Secret::new("another"));
    (stranger.timeout, stranger.retries) = (Duration::from_millis(200), 1);
    config.authentication.push(stranger);
    client.client = Client::new(config, [9; 32]);
    let outcome = client.authenticate("alice", pap("wonderland"));
    assert_eq!(outcome, Outcome::Unavailable(aaa::Unavailable::NoAnswer));
}
