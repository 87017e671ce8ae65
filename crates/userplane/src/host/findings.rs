//! What a machine lacks for a user plane, what that costs and how to fix it.

use std::collections::BTreeSet;

use config::CpuList;
use config::start::WorkerCores;

use super::{Host, Taken, Wanted};

/// Check result about one property of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Its name.
    pub subject: &'static str,
    /// What the machine has.
    pub found: String,
    /// What the present state costs, if it has to be fixed.
    pub costs: &'static str,
    /// How to fix it; `None`: nothing to fix.
    pub mend: Option<String>,
}

impl Finding {
    fn good(subject: &'static str, found: String) -> Self {
        Finding {
            subject,
            found,
            costs: "",
            mend: None,
        }
    }

    /// Finding in one sentence, if there is something to fix.
    pub fn sentence(&self) -> Option<String> {
        let mend = self.mend.as_ref()?;
        let Finding {
            subject,
            found,
            costs,
            ..
        } = self;
        Some(format!(
            "{subject}: {found}. Costs: {costs} To mend: {mend}"
        ))
    }
}

impl Host {
    /// All findings.
    pub fn findings(&self, wanted: &Wanted) -> Vec<Finding> {
        let taken = self.take(wanted);
        let mut all = self.defaults(wanted);
        all.extend([
            self.isolation(wanted, &taken),
            self.numa(&taken),
            self.clock(),
        ]);
        all.extend(self.governor(&taken));
        all
    }

    /// What a user plane takes by default: huge pages and cores.
    pub fn defaults(&self, wanted: &Wanted) -> Vec<Finding> {
        let taken = self.take(wanted);
        vec![
            self.huge_pages(wanted, &taken),
            self.pinning(wanted, &taken),
        ]
    }

    fn huge_pages(&self, wanted: &Wanted, taken: &Taken) -> Finding {
        let subject = "huge pages";
        let need = wanted.memory_mib;
        if wanted.huge_pages == Some(false) {
            return Finding::good(subject, "not used: `huge-pages: false`".into());
        }
        let sizes = self.huge_pages.iter();
        let sizes = sizes.filter(|(_, pages)| pages.reserved > 0);
        let sizes = sizes.map(|(kib, pages)| {
            let size = match kib >> 20 {
                0 => format!("{} MiB", kib >> 10),
                gib => format!("{gib} GiB"),
            };
            format!("{} of {} of {size} free", pages.free, pages.reserved)
        });
        let free = sizes.collect::<Vec<_>>().join(", ");
        let found = match free.as_str() {
            "" => format!("none reserved, {need} MiB needed"),
            free => format!("{free}, {need} MiB needed"),
        };
        let used = taken.huge_pages && self.has_huge_pages(need);
        Finding {
            costs: "DPDK's testpmd (mac, over rings) took 27 cycles a packet without huge pages and 14 with them.",
            mend: (!used).then(|| {
                let pages = need.div_ceil(2);
                format!(
                    "`sysctl -w vm.nr_hugepages={pages}` if nothing else uses them, at boot by /etc/sysctl.d, and start \
                     sluice-up anew; or set `huge-pages: false`"
                )
            }),
            ..Finding::good(subject, found)
        }
    }

    fn pinning(&self, wanted: &Wanted, taken: &Taken) -> Finding {
        let subject = "worker cores";
        let (workers, usable) = (wanted.workers, self.usable());
        let named = CpuList::from_iter(usable.iter().copied());
        match (&wanted.worker_cores, &taken.cores[..]) {
            (Some(WorkerCores::None), _) => {
                Finding::good(subject, "not bound: `worker-cores: none`".into())
            }
            (None, []) => Finding {
                costs: "workers that are not bound share cores and move between them; not measured.",
                mend: Some(format!(
                    "give the process {} cores (CPUAffinity= of the unit, the virtual machine's processors), or set \
                     `worker-cores`",
                    workers + 1
                )),
                ..Finding::good(
                    subject,
                    format!(
                        "not bound: {workers} workers, and the process may use only cores {named}"
                    ),
                )
            },
            (_, cores) => {
                let absent = cores.iter().any(|core| !self.online.contains(core));
                let found = CpuList::from_iter(cores.iter().copied()).to_string();
                Finding {
                    costs: "sluice-up does not start.",
                    mend: absent.then(|| format!("choose from cores {}", self.online)),
                    ..Finding::good(subject, found)
                }
            }
        }
    }

