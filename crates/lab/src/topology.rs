//! The lab's network: a namespace for each of its parts, and what joins them.
//!
//! ```text
//!  sluice-access1           sluice-up1                            sluice-inet
//!  TAP of the homes ─┐
//!  TAP of a VM ──────┤ bridge ── access ═ access0 │ core0 ═ core-up1 ┐
//!                    ┘                            mgmt0              │ the host: 198.51.100.2,
//!                                       192.0.2.2 ║                  │ 2001:db8:ffff::2
//!                                       192.0.2.1 ║                  │
//!                                              mgmt-up1              │
//!                                                     sluice-cp      │
//!                                              mgmt-up2              │
//!                                  2001:db8:2::1  ║                  │
//!                                  2001:db8:2::2  ║                  │
//!  sluice-access2           sluice-up2            mgmt0              │
//!  the same again      bridge ── access ═ access0 │ core0 ═ core-up2 ┘
//! ```
//!
//! `access0` and `core0` are a user plane's ports (AF_XDP); the gateway's own core addresses live on the TAP that
//! the user plane makes for `core0`. The internet host stands for a router too: it follows the nets that user planes
//! announce ([`crate::routes`]).

use crate::claim::{Claim, directory, remove};
use crate::netns::Netns;
use anyhow::{Context, Result, ensure};
use ipnet::{Ipv4Net, Ipv6Net};
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tun_rs::{DeviceBuilder, Layer, SyncDevice};

/// The control plane's management address over IPv4, which the first user plane is reached by.
pub const CP_MANAGEMENT_V4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// The control plane's management address over IPv6, which the second user plane is reached by.
pub const CP_MANAGEMENT_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 1);
/// The internet host's address.
pub const INTERNET_V4: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 2);
/// A core link's IPv4 prefix length.
pub const CORE_V4_LEN: u8 = 24;
/// The internet host's address.
pub const INTERNET_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 2);
/// A core link's IPv6 prefix length.
pub const CORE_V6_LEN: u8 = 64;
/// Where the subscribers' IPv4 addresses come from.
pub const SUBSCRIBERS_V4: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(100, 64, 0, 0), 16);
/// Where the subscribers' IPv6 prefixes come from.
pub const SUBSCRIBERS_V6: Ipv6Net =
    Ipv6Net::new_assert(Ipv6Addr::new(0x2001, 0xdb8, 0x100, 0, 0, 0, 0, 0), 40);
/// Where the prefixes come from that are delegated to the subscribers' routers.
pub const DELEGATED_V6: Ipv6Net =
    Ipv6Net::new_assert(Ipv6Addr::new(0x2001, 0xdb8, 0x4000, 0, 0, 0, 0, 0), 36);
/// The user plane's port towards the subscribers.
pub const ACCESS_PORT: &str = "access0";
/// The user plane's port towards the internet.
pub const CORE_PORT: &str = "core0";

/// Two tags, PPPoE and PPP around an IP packet of 1492 octets make 1522; AF_XDP on veth ends near 3,500.
const ACCESS_MTU: u16 = 1600;
/// GTP-U, NSH and the outer headers around a frame of [`ACCESS_MTU`].
const MANAGEMENT_MTU: u16 = 1800;
/// Frames that may wait on a TAP for its reader; the kernel drops what is beyond.
const TAP_QUEUE: u32 = 8192;
/// How long the bridge may take to forward frames of a new port.
const CARRIER: Duration = Duration::from_secs(10);
/// The access network's bridge.
const BRIDGE: &str = "bridge";

/// A user plane of the lab, with an access network and a core link of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UserPlane {
    /// `up1`: its PFCP and GTP-U go over IPv4.
    One,
    /// `up2`: its PFCP and GTP-U go over IPv6.
    Two,
}

impl UserPlane {
    /// All of them.
    pub const ALL: [UserPlane; 2] = [UserPlane::One, UserPlane::Two];

