//! What a user plane can do, and whether a document asks for more: looked at by the user plane that is told, and before that
//! by the control plane, so that nobody finds out at night.

use crate::model::{Port, PortRole};
use crate::values::IFNAME_MAX;
use crate::{Fault, Path, UserPlaneDocument};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a user plane can do, as it says over its management interface.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Capabilities {
    /// The network instances that it can serve.
    pub network_instances: Vec<String>,
    /// The DPDK drivers that it has, by name. A virtual device's name begins with its driver's.
    pub drivers: Vec<String>,
    /// The most devices of ports; most ports have one.
    pub ports: u32,
    /// The most ports and subinterfaces together.
    pub interfaces: u32,
    /// The most access segments of all ports together.
    pub segments: u32,
    /// The most subscriber sessions.
    pub sessions: u32,
    /// Whether core ports can have 802.1Q subinterfaces.
    pub subinterfaces: bool,
}

/// The device that devargs are about: what stands before the first comma.
fn device(devargs: &str) -> &str {
    devargs.split(',').next().unwrap_or_default()
}

/// The Linux interface that devargs name.
pub fn linux_interface(devargs: &str) -> Option<&str> {
    devargs
        .split(',')
        .find_map(|arg| arg.strip_prefix("iface="))
}

/// Whether devargs are about a PCI device, such as `0000:03:00.0`.
fn is_pci(devargs: &str) -> bool {
    let name = device(devargs);
    let hex = |c: char| c.is_ascii_hexdigit() || c == ':' || c == '.';
    name.contains(':') && name.contains('.') && name.chars().all(hex)
}

impl Capabilities {
    /// What is wrong with a document in itself; if nothing is, what it asks for that cannot be done. Each at its place in the
    /// document.
    pub fn check(&self, document: &UserPlaneDocument) -> Vec<Fault> {
        let faults = crate::check::user_plane(document);
        if !faults.is_empty() {
            return faults;
        }
        let mut check = Check {
            can: self,
            document,
            faults: Vec::new(),
        };
        check.instances();
        check.sizes();
        check.names();
        for (name, port) in &document.ports {
            check.port(&Path::from_iter(["ports", name]), port);
        }
        check.faults
    }
}

struct Check<'a> {
    can: &'a Capabilities,
    document: &'a UserPlaneDocument,
    faults: Vec<Fault>,
}

impl Check<'_> {
    fn fault(&mut self, path: Path, message: String) {
        self.faults.push(Fault {
            line: 0,
            path,
            message,
        });
    }

    fn instances(&mut self) {
        let own = self.document.network_instances.keys();
        let mut named: Vec<(Path, &String)> = own
            .map(|name| (Path::from_iter(["network-instances", name]), name))
            .collect();
        for (name, port) in &self.document.ports {
            let place = Path::from_iter(["ports", name]);
            named.push((place.join("network-instance"), &port.network_instance));
            for (name, part) in &port.subinterfaces {
                let place = place.join("subinterfaces").join(name);
                named.push((place.join("network-instance"), &part.network_instance));
            }
        }
        let can = &self.can.network_instances;
        named.retain(|(_, name)| !can.contains(name));
        for (place, name) in named {
            let known = can.join("`, `");
            let message = format!("the user plane does not support `{name}`: expected `{known}`");
            self.fault(place, message);
        }
    }

    fn sizes(&mut self) {
        let ports = &self.document.ports;
        let devices = ports.values().flat_map(Port::devices).count();
        let parts: usize = ports.values().map(|port| port.subinterfaces.len()).sum();
        let access = ports.values().filter(|port| port.role == PortRole::Access);
        let segments: usize = access.map(|port| port.segments().len()).sum();
        for (what, asked, most) in [
            ("devices", devices, self.can.ports),
            (
                "ports and subinterfaces",
                ports.len() + parts,
                self.can.interfaces,
            ),
            ("access segments", segments, self.can.segments),
        ] {
            if asked > most as usize {
                let message = format!("{asked} {what}: the user plane supports at most {most}");
                self.fault(Path::from_iter(["ports"]), message);
            }
        }
    }

    /// Devices and kernel interfaces are each one port's, and the kernel can have them.
    fn names(&mut self) {
        let (mut devices, mut interfaces) = (BTreeMap::new(), BTreeMap::new());
        let mut wrong = Vec::new();
        for (name, instance) in &self.document.network_instances {
            let path = Path::from_iter(["network-instances", name, "interface"]);
            interfaces.insert(instance.interface.clone(), path);
        }
        for (name, port) in &self.document.ports {
            let path = Path::from_iter(["ports", name]);
            let here = devices_at(&path, port);
            let uses = |devargs| [Some(device(devargs)), linux_interface(devargs)];
            for used in port.devices().flat_map(uses).flatten() {
                if let Some(other) = devices.insert(used, here.clone()) {
                    wrong.push((here.clone(), format!("`{used}` is used by `{other}`, too")));
                }
            }
            for (path, tap) in taps(&path, name, port) {
                if tap.len() > IFNAME_MAX {
                    let message = format!(
                        "the kernel interface `{tap}` has {} octets: expected at most {IFNAME_MAX}; set the name with `tap`",
                        tap.len()
                    );
                    wrong.push((path.clone(), message));
                }
                if let Some(other) = interfaces.insert(tap.clone(), path.clone()) {
                    let message = format!("`{other}` has the kernel interface `{tap}`, too");
                    wrong.push((path, message));
                }
            }
        }
        for (path, message) in wrong {
            self.fault(path, message);
        }
    }

    fn port(&mut self, path: &Path, port: &Port) {
        for devargs in port.devices() {
            let known = |driver: &String| device(devargs).starts_with(driver);
            if is_pci(devargs) || self.can.drivers.iter().any(known) {
                continue;
            }
            let drivers: Vec<&str> = self.can.drivers.iter().map(String::as_str).collect();
            let message = format!(
                "the user plane has no driver for `{devargs}`: expected a PCI address, or a name that begins with one of {}",
                drivers.join(", ")
            );
            self.fault(devices_at(path, port), message);
        }
        if port.role == PortRole::Core {
            self.core(path, port);
        }
    }

    fn core(&mut self, path: &Path, port: &Port) {
        let below = path.join("subinterfaces");
        if !self.can.subinterfaces && !port.subinterfaces.is_empty() {
            let message = "the user plane does not support sub-interfaces".to_owned();
            self.fault(below.clone(), message);
        }
        for (name, part) in &port.subinterfaces {
            let here = below.join(name);
            if part.mtu > port.mtu {
                let message = format!("expected at most {}, which is the port's", port.mtu);
                self.fault(here.join("mtu"), message);
            }
        }
    }
}

