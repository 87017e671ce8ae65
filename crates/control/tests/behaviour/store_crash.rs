//! The store on a disk that fails at every operation: what was acknowledged is there afterwards, and of what was not
//! either the whole batch or nothing of it.

// The disk is shared with the simulation, which uses more of it.
use crate::disk::{Fault, Machine, Remains, Trouble};
use control::store::{Limits, Record, Store};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;

type State = BTreeMap<Vec<u8>, Vec<u8>>;

/// So small that a few batches make the log outgrow what is alive, and that a snapshot takes several slices.
const LIMITS: Limits = Limits {
    least: 400,
    factor: 2,
    slice: 150,
};
const KEYS: u32 = 24;

/// What may be relied on.
#[derive(Default)]
struct Promise {
    kept: State,
    /// With the batch that is written and not acknowledged.
    perhaps: Option<State>,
    batches: u64,
}

impl Promise {
    /// Changes for the next batch; what they make of the state is noted.
    fn next_batch(&mut self, random: &mut StdRng) -> Vec<Record> {
        self.batches += 1;
        let mut batch = vec![Record::put("latest", self.batches.to_be_bytes())];
        for _ in 0..random.random_range(0..5) {
            let key = format!("session/{}", random.random_range(0..KEYS));
            batch.push(if random.random_bool(0.6) {
                let fill = vec![self.batches as u8; random.random_range(0..60)];
                Record::put(key, fill)
            } else {
                Record::delete(key)
            });
        }
        // what waits is one batch with what comes
        let mut state = self.perhaps.take().unwrap_or_else(|| self.kept.clone());
        for record in batch.iter().cloned() {
            match record.value {
                Some(value) => state.insert(record.key, value),
                None => state.remove(&record.key),
            };
        }
        self.perhaps = Some(state);
        batch
    }

    fn acknowledged(&mut self) {
        self.kept = self.perhaps.take().expect("a batch was written");
    }

    /// Opens the store and compares.
    fn check(&mut self, machine: &Machine) -> Result<Store<Machine>, String> {
        let (store, opened) =
            Store::open_on(machine.clone(), LIMITS).map_err(|error| error.to_string())?;
        let found: State = opened.live.into_iter().collect();
        let perhaps = self.perhaps.take();
        if found != self.kept && Some(&found) != perhaps.as_ref() {
            let kept = &self.kept;
            let lost = kept
                .iter()
                .find(|(key, value)| found.get(*key) != Some(value));
            return Err(format!(
                "after batch {} {} keys instead of {}; {lost:?} is missing",
                self.batches,
                found.len(),
                kept.len()
            ));
        }
        self.kept = found;
        Ok(store)
    }
}

/// Writes batches as the store's thread does, until the machine is down or all are acknowledged. What fails is tried once
/// more.
fn work(store: &mut Store<Machine>, promise: &mut Promise, random: &mut StdRng, batches: u32) {
    for _ in 0..batches {
        for record in promise.next_batch(random) {
            store.append(&record);
        }
        if store.sync().is_err() && store.sync().is_err() {
            return;
        }
        promise.acknowledged();
        let idle = random.random_range(0..3);
        let tended = (0..idle).try_for_each(|_| store.tend());
        let sealed = tended.and_then(|()| if idle == 2 { store.seal() } else { Ok(()) });
        if sealed.is_err() && store.sync().is_err() {
            return;
        }
    }
}

/// A store from its first opening through several snapshots.
fn script(machine: &Machine, promise: &mut Promise) {
    let mut random = StdRng::seed_from_u64(7);
    if let Ok((mut store, _)) = Store::open_on(machine.clone(), LIMITS) {
        work(&mut store, promise, &mut random, 60);
    }
}

