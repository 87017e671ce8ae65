//! LCP echo requests that the user plane answers and sends: what it is told for that, and what it says.

use crate::world::radius::number;
use crate::world::{Choice, World};
use control::counters::Counter;
use core::time::Duration;
use cpe::State;
use policy::Keepalive;
use wire::eth::{Frame, PPPOE_SESSION};
use wire::lcp::{ECHO_REQUEST, Opt};
use wire::pfcp::SluiceFeatures;
use wire::ppp::{self, Control};
use wire::radius::Kind;

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

/// Number of LCP echo requests that homes have got since `from` frames.
fn asked(w: &World, from: usize) -> usize {
    let frames = w.heard[from..]
        .iter()
        .map(|bytes| Frame::parse(bytes).unwrap());
    let sessions = frames.filter(|frame| frame.header.ethertype == PPPOE_SESSION);
    let requests = sessions.filter(|frame| {
        let data = ppp::Frame::parse(&frame.payload[6..]).unwrap();
        let packet = Control::parse(data.payload);
        data.protocol == ppp::LCP && packet.is_ok_and(|packet| packet.code == ECHO_REQUEST)
    });
    requests.count()
}

#[test]
fn a_subscriber_is_watched_by_the_user_plane_or_else_by_the_control_plane() {
    const LONG: Duration = Duration::from_secs(300);
    let mut w = World::new(1, Choice::default());
    w.with_watching_user_plane();
    w.run(WHILE);
    w.dial_all();
    w.run(WHILE);
    let keepalive = |w: &World| {
        let rules = w.up.subscribers();
        rules[0].forwarding.packets.keepalive
    };
    let every_30_s = Keepalive {
        interval: 30,
        failures: 3,
    };
    assert_eq!(keepalive(&w), Some(every_30_s));
    let from = w.heard.len();
    w.run(LONG);
    w.restart_control_plane();
    w.run(LONG);
    assert_eq!(asked(&w, from), 0);
    w.configure(&["set access-profiles pppoe echo-interval 5"])
        .unwrap();
    w.run(WHILE);
    assert_eq!(keepalive(&w).map(|keepalive| keepalive.interval), Some(5));
    // a user plane of before cannot do it
    w.with_earlier_user_plane(SluiceFeatures::SETTINGS | SluiceFeatures::ECHO_REPLIES);
    w.run(WHILE);
    let from = w.heard.len();
    w.run(LONG);
    assert_eq!(keepalive(&w), None);
    assert!((50..=70).contains(&asked(&w, from)), "{}", asked(&w, from));
    assert_eq!(w.count(Counter::PolicyRefused), 0, "nothing is missing");
    assert!(w.plane.ledger().is_balanced());
}

#[test]
fn a_subscriber_who_is_gone_as_the_user_plane_says_has_lost_its_carrier() {
    let mut w = World::new(2, Choice::radius());
    w.with_watching_user_plane();
    w.run(WHILE);
    w.dial_all();
    w.up.says_gone = true;
    // of a session that the control plane watches the user plane cannot know it
    w.configure(&["set access-profiles pppoe echo-interval 0"])
        .unwrap();
    w.run(WHILE);
    w.user_plane_reports(70);
    w.run(Duration::from_secs(1));
    assert_eq!(w.sessions().len(), 2);
    w.configure(&["delete access-profiles pppoe echo-interval"])
        .unwrap();
    w.run(WHILE);
    w.user_plane_reports(70);
    w.run(WHILE);
    assert_eq!((w.sessions().len(), w.stored_sessions()), (0, 0));
    let [.., first, second] = &w.radius.records[..] else {
        panic!("{:?}", w.radius.records);
    };
    let causes = [first, second].map(|stop| number(stop, Kind::ACCT_TERMINATE_CAUSE));
    assert_eq!(causes, [2, 2], "lost carrier");
    assert!(w.plane.ledger().is_balanced());
}
