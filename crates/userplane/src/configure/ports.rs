//! Ports and subinterfaces: opened, changed and closed.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use config::model::{
    Lacp, LacpRate, Lag as LagDocument, Port as Document, PrioritySource,
    Segment as SegmentDocument, SourceCheck, Subinterface as PartDocument,
};
use config::{Fault, Path, capabilities::linux_interface};
use dataplane::{
    InstanceIndex, PortConfig, PortIndex, Rate, Role, Segment, SegmentRates, SessionEntry,
    Subinterface,
};
use dpdk::{PortOptions, Spread};
use ipnet::IpNet;
use tracing::{info, warn};
use wire::eth::MacAddr;

use super::{Source, fault, is_access, priority_source, source_check};
use crate::device::{Device, Kind};
use crate::lag::Lag;
use crate::netlink::request::{self, LinkSettings};
use crate::run::UserPlane;

/// Octets of the two VLAN tags of a subscriber's frame (802.1ad).
const TAGS: u16 = 8;

/// Open port.
pub struct Port {
    /// Its configuration, without its subinterfaces.
    pub(crate) config: Document,
    /// Its index in the dataplane.
    pub(crate) index: PortIndex,
    /// Its own MAC address.
    pub(crate) mac: MacAddr,
    /// TAP with which the kernel owns the addresses of a core port; `None` while it is replaced.
    pub(crate) tap: Option<Device>,
    /// Dataplane ids of its access segments.
    segments: BTreeMap<String, u16>,
    /// Its subinterfaces.
    pub(crate) parts: BTreeMap<String, Part>,
    /// What decides which of its members are used, if it has several.
    pub(crate) lag: Option<Lag>,
}

/// Subinterface of a core port.
pub struct Part {
    config: PartDocument,
    pub(crate) index: PortIndex,
    tap: Device,
}

impl Part {
    /// Whether it can change to match a document without being closed; `name` is its own name.
    fn stays(&self, name: &str, new: &PartDocument) -> bool {
        let old = &self.config;
        (old.vlan_id, &old.network_instance) == (new.vlan_id, &new.network_instance)
            && self.tap.name() == new.tap_name(name)
    }
}

impl Port {
    /// Name of the access segment with this number.
    pub(crate) fn segment(&self, id: u16) -> Option<&str> {
        let (name, _) = self.segments.iter().find(|(_, of)| **of == id)?;
        Some(name)
    }

    /// VLANs of a segment of an access port; 0 means untagged frames.
    pub(crate) fn vlans_of(&self, segment: &str) -> Option<Vec<RangeInclusive<u16>>> {
        let id = (self.segments.get(segment)).filter(|_| is_access(&self.config))?;
        let all = lay_out(&self.segments, &self.config.segments());
        let found = all.into_iter().find(|segment| segment.id == *id)?;
        Some(found.vlans)
    }

    /// Whether it can change to match a document without being closed.
    pub(super) fn stays(&self, new: &Document) -> bool {
        let old = &self.config;
        (old.role, old.lag.is_some(), &old.network_instance)
            == (new.role, new.lag.is_some(), &new.network_instance)
            && old.devices().eq(new.devices())
    }

    /// TAPs of the port and of its subinterfaces, with their interface indexes.
    pub(crate) fn interfaces(&self) -> impl Iterator<Item = (PortIndex, &Device)> {
        let parts = self.parts.values().map(|part| (part.index, &part.tap));
        let own = self.tap.as_ref().map(|tap| (self.index, tap));
        own.into_iter().chain(parts)
    }

    /// TAPs with their interface indexes, by the name of the port or subinterface; `name` is the port's own.
    pub(crate) fn named<'a>(
        &'a self,
        name: &'a str,
    ) -> impl Iterator<Item = (&'a str, PortIndex, &'a Device)> {
        let parts = self.parts.iter();
        let parts = parts.map(|(name, part)| (name.as_str(), part.index, &part.tap));
        let own = self.tap.as_ref().map(|tap| (name, self.index, tap));
        own.into_iter().chain(parts)
    }

    /// Interface indexes of the port and of its subinterfaces.
    pub(super) fn places(&self) -> impl Iterator<Item = PortIndex> {
        let parts = self.parts.values().map(|part| part.index);
        std::iter::once(self.index).chain(parts)
    }

    /// Access segment of a VLAN; 0 means untagged frames.
    pub(crate) fn segment_of(&self, vlan: u16) -> Option<&str> {
        let segments = self.segments.keys();
        let all = self.config.segments();
        let of = owner(&all, Some(vlan))?;
        segments.map(String::as_str).find(|name| name == of)
    }

    /// Resources that no other port can have while it is open.
    pub(super) fn claims(&self, name: &str) -> Vec<String> {
        let taps = self.interfaces().map(|(_, tap)| tap.name().to_owned());
        claims(name, &self.config).chain(taps).collect()
    }
}

