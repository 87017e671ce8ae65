use crate::load::{Blow, Way};
use crate::rig::Rig;
use anyhow::Result;
use lab::topology::UserPlane;
use std::time::Duration;

/// Every blow is dealt twice.
fn deal(rig: &mut Rig, blows: [Blow; 2]) -> Result<()> {
    let (lab, vm, loaded) = rig.loaded()?;
    blows
        .into_iter()
        .try_for_each(|blow| loaded.strike(lab, vm, blow).map(drop))
}

pub fn control_plane(rig: &mut Rig) -> Result<()> {
    deal(rig, [Blow::KillControlPlane; 2])
}

pub fn user_plane(rig: &mut Rig) -> Result<()> {
    deal(rig, UserPlane::ALL.map(Blow::KillUserPlane))
}

pub fn both_planes(rig: &mut Rig) -> Result<()> {
    deal(rig, UserPlane::ALL.map(Blow::KillBoth))
}

pub fn stop_control_plane(rig: &mut Rig) -> Result<()> {
    deal(rig, [Blow::StopControlPlane; 2])
}

pub fn stop_user_plane(rig: &mut Rig) -> Result<()> {
    deal(rig, UserPlane::ALL.map(Blow::StopUserPlane))
}

/// For less than PFCP's tries take: one way at each user plane, then both ways at both.
pub fn partition(rig: &mut Rig) -> Result<()> {
    let (lab, vm, loaded) = rig.loaded()?;
    let length = Duration::from_secs(3);
    loaded.part(lab, vm, [Way::Up, Way::Down], length)?;
    loaded.part(lab, vm, [Way::Both; 2], length)
}

/// For longer than PFCP's tries: both ways at one user plane, one way at the other. pppd gives up after 40 s.
pub fn long_partition(rig: &mut Rig) -> Result<()> {
    let (lab, vm, loaded) = rig.loaded()?;
    loaded.part(lab, vm, [Way::Both, Way::Up], Duration::from_secs(32))
}

/// After the blows of the cases before, or after one of each kind.
pub fn books(rig: &mut Rig) -> Result<()> {
    let (lab, vm, loaded) = rig.loaded()?;
    if loaded.blows.is_empty() {
        for blow in [Blow::KillControlPlane, Blow::KillUserPlane(UserPlane::One)] {
            loaded.strike(lab, vm, blow)?;
        }
    }
    rig.unload()
}
