//! Search, and one statement with everything its record says. Only what the
//! signed head covers is found.

use std::path::Path;

use super::reader::{LoggedStatement, ReadError};
use super::views::{EntryView, NOT_PROOF, SearchPage, StatementView};
use crate::envelope::{AuthContext, Issuer, Resolved, RulesVersion, SignedStatement, StatementId};
use crate::log::LeafIndex;
use crate::profile::{self, Control};
use crate::service::maintain::admission_replay;
use crate::service::{ControlError, Fault, Reader};
use crate::store::{Backend, Page, Query, Store};
use crate::story;
use crate::trust::TrustAnchors;
use crate::wire::budget::BudgetExhausted;
use crate::wire::cbor;

/// Rebuilds the index of a log that no other process has open. `progress` is
/// called with the number of statements done and the number there are.
pub fn reindex(path: &Path, progress: &mut dyn FnMut(u64, u64)) -> Result<u64, ControlError> {
    let (store, head) = Store::open_unchecked(Backend::open(path)?)?;
    let size = head.size();
    store.reindex(size, &mut |done| progress(done, size.get()))?;
    Ok(size.get())
}

impl Reader<'_> {
    /// Statements that match the whole query, newest first.
    pub fn search(&mut self, query: &Query) -> Result<SearchPage<EntryView>, Fault> {
        let mut page = self.page(query)?;
        let mut statements = Vec::with_capacity(page.found.len());
        for index in &page.found {
            match self.logged(*index) {
                Ok(logged) => statements.push(with_collateral(&logged)),
                Err(ReadError::BudgetExhausted(_)) => {
                    // The next page begins with the statement that was too
                    // expensive for this one.
                    page.next = Some(index.get() + 1);
                    break;
                }
                Err(ReadError::Fault(fault)) => return Err(fault),
            }
        }
        Ok(self.page_view(statements, &page))
    }

    pub(super) fn page_view<T>(&self, statements: Vec<T>, page: &Page) -> SearchPage<T> {
        SearchPage {
            statements,
            cursor: page.next.map(|bound| bound.to_string()),
            is_cut: self.is_cut(),
            limit: self.exhausted().map(|spent| BudgetExhausted::code(spent).into()),
            tree_size: self.size(),
            note: NOT_PROOF.into(),
        }
    }

    /// One statement with everything its record says.
    pub fn show(&mut self, index: LeafIndex) -> Result<StatementView, Fault> {
        let logged = self.required(index, |reader| reader.logged(index))?;
        let statement = &logged.statement;
        let (header, payload) = (statement.header(), statement.payload().unwrap_or_default());
        let findings = profile::read_payload(header, payload).findings;
        let issuer = self.issuer_at(&logged)?;
        Ok(StatementView::new(with_collateral(&logged), issuer, &findings, self.size()))
    }

    /// Who signed a statement and how they were authenticated, by the rules
    /// and the trust in force when it was logged; none where that cannot be
    /// established.
    pub(super) fn issuer_at(&mut self, logged: &LoggedStatement) -> Result<Option<Issuer>, Fault> {
        let own = self.issuer().to_owned();
        let statement = &logged.statement;
        let (rules, trust) = if statement.header().claims.issuer.as_deref() == Some(own.as_str()) {
            (RulesVersion::CURRENT, TrustAnchors::default().with_issuer(&own, &self.keys()))
        } else {
            let mut of = |control| -> Result<Option<SignedStatement>, Fault> {
                let Some(at) = self.in_force_at(control, logged.index)? else { return Ok(None) };
                Ok(Some(self.required(at, |reader| reader.logged(at))?.statement))
            };
            let (Some(policy), Some(trust)) = (of(Control::Policy)?, of(Control::Trust)?) else {
                return Ok(None);
            };
            let text = String::from_utf8_lossy(trust.payload().unwrap_or_default());
            let rules = RulesVersion::of_policy(policy.header());
            match (rules, TrustAnchors::parse_any(&text)) {
                (Ok(rules), Ok(trust)) => (rules, trust),
                _ => return Ok(None),
            }
        };
        let resolved = Resolved::default();
        let (log, now) = (Some(own.as_str()), logged.stored.time);
        let context = AuthContext { rules, log, trust: &trust, resolved: &resolved, now };
        let authentic = admission_replay::authenticate(statement, &logged.stored, &context);
        Ok(authentic.ok().map(|authentic| authentic.issuer().clone()))
    }

    /// The facts of the statement at an index.
    pub(super) fn entry(&mut self, index: LeafIndex) -> Result<story::Entry, ReadError> {
        Ok(facts(&self.logged(index)?))
    }
}

fn facts(logged: &LoggedStatement) -> story::Entry {
    let (header, payload) =
        (logged.statement.header(), logged.statement.payload().unwrap_or_default());
    let read = profile::read_payload(header, payload);
    story::Entry {
        index: logged.index.get(),
        id: StatementId::of_canonical(&logged.stored.canonical),
        issuer: header.claims.issuer.clone().unwrap_or_default(),
        subject: header.claims.subject.clone().unwrap_or_default(),
        time: logged.stored.time,
        profile: read.profile(),
        is_bound: !read.findings.iter().any(|f| profile::capsule::BINDING.contains(&f.code)),
        binding: None,
        summary: read.summary,
    }
}

fn with_collateral(logged: &LoggedStatement) -> EntryView {
    let mut view = EntryView::from(&facts(logged));
    let collateral = &logged.stored.collateral;
    if cbor::Value::read(collateral).is_ok_and(|map| map != cbor::Value::Map(Vec::new())) {
        view.collateral.clone_from(collateral);
    }
    view
}
