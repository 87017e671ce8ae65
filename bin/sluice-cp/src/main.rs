//! `sluice-cp`: the control plane as a process.

use clap::Parser;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

/// Rules and records are built and let go of by the hundred thousand after a restart: the system's allocator had a good part
/// of that work.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Sluice's control plane: sessions, addresses, AAA, and the user planes that it drives.
#[derive(Parser)]
#[command(name = "sluice-cp", version)]
struct Arguments {
    /// The configuration file (YAML); deploy/examples/cp.yaml explains every setting.
    config: PathBuf,
    /// Only read the configuration and say what is wrong with it.
    #[arg(long)]
    check: bool,
}

/// Exit code for a configuration that is refused.
const BAD_CONFIG: u8 = 2;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let config = match config::load::<config::ControlPlane>(&arguments.config) {
        Ok(config) => config,
        Err(error) => {
            eprintln!("sluice-cp: {error}");
            return ExitCode::from(BAD_CONFIG);
        }
    };
    if let Err(error) = control::check(&config) {
        eprintln!("sluice-cp: {}: {error}", arguments.config.display());
        return ExitCode::from(BAD_CONFIG);
    }
    if arguments.check {
        println!("{}: good", arguments.config.display());
        return ExitCode::SUCCESS;
    }
    start_log();
    match control::runtime::run(config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Logs go to standard error; `RUST_LOG` chooses what (`info` by default).
fn start_log() {
    let filter = tracing_subscriber::EnvFilter::builder()
        .with_default_directive(tracing::level_filters::LevelFilter::INFO.into())
        .from_env_lossy();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .init();
}
