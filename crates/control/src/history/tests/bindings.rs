//! Delegated prefixes, routes and IPv6 addresses of sessions.

use super::*;
use crate::store::log::{emit_frame, u64_at};
use ipnet::IpNet;

const ROUTES: [(Role, &str); 3] = [
    (Role::Host, "2001:db8:5::1"),
    (Role::Delegated, "2001:db8:7700::/56"),
    (Role::Route, "203.0.113.0/29"),
];

/// As many bindings as a session may have, of the longest form.
fn most() -> Bindings {
    let routes = (0..62).map(|n| {
        let network = IpNet::new([0x2001, 0xdb8, 0x9000, n, 1, 1, 1, 0].into(), 127);
        Binding::new(Role::Route, network.unwrap())
    });
    let host = Binding::host([100, 64, 0, 1].into());
    let link = Binding::link("2001:db8:0:1::/64".parse().unwrap());
    let all = Bindings::new([host, link].into_iter().chain(routes)).unwrap();
    assert_eq!(all.iter().count(), policy::MOST_BINDINGS);
    all
}

#[test]
fn an_event_has_every_binding_and_begins_as_earlier_versions_write_it() {
    let own = addresses(Some(1), Some(1));
    let all = with(own.clone(), &ROUTES);
    let pairs = [
        (online(7, 1, own.clone()), online(7, 1, all.clone())),
        (ended(7, 1, 3, own.clone()), ended(7, 1, 3, all.clone())),
        (counted(7, 1, own.clone()), counted(7, 1, all.clone())),
        (
            changed(7, 1, own.clone(), own),
            changed(7, 1, all.clone(), most()),
        ),
    ];
    for (before, event) in pairs {
        let (earlier, block) = (block(&[before]), block(&[event.clone(), event.clone()]));
        assert_eq!(block[2..earlier.len()], earlier[2..]);
        assert_eq!(events(&block).collect::<Vec<_>>(), [event.clone(), event]);
    }
    let most = block(&[changed(7, 1, most(), most())]);
    assert!(most.len() < 2500, "{}", most.len());
}

#[test]
fn further_bindings_that_cannot_be_cost_nothing_else() {
    let event = online(7, 1, addresses(Some(1), None));
    let mut block = block(core::slice::from_ref(&event));
    let no_host = [(Role::Host, prefix("10.0.0.0/8"))];
    let none: [(Role, IpNet); 0] = [];
    block.extend(postcard::to_stdvec(&(&no_host[..], &none[..])).unwrap());
    let length = block.len() as u16 - 2;
    block[..2].copy_from_slice(&length.to_le_bytes());
    assert_eq!(events(&block).collect::<Vec<_>>(), [event]);
}

#[test]
fn an_address_is_found_in_prefixes_of_every_length_and_so_is_what_a_prefix_contains() {
    let directory = tempfile::tempdir().unwrap();
    let mut database = open(directory.path());
    for n in 0..120u8 {
        let network = format!("10.{n}.0.0/{}", 17 + n % 12);
        let delegated = format!("2001:dba:{n:x}00::/{}", 48 + n % 12);
        let others = [(Role::Route, &*network), (Role::Delegated, &*delegated)];
        let has = with(addresses(Some(n), Some(n)), &others);
        add(
            &mut database,
            u64::from(n) + 1,
            &block(&[online(n.into(), n.into(), has)]),
        );
    }
    drop(database);
    let database = open(directory.path());
    let reader = database.reader();
    assert!(count_segments(&reader) > 12);
    for n in 0..120u32 {
        let inside = [
            format!("100.64.0.{n}"),
            format!("10.{n}.0.9"),
            format!("2001:dba:{n:x}00::7"),
            format!("2001:dba:{n:x}00::/64"),
            format!("2001:db8:0:{n}::7"),
        ];
        for asked in &inside {
            assert_eq!(times(&reader, asked), [n], "{asked}");
        }
        assert_eq!(times(&reader, &format!("10.{n}.128.9")), [0; 0]);
    }
    assert_eq!(times(&reader, "10.0.0.0/12").len(), 16);
    assert_eq!(times(&reader, "2001:dba::/32").len(), 120);
}

