//! Rule 1 and the forms of the fields.
//!
//! In: a value of either encoding. Out: the parts that could be read, and a
//! finding with its pointer for each that could not.

use super::form::Form;
use super::tuple::CausalId;
use super::tuple::{CognitiveSplit, Estimate, Resources, SixTuple, as_set};
use super::{PAYLOAD_BYTES_MAX, PREDECESSORS_MAX, violation};
use crate::profile::finding::{Finding, Severity};
use crate::wire::json::pointer_token;

/// The parts of a record that could be read.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Parts {
    pub(super) id: Option<CausalId>,
    /// As written, duplicates and sentinel included.
    pub(super) predecessors: Vec<CausalId>,
    /// How many are listed, readable or not.
    pub(super) predecessors_written: usize,
    pub(super) landauer_cost: Option<Estimate>,
    pub(super) energy: Option<Estimate>,
    pub(super) time: Option<Estimate>,
    pub(super) space: Option<Estimate>,
    pub(super) statistical_complexity: Option<Estimate>,
    pub(super) entropy_rate: Option<Estimate>,
    pub(super) info_gain: Option<Estimate>,
    pub(super) payload: Option<Vec<u8>>,
}

impl Parts {
    /// The record, if it is complete.
    pub(super) fn tuple(&self) -> Option<SixTuple> {
        Some(SixTuple {
            id: self.id?,
            predecessors: as_set(&self.predecessors).into_iter().collect(),
            landauer_cost: self.landauer_cost?,
            resources: Resources { energy: self.energy?, time: self.time?, space: self.space? },
            cognitive_split: CognitiveSplit {
                statistical_complexity: self.statistical_complexity?,
                entropy_rate: self.entropy_rate?,
                info_gain: self.info_gain?,
            },
            payload: self.payload.clone()?,
        })
    }
}

const TOP: &[&str] =
    &["id", "predecessors", "landauer_cost", "resources", "cognitive_split", "payload"];
const RESOURCES: &[&str] = &["energy", "time", "space"];
const SPLIT: &[&str] = &["statistical_complexity", "entropy_rate", "info_gain"];

pub(super) fn read<F: Form>(form: &F, findings: &mut Vec<Finding>) -> Parts {
    let mut reader = Reader { findings };
    if !form.is_map() {
        let detail = format!("{}, not a map", form.kind());
        reader.findings.push(violation("pacr-not-a-map", "", detail));
        return Parts::default();
    }
    reader.unknown_members(form, "", TOP);
    let id = reader.required(form, "", "id").and_then(|id| reader.id(id, "/id"));
    let predecessors = reader.required(form, "", "predecessors");
    let predecessors_written = predecessors.and_then(F::items).map_or(0, <[F]>::len);
    let predecessors = predecessors.map(|set| reader.predecessors(set)).unwrap_or_default();
    let landauer_cost = reader.estimate_of(form, "", "landauer_cost");
    let resources = reader.group(form, "resources", RESOURCES);
    let [energy, time, space] =
        ["energy", "time", "space"].map(|n| reader.estimate_of(resources?, "/resources", n));
    let split = reader.group(form, "cognitive_split", SPLIT);
    let [statistical_complexity, entropy_rate] = ["statistical_complexity", "entropy_rate"]
        .map(|name| reader.estimate_of(split?, "/cognitive_split", name));
    let info_gain = split.and_then(|split| match split.member("info_gain") {
        None => Some(Estimate::ZERO),
        Some(_) => reader.estimate_of(split, "/cognitive_split", "info_gain"),
    });
    let payload = reader.required(form, "", "payload").and_then(|p| reader.payload(p));
    Parts {
        id,
        predecessors,
        predecessors_written,
        landauer_cost,
        energy,
        time,
        space,
        statistical_complexity,
        entropy_rate,
        info_gain,
        payload,
    }
}

struct Reader<'a> {
    findings: &'a mut Vec<Finding>,
}

