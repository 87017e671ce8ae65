//! TAPs, TUNs and network instances: created, taken over from a supervisor, changed and removed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::os::fd::{AsFd, OwnedFd};

use config::model::DeviceDocument;
use config::{Fault, Path, UserPlaneDocument};
use dataplane::InstanceIndex;
use ipnet::IpNet;
use nix::net::if_::if_nametoindex;
use northbound::supervisor;
use tracing::{info, warn};
use wire::eth::MacAddr;

use super::fault;
use crate::device::{Device, Kind};
use crate::fib::Fib;
use crate::icmp::ErrorSource;
use crate::netlink::request::{self, LinkSettings};
use crate::run::{Instance, UserPlane};

/// MTU of a TUN: the usual MTU of a PPPoE session (RFC 2516 §7).
const TUN_MTU: u32 = 1492;

/// Devices that a supervisor holds for us.
#[derive(Debug, Default)]
pub struct Kept {
    /// Devices of an earlier run that are not taken over yet.
    earlier: BTreeMap<String, OwnedFd>,
    /// Names of the devices that the supervisor got in this run or the last.
    given: BTreeSet<String>,
}

/// Device that is not in use at the moment, with its settings.
pub(crate) struct Parked {
    device: Device,
    mac: Option<[u8; 6]>,
    addresses: Vec<IpNet>,
}

impl Kept {
    /// Devices that the supervisor passed on.
    pub fn from_supervisor() -> Self {
        let earlier = supervisor::kept().unwrap_or_else(|error| {
            warn!(%error, "cannot take over the devices that the supervisor held: opening them again");
            BTreeMap::new()
        });
        Self {
            given: earlier.keys().cloned().collect(),
            earlier,
        }
    }

    fn forget(&mut self, name: &str) {
        if self.given.remove(name)
            && let Err(error) = supervisor::forget(name)
        {
            warn!(name, %error, "cannot notify the supervisor to release a device");
        }
    }
}

impl UserPlane {
    /// Creates a device and brings it up. Until [`UserPlane::keep_devices`] is called, it vanishes with the process.
    pub(super) fn make_device(
        &mut self,
        path: &Path,
        name: &str,
        kind: Kind,
        mut settings: LinkSettings,
        addresses: &[IpNet],
    ) -> Result<Device, Fault> {
        let is_it = |parked: &Parked| parked.device.kept_as() == kind.kept_as(name);
        let parked = self.parked.iter().position(is_it);
        let mut parked = match parked.map(|place| self.parked.remove(place)) {
            Some(parked) => parked,
            None => {
                let device = self.open_device(path, name, kind)?;
                Parked {
                    mac: device.mac(),
                    device,
                    addresses: Vec::new(),
                }
            }
        };
        // Setting the same MAC address again would make the kernel forget every neighbour.
        settings.mac = settings.mac.filter(|mac| parked.mac != Some(*mac));
        match self.set_up(path, &parked, settings, addresses) {
            Ok(()) => Ok(parked.device),
            Err(fault) => {
                // A supervisor may hold the device, too. Restoring the previous configuration has to find it here.
                parked.mac = parked.mac.filter(|_| settings.mac.is_none());
                let mut new = addresses.to_vec();
                new.retain(|address| !parked.addresses.contains(address));
                parked.addresses.extend(new);
                self.parked.push(parked);
                Err(fault)
            }
        }
    }

    fn set_up(
        &mut self,
        path: &Path,
        parked: &Parked,
        settings: LinkSettings,
        addresses: &[IpNet],
    ) -> Result<(), Fault> {
        let (device, index) = (&parked.device, parked.device.index());
        self.ask_kernel(path, request::configure_link(index, settings), || {
            format!("cannot set MAC and MTU of `{}`", device.name())
        })?;
        self.change_addresses(path, device, &parked.addresses, addresses)?;
        self.ask_kernel(path, request::link_up(index), || {
            format!("cannot bring `{}` up", device.name())
        })
    }

    fn open_device(&mut self, path: &Path, name: &str, kind: Kind) -> Result<Device, Fault> {
        if let Some(device) = self.take_up(name, kind) {
            return Ok(device);
        }
        Device::open(name, kind).map_err(|error| {
            let must = format!("if it exists, it must be a free {kind:?} device");
            let message = format!("cannot make the interface `{name}`: {error}; {must}");
            fault(path, message)
        })
    }

    pub(super) fn ask_kernel(
        &mut self,
        path: &Path,
        request: request::Request,
        what: impl FnOnce() -> String,
    ) -> Result<(), Fault> {
        let done = self.requester.request(request);
        done.map_err(|error| fault(path, format!("{}: {error}", what())))
    }

