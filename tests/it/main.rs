//! One binary for everything that is tested from outside.

/// Statuses, headers and problems of the HTTP surface, without a socket.
mod api;

/// SIGKILL, SIGTERM and restored copies of a real process.
mod crash;

/// A real process with a real socket, for the others.
mod live;
