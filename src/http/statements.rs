//! Searching: `/api/v1/statements`, stories and open items.

use axum::extract::{Extension, Path, Query, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::App;
use super::check::Client;
use super::entries::locate;
use super::problem::Problem;
use crate::service::{Fault, Reader};
use crate::store::{self, Field};
use crate::wire::budget::Spent;
use crate::wire::time::UnixSeconds;
use crate::wire::{printable, text};

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
    Extension(client): Extension<Client>,
    Query(pairs): Query<Pairs>,
) -> Result<Response, Problem> {
    let query = query(&pairs, &Field::SEARCHED)?;
    walk(app, client, move |reader| json(&reader.search(&query)?)).await
}

/// `GET /api/v1/statements/{id}`
pub(super) async fn one(
    State(app): State<App>,
    Extension(client): Extension<Client>,
    Path(name): Path<String>,
    Query(pairs): Query<Pairs>,
) -> Result<Response, Problem> {
    none(&pairs)?;
    let entry = locate(&app, &name)?.ok_or_else(|| unknown(&name))?;
    walk(app, client, move |reader| json(&reader.show(entry.index)?)).await
}

/// `GET /api/v1/names/{name}`
pub(super) async fn names(
    State(app): State<App>,
    Extension(client): Extension<Client>,
    Path(name): Path<String>,
    Query(pairs): Query<Pairs>,
) -> Result<Response, Problem> {
    none(&pairs)?;
    walk(app, client, move |reader| json(&reader.names(&name)?)).await
}

/// `GET /api/v1/stories/{id}`
pub(super) async fn story(
    State(app): State<App>,
    Extension(client): Extension<Client>,
    Path(name): Path<String>,
    Query(pairs): Query<Pairs>,
) -> Result<Response, Problem> {
    none(&pairs)?;
    let asked = name.clone();
    let told = walk(app, client, move |reader| found(reader.story(&asked)?)).await?;
    told.ok_or_else(|| unknown(&name))
}

/// `GET /api/v1/lineages/{id}`
pub(super) async fn lineage(
    State(app): State<App>,
    Extension(client): Extension<Client>,
    Path(id): Path<String>,
    Query(pairs): Query<Pairs>,
) -> Result<Response, Problem> {
    none(&pairs)?;
    let asked = id.clone();
    let told = walk(app, client, move |reader| found(reader.lineage(&asked)?)).await?;
    told.ok_or_else(|| unknown(&id))
}

/// `GET /api/v1/lineages/{id}/to/{other}`
pub(super) async fn order(
    State(app): State<App>,
    Extension(client): Extension<Client>,
    Path((id, other)): Path<(String, String)>,
    Query(pairs): Query<Pairs>,
) -> Result<Response, Problem> {
    none(&pairs)?;
    let names = format!("{id} or {other}");
    let told = walk(app, client, move |reader| found(reader.order(&id, &other)?)).await?;
    told.ok_or_else(|| unknown(&names))
}

/// `GET /api/v1/lineages/{id}/prov`
pub(super) async fn prov(
    State(app): State<App>,
    Extension(client): Extension<Client>,
    Path(id): Path<String>,
    Query(pairs): Query<Pairs>,
) -> Result<Response, Problem> {
    let from = cursor(&pairs)?;
    let asked = id.clone();
    let told = walk(app, client, move |reader| found(reader.prov(&asked, from)?)).await?;
    told.ok_or_else(|| unknown(&id))
}

/// `GET /api/v1/open-items`
pub(super) async fn open_items(
    State(app): State<App>,
    Extension(client): Extension<Client>,
    Query(pairs): Query<Pairs>,
) -> Result<Response, Problem> {
    let fields = [Field::Operator, Field::Developer, Field::Issuer, Field::ActionId];
    let query = query(&pairs, &fields)?;
    walk(app, client, move |reader| json(&reader.open_items(&query)?)).await
}

/// `GET /api/v1/bundles/{id}`
pub(super) async fn bundle(
    State(app): State<App>,
    Extension(client): Extension<Client>,
    Path(name): Path<String>,
) -> Result<Response, Problem> {
    let entry = locate(&app, &name)?.ok_or_else(|| unknown(&name))?;
    let made = move |reader: &mut Reader<'_>| {
        let bytes = reader.bundle(&entry)?;
        let limit = reader.spent().map_or("chain", Spent::code);
        Ok((bytes, reader.is_cut().then_some(limit)))
    };
    let (bytes, cut) = walk(app, client, made).await?;
    let mut response = ([(CONTENT_TYPE, "application/cbor")], bytes).into_response();
    if let Some(cut) = cut {
        response.headers_mut().insert("capstan-cut", HeaderValue::from_static(cut));
    }
    Ok(response)
}

/// Looks through the log, when it is this read's turn.
async fn walk<T: Send + 'static>(
    app: App,
    Client(client): Client,
    read: impl FnOnce(&mut Reader<'_>) -> Result<T, Fault> + Send + 'static,
) -> Result<T, Problem> {
    app.reads.run(app.service, client, read).await
}

/// An answer, written where it was made: large ones take a while.
fn json(value: &impl Serialize) -> Result<Response, Fault> {
    let text = printable::json(&serde_json::to_string(value).unwrap_or_default());
    Ok(([(CONTENT_TYPE, "application/json")], text).into_response())
}

fn found(value: Option<impl Serialize>) -> Result<Option<Response>, Fault> {
    value.as_ref().map(json).transpose()
}

fn unknown(name: &str) -> Problem {
    let detail = format!("nothing here is called {name}");
    Problem::new(StatusCode::NOT_FOUND, "story-unknown", "Not Found", detail)
}

fn none(pairs: &Pairs) -> Result<(), Problem> {
    query(pairs, &[]).map(drop)
}

/// Where the page before ended, and nothing else.
fn cursor(pairs: &Pairs) -> Result<usize, Problem> {
    match pairs.as_slice() {
        [(name, value)] if name == "cursor" => value.parse().map_err(|_| {
            let detail = format!("cursor is {value:?}; it wants the cursor of a page");
            Problem::malformed("query-value", detail)
        }),
        pairs => none(&pairs.to_vec()).map(|()| 0),
    }
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
