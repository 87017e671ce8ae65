//! What RADIUS asks for while homes talk: changes of authorization, and the end of sessions, whose homes connect again.

use super::Loaded;
use crate::command::Sluice;
use crate::guard::PATIENCE;
use crate::radius::{SECRET, radclient};
use anyhow::{Result, ensure};
use cpe::State;
use lab::topology::{CP_MANAGEMENT_V4, Lab};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Homes whose sessions are changed.
const CHANGED: usize = 100;
/// Those of them whose sessions are ended.
const ENDED: usize = 20;
/// A rate that nobody reaches, and an idle time that nobody has: the user plane gets other rules, and forwards the same.
const CHANGES: [&str; 2] = [
    "Filter-Id = fast, Idle-Timeout = 3600",
    "Filter-Id = home, Idle-Timeout = 0",
];

impl Loaded {
    /// RADIUS changes sessions under traffic, ends some of them, and changes those that their homes begin.
    pub fn change_and_reconnect(&mut self, lab: &Lab) -> Result<()> {
        let start = Instant::now();
        self.let_radius_ask(lab)?;
        let changed = self.sessions_of(CHANGED)?;
        ask(lab, "coa", &changed, CHANGES[0])?;
        self.reconnect(lab, &changed[..ENDED])?;
        ask(lab, "coa", &self.sessions_of(CHANGED)?, CHANGES[1])?;
        println!(
            "        {CHANGED} sessions changed by RADIUS, {ENDED} of them ended and begun anew, and changed back in {:.2} s",
            start.elapsed().as_secs_f64()
        );
        Ok(())
    }

    fn let_radius_ask(&mut self, lab: &Lab) -> Result<()> {
        if !std::mem::replace(&mut self.asks, true) {
            let client = "set aaa dynamic-authorization clients tests";
            let fast = "set subscriber-profiles fast";
            Sluice::of(lab).configure(&format!(
                "{client} address {CP_MANAGEMENT_V4}\n{client} secret-key {SECRET}\n\
                 {fast} rate-up 1000000\n{fast} rate-down 1000000"
            ))?;
        }
        Ok(())
    }

    /// The sessions of so many emulated homes, by their names.
    fn sessions_of(&self, homes: usize) -> Result<Vec<String>> {
        let mut sessions = self.scenario.gateway.sessions()?;
        sessions.retain(|session| {
            self.sessions.contains(&session.id) && session.user.starts_with("home")
        });
        sessions.sort_by(|a, b| a.user.cmp(&b.user));
        ensure!(sessions.len() >= homes, "{} sessions", sessions.len());
        Ok(sessions
            .into_iter()
            .take(homes)
            .map(|session| session.id)
            .collect())
    }

    /// RADIUS ends these sessions while nobody talks, and their homes connect again.
    fn reconnect(&mut self, lab: &Lab, ids: &[String]) -> Result<()> {
        let before = self.crowd.hush();
        self.crowd.ended += ids.len() as u32;
        ask(lab, "disconnect", ids, "")?;
        let start = Instant::now();
        loop {
            let now = self.online()?;
            let is_back =
                now.len() == self.sessions.len() && ids.iter().all(|id| !now.contains(id));
            let all = self
                .crowd
                .statuses()
                .iter()
                .map(|s| s.at(State::Online))
                .sum::<u32>();
            if is_back && all == u32::from(super::HOMES) {
                self.sessions = now;
                break;
            }
            ensure!(start.elapsed() < PATIENCE, "the homes are not online again");
            sleep(Duration::from_millis(50));
        }
        ensure!(self.crowd.hush() == before, "somebody talked");
        self.crowd.speak();
        self.crowd.hear_all(PATIENCE).map(drop)
    }
}

/// Asks for the same of all these sessions, and waits for every acknowledgement.
fn ask(lab: &Lab, kind: &str, ids: &[String], attributes: &str) -> Result<()> {
    let separator = if attributes.is_empty() { "" } else { ", " };
    let request = |id: &String| format!("Acct-Session-Id = \"{id}\"{separator}{attributes}\n");
    let requests: Vec<String> = ids.iter().map(request).collect();
    let to = CP_MANAGEMENT_V4.into();
    let said = radclient(lab, to, kind, SECRET, &requests.join("\n"), PATIENCE)?;
    let acks = said.matches("-ACK").count();
    ensure!(
        acks == ids.len(),
        "{acks} of {} requests are acknowledged:\n{said}",
        ids.len()
    );
    Ok(())
}
