//! Stores that releases have written are read by every later one: see `fixtures/README.md`.

use crate::dynamic::{ACK, change, user};
use crate::history::look;
use crate::world::{Choice, World};
use control::store::{Live, Record, Store, check, export, import};
use control::{ControlPlane, Dictionary, Input, Now, Output, Restored};
use core::time::Duration;
use northbound::{PAGE, Request, Response, Session, Traffic};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use wire::pppoe::AccessLine;
use wire::radius::{Kind, Value};

/// The folder of what this release writes.
const PRESENT: &str = "store-2-9";
/// The folders of releases whose records have the subscribers' handles.
const WITH_HANDLES: [&str; 4] = ["store-2-6", "store-2-7", "store-2-8", PRESENT];

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

fn kept() -> Vec<PathBuf> {
    let entries = fs::read_dir(fixtures()).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let is_store = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with("store-"))
    };
    paths.filter(is_store).collect()
}

#[test]
fn stores_of_every_release_are_read() {
    if std::env::var_os("SLUICE_WRITE_FIXTURES").is_some() {
        write(&fixtures().join(PRESENT));
    }
    let kept = kept();
    assert!(kept.contains(&fixtures().join(PRESENT)), "{kept:?}");
    for folder in kept {
        let directory = tempfile::tempdir().unwrap();
        fs::copy(folder.join("log"), directory.path().join("sessions.log")).unwrap();
        let (_, opened) = Store::open(directory.path()).unwrap();
        assert!(
            opened.cut > 0,
            "{}: it ends in half a batch",
            folder.display()
        );
        assert_same(&folder, "records", &records(&opened.live));
        let has_handles = WITH_HANDLES.iter().any(|name| folder.ends_with(name));
        assert_same(&folder, "sessions", &sessions(opened.live, has_handles));
    }
}

#[test]
fn backups_of_every_release_are_read() {
    for folder in kept() {
        let directory = tempfile::tempdir().unwrap();
        import(&folder.join("backup"), directory.path()).unwrap();
        let (_, opened) = Store::open(directory.path()).unwrap();
        assert_same(&folder, "records", &records(&opened.live));
    }
}

fn assert_same(folder: &Path, name: &str, found: &str) {
    let path = folder.join(name);
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        found,
        "{}",
        path.display()
    );
}

fn records(live: &Live) -> String {
    live.iter().fold(String::new(), |mut text, (key, value)| {
        for octets in [key, value] {
            octets
                .iter()
                .for_each(|octet| write!(text, "{octet:02x}").unwrap());
            text.push(if octets == value { '\n' } else { ' ' });
        }
        text
    })
}

/// A control plane with a store, and its clock.
fn plane_of(live: Live) -> (ControlPlane, Now) {
    let start = "node-id: cp1\naddress: 2001:db8::1\n";
    let document = "network-instances: {default: {gateway: [100.64.0.1]}}
user-planes:
  up1:
    address: 2001:db8::2
    management: /run/up1.sock
    ports: {access0: {role: access, device: a, segments: {all: {access-profile: pppoe}}}}
access-profiles: {pppoe: {server-group: radius}}
ipv4-pools: {homes: {prefix: 100.64.0.0/16}}
ipv6-pools: {homes: {prefix: '2001:db8:100::/48'}}
aaa:
  servers: {one: {address: 192.0.2.9, secret-key: testing123}}
  server-groups: {radius: {servers: [one]}}
";
    let now = Now {
        at: Duration::from_secs(1),
        unix: 2_000_000_000,
    };
    let start = config::parse(start, "cp.yaml").unwrap();
    let restored = Restored::read(live, 1, "boot").unwrap();
    let configuration = crate::world::checked(document).configuration;
    let plane = ControlPlane::new(
        &start,
        Dictionary::shipped(),
        configuration,
        restored,
        [1; 32],
        now,
    );
    (plane.unwrap(), now)
}

