//! Generates messages, clients and servers from proto/sluice/v1. It needs `protoc`: Debian's protobuf-compiler.

/// Fields that hold an enumeration, which prost keeps as a number and people read as a word.
const WORDS: [(&str, &str); 22] = [
    ("Binding.role", "BindingRole"),
    ("Event.severity", "AlarmSeverity"),
    ("Alarm.severity", "AlarmSeverity"),
    ("Event.kind", "EventKind"),
    ("Session.state", "SessionState"),
    ("UserPlane.state", "UserPlaneState"),
    ("Finding.fault", "Fault"),
    ("Route.kind", "RouteKind"),
    ("Neighbour.state", "NeighbourState"),
    ("Association.state", "AssociationState"),
    ("AaaServer.role", "AaaRole"),
    ("AaaServer.state", "AaaServerState"),
    ("TracedPacket.path", "TracedPath"),
    ("TrafficPolicy.state", "TrafficPolicyState"),
    ("DirectionPolicy.state", "TrafficPolicyState"),
    ("Denial.reason", "DenialReason"),
    ("RuleHits.kind", "MatchKind"),
    ("SessionPolicer.owner", "PolicerOwner"),
    ("SessionPolicer.kind", "PolicerKind"),
    ("QueueState.limited_by", "QueueLimit"),
    ("QueueAggregate.limited_by", "QueueLimit"),
    ("LagMember.state", "LagMemberState"),
];

fn main() -> std::io::Result<()> {
    // They lie outside of the package, where Cargo does not look by itself.
    println!("cargo:rerun-if-changed=../../proto");
    println!("cargo:rerun-if-changed=build.rs");
    let shown = "#[derive(serde::Serialize, serde::Deserialize)]";
    // what the test of the catalogue compares it with
    let descriptors = format!(
        "{}/sluice.v1.bin",
        std::env::var("OUT_DIR").expect("Cargo sets it")
    );
    let mut builder = tonic_prost_build::configure()
        .file_descriptor_set_path(descriptors)
        .message_attribute(".", shown)
        .enum_attribute(".", shown)
        .enum_attribute(".", "#[serde(rename_all = \"kebab-case\")]")
        .field_attribute("sluice.v1.Ledger.plane", "#[serde(skip)]");
    for (field, of) in WORDS {
        let attribute = format!(
            "#[serde(serialize_with = \"crate::words::serialize::<{of}, _>\", \
             deserialize_with = \"crate::words::deserialize::<{of}, _>\")]"
        );
        builder = builder.field_attribute(format!("sluice.v1.{field}"), attribute);
    }
    builder.compile_protos(
        &[
            "sluice/v1/common.proto",
            "sluice/v1/configuration.proto",
            "sluice/v1/control_plane.proto",
            "sluice/v1/tables.proto",
            "sluice/v1/live.proto",
            "sluice/v1/history.proto",
        ],
        &["../../proto"],
    )
}
