//! The environment that everything else of DPDK runs in.
use crate::Error;
use crate::ffi::{self, sl_eal};
use crate::log;
use core::ffi::{c_char, c_int};
use std::ffi::CString;
use std::sync::Mutex;

/// How EAL is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EalOptions {
    /// Memory for pools and rings, in MiB.
    pub memory_mib: u32,
    /// Take it from huge pages; otherwise from ordinary ones, which need no preparation.
    pub huge_pages: bool,
    /// The PCI devices that may be touched; without any the bus is not even looked at.
    pub pci: Vec<String>,
}

impl EalOptions {
    /// What the ports with these devargs need.
    ///
    /// ```
    /// let options = dpdk::EalOptions::for_ports(["net_af_xdp0,iface=acc0", "0000:03:00.0"]);
    /// assert_eq!(options.pci, ["0000:03:00.0"]);
    /// ```
    pub fn for_ports<'a>(devargs: impl IntoIterator<Item = &'a str>) -> Self {
        let pci = devargs
            .into_iter()
            .filter(|d| is_pci(d))
            .map(str::to_owned)
            .collect();
        EalOptions {
            memory_mib: 128,
            huge_pages: false,
            pci,
        }
    }

    fn arguments(&self) -> Vec<String> {
        let mut args = vec![
            "sluice".to_owned(),
            "--no-telemetry".into(),
            "--file-prefix=sluice".into(),
        ];
        // EAL binds its main thread to an lcore; this one may run wherever the process may.
        args.push(format!("--lcores=0@({})", allowed_cpus()));
        args.extend(["-m".to_owned(), self.memory_mib.to_string()]);
        match self.huge_pages {
            // No files, nothing shared: several gateways run on one machine.
            true => args.push("--in-memory".into()),
            false => args.extend(["--no-huge".into(), "--no-shconf".into()]),
        }
        match self.pci.is_empty() {
            true => args.push("--no-pci".into()),
            false => args.extend(self.pci.iter().flat_map(|d| ["-a".to_owned(), d.clone()])),
        }
        args
    }
}

/// Is this the address of a PCI device, like `0000:03:00.0` or `03:00.0`, with or without arguments behind it?
fn is_pci(devargs: &str) -> bool {
    let name = devargs.split(',').next().unwrap_or_default();
    let Some((address, function)) = name.rsplit_once('.') else {
        return false;
    };
    let hex = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_hexdigit());
    hex(function) && address.contains(':') && address.split(':').all(hex)
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

    /// Gives the calling thread caches of its own in all pools, for as long as the result lives: for a worker.
    pub fn register_thread(&self) -> Result<Registered, Error> {
        // SAFETY: EAL runs.
        let r = unsafe { ffi::sl_register_thread() };
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
    fn pci_addresses_are_told_from_virtual_devices() {
        for yes in ["0000:03:00.0", "03:00.1", "0000:af:1f.7,queues=2"] {
            assert!(is_pci(yes), "{yes}");
        }
        for no in [
            "net_af_xdp0,iface=acc0.100",
            "net_ring0",
            "",
            "net_pcap0,rx_pcap=a.pcap",
        ] {
            assert!(!is_pci(no), "{no}");
        }
    }
}