/// User planes have these tunnels, and go on sending in them.
#[test]
fn sessions_of_earlier_releases_keep_their_teids() {
    let mut found = 0;
    for folder in kept() {
        let directory = tempfile::tempdir().unwrap();
        fs::copy(folder.join("log"), directory.path().join("sessions.log")).unwrap();
        let (_, opened) = Store::open(directory.path()).unwrap();
        let (plane, _) = plane_of(opened.live);
        for held in plane.held() {
            // the group's number and one, above 20 bits of the session's index
            assert_eq!(
                held.teid,
                1 << 20 | held.seid.index(),
                "{}",
                folder.display()
            );
            found += 1;
        }
    }
    assert!(found > 10);
}

/// What a control plane makes of it: its sessions, and as many accounting records as are stored.
fn sessions(live: Live, has_handles: bool) -> String {
    let owed = live
        .iter()
        .filter(|(key, _)| key.starts_with(b"accounting/"));
    let owed = owed.count();
    let (mut plane, now) = plane_of(live);
    let held = plane.ledger().held("accounting record");
    assert_eq!(held, owed as u64);
    let call = Request::ListSessions {
        from: 0,
        most: PAGE,
        filter: Box::default(),
    };
    plane.handle(now, Input::Call { ticket: 1, call });
    let sessions = std::iter::from_fn(|| plane.poll_output()).find_map(|output| match output {
        Output::Answer {
            answer: Ok(Response::Sessions { sessions, .. }),
            ..
        } => Some(sessions),
        _ => None,
    });
    let mut sessions = sessions.unwrap();
    if !has_handles {
        // each was its own subscriber, with its index as handle, which is the lowest 20 bits of its SEID
        let index = |s: &Session| u64::from_str_radix(&s.id, 16).unwrap() as u32 & 0xf_ffff;
        let handle = |s: &Session| s.subscriber_handle == Some(index(s));
        assert!(sessions.iter().all(handle), "{sessions:#?}");
    }
    sessions.sort_by(|a, b| a.id.cmp(&b.id));
    sessions.iter().map(line).collect()
}

fn line(s: &Session) -> String {
    let traffic = s.traffic.unwrap_or_default();
    // before version 9 no address family of what was counted was known
    let ipv6 = s.ipv6_traffic.unwrap_or_default();
    let families = match ipv6 == Traffic::default() {
        true => String::new(),
        false => format!(
            " of it IPv6 up {} down {}",
            ipv6.up_octets, ipv6.down_octets
        ),
    };
    let routes = match s.routes.is_empty() {
        true => String::new(),
        false => format!(" routes {}", s.routes.join(" ")),
    };
    format!(
        "{} {:?} {} {}/{} {:?}.{:?} {} pppoe {} {} {:?} {:?} up {} {} down {} {}{families}{routes}\n",
        s.id,
        s.state(),
        s.user,
        s.user_plane,
        s.port,
        s.s_tag,
        s.c_tag,
        s.mac,
        s.pppoe_session_id,
        s.network_instance,
        s.ipv4,
        s.ipv6_prefix,
        traffic.up_packets,
        traffic.up_octets,
        traffic.down_packets,
        traffic.down_octets
    )
}

/// The second home is on a line of which its access node says a rate.
fn describe_line(world: &mut World) {
    let mut config = world.homes[1].config().clone();
    let line = AccessLine {
        circuit_id: Some(b"olt1 1/2/3"),
        remote_id: None,
        others: vec![(0x81, &[0, 0, 0x27, 0x10])],
    };
    line.emit(&mut config.access_line);
    world.homes[1] = cpe::Home::new(config, 1);
}

/// A world whose store gets records of every kind.
fn world() -> World {
    let mut world = World::new(4, Choice::radius());
    world
        .configure(&[
            "set aaa server-groups radius templates calling-station-id {circuit-id}",
            "set aaa dynamic-authorization clients one address 192.0.2.9",
            "set aaa dynamic-authorization clients one secret-key coa-secret",
            "set access-profiles pppoe fallback last-policy",
            "set ipv4-pools walled prefix 100.127.0.0/24",
            "set ipv6-pools lans prefix 2001:db8:4000::/36",
            "set ipv6-pools lans prefix-length 56",
        ])
        .unwrap();
    world
}

