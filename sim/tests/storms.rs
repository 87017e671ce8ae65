//! Storms, and kills at every instant of one, with few homes. `make soak` runs all of them with many, optimised.

use sim::outage::kills::Kills;
use sim::outage::storms::{STORMS, Storm};

/// Homes of a storm here.
const FEW: usize = 30;
/// Homes of a storm in which a plane is killed, and instants at which it is.
const KILLED: (usize, u64) = (5, 6);

#[test]
fn in_a_storm_everybody_gets_in_and_nothing_acknowledged_is_lost() {
    for storm in STORMS {
        let few = Storm {
            homes: FEW,
            ..storm
        };
        let weathered = few
            .run(1)
            .unwrap_or_else(|why| panic!("{}: {why}", storm.name));
        assert!(weathered.sessions >= FEW, "{}: {weathered}", storm.name);
    }
}

#[test]
fn a_plane_may_die_at_every_instant_of_a_storm() {
    let (homes, instants) = KILLED;
    for kills in Kills::every() {
        let few = Kills {
            homes,
            instants,
            ..kills
        };
        let survived = few
            .run(1)
            .unwrap_or_else(|why| panic!("{}: {why}", kills.name()));
        assert!(survived.kills >= instants, "{}: {survived}", kills.name());
    }
}
