//! Ports: a network card, a Linux interface, capture files, or memory.
use crate::ffi::{self, sl_rx, sl_tx};
use crate::ring::{Consumer, Producer};
use crate::{BURST, Burst, Eal, Error, Pool, log};
use core::ffi::c_int;
use std::borrow::Cow;
use std::ffi::{CStr, CString};
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::Duration;

/// How a port is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortOptions {
    /// The largest payload of a frame, or as the driver has it.
    pub mtu: Option<u16>,
    /// Octets of VLAN tags that a frame may have beside; 0: the driver's own affair.
    pub tags: u16,
    /// Take frames to any address.
    pub promiscuous: bool,
    /// Queues each way, 1 or more; the port has fewer if its device has. (That of net_af_xdp says with `queue_count=`.)
    pub queues: u16,
}

impl Default for PortOptions {
    fn default() -> Self {
        PortOptions {
            mtu: None,
            tags: 0,
            promiscuous: false,
            queues: 1,
        }
    }
}

/// The most ports that can be open at once (RTE_MAX_ETHPORTS of Debian's DPDK; `c/shim.c` asserts it).
pub const MAX_PORTS: u16 = 32;

/// The names of the drivers that are linked in. A virtual device's name begins with its driver's.
pub fn drivers() -> impl Iterator<Item = &'static str> {
    env!("SLUICE_DPDK_DRIVERS").split(',')
}

/// Bits that the smallest frame takes on a wire: 64 octets, preamble and gap (IEEE 802.3 §4.4.2).
const SMALLEST: u64 = 8 * 84;

/// Descriptors in a queue.
const RX_DESCRIPTORS: u16 = 1024;
const TX_DESCRIPTORS: u16 = 1024;

/// An open port and its queues. When the port and all its queues are dropped, it is stopped and closed and lets go of its
/// device, which can be opened again then; the driver takes its time for that, so no packet should wait for it. Whatever is
/// asked of a port is asked of this: a number of a port that is closed, which the next one gets, nobody has.
#[derive(Debug)]
pub struct Port {
    open: Arc<Open>,
    queues: Vec<Queue>,
    name: String,
    mac: [u8; 6],
    mtu: u16,
    tags: u16,
}

/// A queue each way of an open port, for one thread: polling takes `&mut`.
#[derive(Debug)]
pub struct Queue {
    id: u16,
    number: u16,
    descriptors: u32,
    /// Packets a second of its port.
    rate: Option<u64>,
    /// The kernel's socket below it.
    socket: Option<RawFd>,
    /// The port stays open as long as it has a queue.
    open: Arc<Open>,
}

/// A port that has to be closed.
#[derive(Debug)]
struct Open(u16);

/// What the driver says about a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// The link is up.
    pub up: bool,
    /// Packets lost because the receive queue was full.
    pub rx_missed: u64,
    /// Packets that arrived damaged.
    pub rx_errors: u64,
    /// Packets lost for want of buffers.
    pub rx_no_buffer: u64,
}

impl Eal {
    /// Opens the port that the devargs describe: `0000:03:00.0`, `net_af_xdp0,iface=acc0`,
    /// `net_af_packet0,iface=acc0`, `net_pcap0,rx_pcap=in.pcap,tx_pcap=out.pcap`. While other ports are polled, too.
    ///
    /// # Errors
    /// The device is not there, or is open already, or its driver refuses it; it is left as it was.
    pub fn open_port(
        &self,
        devargs: &str,
        pool: Pool,
        options: &PortOptions,
    ) -> Result<Port, Error> {
        let name = device_name(devargs);
        let what = || format!("port {devargs:?}");
        let c_devargs = CString::new(with_defaults(devargs))
            .map_err(|_| Error::new(what(), "a NUL in the devargs"))?;
        let c_name = CString::new(&*name).map_err(|_| Error::new(what(), "a NUL in the name"))?;
        log::clear();
        if let Some(interface) = missing_interface(devargs) {
            return Err(Error::new(
                what(),
                format!("there is no network interface {interface:?}"),
            ));
        }
        if find(&c_name) >= 0 {
            return Err(Error::new(what(), format!("{name} is open already")));
        }
        // SAFETY: EAL runs, and the devargs are a C string.
        let r = unsafe { ffi::sl_probe(c_devargs.as_ptr()) };
        if r < 0 {
            return Err(Error::errno(what(), r));
        }
        let id = find(&c_name);
        let id = u16::try_from(id).map_err(|_| Error::errno(what(), -libc::ENODEV))?;
        start(id, &name, what(), pool, options, None)
    }

