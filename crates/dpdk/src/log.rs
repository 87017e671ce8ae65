//! EAL's log, kept in memory: its end explains an error, and nothing of it reaches stdout or stderr unasked.
use core::ffi::c_char;
use std::sync::{Mutex, MutexGuard};

/// The most that is kept.
const KEPT: usize = 8192;

static LOG: Mutex<Vec<u8>> = Mutex::new(Vec::new());

fn lock() -> MutexGuard<'static, Vec<u8>> {
    LOG.lock().unwrap_or_else(|e| e.into_inner())
}

/// Called by the shim for all that DPDK logs.
///
/// # Safety
/// `text` points to `n` readable bytes.
#[unsafe(no_mangle)]
unsafe extern "C" fn sl_log(text: *const c_char, n: usize) {
    // SAFETY: as the caller promises.
    let text = unsafe { core::slice::from_raw_parts(text.cast::<u8>(), n) };
    let mut log = lock();
    log.extend_from_slice(text);
    if log.len() > KEPT {
        let surplus = log.len() - KEPT;
        log.drain(..surplus);
    }
}

pub(crate) fn clear() {
    lock().clear();
}

/// What DPDK and its drivers have logged since the last call (at most the last 8 KiB), for the caller's own log.
pub fn take_log() -> String {
    let text = core::mem::take(&mut *lock());
    String::from_utf8_lossy(&text).into_owned()
}

/// EAL's closing remarks on a port that failed, which say nothing.
const REMARKS: [&str; 2] = [
    "EAL: Driver cannot attach",
    "EAL: Failed to attach device on primary",
];

/// The last lines, as one, for an error's reason; they stay in the log.
pub(crate) fn tail(lines: usize) -> String {
    let log = lock();
    let text = String::from_utf8_lossy(&log);
    let all: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty() && !REMARKS.iter().any(|r| l.starts_with(r)))
        .collect();
    all[all.len().saturating_sub(lines)..].join("; ")
}
