use super::*;
use proptest::prelude::*;

/// Reads files of these names and texts; the first one is given.
fn load(files: &[(&str, &str)]) -> Result<Dictionary, String> {
    let read = |path: &Path| {
        let file = files.iter().find(|(name, _)| Path::new(name) == path);
        file.map(|(_, text)| (*text).to_owned())
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    };
    Dictionary::shipped()
        .load(&[files[0].0.into()], read)
        .map_err(|error| error.to_string())
}

fn refused(text: &str) -> String {
    load(&[("d/acme", text)]).unwrap_err()
}

const ACME: &str = "
# Acme
VENDOR      Acme  32473
BEGIN-VENDOR Acme
ATTRIBUTE   Acme-Down       1   integer   # kbit/s
ATTRIBUTE   Acme-Pool       0x2 string    has_tag
ATTRIBUTE   Acme-Key        3   octets    encrypt=2,has_tag
ATTRIBUTE   Acme-Data       4   tlv
BEGIN-TLV   Acme-Data
ATTRIBUTE   Acme-Inner      1   integer
END-TLV     Acme-Data
ATTRIBUTE   Acme-Data-Two   4.2 integer
ATTRIBUTE   Acme-Local      300 integer
VALUE       Acme-Down  Slow 1000
VALUE       Acme-Down  None 0xff
END-VENDOR  Acme
ATTRIBUTE   Old-Style       9   ipaddr    Acme
";

fn id(vendor: u32, number: u32) -> AttributeId {
    AttributeId { vendor, number }
}

#[test]
fn a_vendors_attributes_are_found_by_name_and_by_number() {
    let dictionary = load(&[("acme", ACME)]).unwrap();
    let down = dictionary.find("acme-DOWN").unwrap();
    assert_eq!(dictionary.attribute(id(32473, 1)), Some(down));
    assert_eq!(
        (&*down.name, down.data_type, down.tagged),
        ("Acme-Down", DataType::Number(4), false)
    );
    let pool = dictionary.attribute(id(32473, 2)).unwrap();
    assert_eq!((&*pool.name, pool.tagged), ("Acme-Pool", true));
    assert!(dictionary.find("Acme-Key").unwrap().encrypted);
    assert_eq!(
        dictionary.attribute(id(32473, 9)).unwrap().name,
        "Old-Style"
    );
    for inner in ["Acme-Inner", "Acme-Data-Two", "Acme-Local"] {
        assert_eq!(dictionary.find(inner).unwrap().id, None, "{inner}");
    }
    assert_eq!(dictionary.format(32473), Some(Format::default()));
    // the shipped attributes are still there
    assert_eq!(
        dictionary.find("Alc-Primary-Dns").unwrap().id,
        Some(id(6527, 9))
    );
    assert_eq!(dictionary.find("Class").unwrap().id, Some(id(0, 25)));
    assert_eq!(dictionary.find("Acme-Up"), None);
}

#[test]
fn an_operators_attribute_replaces_a_shipped_one() {
    let text = "BEGIN-VENDOR Cisco\nATTRIBUTE My-Pair 1 octets\nEND-VENDOR Cisco\n";
    let dictionary = load(&[("mine", text)]).unwrap();
    assert_eq!(dictionary.attribute(id(9, 1)).unwrap().name, "My-Pair");
    assert_eq!(dictionary.find("Cisco-AVPair").unwrap().id, Some(id(9, 1)));
}

#[test]
fn files_include_others_beside_them() {
    let files = [
        ("d/main", "$INCLUDE acme\n$INCLUDE- missing\n$INCLUDE acme"),
        ("d/acme", ACME),
    ];
    assert!(load(&files).unwrap().find("Acme-Down").is_some());
    let missing = load(&[("d/main", "\n$INCLUDE acme")]).unwrap_err();
    assert!(
        missing.starts_with("d/main:2: d/acme: the file cannot be read: "),
        "{missing}"
    );
}

#[test]
fn a_cycle_is_refused_with_file_and_line() {
    let files = [("a", "#\n$INCLUDE b"), ("b", "$INCLUDE a")];
    let said = load(&files).unwrap_err();
    assert_eq!(
        said,
        "b:1: a: this file includes itself: expected no cycle of $INCLUDE"
    );
}

#[test]
fn includes_are_bounded_in_depth_and_number() {
    let read = |path: &Path| Ok(format!("$INCLUDE {}x", path.display()));
    let deep = Dictionary::default().load(&["a".into()], read).unwrap_err();
    assert!(deep.to_string().contains("at most 16 deep"), "{deep}");
    let read = |path: &Path| {
        let many = "$INCLUDE a\n".repeat(1025);
        Ok(if path == Path::new("a") {
            String::new()
        } else {
            many
        })
    };
    let many = Dictionary::default().load(&["m".into()], read).unwrap_err();
    assert_eq!((many.line, &*many.file), (1024, Path::new("m")));
    let read = |_: &Path| Ok("\n".repeat((16 << 20) + 1));
    let large = Dictionary::default().load(&["l".into()], read).unwrap_err();
    assert_eq!(
        large.to_string(),
        "l: expected at most 16777216 octets in all dictionaries together"
    );
    let read = |_: &Path| {
        let line = |n: u32| format!("ATTRIBUTE a{n} 1 integer\n");
        Ok((0..=65_536).map(line).collect())
    };
    let full = Dictionary::default().load(&["f".into()], read).unwrap_err();
    assert_eq!(full.line, 65_537);
}

