//! `make bench`: what the packet path costs on this machine, beside its peers in the same run, and what RADIUS costs.
//!
//! Writes `report.json` and pictures, and prints a table. It fails if a packet did not come out as it should, and says
//! which targets were missed.

use anyhow::{Context, Result};
use bench::report::{Entry, Report};
use bench::routes::{Prefixes, Routes};
use bench::world::{Plan, Stock, World};
use bench::{
    acl, admission, changes, downlink, drops, fib, full, handover, huge, kernel, latency, meters,
    pin, pipeline, plot, published, queues, radius, setups, swap, whole, workers,
};
use cap::Cap;
use clap::Parser;
use dpdk::peers::small_pool;
use dpdk::{Eal, EalOptions, Pool, tsc_hz};
use mimalloc::MiMalloc;
use std::fs;
use std::path::{Path, PathBuf};

// The daemons' allocator (docs/decisions/0007-allocator.md), which counts.
#[global_allocator]
static ALLOCATOR: Cap<MiMalloc> = Cap::new(MiMalloc, usize::MAX);

/// What the packet path and RADIUS cost on this machine, beside peers in the same run.
#[derive(Parser)]
struct Arguments {
    /// Where the report goes.
    #[arg(long, default_value = "target/bench")]
    out: PathBuf,
    /// How often everything is measured, in turns.
    #[arg(long, default_value_t = 12)]
    rounds: usize,
    /// Only figures whose id contains this: `up-v4-64`, `up-v6`, `segments`, `instances`, `fib`, `acl`, `acl-swap`,
    /// `meter`, `sched`, `down-full`, `pipeline`, `up-full`, `published` (of it alone `h-tput`, `n-port`, `n-all`, `i-tput`, `b-pps`, `b-imix`), `kernel`,
    /// `workers`, `handover`, `session`, `latency`, `drop`, `radius`, `setup`, `memory`.
    #[arg(long)]
    only: Option<String>,
    /// Writes the table and the picture of the document in this folder anew, too.
    #[arg(long)]
    docs: Option<PathBuf>,
    /// The core of the worker; the generator of latencies takes another.
    #[arg(long, default_value_t = 1)]
    core: usize,
    /// Only sends packets there, for the comparison with the kernel.
    #[arg(long, hide = true)]
    send_to: Option<String>,
}

fn main() -> Result<()> {
    let Arguments {
        out,
        rounds,
        only,
        docs,
        core,
        send_to,
    } = Arguments::parse();
    if let Some(to) = send_to {
        pin(core)?;
        return kernel::send(&to);
    }
    let load = fs::read_to_string("/proc/loadavg")?;
    pin(core)?;
    let part = only.as_deref().unwrap_or_default();
    let is_about = |what: &str| what.contains(part) || part.starts_with(what);
    let mut radius = match is_about("radius") {
        true => radius::measure(rounds)?,
        false => Vec::new(),
    };
    if is_about("setup") {
        radius.extend(setups::measure(rounds)?);
    }
    if is_about("memory") {
        radius.push(setups::memory(rounds, || ALLOCATOR.allocated())?);
        radius.push(queues::memory(|| ALLOCATOR.allocated()));
    }
    let planes = ["radius", "setup", "memory"];
    let (tsc_mhz, entries) = match planes.iter().any(|name| part.starts_with(name)) {
        true => (None, Vec::new()),
        false => packets(core, rounds, part)?,
    };
    let report = Report {
        cpu: cpu(),
        tsc_mhz,
        load: load.trim().into(),
        entries,
        radius,
    };
    report.print();
    fs::create_dir_all(&out).with_context(|| out.display().to_string())?;
    let file = out.join("report.json");
    fs::write(&file, serde_json::to_string_pretty(&report)? + "\n")
        .with_context(|| file.display().to_string())?;
    println!("{}", file.display());
    if !report.entries.is_empty() {
        let picture = out.join("cycles.svg");
        plot::whole_path(&report, &picture)?;
        println!("{}", picture.display());
    }
    if let Some(docs) = docs {
        write_docs(&report, &docs)?;
    }
    Ok(())
}

/// Buffers for packets that wait: four times those that do at once, as half of all are for packets that arrive, and room is not to be short.
/// They are for headers alone, 4.5 packets of 131,072 subscribers; and whole ones, 2.7 of 16,000.
const SMALL: u32 = 2_400_000;
const WHOLE: u32 = 180_000;

