//! Values that both documents use.

use serde::{Deserialize, Deserializer};
use std::fmt;

/// A shared secret: never printed.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// The secret itself, for the one place that needs it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// An access segment: part of an access port with a PPPoE session id bank of its own.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Segment {
    /// Unique name within the port.
    pub name: String,
    /// The outer VLANs that belong to it.
    #[serde(default)]
    pub s_vlans: SvlanSet,
}

impl Segment {
    /// The segment of a port that names none: everything.
    pub fn whole_port() -> Vec<Segment> {
        vec![Segment {
            name: "all".into(),
            s_vlans: SvlanSet::default(),
        }]
    }
}

/// A set of outer VLAN ids (0 to 4095) and untagged frames, written `untagged,100-199,300`. By default: everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SvlanSet {
    untagged: bool,
    ranges: Vec<(u16, u16)>,
}

impl Default for SvlanSet {
    fn default() -> Self {
        SvlanSet {
            untagged: true,
            ranges: vec![(0, 4095)],
        }
    }
}

impl SvlanSet {
    /// Whether frames with this outer VLAN id (`None`: untagged) belong to the set.
    pub fn contains(&self, s_vlan: Option<u16>) -> bool {
        match s_vlan {
            None => self.untagged,
            Some(id) => self.ranges.iter().any(|&(a, b)| (a..=b).contains(&id)),
        }
    }

    /// Every member, `None` first when untagged frames belong to the set.
    pub fn members(&self) -> impl Iterator<Item = Option<u16>> + '_ {
        let tagged = self.ranges.iter().flat_map(|&(a, b)| (a..=b).map(Some));
        self.untagged.then_some(None).into_iter().chain(tagged)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let expected = || {
            format!(
                "`{text}` is not a set of S-VLANs: expected ids or ranges between 0 and 4095, or `untagged`, \
                 separated by commas, such as `untagged,100-199`"
            )
        };
        let mut set = SvlanSet {
            untagged: false,
            ranges: Vec::new(),
        };
        for part in text.split(',').map(str::trim) {
            if part == "untagged" {
                set.untagged = true;
                continue;
            }
            let (a, b) = part.split_once('-').unwrap_or((part, part));
            let id = |s: &str| {
                s.trim()
                    .parse::<u16>()
                    .ok()
                    .filter(|&id| id <= 4095)
                    .ok_or_else(expected)
            };
            let (a, b) = (id(a)?, id(b)?);
            if a > b || set.ranges.iter().any(|&(c, d)| a <= d && c <= b) {
                return Err(expected());
            }
            set.ranges.push((a, b));
        }
        Ok(set)
    }
}

impl fmt::Display for SvlanSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tagged = self.ranges.iter().map(|&(a, b)| match a == b {
            true => a.to_string(),
            false => format!("{a}-{b}"),
        });
        let parts: Vec<String> = self
            .untagged
            .then(|| "untagged".to_owned())
            .into_iter()
            .chain(tagged)
            .collect();
        f.write_str(&parts.join(","))
    }
}

impl<'de> Deserialize<'de> for SvlanSet {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        // a single id may be written as a number
        SvlanSet::parse(&String::deserialize(d)?).map_err(serde::de::Error::custom)
    }
}

/// Finds two segments of one port that share an outer VLAN.
pub(crate) fn overlap(segments: &[Segment]) -> Option<(&str, &str)> {
    let mut owner = std::collections::HashMap::new();
    for segment in segments {
        for vlan in segment.s_vlans.members() {
            if let Some(other) = owner.insert(vlan, &segment.name) {
                return Some((other, &segment.name));
            }
        }
    }
    None
}

/// Finds a name that occurs twice.
pub(crate) fn doubled<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let mut seen = std::collections::HashSet::new();
    names.into_iter().find(|name| !seen.insert(*name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn svlan_sets() {
        let set = SvlanSet::parse("untagged, 100-199,300").unwrap();
        assert!(set.contains(None) && set.contains(Some(100)) && set.contains(Some(300)));
        assert!(!set.contains(Some(99)) && !set.contains(Some(200)));
        assert_eq!(set.to_string(), "untagged,100-199,300");
        assert_eq!(set.members().count(), 102);
        for wrong in ["", "4096", "200-100", "1-10,5", "x", "1--2"] {
            assert!(SvlanSet::parse(wrong).is_err(), "{wrong}");
        }
        assert!(!SvlanSet::parse("100").unwrap().contains(None));
    }

    #[test]
    fn secrets_are_not_printed() {
        let secret: Secret = serde_saphyr::from_str("hunter2").unwrap();
        assert!(!format!("{secret:?}").contains("hunter2"));
    }
}
