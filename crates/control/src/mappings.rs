//! Meaning of vendors' RADIUS attributes: dictionaries from files, and mappings from the configuration.

use aaa::dictionary::Dictionary;
use aaa::mapping::{AttributeMapping, MappingError, Mappings, Setting, Unit};
use config::model::{MappedSetting, MappedUnit, Mapping};
use config::{Configuration, Fault};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Largest dictionary file, in octets.
const LARGEST_FILE: u64 = 16 << 20;

/// Reads an operator's dictionaries, beside the shipped one.
///
/// # Errors
/// What is wrong, with file and line.
pub fn read_dictionaries(files: &[PathBuf]) -> Result<Arc<Dictionary>, String> {
    let shipped = Dictionary::shipped();
    if files.is_empty() {
        return Ok(shipped);
    }
    let loaded = shipped.load(files, read);
    loaded.map(Arc::new).map_err(|error| error.to_string())
}

fn read(file: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    let file = std::fs::File::open(file)?;
    // one octet more than the dictionary takes
    file.take(LARGEST_FILE + 1).read_to_string(&mut text)?;
    Ok(text)
}

/// The shipped mappings and those of the configuration.
///
/// # Errors
/// What is wrong with them.
pub(crate) fn mappings(
    dictionary: &Arc<Dictionary>,
    configuration: &Configuration,
) -> Result<Arc<Mappings>, Vec<Fault>> {
    let configured = &configuration.aaa.mappings;
    if configured.is_empty() && Arc::ptr_eq(dictionary, &Dictionary::shipped()) {
        return Ok(Mappings::shipped());
    }
    let operator: Vec<AttributeMapping> = configured.values().map(mapping).collect();
    let mappings = Mappings::new(dictionary.clone(), &operator);
    mappings.map(Arc::new).map_err(|errors| {
        let names: Vec<&String> = configured.keys().collect();
        let fault = |(position, error): (usize, MappingError)| {
            let leaf = match error {
                MappingError::WrongUnit(_) => "unit",
                MappingError::KeyWithoutText(_) => "key",
                MappingError::WrongType(_) | MappingError::Twice(_) => "setting",
                _ => "attribute",
            };
            let path = ["aaa", "mappings", names[position], leaf];
            Fault {
                line: 0,
                path: path.into_iter().collect(),
                message: error.to_string(),
            }
        };
        errors.into_iter().map(fault).collect()
    })
}

fn mapping(mapping: &Mapping) -> AttributeMapping {
    AttributeMapping {
        attribute: mapping.attribute.clone(),
        key: mapping.key.clone(),
        setting: setting(mapping.setting),
        unit: mapping.unit.map(unit),
    }
}

fn setting(setting: MappedSetting) -> Setting {
    match setting {
        MappedSetting::RateUp => Setting::RateUp,
        MappedSetting::RateDown => Setting::RateDown,
        MappedSetting::CommittedRateUp => Setting::CommittedRateUp,
        MappedSetting::CommittedRateDown => Setting::CommittedRateDown,
        MappedSetting::SubscriberRateUp => Setting::SubscriberRateUp,
        MappedSetting::SubscriberRateDown => Setting::SubscriberRateDown,
        MappedSetting::RateUpDown => Setting::RateUpDown,
        MappedSetting::RateDownUp => Setting::RateDownUp,
        MappedSetting::Dns => Setting::Dns,
        MappedSetting::Profile => Setting::Profile,
        MappedSetting::Ipv4Pool => Setting::Ipv4Pool,
        MappedSetting::Ipv6Pool => Setting::Ipv6Pool,
        MappedSetting::VlanPriority => Setting::VlanPriority,
        MappedSetting::Mtu => Setting::Mtu,
        MappedSetting::SessionTimeout => Setting::SessionTimeout,
        MappedSetting::IdleTimeout => Setting::IdleTimeout,
        MappedSetting::Route => Setting::Route,
        MappedSetting::PolicyUp => Setting::PolicyUp,
        MappedSetting::PolicyDown => Setting::PolicyDown,
        MappedSetting::None => Setting::Nothing,
    }
}

