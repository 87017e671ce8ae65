//! Seeds that fail and whose causes are not known yet. A run prints them and goes on. One that passes, or a seed that fails
//! and is not here, fails the run. Another draw of random numbers in the simulation makes this another list.

/// The seeds, and what was seen.
pub const KNOWN: &[(u64, &str)] = &[
    (426, "45 sessions are held where there is room for 48"),
    (1032, "a Stop lacks octets"),
    (1297, "45 sessions are held where there is room for 48"),
    (1352, "an Interim-Update comes behind the Stop"),
    (1721, "Stops lack octets"),
    (
        1932,
        "a Stop lacks octets, with a lossy network and no fault",
    ),
];
