//! Seeds that fail, and are to be mended: each with what is known of it. A run says their names and goes on; one that
//! passes, or fails and is not here, fails the run. A change of what the simulation draws makes the list another one.

/// The seeds, and what they find.
pub const KNOWN: &[(u64, &str)] = &[];
