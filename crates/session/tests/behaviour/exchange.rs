//! The whole exchange of a subscriber, as a text ladder.
use crate::support::SECOND;
use crate::support::exchange::whole_life;
use session::{Cause, Family};

#[test]
fn from_padi_to_padt() {
    let exchange = whole_life(SECOND * 30);
    assert_eq!(exchange.server.ups, [Family::Ipv4, Family::Ipv6]);
    assert_eq!(exchange.server.closed, [Cause::UserRequest]);
    insta::assert_snapshot!(exchange.server.ladder.to_string());
}