    /// Its PFCP Node ID, and the name of its files.
    pub const fn name(self) -> &'static str {
        match self {
            UserPlane::One => "up1",
            UserPlane::Two => "up2",
        }
    }

    /// Its management address.
    pub const fn management(self) -> IpAddr {
        match self {
            UserPlane::One => IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2)),
            UserPlane::Two => IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 2)),
        }
    }

    /// The control plane's address on its management link.
    pub const fn control_plane(self) -> IpAddr {
        match self {
            UserPlane::One => IpAddr::V4(CP_MANAGEMENT_V4),
            UserPlane::Two => IpAddr::V6(CP_MANAGEMENT_V6),
        }
    }

    /// The control plane's end of its management link.
    pub const fn management_link(self) -> &'static str {
        match self {
            UserPlane::One => "mgmt-up1",
            UserPlane::Two => "mgmt-up2",
        }
    }

    /// The gateway's own address on its core link.
    pub const fn core_v4(self) -> Ipv4Addr {
        match self {
            UserPlane::One => Ipv4Addr::new(198, 51, 100, 1),
            UserPlane::Two => Ipv4Addr::new(203, 0, 113, 1),
        }
    }

    /// The gateway's own address on its core link.
    pub const fn core_v6(self) -> Ipv6Addr {
        match self {
            UserPlane::One => Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 1),
            UserPlane::Two => Ipv6Addr::new(0x2001, 0xdb8, 0xfffd, 0, 0, 0, 0, 1),
        }
    }

    /// The internet host's address on its core link.
    pub const fn internet_v4(self) -> Ipv4Addr {
        match self {
            UserPlane::One => INTERNET_V4,
            UserPlane::Two => Ipv4Addr::new(203, 0, 113, 2),
        }
    }

    /// The internet host's address on its core link.
    pub const fn internet_v6(self) -> Ipv6Addr {
        match self {
            UserPlane::One => INTERNET_V6,
            UserPlane::Two => Ipv6Addr::new(0x2001, 0xdb8, 0xfffd, 0, 0, 0, 0, 2),
        }
    }

    /// The internet host's end of its core link.
    pub const fn core_link(self) -> &'static str {
        match self {
            UserPlane::One => "core-up1",
            UserPlane::Two => "core-up2",
        }
    }
}

/// The parts of the lab, each in a namespace of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The bridge that carries the frames of a user plane's homes, and their TAPs.
    Access(UserPlane),
    /// `sluice-up`.
    UserPlane(UserPlane),
    /// `sluice-cp` and whatever it asks, such as a RADIUS server.
    ControlPlane,
    /// The host that stands for the internet.
    Internet,
}

impl Place {
    /// All of them.
    pub const ALL: [Place; 6] = [
        Place::Access(UserPlane::One),
        Place::Access(UserPlane::Two),
        Place::UserPlane(UserPlane::One),
        Place::UserPlane(UserPlane::Two),
        Place::ControlPlane,
        Place::Internet,
    ];

    const fn word(self) -> &'static str {
        match self {
            Place::Access(UserPlane::One) => "access1",
            Place::Access(UserPlane::Two) => "access2",
            Place::UserPlane(up) => up.name(),
            Place::ControlPlane => "cp",
            Place::Internet => "inet",
        }
    }

    /// The namespace of this part in the lab `name`.
    pub(super) fn netns(self, name: &str) -> Netns {
        match name {
            "" => Netns::named(format!("sluice-{}", self.word())),
            name => Netns::named(format!("sluice-{}-{name}", self.word())),
        }
    }
}

/// A lab's network, made anew; removed by [`Lab::close`] or when dropped.
#[derive(Debug)]
pub struct Lab {
    places: [Netns; 6],
    dir: PathBuf,
    ended: Vec<i32>,
    cleared: bool,
    /// Held as long as the lab exists, so that two labs of one name never meet.
    claim: Claim,
}

impl Lab {
    /// Clears away what an earlier run under this name left and builds the network.
    ///
    /// The name tells labs side by side apart; the empty one is `sluice lab`'s own.
    pub fn new(name: &str) -> Result<Self> {
        Self::claimed(Claim::of(name)?)
    }

    /// Builds the network of the first of the labs `FAMILY-1`, `FAMILY-2` and so on that nobody has.
    pub fn numbered(family: &str) -> Result<Self> {
        Self::claimed(Claim::numbered(family)?)
    }

    /// A lab that belongs to this one: whatever clears this one away clears it away too.
    pub fn part(&self, word: &str) -> Result<Self> {
        Self::new(&self.part_name(word))
    }

