//! Turns `radius.dictionary` into Rust: a constant for each attribute and named value, and a table of them all.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=radius.dictionary");
    println!("cargo::rerun-if-changed=build.rs");
    let text = fs::read_to_string("radius.dictionary").expect("radius.dictionary beside build.rs");
    let out = env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    fs::write(
        Path::new(&out).join("radius_dictionary.rs"),
        generate(&text),
    )
    .expect("OUT_DIR is writable");
}

/// What has been read and written so far.
#[derive(Default)]
struct Generator {
    rfc: String,
    vendor: u32,
    vendor_name: String,
    names: HashSet<String>,
    constants: String,
    /// Definitions by vendor and number.
    table: BTreeMap<(u32, u8), String>,
    values: String,
}

fn generate(dictionary: &str) -> String {
    let mut generator = Generator::default();
    for (index, line) in dictionary.lines().enumerate() {
        let words: Vec<&str> = line
            .split('#')
            .next()
            .unwrap_or_default()
            .split_whitespace()
            .collect();
        let done = match words[..] {
            [] => Some(()),
            ["RFC", number] => {
                generator.rfc = number.to_owned();
                Some(())
            }
            ["VENDOR", name, ref number @ ..] => generator.vendor(name, number),
            ["ATTRIBUTE", name, number, kind] => generator.attribute(name, number, kind, false),
            ["ATTRIBUTE", name, number, kind, "concat"] => {
                generator.attribute(name, number, kind, true)
            }
            ["VALUE", attribute, name, number] => generator.value(attribute, name, number),
            _ => None,
        };
        assert!(
            done.is_some(),
            "radius.dictionary:{}: cannot be understood: {line}",
            index + 1
        );
    }
    let Generator {
        constants,
        table,
        values,
        ..
    } = generator;
    let table: String = table.into_values().collect();
    format!(
        "impl Kind {{\n{constants}}}\n\nstatic DEFINITIONS: &[Definition] = &[\n{table}];\n\n/// Named values of integer attributes.\npub mod values {{\n{values}}}\n"
    )
}

impl Generator {
    fn vendor(&mut self, name: &str, number: &[&str]) -> Option<()> {
        (self.vendor, self.vendor_name) = match number {
            [] if name == "none" => (0, String::new()),
            [number] => (number.parse().ok()?, format!("{name}-")),
            _ => return None,
        };
        Some(())
    }

    fn attribute(&mut self, name: &str, number: &str, kind: &str, concat: bool) -> Option<()> {
        let number: u8 = number.parse().ok()?;
        let kind = match kind {
            "integer" => "Integer",
            "text" => "Text",
            "octets" => "Octets",
            "ipv4" => "Ipv4",
            "ipv6" => "Ipv6",
            "ipv6prefix" => "Ipv6Prefix",
            "interface-id" => "InterfaceId",
            "time" => "Time",
            _ => return None,
        };
        let name = format!("{}{name}", self.vendor_name);
        let constant = constant(&name);
        self.names.insert(name.clone()).then_some(())?;
        let (vendor, rfc) = (self.vendor, &self.rfc);
        writeln!(self.constants, "    /// {name} (RFC {rfc}).").ok()?;
        writeln!(
            self.constants,
            "    pub const {constant}: Self = Self {{ vendor: {vendor}, number: {number} }};"
        )
        .ok()?;
        let kind = format!(
            "kind: Kind::{constant}, name: \"{name}\", data: DataType::{kind}, concat: {concat}"
        );
        let definition = format!("    Definition {{ {kind} }},\n");
        let twice = self.table.insert((vendor, number), definition);
        twice.is_none().then_some(())
    }

    fn value(&mut self, attribute: &str, name: &str, number: &str) -> Option<()> {
        self.names.contains(attribute).then_some(())?;
        let number: u32 = number.parse().ok()?;
        writeln!(self.values, "    /// {attribute}: {name}.").ok()?;
        writeln!(
            self.values,
            "    pub const {}_{}: u32 = {number};",
            constant(attribute),
            constant(name)
        )
        .ok()
    }
}

fn constant(name: &str) -> String {
    name.replace('-', "_").to_uppercase()
}
