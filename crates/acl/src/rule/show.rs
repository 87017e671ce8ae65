//! The canonical text of a rule.

use std::fmt::{Display, Formatter, Result};

use super::names::{TCP_FLAGS, dscp_name, protocol_name};
use super::{Action, Address, Direction, Flags, Ranges, Rule};

impl Display for Rule {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(match self.action {
            Action::Permit => "permit",
            Action::Deny => "deny",
            Action::Redirect => "redirect",
        })?;
        match self.direction {
            Some(Direction::In) => f.write_str(" in")?,
            Some(Direction::Out) => f.write_str(" out")?,
            None => {}
        }
        match self.protocol.map(|number| (number, protocol_name(number))) {
            None => f.write_str(" ip")?,
            Some((_, Some(name))) => write!(f, " {name}")?,
            Some((number, None)) => write!(f, " {number}")?,
        }
        write!(f, " from {}{}", self.source, self.source_ports)?;
        write!(f, " to {}{}", self.destination, self.destination_ports)?;
        self.fmt_options(f)
    }
}

impl Rule {
    fn fmt_options(&self, f: &mut Formatter<'_>) -> Result {
        self.flags.fmt(f)?;
        if !self.icmp_types.is_any() {
            write!(f, " icmptypes{}", self.icmp_types)?;
        }
        if self.frag {
            f.write_str(" frag")?;
        }
        if let Some(set) = self.dscp {
            let values = (0..64).filter(|value| set >> value & 1 == 1);
            write!(
                f,
                " dscp {}",
                values.map(dscp).collect::<Vec<_>>().join(",")
            )?;
        }
        if let Some(length) = self.length {
            write!(f, " length{}", Ranges(vec![length]))?;
        }
        if let Some(mark) = self.mark {
            write!(f, " mark {}", dscp(mark))?;
        }
        match &self.class {
            Some(class) => write!(f, " class {class}"),
            None => Ok(()),
        }
    }
}

fn dscp(value: u8) -> String {
    dscp_name(value).map_or_else(|| value.to_string(), str::to_owned)
}

impl Display for Address {
    /// As in a rule's text: a prefix of full length is an address.
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Address::Any => f.write_str("any"),
            Address::Assigned => f.write_str("assigned"),
            Address::Prefix(prefix) if prefix.prefix_len() == prefix.max_prefix_len() => {
                prefix.addr().fmt(f)
            }
            Address::Prefix(prefix) => prefix.fmt(f),
        }
    }
}

impl Display for Ranges {
    /// A space and the ranges, or nothing for every number.
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        for (position, (low, high)) in self.iter().enumerate() {
            f.write_str(if position == 0 { " " } else { "," })?;
            match low == high {
                true => write!(f, "{low}")?,
                false => write!(f, "{low}-{high}")?,
            }
        }
        Ok(())
    }
}

impl Display for Flags {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if self.established {
            f.write_str(" established")?;
        }
        if self.setup {
            f.write_str(" setup")?;
        }
        let mut separator = " tcpflags ";
        for (bit, name) in TCP_FLAGS.iter().enumerate() {
            for (mask, sign) in [(self.set, ""), (self.clear, "!")] {
                if mask >> bit & 1 == 1 {
                    write!(f, "{separator}{sign}{name}")?;
                    separator = ",";
                }
            }
        }
        Ok(())
    }
}
