//! TAP and TUN devices between the kernel and the packet path.
//!
//! A core port has a TAP with the port's own MAC address. The kernel (and FRR on it) owns the port's addresses: ARP, ND, routing
//! protocols, ping. A network instance has a TUN with the gateway's addresses towards subscribers. The exported subscriber
//! prefixes point at this TUN. Both devices are persistent: a restart of the user plane must not take the interface away from
//! FRR's sessions. A supervisor that holds their descriptors meanwhile keeps their carrier up, and the kernel's frames wait for
//! the next process.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::task::{Context, Poll, ready};

use nix::ifaddrs::getifaddrs;
use nix::net::if_::if_nametoindex;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tun_rs::{DeviceBuilder, Layer, SyncDevice};

/// Kind of frames that a device carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Ethernet frames.
    Tap,
    /// IP packets.
    Tun,
}

impl Kind {
    /// Name of the device's descriptor in a supervisor's store.
    pub fn kept_as(self, device: &str) -> String {
        match self {
            Kind::Tap => format!("tap-{device}"),
            Kind::Tun => format!("tun-{device}"),
        }
    }
}

/// An open TAP or TUN.
pub struct Device {
    file: AsyncFd<File>,
    /// Library handle of a device that was opened here.
    opened: Option<SyncDevice>,
    kind: Kind,
    name: String,
    index: u32,
}

impl Device {
    /// Attaches to the device of this name, or creates it. A device created here vanishes with the process until [`Device::keep`]
    /// is called, so that a failed start leaves nothing behind.
    pub fn open(name: &str, kind: Kind) -> io::Result<Self> {
        let layer = match kind {
            Kind::Tap => Layer::L2,
            Kind::Tun => Layer::L3,
        };
        let builder = DeviceBuilder::new()
            .name(name)
            .layer(layer)
            .inherit_enable_state();
        let opened = builder.build_sync()?;
        let file = opened.as_fd().try_clone_to_owned()?;
        Self::new(file, Some(opened), name, kind)
    }

    /// Takes over a device that an earlier run opened and a supervisor has held since.
    ///
    /// # Errors
    /// `InvalidData` if the descriptor is not that of an attached device of this name.
    pub fn take_up(file: OwnedFd, name: &str, kind: Kind) -> io::Result<Self> {
        let about = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd()))?;
        // Only TAPs and TUNs have this line (tun_chr_show_fdinfo).
        let device = about.lines().find_map(|line| line.strip_prefix("iff:"));
        if device.map(str::trim) != Some(name) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("the descriptor that was kept is not that of {name}"),
            ));
        }
        Self::new(file, None, name, kind)
    }

    fn new(file: OwnedFd, opened: Option<SyncDevice>, name: &str, kind: Kind) -> io::Result<Self> {
        fcntl_setfl(&file, fcntl_getfl(&file)? | OFlags::NONBLOCK)?;
        // The AsyncFd owns the descriptor and keeps it open. The newer function `register` (unsafe) asks for just that.
        #[expect(deprecated)]
        let file = AsyncFd::with_interest(File::from(file), Interest::READABLE)?;
        Ok(Self {
            file,
            opened,
            kind,
            name: name.to_owned(),
            index: if_nametoindex(name)?,
        })
    }

    /// Makes the device outlive the process. A device taken over from a supervisor already does.
    pub fn keep(&self) -> io::Result<()> {
        self.opened
            .as_ref()
            .map_or(Ok(()), |device| device.persist())
    }

    /// The kernel's index of the device.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// MAC address of the device in the kernel.
    pub fn mac(&self) -> Option<[u8; 6]> {
        let mut all = getifaddrs().ok()?;
        all.find_map(|one| match one.interface_name == self.name {
            true => one.address?.as_link_addr()?.addr(),
            false => None,
        })
    }

    /// Name of its descriptor in a supervisor's store.
    pub fn kept_as(&self) -> String {
        self.kind.kept_as(&self.name)
    }

    /// Waits until a frame from the kernel can be read.
    pub async fn readable(&self) -> io::Result<()> {
        self.file
            .readable()
            .await
            .map(|mut ready| ready.retain_ready())
    }

    /// Whether a frame from the kernel can be read; if not, the task is woken when one can.
    pub fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.file.poll_read_ready(context))?.retain_ready();
        Poll::Ready(Ok(()))
    }

    /// Reads a frame if one waits.
    pub fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file
            .try_io(Interest::READABLE, |mut file| file.read(buffer))
    }

    /// Hands a frame to the kernel.
    pub fn try_write(&self, frame: &[u8]) -> io::Result<()> {
        self.file.get_ref().write(frame).map(|_| ())
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.get_ref().as_fd()
    }
}
