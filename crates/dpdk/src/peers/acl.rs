//! `rte_acl` over 5-tuples.
use super::{done, made};
use crate::{BURST, Eal, Error};
use core::ffi::{c_char, c_int, c_uint, c_void};
use std::ffi::CString;

unsafe extern "C" {
    fn sl_wide_vectors() -> c_int;
    fn sl_acl(name: *const c_char, rules: *const AclRule, n: c_uint, is_v6: c_int) -> *mut c_void;
    fn sl_acl_choose(acl: *mut c_void, form: c_int) -> c_int;
    fn sl_acl_find(
        acl: *const c_void,
        keys: *const u8,
        size: c_uint,
        found: *mut u32,
        n: c_uint,
    ) -> c_int;
    fn sl_acl_find_each(
        lists: *const *mut c_void,
        count: c_uint,
        which: *const u8,
        keys: *const u8,
        size: c_uint,
        found: *mut u32,
        n: c_uint,
    ) -> c_int;
    fn sl_acl_find_parts(
        lists: *const *mut c_void,
        count: c_uint,
        which: *const u8,
        keys: *const u8,
        size: c_uint,
        found: *mut u32,
        n: c_uint,
    ) -> c_int;
    fn sl_acl_free(acl: *mut c_void);
}

/// Lets DPDK use vectors of 512 bits in tables that are made from now on. Without it DPDK uses 256 at most.
pub fn allow_wide_vectors(_: &Eal) -> Result<(), Error> {
    // SAFETY: EAL runs.
    done(unsafe { sl_wide_vectors() }, "vectors of 512 bits")
}

/// One way in which `rte_acl` searches (`enum rte_acl_classify_alg`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum AclForm {
    /// Without vectors.
    Scalar = 1,
    /// SSE 4.1.
    Sse = 2,
    /// AVX2.
    Avx2 = 3,
    /// AVX-512, 16 keys at a time.
    Avx512x16 = 6,
    /// AVX-512, 32 keys at a time.
    Avx512x32 = 7,
}

impl AclForm {
    /// All forms that x86 has.
    pub const ALL: [AclForm; 5] = [
        AclForm::Scalar,
        AclForm::Sse,
        AclForm::Avx2,
        AclForm::Avx512x16,
        AclForm::Avx512x32,
    ];

    /// Forms that this machine and DPDK's limit of vectors allow ([`allow_wide_vectors`]).
    pub fn available(eal: &Eal) -> Result<Vec<AclForm>, Error> {
        let mut acl = AclV4::new(eal, "forms", &[AclRule::ANY])?;
        let is_available = |form: &AclForm| acl.choose(*form).is_ok();
        Ok(Self::ALL.into_iter().filter(is_available).collect())
    }
}

/// A rule over 5-tuples. Addresses are in host order, most significant word first; of an IPv4 address only the first word counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct AclRule {
    /// Network of the source.
    pub source: [u32; 4],
    /// Network of the destination.
    pub destination: [u32; 4],
    /// First and last port of the source.
    pub source_ports: [u16; 2],
    /// First and last port of the destination.
    pub destination_ports: [u16; 2],
    /// Bits of the source's network: 0 to 32, or 0 to 128.
    pub source_length: u8,
    /// Bits of the destination's network: 0 to 32, or 0 to 128.
    pub destination_length: u8,
    /// IPv4's protocol, or IPv6's next header.
    pub protocol: u8,
    /// `protocol` does not matter.
    pub any_protocol: bool,
}

impl AclRule {
    /// Matches every packet.
    pub const ANY: AclRule = AclRule {
        source: [0; 4],
        destination: [0; 4],
        source_ports: [0, u16::MAX],
        destination_ports: [0, u16::MAX],
        source_length: 0,
        destination_length: 0,
        protocol: 0,
        any_protocol: true,
    };
}

/// An IPv4 header without options, and the first four octets behind it.
pub const V4_KEY: usize = 24;
/// An IPv6 header, and the first four octets behind it.
pub const V6_KEY: usize = 44;

/// `rte_acl` over IPv4 5-tuples.
pub type AclV4 = Acl<V4_KEY>;
/// `rte_acl` over IPv6 5-tuples.
pub type AclV6 = Acl<V6_KEY>;

/// `rte_acl` over keys that are the headers of packets, `KEY` octets of each: [`V4_KEY`] or [`V6_KEY`].
#[repr(transparent)]
pub struct Acl<const KEY: usize>(pub(super) *mut c_void);