    fn isolation(&self, wanted: &Wanted, taken: &Taken) -> Finding {
        let subject = "isolation";
        let listed = |what: &str, cores: &CpuList| match cores.is_empty() {
            true => format!("no core is {what}"),
            false => format!("cores {cores} are {what}"),
        };
        let found = format!(
            "{}, {}",
            listed("isolated", &self.isolated),
            listed("without a tick", &self.tickless)
        );
        if wanted.worker_cores == Some(WorkerCores::None) {
            return Finding::good(subject, format!("{found}; workers are not bound"));
        }
        let isolated = |core: &u16| self.isolated.contains(core) && self.tickless.contains(core);
        let good = !taken.cores.is_empty() && taken.cores.iter().all(isolated);
        let ready: Vec<u16> = self
            .isolated
            .intersection(&self.tickless)
            .copied()
            .collect();
        let mend = || match ready.len() >= wanted.workers.into() {
            true => {
                let first = ready.iter().take(wanted.workers.into()).copied();
                format!("set `worker-cores: {}`", CpuList::from_iter(first))
            }
            false => {
                let cores = match taken.cores.is_empty() {
                    true => "CORES".to_owned(),
                    false => CpuList::from_iter(taken.cores.iter().copied()).to_string(),
                };
                format!(
                    "boot the kernel with `isolcpus=managed_irq,domain,{cores} nohz_full={cores} rcu_nocbs={cores}`, and \
                     set `worker-cores: {cores}`"
                )
            }
        };
        Finding {
            costs: "other threads, interrupts and the timer tick stop a worker now and then; not measured.",
            mend: (!good).then(mend),
            ..Finding::good(subject, found)
        }
    }

    fn numa(&self, taken: &Taken) -> Finding {
        let subject = "NUMA";
        if self.nodes.len() <= 1 {
            return Finding::good(subject, "one node".into());
        }
        let node_of = |core: &u16| {
            let mut nodes = self.nodes.iter();
            nodes.find_map(|(node, cores)| cores.contains(core).then_some(*node))
        };
        let workers: BTreeSet<u16> = match taken.cores.is_empty() {
            true => self.usable().iter().filter_map(node_of).collect(),
            false => taken.cores.iter().filter_map(node_of).collect(),
        };
        let cards: Vec<String> = self
            .cards
            .iter()
            .map(|(address, node)| format!("{address} on {node}"))
            .collect();
        let of_cards: BTreeSet<u16> = self.cards.values().copied().collect();
        let listed = |nodes: &BTreeSet<u16>| CpuList::from_iter(nodes.iter().copied()).to_string();
        let found = format!(
            "workers on nodes {}, cards: {}",
            listed(&workers),
            match cards.is_empty() {
                true => "none with a node".into(),
                false => cards.join(", "),
            }
        );
        let near = of_cards.is_empty() || (workers.len() == 1 && workers == of_cards);
        Finding {
            costs: "each packet of a far port crosses the link between the nodes; not measured.",
            mend: (!near).then(|| {
                let first = of_cards.first().and_then(|node| self.nodes.get(node));
                let cores = first.cloned().unwrap_or_default();
                format!(
                    "set `worker-cores` to cores of the node of the cards in use, such as {cores}; cards of one user plane \
                     belong into one node"
                )
            }),
            ..Finding::good(subject, found)
        }
    }

    fn clock(&self) -> Finding {
        let tsc = self.clock_source == "tsc";
        let steady = match self.steady_tsc {
            true => "the time stamp counter is constant and nonstop",
            false => {
                "the processor does not say that its time stamp counter is constant and nonstop"
            }
        };
        let mend = match (self.steady_tsc, tsc) {
            (true, true) => None,
            (true, false) => Some(
                "`echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource` where available_clocksource has \
                 it, or boot with `clocksource=tsc tsc=reliable`",
            ),
            (false, _) => Some(
                "have the virtual machine pass the flags constant_tsc and nonstop_tsc on; on a machine of its own, use a \
                 newer processor",
            ),
        };
        Finding {
            costs: match self.steady_tsc {
                true => {
                    "the control plane's and the user plane's clock is slower to read; not measured."
                }
                false => "policers and timers count the time stamp counter and go wrong with it.",
            },
            mend: mend.map(str::to_owned),
            ..Finding::good("clock source", format!("{}; {steady}", self.clock_source))
        }
    }

    /// Frequency governor; `None` if the machine has no governors, as in virtual machines.
    fn governor(&self, taken: &Taken) -> Option<Finding> {
        let mine = |cores: &Vec<u16>| {
            taken.cores.is_empty() || cores.iter().any(|core| taken.cores.contains(core))
        };
        let listed = self.governors.iter().filter(|(_, cores)| mine(cores));
        let all: Vec<String> = listed.map(|(name, _)| name.clone()).collect();
        let good = all.iter().all(|name| name == "performance");
        (!all.is_empty()).then(|| Finding {
            costs: "not measured.",
            mend: (!good).then(|| "`cpupower frequency-set -g performance`".into()),
            ..Finding::good("frequency governor", all.join(", "))
        })
    }
}
