//! Who had an address, compared with a list of intervals.

use super::*;

/// What the property test does next.
#[derive(Clone, Debug)]
enum Op {
    /// A session of this number takes an address, a prefix of the link and further bindings of these numbers, if they are free.
    Online(u8, u8, Option<u8>, Option<u8>),
    /// It takes another prefix of the link, and other further bindings.
    Change(u8, Option<u8>, Option<u8>),
    Ended(u8),
    /// What happened gets to the history.
    Keep,
    /// The control plane dies, and of what was written last so much in a hundred is on the disk.
    Crash(u8),
    Pass(u8),
}

fn op() -> impl Strategy<Value = Op> {
    use proptest::option::of;
    prop_oneof![
        5 => (0..6u8, 0..4u8, of(0..3u8), of(0..3u8)).prop_map(|(s, a, p, r)| Op::Online(s, a, p, r)),
        2 => (0..6u8, of(0..3u8), of(0..3u8)).prop_map(|(s, p, r)| Op::Change(s, p, r)),
        4 => (0..6u8).prop_map(Op::Ended),
        3 => Just(Op::Keep),
        1 => (0..100u8).prop_map(Op::Crash),
        4 => (0..3u8).prop_map(Op::Pass),
    ]
}

/// Further bindings. Those of one session may lie within each other.
const OTHERS: [&[(Role, &str)]; 3] = [
    &[(Role::Route, "10.0.0.0/24"), (Role::Route, "10.0.0.64/28")],
    &[(Role::Route, "10.0.1.0/25"), (Role::Host, "2001:db8:5::1")],
    &[
        (Role::Delegated, "2001:db8:ff00::/56"),
        (Role::Route, "10.0.2.0/23"),
    ],
];

/// What is asked about.
const ASKED: [&str; 16] = [
    "100.64.0.0",
    "100.64.0.1",
    "100.64.0.2",
    "100.64.0.3",
    "2001:db8:0:0::/64",
    "2001:db8:0:1::7",
    "2001:db8:0:2::/80",
    "10.0.0.1",
    "10.0.0.70",
    "10.0.0.64/28",
    "10.0.1.127",
    "10.0.1.128",
    "10.0.3.3",
    "2001:db8:5::1",
    "2001:db8:ff00:7::/64",
    "2001:db8:ff00::/56",
];

fn bindings_of(address: Option<u8>, link: Option<u8>, others: Option<u8>) -> Bindings {
    let others = others.map_or(&[][..], |n| OTHERS[usize::from(n)]);
    with(addresses(address, link), others)
}

fn has(bindings: &Bindings, prefix: ipnet::IpNet) -> bool {
    bindings
        .iter()
        .any(|own| own.prefix.contains(&prefix) || prefix.contains(&own.prefix))
}

/// A session that is online, and since when.
#[derive(Clone)]
struct Online {
    id: u64,
    started: u32,
    has: Bindings,
}

struct Model {
    directory: tempfile::TempDir,
    database: Option<Database>,
    /// Blocks that the store has: they are handed over again after a crash.
    outbox: Vec<(u64, Vec<u8>)>,
    next: u64,
    now: u32,
    sessions: Vec<Option<Online>>,
    ids: u64,
    /// What each session had from which time on, in order.
    changes: Vec<(u64, u32, Bindings)>,
}

/// Who had a prefix from when to when, by a list of changes.
fn intervals(
    changes: &[(u64, u32, Bindings)],
    asked: ipnet::IpNet,
) -> Vec<(u64, u32, Option<u32>)> {
    let mut all: Vec<(u64, u32, Option<u32>)> = Vec::new();
    for (id, at, bindings) in changes {
        let open = all.iter_mut().find(|(of, _, to)| of == id && to.is_none());
        match (open, has(bindings, asked)) {
            (Some((_, _, to)), false) => *to = Some(*at),
            (None, true) => all.push((*id, *at, None)),
            _ => {}
        }
    }
    all
}

