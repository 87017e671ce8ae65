//! Daemon of the control plane: `sluice-cp START.yaml`.

use clap::Parser;
use config::Checked;
use config::history::has_version;
use config::model::Level;
use config::start::ControlPlane;
use control::Dictionary;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, reload};

/// After a restart the daemon allocates and frees rules and records by the hundred thousand. This allocator is faster at that than
/// the system's (decision 0007).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Control plane of the Sluice broadband network gateway: sessions, addresses, AAA and user planes
#[derive(Parser)]
#[command(name = "sluice-cp", version)]
struct Arguments {
    /// Start file (YAML). deploy/examples/cp.yaml explains every setting
    start: PathBuf,
    /// Check the start file and the configuration that it names, then exit
    #[arg(long)]
    check: bool,
}

/// Exit code for an invalid configuration.
const BAD_CONFIG: u8 = 2;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let Read {
        start,
        dictionary,
        initial,
    } = match read(&arguments) {
        Ok(read) => read,
        Err(said) => {
            eprintln!("sluice-cp: {said}");
            return ExitCode::from(BAD_CONFIG);
        }
    };
    if arguments.check {
        println!("{}: valid", arguments.start.display());
        return ExitCode::SUCCESS;
    }
    let set_level = start_log();
    match control::runtime::run(start, dictionary, initial, set_level) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// What the daemon starts with.
struct Read {
    start: ControlPlane,
    dictionary: Arc<Dictionary>,
    initial: Option<Checked>,
}

/// Reads the start file and its dictionaries, and the configuration that it names if this start needs it. A relative path is relative
/// to the start file.
fn read(arguments: &Arguments) -> Result<Read, String> {
    let file = &arguments.start;
    let start = config::load::<ControlPlane>(file).map_err(|error| error.to_string())?;
    let dictionaries = start.dictionaries.iter();
    let dictionaries: Vec<PathBuf> = dictionaries.map(|name| file.with_file_name(name)).collect();
    let dictionary = control::read_dictionaries(&dictionaries)?;
    // the stored versions replace the initial configuration
    let needed = arguments.check || !has_version(&start.configuration());
    let Some(initial) = start.initial_configuration.as_ref().filter(|_| needed) else {
        return Ok(Read {
            start,
            dictionary,
            initial: None,
        });
    };
    let file = file.with_file_name(initial);
    let name = file.display();
    let text = std::fs::read_to_string(&file)
        .map_err(|error| format!("{name}: cannot be read: {error}"))?;
    let said = |faults: Vec<config::Fault>| {
        let line = |fault: &config::Fault| match fault.line {
            0 => format!("{name}: {fault}"),
            line => format!("{name}:{line}: {}: {}", fault.path, fault.message),
        };
        faults.iter().map(line).collect::<Vec<_>>().join("\n")
    };
    let initial = config::check::read(&text).map_err(said)?;
    control::check(&start, &dictionary, &initial.configuration).map_err(said)?;
    Ok(Read {
        start,
        dictionary,
        initial: Some(initial),
    })
}

/// Starts logging to standard error. The configuration sets the level; `RUST_LOG` overrides it.
fn start_log() -> control::SetLevel {
    let chosen = std::env::var(EnvFilter::DEFAULT_ENV).ok();
    let filter = chosen
        .as_deref()
        .map_or_else(|| filter_of(Level::Info), EnvFilter::new);
    let (filter, handle) = reload::Layer::new(filter);
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false);
    tracing_subscriber::registry()
        .with(filter)
        .with(lines)
        .init();
    Box::new(move |level| {
        if chosen.is_none()
            && let Err(error) = handle.reload(filter_of(level))
        {
            tracing::warn!(%error, "cannot change the log level: the previous level stays");
        }
    })
}

/// Filter for our own messages of a level, and for the libraries' warnings.
fn filter_of(level: Level) -> EnvFilter {
    let word = level.word();
    EnvFilter::new(format!("{word},h2=warn,hyper=warn,tower=warn,tonic=warn"))
}