/// Attributes that say something for each part of a session's record.
fn everything() -> Vec<(Kind, Value)> {
    let prefix = |text: &str| Value::Ipv6Prefix(text.parse().unwrap());
    vec![
        (Kind::FILTER_ID, "home".into()),
        (Kind::CLASS, Value::Octets(vec![1, 2])),
        (Kind::SESSION_TIMEOUT, 86_400.into()),
        (Kind::TERMINATION_ACTION, 1.into()),
        (Kind::STATE, Value::Octets(vec![7; 8])),
        (Kind::PORT_LIMIT, 2.into()),
        (Kind::FRAMED_ROUTE, "203.0.113.0/29 0.0.0.0 7".into()),
        (Kind::FRAMED_IPV6_PREFIX, prefix("2001:db8:9:1::/64")),
        (Kind::FRAMED_IPV6_PREFIX, prefix("2001:db8:9:2::/64")),
        (
            Kind::FRAMED_IPV6_ADDRESS,
            Value::Ipv6("2001:db8:9:1::7".parse().unwrap()),
        ),
        (Kind::DELEGATED_IPV6_PREFIX, prefix("2001:db8:9900::/48")),
        (Kind::FRAMED_IP_NETMASK, Value::Ipv4([255; 4].into())),
    ]
}

/// Writes the files of this release, unless they are there.
fn write(folder: &Path) {
    if folder.exists() {
        return;
    }
    let mut world = world();
    describe_line(&mut world);
    for n in 0..3 {
        world.radius.accept = vec![(Kind::ACCT_INTERIM_INTERVAL, 60.into())];
        if n == 2 {
            world.radius.accept.extend(everything());
        }
        world.dial(n);
        world.run(Duration::from_secs(2));
    }
    let pools = [
        (Kind::FRAMED_POOL, "walled".into()),
        (Kind::DELEGATED_IPV6_PREFIX_POOL, "lans".into()),
    ];
    let asked = [&[user(2)][..], &pools].concat();
    assert_eq!(change(&mut world, &asked), ACK);
    look(&mut world, 70);
    // One more comes and one leaves while no server takes a record, and one cannot be taken off its user plane.
    world.radius.full = true;
    world.dial(3);
    world.hang_up(0);
    world.run(Duration::from_secs(10));
    let id = world.sessions()[0].id.clone();
    world.cut = true;
    world
        .call(Request::ClearSession {
            id,
            by: "root".into(),
        })
        .unwrap();
    world.run(Duration::from_secs(15));
    let directory = tempfile::tempdir().unwrap();
    let (mut store, _) = Store::open(directory.path()).unwrap();
    let mut batch = |records: &[Record]| {
        records.iter().for_each(|record| store.append(record));
        store.sync().unwrap();
    };
    for (key, value) in &world.store {
        batch(&[Record::put(&key[..], &b"an earlier value"[..])]);
        batch(&[Record::put(&key[..], &value[..])]);
    }
    let mut keys = world.store.keys().rev();
    let gone = keys.find(|key| key.starts_with(b"session/")).unwrap();
    batch(&[Record::delete(&gone[..])]);
    batch(&[Record::put("never", "acknowledged")]);
    fs::create_dir_all(folder).unwrap();
    let whole = fs::read(directory.path().join("sessions.log")).unwrap();
    fs::write(folder.join("log"), &whole[..whole.len() - 7]).unwrap();
    fs::copy(folder.join("log"), directory.path().join("sessions.log")).unwrap();
    export(directory.path(), &folder.join("backup")).unwrap();
    let live = check(&folder.join("backup")).unwrap().live;
    fs::write(folder.join("records"), records(&live)).unwrap();
    fs::write(folder.join("sessions"), sessions(live, true)).unwrap();
}
