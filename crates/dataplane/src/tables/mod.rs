//! The tables that the worker owns: it alone reads and writes them, so there is neither a lock nor an atomic.
pub(crate) mod adjacency;
pub(crate) mod fib;
pub(crate) mod interfaces;
pub(crate) mod samples;
pub(crate) mod sessions;

/// Something for each VLAN id of a port.
pub(crate) type Vlans = [u16; 4096];

/// No VLAN has anything.
pub(crate) fn no_vlans() -> Box<Vlans> {
    Box::new([0; 4096])
}
