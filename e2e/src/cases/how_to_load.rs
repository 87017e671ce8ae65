use crate::fixture::Fixture;
use crate::leak_check::nothing_left;
use crate::load_tool::{INTERFACE, end_reflector, reflecting};
use crate::page::{self, Block};
use crate::scenario::Scenario;
use crate::site::{UP, program};
use anyhow::{Context, Result, ensure};
use lab::process::Process;
use lab::topology::{Lab, Place};
use std::process::{Command, Stdio};

/// Commands on the page.
const COMMANDS: usize = 7;

pub fn run(fixture: &mut Fixture) -> Result<()> {
    let blocks = page::of_how_to("load.md")?;
    ensure!(blocks.len() == COMMANDS, "{} blocks", blocks.len());
    let lab = fixture.without_site()?;
    let scenario = Scenario::open(lab)?;
    lab.access_interface(UP, INTERFACE)?;
    let mut reflectors = Vec::new();
    for block in &blocks {
        match &*block.language {
            "core" => reflectors.push(in_background(lab, block)?),
            language => {
                let succeeds = language == "sh";
                job(lab, block, succeeds).with_context(|| block.commands.clone())?;
                // What one job has left silently is not in the way of the next one.
                nothing_left(lab, &scenario)?;
            }
        }
    }
    for reflector in reflectors {
        end_reflector(reflector)?;
    }
    scenario.close()
}

/// Runs the commands of a block on the homes' side; what they show is what the page says.
fn job(lab: &Lab, block: &Block, succeeds: bool) -> Result<()> {
    let mut command = shell(lab, Place::Access(UP), &block.commands)?;
    let done = command.stdin(Stdio::null()).output()?;
    let [out, err] = [&done.stdout, &done.stderr].map(|text| String::from_utf8_lossy(text));
    ensure!(
        done.status.success() == succeeds,
        "{}: {out}{err}",
        done.status
    );
    let page = block.shows.as_deref().context("the page shows nothing")?;
    page::compare(&out, page)
}

/// Starts the command of a block on the internet host.
fn in_background(lab: &Lab, block: &Block) -> Result<Process> {
    let command = shell(lab, Place::Internet, &format!("exec {}", block.commands))?;
    reflecting(lab, command)
}

/// A shell that finds our `sluice`, in the lab's folder.
fn shell(lab: &Lab, place: Place, commands: &str) -> Result<Command> {
    let program = program("sluice")?;
    let folder = program.parent().context("a program without a folder")?;
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = lab.netns(place).command("bash");
    command
        .args(["-c", &format!("set -e -o pipefail\n{commands}")])
        .env("PATH", format!("{}:{path}", folder.display()))
        .current_dir(lab.dir());
    Ok(command)
}
