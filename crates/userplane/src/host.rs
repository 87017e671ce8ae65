//! The machine of a user plane: what it has, what a user plane takes of it, and what has to be fixed.
//!
//! Facts are read from `/sys` and `/proc` below a root folder, so that tests can use made-up machines.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use config::CpuList;
use config::start::{UserPlane as Start, WorkerCores};

mod findings;

pub use findings::Finding;

/// Facts about a machine.
#[derive(Debug, Default)]
pub struct Host {
    /// Huge pages by size in KiB.
    huge_pages: BTreeMap<u64, Pages>,
    online: CpuList,
    /// Cores that this process may use.
    allowed: CpuList,
    /// Cores that the scheduler leaves alone (`isolcpus=`).
    isolated: CpuList,
    /// Cores whose timer tick stops while one thread runs there (`nohz_full=`).
    tickless: CpuList,
    /// Threads of the same physical core, by core.
    siblings: BTreeMap<u16, CpuList>,
    /// Cores of each NUMA node.
    nodes: BTreeMap<u16, CpuList>,
    /// NUMA node of each PCI network card that names one, by address.
    cards: BTreeMap<String, u16>,
    clock_source: String,
    /// Whether the time stamp counter has the same rate in all processor states.
    steady_tsc: bool,
    /// Cores of each frequency governor.
    governors: BTreeMap<String, Vec<u16>>,
}

/// Huge pages of one size.
#[derive(Clone, Copy, Debug)]
struct Pages {
    reserved: u64,
    free: u64,
}

/// What a user plane wants from a machine.
#[derive(Clone, Debug)]
pub struct Wanted {
    memory_mib: u64,
    workers: u16,
    huge_pages: Option<bool>,
    worker_cores: Option<WorkerCores>,
}

impl From<&Start> for Wanted {
    fn from(start: &Start) -> Self {
        Wanted {
            memory_mib: start.memory.into(),
            workers: start.workers,
            huge_pages: start.huge_pages,
            worker_cores: start.worker_cores.clone(),
        }
    }
}

/// Wishes of a start file that says nothing about them.
impl Default for Wanted {
    fn default() -> Self {
        Wanted {
            memory_mib: config::start::memory().into(),
            workers: config::start::workers(),
            huge_pages: None,
            worker_cores: None,
        }
    }
}

/// What a user plane takes from a machine.
#[derive(Debug, PartialEq, Eq)]
pub struct Taken {
    /// Whether packet memory uses huge pages.
    pub huge_pages: bool,
    /// Core of each worker; empty: the scheduler chooses.
    pub cores: Vec<u16>,
}

impl Host {
    /// Reads a machine's facts; `root` is `/` except in tests. Unreadable facts count as absent.
    pub fn read(root: &Path) -> Self {
        let cpu = root.join("sys/devices/system/cpu");
        let clock = root.join("sys/devices/system/clocksource/clocksource0/current_clocksource");
        let information = line_of(&root.join("proc/cpuinfo"), "flags").unwrap_or_default();
        let flag = |name| information.split_whitespace().any(|flag| flag == name);
        let online = cores(&cpu.join("online"));
        let allowed = line_of(&root.join("proc/self/status"), "Cpus_allowed_list");
        Host {
            huge_pages: huge_pages(&root.join("sys/kernel/mm/hugepages")),
            allowed: allowed
                .and_then(|list| list.parse().ok())
                .unwrap_or_else(|| online.clone()),
            isolated: cores(&cpu.join("isolated")),
            tickless: cores(&cpu.join("nohz_full")),
            siblings: siblings(&cpu, &online),
            nodes: nodes(&root.join("sys/devices/system/node")),
            cards: cards(&root.join("sys/bus/pci/devices")),
            clock_source: text(&clock).unwrap_or_default(),
            steady_tsc: flag("constant_tsc") && flag("nonstop_tsc"),
            governors: governors(&cpu, &online),
            online,
        }
    }

    /// What a user plane takes: the start file's values, or else what the machine can give.
    pub fn take(&self, wanted: &Wanted) -> Taken {
        let enough = || self.has_huge_pages(wanted.memory_mib);
        Taken {
            huge_pages: wanted.huge_pages.unwrap_or_else(enough),
            cores: match &wanted.worker_cores {
                Some(WorkerCores::None) => Vec::new(),
                Some(WorkerCores::Cores(cores)) => cores.iter().copied().collect(),
                None => self.choose(wanted.workers.into()),
            },
        }
    }

