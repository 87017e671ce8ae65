//! The lab's network by itself: frames cross it as they are, and it leaves nothing behind. Needs root: `make unit`.

use sluice::lab::claim::directory;
use sluice::lab::netns::Netns;
use sluice::lab::process::Process;
use sluice::lab::topology::{ACCESS_PORT, Lab, Place, UserPlane};
use std::time::{Duration, Instant};

/// Any of them will do.
const UP: UserPlane = UserPlane::One;

fn receive(device: &tun_rs::SyncDevice, wanted: &[u8]) -> bool {
    let start = Instant::now();
    let mut frame = [0; 2048];
    while start.elapsed() < Duration::from_secs(2) {
        match device.recv(&mut frame) {
            Ok(n) if &frame[..n] == wanted => return true,
            Ok(_) => {}
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    false
}

#[test]
fn a_full_size_tagged_frame_crosses_the_access_network_unchanged() {
    let lab = Lab::new("t-frames").unwrap();
    let (near, far) = (lab.tap(UP, "near").unwrap(), lab.tap(UP, "far").unwrap());
    for service_tpid in [0x8100u16, 0x88a8] {
        let mut frame = vec![0xff; 6];
        frame.extend([2, 0, 0, 0, 0, 1]);
        frame.extend(service_tpid.to_be_bytes());
        frame.extend([0, 100, 0x81, 0x00, 0, 7, 0x88, 0x63]);
        frame.resize(1522, 0xab);
        near.send(&frame).unwrap();
        assert!(receive(&far, &frame), "TPID {service_tpid:04x}");
    }
    lab.close().unwrap();
}

#[test]
fn a_lab_is_gone_after_its_end_and_rises_over_the_leftovers_of_another() {
    let first = Lab::new("t-again").unwrap();
    for up in UserPlane::ALL {
        let address = up.management().to_string();
        first
            .netns(Place::ControlPlane)
            .run(&["ping", "-c1", "-W2", &address])
            .unwrap();
    }
    let error = Lab::new("t-again").unwrap_err().to_string();
    assert!(error.contains("running already"), "{error}");

    // What SIGKILL leaves: the namespaces, a process in them, its pid file; but not the lock.
    let mut sleeper = first.netns(Place::UserPlane(UP)).command("sleep");
    sleeper.arg("60");
    let process = Process::spawn(first.dir(), "sleeper", sleeper).unwrap();
    let id = process.id();
    let record = std::fs::read_to_string(first.dir().join("sleeper.pid")).unwrap();
    std::mem::forget(process);
    let dir = first.close_keeping_logs().unwrap();
    Netns::named("sluice-up1-t-again").create().unwrap();
    assert_eq!(
        std::fs::read_to_string(dir.join("sleeper.pid")).unwrap(),
        record
    );

    let second = Lab::new("t-again").unwrap();
    assert_eq!(second.leftovers(), [id]);
    second
        .netns(Place::UserPlane(UP))
        .run(&["ip", "link", "show", ACCESS_PORT])
        .unwrap();
    second.close().unwrap();
    assert!(!Netns::named("sluice-up1-t-again").exists());
    assert!(!directory("t-again").exists());
}
