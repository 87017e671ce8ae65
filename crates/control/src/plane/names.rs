//! Port and names of a session in requests to RADIUS servers.

use super::ControlPlane;
use crate::entry::Entry;
use crate::names::{WrittenNames, bounded_text};
use aaa::{NasPort, PortType};
use config::TemplateValues;

impl ControlPlane {
    /// Names that the templates of a server group write for a session; `None` without templates.
    pub(super) fn written_names(
        &self,
        index: u32,
        servers: Option<&str>,
    ) -> Option<Box<WrittenNames>> {
        let entry = &self.sessions[index];
        let group = self.configuration.aaa.server_groups.get(servers?)?;
        let line = self.access_line(entry);
        let octets = |octets: &'_ Option<Box<[u8]>>| octets.clone().unwrap_or_default();
        let values = TemplateValues {
            user_name: &entry.who.username,
            mac: Some(line.mac.0),
            node: &self.start.node_id,
            user_plane: &line.user_plane,
            port: &line.port,
            vlans: line.vids,
            circuit_id: &octets(&entry.tags.line.circuit_id),
            remote_id: &octets(&entry.tags.line.remote_id),
            service: &entry.tags.service,
        };
        WrittenNames::of(&group.templates, &values)
    }

    /// NAS port of the subscriber in AAA requests.
    pub(super) fn nas_port(&self, index: u32) -> NasPort {
        let entry = &self.sessions[index];
        let line = self.access_line(entry);
        let octets = |o: &Option<Box<[u8]>>| o.as_deref().map(<[u8]>::to_vec);
        let mut port = NasPort {
            port_type: match line.vids {
                (None, _) => PortType::PppoeOverEthernet,
                (Some(_), None) => PortType::PppoeOverVlan,
                (Some(_), Some(_)) => PortType::PppoeOverQinq,
            },
            port_id: Some(line.nas_port_id()),
            calling_station: Some(line.mac.to_string()),
            called_station: entry.called_station(),
            circuit_id: octets(&entry.tags.line.circuit_id),
            remote_id: octets(&entry.tags.line.remote_id),
            access_loop: entry.tags.access_loop.clone(),
        };
        if let Some(names) = &entry.names {
            names.apply(&mut port);
        }
        port
    }

    /// NAS-Port-Id of a session.
    pub(super) fn nas_port_id(&self, entry: &Entry) -> String {
        let names = entry.names.as_ref();
        let written = names.and_then(|names| names.port_id.as_deref());
        written.map_or_else(|| self.access_line(entry).nas_port_id(), str::to_owned)
    }
}

impl Entry {
    /// Called-Station-Id of the session: the service name that the subscriber asked for.
    fn called_station(&self) -> Option<String> {
        let name = bounded_text(&self.tags.service);
        (!name.is_empty()).then_some(name)
    }

    /// Calling-Station-Id of the session.
    pub(super) fn calling_station(&self) -> String {
        let names = self.names.as_ref();
        let written = names.and_then(|names| names.calling_station.as_deref());
        written.map_or_else(|| self.circuit.mac.to_string(), str::to_owned)
    }
}
