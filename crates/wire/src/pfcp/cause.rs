//! The Cause values of TS 29.244 §8.2.1.
use super::codec::{Cursor, Outcome, Value};
use core::fmt;

/// How a request ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Cause(pub u8);

macro_rules! causes {
    ($( $value:literal $name:ident $text:literal, )*) => {
        impl Cause {
            $(
                #[doc = $text]
                pub const $name: Cause = Cause($value);
            )*

            /// The name that TS 29.244 gives the value.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $( $value => Some($text), )*
                    _ => None,
                }
            }
        }
    };
}

causes! {
    1 REQUEST_ACCEPTED "Request accepted",
    2 MORE_USAGE_REPORT_TO_SEND "More usage report to send",
    3 REQUEST_PARTIALLY_ACCEPTED "Request partially accepted",
    64 REQUEST_REJECTED "Request rejected",
    65 SESSION_CONTEXT_NOT_FOUND "Session context not found",
    66 MANDATORY_IE_MISSING "Mandatory IE missing",
    67 CONDITIONAL_IE_MISSING "Conditional IE missing",
    68 INVALID_LENGTH "Invalid length",
    69 MANDATORY_IE_INCORRECT "Mandatory IE incorrect",
    70 INVALID_FORWARDING_POLICY "Invalid forwarding policy",
    71 INVALID_F_TEID_ALLOCATION_OPTION "Invalid F-TEID allocation option",
    72 NO_ESTABLISHED_ASSOCIATION "No established PFCP association",
    73 RULE_CREATION_FAILURE "Rule creation or modification failure",
    74 ENTITY_IN_CONGESTION "PFCP entity in congestion",
    75 NO_RESOURCES_AVAILABLE "No resources available",
    76 SERVICE_NOT_SUPPORTED "Service not supported",
    77 SYSTEM_FAILURE "System failure",
    78 REDIRECTION_REQUESTED "Redirection requested",
    79 ALL_DYNAMIC_ADDRESSES_OCCUPIED "All dynamic addresses are occupied",
}

impl Cause {
    /// Did the peer do what it was asked? (Values below 64 say so.)
    pub const fn is_accepted(self) -> bool {
        matches!(self.0, 1..=63)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name} ({})", self.0),
            None => write!(f, "cause {}", self.0),
        }
    }
}

impl Value for Cause {
    fn read(payload: &[u8], _ignored: &mut u32) -> Outcome<Self> {
        Cursor(payload).u8().map(Cause)
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.push(self.0);
    }
}
