//! The environment that everything else of DPDK runs in.
use crate::Error;
use crate::ffi::{self, sl_eal};
use crate::log;
use core::ffi::{c_char, c_int};
use std::ffi::CString;
use std::path::Path;
use std::sync::Mutex;

/// How EAL is started. No port belongs to that: ports are opened later ([`Eal::open_port`]) and closed again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EalOptions {
    /// Memory for pools and rings, in MiB.
    pub memory_mib: u32,
    /// Take it from huge pages; otherwise from ordinary ones, which need no preparation.
    pub huge_pages: bool,
}

impl Default for EalOptions {
    fn default() -> Self {
        EalOptions {
            memory_mib: 128,
            huge_pages: false,
        }
    }
}

/// The host bridge, which is no network card. Naming one device that may be touched forbids all others, until
/// [`Eal::open_port`] names another; forbidding the bus itself would be for ever.
const NO_CARD: &str = "0000:00:00.0";

impl EalOptions {
    fn arguments(&self) -> Vec<String> {
        let mut args = vec![
            "sluice".to_owned(),
            "--no-telemetry".into(),
            "--file-prefix=sluice".into(),
        ];
        // EAL binds its main thread to an lcore; this one may run wherever the process may.
        args.push(format!("--lcores=0@({})", allowed_cpus()));
        args.extend(["-m".to_owned(), self.memory_mib.to_string()]);
        args.extend(["-a".to_owned(), NO_CARD.to_owned()]);
        match self.huge_pages {
            // No files, nothing shared: several gateways run on one machine.
            true => {
                args.push("--in-memory".into());
                // EAL, which sees no card yet, would take physical addresses, by which buffers are not one piece of memory.
                if !physical_addresses(Path::new("/sys")) {
                    args.push("--iova-mode=va".into());
                }
            }
            false => args.extend(["--no-huge".into(), "--no-shconf".into()]),
        }
        args
    }
}

/// Whether a network card or another device is to be driven by physical addresses: by a driver of user space that knows no
/// IOMMU, or without one.
fn physical_addresses(sys: &Path) -> bool {
    let any = |folder: &str, is: fn(&str) -> bool| {
        let all = std::fs::read_dir(sys.join(folder)).into_iter().flatten();
        let mut names = all.flatten().map(|entry| entry.file_name());
        names.any(|name| name.to_str().is_some_and(is))
    };
    let device = |name: &str| name.contains(':');
    any("bus/pci/drivers/igb_uio", device)
        || any("bus/pci/drivers/uio_pci_generic", device)
        || (any("bus/pci/drivers/vfio-pci", device) && !any("class/iommu", |_| true))
}

/// The CPUs that the process may use, as a list.
fn allowed_cpus() -> String {
    // SAFETY: `set` is plain data, of the size given.
    let set = unsafe {
        let mut set: libc::cpu_set_t = core::mem::zeroed();
        libc::sched_getaffinity(0, size_of_val(&set), &mut set);
        set
    };
    // SAFETY: `cpu` is below the number of bits in the set.
    let cpus = (0..libc::CPU_SETSIZE as usize).filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) });
    let cpus: Vec<String> = cpus.map(|cpu| cpu.to_string()).collect();
    if cpus.is_empty() {
        "0".into()
    } else {
        cpus.join(",")
    }
}

/// Proof that EAL runs. It runs once in a process and until that ends; pools and rings likewise are never freed.
#[derive(Clone, Copy, Debug)]
pub struct Eal(());

static STARTED: Mutex<bool> = Mutex::new(false);

impl Eal {
    /// Starts EAL. The threads that the caller has are not bound to any CPU by it.
    pub fn start(options: &EalOptions) -> Result<Eal, Error> {
        let mut started = STARTED.lock().unwrap_or_else(|e| e.into_inner());
        if *started {
            return Err(Error::new("EAL", "it runs already"));
        }
        let args = options.arguments();
        let args: Result<Vec<CString>, _> = args.into_iter().map(CString::new).collect();
        let args = args.map_err(|_| Error::new("EAL", "an argument contains a NUL"))?;
        // EAL permutes the array and keeps pointers to the words: both live for ever.
        let words: Vec<*mut c_char> = args.into_iter().map(CString::into_raw).collect();
        let words = words.leak();
        log::clear();
        // SAFETY: `words` are NUL-terminated, writable and never freed; EAL is started but once (the lock).
        let r = unsafe { sl_eal(words.len() as c_int, words.as_mut_ptr()) };
        // A failed start cannot be repeated in the same process either.
        *started = true;
        if r < 0 {
            Err(Error::errno("EAL", r))
        } else {
            Ok(Eal(()))
        }
    }

    /// Gives the calling thread caches of its own in all pools, for as long as the result lives: for a worker. Its sleeps end
    /// when they are over from now on, and not up to 50 us later.
    pub fn register_thread(&self) -> Result<Registered, Error> {
        // SAFETY: EAL runs; the other concerns when the kernel ends sleeps of this thread alone.
        let r = unsafe {
            libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong, 0, 0, 0);
            ffi::sl_register_thread()
        };
        if r < 0 {
            Err(Error::errno("worker thread", r))
        } else {
            Ok(Registered(core::marker::PhantomData))
        }
    }
}

/// The calling thread is known to EAL until this is dropped, which has to happen on the same thread.
#[must_use]
pub struct Registered(core::marker::PhantomData<*const ()>);

impl Drop for Registered {
    fn drop(&mut self) {
        // SAFETY: this value cannot leave its thread, which is registered.
        unsafe { ffi::sl_unregister_thread() }
    }
}

/// The time stamp counter.
#[inline(always)]
pub fn tsc() -> u64 {
    // SAFETY: every x86-64 has it.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Ticks of the time stamp counter in a second.
pub fn tsc_hz(_: &Eal) -> u64 {
    // SAFETY: EAL runs and has measured it.
    unsafe { ffi::sl_tsc_hz() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn physical_addresses_are_for_cards_without_an_iommu() {
        let sys = std::env::temp_dir().join(format!("sluice-sys-{}", std::process::id()));
        let make = |path: &str| std::fs::create_dir_all(sys.join(path)).unwrap();
        make("bus/pci/drivers/uio_pci_generic/module");
        make("bus/pci/drivers/vfio-pci");
        assert!(!physical_addresses(&sys), "no card is bound");
        make("bus/pci/drivers/vfio-pci/0000:03:00.0");
        assert!(physical_addresses(&sys), "there is no IOMMU");
        make("class/iommu/dmar0");
        assert!(!physical_addresses(&sys));
        make("bus/pci/drivers/uio_pci_generic/0000:04:00.0");
        assert!(physical_addresses(&sys));
        std::fs::remove_dir_all(&sys).unwrap();
    }
}
