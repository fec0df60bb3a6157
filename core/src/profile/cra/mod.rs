//! Records of the CRA protocols 1.0: TRACE event chains, CARP requests and
//! resolutions, Atlas manifests.
//!
//! In: a payload. Out: a record and findings, each at its JSON pointer. Errors
//! make `ok` false.

pub mod atlas;
pub mod carp;
mod grammar;
mod notes;
mod schema;
#[cfg(test)]
mod tests;
pub mod trace;

pub use atlas::AtlasRecord;
pub use carp::CarpRecord;
pub use trace::TraceRecord;

pub use grammar::uuid_version;
