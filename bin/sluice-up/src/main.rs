//! The user plane: `sluice-up CONFIG.yaml`.
//!
//! Exit codes: 0 after SIGTERM or SIGINT, 1 when it cannot start or go on, 2 when the
//! configuration is wrong. What it logs is chosen by `SLUICE_LOG` (`info` by default, in the
//! syntax of tracing's EnvFilter).
#![forbid(unsafe_code)]

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser;
use config::{UserPlaneDocument, model};
use northbound::supervisor;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tracing::{error, info, warn};
use tracing_subscriber::EnvFilter;

/// Rules and records are built and let go of by the hundred thousand after a restart: the system's allocator had a good part
/// of that work.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The user plane of Sluice: forwards packets as the control plane says.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// The configuration file.
    config: PathBuf,
    /// Only say whether the configuration can be used.
    #[arg(long)]
    check: bool,
}

const WRONG_CONFIGURATION: u8 = 2;

fn main() -> ExitCode {
    let began = Instant::now();
    let arguments = Arguments::parse();
    let filter = EnvFilter::try_from_env("SLUICE_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .init();

    let document: config::UserPlane = match config::load(&arguments.config) {
        Ok(document) => document,
        Err(error) => return wrong(error),
    };
    let (start, document) = parts(document);
    if let Err(fault) = config::Document::check(&start) {
        return wrong(in_lines(&arguments.config, &[fault]));
    }
    let faults = userplane::configure::capabilities(start.max_sessions).check(&document);
    if !faults.is_empty() {
        return wrong(in_lines(&arguments.config, &faults));
    }
    if arguments.check {
        println!("{}: can be used", arguments.config.display());
        return ExitCode::SUCCESS;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let served = |runtime: Runtime| runtime.block_on(serve(&start, &document, began));
    match runtime.and_then(served) {
        Ok(code) => code,
        Err(error) => {
            error!(%error, "the user plane ends");
            ExitCode::FAILURE
        }
    }
}

fn wrong(error: impl std::fmt::Display) -> ExitCode {
    eprintln!("{error}");
    ExitCode::from(WRONG_CONFIGURATION)
}

/// What is wrong, a line each.
fn in_lines(file: &std::path::Path, faults: &[config::Fault]) -> String {
    let lines = faults
        .iter()
        .map(|fault| format!("{}: {fault}", file.display()));
    lines.collect::<Vec<_>>().join("\n")
}

/// How it starts, and what it is told to be: the file has both.
fn parts(file: config::UserPlane) -> (config::start::UserPlane, UserPlaneDocument) {
    let port = |port: config::Port| {
        let core = port.role == config::PortRole::Core;
        let segments = port.segments.into_iter().map(|segment| {
            let s_vlans = segment.s_vlans;
            let access_profile = None;
            let segment_document = model::Segment {
                s_vlans,
                access_profile,
            };
            (segment.name, segment_document)
        });
        let document = model::Port {
            role: match core {
                true => model::PortRole::Core,
                false => model::PortRole::Access,
            },
            device: port.device,
            segments: segments.filter(|_| !core).collect(),
            subscriber_group: None,
            network_instance: port.network_instance.value,
            tap: port.tap,
            addresses: port.addresses,
            mtu: port.mtu,
            subinterfaces: Default::default(),
        };
        (port.name, document)
    };
    let instance = |(name, instance): (String, config::NetworkInstance)| {
        let document = model::DeviceDocument {
            interface: instance.device,
            gateway: instance.gateway,
        };
        (name, document)
    };
    let document = UserPlaneDocument {
        hold_sessions: file.hold_sessions,
        network_instances: file.network_instances.into_iter().map(instance).collect(),
        ports: file.ports.value.into_iter().map(port).collect(),
        ..UserPlaneDocument::default()
    };
    let start = config::start::UserPlane {
        node_id: file.node_id,
        address: file.address,
        control_planes: file.control_planes,
        api_socket: file.api_socket,
        management: None,
        state: Default::default(),
        memory: file.memory,
        max_sessions: file.max_sessions.value,
    };
    (start, document)
}

async fn serve(
    start: &config::start::UserPlane,
    document: &UserPlaneDocument,
    began: Instant,
) -> std::io::Result<ExitCode> {
    let (mut terminate, mut interrupt) = (
        signal(SignalKind::terminate())?,
        signal(SignalKind::interrupt())?,
    );
    let mut user_plane = match userplane::start(start).await {
        Ok(user_plane) => user_plane,
        Err(error) => {
            error!("the user plane cannot start: {error}");
            return Ok(ExitCode::FAILURE);
        }
    };
    if let Err(faults) = user_plane.reconfigure(document) {
        for fault in faults {
            error!("the user plane cannot start: {fault}");
        }
        return Ok(ExitCode::FAILURE);
    }
    let milliseconds = began.elapsed().as_millis() as u64;
    info!(node = start.node_id, address = %start.address, milliseconds, "ready");
    tell_supervisor("READY=1");
    user_plane
        .run(async {
            tokio::select! {
                _ = terminate.recv() => info!("SIGTERM"),
                _ = interrupt.recv() => info!("SIGINT"),
            }
        })
        .await?;
    tell_supervisor("STOPPING=1");
    Ok(ExitCode::SUCCESS)
}

/// Packets are forwarded whether or not a supervisor knows.
fn tell_supervisor(state: &str) {
    if let Err(error) = supervisor::notify(state) {
        warn!(state, %error, "the supervisor cannot be told");
    }
}
