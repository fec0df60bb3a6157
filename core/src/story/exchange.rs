//! Exchanges: whether what was executed had been asked for and allowed (CARP,
//! 3.6).
//!
//! A resolution of the request's own issuer is looked for first, then the
//! first of anybody: what another says is told as his, and as a warning.

use std::collections::BTreeSet;

use super::{Entry, Oddity};
use crate::profile::Severity;
use crate::profile::cra::carp::{
    Asked, CLOCK_SKEW_SECONDS_MAX, Conflict, Done, Execution, Granted, Part, clock_skew,
};

/// Follows every exchange through the records, which are in log order.
pub(super) fn follow(records: &[Entry], oddities: &mut Vec<Oddity>) {
    let mut exchange = Exchange { records, asked: BTreeSet::new(), oddities };
    for record in records {
        match record.summary.exchange.as_deref() {
            Some(Part::Request(asked)) => exchange.request(record, asked),
            Some(Part::Response(done)) => exchange.response(record, done),
            Some(Part::Resolution(_)) | None => {}
        }
    }
}

struct Exchange<'a> {
    records: &'a [Entry],
    /// Issuer, session and id of the requests so far.
    asked: BTreeSet<[&'a str; 3]>,
    oddities: &'a mut Vec<Oddity>,
}

impl<'a> Exchange<'a> {
    fn request(&mut self, record: &'a Entry, asked: &'a Asked) {
        if !self.asked.insert([&record.issuer, &asked.session, &asked.request]) {
            let detail = format!("its session has a request {} already", asked.request);
            self.note(record, "carp_request_repeated", Severity::Error, detail);
        }
        if let Some(late) = clock_skew(asked, record.time, CLOCK_SKEW_SECONDS_MAX) {
            self.note(record, "carp_clock_skew", Severity::Warning, late.detail);
        }
        for odd in self.against(record, asked) {
            self.oddities.push(odd);
        }
    }

    fn response(&mut self, record: &'a Entry, done: &'a Done) {
        let is_asked = |part: &Part| matches!(part, Part::Request(asked) if asked.request == done.request && asked.execution.is_some());
        let Some((request, Part::Request(asked))) = self.earlier(record, is_asked) else {
            let detail = format!("it answers request {}, which is not here", done.request);
            return self.note(record, "carp_response_unasked", Severity::Error, detail);
        };
        let against = self.against(request, asked);
        let codes: Vec<&str> = against.iter().map(|odd| odd.code).collect();
        if done.is_success && !codes.is_empty() {
            let severity = against.iter().map(|odd| odd.severity).max().unwrap_or(Severity::Error);
            let detail = format!("it executed #{}: {}", request.index, codes.join(", "));
            self.note(record, "carp_executed_against", severity, detail);
        }
    }

    /// What speaks against an execute request.
    fn against(&self, record: &'a Entry, asked: &Asked) -> Vec<Oddity> {
        let Some(wanted) = &asked.execution else { return Vec::new() };
        let odd = |code, severity, detail| Oddity { index: record.index, code, severity, detail };
        let is_named = |part: &Part| matches!(part, Part::Resolution(granted) if granted.resolution == wanted.resolution);
        let Some((resolution, Part::Resolution(granted))) = self.earlier(record, is_named) else {
            let detail = format!("its resolution {} is not here", wanted.resolution);
            return vec![odd("carp_resolution_missing", Severity::Warning, detail)];
        };
        let severity = match resolution.issuer == record.issuer {
            true => Severity::Error,
            false => Severity::Warning,
        };
        let told = |conflict| {
            let (code, detail) = told(conflict, (granted, wanted))?;
            let whose = match resolution.issuer == record.issuer {
                true => format!("resolution #{}", resolution.index),
                false => format!("resolution #{}, of {}", resolution.index, resolution.issuer),
            };
            Some(odd(code, severity, format!("{whose}, {detail}")))
        };
        granted.against(&wanted.action, asked.at).iter().filter_map(told).collect()
    }

    /// The first earlier record that fits, of the same issuer if there is one.
    fn earlier(
        &self,
        record: &Entry,
        fits: impl Fn(&Part) -> bool,
    ) -> Option<(&'a Entry, &'a Part)> {
        let before = self.records.iter().take_while(|one| one.index < record.index);
        let fitting = before.filter_map(|one| {
            let part = one.summary.exchange.as_deref()?;
            fits(part).then_some((one, part))
        });
        let mut first = None;
        for found in fitting {
            if found.0.issuer == record.issuer {
                return Some(found);
            }
            first = first.or(Some(found));
        }
        first
    }

    fn note(&mut self, record: &Entry, code: &'static str, severity: Severity, detail: String) {
        self.oddities.push(Oddity { index: record.index, code, severity, detail });
    }
}

/// A code and a few words for what one resolution says against a request.
fn told(
    conflict: Conflict,
    (granted, wanted): (&Granted, &Execution),
) -> Option<(&'static str, String)> {
    Some(match conflict {
        Conflict::Denied => ("carp_denied", format!("denies {:?}", wanted.action)),
        Conflict::Unallowed => ("carp_unallowed", format!("does not allow {:?}", wanted.action)),
        Conflict::Expired => match granted.expires {
            Some(expires) => ("carp_expired", format!("had ended at {expires}")),
            None => ("carp_expired", "does not say when it ends".to_owned()),
        },
        Conflict::DuplicateRequest
        | Conflict::NoRequest
        | Conflict::NoResolution
        | Conflict::OtherIssuer => return None,
    })
}