/// Leaves the segments of an earlier version, which had one of blocks 1 to 3 and one of blocks 4 to 6.
pub(super) fn leave_segments(directory: &Path) {
    let kept = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/history-1");
    for entry in fs::read_dir(kept).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, directory.join(path.file_name().unwrap())).unwrap();
    }
}

#[test]
fn segments_of_the_version_before_are_taken_over() {
    let directory = tempfile::tempdir().unwrap();
    leave_segments(directory.path());
    let both = || addresses(Some(1), Some(1));
    let had = |reader: &Reader, text: &str, at| {
        let held = reader.who(prefix(text), at, 1, Vec::new(), 1000);
        let held = held.into_iter().filter(|held| held.at(at));
        held.map(|held| (held.session, held.bindings))
            .collect::<Vec<_>>()
    };
    let mut database = open(directory.path());
    assert_eq!(database.last(), 6);
    // the latest one at once, the others by and by
    assert_eq!(times(&database.reader(), ""), [200, 210, 220]);
    let now = with(both(), &ROUTES);
    add(&mut database, 7, &block(&[ended(300, 3, 210, now.clone())]));
    while database.has_more_to_tend() {
        database.tend(300).unwrap();
    }
    for _ in 0..2 {
        let reader = database.reader();
        assert_eq!(times(&reader, ""), [100, 110, 120, 200, 210, 220, 300]);
        assert_eq!(times(&reader, "100.64.0.1"), [100, 110, 200, 210, 300]);
        assert_eq!(times(&reader, "up1/access0.100.2"), [120, 220]);
        assert_eq!(had(&reader, "2001:db8:0:1::7", 150), [(1, both())]);
        assert_eq!(had(&reader, "203.0.113.3", 250), [(3, now.clone())]);
        drop(database);
        database = open(directory.path());
        assert_eq!(
            (database.last(), database.reader().status().damaged),
            (7, 0)
        );
    }
}

#[test]
fn an_earlier_version_goes_on_with_the_numbers_and_what_it_writes_is_taken_over() {
    let directory = tempfile::tempdir().unwrap();
    let mut database = open(directory.path());
    for n in 1..=20 {
        add(
            &mut database,
            n,
            &block(&[online(n as u32, n, addresses(Some(n as u8), None))]),
        );
    }
    drop(database);
    // An earlier version adds a block to the segment that it finds.
    let segment = directory.path().join(format!("{:020}.events", 21));
    let mut octets = fs::read(&segment).unwrap();
    let salt = u64_at(&octets, 12);
    let event = online(21, 21, addresses(Some(21), None));
    emit_frame(salt, 21, &block(&[event]), &mut octets);
    fs::write(&segment, octets).unwrap();
    let database = open(directory.path());
    assert_eq!(database.last(), 21);
    assert_eq!(
        times(&database.reader(), ""),
        (1..=21).collect::<Vec<u32>>()
    );
    assert!(!segment.exists());
}

#[test]
fn a_damaged_segment_of_an_earlier_version_costs_its_own_events() {
    let directory = tempfile::tempdir().unwrap();
    leave_segments(directory.path());
    let first = directory.path().join(format!("{:020}.events", 1));
    let mut octets = fs::read(&first).unwrap();
    octets[60] ^= 1; // in its first block
    fs::write(&first, octets).unwrap();
    let mut database = open(directory.path());
    while database.has_more_to_tend() {
        database.tend(300).unwrap();
    }
    assert_eq!(times(&database.reader(), ""), [200, 210, 220]);
    assert_eq!(database.reader().status().damaged, 1);
    assert!(
        first.with_extension("damaged").exists(),
        "for whoever wants to examine it"
    );
}
