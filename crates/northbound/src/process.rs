//! What the kernel counts of the process that asks.

use crate::{Process, time};
use procfs::ProcResult;
use procfs::process::Process as OfKernel;
use std::sync::LazyLock;

/// When this process was started, in seconds since 1970. It is computed once: the result would change with every step of the clock.
static STARTED: LazyLock<u64> = LazyLock::new(|| started().unwrap_or_else(|_| time::now()));

fn started() -> ProcResult<u64> {
    let started = OfKernel::myself()?.stat()?.starttime / procfs::ticks_per_second();
    Ok(procfs::boot_time_secs()? + started)
}

impl Process {
    /// Figures of this process now. What the kernel does not tell is 0.
    pub fn own() -> Self {
        read().unwrap_or_default()
    }
}

fn read() -> ProcResult<Process> {
    let own = OfKernel::myself()?;
    let (status, stat) = (own.status()?, own.stat()?);
    let octets = |kib: Option<u64>| kib.unwrap_or(0) * 1024;
    let ticks = stat.utime + stat.stime;
    Ok(Process {
        resident_octets: octets(status.vmrss),
        huge_octets: octets(status.hugetlbpages),
        cpu_microseconds: ticks * 1_000_000 / procfs::ticks_per_second(),
        threads: status.threads as u32,
        // one of them is that of the folder
        descriptors: own.fd_count()?.saturating_sub(1) as u32,
        started_at: *STARTED,
    })
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
        let age = time::now().abs_diff(before.started_at);
        assert!(age < 600, "{before:?}");
        let files: Vec<_> = (0..50)
            .map(|_| std::fs::File::open("/dev/null").unwrap())
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
}
