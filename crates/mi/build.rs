//! Generates messages, client and server from proto/sluice/mi/v1. It needs `protoc`: Debian's protobuf-compiler.

fn main() -> std::io::Result<()> {
    // They lie outside of the package, where Cargo does not look by itself.
    println!("cargo:rerun-if-changed=../../proto");
    println!("cargo:rerun-if-changed=build.rs");
    tonic_prost_build::configure()
        .message_attribute(".", "#[derive(serde::Serialize, serde::Deserialize)]")
        .extern_path(".sluice.v1", "::northbound")
        .compile_protos(&["sluice/mi/v1/mi.proto"], &["../../proto"])
}
