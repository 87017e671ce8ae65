//! A gateway's packet path out of DPDK's libraries, in the stages of Intel's vBNG reference pipeline.
use super::{AclForm, AclRule, AclV4, Fib, Hash, MeterRates, Meters};
use crate::ffi::M;
use crate::{Burst, Eal, Error};
use core::ffi::{c_uint, c_void};

unsafe extern "C" {
    fn sl_uplink_run(uplink: *const RawUplink, m: *mut M, n: c_uint) -> c_uint;
    fn sl_downlink_run(downlink: *const RawDownlink, m: *mut M, n: c_uint) -> c_uint;
}

/// `struct filter`.
#[repr(C)]
struct RawFilter {
    acl: *const c_void,
    permits: *const bool,
}

/// `struct sl_uplink`.
#[repr(C)]
struct RawUplink {
    filter: RawFilter,
    sessions: *const c_void,
    meters: *mut c_void,
    routes: *mut c_void,
    neighbours: *const [u8; 6],
    neighbours_mask: u32,
    gateway: [u8; 6],
}

/// `struct sl_downlink`.
#[repr(C)]
struct RawDownlink {
    filter: RawFilter,
    routes: *mut c_void,
    encapsulations: *const Encapsulation,
    sessions_mask: u32,
}

/// `struct encapsulation`: in one cache line.
#[repr(C, align(32))]
struct Encapsulation([u8; ACCESS_HEADER]);

/// Octets of the Ethernet header, two tags, PPPoE's header and PPP's protocol.
pub const ACCESS_HEADER: usize = 30;

/// An access list of IPv4, and whether each of its rules permits packets. A packet that no rule matches is dropped.
pub struct Filter {
    acl: AclV4,
    /// First of what no rule matches, then of each rule.
    permits: Vec<bool>,
}

impl Filter {
    /// Builds the list, which is searched in this form.
    pub fn new(
        eal: &Eal,
        name: &str,
        rules: &[(AclRule, bool)],
        form: AclForm,
    ) -> Result<Self, Error> {
        let list: Vec<_> = rules.iter().map(|(rule, _)| *rule).collect();
        let mut acl = AclV4::new(eal, name, &list)?;
        acl.choose(form)?;
        let permits = rules.iter().map(|(_, permits)| *permits);
        let permits = std::iter::once(false).chain(permits).collect();
        Ok(Filter { acl, permits })
    }

    fn raw(&self) -> RawFilter {
        RawFilter {
            acl: self.acl.0,
            permits: self.permits.as_ptr(),
        }
    }
}

/// Mask of the indices of a table whose size is a power of two.
fn mask<T>(table: &[T], what: &str) -> Result<u32, Error> {
    match table.len() {
        n if n.is_power_of_two() => Ok(n as u32 - 1),
        n => Err(Error::new(what, format!("{n} is no power of two"))),
    }
}

/// Tables of an [`Uplink`].
pub struct UplinkTables {
    /// What packets are permitted.
    pub filter: Filter,
    /// Sessions by [`session_key`], in the order of their meters.
    pub sessions: Hash,
    /// Meters of two rates, of each session.
    pub meters: Meters,
    /// Routes to neighbours.
    pub routes: Fib,
    /// MAC address of each neighbour; as many as a power of two.
    pub neighbours: Vec<[u8; 6]>,
    /// MAC address of the gateway.
    pub gateway: [u8; 6],
}

/// Key of a session: VLAN ids of both its tags, and its PPPoE session id.
pub fn session_key(outer_vlan: u16, inner_vlan: u16, session_id: u16) -> u64 {
    u64::from(outer_vlan) << 32 | u64::from(inner_vlan) << 16 | u64::from(session_id)
}

/// From subscribers to the core: `rte_acl`, `rte_hash` by tags and PPPoE session id, `rte_meter` of two rates, DSCP by
/// colour, hop limit, access headers off, `rte_fib`, a new Ethernet header.
pub struct Uplink {
    tables: UplinkTables,
    neighbours_mask: u32,
}

impl Uplink {
    /// Fails if the meters have one rate, or the number of neighbours is no power of two.
    pub fn new(tables: UplinkTables) -> Result<Self, Error> {
        let neighbours_mask = mask(&tables.neighbours, "neighbours")?;
        match tables.meters.rates {
            MeterRates::SrTcm { .. } => Err(Error::new("meters", "they have a single rate")),
            MeterRates::TrTcm { .. } => Ok(Uplink {
                tables,
                neighbours_mask,
            }),
        }
    }

    /// Takes the packets through all stages. Those that are left keep their order.
    #[inline]
    pub fn run(&mut self, burst: &mut Burst) {
        let t = &self.tables;
        let raw = RawUplink {
            filter: t.filter.raw(),
            sessions: t.sessions.0,
            meters: t.meters.table,
            routes: t.routes.0,
            neighbours: t.neighbours.as_ptr(),
            neighbours_mask: self.neighbours_mask,
            gateway: t.gateway,
        };
        // SAFETY: the tables live and are as large as the masks say; the function frees packets and closes the others up.
        unsafe { burst.thin(|m, n| sl_uplink_run(&raw, m, n as c_uint) as usize) }
    }
}

/// From the core to subscribers: `rte_acl` as a check of the reverse path, hop limit, `rte_fib` to the session, its access
/// headers. The reference has a scheduler behind this.
pub struct Downlink {
    filter: Filter,
    routes: Fib,
    encapsulations: Vec<Encapsulation>,
    sessions_mask: u32,
}

impl Downlink {
    /// Routes lead to sessions, of which each has access headers without the length. Fails if the number of sessions is no power
    /// of two.
    pub fn new(
        filter: Filter,
        routes: Fib,
        encapsulations: Vec<[u8; ACCESS_HEADER]>,
    ) -> Result<Self, Error> {
        let sessions_mask = mask(&encapsulations, "sessions")?;
        Ok(Downlink {
            filter,
            routes,
            encapsulations: encapsulations.into_iter().map(Encapsulation).collect(),
            sessions_mask,
        })
    }

    /// Takes the packets through all stages. Those that are left keep their order.
    #[inline]
    pub fn run(&mut self, burst: &mut Burst) {
        let raw = RawDownlink {
            filter: self.filter.raw(),
            routes: self.routes.0,
            encapsulations: self.encapsulations.as_ptr(),
            sessions_mask: self.sessions_mask,
        };
        // SAFETY: as in `Uplink::run`.
        unsafe { burst.thin(|m, n| sl_downlink_run(&raw, m, n as c_uint) as usize) }
    }
}
