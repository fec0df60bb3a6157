//! From the bytes of a statement to its receipt.
//!
//! | file | step |
//! |---|---|
//! | `register.rs` | the whole path, one loop; read it first |
//! | `issuer_rate.rs`, `rate.rs` | how often an issuer may register |
//! | `pending.rs` | statements that wait for records they refer to |
//! | `commit_queue.rs` | bounded queue between request tasks and the committer |
//! | `committer.rs` | the thread that empties it, one commit at a time |
//! | `recent_commits.rs` | what the last commits contained, without asking the disk |
//! | `writer.rs` | a batch becomes one durable commit and one signed head |
//! | `control.rs` | policy, trust and key changes, logged by the same writer |
//! | `refusals.rs` | the last refusals, for the operator |

pub(super) mod commit_queue;
pub(super) mod committer;
pub(super) mod control;
pub(super) mod issuer_rate;
pub(super) mod pending;
pub(super) mod rate;
pub(super) mod recent_commits;
pub(super) mod refusals;
pub(super) mod register;
pub(super) mod writer;