/// Restarts after a fault, checks, goes on for a while, and checks again.
fn recover(machine: &Machine, promise: &mut Promise, what: &str) {
    machine.restart();
    let mut random = StdRng::seed_from_u64(9);
    let store = promise.check(machine);
    let mut store = store.unwrap_or_else(|error| panic!("{what}: {error}"));
    work(&mut store, promise, &mut random, 4);
    drop(store);
    machine.lose_power(Remains::Nothing);
    machine.restart();
    if let Err(error) = promise.check(machine) {
        panic!("{what}, later: {error}");
    }
}

fn script_length() -> u64 {
    let (machine, mut promise) = (Machine::new(1), Promise::default());
    script(&machine, &mut promise);
    assert!(promise.batches == 60 && promise.perhaps.is_none());
    assert!(machine.renames() >= 4, "{} snapshots", machine.renames());
    machine.operations()
}

#[test]
fn a_fault_at_any_operation_loses_nothing_acknowledged_and_keeps_no_half_batch() {
    let faults = Remains::EVERY.map(Fault::PowerLoss);
    let faults = faults.into_iter().chain([Fault::Kill, Fault::Error]);
    for fault in faults {
        for at in 0..script_length() {
            // Where a write is torn is left to chance, and tried several times.
            let by_chance = !matches!(fault, Fault::PowerLoss(remains) if remains != Remains::Torn);
            for seed in 0..if by_chance { 4 } else { 1 } {
                let (machine, mut promise) = (Machine::new(seed), Promise::default());
                machine.fail_after(at, fault);
                script(&machine, &mut promise);
                assert!(machine.has_failed());
                // while it was opened for the first time nobody had anything to try again with
                let goes_on = fault == Fault::Error && promise.batches > 0;
                assert!(!goes_on || promise.batches == 60, "{fault:?} at {at}");
                recover(
                    &machine,
                    &mut promise,
                    &format!("{fault:?} at {at}, seed {seed}"),
                );
            }
        }
    }
}

#[test]
fn the_power_may_go_again_at_any_operation_of_the_opening_after_it_went() {
    for at in 0..script_length() {
        for again in 0.. {
            let (machine, mut promise) = (Machine::new(at), Promise::default());
            machine.fail_after(at, Fault::PowerLoss(Remains::Torn));
            script(&machine, &mut promise);
            machine.restart();
            let remains = Remains::EVERY[(at + again) as usize % Remains::EVERY.len()];
            machine.fail_after(again, Fault::PowerLoss(remains));
            let opened = Store::open_on(machine.clone(), LIMITS);
            if !machine.has_failed() {
                break;
            }
            drop(opened);
            recover(
                &machine,
                &mut promise,
                &format!("at {at}, again at {again}"),
            );
        }
    }
}

#[test]
fn an_error_followed_by_a_power_loss_loses_nothing_acknowledged() {
    for remains in Remains::EVERY {
        for at in 0..script_length() {
            let (machine, mut promise) = (Machine::new(at), Promise::default());
            machine.fail_after(at, Fault::Error);
            script(&machine, &mut promise);
            machine.lose_power(remains);
            recover(
                &machine,
                &mut promise,
                &format!("error at {at}, {remains:?}"),
            );
        }
    }
}

#[test]
fn a_power_loss_while_the_store_recovers_from_an_error_loses_nothing_acknowledged() {
    for at in 0..script_length() {
        for again in 0..12 {
            let (machine, mut promise) = (Machine::new(at), Promise::default());
            let remains = Remains::EVERY[(at + again) as usize % Remains::EVERY.len()];
            machine.fail_after(at, Fault::Error);
            machine.fail_again_after(again, Fault::PowerLoss(remains));
            script(&machine, &mut promise);
            recover(
                &machine,
                &mut promise,
                &format!("error at {at}, {remains:?} {again} later"),
            );
        }
    }
}

