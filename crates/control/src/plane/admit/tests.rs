use super::*;
use crate::lanes::LaneChoice;
use crate::session_ids::{Home, SessionIdAllocator};
use crate::world::{Choice, World};
use core::time::Duration;
use cpe::State;
use wire::pfcp::Lanes;

/// A segment has 65,534 PPPoE session ids. The world has one segment.
#[test]
fn without_a_session_id_no_subscriber_is_offered_one_until_one_has_rested() {
    let mut w = World::new(2, Choice::default());
    w.dial(0);
    w.run(Duration::from_secs(5));
    assert_eq!(w.homes[0].state(), State::Online);
    let now = w.now;
    let (_, ids) = w
        .plane
        .session_ids
        .iter_mut()
        .next()
        .expect("the home's segment");
    let others =
        std::iter::from_fn(|| ids.allocate(&LaneChoice::new(Lanes::even(1), 0), Home::NOBODY, now))
            .count();
    assert_eq!(others, usize::from(SessionIdAllocator::LAST) - 1);

    w.dial(1);
    assert_eq!(w.homes[1].state(), State::Discovery);
    assert_eq!(w.plane.session_count(), 1);
    let counted = w.count(Counter::SessionIdsExhausted);
    assert!(counted >= 1);

    // the id of one that goes is left alone for a minute
    w.hang_up(0);
    w.run(Duration::from_secs(5));
    assert_ne!(w.homes[1].state(), State::Online);
    assert!(w.count(Counter::SessionIdsExhausted) > counted);
    w.run(Duration::from_secs(120));
    w.dial(1);
    w.run(Duration::from_secs(5));
    assert_eq!(w.homes[1].state(), State::Online);
    assert_eq!(w.up.subscribers()[0].access, policy::Access::Pppoe(1));
}
