//! What the network does to datagrams: nftables in a namespace.

use anyhow::Result;
use lab::netns::Netns;

/// The table that holds the rules; nothing else in these namespaces has any.
const TABLE: &str = "table inet cut";

/// Datagrams that a namespace refuses; all pass again when dropped.
pub struct Cut<'l>(&'l Netns);

impl<'l> Cut<'l> {
    /// Drops what arrives in the namespace and matches one of these expressions of nft.
    pub fn arriving(netns: &'l Netns, expressions: &[&str]) -> Result<Self> {
        let rule = |expression: &&str| format!("{expression} counter drop; ");
        let rules: String = expressions.iter().map(rule).collect();
        let chain = format!("chain arriving {{ type filter hook input priority 0; {rules} }}");
        netns.run(&["nft", &format!("{TABLE} {{ {chain}; }}")])?;
        Ok(Cut(netns))
    }

    /// How many datagrams were dropped so far.
    pub fn dropped(&self) -> Result<u64> {
        let listed = self.0.run(&["nft", &format!("list {TABLE}")])?;
        let words: Vec<&str> = listed.split_whitespace().collect();
        let counts = words.windows(2).filter(|pair| pair[0] == "packets");
        Ok(counts.filter_map(|pair| pair[1].parse::<u64>().ok()).sum())
    }
}

impl Drop for Cut<'_> {
    fn drop(&mut self) {
        // Nothing can be reported from here; a namespace does not outlive the run.
        let _ = self.0.run(&["nft", &format!("delete {TABLE}")]);
    }
}
