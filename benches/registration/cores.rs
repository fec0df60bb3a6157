//! What work costs the cores, whatever else they were doing meanwhile.

/// How fast something went, and what one of it cost.
#[derive(Clone, Copy)]
pub(crate) struct Rate {
    pub(crate) per_second: f64,
    /// Microseconds of a core, in user space and in the kernel.
    pub(crate) core_us: f64,
}

/// Linux counts in hundredths of a second for user space.
const TICK_US: f64 = 1e4;

/// Microseconds of a core that a process has spent; `self` is this one.
pub(crate) fn core_us(process: &str) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("stat");
    // The name before the last bracket may hold anything. After it, user and
    // system time are the 12th and 13th field.
    let (_, fields) = stat.rsplit_once(')').expect("a name");
    let ticks = fields.split_whitespace().skip(11).take(2);
    ticks.map(|n| n.parse::<f64>().expect("a number")).sum::<f64>() * TICK_US
}
