//! A reader beside the writer with nothing else between them: what the tables do not order is not ordered. Miri tries what a
//! CPU might do with that (`make miri`).
use super::tests::{SMALL, session};
use super::*;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use ipnet::Ipv4Net;
use std::net::Ipv4Addr;

/// A /24 that is there all the time, and two that come and go.
const STAYS: u32 = 0x0a00_0000;
const CHANGE: [u32; 2] = [0x0a00_0100, 0x0a00_0200];
const INSTANCES: u32 = 2;

/// Looks up what stays and what changes in all instances. Of what a chunk says that is used again or not yet written, all would
/// be wrong here: each instance's answers are its own.
fn look(reader: &Reader) {
    for instance in 0..INSTANCES {
        let find = |address| {
            let found = reader.lookup_v4(InstanceIndex(instance as u16), address);
            found.destination()
        };
        let own = |n| session(10 * instance + n);
        assert_eq!(find(STAYS), own(0), "instance {instance}");
        for (address, n) in CHANGE.into_iter().zip(1..) {
            let found = find(address);
            let right = found.is_none() || found == own(n);
            assert!(right, "{found:?} in instance {instance}");
        }
    }
}

#[test]
fn a_chunk_is_whole_when_it_is_found_and_is_not_used_again_while_it_can_be() {
    let changes = if cfg!(miri) { 6 } else { 2_000 };
    // Room for each change, if the reader does not get to run; the interpreter is slow with large slices.
    let lines = if cfg!(miri) { 64 } else { 1 << 15 };
    let mut writer = Writer::with(INSTANCES as u16, 100, lines, SMALL).unwrap();
    let reader = writer.reader();
    let mut say = |instance: u32, address: u32, n: Option<u32>| {
        let to = n.and_then(|n| session(10 * instance + n));
        let prefix = IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::from(address), 24));
        let instance = InstanceIndex(instance as u16);
        let set = writer.set(instance, prefix, Owner::Route, to);
        set.unwrap();
    };
    (0..INSTANCES).for_each(|instance| say(instance, STAYS, Some(0)));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let reader = reader;
            while !stop.load(Relaxed) {
                look(&reader);
                reader.pass();
            }
        });
        for change in 0..changes {
            for instance in 0..INSTANCES {
                for (address, n) in CHANGE.into_iter().zip(1..) {
                    say(instance, address, (change % 2 == 0).then_some(n));
                }
            }
        }
        stop.store(true, Relaxed);
    });
}
