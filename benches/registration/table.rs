//! The table a run prints.

use std::fmt;

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

    /// A rate as a share of another from the same run.
    pub(crate) fn ratio(&mut self, what: &str, rate: f64, of: f64, goal: &str, least: f64) {
        let ratio = rate / of;
        let met = if ratio >= least { "met" } else { "NOT met" };
        let value = format!("{ratio:.3} ({rate:.0}/s)");
        self.row([what.to_owned(), value, goal.to_owned(), met.to_owned()]);
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
