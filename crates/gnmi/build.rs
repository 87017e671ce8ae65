//! Generates messages and the server from proto/gnmi. It needs `protoc`: Debian's protobuf-compiler.

fn main() -> std::io::Result<()> {
    // They lie outside of the package, where Cargo does not look by itself.
    println!("cargo:rerun-if-changed=../../proto/gnmi");
    tonic_prost_build::configure()
        .build_client(false)
        .compile_protos(
            &["gnmi/gnmi.proto", "gnmi/gnmi_ext.proto"],
            &["../../proto"],
        )
}
