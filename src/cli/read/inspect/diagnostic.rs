//! CBOR diagnostic notation (RFC 8949, 8), whole and indented.
//!
//! Byte strings that hold CBOR by their place (the protected header, proofs)
//! are shown as `<<…>>` (RFC 8610, G.3).

use anyhow::Context as _;

use crate::wire::cbor::Value;
use crate::wire::printable::{Printable, printable};
use crate::wire::text;

/// The notation of everything in `bytes`.
pub(super) fn diagnostic(bytes: &[u8]) -> anyhow::Result<Printable> {
    let value = Value::read(bytes).context("not one item of strict CBOR")?;
    let mut out = Printable::default();
    write(&mut out, &value, 0);
    Ok(out)
}

fn write(out: &mut Printable, value: &Value<'_>, depth: usize) {
    match value {
        Value::Array(items) if items.is_empty() => out.push("[]"),
        Value::Array(items) => {
            out.push("[");
            for (i, item) in items.iter().enumerate() {
                next_line(out, i > 0, depth + 1);
                write(out, item, depth + 1);
            }
            end_line(out, depth);
            out.push("]");
        }
        Value::Map(entries) if entries.is_empty() => out.push("{}"),
        Value::Map(entries) => {
            out.push("{");
            for (i, (key, item)) in entries.iter().enumerate() {
                next_line(out, i > 0, depth + 1);
                write(out, key, depth + 1);
                out.push(": ");
                write(out, item, depth + 1);
            }
            end_line(out, depth);
            out.push("}");
        }
        Value::Tag(tag, item) => {
            out.push(printable!("{}(", tag));
            write(out, item, depth);
            out.push(")");
        }
        Value::Bytes(bytes) => write_bytes(out, bytes, depth),
        other => {
            out.push(Printable::whole(other));
        }
    }
}

/// Only arrays, maps and tagged items count as embedded: nearly any byte is
/// a CBOR integer.
fn write_bytes(out: &mut Printable, bytes: &[u8], depth: usize) {
    let embedded = Value::read(bytes)
        .ok()
        .filter(|v| matches!(v, Value::Array(_) | Value::Map(_) | Value::Tag(..)));
    match embedded {
        Some(value) => {
            out.push("<<");
            write(out, &value, depth);
            out.push(">>");
        }
        None => {
            out.push(Printable::whole(format_args!("h'{}'", text::hex(bytes))));
        }
    }
}

fn next_line(out: &mut Printable, after_another: bool, depth: usize) {
    if after_another {
        out.push(",");
    }
    end_line(out, depth);
}

fn end_line(out: &mut Printable, depth: usize) {
    out.push("\n");
    for _ in 0..depth {
        out.push("  ");
    }
}
