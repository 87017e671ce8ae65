//! Each table is broken on purpose: the resource audit finds it, and a repair corrects it.

use dataplane::{Held, Part, Piece};
use northbound::{Fault, Ledger};
use std::collections::BTreeMap;

use super::*;
use crate::ledger::{Shown, Wrong};

impl Bench {
    pub(super) fn ledger(&self) -> (Ledger, Wrong) {
        let mut ledger = Ledger::of("up1");
        self.engine.compare(&mut ledger, &self.open());
        let mut shown = Shown::default();
        for command in &self.pending {
            if let WorkerCommand::Set(SessionEntry { index, .. }) | WorkerCommand::Remove(index) =
                command
            {
                shown.touched.sessions.insert(*index);
            }
        }
        let found = self.entries.values().map(|entry| Held::Session {
            entry: entry.clone(),
            whole: true,
        });
        let piece = Piece {
            part: Part::FIRST,
            found: found.collect(),
            next: None,
            workers: 1,
        };
        shown.judge(&self.engine, &BTreeMap::new(), &piece);
        let wrong = shown.compare(&mut ledger);
        (ledger, wrong)
    }

    /// Tokens of reports that nobody acknowledged.
    fn open(&self) -> std::collections::BTreeSet<u64> {
        self.reports.iter().map(|(token, _)| *token).collect()
    }

    pub(super) fn repair(&mut self) {
        let (_, wrong) = self.ledger();
        self.engine.repair(&self.open());
        for index in wrong.sessions {
            self.engine.tell_again(index);
        }
        self.run();
    }
}

/// A default session with two prefixes, and two subscribers, one of which reports its usage.
fn served() -> (Bench, u64, u64) {
    let mut bench = Bench::new();
    let (establish, _) = default_spec(&["100.64.0.0/24", "2001:db8:64::/56"]).establish();
    bench.send(0, establish);
    let reporting = SessionSpec {
        urr_id: 1,
        usage_period: Some(60),
        ..spec(1)
    };
    let first = bench.established(&reporting);
    let mut second = spec(2);
    let bindings = &mut second.forwarding.bindings;
    *bindings = Bindings::of(bindings.ipv4(), None);
    let second = bench.established(&second);
    (bench, first, second)
}

fn broken(what: impl FnOnce(&mut Bench, u64), kind: &str, fault: Fault) -> (Bench, u64) {
    let (mut bench, first, _) = served();
    let (ledger, _) = bench.ledger();
    assert!(ledger.is_balanced(), "{:#?}", ledger.findings);
    what(&mut bench, first);
    let (ledger, _) = bench.ledger();
    let found = |f: &northbound::Finding| f.kind == kind && f.fault() == fault;
    assert!(
        ledger.findings.iter().any(found),
        "{kind}: {:#?}",
        ledger.findings
    );
    bench.repair();
    let (ledger, _) = bench.ledger();
    assert!(ledger.is_balanced(), "{kind}: {:#?}", ledger.findings);
    (bench, first)
}

#[test]
fn what_comes_and_goes_is_balanced_at_every_step() {
    let (mut bench, first, second) = served();
    let held = |bench: &Bench, kind: &str| bench.ledger().0.held(kind);
    let kinds = [
        "session",
        "TEID",
        "forwarding entry",
        "default session",
        "prefix block",
        "timer",
    ];
    assert_eq!(kinds.map(|kind| held(&bench, kind)), [2, 2, 2, 1, 2, 1]);
    // Commands that the worker has not handled are not judged.
    bench.worker_runs = false;
    bench.send(first, delete());
    bench.send(0, spec(3).establish_control());
    assert!(
        bench.ledger().0.is_balanced(),
        "{:#?}",
        bench.ledger().0.findings
    );
    bench.worker_runs = true;
    bench.run();
    assert!(bench.ledger().0.is_balanced());
    bench.delete(second);
    bench.engine.forget_peer(cp());
    bench.run();
    let (ledger, _) = bench.ledger();
    assert!(ledger.is_balanced());
    assert!(
        ledger.accounts.iter().all(|a| a.booked + a.owned == 0),
        "{ledger:#?}"
    );
}

#[test]
fn the_workers_entries() {
    let kind = "forwarding entry";
    let stray = |bench: &mut Bench, first: u64| {
        let entry = SessionEntry {
            index: SessionIndex(700),
            ..bench.entry(first).clone()
        };
        bench.entries.insert(entry.index, entry);
    };
    let (bench, _) = broken(stray, kind, Fault::WithoutOwner);
    assert_eq!(bench.entries.len(), 2);

    let other = |bench: &mut Bench, first: u64| {
        let index = Seid::from_u64(first).index;
        bench.entries.get_mut(&index).unwrap().packets.mtu = Some(9);
    };
    broken(other, kind, Fault::Missing);

    let lost = |bench: &mut Bench, first: u64| {
        bench.count(first, 100);
        bench.modify(first, query_usage(1));
        let index = Seid::from_u64(first).index;
        bench.entries.remove(&index);
        bench.usage.remove(&index);
    };
    let (mut bench, first) = broken(lost, kind, Fault::Missing);
    // The usage so far is neither lost nor counted twice.
    bench.count(first, 7);
    let report = &bench.delete(first).usage_reports[0];
    assert_eq!(octets(report), (Some(7), Some(14)));
}

