//! Compiles the shim and names the DPDK libraries to link: statically, and only the drivers that we want.
//! A static link needs no plugin directory, so EAL has nothing to scan at start.

/// Drivers, buses and pool handlers register themselves in constructors that nothing refers to: link them whole.
const WHOLE: &[&str] = &[
    "rte_bus_pci",
    "rte_bus_vdev",
    "rte_mempool_ring",
    "rte_net_af_packet",
    "rte_net_af_xdp",
    "rte_net_pcap",
    "rte_net_ring",
    "rte_net_e1000",
    "rte_net_i40e",
    "rte_net_iavf",
    "rte_net_ice",
    "rte_net_ixgbe",
    "rte_net_virtio",
    "rte_net_vmxnet3",
];

/// What those need, users before what they use, as a linker that reads archives once wants it.
const PLAIN: &[&str] = &[
    "rte_common_iavf",
    "rte_vhost",
    "rte_cryptodev",
    "rte_dmadev",
    "rte_security",
    "rte_timer",
    "rte_ethdev",
    "rte_hash",
    "rte_rcu",
    "rte_meter",
    "rte_net",
    "rte_mbuf",
    "rte_mempool",
    "rte_pci",
    "rte_ring",
    "rte_eal",
    "rte_telemetry",
    "rte_kvargs",
];

/// Debian's own shared libraries.
const SHARED: &[&str] = &["xdp", "bpf", "pcap", "bsd", "numa", "m", "dl", "pthread"];

fn main() {
    println!("cargo:rerun-if-changed=c");
    println!("cargo:rerun-if-changed=build.rs");
    let dpdk = pkg_config::Config::new()
        .cargo_metadata(false)
        .range_version("22.11".."22.12")
        .probe("libdpdk")
        .expect(
            "DPDK 22.11 is needed: apt-get install libdpdk-dev libxdp-dev libbpf-dev libpcap-dev",
        );

    let mut shim = cc::Build::new();
    shim.files([
        "c/shim.c",
        "c/pool.c",
        "c/eal.c",
        "c/af_xdp.c",
        "c/xdp_program.c",
    ])
    .opt_level(3)
    .flag("-include")
    .flag("rte_config.h")
    .flag("-march=corei7")
    .std("gnu11");
    for path in &dpdk.include_paths {
        // System headers: DPDK's own warnings are not ours.
        shim.flag("-isystem")
            .flag(path.to_str().expect("a path in UTF-8"));
    }
    let peers = std::env::var_os("CARGO_FEATURE_PEERS").is_some();
    if peers {
        shim.files([
            "c/peers_tables.c",
            "c/peers_acl.c",
            "c/peers_meter.c",
            "c/peers_pipeline.c",
            "c/peers_sched.c",
        ]);
    }
    // Before DPDK's libraries: eal.c brings functions of EAL's names that must be found first (see there).
    shim.compile("sluice_dpdk");

    let drivers = WHOLE.iter().filter_map(|lib| lib.strip_prefix("rte_"));
    let drivers: Vec<&str> = drivers.filter(|name| name.starts_with("net_")).collect();
    println!("cargo:rustc-env=SLUICE_DPDK_DRIVERS={}", drivers.join(","));

    for path in &dpdk.link_paths {
        println!("cargo:rustc-link-search=native={}", path.display());
    }
    println!("cargo:rustc-link-search=native=/usr/lib/x86_64-linux-gnu");
    for lib in WHOLE {
        println!("cargo:rustc-link-lib=static:+whole-archive,-bundle={lib}");
    }
    let peers: &[&str] = match peers {
        true => &["rte_acl", "rte_fib", "rte_rib", "rte_sched"],
        false => &[],
    };
    for lib in peers.iter().chain(PLAIN) {
        println!("cargo:rustc-link-lib=static:-bundle={lib}");
    }
    for lib in SHARED {
        println!("cargo:rustc-link-lib=dylib={lib}");
    }
}
