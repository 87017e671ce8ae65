//! LCP echo requests that the user plane answers: what it is told for that.

use crate::world::{Choice, World};
use core::time::Duration;
use cpe::State;
use wire::eth::{Frame, PPPOE_SESSION};
use wire::lcp::Opt;
use wire::pfcp::SluiceFeatures;
use wire::ppp::{self, Control};

const WHILE: Duration = Duration::from_secs(30);

/// Magic numbers of the gateway's Configure-Requests, in order.
fn magic_numbers(w: &World) -> Vec<u32> {
    let frames = w.heard.iter().map(|bytes| Frame::parse(bytes).unwrap());
    let sessions = frames.filter(|frame| frame.header.ethertype == PPPOE_SESSION);
    let requests = sessions.filter_map(|frame| {
        let data = ppp::Frame::parse(&frame.payload[6..]).ok()?;
        let packet = Control::parse(data.payload).ok()?;
        let is_request = data.protocol == ppp::LCP && packet.code == ppp::CONFIGURE_REQUEST;
        let options = is_request.then(|| Opt::parse_all(packet.data).ok())??;
        options.into_iter().find_map(|option| match option {
            Opt::Magic(magic) => Some(magic),
            _ => None,
        })
    });
    let mut numbers: Vec<u32> = requests.collect();
    numbers.dedup();
    numbers
}

fn told(w: &World) -> Vec<Option<u32>> {
    let rules = w.up.subscribers().into_iter();
    rules.map(|rules| rules.echo_magic).collect()
}

#[test]
fn the_user_plane_is_told_the_magic_number_with_which_it_answers() {
    let mut w = World::new(1, Choice::default());
    w.dial_all();
    let own = magic_numbers(&w);
    assert_eq!(told(&w), [Some(own[0])]);
    // it is told to a user plane that has lost everything
    w.restart_user_plane();
    w.run(WHILE);
    assert_eq!(told(&w), [Some(own[0])]);
    w.restart_control_plane();
    w.run(WHILE);
    let establishments = w.establishments.len();
    w.restart_user_plane();
    w.run(WHILE);
    assert_eq!(
        w.establishments.len(),
        establishments + 2,
        "port and session"
    );
    assert_eq!(told(&w), [Some(own[0])]);
    // while LCP is negotiated the control plane answers
    w.begin_ppp_anew(0);
    w.run(WHILE);
    assert_eq!(w.homes[0].state(), State::Online);
    assert_eq!(told(&w), [magic_numbers(&w).last().copied()]);
    w.assert_balanced();
}

#[test]
fn a_user_plane_of_before_is_not_asked_to_answer() {
    let mut w = World::new(1, Choice::default());
    w.with_earlier_user_plane(SluiceFeatures::SETTINGS | SluiceFeatures::BINDINGS);
    w.run(WHILE);
    w.dial_all();
    w.run(WHILE);
    assert_eq!(w.homes[0].state(), State::Online);
    assert_eq!(told(&w), [None]);
    w.assert_balanced();
}
