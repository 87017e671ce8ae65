//! As many homes as one control plane serves: what it costs to connect them, how they live through a user plane's death, a town whose
//! power comes back, as many rules as there may be, and what `sluice-web` makes of them.

mod commands;
mod document;
mod homes;
mod plane;
mod rows;
mod rules;
mod tools;
mod town;
mod watch;
mod web;

pub use homes::small;
pub use web::all_pages;

use crate::fixture::Fixture;
use crate::guard;
use crate::turn::Turn;
use anyhow::{Result, bail};
use rows::Rows;
use std::time::Instant;

/// A part.
type Part = fn(&mut Fixture, &mut Rows) -> Result<()>;

/// The parts, in their order.
const PARTS: [(&str, Part); 5] = [
    ("homes", homes::full),
    ("freeradius", homes::freeradius),
    ("town", town::run),
    ("rules", rules::run),
    ("web", web::run),
];

/// Runs them, or one of them.
pub fn run(only: Option<&str>) -> Result<()> {
    if let Some(only) = only
        && PARTS.iter().all(|(name, _)| *name != only)
    {
        bail!("no part {only}: {:?}", PARTS.map(|(name, _)| name));
    }
    guard::start()?;
    let _turn = Turn::alone()?;
    let start = Instant::now();
    let mut fixture = Fixture::new()?;
    let (mut rows, mut done) = (Rows::default(), Ok(()));
    for (name, part) in PARTS {
        if done.is_ok() && only.is_none_or(|only| only == name) {
            println!("scale: {name}");
            guard::limit("very many homes");
            done = part(&mut fixture, &mut rows);
        }
    }
    if done.is_err() {
        println!("{}", fixture.post_mortem("scale"));
    }
    rows.print();
    println!("scale: {}", rows.write()?.display());
    guard::limit("cleaning up");
    fixture.close()?;
    println!("scale: {:.0} s", start.elapsed().as_secs_f64());
    done
}
