//! The table a run prints.

use std::fmt;

use crate::cores::Rate;

/// Rows in the order they were measured.
#[derive(Default)]
pub(crate) struct Table {
    rows: Vec<[String; 4]>,
}

impl Table {
    /// Something measured that others are compared with.
    pub(crate) fn figure(&mut self, what: &str, value: f64, unit: &str) {
        self.row([what.to_owned(), format!("{value:.2} {unit}"), String::new(), String::new()]);
    }

    /// A rate as a share of another from the same run, and what one costs.
    pub(crate) fn share(&mut self, what: &str, rate: Rate, of: f64, least: f64) {
        let Rate { per_second, core_us } = rate;
        let share = per_second / of;
        let met = if share >= least { "met" } else { "NOT met" };
        let value = format!("{share:.3} ({per_second:.0} /s, {core_us:.0} us of a core each)");
        self.row([what.to_owned(), value, format!(">= {least:.2}"), met.to_owned()]);
    }

    /// A rate as a share of what all cores verified around it.
    pub(crate) fn under_ceiling(&mut self, what: &str, (rate, ceiling): (Rate, f64), least: f64) {
        self.figure(&format!("ES256 verify, all cores, around {what}"), ceiling, "/s");
        self.share(&format!("{what} / ES256 verify"), rate, ceiling, least);
    }

    /// A value that should stay below another.
    pub(crate) fn at_most(&mut self, what: &str, value: f64, limit: f64, unit: &str, goal: &str) {
        let met = if value <= limit { "met" } else { "NOT met" };
        let goal = format!("<= {limit:.2} {unit} ({goal})");
        self.row([what.to_owned(), format!("{value:.2} {unit}"), goal, met.to_owned()]);
    }

    fn row(&mut self, row: [String; 4]) {
        eprintln!("{}", row.join("  "));
        self.rows.push(row);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| measured | value | goal | |\n|---|---|---|---|")?;
        self.rows.iter().try_for_each(|row| writeln!(f, "| {} |", row.join(" | ")))
    }
}