/// What the packet path costs: the rate of the time stamp counter, and every figure whose id contains `part`.
fn packets(core: usize, rounds: usize, part: &str) -> Result<(Option<u64>, Vec<Entry>)> {
    let _pages = huge::HugePages::reserve(1500)?;
    let eal = Eal::start(&EalOptions {
        memory_mib: 2600,
        huge_pages: true,
    })?;
    pin(core)?;
    let _registered = eal.register_thread()?;
    let pool = eal.pool("packets", 33_000)?;
    let small = small_pool(&eal, "small", SMALL)?;
    let prefixes = Prefixes::real()?;

    let mut stock = Stock::new(pool)?;
    let wanted = |id: &str| id.contains(part);
    let mut entries = whole::measure(&eal, pool, core, &mut stock, &prefixes, rounds, part)?;
    if wanted("fib") {
        eprintln!("  routes");
        entries.extend(fib::measure(&eal, &prefixes, rounds)?);
    }
    entries.extend(acl::measure(&eal, part, rounds)?);
    if wanted(swap::ID) {
        entries.extend(swap::measure(&eal, pool, &mut stock, &prefixes, core)?);
    }
    if wanted("meter") {
        eprintln!("  meters");
        entries.extend(meters::measure(&eal, rounds)?);
    }
    if wanted("pipeline") {
        eprintln!("  a path of DPDK's libraries");
        entries.extend(pipeline::measure(
            &eal, pool, &mut stock, &prefixes, rounds,
        )?);
    }
    if full::IDS
        .iter()
        .any(|id| wanted(id) || part.starts_with(id))
    {
        eprintln!("  the uplink with everything on");
        entries.extend(full::measure(&eal, pool, &mut stock, &prefixes, rounds)?);
    }
    let pools = published::Pools {
        plain: pool,
        small,
        whole: eal.pool("whole", WHOLE)?,
    };
    entries.extend(published::measure(
        &eal, pools, &mut stock, &prefixes, rounds, part,
    )?);
    if wanted("kernel") {
        eprintln!("  the kernel");
        entries.push(kernel::measure(rounds)?);
    }
    if wanted("workers") {
        eprintln!("  two workers");
        entries.extend(workers::measure(&eal, pool, &prefixes, core, rounds)?);
    }
    if wanted("handover") {
        eprintln!("  many workers on one core");
        entries.extend(handover::measure(&eal, pool, &prefixes, rounds)?);
    }
    if wanted("session") || wanted("latency") || wanted("drop") {
        eprintln!("  sessions and latencies");
        let routes = Routes::first(&prefixes, 600_000);
        let world = World::new(&eal, pool, "stages", Plan::plain(whole::SESSIONS, routes))?;
        entries.extend(stages(&eal, pool, world, &mut stock, core, rounds)?);
    }
    if wanted(queues::ID) || part.starts_with(queues::ID) {
        eprintln!("  queues");
        entries.extend(queues::measure(&eal, small, rounds)?);
    }
    if wanted(downlink::ID) || part.starts_with(downlink::ID) {
        eprintln!("  the downlink with queues");
        entries.extend(downlink::measure(&eal, small, &prefixes, rounds)?);
    }

    Ok((Some(tsc_hz(&eal) / 1_000_000), entries))
}

/// What sessions cost, drops, and the time that packets take.
fn stages(
    eal: &Eal,
    pool: Pool,
    mut world: World,
    stock: &mut Stock,
    core: usize,
    rounds: usize,
) -> Result<Vec<Entry>> {
    let mut entries = vec![
        admission::measure(eal, &mut world, stock, rounds)?,
        changes::measure(eal, &mut world, stock)?,
        drops::measure(&mut world, pool, rounds)?,
    ];
    entries.extend(latency::measure(eal, world, stock, core)?);
    Ok(entries)
}

/// The tables of performance.md that were measured, and the picture.
fn write_docs(report: &Report, docs: &Path) -> Result<()> {
    let page = docs.join("performance.md");
    let text = fs::read_to_string(&page).with_context(|| page.display().to_string())?;
    let text = report
        .in_document(&text)
        .with_context(|| format!("{} has no place for the table", page.display()))?;
    fs::write(&page, text)?;
    if report.entries.is_empty() {
        return Ok(());
    }
    let pictures = docs.join("performance");
    fs::create_dir_all(&pictures)?;
    plot::whole_path(report, &pictures.join("cycles.svg"))
}

fn cpu() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    name.map_or("unknown", |(_, name)| name).into()
}
