//! Trials with RADIUS servers in trouble, with few homes. `make soak` runs all of them with many, optimised.

use sim::outage::overload::{OVERLOADS, Overload};
use sim::outage::{TRIALS, Trial};

fn trial(name: &str) -> Trial {
    let trial = TRIALS.into_iter().find(|trial| trial.name == name);
    trial.expect("a trial of this name")
}

/// A trial with so many homes.
fn with_few(name: &str, homes: usize) -> Result<sim::outage::Outcome, String> {
    Trial {
        homes,
        ..trial(name)
    }
    .run(1)
}

#[test]
fn when_no_server_answers_who_is_online_stays_and_everybody_gets_in_afterwards() {
    let outcome = with_few("dead", 60).unwrap();
    assert_eq!((outcome.newcomers, outcome.online_meanwhile), (54, 0));
}

#[test]
fn whoever_answers_late_after_failover_keeps_nobody_out() {
    let outcome = with_few("late after failover", 20).unwrap();
    assert_eq!(outcome.online_meanwhile, 18);
}

#[test]
fn at_three_times_the_capacity_of_a_server_as_many_come_online_as_it_can_serve() {
    for overload in OVERLOADS.iter().filter(|overload| overload.load == 3) {
        let few = Overload {
            speed: 20,
            ..*overload
        };
        let goodput = few.run(1);
        assert!(goodput.is_ok(), "{}: {goodput:?}", few.name);
    }
}
