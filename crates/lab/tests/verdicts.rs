//! The lab against a toy gateway: it is content with a right one, and notices what a wrong one does.

mod toy;

use cpe::{HomeConfig, State};
use lab::access_network::{self, AccessNetwork, Order, Plan, Residents};
use lab::internet;
use lab::internet::Internet;
use lab::port::Port;
use lab::routes::Routes;
use lab::topology::{INTERNET_V4, INTERNET_V6, Lab, Place};
use std::net::IpAddr;
use std::thread::sleep;
use std::time::{Duration, Instant};
use toy::{Fault, Toy, UP};

const HOMES: u32 = 20;
/// Ends the wait for something that does not come.
const PATIENCE: Duration = Duration::from_secs(60);
const TRAFFIC: Duration = Duration::from_secs(1);
/// Ten packets a second each way and family, and a few more.
const INTERVAL: Duration = Duration::from_millis(95);

fn wait(what: &str, done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "waited for {what}");
        sleep(Duration::from_millis(20));
    }
}

/// Brings the homes online through the toy, lets them talk, and hangs up.
fn run(name: &str, fault: Fault) -> (access_network::Status, internet::Status) {
    let lab = Lab::numbered(name).unwrap();
    let home = |n: u32| {
        HomeConfig::new(
            [2, 0, 0, 0, 1, n as u8].into(),
            100,
            n as u16 + 1,
            format!("home{n}"),
            "x",
        )
    };
    let configs: Vec<HomeConfig> = (0..HOMES).map(home).collect();
    let _routes = Routes::follow(&lab, &[UP]).unwrap();
    let toy = Toy::start(&lab, &configs, fault);
    let host = [IpAddr::from(INTERNET_V4), IpAddr::from(INTERNET_V6)];
    let internet = lab.netns(Place::Internet);
    let internet = Internet::open(internet, host, HOMES, HOMES, INTERVAL, 99).unwrap();
    let tap = lab.tap(UP, "homes0").unwrap();
    let residents = Residents {
        first: 0,
        configs,
        all: HOMES,
    };
    let plan = Plan::of_lab(INTERVAL, 99, internet.reach(), host);
    let network = AccessNetwork::open(residents, plan, Port::Tap(tap)).unwrap();
    wait("the homes", || network.status().at(State::Online) == HOMES);
    sleep(TRAFFIC);
    network.order(Order::Quiet);
    internet.quiet();
    sleep(Duration::from_millis(500));
    network.order(Order::HangUp);
    wait("the homes to leave", || {
        network.status().at(State::Offline) == HOMES
    });
    let statuses = (network.close().unwrap(), internet.close().unwrap());
    toy.stop();
    lab.close().unwrap();
    statuses
}

#[test]
fn a_right_gateway_passes_with_ten_packets_a_second_each_way_and_family() {
    let (network, internet) = run("t-right", Fault::None);
    assert_eq!(
        (network.counts.wrong(), internet.counts.wrong()),
        (0, 0),
        "{} {}",
        network.counts,
        internet.counts
    );
    assert_eq!(
        (network.sent, internet.sent),
        (internet.counts.received, [network.counts.received, 0])
    );
    assert_eq!(internet.received, [network.sent, 0]);
    let least = u64::from(HOMES) * 2 * 10 * TRAFFIC.as_secs();
    assert!(
        network.sent >= least && internet.sent[0] >= least,
        "{} {} {least}",
        network.sent,
        internet.sent[0]
    );
    assert_eq!(network.ever_online, HOMES);
    assert!(network.ends.is_empty(), "{:?}", network.ends);
}

#[test]
fn a_lost_packet_is_missed() {
    let (network, internet) = run("t-lose", Fault::Lose);
    assert!(network.counts.received < internet.sent[0]);
    assert_eq!(network.counts.wrong(), 0);
}

#[test]
fn a_repeated_packet_is_counted_once_and_as_wrong() {
    let (network, internet) = run("t-repeat", Fault::Repeat);
    assert_eq!(network.counts.received, internet.sent[0]);
    assert!(
        network.counts.duplicated >= internet.sent[0] / 10 - 1,
        "{}",
        network.counts
    );
}

#[test]
fn a_packet_at_the_wrong_home_is_seen() {
    let (network, internet) = run("t-wrong", Fault::Misdeliver);
    assert!(
        network.counts.misdelivered >= internet.sent[0] / 10 - 1,
        "{}",
        network.counts
    );
    assert!(
        network
            .strays
            .keys()
            .any(|what| what.contains("another address")),
        "{:?}",
        network.strays
    );
}

#[test]
fn a_changed_packet_is_seen_even_under_a_right_checksum() {
    let (network, internet) = run("t-change", Fault::Corrupt);
    assert!(
        network.counts.corrupt >= internet.sent[0] / 10 - 1,
        "{}",
        network.counts
    );
}
