//! Pictures for `docs/qos.md`: what packets wait, how rates change, who gets how much. All of it happens on a clock of its own, so each run
//! makes the same pictures.
//!
//! ```sh
//! make qos-plots
//! ```
#[path = "../tests/common/mod.rs"]
mod common;
use common::senders::{Kind, Outcome, Sender, send};
use common::*;
use plotters::coord::ranged1d::Ranged;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use scheduler::*;
use std::error::Error;
use std::path::Path;

type Plotted = Result<(), Box<dyn Error>>;

const SIZE: (u32, u32) = (900, 420);
const COLOURS: [RGBColor; 6] = [
    RGBColor(0x7f, 0x7f, 0x7f),
    RGBColor(0xd6, 0x27, 0x28),
    RGBColor(0xff, 0x7f, 0x0e),
    RGBColor(0x1f, 0x77, 0xb4),
    RGBColor(0x94, 0x67, 0xbd),
    RGBColor(0x2c, 0xa0, 0x2c),
];
const RTT: u64 = 20 * MS;
/// Rate of the home.
const KBPS: u64 = 100_000;

/// A line of a picture: its name and its points.
type Line = (String, Vec<(f64, f64)>);

fn main() -> Plotted {
    let folder = std::env::args().nth(1).ok_or("into which folder?")?;
    let folder = Path::new(&folder);
    std::fs::create_dir_all(folder)?;
    delays(&folder.join("delays.svg"))?;
    steps(&folder.join("steps.svg"))?;
    fairness(&folder.join("fairness.svg"))
}

/// A home with a rate, alone in its tree.
fn home_with(management: Management) -> (Tree, SubscriberIndex) {
    let mut tree = tree(None);
    let mut profile = managed(management);
    profile.classes[0].limit = 2 << 20;
    let profile = tree.add_profile(&profile);
    let home = tree.add(PORT, &home(profile, Some(KBPS)));
    (tree, home)
}

/// What a sender's packets wait beside downloads.
fn beside(management: Management, kind: Kind, downloads: usize) -> Outcome {
    let (mut tree, home) = home_with(management);
    let sender = match kind {
        Kind::Constant(_) => Sender::new(kind, home, RTT).of_octets(200),
        _ => Sender::new(kind, home, RTT),
    };
    let mut senders = vec![sender];
    senders.extend((0..downloads).map(|_| Sender::new(Kind::Reno, home, RTT)));
    let times = (5_000 * MS, 35_000 * MS);
    send(&mut tree, &mut senders, times, |_, _| ()).swap_remove(0)
}