    /// A port in memory, for tests: what a queue's peer sends arrives there, and what is sent there the peer receives. Each
    /// way of a queue holds up to `size` packets.
    pub fn memory_port(
        &self,
        name: &str,
        size: u32,
        pool: Pool,
        queues: u16,
    ) -> Result<(Port, Vec<MemoryPeer>), Error> {
        let what = format!("memory port {name:?}");
        let ring = |way, queue| self.raw_ring(&format!("{name}_{way}{queue}"), size);
        let rings = |way| (0..queues).map(move |queue| ring(way, queue));
        let mut rx = rings("rx").collect::<Result<Vec<_>, _>>()?;
        let mut tx = rings("tx").collect::<Result<Vec<_>, _>>()?;
        let c_name = CString::new(name).map_err(|_| Error::new(&*what, "a NUL in the name"))?;
        let (from, to) = (rx.as_mut_ptr(), tx.as_mut_ptr());
        // SAFETY: EAL runs, there are so many rings each way, and they live for ever.
        let id = unsafe { ffi::sl_ring_port(c_name.as_ptr(), from, to, queues.into()) };
        let id = u16::try_from(id).map_err(|_| Error::errno(&*what, id))?;
        let options = PortOptions {
            queues,
            ..PortOptions::default()
        };
        let port = start(id, name, what, pool, &options, Some(size))?;
        // SAFETY: the port has the other end of each ring, and nobody else has these.
        let peer = |(rx, tx)| unsafe {
            MemoryPeer {
                to_port: Producer::of(rx),
                from_port: Consumer::of(tx),
            }
        };
        Ok((port, rx.into_iter().zip(tx).map(peer).collect()))
    }
}

/// The device that devargs are about, as DPDK names it: `net_af_xdp0`, `0000:03:00.0`. One device can be open once.
///
/// ```
/// assert_eq!(dpdk::device_name("net_af_xdp0,iface=acc0"), "net_af_xdp0");
/// assert_eq!(dpdk::device_name("03:00.0"), "0000:03:00.0");
/// ```
pub fn device_name(devargs: &str) -> Cow<'_, str> {
    let name = devargs.split(',').next().unwrap_or_default();
    match is_pci(name) && name.matches(':').count() == 1 {
        true => format!("0000:{name}").into(),
        false => name.into(),
    }
}

/// Is this the address of a PCI device, like `0000:03:00.0` or `03:00.0`?
fn is_pci(name: &str) -> bool {
    let Some((address, function)) = name.rsplit_once('.') else {
        return false;
    };
    let hex = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_hexdigit());
    hex(function) && address.contains(':') && address.split(':').all(hex)
}

/// Adds what we want otherwise than the driver: net_af_xdp's busy polling makes every poll of an empty queue a system
/// call, which costs an idle worker more than it saves a loaded one.
fn with_defaults(devargs: &str) -> String {
    match devargs.starts_with("net_af_xdp") && !devargs.contains("busy_budget=") {
        true => format!("{devargs},busy_budget=0"),
        false => devargs.to_owned(),
    }
}

/// The number of a port that exists already, or a negative errno.
fn find(name: &CStr) -> i32 {
    // SAFETY: EAL runs, and the name is a C string.
    unsafe { ffi::sl_find_port(name.as_ptr()) }
}

/// The Linux interface that the devargs name, if it does not exist: the drivers' own words for that are not clear.
fn missing_interface(devargs: &str) -> Option<&str> {
    let interface = devargs
        .split(',')
        .find_map(|arg| arg.strip_prefix("iface="))?;
    let c_name = CString::new(interface).ok()?;
    // SAFETY: a C string.
    let index = unsafe { libc::if_nametoindex(c_name.as_ptr()) };
    (index == 0).then_some(interface)
}

/// Starts a port; `holds` is what a queue of it holds, if that is not the descriptors.
fn start(
    id: u16,
    name: &str,
    what: String,
    pool: Pool,
    options: &PortOptions,
    holds: Option<u32>,
) -> Result<Port, Error> {
    let mtu = options.mtu.unwrap_or(0);
    let mut descriptors = RX_DESCRIPTORS;
    let open = Arc::new(Open(id));
    // SAFETY: EAL runs, `id` is a port that nobody polls yet, and the pool lives for ever.
    let r = unsafe {
        ffi::sl_start(
            id,
            pool.0,
            mtu,
            options.tags,
            &mut descriptors,
            TX_DESCRIPTORS,
            options.promiscuous as c_int,
            options.queues,
        )
    };
    if r < 0 {
        return Err(Error::errno(what, r)); // and `open`, dropped, closes it
    }
    // SAFETY: EAL runs; the port is open.
    let mbps = unsafe { ffi::sl_fastest(id) };
    let queue = |number| Queue {
        id,
        number,
        descriptors: holds.unwrap_or(descriptors.into()),
        rate: (mbps > 0).then(|| u64::from(mbps) * 1_000_000 / SMALLEST),
        // SAFETY: as above.
        socket: Some(unsafe { ffi::sl_socket(id, number) }).filter(|fd| *fd >= 0),
        open: open.clone(),
    };
    let mut port = Port {
        queues: (0..r as u16).map(queue).collect(),
        open,
        name: name.to_owned(),
        mac: [0; 6],
        mtu: 0,
        tags: options.tags,
    };
    // SAFETY: both places may be written.
    let r = unsafe { ffi::sl_describe(id, port.mac.as_mut_ptr(), &mut port.mtu) };
    if r < 0 {
        Err(Error::errno(what, r))
    } else {
        Ok(port)
    }
}