/// Resources that a port needs exclusively: its device, the Linux interface below and the TAPs above.
pub(super) fn claims(name: &str, port: &Document) -> impl Iterator<Item = String> {
    let devices = port
        .devices()
        .map(|devargs| dpdk::device_name(devargs).into_owned());
    let below = port
        .devices()
        .filter_map(linux_interface)
        .map(str::to_owned);
    let own = (!is_access(port)).then(|| port.tap_name(name));
    let parts = port.subinterfaces.iter();
    let parts: Vec<String> = parts.map(|(name, part)| part.tap_name(name)).collect();
    devices.chain(below).chain(own).chain(parts)
}

/// Where a port's devices are named.
pub(super) fn devices_at(name: &str, port: &Document) -> Path {
    let port_path = Path::from_iter(["ports", name]);
    let parts = port.devices_at().iter();
    parts.fold(port_path, |path, part| path.join(*part))
}

impl UserPlane {
    pub(super) fn add_port(&mut self, name: &str, document: &Document) -> Result<(), Fault> {
        let path = Path::from_iter(["ports", name]);
        let index = self.free_place(&path)?;
        let core = !is_access(document);
        let open = self.open_devices(name, document)?;
        let (mac, mtu) = (MacAddr(open.mac()), open.mtu());
        info!(port = name, device = open.name(), %mac, "port open");
        let lag = document.lag.as_ref().zip(open.lag().cloned());
        let lag = lag.map(|(lag, shared)| {
            Lag::new(lag_settings(lag, index, mac), shared, open.members().len())
        });
        let mut tap = None;
        if core {
            let mtu = mtu.min(document.mtu);
            let name = document.tap_name(name);
            tap = Some(self.make_tap(&path, &name, mac, mtu, &document.addresses)?);
        }
        let segments = segment_ids(&BTreeMap::new(), &document.segments());
        let role = match core {
            true => Role::Core {
                instance: InstanceIndex(0),
            },
            false => Role::Access {
                segments: lay_out(&segments, &document.segments()),
            },
        };
        let config = PortConfig {
            port: open,
            mac: None,
            role,
        };
        let added = self.catch_up(&path).and_then(|()| {
            let added = self.controller.add_port(index, config);
            added.map_err(|error| fault(&path, error))
        });
        if let Err(fault) = added {
            if let Some(tap) = tap {
                self.park_device(tap, Some(mac), document.addresses.clone());
            }
            return Err(fault);
        }
        if let Some(tap) = &tap {
            self.kernel_owns(tap.index(), index);
        }
        let port = Port {
            config: Document {
                subinterfaces: BTreeMap::new(),
                source_check: SourceCheck::Off,
                ..document.clone()
            },
            index,
            mac,
            tap,
            segments,
            parts: BTreeMap::new(),
            lag,
        };
        self.ports.insert(name.to_owned(), port);
        if let Some(defaults) = self.off_ports.remove(name) {
            self.engine.put_on_port(&defaults, index);
        }
        self.move_again(name)?;
        if document.egress_rate.is_some() {
            self.set_egress_rate(name, document)?;
        }
        if document.segments().values().any(has_rate) {
            self.set_segment_rates(name)?;
        }
        self.change_source_check(name, document)?;
        self.change_parts(name, document)
    }

    /// Opens the device of a port, or the members of its LAG, unless that is done.
    fn open_devices(&mut self, name: &str, document: &Document) -> Result<dpdk::Port, Fault> {
        let (path, source) = (devices_at(name, document), self.source);
        let opened = match self.opened.remove(name) {
            Some(opened) => opened,
            None => {
                let opened = self.meanwhile(|| open(source, document));
                opened.map_err(|error| fault(&path, error))?
            }
        };
        opened.map_err(|error| {
            let hint = "check the device, and that no other program uses it";
            fault(&path, format!("{error}: {hint}"))
        })
    }

