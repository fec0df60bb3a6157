//! Searching: `/api/v1/statements`, stories and open items.

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde_json::Value;

use super::App;
use super::entries::locate;
use super::problem::Problem;
use crate::store::{self, Field};
use crate::wire::text;
use crate::wire::time::UnixSeconds;

/// Statements on one page, unless the client says otherwise, and at most.
const LIMIT: usize = 50;
const LIMIT_MAX: usize = 200;
/// Words of one search; each is looked up in every field.
const WORDS_MAX: usize = 16;

/// What can follow the question mark, one pair at a time.
type Pairs = Vec<(String, String)>;

/// `GET /api/v1/statements`
pub(super) async fn search(
    State(app): State<App>,
    Query(pairs): Query<Pairs>,
) -> Result<Json<Value>, Problem> {
    Ok(Json(app.service.search(&query(&pairs, &Field::SEARCHED)?)?))
}

/// `GET /api/v1/statements/{id}`
pub(super) async fn one(
    State(app): State<App>,
    Path(name): Path<String>,
    Query(pairs): Query<Pairs>,
) -> Result<Json<Value>, Problem> {
    none(&pairs)?;
    let entry = locate(&app, &name)?.ok_or_else(|| unknown(&name))?;
    Ok(Json(app.service.show(entry.index)?))
}

/// `GET /api/v1/stories/{id}`
pub(super) async fn story(
    State(app): State<App>,
    Path(name): Path<String>,
    Query(pairs): Query<Pairs>,
) -> Result<Json<Value>, Problem> {
    none(&pairs)?;
    Ok(Json(app.service.story(&name)?.ok_or_else(|| unknown(&name))?))
}

/// `GET /api/v1/lineages/{id}`
pub(super) async fn lineage(
    State(app): State<App>,
    Path(id): Path<String>,
    Query(pairs): Query<Pairs>,
) -> Result<Json<Value>, Problem> {
    none(&pairs)?;
    Ok(Json(app.service.lineage(&id)?.ok_or_else(|| unknown(&id))?))
}

/// `GET /api/v1/lineages/{id}/to/{other}`
pub(super) async fn order(
    State(app): State<App>,
    Path((id, other)): Path<(String, String)>,
    Query(pairs): Query<Pairs>,
) -> Result<Json<Value>, Problem> {
    none(&pairs)?;
    Ok(Json(app.service.order(&id, &other)?.ok_or_else(|| unknown(&format!("{id} or {other}")))?))
}

/// `GET /api/v1/lineages/{id}/prov`
pub(super) async fn prov(
    State(app): State<App>,
    Path(id): Path<String>,
    Query(pairs): Query<Pairs>,
) -> Result<Json<Value>, Problem> {
    none(&pairs)?;
    Ok(Json(app.service.prov(&id)?.ok_or_else(|| unknown(&id))?))
}

/// `GET /api/v1/open-items`
pub(super) async fn open_items(
    State(app): State<App>,
    Query(pairs): Query<Pairs>,
) -> Result<Json<Value>, Problem> {
    let fields = [Field::Operator, Field::Developer, Field::Issuer, Field::ActionId];
    Ok(Json(app.service.open_items(&query(&pairs, &fields)?)?))
}

/// `GET /api/v1/bundles/{id}`
pub(super) async fn bundle(
    State(app): State<App>,
    Path(name): Path<String>,
) -> Result<Response, Problem> {
    let entry = locate(&app, &name)?.ok_or_else(|| unknown(&name))?;
    let bytes = app.service.bundle(&entry)?;
    Ok(([(CONTENT_TYPE, "application/cbor")], bytes).into_response())
}

fn unknown(name: &str) -> Problem {
    let detail = format!("nothing here is called {name}");
    Problem::new(StatusCode::NOT_FOUND, "story-unknown", "Not Found", detail)
}

fn none(pairs: &Pairs) -> Result<(), Problem> {
    query(pairs, &[]).map(drop)
}

/// Reads the pairs; whatever is not understood is refused, or a misspelt
/// filter would find everything.
fn query(pairs: &Pairs, fields: &[Field]) -> Result<store::Query, Problem> {
    let mut query = store::Query { limit: LIMIT, ..store::Query::default() };
    for (name, value) in pairs {
        let wrong = |wants: &str| {
            let detail = format!("{name} is {value:?}; it wants {wants}");
            Problem::malformed("query-value", detail)
        };
        let time = || UnixSeconds::from_rfc3339(value).ok_or_else(|| wrong("an RFC 3339 time"));
        match name.as_str() {
            "since" if !fields.is_empty() => query.since = Some(time()?),
            "until" if !fields.is_empty() => query.until = Some(time()?),
            "cursor" if !fields.is_empty() => {
                query.before = Some(value.parse().map_err(|_| wrong("the cursor of a page"))?);
            }
            "limit" if !fields.is_empty() => {
                let limit = value.parse().ok().filter(|n| (1..=LIMIT_MAX).contains(n));
                query.limit = limit.ok_or_else(|| wrong("1 to 200"))?;
            }
            "any" if fields.len() == Field::SEARCHED.len() && query.words.len() < WORDS_MAX => {
                query.words.push(value.clone());
            }
            _ => match fields.iter().find(|field| field.name() == name) {
                Some(field) => query.fields.push((*field, value.clone())),
                None => return Err(not_a_parameter(name, fields)),
            },
        }
    }
    Ok(query)
}

fn not_a_parameter(name: &str, fields: &[Field]) -> Problem {
    let known = fields.iter().map(|field| field.name());
    let detail = match text::did_you_mean(name, known.chain(["since", "until", "limit", "cursor"]))
    {
        Some(near) if !fields.is_empty() => format!("there is no {name}; {near} is meant?"),
        _ => format!("there is no parameter {name} here"),
    };
    Problem::malformed("query-parameter", detail)
}
