use crate::plane::filter::tests::{FULL, full};
use crate::plane::{Now, Progress};
use crate::world::World;
use config::Configuration;
use core::time::Duration;
use northbound::Effect;
use std::sync::Arc;
use std::time::Instant;

/// Sessions that are looked at, and whose links change, at once.
const LOOKED_AT: usize = 1024;
const LINKED: usize = 205;

#[test]
fn a_change_looks_only_at_sessions_that_it_touches_and_at_all_of_them_in_portions() {
    let mut w = full();
    let mut new = (*w.plane.configuration).clone();
    new.limits.half_open += 1;
    let (effects, steps, took) = plan(&w, &new);
    println!("a change that touches nothing of {FULL} sessions: {took:?}");
    assert_eq!(steps, 1);
    assert!(
        effects.iter().all(|effect| effect.sessions == 0),
        "{effects:?}"
    );

    for profile in new.access_profiles.values_mut() {
        profile.ac_name = "another".into();
    }
    let (effects, steps, took) = plan(&w, &new);
    println!("a change of links, planned: {took:?} at most at once");
    assert_eq!(steps, FULL as usize / LOOKED_AT + 1);
    assert!(
        effects
            .iter()
            .any(|effect| effect.sessions == u64::from(FULL)),
        "{effects:?}"
    );
    let (prepared, took) = timed(|| w.plane.prepare_change(Arc::new(new)).unwrap());
    println!("prepared: {took:?}");
    let now = w.moment();
    let ((), took) = timed(|| w.plane.follow_change(now, prepared));
    println!("begun: {took:?}");
    let (mut longest, mut portions) = (Duration::ZERO, 1);
    while let Some(at) = w.plane.rollout_at() {
        let now = Now { at, ..w.moment() };
        let ((), took) = timed(|| w.plane.on_timeout(now));
        longest = longest.max(took);
        portions += 1;
    }
    println!("carried out: {longest:?} at most at once");
    assert_eq!(portions, FULL as usize / LINKED + 1);
}

/// Effects of a change, in how many steps they are found, and how long the longest took.
fn plan(w: &World, new: &Configuration) -> (Vec<Effect>, usize, Duration) {
    let (mut plan, mut longest) = timed(|| w.plane.begin_plan(Arc::new(new.clone())).unwrap());
    for steps in 1.. {
        let (progress, took) = timed(|| w.plane.plan_more(w.moment(), plan));
        longest = longest.max(took);
        match progress {
            Progress::More(further) => plan = further,
            Progress::Done(effects) => return (effects, steps, longest),
        }
    }
    unreachable!("it ends")
}

fn timed<T>(f: impl FnOnce() -> T) -> (T, Duration) {
    let begun = Instant::now();
    let done = f();
    (done, begun.elapsed())
}
