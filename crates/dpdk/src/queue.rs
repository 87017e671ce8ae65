//! Queues of ports: what one thread receives and sends by.
use crate::ffi::{sl_rx, sl_tx};
use crate::lag::{Lag, LagQueue};
use crate::port::{MAX_PORTS, Open};
use crate::{BURST, Burst};
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::Duration;

/// A queue each way of an open port, for one thread: polling takes `&mut`.
#[derive(Debug)]
pub struct Queue {
    /// At its device, or at the first member of a LAG.
    first: DeviceQueue,
    lag: Option<Box<LagQueue>>,
}

/// A queue each way of a device.
#[derive(Debug)]
pub(crate) struct DeviceQueue {
    pub id: u16,
    pub number: u16,
    pub descriptors: u32,
    /// Packets a second of its device.
    pub rate: Option<u64>,
    /// The kernel's socket below it.
    pub socket: Option<RawFd>,
    /// The device stays open as long as it has a queue.
    pub open: Arc<Open>,
}

/// What a queue took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Packets.
    pub packets: usize,
    /// Their octets.
    pub octets: u64,
    /// Packets that were dropped, since the member of a LAG by which they leave is full and others are not.
    pub dropped: usize,
}

impl core::ops::AddAssign for Sent {
    fn add_assign(&mut self, other: Sent) {
        self.packets += other.packets;
        self.octets += other.octets;
        self.dropped += other.dropped;
    }
}

impl DeviceQueue {
    /// Receives up to [`BURST`] packets in place of those that `burst` had.
    #[inline(always)]
    pub fn rx(&mut self, burst: &mut Burst) -> usize {
        // SAFETY: the queue is polled by its one owner; the driver writes as many mbufs as it says, and they are ours.
        unsafe { burst.fill(|m| sl_rx(self.id, self.number, m, BURST as u16) as usize) }
    }

    /// Sends what the device takes; the rest stays in the burst.
    #[inline(always)]
    pub fn tx(&mut self, burst: &mut Burst) -> Sent {
        // SAFETY: the queue is used by its one owner, and the driver owns what it says it took.
        unsafe { burst.drain(|m, n| sl_tx(self.id, self.number, m, n as u16) as usize) }
    }
}

impl Queue {
    pub(crate) fn of_device(first: DeviceQueue) -> Queue {
        Queue { first, lag: None }
    }

    /// One of queues of devices, which are members.
    pub(crate) fn of_lag(queues: Vec<Queue>, lag: &Arc<Lag>) -> Queue {
        let mut queues = queues.into_iter().map(|queue| queue.first);
        let first = queues.next().expect("a LAG has members");
        let lag = LagQueue::new(queues.collect(), lag.clone());
        Queue {
            first,
            lag: Some(Box::new(lag)),
        }
    }

    /// Whether it is a queue of the port whose first device this is.
    pub(crate) fn is_of(&self, first: &Arc<Open>) -> bool {
        Arc::ptr_eq(&self.first.open, first)
    }

    /// At each of the port's devices.
    fn devices(&self) -> impl Iterator<Item = &DeviceQueue> {
        let others = self.lag.iter().flat_map(|lag| lag.others());
        core::iter::once(&self.first).chain(others)
    }

    /// Packets that wait here at most until they are received, at the device that holds the fewest.
    pub fn descriptors(&self) -> u32 {
        let devices = self.devices().map(|device| device.descriptors);
        devices.min().unwrap_or_default()
    }

    /// Packets that come in a second at most to a device, by the fastest link that it can have; `None`: a driver does not say.
    pub fn rate(&self) -> Option<u64> {
        let rates = self.devices().map(|device| device.rate);
        rates.reduce(|a, b| Some(a?.max(b?))).flatten()
    }

    /// Whether a packet that comes ends [`await_packets`].
    pub fn wakes(&self) -> bool {
        self.devices().all(|device| device.socket.is_some())
    }

    /// Receives up to [`BURST`] packets in place of those that `burst` had, and starts fetching their headers.
    #[inline]
    pub fn rx(&mut self, burst: &mut Burst) -> usize {
        let n = match &mut self.lag {
            None => self.first.rx(burst),
            Some(lag) => lag.rx(&mut self.first, burst),
        };
        burst.fetch();
        n
    }

    /// Sends what the queue takes; the rest stays in the burst, for the caller to send later or to drop.
    #[inline]
    pub fn tx(&mut self, burst: &mut Burst) -> Sent {
        match &mut self.lag {
            None => self.first.tx(burst),
            Some(lag) => lag.tx(&mut self.first, burst),
        }
    }

    /// Sends each packet by the member of the LAG that [`Mbuf::set_member`](crate::Mbuf::set_member) says, whether or not others are sent
    /// by it.
    #[cold]
    pub fn tx_by_member(&mut self, burst: &mut Burst) -> Sent {
        match &mut self.lag {
            None => self.first.tx(burst),
            Some(lag) => lag.tx_by_member(&mut self.first, burst),
        }
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
    let waking = queues
        .flat_map(Queue::devices)
        .filter_map(|device| device.socket);
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