    fn give_addresses(
        &mut self,
        path: &Path,
        device: &Device,
        addresses: &[IpNet],
    ) -> Result<(), Fault> {
        for address in addresses {
            let give = request::add_address(device.index(), *address);
            self.ask_kernel(path, give, || {
                format!("cannot give `{}` the address {address}", device.name())
            })?;
        }
        Ok(())
    }

    fn take_addresses<'a>(&mut self, device: &Device, addresses: impl Iterator<Item = &'a IpNet>) {
        for address in addresses {
            let take = request::remove_address(device.index(), *address);
            if let Err(error) = self.requester.request(take) {
                // Another process has removed it already.
                warn!(device = device.name(), %address, %error, "cannot remove an address");
            }
        }
    }

    /// Changes the addresses of a device: all of them, or none on an error.
    pub(super) fn change_addresses(
        &mut self,
        path: &Path,
        device: &Device,
        old: &[IpNet],
        new: &[IpNet],
    ) -> Result<(), Fault> {
        if old == new {
            return Ok(());
        }
        for (given, address) in new.iter().enumerate() {
            if let Err(fault) = self.give_addresses(path, device, &[*address]) {
                let given = new[..given].iter();
                self.take_addresses(device, given.filter(|address| !old.contains(address)));
                return Err(fault);
            }
        }
        self.take_addresses(device, old.iter().filter(|address| !new.contains(address)));
        // Removing the first address of a network makes the kernel remove its secondary addresses, too.
        self.give_addresses(path, device, new)
    }

    fn take_up(&mut self, name: &str, kind: Kind) -> Option<Device> {
        let kept_as = kind.kept_as(name);
        let kept = self.kept.earlier.remove(&kept_as)?;
        match Device::take_up(kept, name, kind) {
            Ok(device) => {
                info!(device = name, "taken up from the supervisor");
                Some(device)
            }
            Err(error) => {
                warn!(device = name, %error, "opening the device again");
                self.kept.forget(&kept_as);
                None
            }
        }
    }

    /// Makes TAPs and TUNs outlive the process, and passes them to the supervisor.
    pub(super) fn keep_devices(&mut self) {
        let Self {
            kept,
            ports,
            instances,
            ..
        } = self;
        let taps = ports.values().flat_map(|port| port.interfaces());
        let taps = taps.map(|(_, tap)| tap);
        let tuns = instances.values().map(|instance| &instance.tun);
        for device in taps.chain(tuns) {
            let name = device.kept_as();
            if kept.given.contains(&name) {
                continue;
            }
            let held = device
                .keep()
                .and_then(|()| supervisor::keep(&name, device.as_fd()));
            match held {
                Ok(()) => drop(kept.given.insert(name)),
                Err(error) => warn!(
                    device = device.name(), %error,
                    "cannot keep the device: it loses its carrier when sluice-up dies"
                ),
            }
        }
    }

    /// Removes devices of an earlier configuration that a supervisor held and nobody took over.
    pub(super) fn forget_earlier(&mut self) {
        for name in std::mem::take(&mut self.kept.earlier).into_keys() {
            self.kept.forget(&name);
            let device = name.split_once('-').map_or("", |(_, device)| device);
            if let Ok(index) = if_nametoindex(device) {
                self.delete_link(device, index);
            }
        }
    }

    /// Parks a device until the end of the reconfiguration.
    pub(super) fn park_device(
        &mut self,
        device: Device,
        mac: Option<MacAddr>,
        addresses: Vec<IpNet>,
    ) {
        self.parked.push(Parked {
            device,
            mac: mac.map(|mac| mac.0),
            addresses,
        });
    }

    /// Removes the devices that are still parked.
    pub(super) fn end_parked(&mut self) {
        for Parked { device, .. } in std::mem::take(&mut self.parked) {
            self.kept.forget(&device.kept_as());
            self.delete_link(device.name(), device.index());
        }
    }

    fn delete_link(&mut self, device: &str, index: u32) {
        match self.requester.request(request::delete_link(index)) {
            Ok(()) => info!(device, "removed"),
            Err(error) => warn!(device, %error, "cannot remove a device"),
        }
    }

    /// Creates new network instances and changes those that differ.
    pub(super) fn open_instances(&mut self, to: &UserPlaneDocument) -> Result<(), Fault> {
        for (name, document) in &to.network_instances {
            let path = Path::from_iter(["network-instances", name]);
            let mut known = self.instances.iter();
            match known
                .find(|(_, i)| i.name == *name)
                .map(|(index, _)| *index)
            {
                Some(index) => self.change_instance(&path, index, document)?,
                None => self.add_instance(&path, name, document)?,
            }
        }
        Ok(())
    }

    fn make_tun(&mut self, path: &Path, document: &DeviceDocument) -> Result<Device, Fault> {
        let settings = LinkSettings {
            mac: None,
            mtu: Some(TUN_MTU),
            link_local: false,
        };
        let addresses = host_nets(document);
        self.make_device(path, &document.interface, Kind::Tun, settings, &addresses)
    }

    fn add_instance(
        &mut self,
        path: &Path,
        name: &str,
        document: &DeviceDocument,
    ) -> Result<(), Fault> {
        let tun = self.make_tun(path, document)?;
        let interfaces = self.ports.values().flat_map(|port| port.interfaces());
        let taps: HashMap<u32, u16> = interfaces
            .map(|(index, tap)| (tap.index(), index.0))
            .collect();
        let mut fib = Fib::new(taps, tun.index());
        if self.end_keeping_at.is_none() {
            fib.end_keeping();
        }
        let index = free_index(&self.instances);
        for net in self.engine.announced(index) {
            fib.add_net(net);
        }
        let instance = Instance {
            name: name.to_owned(),
            fib,
            errors: ErrorSource::new(&document.gateway),
            tun,
            document: document.clone(),
        };
        self.instances.insert(index, instance);
        self.read_again();
        Ok(())
    }

    fn change_instance(
        &mut self,
        path: &Path,
        index: InstanceIndex,
        document: &DeviceDocument,
    ) -> Result<(), Fault> {
        let Some(mut instance) = self.instances.remove(&index) else {
            return Ok(());
        };
        let changed = self.change_removed(path, &mut instance, document);
        self.instances.insert(index, instance);
        self.read_again();
        changed
    }

    /// Changes an instance that is not among the others meanwhile.
    fn change_removed(
        &mut self,
        path: &Path,
        instance: &mut Instance,
        document: &DeviceDocument,
    ) -> Result<(), Fault> {
        let was = instance.document.clone();
        if was.interface == document.interface {
            let (old, new) = (host_nets(&was), host_nets(document));
            self.change_addresses(path, &instance.tun, &old, &new)?;
        } else {
            let tun = self.make_tun(path, document)?;
            instance.fib.move_tun(tun.index());
            let old = std::mem::replace(&mut instance.tun, tun);
            self.park_device(old, None, host_nets(&was));
        }
        instance.errors.set_sources(&document.gateway);
        instance.document = document.clone();
        Ok(())
    }

    /// Closes network instances that are no longer in the document.
    pub(super) fn close_instances(&mut self, to: &UserPlaneDocument) -> Result<(), Fault> {
        let gone = |i: &Instance| !to.network_instances.contains_key(&i.name);
        while let Some((index, instance)) = self.instances.iter_mut().find(|(_, i)| gone(i)) {
            let path = Path::from_iter(["network-instances", &instance.name]);
            let index = *index;
            instance.fib.clear();
            self.catch_up(&path)?;
            if let Some(instance) = self.instances.remove(&index) {
                self.park_device(instance.tun, None, host_nets(&instance.document));
            }
        }
        Ok(())
    }

    /// Schedules a new reading of the kernel's tables.
    pub(crate) fn read_again(&mut self) {
        self.kernel.read_again(self.clock.now().monotonic);
    }
}

/// The lowest free index. Instances keep theirs when another one goes, because sessions and routes name them by it.
fn free_index<T>(instances: &BTreeMap<InstanceIndex, T>) -> InstanceIndex {
    let taken = instances.keys().zip(0..);
    let free = taken.take_while(|(index, place)| index.0 == *place).count();
    InstanceIndex(free as u16)
}

fn host_nets(document: &DeviceDocument) -> Vec<IpNet> {
    document.gateway.iter().map(|a| IpNet::from(*a)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_free_when_its_instance_is_gone_and_the_others_keep_theirs() {
        let mut instances = BTreeMap::new();
        for name in ["default", "red", "blue"] {
            instances.insert(free_index(&instances), name);
        }
        instances.remove(&InstanceIndex(1));
        assert_eq!(instances[&InstanceIndex(2)], "blue");
        assert_eq!(free_index(&instances), InstanceIndex(1));
        instances.insert(InstanceIndex(1), "green");
        assert_eq!(free_index(&instances), InstanceIndex(3));
    }
}
