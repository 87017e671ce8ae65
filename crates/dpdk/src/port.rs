//! Ports: a network card, a Linux interface, capture files, or memory.
use crate::ffi;
use crate::lag::{Lag, MAX_MEMBERS, Spread};
use crate::queue::{DeviceQueue, Queue};
use crate::ring::{Consumer, Producer};
use crate::{Eal, Error, Pool, log};
use core::ffi::c_int;
use core::num::NonZeroU32;
use std::borrow::Cow;
use std::ffi::{CStr, CString};
use std::sync::Arc;

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
/// Descriptors in a receive queue of net_af_xdp: as many as it gives the kernel packets for, whatever is asked for.
const AF_XDP_RX_DESCRIPTORS: u16 = 2048;

/// An open port and its queues. When the port and all its queues are dropped, it is stopped and closed and lets go of its
/// device, which can be opened again then; the driver takes its time for that, so no packet should wait for it. Whatever is
/// asked of a port is asked of this: a number of a port that is closed, which the next one gets, nobody has.
///
/// A port may have several devices, the members of a link aggregation group ([`Port::join`]). All queues have a part at each of them.
#[derive(Debug)]
pub struct Port {
    /// Of a LAG several.
    members: Vec<Member>,
    lag: Option<Arc<Lag>>,
    queues: Vec<Queue>,
    mtu: u16,
    tags: u16,
}

/// A device of a port.
#[derive(Clone, Debug)]
pub struct Member {
    open: Arc<Open>,
    name: String,
    mac: [u8; 6],
}

/// The link of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// It is up.
    pub up: bool,
    /// Its speed in Mbit/s, if it is known.
    pub mbps: Option<NonZeroU32>,
}

/// A port that has to be closed.
#[derive(Debug)]
pub(crate) struct Open(pub u16);

/// What the driver says about a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// The link is up; of a LAG, packets are sent and received by a member at least.
    pub up: bool,
    /// Packets lost because the receive queue was full.
    pub rx_missed: u64,
    /// Packets that arrived damaged.
    pub rx_errors: u64,
    /// Packets lost for want of buffers.
    pub rx_no_buffer: u64,
    /// Frames that came by a member of a LAG from which nothing is received.
    pub unaggregated: u64,
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
    let mut descriptors = match name.starts_with("net_af_xdp") {
        true => AF_XDP_RX_DESCRIPTORS,
        false => RX_DESCRIPTORS,
    };
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
    let queue = |number| {
        Queue::of_device(DeviceQueue {
            id,
            number,
            descriptors: holds.unwrap_or(descriptors.into()),
            rate: (mbps > 0).then(|| u64::from(mbps) * 1_000_000 / SMALLEST),
            // SAFETY: as above.
            socket: Some(unsafe { ffi::sl_socket(id, number) }).filter(|fd| *fd >= 0),
            open: open.clone(),
        })
    };
    let queues = (0..r as u16).map(queue).collect();
    let (mut mac, mut mtu) = ([0; 6], 0);
    // SAFETY: both places may be written.
    let r = unsafe { ffi::sl_describe(id, mac.as_mut_ptr(), &mut mtu) };
    if r < 0 {
        return Err(Error::errno(what, r));
    }
    let name = name.to_owned();
    Ok(Port {
        members: vec![Member { open, name, mac }],
        lag: None,
        queues,
        mtu,
        tags: options.tags,
    })
}

/// The other side of a queue of a port in memory.
#[derive(Debug)]
pub struct MemoryPeer {
    /// What is sent here the port receives.
    pub to_port: Producer,
    /// What the port sent arrives here.
    pub from_port: Consumer,
}

impl Member {
    /// The device's name, the first part of its devargs.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The device's own address.
    pub fn mac(&self) -> [u8; 6] {
        self.mac
    }

    /// The state of its link now.
    pub fn link(&self) -> Link {
        let mut mbps = 0;
        // SAFETY: a word may be written, and the device is open as long as this is.
        let up = unsafe { ffi::sl_link(self.open.0, &mut mbps) > 0 };
        Link {
            up,
            mbps: NonZeroU32::new(mbps),
        }
    }

