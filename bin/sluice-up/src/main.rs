//! Daemon of the user plane: `sluice-up START.yaml`. `sluice-up check` runs captures through its packet graph.
//!
//! Exit codes: 0 after SIGTERM or SIGINT, 1 after a failure, 2 if the configuration is invalid. `SLUICE_LOG` selects what it
//! logs (`logging::VARIABLE`).
#![forbid(unsafe_code)]

mod check;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::{CommandFactory, Parser, Subcommand};
use config::UserPlaneDocument;
use northbound::supervisor;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tracing::{error, info, warn};

/// After a restart the daemon allocates and frees rules and records by the hundred thousand. This allocator is faster at that than
/// the system's (decision 0007).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// User plane of the Sluice broadband network gateway: forwards subscribers' packets
#[derive(Parser)]
#[command(
    version,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true
)]
struct Arguments {
    /// Start file (YAML). deploy/examples/up.yaml explains every setting
    #[arg(required = true)]
    start: Option<PathBuf>,
    /// Check the start file and the document that it names, then exit
    #[arg(long)]
    check: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    Check(check::Check),
    /// Write the man pages to a folder, for example: sluice-up man /usr/share/man/man1
    Man {
        /// Folder for the man pages
        folder: PathBuf,
    },
}

const WRONG_CONFIGURATION: u8 = 2;

fn main() -> ExitCode {
    let began = Instant::now();
    let pages = dpdk::Pages::small();
    let Arguments {
        start,
        check,
        command,
    } = Arguments::parse();
    match command {
        Some(Command::Check(check)) => return check.run(),
        Some(Command::Man { folder }) => return write_man_pages(&folder),
        None => {}
    }
    let file = start.expect("it is required");
    let (set_level, _written) = logging::start();
    let set_level = Box::new(set_level);
    let (start, initial) = match read(&file, check) {
        Ok(read) => read,
        Err(said) => {
            eprintln!("{said}");
            return ExitCode::from(WRONG_CONFIGURATION);
        }
    };
    if check {
        println!("{}: valid", file.display());
        return ExitCode::SUCCESS;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let served = |runtime: Runtime| {
        runtime.block_on(serve(&start, initial.as_ref(), set_level, began, pages))
    };
    match runtime.and_then(served) {
        Ok(code) => code,
        Err(error) => {
            error!(%error, "the user plane stops");
            ExitCode::FAILURE
        }
    }
}

fn write_man_pages(folder: &Path) -> ExitCode {
    match clap_mangen::generate_to(Arguments::command(), folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {error}", folder.display());
            ExitCode::FAILURE
        }
    }
}

/// Reads the start file, and the document that it names if this start needs it. A relative path is relative to the start file.
fn read(
    file: &Path,
    check: bool,
) -> Result<(config::start::UserPlane, Option<UserPlaneDocument>), String> {
    let start: config::start::UserPlane = config::load(file).map_err(|error| error.to_string())?;
    // a document from the control plane replaces the initial one
    let needed = check || !userplane::was_told(&start);
    let Some(initial) = start.initial_configuration.as_ref().filter(|_| needed) else {
        return Ok((start, None));
    };
    let file = file.with_file_name(initial);
    let document: UserPlaneDocument = config::load(&file).map_err(|error| error.to_string())?;
    let faults = userplane::configure::capabilities(start.max_sessions).check(&document);
    match faults.is_empty() {
        true => Ok((start, Some(document))),
        false => Err(in_lines(&file, &faults)),
    }
}

/// Faults, one in each line.
fn in_lines(file: &Path, faults: &[config::Fault]) -> String {
    let lines = faults
        .iter()
        .map(|fault| format!("{}: {fault}", file.display()));
    lines.collect::<Vec<_>>().join("\n")
}

async fn serve(
    start: &config::start::UserPlane,
    initial: Option<&UserPlaneDocument>,
    set_level: userplane::SetLevel,
    began: Instant,
    pages: dpdk::Pages,
) -> std::io::Result<ExitCode> {
    let (mut terminate, mut interrupt) = (
        signal(SignalKind::terminate())?,
        signal(SignalKind::interrupt())?,
    );
    let user_plane = match userplane::start(start, initial, set_level).await {
        Ok(user_plane) => user_plane,
        Err(error) => {
            error!("the user plane cannot start: {error}");
            return Ok(ExitCode::FAILURE);
        }
    };
    drop(pages);
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

/// Notifies the supervisor. A failure is only logged, because forwarding does not depend on it.
fn tell_supervisor(state: &str) {
    if let Err(error) = supervisor::notify(state) {
        warn!(state, %error, "cannot notify the supervisor");
    }
}