    /// The name of a lab that belongs to this one.
    pub fn part_name(&self, word: &str) -> String {
        format!("{}.{word}", self.name())
    }

    fn claimed(claim: Claim) -> Result<Self> {
        let ended = claim.clear()?;
        let lab = Lab {
            places: Place::ALL.map(|place| place.netns(claim.name())),
            dir: directory(claim.name()),
            ended,
            cleared: false,
            claim,
        };
        lab.build()?;
        Ok(lab)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.claim.name()
    }

    /// The namespace of a part.
    pub fn netns(&self, place: Place) -> &Netns {
        let index = match place {
            Place::Access(up) => up as usize,
            Place::UserPlane(up) => UserPlane::ALL.len() + up as usize,
            Place::ControlPlane => 4,
            Place::Internet => 5,
        };
        &self.places[index]
    }

    /// The lab's directory: configuration, sockets, logs, pid files and the store.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The processes of an earlier run that had to be ended first.
    pub fn leftovers(&self) -> &[i32] {
        &self.ended
    }

    /// A TAP on the access bridge of a user plane: frames written to it arrive at the gateway's access port, tags as they are.
    pub fn tap(&self, up: UserPlane, name: &str) -> Result<SyncDevice> {
        let access = self.netns(Place::Access(up));
        let tap = access.within(|| -> Result<SyncDevice> {
            let tap = DeviceBuilder::new()
                .name(name)
                .layer(Layer::L2)
                .mtu(ACCESS_MTU)
                .enable(false)
                .with(|linux| {
                    linux.offload(false);
                })
                .build_sync()?;
            tap.set_tx_queue_len(TAP_QUEUE)?;
            tap.set_nonblocking(true)?;
            Ok(tap)
        })?;
        let tap = tap.with_context(|| format!("cannot make the TAP {name}"))?;
        access.silence(&[name])?;
        access.offloads_off(name)?;
        access.ip(&format!("link set {name} master {BRIDGE} up"))?;
        Ok(tap)
    }