/// Where the devices of a port are named.
fn devices_at(path: &Path, port: &Port) -> Path {
    let parts = port.devices_at().iter();
    parts.fold(path.clone(), |path, part| path.join(*part))
}

/// The TAPs of a port, and where they are named.
fn taps(path: &Path, name: &str, port: &Port) -> Vec<(Path, String)> {
    if port.role == PortRole::Access {
        return Vec::new();
    }
    let parts = port.subinterfaces.iter().map(|(name, part)| {
        let path = path.join("subinterfaces").join(name).join("tap");
        (path, part.tap_name(name))
    });
    let own = (path.join("tap"), port.tap_name(name));
    std::iter::once(own).chain(parts).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn can() -> Capabilities {
        Capabilities {
            network_instances: vec!["default".into()],
            drivers: vec!["net_af_xdp".into(), "net_ixgbe".into()],
            ports: 3,
            interfaces: 4,
            segments: 3,
            sessions: 1000,
            subinterfaces: true,
        }
    }

    const GOOD: &str = "
network-instances: {default: {interface: sl-default, gateway: [100.64.0.1]}}
ports:
  access0: {role: access, device: 'net_af_xdp0,iface=acc0', segments: {east: {s-vlans: 100-199}, west: {s-vlans: 'untagged,200'}}}
  core0:
    role: core
    device: 0000:03:00.0
    addresses: [198.51.100.1/24]
    subinterfaces: {v300: {vlan-id: 300}, v301: {vlan-id: 301, mtu: 1400}}
";

    fn faults(text: &str) -> Vec<String> {
        let document: UserPlaneDocument = serde_saphyr::from_str(text).unwrap();
        let faults = can().check(&document);
        faults.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_can_be_done_is_no_fault() {
        assert_eq!(faults(GOOD), [""; 0]);
        assert_eq!(faults("{}"), [""; 0]);
    }

    /// So does a user plane of before, which knows fewer.
    #[test]
    fn a_policy_with_more_classes_than_are_known_is_refused_by_its_name() {
        let classes: String = ('a'..='h').map(|name| format!("{name}: {{}},")).collect();
        let faults = faults(&format!("policies: {{home: {{classes: {{{classes}}}}}}}"));
        let said = "policies home classes h: class `h` is beyond the 7 that a policy may have";
        assert!(faults.len() == 1 && faults[0].contains(said), "{faults:?}");
    }

    #[test]
    fn what_cannot_be_done_is_told_at_its_place() {
        for (from, to, said) in [
            (
                "{default: {",
                "{red: {interface: sl-red, gateway: []}, default: {",
                "network-instances red: the user plane does not support `red`: expected `default`",
            ),
            (
                "net_af_xdp0,iface=acc0",
                "net_tap0",
                "ports access0 device: the user plane has no driver for `net_tap0`",
            ),
            (
                "0000:03:00.0",
                "net_af_xdp1,iface=acc0",
                "ports core0 device: `acc0` is used by `ports access0 device`, too",
            ),
            (
                "vlan-id: 301",
                "vlan-id: 300",
                "ports core0 subinterfaces v301 vlan-id: `v300` has VLAN 300",
            ),
            (
                "mtu: 1400",
                "mtu: 1600",
                "ports core0 subinterfaces v301 mtu: expected at most 1500",
            ),
            (
                "mtu: 1400",
                "network-instance: red",
                "v301 network-instance: `network-instances` has no `red`",
            ),
            (
                "mtu: 1400",
                "tap: sl-default",
                "ports core0 subinterfaces v301 tap: `network-instances default interface` has the kernel interface `sl-default`, too",
            ),
            (
                "'untagged,200'",
                "'untagged,150'",
                "ports access0 segments west s-vlans: segment `east` has some of these",
            ),
            (
                "mtu: 1400",
                "mtu: 1279",
                "ports core0 subinterfaces v301 mtu: `1279` is not valid here: expected a number from 1280 to 9600",
            ),
            (
                "vlan-id: 301",
                "vlan-id: 4095",
                "ports core0 subinterfaces v301 vlan-id: `4095` is not valid here",
            ),
            (
                "mtu: 1400",
                "tap: sixteen-octets-x",
                "v301 tap: `sixteen-octets-x` is not valid here: expected the name of a kernel interface",
            ),
            (
                "v301: {",
                "thirteen-octs: {",
                "thirteen-octs tap: the kernel interface `sl-thirteen-octs` has 16 octets",
            ),
            (
                "device: 'net_af_xdp0,iface=acc0'",
                "lag: {members: ['net_af_xdp0,iface=acc0', 'net_af_xdp0,iface=acc1']}",
                "ports access0 lag members: `net_af_xdp0` is used by `ports access0 lag members`, too",
            ),
            (
                "device: 'net_af_xdp0,iface=acc0'",
                "lag: {members: ['net_af_xdp0,iface=acc0', net_tap0]}",
                "ports access0 lag members: the user plane has no driver for `net_tap0`",
            ),
            (
                "device: 'net_af_xdp0,iface=acc0'",
                "lag: {members: [0000:04:00.0, 0000:04:00.1, 0000:04:00.2]}",
                "ports: 4 devices: the user plane supports at most 3",
            ),
            (
                "device: 'net_af_xdp0,iface=acc0'",
                "lag: {members: []}",
                "ports access0 lag members: 0 members: expected 1 to 8",
            ),
            (
                "device: 'net_af_xdp0,iface=acc0'",
                "lag: {members: [0000:04:00.0], minimum-links: 2}",
                "ports access0 lag minimum-links: expected at most 1, the number of `members`",
            ),
            (
                "{role: access, device",
                "{role: access, lag: {members: [0000:04:00.0]}, device",
                "ports access0 lag: is valid for ports without `device` only: delete one of both",
            ),
            (
                "device: 'net_af_xdp0,iface=acc0', ",
                "",
                "ports access0: has no device: expected `device`, or `lag` with its `members`",
            ),
            (
                "{role: access,",
                "{role: access, tap: sl-acc0,",
                "ports access0 tap: this is valid for core ports only",
            ),
            (
                "{role: access,",
                "{role: access, addresses: [192.0.2.1/24],",
                "ports access0 addresses: this is valid for core ports only",
            ),
            (
                "{role: access,",
                "{role: access, source-check: strict,",
                "ports access0 source-check: this is valid for core ports only",
            ),
            (
                "role: core",
                "segments: {all: {}}\n    role: core",
                "ports core0 segments: this is valid for access ports only",
            ),
            (
                "gateway: [100.64.0.1]",
                "gateway: [127.0.0.1]",
                "network-instances default gateway: `127.0.0.1` is not a unicast address",
            ),
            (
                "v300: {vlan-id: 300}",
                "v300: {vlan-id: 300}, v302: {vlan-id: 302}",
                "ports: 5 ports and subinterfaces: the user plane supports at most 4",
            ),
            (
                "west: {",
                "s: {s-vlans: 7}, t: {s-vlans: 8}, west: {",
                "ports: 4 access segments: the user plane supports at most 3",
            ),
        ] {
            assert!(GOOD.contains(from), "{from}");
            let found = faults(&GOOD.replace(from, to));
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].contains(said), "{found:?}");
        }
    }
}
