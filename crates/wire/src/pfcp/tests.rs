//! Properties of the codec, and kept cases.
