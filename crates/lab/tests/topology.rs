//! The lab's network by itself: frames cross it as they are, and it leaves nothing behind. Needs root: `make unit`.

use lab::claim::{clear_dead, directory};
use lab::netns::Netns;
use lab::process::Process;
use lab::topology::{ACCESS_PORT, Lab, Place, UserPlane};
use std::time::{Duration, Instant};

/// Any of them will do.
const UP: UserPlane = UserPlane::One;
/// Ends the wait for a frame that does not come.
const PATIENCE: Duration = Duration::from_secs(60);

fn receive(device: &tun_rs::SyncDevice, wanted: &[u8]) -> bool {
    let start = Instant::now();
    let mut frame = [0; 2048];
    while start.elapsed() < PATIENCE {
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
    let lab = Lab::numbered("t-frames").unwrap();
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
    let own = Lab::numbered("t-again").unwrap(); // whose parts nobody else makes
    let first = own.part("a").unwrap();
    let name = first.name().to_owned();
    for up in UserPlane::ALL {
        let address = up.management().to_string();
        first
            .netns(Place::ControlPlane)
            .run(&["ping", "-c1", "-W2", &address])
            .unwrap();
    }
    let error = Lab::new(&name).unwrap_err().to_string();
    assert!(error.contains("running already"), "{error}");

    // What SIGKILL leaves: the namespaces, a process in them, its pid file; but not the lock.
    let mut sleeper = first.netns(Place::UserPlane(UP)).command("sleep");
    sleeper.arg("60");
    let process = Process::spawn(first.dir(), "sleeper", sleeper).unwrap();
    let id = process.id();
    let record = std::fs::read_to_string(first.dir().join("sleeper.pid")).unwrap();
    std::mem::forget(process);
    let dir = first.close_keeping_logs().unwrap();
    Netns::named(format!("sluice-up1-{name}")).create().unwrap();
    assert_eq!(
        std::fs::read_to_string(dir.join("sleeper.pid")).unwrap(),
        record
    );

    let second = Lab::new(&name).unwrap();
    assert_eq!(second.leftovers(), [id]);
    second
        .netns(Place::UserPlane(UP))
        .run(&["ip", "link", "show", ACCESS_PORT])
        .unwrap();
    second.close().unwrap();
    assert!(!Netns::named(format!("sluice-up1-{name}")).exists());
    assert!(!directory(&name).exists());
}

#[test]
fn labs_of_a_family_are_told_apart_and_the_dead_among_them_are_cleared_away() {
    const FAMILY: &str = "t-family";
    let (alive, dead) = (Lab::numbered(FAMILY), Lab::numbered(FAMILY));
    let (alive, dead) = (alive.unwrap(), dead.unwrap());
    assert_ne!(alive.name(), dead.name());
    let part = dead.part("part").unwrap();
    let mut sleeper = part.netns(Place::Internet).command("sleep");
    sleeper.arg("60");
    let process = Process::spawn(part.dir(), "sleeper", sleeper).unwrap();
    let id = process.id();
    let runs =
        || std::fs::read_to_string(format!("/proc/{id}/stat")).is_ok_and(|s| !s.contains(" Z "));
    // What SIGKILL leaves: of the lab and its part the directories, namespaces, a process; but not the locks.
    std::mem::forget(process);
    let left = [dead.close_keeping_logs(), part.close_keeping_logs()].map(Result::unwrap);
    let word = left[1].file_name().unwrap().to_str().unwrap();
    let namespaces = ["inet", "r1"].map(|place| Netns::named(format!("sluice-{place}-{word}")));
    namespaces.iter().for_each(|place| place.create().unwrap());
    assert!(runs());

    clear_dead(FAMILY).unwrap();
    assert!(!runs() && left.iter().all(|dir| !dir.exists()));
    assert!(!namespaces.iter().any(Netns::exists));
    assert!(alive.netns(Place::Internet).exists() && alive.dir().exists());
    alive.close().unwrap();
}