    /// An Ethernet interface in a user plane's access network, made anew, for a program that opens it as it would open a network
    /// card: frames sent on it arrive at the gateway's access port, tags as they are.
    pub fn access_interface(&self, up: UserPlane, name: &str) -> Result<()> {
        let (access, far) = (self.netns(Place::Access(up)), format!("{name}-far"));
        if access.run(&["ip", "link", "show", name]).is_ok() {
            access.ip(&format!("link del {name}"))?;
        }
        access.ip(&format!(
            "link add {name} mtu {ACCESS_MTU} type veth peer name {far} mtu {ACCESS_MTU}"
        ))?;
        access.silence(&[name, &far])?;
        access.offloads_off(name)?;
        access.offloads_off(&far)?;
        access.ip(&format!(
            "link set {far} master {BRIDGE} up\nlink set {name} up"
        ))?;
        // The bridge hears of a carrier a little later, and drops frames until then.
        let forwards = || {
            let shown = access.run(&["ip", "-d", "link", "show", "dev", &far]);
            shown.is_ok_and(|shown| shown.contains("state forwarding"))
        };
        let start = Instant::now();
        while !forwards() {
            ensure!(start.elapsed() < CARRIER, "{far} does not forward");
            sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// A persistent TAP on the access bridge of a user plane, for another program to open, such as a virtual machine.
    pub fn persistent_tap(&self, up: UserPlane, name: &str) -> Result<()> {
        let access = self.netns(Place::Access(up));
        access.ip(&format!("tuntap add {name} mode tap"))?;
        access.silence(&[name])?;
        access.offloads_off(name)?;
        access.ip(&format!(
            "link set {name} mtu {ACCESS_MTU} master {BRIDGE} up"
        ))
    }

    /// Gives a user plane its default routes by the internet host; its core link must have its addresses by now.
    pub fn default_routes(&self, up: UserPlane) -> Result<()> {
        default_routes(self.netns(Place::UserPlane(up)), up)
    }

    /// Removes the namespaces and the directory. Processes inside must have ended.
    pub fn close(mut self) -> Result<()> {
        self.clear()?;
        fs::remove_dir_all(&self.dir)
            .with_context(|| format!("cannot remove {}", self.dir.display()))
    }

    /// Removes the namespaces and keeps the directory with its logs.
    pub fn close_keeping_logs(mut self) -> Result<PathBuf> {
        self.clear()?;
        Ok(self.dir.clone())
    }

    fn clear(&mut self) -> Result<()> {
        // Once its directory is gone somebody else may have the name.
        if !std::mem::replace(&mut self.cleared, true) {
            remove(&self.places)?;
        }
        Ok(())
    }

    fn build(&self) -> Result<()> {
        for place in &self.places {
            place.create()?;
        }
        for up in UserPlane::ALL {
            let kernel = self.netns(Place::UserPlane(up));
            kernel.without_duplicate_detection()?;
            self.access_link(up)?;
            self.core_link(up)?;
            self.management_link(up)?;
        }
        Ok(())
    }

    fn access_link(&self, up: UserPlane) -> Result<()> {
        let access = self.netns(Place::Access(up));
        let up = self.netns(Place::UserPlane(up));
        access.ip(&format!(
            "link add {BRIDGE} type bridge stp_state 0 mcast_snooping 0\n\
             link add access mtu {ACCESS_MTU} type veth peer name {ACCESS_PORT} mtu {ACCESS_MTU} netns {}\n",
            up.name()
        ))?;
        access.silence(&[BRIDGE, "access"])?;
        up.silence(&[ACCESS_PORT])?;
        access.offloads_off("access")?;
        up.offloads_off(ACCESS_PORT)?;
        access.ip(&format!(
            "link set {BRIDGE} mtu {ACCESS_MTU} up\nlink set access master {BRIDGE} up\n"
        ))?;
        up.ip(&format!("link set {ACCESS_PORT} up"))
    }

    fn core_link(&self, up: UserPlane) -> Result<()> {
        let (internet, core) = (self.netns(Place::Internet), up.core_link());
        let (four, six) = (up.internet_v4(), up.internet_v6());
        let up = self.netns(Place::UserPlane(up));
        up.ip(&format!(
            "link add {CORE_PORT} type veth peer name {core} netns {}",
            internet.name()
        ))?;
        up.silence(&[CORE_PORT])?;
        up.offloads_off(CORE_PORT)?;
        internet.offloads_off(core)?;
        up.ip(&format!("link set {CORE_PORT} up"))?;
        internet.ip(&format!(
            "addr add {four}/{CORE_V4_LEN} dev {core}\n\
             addr add {six}/{CORE_V6_LEN} dev {core} nodad\n\
             link set {core} up\n"
        ))
    }

    fn management_link(&self, up: UserPlane) -> Result<()> {
        let (own, theirs, link) = (up.management(), up.control_plane(), up.management_link());
        let (length, nodad) = match own {
            IpAddr::V4(_) => (24, ""),
            IpAddr::V6(_) => (64, "nodad"),
        };
        let (up, cp) = (
            self.netns(Place::UserPlane(up)),
            self.netns(Place::ControlPlane),
        );
        cp.ip(&format!(
            "link add {link} mtu {MANAGEMENT_MTU} type veth peer name mgmt0 mtu {MANAGEMENT_MTU} netns {}\n\
             addr add {theirs}/{length} dev {link} {nodad}\n\
             link set {link} up\n",
            up.name()
        ))?;
        up.ip(&format!(
            "addr add {own}/{length} dev mgmt0 {nodad}\nlink set mgmt0 up\n"
        ))
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        // Nothing can be reported from here; whatever stays is found by the next run.
        let _ = self.clear();
    }
}

/// See [`Lab::default_routes`].
pub(super) fn default_routes(kernel: &Netns, up: UserPlane) -> Result<()> {
    kernel.ip(&format!(
        "route replace default via {}\nroute replace ::/0 via {}\n",
        up.internet_v4(),
        up.internet_v6()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labs_of_different_names_share_nothing() {
        let access = Place::Access(UserPlane::One);
        assert_eq!(access.netns("").name(), "sluice-access1");
        assert_eq!(access.netns("e2e").name(), "sluice-access1-e2e");
        assert_ne!(directory(""), directory("e2e"));
    }
}
