//! Bytes and text, read strictly.

pub mod budget;

pub mod cbor;

pub mod digest;

pub mod jcs;

pub mod json;

pub mod label;

pub mod limits;

pub mod pattern;

pub mod printable;

pub mod text;

pub mod time;

#[cfg(test)]
mod tests;
