//! Huge pages, reserved for the time of the bench.
use anyhow::{Context, Result, ensure};
use std::fs::{self, File};

const RESERVED: &str = "/proc/sys/vm/nr_hugepages";

/// So many pages of 2 MiB are reserved while this lives; then there are as many fewer.
pub struct HugePages(i32);

impl HugePages {
    pub fn reserve(pages: u32) -> Result<Self> {
        let guard = HugePages(change(pages as i32)?);
        ensure!(
            guard.0 >= pages as i32,
            "{} of {pages} huge pages of 2 MiB could be had: memory is too full or in too small pieces",
            guard.0
        );
        Ok(guard)
    }
}

/// Changes the number of pages, and says by how many it has changed. Tests and benches of other clones do so under the same
/// lock, so that none undoes another one's change.
fn change(by: i32) -> Result<i32> {
    let lock = File::open(RESERVED).context(RESERVED)?;
    lock.lock().context(RESERVED)?;
    let count = || anyhow::Ok(fs::read_to_string(RESERVED)?.trim().parse::<i32>()?);
    let before = count()?;
    fs::write(RESERVED, (before + by).to_string())
        .with_context(|| format!("{RESERVED}: huge pages are reserved by root alone"))?;
    Ok(count()? - before)
}

impl Drop for HugePages {
    fn drop(&mut self) {
        if let Err(e) = change(-self.0) {
            eprintln!("{} huge pages could not be given back: {e:#}", self.0);
        }
    }
}
