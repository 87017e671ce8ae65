//! Threads that share a pool. EAL starts once in a process, so one test goes through all of it.
use dpdk::*;
use std::os::unix::thread::JoinHandleExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::yield_now;
use std::time::{Duration, Instant};

const BUFFERS: u32 = 1023;

#[test]
fn threads_share_a_pool() {
    let options = EalOptions {
        memory_mib: 64,
        huge_pages: false,
    };
    let eal = Eal::start(&options).unwrap();
    let pool = eal.pool("pool", BUFFERS).unwrap();
    no_buffer_has_two_owners(&eal, pool);
    a_thread_that_is_stopped_anywhere_stops_no_other(pool);
    a_chain_keeps_the_order_and_frees_what_is_left(pool);
    assert_eq!(pool.available(), BUFFERS, "a buffer was lost");
}

/// With caches of their own and without, a few buffers at a time and many.
fn no_buffer_has_two_owners(eal: &Eal, pool: Pool) {
    std::thread::scope(|threads| {
        for own in 0..4u32 {
            threads.spawn(move || {
                let _registered = (own % 2 == 0).then(|| eal.register_thread().unwrap());
                let mut held = Vec::new();
                let mut got = 0;
                for round in 0..20_000u32 {
                    let some = (round * 7 + own) as usize % BURST + 1;
                    if let Some(mut burst) = pool.bulk(some) {
                        burst.set_meta([own, round]);
                        got += burst.len();
                        held.push((round, burst));
                    }
                    // None of another thread's has been written there meanwhile.
                    if held.len() > 1 + (round as usize / 100) % 4 {
                        for (round, mut burst) in held.drain(..) {
                            while let Some(mbuf) = burst.pop() {
                                assert_eq!(mbuf.meta(), [own, round]);
                            }
                        }
                    }
                }
                assert!(got > 100_000, "{got}");
            });
        }
    });
    assert_eq!(pool.available(), BUFFERS, "a buffer was lost");
}

fn a_chain_keeps_the_order_and_frees_what_is_left(pool: Pool) {
    let mut chain = Chain::default();
    assert!(chain.is_empty() && chain.pop().is_none() && chain.first().is_null());
    for round in 0..3u32 {
        for n in 0..100 {
            let mut mbuf = pool.packet(&[n; 60]).unwrap();
            mbuf.set_stamp(round * 1000 + u32::from(n));
            mbuf.set_meta([u32::MAX; 2]);
            chain.push(mbuf);
        }
        // one of them more than before stays
        for n in 0..99u32 {
            let at = round * 99 + n;
            let mbuf = chain.pop().unwrap();
            assert_eq!(mbuf.stamp(), at / 100 * 1000 + at % 100);
            assert_eq!(mbuf.data(), [(at % 100) as u8; 60]);
        }
    }
    assert_eq!(pool.available(), BUFFERS - 3);
    drop(chain);
    assert_eq!(pool.available(), BUFFERS, "a buffer was lost");
}

/// How often the other thread took buffers and gave them back.
static ROUNDS: AtomicU64 = AtomicU64::new(0);
static STOPPED: AtomicBool = AtomicBool::new(false);
static IN_VAIN: AtomicBool = AtomicBool::new(false);

/// Stands still until the other thread has gone on.
extern "C" fn stand_still(_: libc::c_int) {
    let (rounds, begin) = (ROUNDS.load(Relaxed), Instant::now());
    while ROUNDS.load(Relaxed) < rounds + 50 {
        if begin.elapsed() > Duration::from_secs(10) {
            IN_VAIN.store(true, Relaxed);
            break;
        }
        yield_now();
    }
    STOPPED.store(false, Relaxed);
}

fn a_thread_that_is_stopped_anywhere_stops_no_other(pool: Pool) {
    static END: AtomicBool = AtomicBool::new(false);
    // SAFETY: the handler does nothing that a signal may not interrupt: atomics, the clock, and giving the processor away.
    unsafe {
        libc::signal(
            libc::SIGUSR1,
            stand_still as *const () as libc::sighandler_t,
        )
    };
    let work = move |rounds: &AtomicU64| {
        for n in (0..20).cycle().take_while(|_| !END.load(Relaxed)) {
            drop(pool.bulk(n + 1));
            rounds.fetch_add(1, Relaxed);
        }
    };
    let other = std::thread::spawn(move || work(&ROUNDS));
    let stopped = std::thread::spawn(move || work(&AtomicU64::new(0)));
    for n in (0..300).take_while(|_| !IN_VAIN.load(Relaxed)) {
        STOPPED.store(true, Relaxed);
        // SAFETY: the thread runs until `END` is set.
        unsafe { libc::pthread_kill(stopped.as_pthread_t(), libc::SIGUSR1) };
        while STOPPED.load(Relaxed) {
            yield_now();
        }
        std::thread::sleep(Duration::from_micros(n % 50));
    }
    END.store(true, Relaxed);
    for thread in [other, stopped] {
        thread.join().unwrap();
    }
    assert!(
        !IN_VAIN.load(Relaxed),
        "a thread waited for one that stood still"
    );
}
