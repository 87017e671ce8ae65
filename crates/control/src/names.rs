//! Names of a session in RADIUS requests, as the templates of its server group write them.

use aaa::NasPort;
use config::TemplateValues;
use config::model::Templates;
use serde::{Deserialize, Serialize};

/// Maximum length of an attribute's value, in octets (RFC 2865 §5).
const MAX_VALUE: usize = 253;

/// Names that templates wrote. A session keeps them, so that all its records have the same names. `None`: no template, the default
/// applies. Empty: the attribute is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WrittenNames {
    /// User-Name; never empty.
    pub user_name: Option<Box<[u8]>>,
    pub port_id: Option<Box<str>>,
    pub calling_station: Option<Box<str>>,
    pub called_station: Option<Box<str>>,
}

impl WrittenNames {
    /// Writes the names of a session; `None` without templates.
    pub fn of(templates: &Templates, values: &TemplateValues<'_>) -> Option<Box<Self>> {
        if *templates == Templates::default() {
            return None;
        }
        let text = |template: &Option<config::Template>| {
            let octets = template.as_ref()?.write(values);
            Some(bounded_text(&octets).into_boxed_str())
        };
        let user_name = templates.user_name.as_ref();
        let user_name = user_name.map(|template| template.write(values));
        Some(Box::new(WrittenNames {
            user_name: user_name.filter(|name| !name.is_empty()).map(Into::into),
            port_id: text(&templates.nas_port_id),
            calling_station: text(&templates.calling_station_id),
            called_station: text(&templates.called_station_id),
        }))
    }

    /// Puts the names of the line in place of the default ones.
    pub fn apply(&self, port: &mut NasPort) {
        let names = [
            (&mut port.port_id, &self.port_id),
            (&mut port.calling_station, &self.calling_station),
            (&mut port.called_station, &self.called_station),
        ];
        for (name, written) in names {
            if let Some(written) = written {
                *name = Some(written.to_string());
            }
        }
    }
}

/// Text that fits into an attribute. Octets that are not UTF-8 are written as `\xNN`; what is too long is cut off.
pub(crate) fn bounded_text(octets: &[u8]) -> String {
    let mut text = String::new();
    for chunk in octets.utf8_chunks() {
        text.push_str(chunk.valid());
        text.push_str(&chunk.invalid().escape_ascii().to_string());
    }
    text.truncate(text.floor_char_boundary(MAX_VALUE));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_utf8_and_fit_into_an_attribute() {
        assert_eq!(bounded_text(b"olt 1/2"), "olt 1/2");
        assert_eq!(bounded_text(b"\xc3\xa9\xff\x80b"), "é\\xff\\x80b");
        let long = "é".repeat(200);
        assert_eq!(bounded_text(long.as_bytes()), "é".repeat(126));
    }

    #[test]
    fn an_empty_user_name_is_that_of_the_peer_and_others_are_left_out() {
        let template = |text: &str| Some(text.parse().unwrap());
        let templates = Templates {
            user_name: template("{circuit-id}"),
            calling_station_id: template("{remote-id}"),
            called_station_id: template("{service}"),
            ..Templates::default()
        };
        let values = TemplateValues {
            service: b"internet",
            ..TemplateValues::default()
        };
        let names = WrittenNames::of(&templates, &values).unwrap();
        assert_eq!(names.user_name, None);
        let mut port = NasPort {
            port_id: Some("up1/access0".into()),
            calling_station: Some("02:00:00:00:00:07".into()),
            ..NasPort::default()
        };
        names.apply(&mut port);
        assert_eq!(port.port_id.as_deref(), Some("up1/access0"));
        assert_eq!(port.calling_station.as_deref(), Some(""));
        assert_eq!(port.called_station.as_deref(), Some("internet"));
        assert_eq!(WrittenNames::of(&Templates::default(), &values), None);
    }
}
