//! The `sluice` command: see the library's page.
#![forbid(unsafe_code)]

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    sluice::cli::Cli::parse().run()
}
