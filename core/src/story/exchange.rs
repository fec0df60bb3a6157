//! Exchanges: whether what was executed had been asked for and allowed (CARP,
//! 3.6).
//!
//! A resolution of the request's own issuer comes first, then the first of any
//! issuer: a conflict with another's resolution names that issuer and is only a
//! warning.

use std::collections::BTreeSet;

use super::{Entry, Oddity};
use crate::profile::Severity;
use crate::profile::exchange::{
    CLOCK_SKEW_SECONDS_MAX, Conflict, Execution, Part, Request, Resolution, Response,
};

/// Follows every exchange through the records, which are in log order.
pub(super) fn follow(records: &[Entry], oddities: &mut Vec<Oddity>) {
    let mut exchange = Exchange { records, requests: BTreeSet::new(), oddities };
    for record in records {
        match record.summary.exchange.as_deref() {
            Some(Part::Request(request)) => exchange.request(record, request),
            Some(Part::Response(response)) => exchange.response(record, response),
            Some(Part::Resolution(_)) | None => {}
        }
    }
}

struct Exchange<'a> {
    records: &'a [Entry],
    /// Issuer, session and id of the requests so far.
    requests: BTreeSet<[&'a str; 3]>,
    oddities: &'a mut Vec<Oddity>,
}

impl<'a> Exchange<'a> {
    fn request(&mut self, record: &'a Entry, request: &'a Request) {
        if !self.requests.insert([&record.issuer, &request.session, &request.request]) {
            let detail = format!("its session has a request {} already", request.request);
            self.note(record, "carp_request_repeated", Severity::Error, detail);
        }
        if let Some(late) = request.clock_skew(record.time, CLOCK_SKEW_SECONDS_MAX) {
            self.note(record, "carp_clock_skew", Severity::Warning, late.detail);
        }
        let conflicts = self.conflicts(record, request);
        self.oddities.extend(conflicts);
    }

    fn response(&mut self, record: &'a Entry, response: &'a Response) {
        let is_answered = |part: &Part| matches!(part, Part::Request(request) if request.request == response.request && request.execution.is_some());
        let Some((entry, Part::Request(request))) = self.earlier(record, is_answered) else {
            let detail = format!("it answers request {}, which is not here", response.request);
            return self.note(record, "carp_response_unasked", Severity::Error, detail);
        };
        let conflicts = self.conflicts(entry, request);
        let codes: Vec<&str> = conflicts.iter().map(|odd| odd.code).collect();
        if response.is_success && !codes.is_empty() {
            let severity = conflicts.iter().map(|odd| odd.severity).max();
            let severity = severity.unwrap_or(Severity::Error);
            let detail = format!("it executed #{}: {}", entry.index, codes.join(", "));
            self.note(record, "carp_executed_against", severity, detail);
        }
    }

    /// The conflicts of an execute request with its resolution.
    fn conflicts(&self, record: &'a Entry, request: &Request) -> Vec<Oddity> {
        let Some(wanted) = &request.execution else { return Vec::new() };
        let odd = |code, severity, detail| Oddity { index: record.index, code, severity, detail };
        let is_named = |part: &Part| matches!(part, Part::Resolution(granted) if granted.resolution == wanted.resolution);
        let Some((resolution, Part::Resolution(granted))) = self.earlier(record, is_named) else {
            let detail = format!("its resolution {} is not here", wanted.resolution);
            return vec![odd("carp_resolution_missing", Severity::Warning, detail)];
        };
        let (severity, whose) = if resolution.issuer == record.issuer {
            (Severity::Error, format!("resolution #{}", resolution.index))
        } else {
            let whose = format!("resolution #{}, of {}", resolution.index, resolution.issuer);
            (Severity::Warning, whose)
        };
        let described = |conflict| {
            let (code, detail) = describe(conflict, granted, wanted)?;
            Some(odd(code, severity, format!("{whose}, {detail}")))
        };
        granted.conflicts(&wanted.action, request.at).iter().filter_map(described).collect()
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

/// A code and a phrase for a conflict with a resolution.
fn describe(
    conflict: Conflict,
    granted: &Resolution,
    wanted: &Execution,
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
