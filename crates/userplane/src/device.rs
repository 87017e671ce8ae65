//! TAP and TUN devices: where the kernel and the packet path meet.
//!
//! A core port has a TAP with the port's own MAC, so that the kernel (and FRR on it) owns
//! the port's addresses: ARP, ND, routing protocols, ping. A network instance has a TUN
//! that carries the gateway's addresses towards subscribers, and that the exported
//! subscriber nets point at. Both are persistent: a restart of the user plane must not
//! take the interface from under FRR's sessions.

use std::io;
use std::task::{Context, Poll};

use tun_rs::{AsyncDevice, DeviceBuilder, Layer};

/// Which kind of frames a device carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Ethernet frames.
    Tap,
    /// IP packets.
    Tun,
}

/// An open TAP or TUN.
pub struct Device {
    inner: AsyncDevice,
    name: String,
    index: u32,
}

impl Device {
    /// Attaches to the device of this name, or makes it. Until [`Device::keep`] is called
    /// a device made here vanishes with the process, so that a start that fails leaves
    /// nothing behind.
    pub fn open(name: &str, kind: Kind) -> io::Result<Self> {
        let layer = match kind {
            Kind::Tap => Layer::L2,
            Kind::Tun => Layer::L3,
        };
        let builder = DeviceBuilder::new()
            .name(name)
            .layer(layer)
            .inherit_enable_state();
        let inner = builder.build_async()?;
        let index = inner.if_index()?;
        Ok(Self {
            inner,
            name: name.to_owned(),
            index,
        })
    }

    /// Makes the device outlive the process.
    pub fn keep(&self) -> io::Result<()> {
        self.inner.persist()
    }

    /// The kernel's index of the device.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Waits until a frame of the kernel can be read.
    pub async fn readable(&self) -> io::Result<()> {
        self.inner.readable().await
    }

    /// Whether a frame of the kernel can be read; if not, the task is woken when one can.
    pub fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner.poll_readable(context)
    }

    /// Reads a frame if there is one.
    pub fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner.try_recv(buffer)
    }

    /// Hands a frame to the kernel.
    pub fn try_write(&self, frame: &[u8]) -> io::Result<()> {
        self.inner.try_send(frame).map(|_| ())
    }
}
