//! Making statements and registering them.

pub(super) mod keygen;
pub(super) mod outbox;
pub(super) mod register;
mod registrar;
pub(super) mod seal;
