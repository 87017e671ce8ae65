//! End-to-end cases: the real daemons between real peers, in network namespaces of their own.
//!
//! `e2e` runs every case, `e2e CASE…` some of them, `e2e --list` names them, `e2e --soak` kills and stops daemons in random
//! order, and `e2e --record DIR` writes down what pppd and the gateway say to each other. A case is a function in a file
//! of its own below `cases/`; what the cases share (network, virtual subscriber, daemons) is a [`rig::Rig`].
#![forbid(unsafe_code)]

mod arena;
mod backbone;
mod books;
mod carried;
mod cases;
mod command;
mod cut;
mod frames;
mod frr;
mod guard;
mod home;
mod internet;
mod iperf;
mod load;
mod page;
mod probe;
mod radius;
mod reckoning;
mod record;
mod rig;
mod screen;
mod site;
mod sniff;
mod soak;
mod stored_homes;
mod street;
mod street_lab;
mod vm;

use anyhow::{Result, bail};
use cases::{CASES, Case};
use rig::Rig;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["--help"] => {
            println!("usage: e2e [--list | --soak | --record DIR | CASE…]");
            Ok(true)
        }
        ["--list"] => {
            let line = |case: &Case| format!("{:24} {}\n", case.name, case.about);
            let lines: String = CASES.iter().map(line).collect();
            // Whoever closed the pipe has seen enough.
            let _ = std::io::stdout().write_all(lines.as_bytes());
            Ok(true)
        }
        ["--soak"] => soak::run().map(|()| true),
        ["--record", dir] => record::run(Path::new(dir)).map(|()| true),
        ref names => chosen(names).and_then(|cases| run(&cases)),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("e2e: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// The cases of these names, or all.
fn chosen(names: &[&str]) -> Result<Vec<&'static Case>> {
    if names.is_empty() {
        return Ok(CASES.iter().collect());
    }
    let find = |name: &&str| CASES.iter().find(|case| case.name == *name);
    if let Some(unknown) = names.iter().find(|name| find(name).is_none()) {
        bail!("no case {unknown}: `e2e --list` names them");
    }
    Ok(names.iter().filter_map(find).collect())
}

/// Runs cases one after another; whether all passed.
fn run(cases: &[&'static Case]) -> Result<bool> {
    guard::start()?;
    let start = Instant::now();
    let mut rig = Rig::new()?;
    let mut failed = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        println!(
            "[{:2}/{}] {}: {}",
            number + 1,
            cases.len(),
            case.name,
            case.about
        );
        let began = Instant::now();
        guard::limit(case.name);
        let outcome = (case.run)(&mut rig);
        let seconds = began.elapsed().as_secs_f64();
        match outcome {
            Ok(()) => println!("        passed in {seconds:.1} s"),
            Err(error) => {
                println!("        FAILED after {seconds:.1} s: {error:#}");
                println!("{}", rig.post_mortem(case.name));
                failed.push(case.name);
            }
        }
    }
    guard::limit("cleaning up");
    rig.close()?;
    for name in &failed {
        println!("failed: {name}   (again alone: make e2e CASE={name})");
    }
    println!("end to end: {:.0} s", start.elapsed().as_secs_f64());
    println!(
        "{} passed, {} failed",
        cases.len() - failed.len(),
        failed.len()
    );
    Ok(failed.is_empty())
}
