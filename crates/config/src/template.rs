//! Templates of names in RADIUS requests: texts with variables, such as `{user}@isp.example`.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::str::FromStr;

/// Maximum length of a template, in octets.
const MAX_TEXT: usize = 253;

/// Variables with their names. A MAC address may have a layout: `{mac:AA-BB-CC-DD-EE-FF}`.
const VARIABLES: [(&str, Variable); 12] = [
    ("user-name", Variable::UserName),
    ("user", Variable::User),
    ("realm", Variable::Realm),
    ("mac", Variable::Mac),
    ("node", Variable::Node),
    ("user-plane", Variable::UserPlane),
    ("port", Variable::Port),
    ("svlan", Variable::Svlan),
    ("cvlan", Variable::Cvlan),
    ("circuit-id", Variable::CircuitId),
    ("remote-id", Variable::RemoteId),
    ("service", Variable::Service),
];

/// What a variable stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Variable {
    UserName,
    User,
    Realm,
    Mac,
    Node,
    UserPlane,
    Port,
    Svlan,
    Cvlan,
    CircuitId,
    RemoteId,
    Service,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Variable(Variable),
    /// MAC address in this layout: the letters `a` to `f` twice each and in order, with separators.
    Mac(String),
}

/// Text with variables in braces. A brace in the text itself is doubled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    text: String,
    pieces: Vec<Piece>,
}

/// What the variables of a template stand for. Empty ones are unknown.
#[derive(Clone, Copy, Debug, Default)]
pub struct TemplateValues<'a> {
    /// User name as the peer sent it.
    pub user_name: &'a [u8],
    /// MAC address of the subscriber.
    pub mac: Option<[u8; 6]>,
    /// Node id of the control plane.
    pub node: &'a str,
    /// Node id of the user plane.
    pub user_plane: &'a str,
    /// Access port.
    pub port: &'a str,
    /// Outer and inner VLAN id.
    pub vlans: (Option<u16>, Option<u16>),
    /// Agent circuit id of the access node (TR-101).
    pub circuit_id: &'a [u8],
    /// Agent remote id of the access node (TR-101).
    pub remote_id: &'a [u8],
    /// PPPoE service name that the subscriber asked for.
    pub service: &'a [u8],
}

impl TemplateValues<'_> {
    /// The user name before and behind its last `@`, where FreeRADIUS separates the realm as well.
    fn user_and_realm(&self) -> (&[u8], &[u8]) {
        let name = self.user_name;
        match name.iter().rposition(|octet| *octet == b'@') {
            Some(at) => (&name[..at], &name[at + 1..]),
            None => (name, b""),
        }
    }

    fn write(&self, variable: Variable, out: &mut Vec<u8>) {
        let vlan = |id: Option<u16>| id.map(|id| id.to_string()).unwrap_or_default();
        match variable {
            Variable::UserName => out.extend(self.user_name),
            Variable::User => out.extend(self.user_and_realm().0),
            Variable::Realm => out.extend(self.user_and_realm().1),
            Variable::Mac => self.write_mac("aa:bb:cc:dd:ee:ff", out),
            Variable::Node => out.extend(self.node.bytes()),
            Variable::UserPlane => out.extend(self.user_plane.bytes()),
            Variable::Port => out.extend(self.port.bytes()),
            Variable::Svlan => out.extend(vlan(self.vlans.0).bytes()),
            Variable::Cvlan => out.extend(vlan(self.vlans.1).bytes()),
            Variable::CircuitId => out.extend(self.circuit_id),
            Variable::RemoteId => out.extend(self.remote_id),
            Variable::Service => out.extend(self.service),
        }
    }

    /// Writes the MAC address: its digits in place of the letters of the layout, in their case.
    fn write_mac(&self, layout: &str, out: &mut Vec<u8>) {
        let Some(mac) = self.mac else {
            return;
        };
        let digits = mac.iter().flat_map(|octet| [octet >> 4, octet & 15]);
        let mut digits = digits.map(|digit| b"0123456789abcdef"[usize::from(digit)]);
        out.extend(layout.bytes().map(|letter| match letter {
            b'a'..=b'f' => digits.next().unwrap_or(b'0'),
            b'A'..=b'F' => digits.next().unwrap_or(b'0').to_ascii_uppercase(),
            separator => separator,
        }));
    }
}

impl Template {
    /// Text with these values.
    pub fn write(&self, values: &TemplateValues<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => out.extend(text.bytes()),
                Piece::Variable(variable) => values.write(*variable, &mut out),
                Piece::Mac(layout) => values.write_mac(layout, &mut out),
            }
        }
        out
    }
}

impl FromStr for Template {
    type Err = String;