fn delays(file: &Path) -> Plotted {
    const CALL: Kind = Kind::Constant(80);
    let lines = [
        ("call, alone", beside(Management::TailDrop, CALL, 0)),
        (
            "call, target-delay 0",
            beside(Management::TailDrop, CALL, 4),
        ),
        ("call, codel", beside(CODEL, CALL, 4)),
        ("call, fq-codel", beside(FQ_CODEL, CALL, 4)),
        ("call, dualpi2", beside(DUAL_PI2, CALL, 4)),
        ("L4S, dualpi2", beside(DUAL_PI2, Kind::Scalable, 4)),
    ];
    for (name, outcome) in &lines {
        let [half, most] = [50, 99].map(|percent| outcome.percentile(percent) as f64 / MS as f64);
        println!("{name}: half within {half:.2} ms, 99 % within {most:.2} ms");
    }
    let lines = lines.map(|(name, outcome)| (name.to_owned(), distribution(outcome.waited)));
    let root = SVGBackend::new(file, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption(
            "Waiting beside four downloads, 100 Mbit/s",
            ("sans-serif", 18),
        )
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(50)
        .build_cartesian_2d((0.01..200.0).log_scale(), 0.0..100.0)?;
    chart
        .configure_mesh()
        .x_desc("milliseconds")
        .y_desc("% of the packets")
        .draw()?;
    draw_lines(&mut chart, &lines, SeriesLabelPosition::LowerMiddle)?;
    Ok(root.present()?)
}

/// Points of the distribution of times, in milliseconds and percent.
fn distribution(mut waited: Vec<u64>) -> Vec<(f64, f64)> {
    waited.sort_unstable();
    let all = waited.len();
    let point = |percent: usize| {
        let at = (all * percent / 200).min(all - 1);
        let ms = waited[at] as f64 / MS as f64;
        (ms.max(0.01), percent as f64 / 2.0)
    };
    (0..=200).map(point).collect()
}

/// New rates, as by CoA, while something waits.
fn steps(file: &Path) -> Plotted {
    const STEPS: [u64; 4] = [20_000, 60_000, 10_000, 40_000];
    let (mut tree, to) = home_with(FQ_CODEL);
    let mut senders = vec![Sender::new(Kind::Constant(100_000), to, RTT)];
    let step = 2_000 * MS;
    let outcomes = send(&mut tree, &mut senders, (0, 4 * step), |tree, now| {
        if now % step == 0 {
            let kbps = STEPS[(now / step) as usize];
            tree.set(to, &home(ProfileIndex(0), Some(kbps)));
        }
    });
    let tenths = outcomes[0].tenths.iter().enumerate();
    let found = tenths
        .map(|(at, octets)| (at as f64 / 10.0 + 0.05, *octets as f64 * 80.0 / 1e6))
        .collect();
    let set = STEPS.iter().enumerate();
    let set = set.flat_map(|(at, kbps)| {
        let mbps = *kbps as f64 / 1e3;
        [(at as f64 * 2.0, mbps), (at as f64 * 2.0 + 2.0, mbps)]
    });
    let lines = [
        ("set".to_owned(), set.collect()),
        ("sent".to_owned(), found),
    ];
    draw(
        file,
        "A home's rate is changed under load",
        ("seconds", 8.0),
        70.0,
        &lines,
    )
}

/// Flows of a home that begin one after the other; the last is a flood.
fn fairness(file: &Path) -> Plotted {
    let (mut tree, to) = home_with(FQ_CODEL);
    let kinds = [
        ("download", Kind::Reno),
        ("another", Kind::Reno),
        ("with ECN", Kind::RenoEcn),
        ("video, 8 Mbit/s", Kind::Constant(8_000)),
        ("flood, 300 Mbit/s", Kind::Constant(300_000)),
    ];
    let mut senders: Vec<Sender> = kinds
        .iter()
        .enumerate()
        .map(|(at, (_, kind))| Sender::new(*kind, to, RTT).begins(at as u64 * 4_000 * MS))
        .collect();
    let outcomes = send(&mut tree, &mut senders, (0, 24_000 * MS), |_, _| ());
    let lines: Vec<Line> = kinds
        .iter()
        .zip(&outcomes)
        .map(|((name, _), outcome)| {
            let halves = outcome.tenths.chunks(5).enumerate();
            let points = halves.map(|(at, tenths)| {
                let octets: u64 = tenths.iter().sum();
                (at as f64 / 2.0 + 0.25, octets as f64 * 16.0 / 1e6)
            });
            ((*name).to_owned(), points.collect())
        })
        .collect();
    draw(
        file,
        "Flows of a home with fq-codel, 100 Mbit/s",
        ("seconds", 24.0),
        100.0,
        &lines,
    )
}

/// Lines of Mbit/s by time.
fn draw(file: &Path, title: &str, (x, until): (&str, f64), most: f64, lines: &[Line]) -> Plotted {
    let root = SVGBackend::new(file, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .caption(title, ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(50)
        .build_cartesian_2d(0.0..until, 0.0..most)?;
    chart.configure_mesh().x_desc(x).y_desc("Mbit/s").draw()?;
    draw_lines(&mut chart, lines, SeriesLabelPosition::UpperRight)?;
    Ok(root.present()?)
}

/// Lines, and their names.
fn draw_lines<'a, X: Ranged<ValueType = f64>>(
    chart: &mut ChartContext<'a, SVGBackend<'a>, Cartesian2d<X, RangedCoordf64>>,
    lines: &[Line],
    names: SeriesLabelPosition,
) -> Plotted {
    for ((name, points), colour) in lines.iter().zip(COLOURS) {
        chart
            .draw_series(LineSeries::new(points.clone(), colour.stroke_width(2)))?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .position(names)
        .background_style(WHITE)
        .border_style(BLACK)
        .draw()?;
    Ok(())
}
