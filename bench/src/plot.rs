//! The figures of the whole path as a picture.
use crate::report::{Entry, Report};
use anyhow::{Result, anyhow};
use plotters::prelude::*;
use std::path::Path;

const UP: RGBColor = RGBColor(0x1f, 0x77, 0xb4);
const DOWN: RGBColor = RGBColor(0x2c, 0xa0, 0x2c);
const PEER: RGBColor = RGBColor(0xd6, 0x27, 0x28);
/// Pixels of a bar.
const BAR: u32 = 18;

/// One bar for each figure of the whole path without a target, as long as its median; a line where testpmd is.
pub fn whole_path(report: &Report, file: &Path) -> Result<()> {
    let bars: Vec<&Entry> = report.entries.iter().filter(|e| is_bar(e)).collect();
    if bars.is_empty() {
        return Ok(());
    }
    draw(report, &bars, file).map_err(|e| anyhow!("{}: {e}", file.display()))
}

fn is_bar(e: &Entry) -> bool {
    e.met.is_none() && e.headers.is_some()
}

fn draw(
    report: &Report,
    bars: &[&Entry],
    file: &Path,
) -> std::result::Result<(), Box<dyn std::error::Error>> {
    let longest = bars.iter().map(|e| e.median).fold(0.0, f64::max) * 1.1;
    let n = bars.len() as i32;
    let size = (960, BAR * bars.len() as u32 + 100);
    let root = SVGBackend::new(file, size).into_drawing_area();
    root.fill(&WHITE)?;
    let title = format!("cycles a packet, {}{}", report.cpu, report.clock());
    let mut chart = ChartBuilder::on(&root)
        .caption(title, ("sans-serif", 18))
        .margin(10)
        .x_label_area_size(30)
        .y_label_area_size(390)
        .build_cartesian_2d(0.0..longest, (0..n).into_segmented())?;
    let name = |at: &SegmentValue<i32>| match at {
        SegmentValue::CenterOf(i) if (0..n).contains(i) => bars[(n - 1 - i) as usize].name.clone(),
        _ => String::new(),
    };
    let mut mesh = chart.configure_mesh();
    mesh.disable_y_mesh()
        .y_labels(bars.len())
        .y_label_formatter(&name)
        .draw()?;
    chart.draw_series(bars.iter().enumerate().map(|(i, e)| {
        let row = n - 1 - i as i32;
        let color = if e.id.starts_with("up") { UP } else { DOWN };
        let ends = [
            (0.0, SegmentValue::Exact(row)),
            (e.median, SegmentValue::Exact(row + 1)),
        ];
        let mut bar = Rectangle::new(ends, color.filled());
        bar.set_margin(2, 2, 0, 0);
        bar
    }))?;
    if let Some(mac) = report.entries.iter().find(|e| e.id == "testpmd-mac") {
        let line = [
            (mac.median, SegmentValue::Exact(0)),
            (mac.median, SegmentValue::Exact(n)),
        ];
        chart
            .draw_series(LineSeries::new(line, PEER.stroke_width(2)))?
            .label("testpmd mac")
            .legend(|(x, y)| PathElement::new([(x, y), (x + 16, y)], PEER));
        chart
            .configure_series_labels()
            .border_style(BLACK)
            .background_style(WHITE)
            .draw()?;
    }
    root.present()?;
    Ok(())
}
