//! Huge pages, reserved for the time of the bench.
use anyhow::{Context, Result, ensure};
use std::fs;

const RESERVED: &str = "/proc/sys/vm/nr_hugepages";

/// So many pages of 2 MiB are reserved while this lives; then there are as many as before.
pub struct HugePages(String);

impl HugePages {
    pub fn reserve(pages: u32) -> Result<Self> {
        let before = fs::read_to_string(RESERVED).context(RESERVED)?;
        let already: u32 = before.trim().parse()?;
        let guard = HugePages(before);
        let wanted = already + pages;
        fs::write(RESERVED, wanted.to_string())
            .with_context(|| format!("{RESERVED}: huge pages are reserved by root alone"))?;
        let got: u32 = fs::read_to_string(RESERVED)?.trim().parse()?;
        ensure!(
            got >= wanted,
            "{} of {pages} huge pages of 2 MiB could be had: memory is too full or in too small pieces",
            got - already
        );
        Ok(guard)
    }
}

impl Drop for HugePages {
    fn drop(&mut self) {
        if let Err(e) = fs::write(RESERVED, self.0.trim()) {
            eprintln!("{RESERVED} could not be set back to {}: {e}", self.0.trim());
        }
    }
}
