//! The lab against a toy gateway: it is content with a right one, and notices what a wrong one does.

mod toy;

use cpe::{HomeConfig, State};
use sluice::lab::internet::Internet;
use sluice::lab::street::{self, Order, Street};
use sluice::lab::topology::{INTERNET_V4, INTERNET_V6, Lab, Place};
use sluice::lab::{internet, street::INTERVAL};
use std::net::IpAddr;
use std::thread::sleep;
use std::time::{Duration, Instant};
use toy::{Fault, Toy};

const HOMES: u32 = 20;
const TRAFFIC: Duration = Duration::from_secs(1);

fn wait(what: &str, done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(
            start.elapsed() < Duration::from_secs(20),
            "waited for {what}"
        );
        sleep(Duration::from_millis(20));
    }
}

/// Brings the homes online through the toy, lets them talk, and hangs up.
fn run(name: &str, fault: Fault) -> Option<(street::Status, internet::Status)> {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: network namespaces need root");
        return None;
    }
    let lab = Lab::new(name).unwrap();
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
    let toy = Toy::start(&lab, &configs, fault);
    let host = [IpAddr::from(INTERNET_V4), IpAddr::from(INTERNET_V6)];
    let internet = Internet::open(lab.netns(Place::Internet), host, HOMES, 99).unwrap();
    let tap = lab.tap("homes0").unwrap();
    let street = Street::open(configs, 99, tap, internet.reach(), host).unwrap();
    wait("the homes", || street.status().at(State::Online) == HOMES);
    sleep(TRAFFIC);
    street.order(Order::Quiet);
    internet.quiet();
    sleep(Duration::from_millis(500));
    street.order(Order::HangUp);
    wait("the homes to leave", || {
        street.status().at(State::Offline) == HOMES
    });
    let statuses = (street.close().unwrap(), internet.close().unwrap());
    toy.stop();
    lab.close().unwrap();
    Some(statuses)
}

#[test]
fn a_right_gateway_passes_with_ten_packets_a_second_each_way_and_family() {
    let Some((street, internet)) = run("t-right", Fault::None) else {
        return;
    };
    assert_eq!(
        (street.counts.wrong(), internet.counts.wrong()),
        (0, 0),
        "{} {}",
        street.counts,
        internet.counts
    );
    assert_eq!(
        (street.sent, internet.sent),
        (internet.counts.received, street.counts.received)
    );
    assert!(INTERVAL <= Duration::from_millis(100));
    let least = u64::from(HOMES) * 2 * 10 * TRAFFIC.as_secs();
    assert!(
        street.sent >= least && internet.sent >= least,
        "{} {} {least}",
        street.sent,
        internet.sent
    );
    assert_eq!(street.ever_online, HOMES);
    assert!(street.ends.is_empty(), "{:?}", street.ends);
}

#[test]
fn a_lost_packet_is_missed() {
    let Some((street, internet)) = run("t-lose", Fault::Lose) else {
        return;
    };
    assert!(street.counts.received < internet.sent);
    assert_eq!(street.counts.wrong(), 0);
}

#[test]
fn a_repeated_packet_is_counted_once_and_as_wrong() {
    let Some((street, internet)) = run("t-repeat", Fault::Repeat) else {
        return;
    };
    assert_eq!(street.counts.received, internet.sent);
    assert!(
        street.counts.duplicated >= internet.sent / 10 - 1,
        "{}",
        street.counts
    );
}

#[test]
fn a_packet_at_the_wrong_home_is_seen() {
    let Some((street, internet)) = run("t-wrong", Fault::Misdeliver) else {
        return;
    };
    assert!(
        street.counts.misdelivered >= internet.sent / 10 - 1,
        "{}",
        street.counts
    );
    assert!(
        street
            .strays
            .keys()
            .any(|what| what.contains("another address")),
        "{:?}",
        street.strays
    );
}

#[test]
fn a_changed_packet_is_seen_even_under_a_right_checksum() {
    let Some((street, internet)) = run("t-change", Fault::Corrupt) else {
        return;
    };
    assert!(
        street.counts.corrupt >= internet.sent / 10 - 1,
        "{}",
        street.counts
    );
}
