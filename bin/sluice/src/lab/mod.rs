//! The lab: homes, access network, gateway and internet on one machine.

pub mod netns;
pub mod process;
pub mod topology;
