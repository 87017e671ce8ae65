//! AF_XDP against the real kernel, over a pair of veth devices in a network namespace of the test's own. Needs root:
//! `make unit`.
use dpdk::*;
use std::fs::{self, File};
use std::num::NonZeroU32;
use std::process::Command;
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

/// More than the drivers' rings hold, and few enough that the test goes round the pool several times.
const BUFFERS: u32 = 8191;
const FRAMES: u32 = 4 * BUFFERS;
/// Huge pages of 2 MiB for EAL's default memory, and a few more.
const PAGES: i32 = 70;

fn ip(arguments: &str) {
    let status = Command::new("ip").args(arguments.split(' ')).status();
    assert!(status.unwrap().success(), "ip {arguments}");
}

/// The kernel takes only buffers of the memory that was registered with it (UMEM), and never gives back what it refuses. A
/// thread without a cache in the pool puts what it frees at the end of the pool's ring, so every buffer gets its turn.
#[test]
fn every_buffer_of_a_pool_receives() {
    every_buffer_receives(&EalOptions::default());
}

#[test]
#[ignore = "a part of buffers_of_huge_pages_serve_as_well, in a process of its own"]
fn every_buffer_of_huge_pages_receives() {
    every_buffer_receives(&EalOptions {
        huge_pages: true,
        ..EalOptions::default()
    });
}

/// Changes the machine's number of huge pages. Returns by how many it has changed. Clones and benchmarks that run beside this
/// test do the same under this lock, so that none undoes another one's change.
fn change_huge_pages(by: i32) -> i32 {
    let number = "/proc/sys/vm/nr_hugepages";
    let lock = File::open(number).unwrap();
    lock.lock().unwrap();
    let count = || {
        let text = fs::read_to_string(number).unwrap();
        text.trim().parse::<i32>().unwrap()
    };
    let before = count();
    let wanted = (before + by).to_string();
    fs::write(number, wanted).expect("huge pages need root: run `make unit`");
    count() - before
}

/// The huge pages are given back.
#[test]
fn buffers_of_huge_pages_serve_as_well() {
    let reserved = change_huge_pages(PAGES);
    let test = "every_buffer_of_huge_pages_receives";
    let passed = (reserved >= PAGES).then(|| {
        let this = std::env::current_exe().unwrap();
        let mut program = Command::new(this);
        program.args(["--exact", test, "--ignored"]).status()
    });
    change_huge_pages(-reserved);
    let passed = passed.expect("this test needs 140 MiB of memory that is free in huge pages");
    assert!(passed.unwrap().success());
}

fn every_buffer_receives(options: &EalOptions) {
    // EAL's main thread has a cache in each pool; the one that is spawned has none.
    let eal = Eal::start(options).unwrap();
    spawn(move || {
        // SAFETY: it concerns this thread alone.
        let own = unsafe { libc::unshare(libc::CLONE_NEWNET) };
        assert_eq!(own, 0, "a network namespace needs root: run `make unit`");
        ip("link add near type veth peer name far");
        ip("link set near up");
        ip("link set far up");
        let pool = eal.pool("pool", BUFFERS).unwrap();
        let open = |devargs| {
            let mut port = eal
                .open_port(devargs, pool, &PortOptions::default())
                .unwrap();
            (port.take_queues().remove(0), port)
        };
        let (mut near, health) = open("net_af_xdp0,iface=near");
        let (mut far, sender) = open("net_af_packet0,iface=far");
        // what the kernel says of a veth device
        let link = Link {
            up: true,
            mbps: NonZeroU32::new(10_000),
        };
        for port in [&health, &sender] {
            assert_eq!(port.members()[0].link(), link);
        }
        let (mut out, mut burst) = (Burst::new(), Burst::new());
        let mut received = 0;
        while received < FRAMES {
            while out
                .push(pool.packet(&[0xff; 60]).expect("a free buffer"))
                .is_ok()
            {}
            let sent = far.tx(&mut out).packets as u32;
            received += arrivals(&mut near, &health, &mut burst, sent);
        }
        a_packet_ends_a_sleep(&mut near, &mut far, pool);
        drop((near, health, far, sender, burst, out));
        let lost = BUFFERS - pool.available();
        assert!(lost <= 2, "the kernel has kept {lost} buffers");
        buffers_come_back(pool, open);
    })
    .join()
    .unwrap();
}

/// The kernel wakes whoever waits for an AF_XDP queue; AF_PACKET's is waited for in vain.
fn a_packet_ends_a_sleep(near: &mut Queue, far: &mut Queue, pool: Pool) {
    let mut burst = Burst::new();
    assert!(near.wakes() && !far.wakes());
    let most = Duration::from_secs(20);
    for _ in 0..3 {
        while near.rx(&mut burst) > 0 {}
        burst.push(pool.packet(&[0xff; 60]).unwrap()).unwrap();
        std::thread::scope(|threads| {
            let began = Instant::now();
            threads.spawn(|| {
                sleep(Duration::from_millis(5));
                far.tx(&mut burst);
            });
            await_packets([&*near].into_iter(), most);
            assert!(began.elapsed() < most / 2);
        });
    }
    let began = Instant::now();
    await_packets([&*far].into_iter(), Duration::from_millis(2));
    assert!(began.elapsed() >= Duration::from_millis(2));
}

/// Receives and frees so many frames of the test.
fn arrivals(queue: &mut Queue, port: &Port, burst: &mut Burst, wanted: u32) -> u32 {
    let (start, mut n) = (Instant::now(), 0);
    while n < wanted {
        if queue.rx(burst) == 0 {
            assert!(
                start.elapsed() < Duration::from_secs(60),
                "{:?}",
                port.health()
            );
            sleep(Duration::from_micros(20));
        }
        // The kernel says things of its own, such as router solicitations.
        n += burst
            .frames()
            .filter(|f| f[0] == 0xff && f[6] == 0xff)
            .count() as u32;
    }
    n
}

/// A port that is closed gives back what its driver had lent to the kernel, received or not.
fn buffers_come_back(pool: Pool, open: impl Fn(&'static str) -> (Queue, Port)) {
    let mut burst = Burst::new();
    let (before, mut lost) = (pool.available(), 0);
    for round in 0..20 {
        let (mut near, _) = open("net_af_xdp0,iface=near");
        let (mut far, _) = open("net_af_xdp1,iface=far");
        for _ in 0..round * 10 {
            while burst
                .push(pool.packet(&[0xff; 60]).expect("a free buffer"))
                .is_ok()
            {}
            far.tx(&mut burst);
        }
        // Some are received, some are left in the queues.
        near.rx(&mut burst);
        burst.clear();
        drop((near, far));
        lost = before - pool.available();
    }
    // A frame that arrives in the moment of closing keeps its buffer.
    assert!(lost <= 20, "{lost} buffers of {before}");
}