    /// Changes what a LAG's members are told.
    fn change_lag(&mut self, name: &str, new: &Document) {
        let now = self.clock.now().monotonic;
        if let Some(port) = self.ports.get_mut(name) {
            let (index, mac) = (port.index, port.mac);
            if let (Some(lag), Some(new)) = (&mut port.lag, &new.lag) {
                lag.set(now, lag_settings(new, index, mac));
            }
            port.config.lag = new.lag.clone();
        }
    }

    fn change_source_check(&mut self, name: &str, new: &Document) -> Result<(), Fault> {
        let path = Path::from_iter(["ports", name, "source-check"]);
        let port = &self.ports[name];
        if port.config.source_check != new.source_check {
            self.set_source_check(&path, port.index, new.source_check)?;
        }
        if let Some(port) = self.ports.get_mut(name) {
            port.config.source_check = new.source_check;
        }
        Ok(())
    }

    fn set_source_check(
        &mut self,
        path: &Path,
        index: PortIndex,
        check: SourceCheck,
    ) -> Result<(), Fault> {
        self.catch_up(path)?;
        let set = (self.controller).set_source_check(index, source_check(check));
        set.map_err(|error| fault(path, error))
    }

    fn set_egress_rate(&mut self, name: &str, new: &Document) -> Result<(), Fault> {
        let path = Path::from_iter(["ports", name, "egress-rate"]);
        self.catch_up(&path)?;
        let Some(port) = self.ports.get_mut(name) else {
            return Ok(());
        };
        let rate = new.egress_rate.and_then(|kbps| Rate::new(kbps.into()));
        let set = self.controller.set_egress_rate(port.index, rate);
        set.map_err(|error| fault(&path, error))?;
        port.config.egress_rate = new.egress_rate;
        Ok(())
    }

    fn make_tap(
        &mut self,
        path: &Path,
        name: &str,
        mac: MacAddr,
        mtu: u16,
        addresses: &[IpNet],
    ) -> Result<Device, Fault> {
        let settings = LinkSettings {
            mac: Some(mac.0),
            mtu: Some(mtu.into()),
            link_local: true,
        };
        self.make_device(path, name, Kind::Tap, settings, addresses)
    }

    /// Routes through this TAP lead to this interface from now on.
    fn kernel_owns(&mut self, link: u32, index: PortIndex) {
        for instance in self.instances.values_mut() {
            instance.fib.add_port(link, index.0);
        }
        self.read_again();
    }

    /// Routes through this TAP lead nowhere from now on.
    fn kernel_leaves(&mut self, link: u32) {
        for instance in self.instances.values_mut() {
            instance.fib.remove_port(link);
        }
        self.read_again();
    }

    pub(super) fn change_port(&mut self, name: &str, new: &Document) -> Result<(), Fault> {
        let port = self.ports.get(name);
        if port.is_some_and(|port| port.config.egress_rate != new.egress_rate) {
            self.set_egress_rate(name, new)?;
        }
        self.change_lag(name, new);
        match is_access(new) {
            true => {
                self.change_access_mtu(name, new)?;
                self.change_segments(name, new)
            }
            false => {
                self.change_core(name, new)?;
                self.change_source_check(name, new)?;
                self.change_parts(name, new)
            }
        }
    }

    fn change_access_mtu(&mut self, name: &str, new: &Document) -> Result<(), Fault> {
        let path = Path::from_iter(["ports", name, "mtu"]);
        let Some(port) = self.ports.get_mut(name) else {
            return Ok(());
        };
        // Noted first, as for a core port.
        let (index, old) = (port.index, std::mem::replace(&mut port.config.mtu, new.mtu));
        match old == new.mtu {
            true => Ok(()),
            false => self.set_device_mtu(&path, index, new.mtu),
        }
    }

