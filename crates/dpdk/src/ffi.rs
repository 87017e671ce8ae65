//! The C side as Rust sees it: the shim's functions and the first cache line of an mbuf.
use core::ffi::{c_char, c_int, c_uint, c_void};

/// First cache line of `struct rte_mbuf`; `c/shim.c` asserts the offsets.
#[repr(C, align(64))]
pub(crate) struct RawMbuf {
    pub buf: *mut u8,
    iova: u64,
    pub off: u16,
    pub refcnt: u16,
    pub segs: u16,
    /// Drivers write a number of their own here, or nothing: room for the member of a LAG that a packet came or goes by.
    pub member: u16,
    /// The lower half and the upper one.
    pub flags: [u32; 2],
    /// Drivers write it when they receive and do not read it when they send: room for a number while the packet waits.
    pub stamp: u32,
    pub pkt_len: u32,
    pub len: u16,
    vlan: u16,
    /// The receive hash, which we do not use: room for two words of our own.
    pub meta: [u32; 2],
    /// Drivers read it only if the flags say so, which ours never do: room for a number beside the packet.
    pub note: u16,
    pub buf_len: u16,
    pool: *mut c_void,
}

const _: () = {
    assert!(size_of::<RawMbuf>() == 64);
    assert!(core::mem::offset_of!(RawMbuf, member) == 22);
    assert!(core::mem::offset_of!(RawMbuf, meta) == 44);
    assert!(core::mem::offset_of!(RawMbuf, buf_len) == 54);
};

pub(crate) type M = *mut RawMbuf;

unsafe extern "C" {
    pub(crate) fn sl_rx(port: u16, queue: u16, m: *mut M, n: u16) -> u16;
    pub(crate) fn sl_tx(port: u16, queue: u16, m: *mut M, n: u16) -> u16;
    pub(crate) fn sl_free(m: *mut M, n: c_uint);
    pub(crate) fn sl_alloc(pool: *mut c_void) -> M;
    pub(crate) fn sl_alloc_bulk(pool: *mut c_void, m: *mut M, n: c_uint) -> c_int;
    pub(crate) fn sl_enqueue(ring: *mut c_void, m: *mut M, n: c_uint) -> c_uint;
    pub(crate) fn sl_dequeue(ring: *mut c_void, m: *mut M, n: c_uint) -> c_uint;
    pub(crate) fn sl_ring_count(ring: *mut c_void) -> c_uint;
    pub(crate) fn sl_pool_free(pool: *mut c_void) -> c_uint;
    pub(crate) fn sl_chain(head: M, tail: M) -> c_int;
    pub(crate) fn sl_eal(argc: c_int, argv: *mut *mut c_char) -> c_int;
    pub(crate) fn sl_register_thread() -> c_int;
    pub(crate) fn sl_unregister_thread();
    pub(crate) fn sl_tsc_hz() -> u64;
    pub(crate) fn sl_pool(name: *const c_char, n: c_uint, cache: c_uint) -> *mut c_void;
    pub(crate) fn sl_ring(name: *const c_char, n: c_uint) -> *mut c_void;
    pub(crate) fn sl_ring_free(ring: *mut c_void);
    pub(crate) fn sl_errno() -> c_int;
    pub(crate) fn sl_find_port(name: *const c_char) -> c_int;
    pub(crate) fn sl_probe(devargs: *const c_char) -> c_int;
    pub(crate) fn sl_ring_port(
        name: *const c_char,
        rx: *mut *mut c_void,
        tx: *mut *mut c_void,
        queues: c_uint,
    ) -> c_int;
    pub(crate) fn sl_start(
        port: u16,
        pool: *mut c_void,
        mtu: u16,
        tags: u16,
        rx: *mut u16,
        tx: u16,
        promiscuous: c_int,
        queues: u16,
    ) -> c_int;
    pub(crate) fn sl_describe(port: u16, mac: *mut u8, mtu: *mut u16) -> c_int;
    pub(crate) fn sl_fastest(port: u16) -> u32;
    pub(crate) fn sl_socket(port: u16, queue: u16) -> c_int;
    pub(crate) fn sl_set_mtu(port: u16, mtu: u16, tags: u16) -> c_int;
    pub(crate) fn sl_close(port: u16);
    pub(crate) fn sl_link(port: u16, mbps: *mut u32) -> c_int;
    pub(crate) fn sl_lost(port: u16, out: *mut u64) -> c_int;
}
