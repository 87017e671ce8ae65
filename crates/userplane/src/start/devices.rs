//! TAPs and TUNs at the start: made, or taken up from a supervisor that held them.

use std::collections::{BTreeMap, HashMap};
use std::os::fd::OwnedFd;

use config::{PortRole, UserPlane as Document};
use ipnet::IpNet;
use northbound::supervisor;
use tracing::{info, warn};
use wire::eth::MacAddr;

use super::{Context, StartError};
use crate::device::{Device, Kind};
use crate::fib::Fib;
use crate::icmp::ErrorSource;
use crate::netlink::request::{self, LinkSettings};
use crate::netlink::socket::Requester;
use crate::run::{Instance, Port};

/// What the kernel may send through a TUN: what a PPPoE session usually takes (RFC 2516 §7).
const TUN_MTU: u32 = 1492;

/// Ports as the control thread knows them, with the TAPs of core ports.
pub(super) fn describe_ports(
    document: &Document,
    described: &[(MacAddr, u16)],
    devices: &mut Devices<'_>,
) -> Result<Vec<Port>, StartError> {
    let mut ports = Vec::with_capacity(described.len());
    for (port, (mac, mtu)) in document.ports.value.iter().zip(described) {
        let tap = match &port.tap {
            None => None,
            Some(name) => {
                let settings = LinkSettings {
                    mac: Some(mac.0),
                    mtu: Some((*mtu).into()),
                    link_local: true,
                };
                Some(devices.make(name, Kind::Tap, settings, &port.addresses)?)
            }
        };
        ports.push(Port {
            name: port.name.clone(),
            device: port.device.clone(),
            access: port.role == PortRole::Access,
            mac: *mac,
            tap,
        });
    }
    Ok(ports)
}

pub(super) fn make_instances(
    document: &Document,
    ports: &[Port],
    devices: &mut Devices<'_>,
) -> Result<Vec<Instance>, StartError> {
    let taps = ports
        .iter()
        .zip(0..)
        .filter_map(|(port, index)| Some((port.tap.as_ref()?.index(), index)));
    let taps: HashMap<u32, u16> = taps.collect();
    let mut instances = Vec::new();
    for (name, instance) in &document.network_instances {
        let addresses: Vec<IpNet> = instance.gateway.iter().map(|a| IpNet::from(*a)).collect();
        let settings = LinkSettings {
            mac: None,
            mtu: Some(TUN_MTU),
            link_local: false,
        };
        let tun = devices.make(&instance.device, Kind::Tun, settings, &addresses)?;
        instances.push(Instance {
            name: name.clone(),
            fib: Fib::new(taps.clone(), tun.index()),
            errors: ErrorSource::new(&instance.gateway),
            tun,
        });
    }
    Ok(instances)
}

/// Makes TAPs and TUNs, or takes up those that a supervisor held.
pub(super) struct Devices<'a> {
    requester: &'a mut Requester,
    kept: BTreeMap<String, OwnedFd>,
}

impl<'a> Devices<'a> {
    pub(super) fn new(requester: &'a mut Requester) -> Self {
        let kept = supervisor::kept().unwrap_or_else(|error| {
            warn!(%error, "cannot take up what the supervisor held: opening devices anew");
            BTreeMap::new()
        });
        Self { requester, kept }
    }

    fn make(
        &mut self,
        name: &str,
        kind: Kind,
        settings: LinkSettings,
        addresses: &[IpNet],
    ) -> Result<Device, StartError> {
        let device = match self.take_up(name, kind) {
            Some(device) => device,
            None => Device::open(name, kind).context(|| {
                format!("cannot make the interface {name}; if it exists, it must be a free {kind:?} device")
            })?,
        };
        let index = device.index();
        self.requester
            .request(request::configure_link(index, settings))
            .context(|| format!("cannot set MAC and MTU of {name}"))?;
        for address in addresses {
            self.requester
                .request(request::add_address(index, *address))
                .context(|| format!("cannot give {name} the address {address}"))?;
        }
        let up = self.requester.request(request::link_up(index));
        up.context(|| format!("cannot bring {name} up"))?;
        Ok(device)
    }

    fn take_up(&mut self, name: &str, kind: Kind) -> Option<Device> {
        let kept = self.kept.remove(&kind.kept_as(name))?;
        match Device::take_up(kept, name, kind) {
            Ok(device) => {
                info!(device = name, "taken up from the supervisor");
                Some(device)
            }
            Err(error) => {
                warn!(device = name, %error, "opening it anew");
                self.forget(&kind.kept_as(name));
                None
            }
        }
    }

    /// What is left is of an earlier configuration.
    pub(super) fn forget_unused(mut self) {
        for name in std::mem::take(&mut self.kept).into_keys() {
            self.forget(&name);
        }
    }

    fn forget(&self, name: &str) {
        if let Err(error) = supervisor::forget(name) {
            warn!(name, %error, "the supervisor cannot be told to hold a device no longer");
        }
    }
}
