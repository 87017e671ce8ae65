//! End-to-end cases: the real daemons between real peers, in network namespaces of their own.
//!
//! `e2e` runs every case, in several lanes (`LANES` says in how many); `e2e CASE…` some of them, `e2e --list` names them, `e2e --soak` kills and stops daemons in random
//! order, `e2e --scale` measures very many homes, and `e2e --record DIR` writes down what pppd and the gateway say to each other. A case is a function in a file
//! of its own below `cases/`; what the cases share (network, virtual subscriber, daemons) is a [`fixture::Fixture`].
#![forbid(unsafe_code)]

mod access_network;
mod accounting;
mod backbone;
mod background_lab;
mod carried;
mod cases;
mod certificates;
mod command;
mod cut;
mod disk;
mod fixture;
mod flood;
mod frames;
mod frr;
mod guard;
mod home;
mod internet;
mod iperf;
mod lan;
mod lane;
mod leak_check;
mod load;
mod load_tool;
mod losses;
mod page;
mod pppoe_server;
mod probe;
mod radius;
mod radius_stub;
mod record;
mod scale;
mod scenario;
mod schedule;
mod schemathesis;
mod screen;
mod silent_homes;
mod site;
mod sniff;
mod soak;
mod stored_homes;
mod strace;
mod tunnel;
mod turn;
mod vm;

use anyhow::{Result, bail};
use cases::{CASES, Case, Needs};
use fixture::Fixture;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;
use turn::Turn;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["--help"] => {
            println!(
                "usage: [LANES=N] e2e [--list | --soak [PART] | --scale [PART] | --record DIR | CASE…]"
            );
            Ok(true)
        }
        ["--list"] => {
            let line = |case: &Case| format!("{:24} {}\n", case.name, case.about);
            let lines: String = CASES.iter().map(line).collect();
            // Whoever closed the pipe has seen enough.
            let _ = std::io::stdout().write_all(lines.as_bytes());
            Ok(true)
        }
        ["--soak"] => soak::run(None).map(|()| true),
        ["--soak", part] => soak::run(Some(part)).map(|()| true),
        ["--scale"] => scale::run(None).map(|()| true),
        ["--scale", part] => scale::run(Some(part)).map(|()| true),
        ["--record", dir] => record::run(Path::new(dir)).map(|()| true),
        [radius_stub::WORD, socket] => radius_stub::serve(Path::new(socket)).map(|()| true),
        [lane::WORD] => lane::serve().map(|()| true),
        [name] => chosen(&[name]).and_then(|cases| run(cases[0])),
        ref names => chosen(names).and_then(|cases| schedule::run(&cases, lanes()?)),
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

/// How many lanes: cases wait more than they work.
fn lanes() -> Result<usize> {
    let cores = std::thread::available_parallelism()?.get();
    let wanted = soak::number("LANES")?.map_or(cores + 1, |lanes| lanes as usize);
    Ok(wanted.max(1))
}

/// Runs one case, here and now; whether it passed.
fn run(case: &'static Case) -> Result<bool> {
    guard::start()?;
    let _turn = match case.needs {
        Needs::Alone => Turn::alone()?,
        Needs::Lab | Needs::Machine => Turn::beside_others()?,
    };
    let start = Instant::now();
    let mut fixture = Fixture::new()?;
    println!("{}: {}", case.name, case.about);
    let passed = lane::attempt(&mut fixture, case);
    guard::limit("cleaning up");
    fixture.close()?;
    let failed = [case.name];
    Ok(schedule::conclude(1, &failed[usize::from(passed)..], start))
}
