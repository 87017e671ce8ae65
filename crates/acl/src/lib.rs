//! Access control lists: rules, their text, and what finds a packet's first matching rule.
//!
//! A [`Rule`] is one line of a list. Its text follows IPFilterRule of RFC 6733 §4.3.1. [`Classifier`] is a list that is compiled
//! for the packet path: it returns the index of the first rule that matches a [`Packet4`] or a [`Packet6`]. [`mod@reference`] is
//! the same law, written plainly, for tests. [`shadowed`] finds rules that can never be the first match.
//!
//! Any room may use this one. It uses none. What a packet without a matching rule gets is the caller's decision.
//!
//! ```
//! use acl::{Action, Classifier, Packet4, Rule, Upper};
//!
//! let texts = ["permit in tcp from any to 192.0.2.0/24 443 mark af21", "deny ip from any to any"];
//! let rules: Vec<Rule> = texts.iter().map(|text| text.parse().unwrap()).collect();
//! let classifier = Classifier::new(&rules).unwrap();
//!
//! let packet = Packet4 {
//!     source: 0x6440_0007,
//!     destination: 0xc000_0201,
//!     protocol: 6,
//!     upper: Upper::Flags,
//!     source_port: 50_000,
//!     destination_port: 443,
//!     tcp_flags: 2,
//!     ..Packet4::default()
//! };
//! let first = classifier.first_match_v4(&packet).unwrap();
//! assert_eq!(rules[first as usize].action(), Action::Permit);
//! assert_eq!(rules[first as usize].mark(), Some(18));
//!
//! let refused = "deny tcp from any to 192.0.2.7/24".parse::<Rule>().unwrap_err();
//! assert_eq!(refused.to_string(), "`192.0.2.7/24`: bits are set beyond the prefix length, `192.0.2.0/24` is the prefix");
//! ```
#![forbid(unsafe_code)]

mod classifier;
mod packet;
pub mod reference;
mod rule;
mod shadow;

pub use classifier::{Classifier, FamilySize, MOST_OCTETS, MOST_RULES, TooLarge, surely_fits};
pub use packet::{Fragment, Packet4, Packet6, Upper};
pub use rule::{
    Action, Address, Direction, LONGEST_CLASS, LONGEST_TEXT, MOST_RANGES, Rule, RuleError,
    dscp_name, dscp_value, is_class_name,
};
pub use shadow::shadowed;