    fn lost(&self) -> Option<[u64; 3]> {
        let mut lost = [0u64; 3];
        // SAFETY: three words may be written, and the device is open as long as this is.
        let r = unsafe { ffi::sl_lost(self.open.0, lost.as_mut_ptr()) };
        (r >= 0).then_some(lost)
    }

    fn set_mtu(&self, mtu: u16, tags: u16) -> Result<(), Error> {
        log::clear();
        // SAFETY: the device is open as long as this is.
        match unsafe { ffi::sl_set_mtu(self.open.0, mtu, tags) } {
            r if r < 0 => Err(Error::errno(
                format!("an MTU of {mtu} for {}", self.name),
                r,
            )),
            _ => Ok(()),
        }
    }
}

impl Port {
    /// Makes one port of several, whose devices are its members from then on, in this order. Nothing is sent and received by it before
    /// [`Lag::set`]. It has the address of its first member, and as many queues as the member with the fewest.
    ///
    /// # Errors
    /// More than [`MAX_MEMBERS`], or none.
    pub fn join(ports: Vec<Port>, spread: Spread) -> Result<Port, Error> {
        if !(1..=MAX_MEMBERS).contains(&ports.len()) {
            let reason = format!("expected 1 to {MAX_MEMBERS}");
            return Err(Error::new(format!("{} members", ports.len()), reason));
        }
        let lag = Arc::new(Lag::new(ports.len(), spread));
        let mut joined = Port {
            members: Vec::new(),
            lag: Some(lag.clone()),
            queues: Vec::new(),
            mtu: u16::MAX,
            tags: 0,
        };
        let mut of_members = Vec::new();
        for port in ports {
            joined.members.extend(port.members);
            joined.mtu = joined.mtu.min(port.mtu);
            joined.tags = joined.tags.max(port.tags);
            of_members.push(port.queues.into_iter());
        }
        loop {
            let queues: Vec<Queue> = of_members.iter_mut().map_while(Iterator::next).collect();
            if queues.len() < of_members.len() {
                return Ok(joined);
            }
            joined.queues.push(Queue::of_lag(queues, &lag));
        }
    }

    /// The devices: of a LAG its members, else one.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// What the members of a LAG share.
    pub fn lag(&self) -> Option<&Arc<Lag>> {
        self.lag.as_ref()
    }

    /// The names of the devices, each the first part of its devargs.
    pub fn name(&self) -> String {
        let names: Vec<&str> = self.members.iter().map(Member::name).collect();
        names.join("+")
    }

    /// The address of the first device.
    pub fn mac(&self) -> [u8; 6] {
        self.members[0].mac
    }

    /// The largest IP packet that the port takes.
    pub fn mtu(&self) -> u16 {
        self.mtu
    }

    /// Changes the largest payload of a frame, while the queues are polled.
    ///
    /// # Errors
    /// The driver cannot, or not while the port runs. Members before it have the new one then.
    pub fn set_mtu(&self, mtu: u16) -> Result<(), Error> {
        let mut members = self.members.iter();
        members.try_for_each(|member| member.set_mtu(mtu, self.tags))
    }

    /// What the drivers say now, if they say anything.
    pub fn health(&self) -> Option<Health> {
        let lost = self.members.iter().map(Member::lost);
        let lost = lost.reduce(|a, b| {
            a.zip(b)
                .map(|(a, b)| [a[0] + b[0], a[1] + b[1], a[2] + b[2]])
        });
        let [rx_missed, rx_errors, rx_no_buffer] = lost.flatten()?;
        let (up, unaggregated) = match &self.lag {
            Some(lag) => (lag.is_up(), lag.unaggregated()),
            None => (self.members[0].link().up, 0),
        };
        Some(Health {
            up,
            rx_missed,
            rx_errors,
            rx_no_buffer,
            unaggregated,
        })
    }

    /// Takes the queues out, each for a thread of its own.
    pub fn take_queues(&mut self) -> Vec<Queue> {
        core::mem::take(&mut self.queues)
    }

    /// Puts a queue back. That of another port is dropped.
    pub fn put_back(&mut self, queue: Queue) {
        if queue.is_of(&self.members[0].open) {
            self.queues.push(queue);
        }
    }
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
