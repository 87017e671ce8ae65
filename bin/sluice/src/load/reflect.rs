//! `sluice load reflect`: the far side of verified traffic.

use crate::screen::Interrupt;
use anyhow::{Context, Result};
use lab::access_network::PORT;
use lab::reflector::{Reflector, addresses_of};
use std::net::IpAddr;
use std::time::Duration;

/// How often an end is looked for.
const TURN: Duration = Duration::from_millis(200);

/// Send verified packets back to the homes that sent them (on a host at the core side)
#[derive(Clone, Debug, clap::Args)]
#[command(
    after_help = "It answers on UDP port 20000 and needs no privileges. It answers verified packets alone, each with one of the \
same size, until Ctrl-C."
)]
pub struct Reflect {
    /// Address to listen on, one of this host's own; may be given once for each family
    #[arg(long, value_name = "ADDRESS", required_unless_present = "interface")]
    listen: Vec<IpAddr>,
    /// Listen on the addresses of this interface
    #[arg(long, value_name = "NAME", conflicts_with = "listen")]
    interface: Option<String>,
}

impl Reflect {
    /// Reflects until somebody wants an end.
    pub fn run(&self) -> Result<()> {
        let addresses = match &self.interface {
            Some(interface) => addresses_of(interface)?,
            None => self.listen.clone(),
        };
        let interrupt = Interrupt::listen().context("cannot listen for signals")?;
        let mut reflector = Reflector::open(&addresses)?;
        let shown: Vec<String> = addresses.iter().map(IpAddr::to_string).collect();
        println!("reflecting on {}, UDP port {PORT}", shown.join(" and "));
        while !interrupt.is_asked() {
            reflector.run(TURN)?;
        }
        let done = reflector.reflected();
        println!(
            "{} packets reflected, {} others not answered, {} answers not sent",
            done.reflected, done.refused, done.unsent
        );
        Ok(())
    }
}
