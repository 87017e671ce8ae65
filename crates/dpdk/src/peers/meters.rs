//! `rte_meter` over tables of meters.
use super::made;
use crate::{BURST, Eal, Error};
use core::ffi::{c_uint, c_void};

unsafe extern "C" {
    fn sl_srtcm(n: u32, cir: u64, cbs: u64, ebs: u64) -> *mut c_void;
    fn sl_trtcm(n: u32, cir: u64, pir: u64, cbs: u64, pbs: u64) -> *mut c_void;
    fn sl_srtcm_colour(
        table: *mut c_void,
        which: *const u32,
        octets: *const u32,
        colours: *mut u8,
        n: c_uint,
        now: u64,
    );
    fn sl_trtcm_colour(
        table: *mut c_void,
        which: *const u32,
        octets: *const u32,
        colours: *mut u8,
        n: c_uint,
        now: u64,
    );
    fn sl_meters_free(table: *mut c_void);
}

/// Parameters of a table of meters: rates in octets a second, bursts in octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeterRates {
    /// Single rate (RFC 2697).
    SrTcm {
        /// Committed information rate.
        cir: u64,
        /// Committed burst size.
        cbs: u64,
        /// Excess burst size.
        ebs: u64,
    },
    /// Two rates (RFC 2698).
    TrTcm {
        /// Committed information rate.
        cir: u64,
        /// Peak information rate, at least `cir`.
        pir: u64,
        /// Committed burst size.
        cbs: u64,
        /// Peak burst size.
        pbs: u64,
    },
}

/// `rte_meter`'s colours.
pub const GREEN: u8 = 0;
/// Above the committed rate.
pub const YELLOW: u8 = 1;
/// Above the peak rate or the excess burst.
pub const RED: u8 = 2;

/// A table of `rte_meter`'s meters with the same rates, colour aware.
pub struct Meters {
    pub(super) table: *mut c_void,
    pub(super) rates: MeterRates,
}

impl Meters {
    /// `n` full meters. Fails if `n` is no power of two, or `rte_meter` refuses the rates.
    pub fn new(_: &Eal, n: u32, rates: MeterRates) -> Result<Self, Error> {
        // SAFETY: EAL runs.
        let table = unsafe {
            match rates {
                MeterRates::SrTcm { cir, cbs, ebs } => sl_srtcm(n, cir, cbs, ebs),
                MeterRates::TrTcm { cir, pir, cbs, pbs } => sl_trtcm(n, cir, pir, cbs, pbs),
            }
        };
        made(table, "rte_meter").map(|table| Meters { table, rates })
    }

    /// Meters up to [`BURST`] packets of so many octets each, which all come at `now` (TSC). Their colours replace those with which
    /// they come. `which` names meters, modulo their number.
    #[inline]
    pub fn colour(&mut self, which: &[u32], octets: &[u32], colours: &mut [u8; BURST], now: u64) {
        let n = which.len().min(octets.len()).min(BURST) as c_uint;
        let colour = match self.rates {
            MeterRates::SrTcm { .. } => sl_srtcm_colour,
            MeterRates::TrTcm { .. } => sl_trtcm_colour,
        };
        let (which, octets) = (which.as_ptr(), octets.as_ptr());
        // SAFETY: `n` of each are there to be read, `n` colours to be written; the table is of the kind that `colour` is for.
        unsafe { colour(self.table, which, octets, colours.as_mut_ptr(), n, now) };
    }
}

impl Drop for Meters {
    fn drop(&mut self) {
        // SAFETY: it is used no more.
        unsafe { sl_meters_free(self.table) }
    }
}