#[test]
fn a_wrong_line_is_named_with_what_was_expected() {
    for (text, says) in [
        (
            "ATTRIBUTE A 1",
            "d/acme:1: `ATTRIBUTE A 1`: expected `ATTRIBUTE name number type [flags]`",
        ),
        (
            "\nATTRIBUTE A one integer",
            "d/acme:2: `one`: expected an attribute's number",
        ),
        (
            "ATTRIBUTE A 1.x integer",
            "`1.x`: expected an attribute's number",
        ),
        ("ATTRIBUTE A 1 number", "`number`: expected a type"),
        ("ATTRIBUTE A 1 integer shiny", "`shiny`: expected a flag"),
        ("VALUE A B c", "`c`: expected a number"),
        ("VENDOR A 0", "`0`: expected a vendor's number"),
        (
            "VENDOR A 16777216",
            "`16777216`: expected a vendor's number",
        ),
        (
            "VENDOR A 7 format=3,1",
            "`format=3,1`: expected `format=number,length[,c]`",
        ),
        ("VENDOR A 7\nVENDOR a 8", "`8`: expected vendor 7"),
        (
            "BEGIN-VENDOR Nobody",
            "`Nobody`: expected a name of a VENDOR line",
        ),
        (
            "BEGIN-VENDOR Cisco\nBEGIN-VENDOR ERX",
            "`ERX`: expected END-VENDOR Cisco first",
        ),
        ("END-VENDOR Cisco", "`Cisco`: expected BEGIN-VENDOR first"),
        (
            "BEGIN-VENDOR Cisco\nEND-VENDOR ERX",
            "`ERX`: expected END-VENDOR Cisco",
        ),
        ("END-TLV A", "`A`: expected the name of the last BEGIN-TLV"),
        (
            "ATTRIBUTE A 1 integer\nATTRIBUTE A 2 integer",
            "d/acme:2: `A`: expected another name",
        ),
        ("LINE", "`LINE`: expected `ATTRIBUTE"),
    ] {
        let said = refused(text);
        assert!(said.contains(says), "{text}: {said}");
    }
    let long = refused(&format!("ATTRIBUTE {} 1 integer", "x".repeat(1000)));
    assert!(long.contains("expected a name of at most 128 octets") && long.len() < 200);
}

#[test]
fn vendors_have_formats_of_their_own() {
    let format = |text: &str| {
        let text = format!("VENDOR A 7 format={text}");
        load(&[("f", &text)]).unwrap().format(7).unwrap()
    };
    let one = Format::default();
    assert_eq!(
        one.split(&[1, 3, 9, 2, 4, 8, 7]),
        Some(vec![(1, &[9][..]), (2, &[8, 7])])
    );
    assert_eq!(one.split(&[1, 4, 9]), None);
    assert_eq!(one.split(&[1, 1]), None);
    assert_eq!(one.split(&[]), None);
    assert_eq!(
        format("4,0").split(&[0, 0, 1, 2, 9, 8]),
        Some(vec![(0x0102, &[9, 8][..])])
    );
    assert_eq!(
        format("2,2").split(&[1, 2, 0, 5, 9]),
        Some(vec![(0x0102, &[9][..])])
    );
    let continued = format("1,1,c");
    assert_eq!(continued.split(&[1, 4, 0, 9]), Some(vec![(1, &[9][..])]));
    assert_eq!(continued.split(&[1, 4, 0x80, 9]), None, "it goes on");
    // four octets of number
    let text = "VENDOR A 7 format=4,0\nBEGIN-VENDOR A\nATTRIBUTE Wide 0x9001 integer\n";
    let wide = load(&[("f", text)]).unwrap();
    assert_eq!(wide.find("Wide").unwrap().id, Some(id(7, 0x9001)));
}