/// Writes while the disk is in trouble, in vain, and then when it is not; what was acknowledged is there after a loss of power.
fn outlive(trouble: impl Fn(&Machine) -> Trouble) {
    for before in 1..40 {
        let (machine, mut promise) = (Machine::new(7), Promise::default());
        let mut random = StdRng::seed_from_u64(u64::from(before));
        let (mut store, _) = Store::open_on(machine.clone(), LIMITS).unwrap();
        work(&mut store, &mut promise, &mut random, before);
        machine.suffer(trouble(&machine));
        let mut refused = 0;
        while refused < 3 {
            for record in promise.next_batch(&mut random) {
                store.append(&record);
            }
            match store.sync() {
                Ok(()) => promise.acknowledged(),
                Err(_) => refused += 1,
            }
        }
        machine.suffer(Trouble::Nothing);
        store.sync().unwrap();
        promise.acknowledged();
        work(&mut store, &mut promise, &mut random, 3);
        drop(store);
        machine.lose_power(Remains::Nothing);
        machine.restart();
        promise.check(&machine).unwrap();
    }
}

#[test]
fn what_comes_while_the_disk_is_full_is_written_when_there_is_room() {
    outlive(|machine| Trouble::Full(machine.octets() + 40));
}

#[test]
fn what_comes_while_nothing_can_be_written_is_written_when_it_can_be() {
    outlive(|_| Trouble::NoWrites);
}

#[test]
fn what_comes_while_no_sync_succeeds_is_written_when_one_does() {
    outlive(|_| Trouble::NoSyncs);
}

/// One store through ten thousand crashes; `SLUICE_CRASHES` for more, `SLUICE_SEED` for others.
#[test]
fn ten_thousand_crashes_at_random() {
    let number = |name: &str, default| {
        std::env::var(name).map_or(default, |value| value.parse().expect("a number"))
    };
    let (crashes, seed) = (number("SLUICE_CRASHES", 10_000), number("SLUICE_SEED", 1));
    let mut random = StdRng::seed_from_u64(seed);
    let (machine, mut promise) = (Machine::new(seed), Promise::default());
    let mut done = 0;
    while done < crashes {
        let fault = match random.random_range(0..10) {
            kind @ 0..5 => Fault::PowerLoss(Remains::EVERY[kind]),
            5 | 6 => Fault::PowerLoss(Remains::Torn),
            7 | 8 => Fault::Kill,
            _ => Fault::Error,
        };
        machine.fail_after(random.random_range(0..60), fault);
        match promise.check(&machine) {
            Ok(mut store) => work(&mut store, &mut promise, &mut random, 30),
            Err(error) => assert!(machine.has_failed(), "seed {seed}, crash {done}: {error}"),
        }
        done += u64::from(machine.has_failed());
        machine.restart();
        if let Err(error) = promise.check(&machine) {
            panic!("seed {seed}, crash {done}, {fault:?}: {error}");
        }
    }
    assert!(
        u64::from(machine.renames()) > crashes / 20,
        "{} snapshots",
        machine.renames()
    );
}

#[test]
fn the_log_stays_in_proportion_while_it_is_written() {
    let (machine, mut promise) = (Machine::new(3), Promise::default());
    let mut random = StdRng::seed_from_u64(3);
    // Smaller than a batch: it is what came that has to be caught up with.
    let limits = Limits {
        slice: 10,
        ..LIMITS
    };
    let (mut store, _) = Store::open_on(machine.clone(), limits).unwrap();
    let mut most_alive = 0;
    for _ in 0..3000 {
        let mut batch = 0;
        for record in promise.next_batch(&mut random) {
            store.append(&record);
            batch = store.pending() as u64;
        }
        store.sync().unwrap();
        promise.acknowledged();
        store.tend().unwrap();
        let record = |(key, value): (&Vec<u8>, &Vec<u8>)| (9 + key.len() + value.len()) as u64;
        most_alive = promise.kept.iter().map(record).sum::<u64>().max(most_alive);
        // What comes while a snapshot is written is at most half of what is alive, and some headers.
        let most = LIMITS.least.max(3 * most_alive) + batch + 20;
        assert!(
            store.len_on_disk() <= most,
            "{} of {most}",
            store.len_on_disk()
        );
    }
    assert!(machine.content("sessions.log").unwrap().len() as u64 == store.len_on_disk());
}