impl Model {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let database = Some(open(directory.path()));
        Model {
            directory,
            database,
            outbox: Vec::new(),
            next: 1,
            now: 1000,
            sessions: vec![None; 6],
            ids: 0,
            changes: Vec::new(),
        }
    }

    fn note(&mut self, event: Event<'_>) {
        self.outbox.push((self.next, block(&[event])));
        self.next += 1;
    }

    /// Whether nobody else has one of these.
    fn is_free(&self, id: u64, wanted: &Bindings) -> bool {
        let online = self.sessions.iter().flatten();
        let mut others = online.filter(|other| other.id != id);
        others.all(|other| wanted.iter().all(|own| !has(&other.has, own.prefix)))
    }

    fn carry_out(&mut self, op: &Op) {
        match *op {
            Op::Online(n, a, p, r) => {
                let (id, started, has) = (self.ids + 1, self.now, bindings_of(Some(a), p, r));
                if self.sessions[n as usize].is_none() && self.is_free(id, &has) {
                    self.ids = id;
                    self.changes.push((id, started, has.clone()));
                    self.note(online(started, id, has.clone()));
                    self.sessions[n as usize] = Some(Online { id, started, has });
                }
            }
            Op::Change(n, p, r) => {
                let Some(Online { id, started, has }) = self.sessions[n as usize].clone() else {
                    return;
                };
                let now = bindings_of(has.ipv4().map(|a| a.octets()[3]), p, r);
                if now != has && self.is_free(id, &now) {
                    self.changes.push((id, self.now, now.clone()));
                    self.note(changed(self.now, id, has, now.clone()));
                    let has = now;
                    self.sessions[n as usize] = Some(Online { id, started, has });
                }
            }
            Op::Ended(n) => {
                if let Some(s) = self.sessions[n as usize].take() {
                    self.changes.push((s.id, self.now, Bindings::default()));
                    self.note(ended(self.now, s.id, s.started, s.has));
                }
            }
            Op::Keep => self.keep(),
            Op::Crash(part) => self.crash(part),
            Op::Pass(seconds) => self.now += u32::from(seconds),
        }
    }

    fn keep(&mut self) {
        let blocks = self.outbox.iter().map(|(n, block)| (*n, &block[..]));
        let database = self.database.as_mut().unwrap();
        database.append(blocks).unwrap();
        self.outbox.clear();
    }

    /// Everything that waits is being written when the machine dies.
    fn crash(&mut self, part: u8) {
        let log = self.directory.path().join("events.db-wal");
        let length = || fs::metadata(&log).map_or(0, |log| log.len());
        let from = length();
        let blocks = self.outbox.iter().map(|(n, block)| (*n, &block[..]));
        self.database.as_mut().unwrap().append(blocks).unwrap();
        let to = length();
        let kept = from + to.saturating_sub(from) * u64::from(part) / 100;
        let after = tempfile::tempdir().unwrap();
        let left = after.path().join("left");
        super::disk::lose_power(self.directory.path(), &left, kept as usize);
        for entry in fs::read_dir(&left).unwrap() {
            let path = entry.unwrap().path();
            fs::copy(&path, after.path().join(path.file_name().unwrap())).unwrap();
        }
        self.database = Some(open(after.path()));
        self.directory = after;
        self.keep();
    }

    fn live(&self) -> Vec<Held> {
        let online = self.sessions.iter().flatten();
        let held = online.map(|s| {
            let who = who(s.id);
            Held {
                session: s.id,
                user: who.user.to_vec(),
                mac: who.mac,
                user_plane: who.user_plane.into(),
                port: who.port.into(),
                vlans: who.vlans,
                line: who.line.map(|id| id.map(<[u8]>::to_vec)),
                instance: "default".into(),
                bindings: s.has.clone(),
                from: Some(s.started),
                until: Until::Now,
            }
        });
        held.collect()
    }

    fn check(&mut self) {
        self.keep();
        let reader = self.database.as_ref().unwrap().reader();
        for text in ASKED {
            let asked = prefix(text);
            let all = intervals(&self.changes, asked);
            for at in 999..=self.now {
                let live = self.live();
                let live = live.into_iter().filter(|l| has(&l.bindings, asked));
                let held = reader.who(asked, at, 1, live.collect(), self.now + 1);
                let said: Vec<(u64, Option<u32>, Option<u32>)> = held
                    .iter()
                    .filter(|held| held.at(at))
                    .map(|held| {
                        let to = match held.until {
                            Until::Ended { at, .. } => Some(at),
                            Until::Now => None,
                            Until::Unknown(_) => panic!("{held:?}"),
                        };
                        (held.session, held.from, to)
                    })
                    .collect();
                let had = all
                    .iter()
                    .filter(|(_, from, to)| *from <= at && to.is_none_or(|to| to >= at));
                let expected: Vec<(u64, Option<u32>, Option<u32>)> =
                    had.map(|(id, from, to)| (*id, Some(*from), *to)).collect();
                assert_eq!(said, expected, "{text} at {at}, now {}", self.now);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn who_had_an_address_is_as_a_list_of_intervals_says(ops in prop::collection::vec(op(), 1..60)) {
        let mut model = Model::new();
        ops.iter().for_each(|op| model.carry_out(op));
        model.check();
    }
}