    /// Changes the access segments. Sessions whose VLAN moves to another segment or to none are removed.
    fn change_segments(&mut self, name: &str, new: &Document) -> Result<(), Fault> {
        let path = Path::from_iter(["ports", name, "segments"]);
        let port = &self.ports[name];
        let (old, to, index) = (port.config.segments(), new.segments(), port.index);
        if old == to {
            return Ok(());
        }
        let ids = segment_ids(&port.segments, &to);
        let moved = |entry: &SessionEntry| {
            let vlan = entry.tags.outer.map(|tag| tag.vid);
            entry.port == index && owner(&old, vlan) != owner(&to, vlan)
        };
        let ended = self.engine.end_sessions(moved);
        self.catch_up(&path)?;
        let set = self.controller.set_segments(index, &lay_out(&ids, &to));
        set.map_err(|error| fault(&path, error))?;
        if ended > 0 {
            info!(
                port = name,
                sessions = ended,
                "sessions ended with their access segments"
            );
        }
        if let Some(port) = self.ports.get_mut(name) {
            port.segments = ids;
            port.config.segments = new.segments.clone();
        }
        match old.values().chain(to.values()).any(has_rate) {
            true => self.set_segment_rates(name),
            false => Ok(()),
        }
    }

    /// VLANs of a port that has been opened are at the workers to which they were moved before.
    fn move_again(&mut self, name: &str) -> Result<(), Fault> {
        let workers = self.controller.workers().count();
        let is_there = |(_, worker): &(u16, u16)| usize::from(*worker) < workers;
        let (there, gone): (Vec<_>, Vec<_>) = self.moved.of(name).partition(is_there);
        if !gone.is_empty() {
            warn!(
                port = name,
                vlans = gone.len(),
                workers,
                "VLANs were moved to workers that are not there: they are at those that the lanes of their sessions say"
            );
        }
        if there.is_empty() {
            return Ok(());
        }
        let path = Path::from_iter(["ports", name]);
        let port = self.ports[name].index;
        self.catch_up(&path)?;
        let set = self.controller.set_owners(port, there.iter().copied());
        set.map_err(|error| fault(&path, error))?;
        self.engine.set_owners(port, there);
        Ok(())
    }

    /// Has the workers keep the rates of a port's segments.
    fn set_segment_rates(&mut self, name: &str) -> Result<(), Fault> {
        let path = Path::from_iter(["ports", name, "segments"]);
        self.catch_up(&path)?;
        let port = &self.ports[name];
        let rates = rates(&port.segments, &port.config.segments());
        let set = self.controller.set_segment_rates(port.index, &rates);
        set.map_err(|error| fault(&path, error))
    }

    fn change_core(&mut self, name: &str, new: &Document) -> Result<(), Fault> {
        let path = Path::from_iter(["ports", name]);
        let Some(mut port) = self.ports.remove(name) else {
            return Ok(());
        };
        let changed = self.change_core_port(&path, name, &mut port, new);
        self.ports.insert(name.to_owned(), port);
        changed
    }

    fn change_core_port(
        &mut self,
        path: &Path,
        name: &str,
        port: &mut Port,
        new: &Document,
    ) -> Result<(), Fault> {
        if port.config.mtu != new.mtu {
            let path = path.join("mtu");
            // Noted first: if one place rejects it, the previous MTU is restored in all of them.
            port.config.mtu = new.mtu;
            self.set_device_mtu(&path, port.index, new.mtu)?;
            self.set_mtu(&path, port.index, port.tap.as_ref(), new.mtu)?;
        }
        match &port.tap {
            Some(tap) => {
                let path = path.join("addresses");
                self.change_addresses(&path, tap, &port.config.addresses, &new.addresses)?;
            }
            None => {
                let (path, wanted) = (path.join("tap"), new.tap_name(name));
                let made = self.make_tap(&path, &wanted, port.mac, new.mtu, &new.addresses)?;
                self.kernel_owns(made.index(), port.index);
                port.tap = Some(made);
            }
        }
        port.config.tap = new.tap.clone();
        port.config.addresses = new.addresses.clone();
        Ok(())
    }

    fn set_device_mtu(&self, path: &Path, index: PortIndex, mtu: u16) -> Result<(), Fault> {
        let device = self.controller.device(index);
        let device = device.map_err(|error| fault(path, error))?;
        device.set_mtu(mtu).map_err(|error| fault(path, error))
    }

