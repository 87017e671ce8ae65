//! Logical interfaces: core ports and their subinterfaces, as packets meet them.
use crate::api::{InstanceIndex, PortIndex, SourceCheck, Subinterface};
use crate::tables::Vlans;
use policy::PrioritySource;
use wire::eth::MacAddr;

/// A core port, or a subinterface of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interface {
    /// The port: its own index, or that of which it is a part.
    pub port: PortIndex,
    /// The gateway's address there.
    pub own: MacAddr,
    pub mtu: u16,
    /// The VLAN id of its frames, 0 without a tag.
    pub vlan: u16,
    pub instance: InstanceIndex,
    pub source_check: SourceCheck,
    /// Where the priority of its tags comes from.
    pub priority_source: PrioritySource,
}

/// All core ports and subinterfaces, by index.
pub(crate) struct Interfaces {
    all: Box<[Option<Interface>]>,
    /// For each core port and VLAN: the interface + 1, or 0.
    vlans: Box<[Option<Box<Vlans>>]>,
    /// Whether sources are checked on a port or one of its subinterfaces.
    checks: Box<[bool]>,
}

impl Interfaces {
    pub fn new(limit: u16) -> Self {
        Interfaces {
            all: vec![None; limit as usize].into(),
            vlans: (0..limit).map(|_| None).collect(),
            checks: vec![false; limit as usize].into(),
        }
    }

    pub fn get(&self, PortIndex(index): PortIndex) -> Option<&Interface> {
        self.all.get(index as usize)?.as_ref()
    }

    /// The interface that a tagged frame on a core port belongs to.
    pub fn tagged(&self, PortIndex(port): PortIndex, vlan: u16) -> Option<PortIndex> {
        let vlans = self.vlans.get(port as usize)?.as_ref()?;
        Some(PortIndex(vlans[vlan as usize & 0xfff].checked_sub(1)?))
    }

    /// Adds a core port; `vlans` is empty. A frame whose tag has no VLAN but only a priority is the port's own (IEEE 802.1Q
    /// §6.9).
    pub fn add_port(&mut self, port: Interface, mut vlans: Box<Vlans>) {
        let index = port.port.0;
        vlans[0] = index + 1;
        self.vlans[index as usize] = Some(vlans);
        self.all[index as usize] = Some(port);
    }

    /// Adds a subinterface to a core port that is there.
    pub fn add_subinterface(&mut self, PortIndex(index): PortIndex, s: Subinterface) {
        let own = self.get(s.port).map(|port| port.own).unwrap_or_default();
        let part = Interface {
            port: s.port,
            own,
            mtu: s.mtu,
            vlan: s.vlan,
            instance: s.instance,
            source_check: SourceCheck::Off,
            priority_source: PrioritySource::Fixed,
        };
        if let Some(vlans) = &mut self.vlans[s.port.0 as usize] {
            vlans[s.vlan as usize & 0xfff] = index + 1;
        }
        self.all[index as usize] = Some(part);
    }

    pub fn set_mtu(&mut self, PortIndex(index): PortIndex, mtu: u16) {
        if let Some(interface) = &mut self.all[index as usize] {
            interface.mtu = mtu;
        }
    }

    pub fn set_priority_source(&mut self, PortIndex(index): PortIndex, source: PrioritySource) {
        if let Some(interface) = &mut self.all[index as usize] {
            interface.priority_source = source;
        }
    }

    /// Are sources checked on a port or one of its subinterfaces?
    pub fn checks(&self, PortIndex(port): PortIndex) -> bool {
        self.checks.get(port as usize).is_some_and(|checks| *checks)
    }

    /// How sources are checked on an interface.
    pub fn source_check(&self, index: PortIndex) -> SourceCheck {
        self.get(index).map_or(SourceCheck::Off, |i| i.source_check)
    }

    pub fn is_checked(&self, index: PortIndex) -> bool {
        self.source_check(index) != SourceCheck::Off
    }

    pub fn set_source_check(&mut self, PortIndex(index): PortIndex, check: SourceCheck) {
        if let Some(interface) = &mut self.all[index as usize] {
            interface.source_check = check;
            let port = interface.port;
            self.note_checks(port);
        }
    }

    fn note_checks(&mut self, port: PortIndex) {
        let mut of_port = self.all.iter().flatten().filter(|i| i.port == port);
        self.checks[port.0 as usize] = of_port.any(|i| i.source_check != SourceCheck::Off);
    }

    /// Removes a port or subinterface.
    pub fn remove(&mut self, PortIndex(index): PortIndex) {
        let removed = self.all[index as usize].take();
        self.vlans[index as usize] = None;
        if let Some(Interface { port, vlan, .. }) = removed
            && let Some(vlans) = &mut self.vlans[port.0 as usize]
        {
            vlans[vlan as usize & 0xfff] = 0;
        }
        if let Some(Interface { port, .. }) = removed {
            self.note_checks(port);
        }
    }
}
