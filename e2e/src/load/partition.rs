//! Planes that are cut apart from one another.

use super::{Loaded, where_lost};
use crate::cut::Cut;
use crate::guard::PATIENCE;
use crate::scenario::{NOTICED, Newcomer, Tally};
use crate::vm::Vm;
use anyhow::{Result, ensure};
use lab::topology::{Lab, Place, UserPlane};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Which way datagrams between a user plane and the control plane are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the user plane.
    Up,
    /// To the user plane.
    Down,
    /// Both.
    Both,
}

/// Cuts the ways between the control plane and each user plane.
fn cut(lab: &Lab, ways: [Way; 2]) -> Result<Vec<Cut<'_>>> {
    let (mut up, mut cuts) = (Vec::new(), Vec::new());
    for (plane, way) in UserPlane::ALL.into_iter().zip(ways) {
        if way != Way::Down {
            up.push(format!("iifname {}", plane.management_link()));
        }
        if way != Way::Up {
            let netns = lab.netns(Place::UserPlane(plane));
            cuts.push(Cut::arriving(netns, &["iifname mgmt0"])?);
        }
    }
    let expressions: Vec<&str> = up.iter().map(String::as_str).collect();
    cuts.push(Cut::arriving(lab.netns(Place::ControlPlane), &expressions)?);
    Ok(cuts)
}

impl Loaded {
    /// Cuts the planes apart for a while: traffic of every session goes on. Meanwhile at each user plane a home hangs up,
    /// and another one dials in on its line; afterwards both planes know who is there.
    pub fn part(&mut self, lab: &Lab, vm: &Vm, ways: [Way; 2], length: Duration) -> Result<()> {
        let lines = UserPlane::ALL.map(|up| (up, self.number()));
        let mut leaving = Vec::new();
        for (up, line) in lines {
            let home = Newcomer::dial_on(lab, up, line, line)?;
            home.wait_online(PATIENCE)?;
            leaving.push(home);
        }
        let before = self.crowd.hush();
        self.crowd.speak();
        let began = Instant::now();
        let cuts = cut(lab, ways)?;
        for home in leaving {
            home.hang_up(PATIENCE)?;
        }
        let mut coming = Vec::new();
        for (up, line) in lines {
            let number = self.number();
            coming.push(Newcomer::dial_on(lab, up, line, number)?);
        }
        sleep(length.saturating_sub(began.elapsed()));
        let lasted = began.elapsed();
        for cut in cuts {
            ensure!(
                cut.dropped()? > 0,
                "nothing was lost: the case shows nothing"
            );
        }
        let healed = Instant::now();
        // A home that was not heard asks less and less often.
        for home in &coming {
            home.wait_online(PATIENCE + lasted)?;
        }
        let online = healed.elapsed();
        for home in coming {
            home.hang_up(PATIENCE)?;
        }
        self.wait_sound(lab, vm, NOTICED + PATIENCE)?;
        let settled = healed.elapsed();
        let after = self.crowd.hush();
        self.crowd.speak();
        let lost = [0, 1].map(|up| Tally::since(&after[up], &before[up]));
        println!(
            "        {} s {:?} and {:?}: new homes on the same lines online {:.2} s after, all as before {:.2} s after, {} of {} packets lost",
            lasted.as_secs(),
            ways[0],
            ways[1],
            online.as_secs_f64(),
            settled.as_secs_f64(),
            lost[0].1 + lost[1].1,
            lost[0].0 + lost[1].0
        );
        for up in UserPlane::ALL {
            if lost[up as usize].1 > 0 {
                println!("{}", where_lost(lab, up));
            }
        }
        ensure!(lost[0].1 + lost[1].1 == 0, "packets were lost: {lost:?}");
        Ok(())
    }
}
