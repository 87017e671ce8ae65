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
use northbound::supervisor;
use tokio::signal::unix::{SignalKind, signal};
use tracing::{error, info, warn};
use tracing_subscriber::EnvFilter;
use userplane::StartError;

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
    if let Err(error) = userplane::check(&document) {
        return wrong(format!("{}: {error}", arguments.config.display()));
    }
    if arguments.check {
        println!("{}: can be used", arguments.config.display());
        return ExitCode::SUCCESS;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    match runtime.and_then(|runtime| runtime.block_on(serve(&document, began))) {
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

async fn serve(document: &config::UserPlane, began: Instant) -> std::io::Result<ExitCode> {
    let (mut terminate, mut interrupt) = (
        signal(SignalKind::terminate())?,
        signal(SignalKind::interrupt())?,
    );
    let user_plane = match userplane::start(document).await {
        Ok(user_plane) => user_plane,
        Err(error @ StartError::Unsupported(_)) => return Ok(wrong(error)),
        Err(error) => {
            error!("the user plane cannot start: {error}");
            return Ok(ExitCode::FAILURE);
        }
    };
    let milliseconds = began.elapsed().as_millis() as u64;
    info!(node = document.node_id, address = %document.address, milliseconds, "ready");
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
