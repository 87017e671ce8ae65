//! What a case expects: `EXPECT`, a line for each thing that becomes of a packet.
//!
//! ```text
//! 1: out core0 ip.ttl=63 ip.dst=192.0.2.7     # fields in the words of tshark; what has none is empty
//! 2: drop spoofed-source-v4
//! 3: punt discovery pppoe.code=0x09
//! 4-6: out core0                              # of packets that come at once
//! ```

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// A line: whose fate, which, and the fields of what leaves.
struct Line<'a> {
    packet: &'a str,
    fate: String,
    fields: Vec<(&'a str, &'a str)>,
}

fn lines(text: &str) -> Vec<Line<'_>> {
    let lines = text
        .lines()
        .map(|line| line.split('#').next().unwrap().trim());
    let line = |line| {
        let (packet, rest): (&str, &str) = str::split_once(line, ": ").expect("`PACKET: FATE`");
        let (fields, fate): (Vec<_>, Vec<_>) =
            rest.split_whitespace().partition(|word| word.contains('='));
        let fields = fields.into_iter().map(|word| word.split_once('=').unwrap());
        Line {
            packet,
            fate: fate.join(" "),
            fields: fields.collect(),
        }
    };
    lines.filter(|line| !line.is_empty()).map(line).collect()
}

/// Compares what became of the packets with what was expected: their fates by what the check said, the frames that left by
/// what tshark reads in them.
pub fn judge(case: &str, expect: &Path, said: &str, out: &Path) {
    let text = std::fs::read_to_string(expect).unwrap();
    let lines = lines(&text);
    let expected = |packet: &str| {
        let own = lines.iter().filter(|line| line.packet == packet);
        own.map(|line| line.fate.as_str())
            .collect::<Vec<_>>()
            .join(", ")
    };
    let mut packets = Vec::new();
    for line in said.lines() {
        let (packet, rest) = line.split_once(": ").unwrap();
        let fate = rest.split(" [").next().unwrap();
        assert_eq!(fate, expected(packet), "{case}: packet {packet}: {line}");
        packets.push(packet);
    }
    let unknown = lines.iter().find(|line| !packets.contains(&line.packet));
    assert!(
        unknown.is_none(),
        "{case}: there is no packet {}",
        unknown.unwrap().packet
    );

    let names: Vec<_> = lines
        .iter()
        .flat_map(|line| line.fields.iter().map(|f| f.0))
        .collect();
    let mut frames = frames(out, &names).into_iter();
    for line in lines.iter().filter(|line| !line.fate.starts_with("drop ")) {
        let frame = frames
            .next()
            .unwrap_or_else(|| panic!("{case}: too few frames"));
        let place = format!("{case}: packet {} {}: {frame:?}", line.packet, line.fate);
        let comment = &frame["frame.comment"];
        assert!(
            comment.starts_with(&format!("{}: ", line.packet)),
            "{place}"
        );
        let interface = match line.fate.split_once(' ') {
            Some(("out", port)) => port,
            _ => frame["frame.interface_name"].as_str(),
        };
        assert_eq!(frame["frame.interface_name"], interface, "{place}");
        // What a port sends is sound.
        let sent = line.fate.starts_with("out ");
        assert!(!sent || frame["_ws.malformed"].is_empty(), "{place}");
        for (name, value) in &line.fields {
            assert_eq!(&frame[*name], value, "{place}: {name}");
        }
    }
    assert_eq!(frames.next(), None, "{case}: nobody expects it");
}

/// The frames of a capture as tshark reads them: these fields of each, all their occurrences with commas between.
fn frames<'a>(file: &Path, fields: &[&'a str]) -> Vec<BTreeMap<&'a str, String>> {
    let always = ["frame.comment", "frame.interface_name", "_ws.malformed"];
    let fields: Vec<_> = always.into_iter().chain(fields.iter().copied()).collect();
    let mut tshark = Command::new("tshark");
    tshark.args([
        "-n",
        "-T",
        "fields",
        "-E",
        "separator=/t",
        "-E",
        "occurrence=a",
        "-r",
    ]);
    tshark.arg(file);
    for option in [
        "ip.check_checksum",
        "udp.check_checksum",
        "tcp.check_checksum",
    ] {
        tshark.args(["-o", &format!("{option}:TRUE")]);
    }
    for field in &fields {
        tshark.args(["-e", field]);
    }
    let output = tshark.output().expect("tshark is installed");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let text = String::from_utf8(output.stdout).unwrap();
    let frame = |line: &str| {
        let values = line.split('\t').map(str::to_owned);
        fields.iter().copied().zip(values).collect()
    };
    text.lines().map(frame).collect()
}
