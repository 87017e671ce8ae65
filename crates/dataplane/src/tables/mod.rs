//! The tables. Most are the worker's: it alone reads and writes them, so there is neither a lock nor an atomic. Routes and
//! groups are shared by who writes them and who reads them.
pub(crate) mod adjacency;
pub(crate) mod buckets;
pub(crate) mod classes;
pub mod fib;
pub(crate) mod groups;
pub(crate) mod homes;
pub(crate) mod interfaces;
pub(crate) mod meters;
pub(crate) mod offenders;
pub(crate) mod policies;
pub(crate) mod samples;
pub(crate) mod sessions;
pub(crate) mod watches;

/// Something for each VLAN id of a port.
pub(crate) type Vlans = [u16; 4096];

/// No VLAN has anything.
pub(crate) static NO_VLANS: Vlans = [0; 4096];

/// The same, to be filled.
pub(crate) fn no_vlans() -> Box<Vlans> {
    Box::new(NO_VLANS)
}
