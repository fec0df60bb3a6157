//! Strict readers and writers for bytes and text.

pub mod budget;

pub mod cbor;

pub mod digest;

pub mod jcs;

pub mod json;

pub mod label;

pub mod limits;

pub mod printable;

pub mod text;

pub mod time;

#[cfg(test)]
mod tests;
