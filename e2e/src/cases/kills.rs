use crate::fixture::Fixture;
use crate::load::{Fault, Way};
use anyhow::Result;
use lab::topology::UserPlane;
use std::time::Duration;

/// What may happen again and again does so in `make soak`.
fn deal(fixture: &mut Fixture, faults: impl IntoIterator<Item = Fault>) -> Result<()> {
    let (lab, vm, loaded) = fixture.loaded()?;
    faults
        .into_iter()
        .try_for_each(|fault| loaded.strike(lab, vm, fault).map(drop))
}

pub fn control_plane(fixture: &mut Fixture) -> Result<()> {
    deal(fixture, [Fault::KillControlPlane])
}

pub fn user_plane(fixture: &mut Fixture) -> Result<()> {
    deal(fixture, UserPlane::ALL.map(Fault::KillUserPlane))
}

pub fn both_planes(fixture: &mut Fixture) -> Result<()> {
    deal(fixture, [Fault::KillBoth(UserPlane::Two)])
}

pub fn stop_control_plane(fixture: &mut Fixture) -> Result<()> {
    deal(fixture, [Fault::StopControlPlane])
}

pub fn stop_user_plane(fixture: &mut Fixture) -> Result<()> {
    deal(fixture, UserPlane::ALL.map(Fault::StopUserPlane))
}

/// For less than PFCP's tries take: one way at each user plane, then both ways at both.
pub fn partition(fixture: &mut Fixture) -> Result<()> {
    let (lab, vm, loaded) = fixture.loaded()?;
    let length = Duration::from_secs(3);
    loaded.part(lab, vm, [Way::Up, Way::Down], length)?;
    loaded.part(lab, vm, [Way::Both; 2], length)
}

/// For longer than PFCP's tries: both ways at one user plane, one way at the other. pppd gives up after 40 s.
pub fn long_partition(fixture: &mut Fixture) -> Result<()> {
    let (lab, vm, loaded) = fixture.loaded()?;
    loaded.part(lab, vm, [Way::Both, Way::Up], Duration::from_secs(32))
}

/// After the faults of the cases before, or after one of each kind; with sessions that RADIUS changed and ended in between.
pub fn accounting(fixture: &mut Fixture) -> Result<()> {
    let (lab, vm, loaded) = fixture.loaded()?;
    loaded.change_and_reconnect(lab)?;
    if loaded.faults.is_empty() {
        for fault in [
            Fault::KillControlPlane,
            Fault::KillUserPlane(UserPlane::One),
        ] {
            loaded.strike(lab, vm, fault)?;
        }
    }
    fixture.unload()
}