/// Queues are a session's that is there, at its port, if its packets find them.
#[test]
fn the_workers_queues() {
    let (bench, first, _) = served();
    let entry = bench.entry(first).clone();
    let other = PortIndex(entry.port.0 + 1);
    for (session, port, whole, is_right) in [
        (Some(entry.index), entry.port, true, true),
        (Some(entry.index), entry.port, false, false),
        (Some(entry.index), other, true, false),
        (Some(SessionIndex(700)), entry.port, true, false),
        (None, entry.port, true, false),
    ] {
        let (mut shown, mut ledger) = (Shown::default(), Ledger::default());
        let queues = Held::Queues {
            place: 9,
            port,
            session,
            whole,
        };
        let piece = Piece {
            part: Part::Queues(0),
            found: vec![queues],
            next: None,
            workers: 1,
        };
        shown.judge(&bench.engine, &BTreeMap::new(), &piece);
        let wrong = shown.compare(&mut ledger);
        let stray: &[u32] = if is_right { &[] } else { &[9] };
        assert_eq!(wrong.queues, stray, "{session:?} {port:?} {whole}");
        let of_kind = |finding: &&northbound::Finding| finding.kind == "queues of a session";
        assert_eq!(ledger.findings.iter().filter(of_kind).count(), stray.len());
    }
}

#[test]
fn places_and_tunnels() {
    let stray = |bench: &mut Bench, first: u64| {
        bench.engine.table.claim_teid(0x777, Seid::from_u64(first));
    };
    let (bench, _) = broken(stray, "TEID", Fault::WithoutOwner);
    assert_eq!(bench.engine.table.by_teid(0x777), None);
    let lost = |bench: &mut Bench, first: u64| {
        bench
            .engine
            .table
            .release_teid(0x201, Seid::from_u64(first));
    };
    let (bench, first) = broken(lost, "TEID", Fault::Missing);
    assert_eq!(
        bench.engine.table.by_teid(0x201),
        Some(Seid::from_u64(first))
    );

    let lost = |bench: &mut Bench, first: u64| {
        bench
            .engine
            .table
            .free_places()
            .push_back(Seid::from_u64(first).index.0);
    };
    broken(lost, "session", Fault::Missing);
    let stray = |bench: &mut Bench, first: u64| {
        bench.delete(first);
        bench.engine.table.free_places().clear();
    };
    let (mut bench, _) = broken(stray, "session", Fault::WithoutOwner);
    assert_eq!(bench.engine.table.free_places().len(), 1);
}

#[test]
fn default_sessions_and_nets() {
    let lost = |bench: &mut Bench, _| bench.engine.defaults.clear();
    let (bench, _) = broken(lost, "default session", Fault::Missing);
    assert!(bench.engine.discovery_tunnel(PORT).is_some());
    let stray = |bench: &mut Bench, _| {
        bench.engine.defaults.insert(SessionIndex(900), None);
    };
    broken(stray, "default session", Fault::WithoutOwner);

    let here = |text| (InstanceIndex(0), net(text).into());
    let stray = |bench: &mut Bench, _| {
        bench.engine.nets.insert(here("198.18.0.0/24"), 1);
        *bench.engine.nets.get_mut(&here("100.64.0.0/24")).unwrap() += 1;
    };
    let (bench, _) = broken(stray, "prefix block", Fault::WithoutOwner);
    assert_eq!(
        bench.nets.last(),
        Some(&(false, net("198.18.0.0/24").into()))
    );
    let lost = |bench: &mut Bench, _| {
        bench.engine.nets.remove(&here("100.64.0.0/24"));
    };
    let (bench, _) = broken(lost, "prefix block", Fault::Missing);
    assert_eq!(
        bench.nets.last(),
        Some(&(true, net("100.64.0.0/24").into()))
    );
}

#[test]
fn timers_of_sessions_that_may_be_idle() {
    let mut bench = Bench::new();
    usage::may_be_idle(&mut bench, false);
    assert!(bench.ledger().0.is_balanced());
    bench.engine.timers.clear();
    let (ledger, _) = bench.ledger();
    assert_eq!(ledger.findings.len(), 1, "{:#?}", ledger.findings);
    assert_eq!(ledger.findings[0].kind, "timer");
    bench.repair();
    assert!(bench.ledger().0.is_balanced());
    (0..11).for_each(|_| bench.pass(10));
    assert_eq!(usage::told(&bench), 1, "it is idle, and that is told");
}

#[test]
fn timers_and_reports() {
    let lost = |bench: &mut Bench, _| bench.engine.timers.clear();
    let (mut bench, first) = broken(lost, "timer", Fault::Missing);
    bench.pass(60);
    assert_eq!(bench.reports[0].0, first);

    let lost = |bench: &mut Bench, _| {
        bench.pass(60);
        assert!(bench.ledger().0.is_balanced());
        bench.reports.clear();
    };
    let (mut bench, _) = broken(lost, "usage report", Fault::Missing);
    bench.pass(60);
    assert_eq!(bench.reports.len(), 1, "it is sent again");
}