#[test]
fn values_are_read_by_their_type() {
    let read = |data_type: &str, octets: &'static [u8]| {
        let text = format!("ATTRIBUTE A 1 {data_type}");
        let dictionary = load(&[("f", &text)]).unwrap();
        dictionary.find("A").unwrap().read(octets)
    };
    let address = |text: &str| Some(Value::Address(text.parse().unwrap()));
    let prefix = |text: &str| Some(Value::Prefix(text.parse().unwrap()));
    assert_eq!(read("string", b"gold"), Some(Value::Text("gold")));
    assert_eq!(read("string", b"\xff"), None);
    assert_eq!(read("integer", &[0, 0, 1, 2]), Some(Value::Number(258)));
    assert_eq!(read("integer", &[1, 2]), None);
    assert_eq!(read("byte", &[7]), Some(Value::Number(7)));
    assert_eq!(read("short", &[1, 0]), Some(Value::Number(256)));
    let most = Some(Value::Number(u64::MAX));
    assert_eq!(read("integer64", &[0xff; 8]), most);
    assert_eq!(
        read("integer has_tag", &[1, 0, 0, 9]),
        Some(Value::Number(9))
    );
    assert_eq!(
        read("string has_tag", b"\x01gold"),
        Some(Value::Text("gold"))
    );
    assert_eq!(read("string has_tag", b"gold"), Some(Value::Text("gold")));
    assert_eq!(read("ipaddr", &[192, 0, 2, 1]), address("192.0.2.1"));
    assert_eq!(read("combo-ip", &[192, 0, 2, 1]), address("192.0.2.1"));
    assert_eq!(read("combo-ip", &[0; 15]), None);
    assert_eq!(
        read("ipv6addr", &[1; 16]),
        address("101:101:101:101:101:101:101:101")
    );
    assert_eq!(
        read("ipv4prefix", &[0, 8, 10, 1, 0, 0]),
        prefix("10.0.0.0/8")
    );
    assert_eq!(read("ipv4prefix", &[0, 33, 10, 1, 0, 0]), None);
    assert_eq!(read("ipv6prefix", &[0, 16, 0x20, 1]), prefix("2001::/16"));
    assert_eq!(read("ipv6prefix", &[0, 64, 0x20, 1]), None);
    assert_eq!(read("ipv6prefix", &[0; 19]), None);
    assert_eq!(read("date", &[1]), Some(Value::Octets(&[1])));
    assert_eq!(read("string encrypt=1", b"gold"), None);
}

/// FreeRADIUS' own dictionaries, of the package that `scripts/packages test` installs.
fn freeradius() -> Dictionary {
    let file = PathBuf::from("/usr/share/freeradius/dictionary");
    let loaded = Dictionary::default().load(&[file], |file| std::fs::read_to_string(file));
    loaded.unwrap_or_else(|error| {
        panic!("{error}: `scripts/packages test` installs FreeRADIUS' dictionaries")
    })
}

#[test]
fn freeradius_own_dictionaries_are_read_and_agree_with_the_shipped_one() {
    let theirs = freeradius();
    assert!(theirs.by_id.len() > 5000, "{}", theirs.by_id.len());
    let starent = Format {
        number: 2,
        length: 2,
        continuation: false,
    };
    assert_eq!(theirs.format(8164), Some(starent));
    let ours = Dictionary::shipped();
    // FreeRADIUS' main dictionary has the numbers of a draft of RFC 5090 instead
    let of_rfc5090 = |name: &str| name.starts_with("Digest-") || name == "SIP-AOR";
    let compared = ours.by_name.values().filter(|d| !of_rfc5090(&d.name));
    for definition in compared {
        let other = theirs.find(&definition.name);
        let other = other.unwrap_or_else(|| panic!("{}", definition.name));
        assert_eq!(definition.id, other.id, "{}", definition.name);
        let kind = |d: &Definition| (d.data_type, d.tagged, d.encrypted);
        assert_eq!(kind(definition), kind(other), "{}", definition.name);
    }
    // an operator may name all of them
    let both = Dictionary::shipped().load(&["/usr/share/freeradius/dictionary".into()], |file| {
        std::fs::read_to_string(file)
    });
    assert!(both.unwrap().find("WiMAX-Capability").is_some());
}

#[test]
fn the_shipped_dictionary_has_every_attribute_that_packets_know() {
    let dictionary = Dictionary::shipped();
    for kind in wire::radius::Kind::all() {
        let known = dictionary.attribute(kind.into());
        assert!(known.is_some(), "{kind:?}");
    }
}

/// Lines that are nearly right.
fn line() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        "[a-zA-Z0-9$#.,=-]{0,12}",
        Just("ATTRIBUTE".to_owned()),
        Just("VENDOR".to_owned()),
        Just("BEGIN-VENDOR".to_owned()),
        Just("$INCLUDE".to_owned()),
        Just("integer".to_owned()),
        Just("format=2,1,c".to_owned()),
        Just("Cisco".to_owned()),
        "[0-9]{1,9}",
    ];
    prop::collection::vec(word, 0..6).prop_map(|words| words.join(" "))
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in ".{0,200}", lines in prop::collection::vec(line(), 0..8)) {
        let _ = load(&[("a", &text)]);
        let _ = load(&[("a", &lines.join("\n")), ("Cisco", &text)]);
    }

    #[test]
    fn any_octets_are_split_and_read(octets in prop::collection::vec(any::<u8>(), 0..64), number in 1u8..5, length in 0u8..3, continuation: bool) {
        let format = Format { number, length, continuation };
        let parts = format.split(&octets).unwrap_or_default();
        prop_assert!(parts.iter().map(|(_, value)| value.len()).sum::<usize>() <= octets.len());
        for definition in Dictionary::shipped().by_name.values() {
            let _ = definition.read(&octets);
        }
    }
}
