use crate::load::Blow;
use crate::rig::Rig;
use anyhow::Result;
use sluice::lab::topology::UserPlane;

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

pub fn stop_control_plane(rig: &mut Rig) -> Result<()> {
    deal(rig, [Blow::StopControlPlane; 2])
}

pub fn stop_user_plane(rig: &mut Rig) -> Result<()> {
    deal(rig, UserPlane::ALL.map(Blow::StopUserPlane))
}

/// After the blows of the cases before, or after one of each kind.
pub fn books(rig: &mut Rig) -> Result<()> {
    let (lab, vm, loaded) = rig.loaded()?;
    if loaded.blows.is_empty() {
        for blow in [Blow::KillControlPlane, Blow::StopUserPlane(UserPlane::One)] {
            loaded.strike(lab, vm, blow)?;
        }
    }
    rig.unload()
}