    /// # Errors
    /// What is wrong with the text, and what is expected.
    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() || text.len() > MAX_TEXT {
            return Err(format!(
                "a template has {} octets: expected 1 to {MAX_TEXT}",
                text.len()
            ));
        }
        let (mut pieces, mut plain, mut rest) = (Vec::new(), String::new(), text);
        while let Some(position) = rest.find(['{', '}']) {
            plain.push_str(&rest[..position]);
            let (brace, behind) = rest[position..].split_at(1);
            rest = behind;
            if let Some(behind) = rest.strip_prefix(brace) {
                plain.push_str(brace);
                rest = behind;
                continue;
            }
            let name = rest.split_once('}').filter(|_| brace == "{");
            let (name, behind) = name.ok_or_else(|| unbalanced(text))?;
            pieces.extend((!plain.is_empty()).then(|| Piece::Text(std::mem::take(&mut plain))));
            pieces.push(variable(name)?);
            rest = behind;
        }
        plain.push_str(rest);
        pieces.extend((!plain.is_empty()).then_some(Piece::Text(plain)));
        let text = text.to_owned();
        Ok(Template { text, pieces })
    }
}

fn unbalanced(text: &str) -> String {
    format!(
        "`{text}` has a brace without the other one: expected `{{variable}}`, and `{{{{` or `}}}}` for a brace in the text"
    )
}

fn variable(name: &str) -> Result<Piece, String> {
    if let Some(layout) = name.strip_prefix("mac:") {
        return match is_mac_layout(layout) {
            true => Ok(Piece::Mac(layout.to_owned())),
            false => Err(format!(
                "`{layout}` is not a layout of a MAC address: expected `aabbccddeeff` or `AABBCCDDEEFF` with `:`, `-` or `.` between the \
                 letters, such as `{{mac:AA-BB-CC-DD-EE-FF}}`"
            )),
        };
    }
    let known = VARIABLES.iter().find(|(own, _)| *own == name);
    known
        .map(|(_, variable)| Piece::Variable(*variable))
        .ok_or_else(|| {
            let names: Vec<&str> = VARIABLES.iter().map(|(name, _)| *name).collect();
            format!(
                "`{{{name}}}` is not a variable of templates: expected one of {}",
                names.join(", ")
            )
        })
}

fn is_mac_layout(layout: &str) -> bool {
    let letters: String = layout.split([':', '-', '.']).collect();
    let begins_and_ends = |layout: &str| {
        let ends = [layout.chars().next(), layout.chars().last()];
        let is_letter = |end: &Option<char>| end.is_some_and(|c| c.is_ascii_alphabetic());
        ends.iter().all(is_letter)
    };
    ["aabbccddeeff", "AABBCCDDEEFF"].contains(&letters.as_str()) && begins_and_ends(layout)
}

impl Serialize for Template {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Template {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const VALUES: TemplateValues<'static> = TemplateValues {
        user_name: b"alice@home@isp.example",
        mac: Some([0x02, 0, 0x5e, 0xab, 0xcd, 0xef]),
        node: "cp1",
        user_plane: "up1",
        port: "access0",
        vlans: (Some(100), None),
        circuit_id: b"olt1 1/2/3",
        remote_id: b"",
        service: b"internet",
    };

    fn written(template: &str) -> String {
        let written = template.parse::<Template>().unwrap().write(&VALUES);
        String::from_utf8(written).unwrap()
    }

    #[test]
    fn variables_are_replaced() {
        for (template, text) in [
            ("plain", "plain"),
            ("{user-name}", "alice@home@isp.example"),
            ("{user} {realm}", "alice@home isp.example"),
            (
                "{node} {user-plane} {port}:{svlan}.{cvlan}",
                "cp1 up1 access0:100.",
            ),
            ("{circuit-id}{remote-id}/{service}", "olt1 1/2/3/internet"),
            ("{mac}", "02:00:5e:ab:cd:ef"),
            ("{mac:AA-BB-CC-DD-EE-FF}", "02-00-5E-AB-CD-EF"),
            ("{mac:aabb.ccdd.eeff}", "0200.5eab.cdef"),
            ("{mac:AABBCCDDEEFF}", "02005EABCDEF"),
            ("{remote-id}", ""),
            ("{{{port}}}", "{access0}"),
        ] {
            assert_eq!(written(template), text, "{template}");
        }
        let nothing = TemplateValues::default();
        let template: Template = "{user}{realm}{mac}{svlan}".parse().unwrap();
        assert_eq!(template.write(&nothing), b"");
    }

    #[test]
    fn faults_are_named() {
        for (template, why) in [
            (
                "{usr}",
                "`{usr}` is not a variable of templates: expected one of user-name, user, realm, mac",
            ),
            ("{mac:aa}", "`aa` is not a layout of a MAC address"),
            ("{mac:aabbccddeeff-}", "is not a layout"),
            ("{mac:AAbbCCDDEEFF}", "is not a layout"),
            ("{user", "`{user` has a brace without the other one"),
            ("user}", "has a brace without the other one"),
            ("", "0 octets: expected 1 to 253"),
        ] {
            let fault = template.parse::<Template>().unwrap_err();
            assert!(fault.contains(why), "{template}: {fault}");
        }
    }

    proptest! {
        #[test]
        fn every_text_with_doubled_braces_is_written_as_it_was(text in "[ -~é]{1,100}") {
            let template = text.replace('{', "{{").replace('}', "}}");
            prop_assert_eq!(written(&template), text);
        }

        #[test]
        fn no_text_panics(text in "[{}a-f:@-]{0,40}") {
            let _ = text.parse::<Template>();
        }
    }
}
