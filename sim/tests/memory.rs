//! What a session takes of the control plane's memory. `make scale` measures the daemons.

use cap::Cap;
use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: Cap<MiMalloc> = Cap::new(MiMalloc, usize::MAX);

/// Octets of a dual-stack session with a delegated prefix (docs/performance.md), and a little more.
const MOST: usize = 1440;

#[test]
fn a_session_takes_no_more_memory_than_it_did() {
    // an eighth, as this is not optimised
    let homes = sim::cost::HOMES / 8;
    let each = sim::cost::memory(1, homes, || ALLOCATOR.allocated()).unwrap();
    assert!(each <= MOST, "a session takes {each} octets");
}