    /// Sets the MTU in the worker, and in the kernel if there is a TAP.
    fn set_mtu(
        &mut self,
        path: &Path,
        index: PortIndex,
        tap: Option<&Device>,
        mtu: u16,
    ) -> Result<(), Fault> {
        self.catch_up(path)?;
        let set = self.controller.set_mtu(index, mtu);
        set.map_err(|error| fault(path, error))?;
        let settings = LinkSettings {
            mac: None,
            mtu: Some(mtu.into()),
            link_local: true,
        };
        let Some(tap) = tap else { return Ok(()) };
        let set = request::configure_link(tap.index(), settings);
        self.ask_kernel(path, set, || {
            "cannot set the MTU of the port's interface".into()
        })
    }

    /// Applies the difference between a port's subinterfaces and the document's. Those that do not stay are already closed.
    fn change_parts(&mut self, name: &str, new: &Document) -> Result<(), Fault> {
        let path = Path::from_iter(["ports", name, "subinterfaces"]);
        for (part, document) in &new.subinterfaces {
            match self.ports[name].parts.contains_key(part) {
                true => self.change_part(&path.join(part), name, part, document)?,
                false => self.add_part(&path.join(part), name, part, document)?,
            }
        }
        Ok(())
    }

    fn add_part(
        &mut self,
        path: &Path,
        port: &str,
        name: &str,
        document: &PartDocument,
    ) -> Result<(), Fault> {
        let index = self.free_place(path)?;
        let (of, mac) = (self.ports[port].index, self.ports[port].mac);
        let tap_name = document.tap_name(name);
        let tap = self.make_tap(path, &tap_name, mac, document.mtu, &document.addresses)?;
        let part = Subinterface {
            port: of,
            vlan: document.vlan_id,
            instance: InstanceIndex(0),
            mtu: document.mtu,
        };
        let added = self.catch_up(path).and_then(|()| {
            let added = self.controller.add_subinterface(index, part);
            added.map_err(|error| fault(path, error))
        });
        if let Err(fault) = added {
            self.park_device(tap, Some(mac), document.addresses.clone());
            return Err(fault);
        }
        self.kernel_owns(tap.index(), index);
        if let Some(port) = self.ports.get_mut(port) {
            let part = Part {
                config: PartDocument {
                    source_check: SourceCheck::Off,
                    priority_source: PrioritySource::Fixed,
                    ..document.clone()
                },
                index,
                tap,
            };
            port.parts.insert(name.to_owned(), part);
        }
        self.change_part(path, port, name, document)
    }

    fn change_part(
        &mut self,
        path: &Path,
        port: &str,
        name: &str,
        new: &PartDocument,
    ) -> Result<(), Fault> {
        let of = self.ports.get_mut(port);
        let Some(mut part) = of.and_then(|port| port.parts.remove(name)) else {
            return Ok(());
        };
        let changed = self.change_taken_part(path, &mut part, new);
        if let Some(port) = self.ports.get_mut(port) {
            port.parts.insert(name.to_owned(), part);
        }
        changed
    }

    fn change_taken_part(
        &mut self,
        path: &Path,
        part: &mut Part,
        new: &PartDocument,
    ) -> Result<(), Fault> {
        if part.config.mtu != new.mtu {
            // Noted first, as for a port.
            part.config.mtu = new.mtu;
            self.set_mtu(&path.join("mtu"), part.index, Some(&part.tap), new.mtu)?;
        }
        if part.config.source_check != new.source_check {
            let path = path.join("source-check");
            self.set_source_check(&path, part.index, new.source_check)?;
            part.config.source_check = new.source_check;
        }
        if part.config.priority_source != new.priority_source {
            let path = path.join("priority-source");
            self.catch_up(&path)?;
            let source = priority_source(new.priority_source);
            let set = self.controller.set_priority_source(part.index, source);
            set.map_err(|error| fault(&path, error))?;
            part.config.priority_source = new.priority_source;
        }
        let path = path.join("addresses");
        self.change_addresses(&path, &part.tap, &part.config.addresses, &new.addresses)?;
        part.config = new.clone();
        Ok(())
    }