impl Acl<V4_KEY> {
    /// Builds the list; of rules that match the first one counts. Fails if `name` is in use, or a rule is none of IPv4.
    pub fn new(_: &Eal, name: &str, rules: &[AclRule]) -> Result<Self, Error> {
        build(name, rules, false).map(Acl)
    }
}

impl Acl<V6_KEY> {
    /// Builds the list; of rules that match the first one counts. Fails if `name` is in use.
    pub fn new(_: &Eal, name: &str, rules: &[AclRule]) -> Result<Self, Error> {
        build(name, rules, true).map(Acl)
    }
}

fn build(name: &str, rules: &[AclRule], is_v6: bool) -> Result<*mut c_void, Error> {
    let c_name = CString::new(name).map_err(|_| Error::new(name, "a NUL in the name"))?;
    let n = c_uint::try_from(rules.len()).map_err(|_| Error::new(name, "too many rules"))?;
    // SAFETY: EAL runs, the name is a C string, and `n` rules are there to be read.
    let acl = unsafe { sl_acl(c_name.as_ptr(), rules.as_ptr(), n, is_v6.into()) };
    made(acl, name)
}

impl<const KEY: usize> Acl<KEY> {
    /// Searches in this form from now on. Fails where it is not available ([`AclForm::available`]).
    pub fn choose(&mut self, form: AclForm) -> Result<(), Error> {
        // SAFETY: the list lives, and DPDK checks that the machine has the form.
        done(unsafe { sl_acl_choose(self.0, form as c_int) }, "rte_acl")
    }

    /// Finds for each of up to [`BURST`] keys the number of the first rule that matches, counted from 1; 0: none does.
    #[inline]
    pub fn find(&self, keys: &[[u8; KEY]], found: &mut [u32; BURST]) {
        let n = keys.len().min(BURST) as c_uint;
        let first = keys.as_ptr().cast();
        // SAFETY: `n` keys are there to be read, and `n` results to be written.
        unsafe { sl_acl_find(self.0, first, KEY as c_uint, found.as_mut_ptr(), n) };
    }
}

/// How keys of a burst that are to be looked up in several lists are searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AclCalls {
    /// A search for each key.
    Each,
    /// A search for all keys of each list, which are gathered first.
    Parts,
}

/// Lists of a family, of which a burst's keys need several.
pub struct AclLists<const KEY: usize>(Vec<Acl<KEY>>);

impl<const KEY: usize> AclLists<KEY> {
    /// Fails if there are more than 64 lists, or their number is no power of two.
    pub fn new(lists: Vec<Acl<KEY>>) -> Result<Self, Error> {
        match lists.len() {
            n if n.is_power_of_two() && n <= 64 => Ok(AclLists(lists)),
            n => Err(Error::new("rte_acl", format!("{n} lists"))),
        }
    }

    /// The first list.
    pub fn first(&self) -> &Acl<KEY> {
        &self.0[0]
    }

    /// Searches all lists in this form from now on ([`Acl::choose`]).
    pub fn choose(&mut self, form: AclForm) -> Result<(), Error> {
        self.0.iter_mut().try_for_each(|list| list.choose(form))
    }

    /// Finds for each of up to [`BURST`] keys what [`Acl::find`] would find in its list. `which` names lists, modulo their number.
    #[inline]
    pub fn find(
        &self,
        calls: AclCalls,
        which: &[u8],
        keys: &[[u8; KEY]],
        found: &mut [u32; BURST],
    ) {
        let n = keys.len().min(which.len()).min(BURST) as c_uint;
        let find = match calls {
            AclCalls::Each => sl_acl_find_each,
            AclCalls::Parts => sl_acl_find_parts,
        };
        let (lists, count) = (self.0.as_ptr().cast(), self.0.len() as c_uint);
        let (which, keys, found) = (which.as_ptr(), keys.as_ptr().cast(), found.as_mut_ptr());
        // SAFETY: a list is the pointer to DPDK's, `count` of them live; `n` of each are there to be read, and `n` results to be
        // written.
        unsafe { find(lists, count, which, keys, KEY as c_uint, found, n) };
    }
}

impl<const KEY: usize> Drop for Acl<KEY> {
    fn drop(&mut self) {
        // SAFETY: it is used no more.
        unsafe { sl_acl_free(self.0) }
    }
}