    /// Whether this many MiB of huge pages of one size are free.
    fn has_huge_pages(&self, mib: u64) -> bool {
        let enough = |(kib, pages): (&u64, &Pages)| pages.free >= (mib << 10).div_ceil(*kib);
        self.huge_pages.iter().any(enough)
    }

    /// Existing cores that this process may use.
    fn usable(&self) -> Vec<u16> {
        self.allowed.intersection(&self.online).copied().collect()
    }

    /// Chooses a core for each worker, if one is left for the control thread. Isolated cores come first, then the first threads
    /// of physical cores, then others. Core 0 comes last among equals, because the kernel does its own work there.
    fn choose(&self, workers: usize) -> Vec<u16> {
        let mut left = self.usable();
        if left.len() <= workers {
            return Vec::new();
        }
        let mut chosen = Vec::new();
        for _ in 0..workers {
            let shares = |core: &u16| {
                let siblings = self.siblings.get(core);
                siblings.is_some_and(|all| chosen.iter().any(|other| all.contains(other)))
            };
            let rank = |core: &u16| (!self.isolated.contains(core), shares(core), *core == 0);
            let best = (0..left.len()).min_by_key(|at| rank(&left[*at]));
            chosen.extend(best.map(|at| left.remove(at)));
        }
        chosen.sort_unstable();
        chosen
    }
}

/// Content of a file, without the trailing newline.
fn text(file: &Path) -> Option<String> {
    Some(fs::read_to_string(file).ok()?.trim().to_owned())
}

/// The value of the first line `NAME: VALUE`.
fn line_of(file: &Path, name: &str) -> Option<String> {
    let all = fs::read_to_string(file).ok()?;
    let value = |line: &str| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    };
    all.lines().find_map(value)
}

/// Cores that a file lists; none if it is missing, empty or says `(null)`.
fn cores(file: &Path) -> CpuList {
    let list = text(file).and_then(|list| list.parse().ok());
    list.unwrap_or_default()
}

/// Entries of a folder whose name begins with the prefix: the rest of the name, and the path.
fn entries(folder: &Path, prefix: &str) -> Vec<(String, std::path::PathBuf)> {
    let all = fs::read_dir(folder).into_iter().flatten().flatten();
    let entry = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        Some((name.strip_prefix(prefix)?.to_owned(), entry.path()))
    };
    all.filter_map(entry).collect()
}

fn huge_pages(folder: &Path) -> BTreeMap<u64, Pages> {
    let size = |(name, path): (String, std::path::PathBuf)| {
        let kib = name
            .strip_suffix("kB")?
            .parse()
            .ok()
            .filter(|kib| *kib > 0)?;
        let number = |file| text(&path.join(file))?.parse().ok();
        let pages = Pages {
            reserved: number("nr_hugepages")?,
            free: number("free_hugepages")?,
        };
        Some((kib, pages))
    };
    let all = entries(folder, "hugepages-").into_iter();
    all.filter_map(size).collect()
}

fn siblings(folder: &Path, online: &CpuList) -> BTreeMap<u16, CpuList> {
    let of = |cpu: &u16| {
        let file = format!("cpu{cpu}/topology/thread_siblings_list");
        (*cpu, cores(&folder.join(file)))
    };
    online.iter().map(of).collect()
}

fn nodes(folder: &Path) -> BTreeMap<u16, CpuList> {
    let all = entries(folder, "node").into_iter();
    all.filter_map(|(number, path)| Some((number.parse().ok()?, cores(&path.join("cpulist")))))
        .collect()
}

/// Network cards (PCI class 02) with their NUMA nodes; -1 stands for none.
fn cards(folder: &Path) -> BTreeMap<String, u16> {
    let card = |(address, path): (String, std::path::PathBuf)| {
        let network = text(&path.join("class"))?.starts_with("0x02");
        let node = text(&path.join("numa_node"))?.parse().ok()?;
        network.then_some((address, node))
    };
    entries(folder, "").into_iter().filter_map(card).collect()
}

fn governors(folder: &Path, online: &CpuList) -> BTreeMap<String, Vec<u16>> {
    let mut all: BTreeMap<String, Vec<u16>> = BTreeMap::new();
    for cpu in online.iter() {
        let file = folder.join(format!("cpu{cpu}/cpufreq/scaling_governor"));
        if let Some(governor) = text(&file) {
            all.entry(governor).or_default().push(*cpu);
        }
    }
    all
}

#[cfg(test)]
mod tests;