    /// Releases what a port does not keep when it changes or closes: its subinterfaces and its TAP. Any port can take them then.
    pub(super) fn let_go(&mut self, name: &str, new: Option<&Document>) -> Result<(), Fault> {
        let stays = |(name, part): &(&String, &Part)| {
            let new = new.and_then(|new| new.subinterfaces.get(*name));
            new.is_some_and(|new| part.stays(name, new))
        };
        let parts = self.ports[name].parts.iter();
        let going = parts.filter(|part| !stays(part));
        let going: Vec<String> = going.map(|(name, _)| name.clone()).collect();
        for part in &going {
            self.remove_part(name, part)?;
        }
        let wanted = new.map(|new| new.tap_name(name));
        let Some(port) = self.ports.get_mut(name) else {
            return Ok(());
        };
        let (mac, addresses) = (port.mac, port.config.addresses.clone());
        let other = |tap: &mut Device| wanted.as_deref() != Some(tap.name());
        if let Some(tap) = port.tap.take_if(other) {
            self.kernel_leaves(tap.index());
            self.park_device(tap, Some(mac), addresses);
        }
        Ok(())
    }

    fn remove_part(&mut self, port: &str, name: &str) -> Result<(), Fault> {
        let path = Path::from_iter(["ports", port, "subinterfaces", name]);
        let part = &self.ports[port].parts[name];
        let (link, index) = (part.tap.index(), part.index);
        self.kernel_leaves(link);
        self.catch_up(&path)?;
        let removed = self.controller.remove_subinterface(index);
        removed.map_err(|error| fault(&path, error))?;
        let (mac, of) = (self.ports[port].mac, self.ports.get_mut(port));
        if let Some(part) = of.and_then(|port| port.parts.remove(name)) {
            self.park_device(part.tap, Some(mac), part.config.addresses);
        }
        Ok(())
    }

    /// Closes a port that has released everything. `returns`: an access port of this name is opened afterwards.
    pub(super) fn remove_port(&mut self, name: &str, returns: bool) -> Result<(), Fault> {
        let path = Path::from_iter(["ports", name]);
        let index = self.ports[name].index;
        if returns {
            let taken = self.engine.take_off_port(index);
            self.off_ports.insert(name.to_owned(), taken);
        }
        let ended = self.engine.end_port(index);
        self.catch_up(&path)?;
        let removed = self.controller.remove_port(index);
        removed.map_err(|error| fault(&path, error))?;
        self.ports.remove(name);
        self.await_removed(index, &path)?;
        info!(port = name, sessions = ended, "port closed");
        Ok(())
    }
}

/// Opens the device of a port, or the members of its LAG.
pub(super) fn open(source: Source, document: &Document) -> Result<dpdk::Port, dpdk::Error> {
    // The gateway's addresses towards subscribers are virtual. The kernel behind a core port joins multicast groups without
    // the device's knowledge.
    let options = PortOptions {
        mtu: Some(document.mtu),
        tags: if is_access(document) { TAGS } else { 0 },
        promiscuous: true,
        queues: source.queues,
    };
    let open = |devargs| source.eal.open_port(devargs, source.pool, &options);
    let mut devices: Vec<dpdk::Port> = document.devices().map(open).collect::<Result<_, _>>()?;
    match (&document.lag, devices.pop()) {
        (None, Some(device)) => Ok(device),
        (_, last) => {
            devices.extend(last);
            let spread = if is_access(document) {
                Spread::Destination
            } else {
                Spread::Source
            };
            dpdk::Port::join(devices, spread)
        }
    }
}

const _: () = assert!(config::model::MOST_LAG_MEMBERS == dpdk::MAX_MEMBERS);

/// What LACP is told of a port's LAG: its system is the port.
fn lag_settings(lag: &LagDocument, index: PortIndex, mac: MacAddr) -> lacp::Settings {
    lacp::Settings {
        mode: match lag.lacp {
            Lacp::Active => lacp::Mode::Active,
            Lacp::Passive => lacp::Mode::Passive,
            Lacp::Off => lacp::Mode::Off,
        },
        fast: lag.lacp_rate == LacpRate::Fast,
        minimum: lag.minimum_links.into(),
        system_priority: lag.system_priority,
        system: mac,
        key: index.0 + 1,
    }
}

