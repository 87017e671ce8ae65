//! What a session takes of the control plane's memory. `make scale` measures the daemons.

use cap::Cap;
use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: Cap<MiMalloc> = Cap::new(MiMalloc, usize::MAX);

/// Fewer than `make bench` has, as this is not optimised.
const HOMES: usize = 1_250;
/// Octets of a dual-stack session with a delegated prefix, of so many (1,351; with the 10,000 of `make bench` 1,422), and a little more.
const MOST: usize = 1_368;

#[test]
fn a_session_takes_no_more_memory_than_it_did() {
    let each = sim::cost::memory(1, HOMES, || ALLOCATOR.allocated()).unwrap();
    assert!(each <= MOST, "a session takes {each} octets");
}
