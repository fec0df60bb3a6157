//! Over HTTP, the client on the same cores.

use crate::table::Table;

pub fn single_rate(_count: usize) -> f64 {
    0.0
}
pub fn batch_rate(_count: usize) -> f64 {
    0.0
}
pub fn latency_p50_ms(_count: usize) -> f64 {
    0.0
}
pub fn growth(_table: &mut Table, _size: usize) {}
