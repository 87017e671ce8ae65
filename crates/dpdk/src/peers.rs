//! DPDK's own tables and a packet path out of them, for benchmarks that compare ours with them; only with the feature `peers`.
use crate::{BURST, Eal, Error};
use core::ffi::{c_char, c_int, c_uint, c_void};
use std::ffi::CString;

mod acl;
mod meters;
mod pipeline;
mod sched;
pub use acl::{
    Acl, AclCalls, AclForm, AclLists, AclRule, AclV4, AclV6, V4_KEY, V6_KEY, allow_wide_vectors,
};
pub use meters::{GREEN, MeterRates, Meters, RED, YELLOW};
pub use pipeline::{ACCESS_HEADER, Downlink, Filter, Uplink, UplinkTables, session_key};
pub use sched::{Sched, claim, small_pool};

unsafe extern "C" {
    fn sl_hash(name: *const c_char, entries: u32) -> *mut c_void;
    fn sl_hash_add(hash: *mut c_void, key: *const u64) -> c_int;
    fn sl_hash_find(hash: *const c_void, keys: *const u64, n: c_uint, places: *mut i32) -> c_int;
    fn sl_hash_free(hash: *mut c_void);
    fn sl_fib(name: *const c_char, routes: u32, blocks: u32) -> *mut c_void;
    fn sl_fib_add(fib: *mut c_void, net: u32, length: u8, to: u64) -> c_int;
    fn sl_fib_find(fib: *mut c_void, addresses: *mut u32, to: *mut u64, n: c_uint) -> c_int;
    fn sl_fib_free(fib: *mut c_void);
    fn sl_fib6(name: *const c_char, routes: u32, blocks: u32) -> *mut c_void;
    fn sl_fib6_add(fib: *mut c_void, net: *const u8, length: u8, to: u64) -> c_int;
    fn sl_fib6_find(fib: *mut c_void, addresses: *mut [u8; 16], to: *mut u64, n: c_uint) -> c_int;
    fn sl_fib6_free(fib: *mut c_void);
}

fn made(table: *mut c_void, what: &str) -> Result<*mut c_void, Error> {
    match table.is_null() {
        true => Err(Error::last(what)),
        false => Ok(table),
    }
}

fn done(result: c_int, what: &str) -> Result<(), Error> {
    match result {
        r if r < 0 => Err(Error::errno(what, r)),
        _ => Ok(()),
    }
}

/// `rte_hash` over keys of 8 octets, hashed by CRC.
pub struct Hash(*mut c_void);

impl Hash {
    /// Room for so many entries.
    pub fn new(_: &Eal, name: &str, entries: u32) -> Result<Self, Error> {
        let c_name = CString::new(name).map_err(|_| Error::new(name, "a NUL in the name"))?;
        // SAFETY: EAL runs, and the name is a C string.
        made(unsafe { sl_hash(c_name.as_ptr(), entries) }, name).map(Hash)
    }

    /// Adds a key.
    pub fn add(&mut self, key: u64) -> Result<(), Error> {
        // SAFETY: the table lives, and copies the key.
        done(unsafe { sl_hash_add(self.0, &key) }, "rte_hash_add_key")
    }

    /// Finds the places of up to [`BURST`] keys at once, negative for those that are not there.
    #[inline]
    pub fn find(&self, keys: &[u64], places: &mut [i32; BURST]) {
        let n = keys.len().min(BURST);
        // SAFETY: `n` keys are there to be read, and `n` places to be written.
        unsafe { sl_hash_find(self.0, keys.as_ptr(), n as c_uint, places.as_mut_ptr()) };
    }
}

impl Drop for Hash {
    fn drop(&mut self) {
        // SAFETY: it is used no more.
        unsafe { sl_hash_free(self.0) }
    }
}

/// `rte_fib`: DIR-24-8 with entries of 4 octets.
pub struct Fib(*mut c_void);

impl Fib {
    /// Room for so many routes, and second-level blocks of 256 entries.
    pub fn new(_: &Eal, name: &str, routes: u32, blocks: u32) -> Result<Self, Error> {
        let c_name = CString::new(name).map_err(|_| Error::new(name, "a NUL in the name"))?;
        // SAFETY: EAL runs, and the name is a C string.
        made(unsafe { sl_fib(c_name.as_ptr(), routes, blocks) }, name).map(Fib)
    }

    /// Adds a route to a next hop below 2^30.
    pub fn add(&mut self, net: u32, length: u8, to: u64) -> Result<(), Error> {
        // SAFETY: the table lives.
        done(
            unsafe { sl_fib_add(self.0, net, length, to) },
            "rte_fib_add",
        )
    }

    /// Looks up to [`BURST`] addresses up.
    #[inline]
    pub fn find(&self, addresses: &mut [u32], to: &mut [u64; BURST]) {
        let n = addresses.len().min(BURST);
        // SAFETY: `n` addresses are there to be read, and `n` results to be written.
        unsafe { sl_fib_find(self.0, addresses.as_mut_ptr(), to.as_mut_ptr(), n as c_uint) };
    }
}

impl Drop for Fib {
    fn drop(&mut self) {
        // SAFETY: it is used no more.
        unsafe { sl_fib_free(self.0) }
    }
}

/// `rte_fib6`: its trie with entries of 4 octets.
pub struct Fib6(*mut c_void);

impl Fib6 {
    /// Room for so many routes, and blocks of 256 entries.
    pub fn new(_: &Eal, name: &str, routes: u32, blocks: u32) -> Result<Self, Error> {
        let c_name = CString::new(name).map_err(|_| Error::new(name, "a NUL in the name"))?;
        // SAFETY: EAL runs, and the name is a C string.
        made(unsafe { sl_fib6(c_name.as_ptr(), routes, blocks) }, name).map(Fib6)
    }

    /// Adds a route to a next hop below 2^30.
    pub fn add(&mut self, net: [u8; 16], length: u8, to: u64) -> Result<(), Error> {
        // SAFETY: the table lives, and 16 octets are there to be read.
        done(
            unsafe { sl_fib6_add(self.0, net.as_ptr(), length, to) },
            "rte_fib6_add",
        )
    }

    /// Looks up to [`BURST`] addresses up.
    #[inline]
    pub fn find(&self, addresses: &mut [[u8; 16]], to: &mut [u64; BURST]) {
        let n = addresses.len().min(BURST);
        // SAFETY: `n` addresses are there to be read, and `n` results to be written.
        unsafe { sl_fib6_find(self.0, addresses.as_mut_ptr(), to.as_mut_ptr(), n as c_uint) };
    }
}

impl Drop for Fib6 {
    fn drop(&mut self) {
        // SAFETY: it is used no more.
        unsafe { sl_fib6_free(self.0) }
    }
}
