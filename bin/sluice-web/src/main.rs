//! HTTPS server for operators and their programs: `sluice-web`. It serves the web manager, the tables of the control plane's local API as
//! JSON, and metrics for Prometheus. The control plane itself listens to nothing on the network but the protocols that it speaks.

mod access;
mod api;
mod audience;
mod certificate;
mod changes;
mod commands;
mod completions;
mod cookie;
mod destinations;
mod feed;
mod gateway;
mod gnmi;
mod lease;
mod limits;
mod links;
mod lists;
mod live;
mod metrics;
mod openapi;
mod pages;
mod passwords;
mod problem;
mod query;
mod questions;
mod records;
mod role;
mod scope;
mod secrets;
mod server;
mod sessions;
mod sign_in;
mod sign_ins;
mod sse;
mod test_aaa;
mod tokens;
mod trace;
mod users;

use clap::Parser;
use commands::Command;
use config::start::Web;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Start file that is read if it is there and no other is named.
const START: &str = "/etc/sluice/web.yaml";
/// Exit code for an invalid start file.
const BAD_CONFIG: u8 = 2;

/// HTTPS server of the Sluice broadband network gateway: web manager, REST API and metrics
#[derive(Parser)]
#[command(name = "sluice-web", version)]
struct Arguments {
    /// Start file (YAML). deploy/examples/web.yaml explains every setting [default: /etc/sluice/web.yaml, if it is there]
    #[arg(long, global = true, value_name = "FILE")]
    start: Option<PathBuf>,
    /// Check the start file, then exit
    #[arg(long)]
    check: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let start = match read(arguments.start.as_deref()) {
        Ok(start) => start,
        Err(said) => {
            eprintln!("sluice-web: {said}");
            return ExitCode::from(BAD_CONFIG);
        }
    };
    let done = match arguments.command {
        Some(command) if !arguments.check => command.run(&start),
        _ => {
            let plans = certificate::check(&start).and_then(|()| destinations::plans(&start));
            let plans = match plans {
                Ok(plans) => plans,
                Err(said) => {
                    eprintln!("sluice-web: {said}");
                    return ExitCode::from(BAD_CONFIG);
                }
            };
            if arguments.check {
                println!("the start file is valid");
                return ExitCode::SUCCESS;
            }
            let (_set_level, _written) = logging::start();
            server::run(&start, plans)
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(said) => {
            eprintln!("sluice-web: {said}");
            ExitCode::FAILURE
        }
    }
}

/// The start file that is named, else that of [`START`], else the defaults. Relative paths of certificates are relative to the file.
fn read(named: Option<&Path>) -> Result<Web, String> {
    let default = Some(Path::new(START)).filter(|path| path.exists());
    let Some(file) = named.or(default) else {
        return Ok(Web::default());
    };
    let mut start = config::load::<Web>(file).map_err(|error| error.to_string())?;
    if let Some(tls) = &mut start.tls {
        tls.certificate = file.with_file_name(&tls.certificate);
        tls.key = file.with_file_name(&tls.key);
    }
    if let Some(authority) = &mut start.client_authority {
        *authority = file.with_file_name(&*authority);
    }
    for destination in start.destinations.values_mut() {
        let paths = [&mut destination.authority, &mut destination.secret];
        for path in paths.into_iter().flatten() {
            *path = file.with_file_name(&*path);
        }
    }
    Ok(start)
}
