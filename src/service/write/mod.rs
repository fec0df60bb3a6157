//! From the bytes of a statement to its receipt: authenticate, decide, queue,
//! commit, sign. `register.rs` is the whole path; read it first.

pub(super) mod charge;
pub(super) mod control;
pub(super) mod held;
pub(super) mod hold;
pub(super) mod line;
pub(super) mod queue;
pub(super) mod rate;
pub(super) mod recent;
pub(super) mod refusals;
pub(super) mod register;
pub(super) mod writer;
