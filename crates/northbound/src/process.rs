//! What the kernel counts of the process that asks.

use crate::{Process, time};
use std::fs;
use std::sync::LazyLock;

/// Ticks of a second in the files of `/proc`: Linux has 100 for programs on every architecture that Sluice is built for.
const TICKS: u64 = 100;
/// Places of numbers behind the name in `/proc/self/stat` (proc_pid_stat(5)): time in user mode and in the kernel, and the start.
const USER: usize = 11;
const KERNEL: usize = 12;
const START: usize = 19;

/// When this process was started, in seconds since 1970. It is computed once: the result would change with every step of the clock.
static STARTED: LazyLock<u64> = LazyLock::new(|| {
    let uptime = read("uptime");
    let uptime = uptime.split(['.', ' ']).next().and_then(|n| n.parse().ok());
    let age = uptime.map_or(0, |up: u64| {
        up.saturating_sub(stat(&read("self/stat"), START) / TICKS)
    });
    time::now().saturating_sub(age)
});

impl Process {
    /// Figures of this process now. What the kernel does not tell is 0.
    pub fn own() -> Self {
        let (status, stat_line) = (read("self/status"), read("self/stat"));
        let ticks = stat(&stat_line, USER) + stat(&stat_line, KERNEL);
        let descriptors = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        Process {
            resident_octets: status_of(&status, "VmRSS") * 1024,
            huge_octets: status_of(&status, "HugetlbPages") * 1024,
            cpu_microseconds: ticks * (1_000_000 / TICKS),
            threads: status_of(&status, "Threads") as u32,
            // one of them is that of the folder
            descriptors: descriptors.saturating_sub(1) as u32,
            started_at: *STARTED,
        }
    }
}

fn read(file: &str) -> String {
    fs::read_to_string(format!("/proc/{file}")).unwrap_or_default()
}

/// A number of `/proc/self/stat`. The name before them is in parentheses and may have blanks in it.
fn stat(line: &str, place: usize) -> u64 {
    let numbers = line.rsplit_once(") ").map_or("", |(_, numbers)| numbers);
    let number = numbers.split(' ').nth(place);
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// A number of `/proc/self/status`.
fn status_of(status: &str, name: &str) -> u64 {
    let value = status
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let number = value.and_then(|value| value.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn a_process_knows_its_memory_time_threads_descriptors_and_start() {
        let before = Process::own();
        assert!(before.resident_octets > 1 << 20, "{before:?}");
        assert!(before.threads >= 1 && before.descriptors >= 3, "{before:?}");
        let age = time::now() - before.started_at;
        assert!(age < 600, "{before:?}");
        let files: Vec<_> = (0..50)
            .map(|_| fs::File::open("/dev/null").unwrap())
            .collect();
        let held = vec![1_u8; 64 << 20];
        let end = Instant::now() + Duration::from_millis(200);
        while Instant::now() < end {
            std::hint::black_box(&held);
        }
        let after = Process::own();
        assert!(
            after.descriptors >= before.descriptors + 45,
            "{before:?} {after:?}"
        );
        assert!(
            after.resident_octets > before.resident_octets + (32 << 20),
            "{after:?}"
        );
        assert!(
            after.cpu_microseconds > before.cpu_microseconds,
            "{after:?}"
        );
        assert_eq!(after.started_at, before.started_at);
        drop(files);
    }

    #[test]
    fn a_name_with_blanks_and_parentheses_moves_no_number() {
        let line = "7 (a) b (c) S 1 7 7 0 -1 4194560 9 0 0 0 250 50 0 0 20 0 4 0 12345 0";
        assert_eq!(
            (stat(line, USER), stat(line, KERNEL), stat(line, START)),
            (250, 50, 12345)
        );
        assert_eq!(stat("", USER), 0);
        let status = "Name:\tx\nVmRSS:\t    2048 kB\nThreads:\t4\n";
        assert_eq!(
            (status_of(status, "VmRSS"), status_of(status, "Threads")),
            (2048, 4)
        );
        assert_eq!(status_of(status, "HugetlbPages"), 0);
    }
}
