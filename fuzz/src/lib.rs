//! What is fuzzed: one module is one target, which `fuzz_targets/` gives to libFuzzer and the tests below to `cargo test`.
//!
//! An input is a list of steps (see [`steps`]), so that libFuzzer's mutations, which know nothing of protocols, still
//! make conversations: a session that was negotiated, a message behind an association. What a step cannot guess is put
//! in by the target: cookies, identifiers, authenticators, checksums. Besides panics a target looks for what must
//! never happen, and says so by an assertion.
#![forbid(unsafe_code)]

pub mod classify;
pub mod coa;
pub mod configuration;
pub mod dhcpv6;
pub mod dictionary;
pub mod discovery;
pub mod gnmi;
pub mod gtpu;
pub mod history;
pub mod lacp;
pub mod pfcp;
pub mod ppp;
pub mod radius;
pub mod store;

/// A target.
pub struct Target {
    /// Its name, which its corpus and its program have too.
    pub name: &'static str,
    /// Takes one input; panics if something is wrong.
    pub run: fn(&[u8]),
    /// Inputs to begin with, made by the codecs themselves.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

macro_rules! targets {
    ($( $name:ident )*) => {
        /// Every target.
        pub const TARGETS: &[Target] = &[$(
            Target { name: stringify!($name), run: $name::run, seeds: $name::seeds },
        )*];
    };
}

targets! { discovery ppp dhcpv6 pfcp radius coa gtpu store history classify configuration dictionary gnmi lacp }

/// A step of an input: what is done, and with what.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// What: each target has its own list.
    pub op: u8,
    /// With what.
    pub data: &'a [u8],
}

impl Step<'_> {
    /// The octet at `at`, 0 where there is none.
    pub fn octet(&self, at: usize) -> u8 {
        self.data.get(at).copied().unwrap_or(0)
    }

    /// The first two octets as a number.
    pub fn number(&self) -> u16 {
        u16::from_be_bytes([self.octet(0), self.octet(1)])
    }
}

/// The most steps that one input may have: longer ones find nothing that these do not, only later.
const MAX_STEPS: usize = 64;

/// Takes an input apart: each step is an octet of what to do, the length of its data in two octets (little endian), and the
/// data. Every input is one: what is cut short ends where the input ends.
pub fn steps(mut input: &[u8]) -> impl Iterator<Item = Step<'_>> {
    core::iter::from_fn(move || {
        let (&op, rest) = input.split_first()?;
        let (&length, rest) = rest.split_first_chunk::<2>().unwrap_or((&[0; 2], &[]));
        let length = usize::from(u16::from_le_bytes(length)).min(rest.len());
        let (data, rest) = rest.split_at(length);
        input = rest;
        Some(Step { op, data })
    })
    .take(MAX_STEPS)
}

/// Puts an input together.
pub fn script<D: AsRef<[u8]>>(steps: impl IntoIterator<Item = (u8, D)>) -> Vec<u8> {
    let mut input = Vec::new();
    for (op, data) in steps {
        let data = data.as_ref();
        input.push(op);
        input.extend((data.len() as u16).to_le_bytes());
        input.extend(data);
    }
    input
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    fn corpus(name: &str) -> Vec<Vec<u8>> {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("corpus")
            .join(name);
        fs::read_dir(&directory)
            .unwrap_or_else(|e| panic!("{}: {e}", directory.display()))
            .map(|file| fs::read(file.unwrap().path()).unwrap())
            .collect()
    }

    #[test]
    fn an_input_is_taken_apart_as_it_was_put_together() {
        let input = script([(1, &b"ab"[..]), (2, b""), (9, &[7; 300])]);
        let found: Vec<_> = steps(&input).map(|s| (s.op, s.data.to_vec())).collect();
        assert_eq!(found, [(1, b"ab".to_vec()), (2, vec![]), (9, vec![7; 300])]);
        assert!((0..input.len()).all(|end| steps(&input[..end]).count() <= 3));
    }

    #[test]
    fn every_kept_input_passes() {
        for target in TARGETS {
            let kept = corpus(target.name);
            assert!(!kept.is_empty(), "no corpus for {}", target.name);
            for input in kept {
                (target.run)(&input);
            }
        }
    }

    #[test]
    fn every_seed_passes() {
        for target in TARGETS {
            for seed in (target.seeds)() {
                (target.run)(&seed);
            }
        }
    }
}
