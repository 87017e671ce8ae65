//! HTTPS server for operators and their programs: `sluice-web`. It serves the tables of the control plane's local API as JSON, and
//! metrics for Prometheus. The control plane itself listens to nothing on the network but the protocols that it speaks.

mod api;
mod audience;
mod certificate;
mod changes;
mod files;
mod gateway;
mod limits;
mod live;
mod metrics;
mod openapi;
mod problem;
mod query;
mod questions;
mod server;
mod tokens;

use clap::{Parser, Subcommand};
use config::start::Web;
use northbound::time;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tokens::{Role, TokenFile};

/// Start file that is read if it is there and no other is named.
const START: &str = "/etc/sluice/web.yaml";
/// Exit code for an invalid start file.
const BAD_CONFIG: u8 = 2;
/// Time after which a token expires if nothing else is said.
const EXPIRES: &str = "90d";

/// HTTPS server of the Sluice broadband network gateway: REST API and metrics
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

#[derive(Subcommand)]
enum Command {
    /// Manage the tokens by which clients are known
    #[command(subcommand)]
    Token(Token),
}

#[derive(Subcommand)]
enum Token {
    /// Make a token and print it. It is not shown again
    Add {
        /// Who uses it
        name: String,
        /// What it may do
        #[arg(long, value_enum)]
        role: Role,
        /// When it expires: a time from now such as 90d, 12h or 2w, or `never`
        #[arg(long, default_value = EXPIRES, value_name = "TIME")]
        expires: String,
    },
    /// List the tokens: name, role, when each expires
    List,
    /// Remove a token. Requests with it are refused at once
    Revoke {
        /// Its name
        name: String,
    },
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
    if arguments.check {
        println!("the start file is valid");
        return ExitCode::SUCCESS;
    }
    let done = match arguments.command {
        Some(Command::Token(token)) => manage(&TokenFile::of(&start.state), token),
        None => {
            let _set_level = logging::start();
            server::run(&start)
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
    Ok(start)
}

fn manage(file: &TokenFile, command: Token) -> Result<(), String> {
    let now = time::now();
    match command {
        Token::Add {
            name,
            role,
            expires,
        } => {
            let expires = match &*expires {
                "never" => None,
                span => Some(
                    now + time::span(span).ok_or_else(|| {
                        format!("`{span}` is no time: expected such as 90d, 12h or 2w, or `never`")
                    })?,
                ),
            };
            println!("{}", file.add(&name, role, now, expires)?);
        }
        Token::List => {
            for token in file.read()? {
                let until = match token.expires {
                    None => "never expires".into(),
                    Some(at) if at <= now => format!("expired {}", time::moment(at)),
                    Some(at) => format!("expires {}", time::moment(at)),
                };
                println!("{:<24}  {:<9}  {until}", token.name, token.role.word());
            }
        }
        Token::Revoke { name } => file.revoke(&name)?,
    }
    Ok(())
}
