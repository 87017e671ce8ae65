//! What the control plane takes on this machine: how many of a thing one core does in a second, while user plane, homes and servers
//! take nothing. Batches of the store are not written, and no socket is used.

use crate::outage::gateway::Gateway;
use crate::server::SECRET;
use control::ControlPlane;
use core::time::Duration;
use wire::radius::{Code, Kind, Packet};

/// Sessions of each measurement.
pub const SESSIONS: usize = 1_000;
/// Servers serve faster than they are asked.
const FAST: u32 = 1_000_000;
/// Homes connect and leave within this time.
const SPAN: Duration = Duration::from_secs(1);
/// Everything is over after this time.
const REST: Duration = Duration::from_secs(4);

/// So many of each a second and core.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    /// Sessions set up: discovery, LCP, PAP or CHAP, Access-Request, both families, user plane, store, Start.
    pub setups: f64,
    /// Changes of authorization, from the CoA-Request to the CoA-ACK: user plane and store.
    pub changes: f64,
    /// Sessions ended: user plane, store, Stop.
    pub ends: f64,
}

/// Homes of [`set_ups`], and the time within which they connect.
pub const HOMES: usize = 10_000;

/// What a session costs both planes, set up and ended: with a delegated prefix, Start and Stop.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// Of the control plane, without sockets and disk.
    pub control: Duration,
    /// Of the user plane's control thread, without sockets and workers.
    pub user_plane: Duration,
}

/// Has 10,000 homes connect within a second, and leave.
///
/// # Errors
/// What did not become of them.
pub fn set_ups(seed: u64) -> Result<Cost, String> {
    let mut gateway = Gateway::delegating(seed, HOMES, &[FAST]);
    gateway.pass(REST)?;
    let (control, user_plane) = (gateway.spent, gateway.user_plane_spent());
    connect(&mut gateway, HOMES)?;
    (0..HOMES).for_each(|home| gateway.hang_up_within(home, SPAN));
    gateway.pass(SPAN + REST)?;
    let left = gateway.control().map_or(0, ControlPlane::session_count);
    if left > 0 {
        return Err(format!("{left} sessions are left"));
    }
    let each = |spent: Duration| spent / HOMES as u32;
    Ok(Cost {
        control: each(gateway.spent - control),
        user_plane: each(gateway.user_plane_spent() - user_plane),
    })
}

/// Few homes, beside which many show what each of them takes.
const FEW: usize = 16;

/// Octets that each of so many open sessions has allocated in the control plane, with its part of the store's index. `allocated` says how many
/// octets this process has allocated. Tables grow by doubling, so each has a share of what is not used yet: what this says is of that many.
///
/// # Errors
/// What did not become of the homes.
pub fn memory(seed: u64, homes: usize, allocated: impl Fn() -> usize) -> Result<usize, String> {
    let few = held(seed, FEW, &allocated)?;
    let many = held(seed, homes, &allocated)?;
    Ok(many.saturating_sub(few) / (homes - FEW))
}

/// What a control plane frees when it goes while so many homes are online.
fn held(seed: u64, homes: usize, allocated: &impl Fn() -> usize) -> Result<usize, String> {
    let mut gateway = Gateway::delegating(seed, homes, &[FAST]);
    gateway.pass(REST)?;
    connect(&mut gateway, homes)?;
    let with = allocated();
    gateway.kill_control();
    Ok(with.saturating_sub(allocated()))
}

/// Has homes connect within a second.
fn connect(gateway: &mut Gateway, homes: usize) -> Result<(), String> {
    (0..homes).for_each(|home| gateway.dial_within(home, SPAN));
    gateway.pass(SPAN + REST)?;
    match gateway.online(0..homes) {
        online if online == homes => Ok(()),
        online => Err(format!(
            "{online} of {homes} homes are online: {}",
            gateway.offline()
        )),
    }
}

/// Sets sessions up, changes each, and ends all.
///
/// # Errors
/// What did not become of them.
pub fn measure(seed: u64) -> Result<Rates, String> {
    let mut gateway = Gateway::new(seed, SESSIONS, &[FAST]);
    gateway.pass(REST)?;
    (0..SESSIONS).for_each(|home| gateway.dial_within(home, SPAN));
    let setups = rate(&mut gateway)?;
    if gateway.online(0..SESSIONS) != SESSIONS {
        return Err("not every home is online".into());
    }

    let held = gateway.control().into_iter().flat_map(ControlPlane::held);
    let sessions: Vec<String> = held.map(|held| held.seid.to_string()).collect();
    gateway.spent = Duration::ZERO;
    for (number, session) in sessions.iter().enumerate() {
        let [.., high, low] = number.to_be_bytes();
        gateway.ask(40_000 + u16::from(high), &change(low, session)?);
    }
    gateway.pass(SPAN)?;
    let changes = SESSIONS as f64 / gateway.spent.as_secs_f64();
    if gateway.acknowledged as usize != SESSIONS {
        return Err(format!("{} changes are acknowledged", gateway.acknowledged));
    }

    (0..SESSIONS).for_each(|home| gateway.hang_up_within(home, SPAN));
    let ends = rate(&mut gateway)?;
    match gateway.held(&["session"]) {
        0 => Ok(Rates {
            setups,
            changes,
            ends,
        }),
        left => Err(format!("{left} sessions are left")),
    }
}

/// How many sessions a second the control plane does of what its homes do now.
fn rate(gateway: &mut Gateway) -> Result<f64, String> {
    gateway.spent = Duration::ZERO;
    gateway.pass(SPAN + REST)?;
    Ok(SESSIONS as f64 / gateway.spent.as_secs_f64())
}

fn change(identifier: u8, session: &str) -> Result<Vec<u8>, String> {
    let mut packet = Packet::new(Code::COA_REQUEST, identifier, [0; 16]);
    packet.push(Kind::ACCT_SESSION_ID, session);
    packet.push(Kind::FRAMED_MTU, 1400_u32);
    let bytes = packet.emit_dynamic_request(SECRET.as_bytes());
    bytes.map_err(|error| error.to_string())
}
