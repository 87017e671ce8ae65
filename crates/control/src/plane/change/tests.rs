use crate::plane::filter::tests::{FULL, full};
use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;

/// Sessions whose links change at once.
const AT_ONCE: usize = 256;

#[test]
fn a_change_looks_only_at_sessions_that_it_touches_and_changes_their_links_in_portions() {
    let mut w = full();
    let mut new = (*w.plane.configuration).clone();
    new.limits.half_open += 1;
    let (effects, took) = timed(|| w.plane.plan(w.moment(), &new).unwrap());
    println!("a change that touches nothing of {FULL} sessions: {took:?}");
    assert!(
        effects.iter().all(|effect| effect.sessions == 0),
        "{effects:?}"
    );

    for profile in new.access_profiles.values_mut() {
        profile.ac_name = "another".into();
    }
    let (effects, took) = timed(|| w.plane.plan(w.moment(), &new).unwrap());
    println!("a change of links, planned: {took:?}");
    assert!(
        effects
            .iter()
            .any(|effect| effect.sessions == u64::from(FULL)),
        "{effects:?}"
    );
    let now = w.moment();
    let (_, mut longest) = timed(|| w.plane.reconfigure(now, Arc::new(new)).unwrap());
    println!("and begun: {longest:?}");
    let mut left = w.plane.relinking.sessions.len();
    assert_eq!(left, FULL as usize - AT_ONCE);
    longest = Duration::ZERO;
    while let Some(at) = w.plane.relink_at() {
        let now = crate::plane::Now { at, ..w.moment() };
        let ((), took) = timed(|| w.plane.on_timeout(now));
        longest = longest.max(took);
        let now_left = w.plane.relinking.sessions.len();
        assert_eq!(now_left, left.saturating_sub(AT_ONCE));
        left = now_left;
    }
    println!("carried out: {longest:?} at most at once");
}

fn timed<T>(f: impl FnOnce() -> T) -> (T, Duration) {
    let begun = Instant::now();
    let done = f();
    (done, begun.elapsed())
}