/// Dataplane ids for segments: segments that exist keep theirs.
fn segment_ids(
    known: &BTreeMap<String, u16>,
    segments: &BTreeMap<String, SegmentDocument>,
) -> BTreeMap<String, u16> {
    let mut ids: BTreeMap<String, u16> = known.clone();
    ids.retain(|name, _| segments.contains_key(name));
    for name in segments.keys() {
        if !ids.contains_key(name) {
            let free = (0..).find(|id| !ids.values().any(|taken| taken == id));
            ids.insert(name.clone(), free.unwrap_or_default());
        }
    }
    ids
}

/// Segments as the dataplane has them: untagged frames count as VLAN 0.
fn lay_out(
    ids: &BTreeMap<String, u16>,
    segments: &BTreeMap<String, SegmentDocument>,
) -> Vec<Segment> {
    let segment = |(name, segment): (&String, &SegmentDocument)| {
        let members = segment.s_vlans.members().map(|vlan| vlan.unwrap_or(0));
        let mut vlans: Vec<u16> = members.collect();
        vlans.sort_unstable();
        vlans.dedup();
        let runs = vlans.chunk_by(|a, b| a + 1 == *b);
        Segment {
            id: ids[name],
            vlans: runs.map(|run| run[0]..=run[run.len() - 1]).collect(),
        }
    };
    segments.iter().map(segment).collect()
}

/// Does the segment or each of its VLANs have a rate?
fn has_rate(segment: &SegmentDocument) -> bool {
    segment.egress_rate.is_some() || segment.vlan_egress_rate.is_some()
}

/// Rates of segments as the dataplane has them.
fn rates(
    ids: &BTreeMap<String, u16>,
    segments: &BTreeMap<String, SegmentDocument>,
) -> Vec<SegmentRates> {
    let kbps = |rate: Option<u32>| rate.and_then(|kbps| Rate::new(kbps.into()));
    let of_segment = |(segment, document): (Segment, &SegmentDocument)| SegmentRates {
        id: segment.id,
        vlans: segment.vlans,
        rate: kbps(document.egress_rate),
        vlan_rate: kbps(document.vlan_egress_rate),
    };
    let all = lay_out(ids, segments).into_iter().zip(segments.values());
    all.map(of_segment).collect()
}

/// Segment that a VLAN belongs to.
fn owner(segments: &BTreeMap<String, SegmentDocument>, vlan: Option<u16>) -> Option<&String> {
    let vlan = vlan.filter(|vlan| *vlan != 0);
    let has = |segment: &SegmentDocument| match vlan {
        None => segment.s_vlans.contains(None) || segment.s_vlans.contains(Some(0)),
        some => segment.s_vlans.contains(some),
    };
    let found = segments.iter().find(|(_, segment)| has(segment));
    found.map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments(text: &str) -> BTreeMap<String, SegmentDocument> {
        let text = format!("ports: {{p: {{role: access, device: d, segments: {{{text}}}}}}}");
        let document: config::UserPlaneDocument = serde_saphyr::from_str(&text).unwrap();
        document.ports["p"].segments()
    }

    #[test]
    fn segments_are_ranges_of_vlans_and_keep_their_ids() {
        let before = segments("a: {s-vlans: '10-19,30'}, b: {s-vlans: 'untagged,20-29'}");
        let ids = segment_ids(&BTreeMap::new(), &before);
        let segment = |id, vlans| Segment { id, vlans };
        assert_eq!(
            lay_out(&ids, &before),
            [
                segment(0, vec![10..=19, 30..=30]),
                segment(1, vec![0..=0, 20..=29])
            ]
        );
        let after = segments("b: {s-vlans: 5}, c: {s-vlans: untagged}, d: {s-vlans: 7}");
        let ids = segment_ids(&ids, &after);
        assert_eq!(ids.values().copied().collect::<Vec<_>>(), [1, 0, 2]);
        let moved = |vlan| owner(&before, vlan) != owner(&after, vlan);
        assert!(moved(None) && moved(Some(0)) && moved(Some(20)) && moved(Some(5)));
        assert!(!moved(Some(99)));
        let whole = segments("");
        let ids = segment_ids(&BTreeMap::new(), &whole);
        assert_eq!(lay_out(&ids, &whole), Segment::whole_port());
    }
}
