//! One binary for everything that is tested from outside.

/// Statuses, headers and problems of the HTTP surface, without a socket.
mod api;
