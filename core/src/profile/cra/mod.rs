//! Records of the CRA protocols 1.0: TRACE event chains, CARP requests and
//! resolutions, Atlas manifests.
//!
//! In: a payload. Out: a record and findings, each at its JSON pointer. The
//! errors among them make `ok` false; nothing here refuses anything.

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

/// Whether a text is a UUID of RFC 9562 in lowercase, and of which version.
pub use grammar::uuid_version;
