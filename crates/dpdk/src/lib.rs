//! A thin, safe face of DPDK for a packet path that runs to completion.
//!
//! **What lives here:** EAL's start, pools of packet buffers, ports, rings between threads, memory for large
//! tables, and bursts of packets with the passes that a node makes over one. The C side is `c/shim.c`.
//! **Who may call it:** `dataplane`, and whoever opens its ports. Every `unsafe` of the packet path is in this crate.
//!
//! The rules that make it safe:
//! 1. A [`Burst`] or an [`Mbuf`] is the only owner of its packets: no `Clone`, no `Copy`; dropping it frees them.
//! 2. A [`Window`] exists only for a packet with one owner and one segment, inside its own buffer.
//! 3. Packets of a burst are lent to a closure one at a time; they cannot be kept.
//! 4. Each end of a queue has one owner. Pools, rings and EAL are never freed.
//!
//! ```no_run
//! use dpdk::*;
//! # fn main() -> Result<(), Error> {
//! let eal = Eal::start(&EalOptions::default())?;
//! let pool = eal.pool("packets", 16384)?;
//! let mut port = eal.open_port("net_af_xdp0,iface=acc0", pool, &PortOptions::default())?;
//! let mut queue = port.take_queues().remove(0);
//! let (mut burst, mut outs, mut rest) = (Burst::new(), TxBuffers::new(1), Exits::default());
//! loop {
//!     queue.rx(&mut burst);
//!     // Send IPv4 packets back where they came from.
//!     let seen = burst.look(&mut rest, |w, _| w.u16(HEAD + 12));
//!     seen.act(&mut outs, &mut rest, |_| (), |ethertype, mut packet| {
//!         if ethertype != 0x0800 { return packet.leave("not IPv4") }
//!         let w = packet.window();
//!         let (to, from) = (w.u64(HEAD) >> 16, w.u64(HEAD + 6) >> 16);
//!         w.put64(HEAD, from << 16 | to >> 32);
//!         w.put32(HEAD + 8, to as u32);
//!         let len = packet.len() as u32;
//!         packet.send(0, HEAD as u32, len)
//!     });
//!     queue.tx(outs.get(0));
//!     rest.settle(|why, packet| {
//!         println!("{why}: {} bytes", packet.data().len());
//!         Some(packet)
//!     });
//! }
//! # }
//! ```

mod ahead;
mod burst;
mod chain;
mod eal;
mod ffi;
mod lag;
mod log;
mod mbuf;
mod memory;
#[cfg(feature = "peers")]
pub mod peers;
mod pool;
mod port;
mod queue;
mod ring;
mod window;

pub use ahead::{Lines, prefetch, prefetch_early};
pub use burst::{BURST, Burst, Exits, Gone, Packet, Seen, TxBuffers};
pub use chain::Chain;
pub use eal::{Eal, EalOptions, Registered, tsc, tsc_hz};
pub use lag::{Lag, MAX_MEMBERS, Spread};
pub use log::take_log;
pub use mbuf::Mbuf;
pub use memory::{Number, Pages, Table, Words, Zeroed, large_pages, popcount};
pub use pool::Pool;
pub use port::{
    Health, Link, MAX_PORTS, Member, MemoryPeer, Port, PortOptions, device_name, drivers,
};
pub use queue::{Queue, Sent, await_packets};
pub use ring::{Consumer, Producer};
pub use window::{HEAD, WINDOW, Window};

/// What could not be had, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {reason}")]
pub struct Error {
    /// What was asked for.
    pub what: String,
    /// Why it failed: the system's word for it and what DPDK logged.
    pub reason: String,
}

impl Error {
    fn new(what: impl Into<String>, reason: impl Into<String>) -> Self {
        Error {
            what: what.into(),
            reason: reason.into(),
        }
    }

    /// From a negative errno, explained by the end of DPDK's log. Drivers say -1 for whatever went wrong.
    fn errno(what: impl Into<String>, r: i32) -> Self {
        let word = match r {
            -1 => "refused by the driver".to_owned(),
            _ => std::io::Error::from_raw_os_error(r.abs()).to_string(),
        };
        match log::tail(3) {
            log if log.is_empty() => Error::new(what, word),
            log => Error::new(what, format!("{word} ({log})")),
        }
    }

    /// From `rte_errno`.
    fn last(what: impl Into<String>) -> Self {
        // SAFETY: reads a word of this thread.
        Error::errno(what, unsafe { ffi::sl_errno() })
    }
}