impl Reader<'_> {
    /// Rule 1: present and not null.
    fn required<'f, F: Form>(&mut self, form: &'f F, within: &str, name: &str) -> Option<&'f F> {
        let (code, what) = match form.member(name) {
            None => ("pacr-field-missing", "missing"),
            Some(value) if value.is_null() => ("pacr-field-null", "null"),
            Some(value) => return Some(value),
        };
        let (at, detail) = (format!("{within}/{name}"), format!("{name} is {what}"));
        self.findings.push(Finding::new(Severity::Error, code, at, detail).of_check(1));
        None
    }

    fn id<F: Form>(&mut self, form: &F, at: &str) -> Option<CausalId> {
        let id = form.id();
        if id.is_none() {
            let detail = format!("an identity is {}", F::ID);
            self.findings.push(violation("pacr-id-malformed", at, detail));
        }
        id
    }

    /// Beyond the limit none is read.
    fn predecessors<F: Form>(&mut self, form: &F) -> Vec<CausalId> {
        let at = "/predecessors";
        let Some(items) = form.items() else {
            let detail = format!("{}, not an array of identities", form.kind());
            self.findings.push(violation("pacr-field-malformed", at, detail));
            return Vec::new();
        };
        if items.len() > PREDECESSORS_MAX {
            let detail = format!("{} predecessors, at most {PREDECESSORS_MAX}", items.len());
            self.findings.push(violation("pacr-limit-predecessors", at, detail));
            return Vec::new();
        }
        let read = |(number, item)| self.id(item, &format!("{at}/{number}"));
        items.iter().enumerate().filter_map(read).collect()
    }

    fn group<'f, F: Form>(&mut self, form: &'f F, name: &str, names: &[&str]) -> Option<&'f F> {
        let (group, at) = (self.required(form, "", name)?, format!("/{name}"));
        if group.is_map() {
            self.unknown_members(group, &at, names);
            return Some(group);
        }
        let detail = format!("{}, not a map of Estimates", group.kind());
        self.findings.push(violation("pacr-field-malformed", at, detail));
        None
    }

    fn estimate_of<F: Form>(&mut self, form: &F, within: &str, name: &str) -> Option<Estimate> {
        let value = self.required(form, within, name)?;
        let at = format!("{within}/{name}");
        let Some(places) = value.estimate() else {
            let detail = format!("an Estimate is {}", F::ESTIMATE);
            self.findings.push(violation("pacr-estimate-malformed", at, detail));
            return None;
        };
        self.unknown_members(value, &at, &F::PLACES);
        let [point, lower, upper] = places;
        let [point_at, lower_at, upper_at] = F::PLACES.map(|place| format!("{at}/{place}"));
        let point = self.number(point, point_at);
        let lower = self.number(lower, lower_at);
        let upper = self.number(upper, upper_at);
        Some(Estimate { point: point?, lower: lower?, upper: upper? })
    }

    fn number<F: Form>(&mut self, value: Option<&F>, at: String) -> Option<f64> {
        let (code, detail) = match value.and_then(F::number) {
            Some(number) if number.is_finite() => return Some(number),
            Some(_) => ("pacr-not-finite", "not a finite double"),
            None => ("pacr-estimate-malformed", "not a number"),
        };
        self.findings.push(violation(code, at, detail));
        None
    }

    fn payload<F: Form>(&mut self, form: &F) -> Option<Vec<u8>> {
        let at = "/payload";
        let Some(payload) = form.payload() else {
            let detail = format!("a payload is {}", F::PAYLOAD);
            self.findings.push(violation("pacr-payload-malformed", at, detail));
            return None;
        };
        if payload.len() > PAYLOAD_BYTES_MAX {
            let detail = format!("{} bytes, at most {PAYLOAD_BYTES_MAX}", payload.len());
            self.findings.push(violation("pacr-limit-payload", at, detail));
        }
        Some(payload)
    }

    /// The draft allows more fields. One finding for each map, so that a map
    /// of many unknown members does not flood the report.
    fn unknown_members<F: Form>(&mut self, form: &F, at: &str, known: &[&str]) {
        let names = form.names();
        let mut unknown = names.iter().filter(|name| !known.contains(&name.as_str()));
        let Some(first) = unknown.next() else { return };
        let place = format!("{at}{}", pointer_token(first));
        let detail = match unknown.count() {
            0 => "not a member the draft defines".to_owned(),
            more => format!("this and {more} more are not members the draft defines"),
        };
        self.findings.push(Finding::new(Severity::Info, "pacr-member-unknown", place, detail));
    }
}
