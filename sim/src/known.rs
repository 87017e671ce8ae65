//! Seeds that fail, and are to be mended: each with what is known of it. A run says their names and goes on; one that
//! passes, or fails and is not here, fails the run. A change of what the simulation draws makes the list another one.

/// The seeds, and what they find.
pub const KNOWN: &[(u64, &str)] = &[
    (
        426,
        "three places of a gateway that has less room than homes stay empty",
    ),
    (
        1032,
        "a Stop lacks octets of a session that ended while its user plane was taken out of the configuration",
    ),
    (1297, "as 426"),
    (
        1352,
        "after the wall clock was set and the power went, an Interim-Update comes behind the Stop (decision 0006)",
    ),
    (
        1721,
        "Stops lack octets of sessions that ended around a loss of power",
    ),
    (
        1932,
        "a Stop lacks the octets of a session that lasted six seconds, on a network that loses packets",
    ),
];