/// What a queue took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Packets.
    pub packets: usize,
    /// Their octets.
    pub octets: u64,
}

/// The other side of a queue of a port in memory.
#[derive(Debug)]
pub struct MemoryPeer {
    /// What is sent here the port receives.
    pub to_port: Producer,
    /// What the port sent arrives here.
    pub from_port: Consumer,
}

impl Port {
    /// The device's name, the first part of its devargs.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The device's own address.
    pub fn mac(&self) -> [u8; 6] {
        self.mac
    }

    /// The largest IP packet that the port takes.
    pub fn mtu(&self) -> u16 {
        self.mtu
    }

    /// Changes the largest payload of a frame, while the queues are polled.
    ///
    /// # Errors
    /// The driver cannot, or not while the port runs.
    pub fn set_mtu(&self, mtu: u16) -> Result<(), Error> {
        log::clear();
        // SAFETY: the port is open as long as this is.
        match unsafe { ffi::sl_set_mtu(self.open.0, mtu, self.tags) } {
            r if r < 0 => Err(Error::errno(format!("an MTU of {mtu}"), r)),
            _ => Ok(()),
        }
    }

    /// What the driver says now, if it says anything.
    pub fn health(&self) -> Option<Health> {
        let mut c = [0u64; 3];
        // SAFETY: three words may be written, and the port is open as long as this is.
        let r = unsafe { ffi::sl_health(self.open.0, c.as_mut_ptr()) };
        (r >= 0).then(|| Health {
            up: r > 0,
            rx_missed: c[0],
            rx_errors: c[1],
            rx_no_buffer: c[2],
        })
    }

    /// Takes the queues out, each for a thread of its own.
    pub fn take_queues(&mut self) -> Vec<Queue> {
        core::mem::take(&mut self.queues)
    }

    /// Puts a queue back. That of another port is dropped.
    pub fn put_back(&mut self, queue: Queue) {
        if Arc::ptr_eq(&queue.open, &self.open) {
            self.queues.push(queue);
        }
    }
}

impl Queue {
    /// Packets that wait here at most until they are received.
    pub fn descriptors(&self) -> u32 {
        self.descriptors
    }

    /// Packets that come in a second at most, by the fastest link that its port can have; `None`: its driver does not say.
    pub fn rate(&self) -> Option<u64> {
        self.rate
    }

    /// Whether a packet that comes ends [`await_packets`].
    pub fn wakes(&self) -> bool {
        self.socket.is_some()
    }

    /// Receives up to [`BURST`] packets in place of those that `burst` had, and starts fetching their headers.
    #[inline]
    pub fn rx(&mut self, burst: &mut Burst) -> usize {
        // SAFETY: the queue is polled by its one owner; the driver writes as many mbufs as it says, and they are ours.
        let n = unsafe { burst.fill(|m| sl_rx(self.id, self.number, m, BURST as u16) as usize) };
        burst.fetch();
        n
    }

    /// Sends what the queue takes; the rest stays in the burst, for the caller to send later or to drop.
    #[inline]
    pub fn tx(&mut self, burst: &mut Burst) -> Sent {
        // SAFETY: the queue is used by its one owner, and the driver owns what it says it took.
        unsafe { burst.drain(|m, n| sl_tx(self.id, self.number, m, n as u16) as usize) }
    }
}

/// Sleeps for so long at most, and until a packet has come to one of the queues that [wake](Queue::wakes).
pub fn await_packets<'a>(queues: impl Iterator<Item = &'a Queue>, most: Duration) {
    const NONE: libc::pollfd = libc::pollfd {
        fd: -1,
        events: libc::POLLIN,
        revents: 0,
    };
    let mut sockets = [NONE; MAX_PORTS as usize];
    let waking = queues.filter_map(|queue| queue.socket);
    let mut n = 0;
    for (socket, fd) in sockets.iter_mut().zip(waking) {
        socket.fd = fd;
        n += 1;
    }
    let most = libc::timespec {
        tv_sec: most.as_secs() as libc::time_t,
        tv_nsec: most.subsec_nanos().into(),
    };
    // SAFETY: so many places; the sockets are open, because their queues are borrowed. A signal ends the sleep: that is no harm.
    unsafe { libc::ppoll(sockets.as_mut_ptr(), n, &most, core::ptr::null()) };
}

impl Drop for Open {
    fn drop(&mut self) {
        // SAFETY: there is no queue any more by which it could be polled, and it is closed once.
        unsafe { ffi::sl_close(self.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pci_addresses_are_told_from_virtual_devices() {
        for yes in ["0000:03:00.0", "03:00.1", "0000:af:1f.7"] {
            assert!(is_pci(yes), "{yes}");
        }
        for no in ["net_af_xdp0", "net_ring0", "", "a.b"] {
            assert!(!is_pci(no), "{no}");
        }
        assert_eq!(device_name("0000:af:1f.7,queues=2"), "0000:af:1f.7");
    }
}
