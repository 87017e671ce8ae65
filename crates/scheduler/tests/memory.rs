//! What a subscriber takes, by the number of classes in which its packets come.
mod common;
use cap::Cap;
use policy::Rate;
use scheduler::*;
use std::alloc::System;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

struct Frame(u32);

impl Packet for Frame {
    fn octets(&self) -> u32 {
        1000
    }
    fn stamp(&self) -> u32 {
        self.0
    }
    fn set_stamp(&mut self, stamp: u32) {
        self.0 = stamp;
    }
}

/// A chain of the size that the user plane's has, for one packet.
#[derive(Default)]
#[repr(align(16))]
struct Pair(Option<Frame>);

const _: () = assert!(size_of::<Pair>() == 16);

impl Chain for Pair {
    type Packet = Frame;

    fn push(&mut self, packet: Frame) {
        self.0 = Some(packet);
    }

    fn pop(&mut self) -> Option<Frame> {
        self.0.take()
    }
}

const HOMES: usize = 20_000;

/// Octets for each of many homes under aggregates of 64, each with a packet in so many classes of those of its profile.
fn octets(of: usize, classes: usize) -> f64 {
    let before = ALLOCATOR.allocated();
    let mut tree = Scheduler::<Pair>::new(Settings {
        hz: common::HZ,
        rate: Some(Rate::kbps(100_000_000)),
        most_packets: 2 * HOMES * CLASSES,
        key: 7,
    });
    tree.reserve(HOMES * if classes > 4 { 2 } else { 1 });
    let profile = tree.add_profile(&common::plain_of(of));
    let mut site = PORT;
    for n in 0..HOMES {
        if n % 64 == 0 {
            site = common::aggregate(&mut tree, PORT, Some(1_000_000));
        }
        let home = tree.add(site, &common::home(profile, Some(50_000)));
        for class in 0..classes {
            assert!(tree.enqueue(home, class, Frame(0), 0).is_ok());
        }
    }
    (ALLOCATOR.allocated() - before) as f64 / HOMES as f64
}

/// Equal for each home: the thread that waits for this test allocates a few hundred octets of its own, at any time.
fn same(a: f64, b: f64) -> bool {
    (a - b).abs() < 0.5
}

#[test]
fn who_has_four_classes_does_not_pay_for_those_who_have_eight() {
    let four = octets(4, 4);
    assert!(four <= 1_000.0, "{four} octets");
    let of_eight = octets(CLASSES, 4);
    assert!(
        same(of_eight, four),
        "{of_eight} octets, {four} with a profile of four classes, though no packet has come in more"
    );
    let five = octets(CLASSES, 5);
    let eight = octets(CLASSES, CLASSES);
    println!("{four} octets with four classes, {eight} with eight");
    assert!(
        same(five, eight),
        "{five} octets with five, {eight} with eight"
    );
    assert!(
        eight <= 2.0 * four,
        "{eight} octets, {four} with four classes"
    );
}