fn unit(unit: MappedUnit) -> Unit {
    match unit {
        MappedUnit::BitPerSecond => Unit::BitPerSecond,
        MappedUnit::KbitPerSecond => Unit::KbitPerSecond,
        MappedUnit::MbitPerSecond => Unit::MbitPerSecond,
        MappedUnit::Second => Unit::Second,
        MappedUnit::Minute => Unit::Minute,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dictionaries_are_read_from_files() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("dictionary.acme");
        let text =
            "VENDOR Acme 32473\nBEGIN-VENDOR Acme\n$INCLUDE- more\nATTRIBUTE Acme-Down 1 integer\n";
        std::fs::write(&file, text).unwrap();
        let dictionary = read_dictionaries(std::slice::from_ref(&file)).unwrap();
        assert!(dictionary.find("Acme-Down").is_some());
        let missing = read_dictionaries(&[directory.path().join("none")]).unwrap_err();
        assert!(
            missing.contains("none: the file cannot be read: "),
            "{missing}"
        );
        std::fs::write(&file, "ATTRIBUTE").unwrap();
        let wrong = read_dictionaries(&[file]).unwrap_err();
        assert!(wrong.contains("dictionary.acme:1: "), "{wrong}");
    }

    #[test]
    fn the_manuals_examples_are_valid() {
        let manual = include_str!("../../../docs/reference/radius.md");
        let block = |section: &str, language: &str| {
            let (_, section) = manual.split_once(&format!("## {section}\n")).unwrap();
            let (_, rest) = section.split_once(&format!("```{language}\n")).unwrap();
            rest.split("```").next().unwrap().to_owned()
        };
        config::check::read(&block("Servers", "yaml")).unwrap();
        let servers = "  servers: {first: {address: 192.0.2.9, secret-key: abcdefgh}}\n";
        let text = block("Mappings of your own", "yaml") + servers;
        let configuration = config::check::read(&text).unwrap().configuration;
        mappings(&Dictionary::shipped(), &configuration).unwrap();
        let acme = |_: &Path| Ok(block("Dictionaries of your own", "text"));
        let dictionary = Dictionary::shipped().load(&["acme".into()], acme).unwrap();
        assert!(dictionary.find("Acme-Down").is_some());
    }

    #[test]
    fn mappings_are_bounded() {
        let most = crate::aaa_clients::MAX_MAPPINGS;
        let faults = |count: usize| {
            let mapping = |n: usize| {
                (
                    n.to_string(),
                    serde_json::json!({"attribute": "Class", "setting": "none"}),
                )
            };
            let mappings: serde_json::Map<_, _> = (0..count).map(mapping).collect();
            let tree = serde_json::json!({"aaa": {"mappings": mappings}});
            crate::aaa_clients::bounds(&config::check::check(&tree).unwrap().configuration)
        };
        assert_eq!(faults(most), []);
        assert_eq!(
            faults(most + 1)[0].message,
            "1025 mappings: expected at most 1024"
        );
    }

    #[test]
    fn a_wrong_mapping_is_a_fault_at_its_place() {
        let faults = |mapping: &str| {
            let text = format!("aaa: {{mappings: {{acme: {{{mapping}}}}}}}");
            let configuration = config::check::read(&text).unwrap().configuration;
            let faults = mappings(&Dictionary::shipped(), &configuration).unwrap_err();
            faults[0].path.to_string()
        };
        let at = |leaf: &str| format!("aaa mappings acme {leaf}");
        let unknown = faults("attribute: Acme-Down, setting: dns");
        assert_eq!(unknown, at("attribute"));
        let type_ = faults("attribute: Class, setting: mtu");
        assert_eq!(type_, at("setting"));
        let unit = faults("attribute: WISPr-Bandwidth-Max-Up, setting: rate-up");
        assert_eq!(unit, at("unit"));
        let key = faults("attribute: WISPr-Bandwidth-Max-Up, key: x, setting: mtu");
        assert_eq!(key, at("key"));
    }
}
