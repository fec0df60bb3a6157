//! Rules 2 to 9 (section 6), over the parts that could be read. All violations
//! are reported; a part that could not be read breaks no further rule.

use std::collections::HashSet;
use std::f64::consts::PI;

use super::fields::Parts;
use super::tag::{Kind, Tag};
use super::violation;
use crate::profile::finding::{Finding, Severity};

/// The reduced Planck constant in joule seconds.
const H_BAR: f64 = 1.054_571_817e-34;

pub(super) fn check(parts: &Parts, findings: &mut Vec<Finding>) {
    identity(parts, findings);
    predecessors(parts, findings);
    estimates(parts, findings);
    physics(parts, findings);
    intervention(parts, findings);
}

fn broken(rule: u8, code: &'static str, at: impl Into<String>, detail: String) -> Finding {
    Finding::new(Severity::Error, code, at, detail).of_check(rule)
}

/// The sentinel means "no record": as an id all roots would share it.
fn identity(parts: &Parts, findings: &mut Vec<Finding>) {
    if parts.id.is_some_and(|id| id.is_sentinel()) {
        let detail = "the genesis sentinel is not an identity; a root has no predecessors";
        findings.push(violation("pacr-id-zero", "/id", detail));
    }
}

/// Rule 2, and that predecessors are a set.
fn predecessors(parts: &Parts, findings: &mut Vec<Finding>) {
    let mut seen = HashSet::new();
    let has_real = parts.predecessors.iter().any(|id| !id.is_sentinel());
    for (number, id) in parts.predecessors.iter().enumerate() {
        let at = format!("/predecessors/{number}");
        if !seen.insert(id) {
            let detail = format!("{id} is listed twice");
            let code = "pacr-predecessor-duplicate";
            findings.push(Finding::new(Severity::Warning, code, at, detail));
        } else if id.is_sentinel() && has_real {
            let detail = "the genesis sentinel beside other predecessors";
            findings.push(violation("pacr-sentinel-mixed", at, detail));
        } else if id.is_sentinel() {
            let detail = "the genesis sentinel, read as an empty set";
            let code = "pacr-sentinel-predecessor";
            findings.push(Finding::new(Severity::Warning, code, at, detail));
        } else if parts.id == Some(*id) {
            let detail = "a record cannot be its own predecessor".to_owned();
            findings.push(broken(2, "pacr-self-reference", at, detail));
        }
    }
}

/// Rules 3 to 5.
fn estimates(parts: &Parts, findings: &mut Vec<Finding>) {
    let all = [
        ("/landauer_cost", parts.landauer_cost),
        ("/resources/energy", parts.energy),
        ("/resources/time", parts.time),
        ("/resources/space", parts.space),
        ("/cognitive_split/statistical_complexity", parts.statistical_complexity),
        ("/cognitive_split/entropy_rate", parts.entropy_rate),
        ("/cognitive_split/info_gain", parts.info_gain),
    ];
    for (at, estimate) in all {
        let Some(estimate) = estimate else { continue };
        let (point, lower, upper) = (estimate.point, estimate.lower, estimate.upper);
        if !(lower <= point && point <= upper) {
            let detail = format!("not {lower:e} <= {point:e} <= {upper:e}");
            findings.push(broken(3, "pacr-estimate-out-of-order", at, detail));
        }
        if at == "/resources/time" {
            if point <= 0.0 {
                let detail = format!("{point:e} s is not positive");
                findings.push(broken(5, "pacr-time-not-positive", at, detail));
            }
        } else if point < 0.0 {
            findings.push(broken(4, "pacr-point-negative", at, format!("{point:e} is negative")));
        } else if lower < 0.0 {
            // Rule 4 restricts points; an interval may start below zero.
            let detail = format!("the interval starts at {lower:e}");
            findings.push(Finding::new(Severity::Info, "pacr-lower-negative", at, detail));
        }
    }
}

/// Rules 6 and 7. These flag, because measurement errors occur. A record has
/// no temperature, so nothing is compared with the Landauer cost of a bit.
fn physics(parts: &Parts, findings: &mut Vec<Finding>) {
    let Some(energy) = parts.energy.map(|energy| energy.point) else { return };
    let mut flag = |rule, code, at: &str, detail: String| {
        findings.push(Finding::new(Severity::Warning, code, at, detail).of_check(rule));
    };
    if let Some(floor) = parts.landauer_cost.map(|cost| cost.point).filter(|f| energy < *f) {
        let detail = format!("{energy:e} J is below the stated floor of {floor:e} J");
        flag(6, "pacr-energy-below-landauer", "/resources/energy", detail);
    }
    // The bound needs a positive energy; a negative one gives no bound.
    let least = if energy == 0.0 { 0.0 } else { PI * H_BAR / (2.0 * energy) };
    if let Some(time) = parts.time.map(|time| time.point).filter(|time| *time < least) {
        let detail = format!("{time:e} s is below the bound of {least:e} s for {energy:e} J");
        flag(7, "pacr-time-below-quantum-limit", "/resources/time", detail);
    }
}

/// Rules 8 and 9.
fn intervention(parts: &Parts, findings: &mut Vec<Finding>) {
    let Some(payload) = &parts.payload else { return };
    match Tag::read(payload) {
        Err(e) => findings.push(broken(8, e.code(), "/payload", e.to_string())),
        Ok(Tag { kind: Kind::Counterfactual, sim_real_corr: Some(score), .. })
            if !(0.0..=1.0).contains(&score) =>
        {
            let detail = format!("sim_real_corr is {score}, not between 0 and 1");
            findings.push(broken(9, "pacr-correlation-out-of-range", "/payload", detail));
        }
        Ok(_) => {}
    }
}
