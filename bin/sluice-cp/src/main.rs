//! Daemon of the control plane: `sluice-cp START.yaml`.

use clap::Parser;
use config::Checked;
use config::history::has_version;
use config::start::ControlPlane;
use control::Dictionary;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

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
    let (set_level, _written) = logging::start();
    match control::runtime::run(start, dictionary, initial, Box::new(set_level)) {
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
