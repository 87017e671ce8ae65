//! Token bucket for what the control thread sends by itself.

use std::time::Duration;

/// See the top of the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    per_second: u32,
    most: u32,
    tokens: f64,
    filled: Duration,
}

impl Bucket {
    /// With `most` tokens; `per_second` come in a second.
    pub fn full(per_second: u32, most: u32) -> Self {
        Bucket {
            per_second,
            most,
            tokens: most.into(),
            filled: Duration::ZERO,
        }
    }

    /// Takes a token if there is one.
    pub fn take(&mut self, now: Duration) -> bool {
        let passed = now.saturating_sub(self.filled).as_secs_f64();
        self.filled = now;
        let filled = self.tokens + passed * f64::from(self.per_second);
        self.tokens = filled.min(self.most.into());
        let there = self.tokens >= 1.0;
        if there {
            self.tokens -= 1.0;
        }
        there
    }
}
