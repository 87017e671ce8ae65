//! A town's power comes back: all of its homes connect within a second, while others are online.

use super::plane::Planes;
use super::rows::{Rows, Target};
use super::tools::{Crowd, Tools, lost, per_second, worse};
use crate::fixture::Fixture;
use crate::guard;
use crate::load_tool::INTERFACE;
use crate::losses::Losses;
use anyhow::Result;

const PART: &str = "town";
/// Homes at each user plane that are online, and as many that connect at once.
const HOMES: u32 = 30_000;
/// The last home of a town may be online after so many times as long as they would take at the sustained rate.
const LONGEST: f64 = 1.25;

/// Those who are online before.
const ONLINE: Crowd = Crowd {
    interface: INTERFACE,
    lines: "100-107.1-4000",
    first: 1,
    homes: HOMES,
    rate: 4_000,
    words: "--pps 4000",
};
/// The town.
const TOWN: Crowd = Crowd {
    interface: "town",
    lines: "110-117.1-4000",
    first: 100_001,
    homes: HOMES,
    rate: HOMES,
    words: "--pps 0 --at-once 30000",
};

pub fn run(fixture: &mut Fixture, rows: &mut Rows) -> Result<()> {
    let lab = fixture.without_site()?;
    let mut planes = Planes::with_stub(lab)?;
    let before = planes.used()?;
    let mut online = Tools::start(lab, &ONLINE)?;
    online.connected(&planes, &before)?;
    online.rounds(1)?;
    guard::limit("a town that connects within a second");
    println!("        {} homes are online", 2 * HOMES);
    let (before, losses) = (planes.used()?, Losses::of(lab)?);
    let mut town = Tools::start(lab, &TOWN)?;
    town.connected(&planes, &before)?;
    Losses::of(lab)?.print_since(&losses);
    // They leave as they came, those who were online before meanwhile.
    let town = town.leave()?;
    let online = online.leave()?;
    planes.wait_empty(u64::from(4 * HOMES))?;
    planes.nothing_left()?;
    planes.stop()?;

    let rate = per_second(&online, "per_second_of_most")?;
    rows.add(PART, "sustained rate of the first homes", rate, "/s");
    let longest = LONGEST * f64::from(2 * HOMES) / rate;
    let took = f64::from(2 * HOMES) / per_second(&town, "per_second")?;
    let most = 0.99 * f64::from(2 * HOMES) / per_second(&town, "per_second_of_most")?;
    rows.add(PART, "99 % of the town online after", most, "s");
    rows.aim(
        PART,
        "the last one online after",
        (took, "s"),
        Target::Most(longest),
    );
    for quantile in ["p50", "p99", "max"] {
        let pointer = format!("/set_ups/milliseconds/total/{quantile}");
        let time = worse(&town, &pointer)? / 1000.0;
        rows.add(PART, format!("set-up, {quantile}"), time, "s");
    }
    let failed = worse(&town, "/set_ups/attempts_failed")?;
    rows.add(PART, "attempts that failed, at the worse plane", failed, "");
    let [one, two] = [lost(&online[0])?, lost(&online[1])?];
    let what = format!(
        "packets lost by homes that were online, of {}",
        one[0] + two[0]
    );
    rows.aim(
        PART,
        what,
        ((one[1] + two[1]) as f64, ""),
        Target::Most(0.0),
    );
    Ok(())
}
