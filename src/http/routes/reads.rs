//! `/api/v1`: search, names, stories, lineages, open items and bundles.

use axum::extract::{Extension, Path, Query, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::entries::locate;
use super::{App, CBOR, Cost, ENTRY_ID, GET, JSON, Parameter, Route, ok};
use super::{path_parameter, query_parameter};
use crate::http::limits::Client;
use crate::http::response::json;
use crate::http::response::problem::Problem;
use crate::service::{Fault, Reader};
use crate::store::{self, Field};
use crate::wire::budget::BudgetExhausted;
use crate::wire::text;
use crate::wire::time::UnixSeconds;

/// Statements on one page: by default, and at most.
const PAGE: usize = 50;
const PAGE_MAX: usize = 200;
/// Values of `any` in one search; each is looked up in every field.
const WORDS_MAX: usize = 16;

const ISSUER: Parameter = query_parameter("issuer", "Claim `iss` of the statement");
const SUBJECT: Parameter = query_parameter("subject", "Claim `sub` of the statement");
const OPERATOR: Parameter = query_parameter("operator", "The tenant responsible for the action");
const DEVELOPER: Parameter = query_parameter("developer", "The agent that acted");
const ACTION_ID: Parameter = query_parameter("action_id", "The name of the action");
const DECISION_ID: Parameter =
    query_parameter("decision_id", "Shared by the statements of one decision");
const RECORD_ID: Parameter = query_parameter("record_id", "The record's content address");
const PARENT_ID: Parameter = query_parameter("parent_id", "The record it refers to");
const VERDICT: Parameter = query_parameter("verdict", "The verdict of the record");
const EFFECT_TYPE: Parameter = query_parameter("effect_type", "The kind of effect");
const PROFILE: Parameter = query_parameter("profile", "The profile of the payload");
const ANY: Parameter = query_parameter("any", "A value of any of these fields; may be repeated");
const SINCE: Parameter = query_parameter("since", "Registered at or after this RFC 3339 time");
const UNTIL: Parameter = query_parameter("until", "Registered at or before this RFC 3339 time");
const LIMIT: Parameter = query_parameter("limit", "How many, 1 to 200; 50 when absent");
const CURSOR: Parameter = query_parameter("cursor", "The cursor of the previous page");
const STORY_ID: Parameter =
    path_parameter("id", "A record id, a statement id, an action id or a session");

const CAUSAL_ID: Parameter =
    path_parameter("id", "The identity of a causal record, 32 uppercase hex digits");
const OTHER_ID: Parameter = Parameter { name: "other", ..CAUSAL_ID };
const SESSION: Parameter = query_parameter("session", "The session whose events it holds");
const EXTERNAL_REF: Parameter = query_parameter("external_ref", "What it refers to outside itself");

pub(super) const ROUTES: &[Route] = &[
    Route {
        path: "/api/v1/statements",
        id: "searchStatements",
        summary: "Statements that match every parameter, newest first",
        parameters: &[
            ISSUER,
            SUBJECT,
            OPERATOR,
            DEVELOPER,
            ACTION_ID,
            DECISION_ID,
            RECORD_ID,
            PARENT_ID,
            VERDICT,
            EFFECT_TYPE,
            PROFILE,
            SESSION,
            EXTERNAL_REF,
            ANY,
            SINCE,
            UNTIL,
            LIMIT,
            CURSOR,
        ],
        answers: &[ok(JSON, "A page; not a proof of absence")],
        problems: &[400, 429, 503],
        handler: || get(search),
        ..SEARCH
    },
    Route {
        path: "/api/v1/statements/{id}",
        id: "showStatement",
        summary: "What one statement says, and the findings about it",
        parameters: &[ENTRY_ID],
        answers: &[ok(JSON, "Index, facts, findings and receipt link")],
        handler: || get(show),
        ..SEARCH
    },
    Route {
        path: "/api/v1/names/{name}",
        id: "names",
        summary: "The statements that a name can mean, in log order",
        parameters: &[path_parameter(
            "name",
            "A statement id or its first 8 digits, `#6`, `6`, a capsule, action, decision, session or subject",
        )],
        answers: &[ok(JSON, "None, one, or several to choose from")],
        problems: &[400, 429, 503],
        handler: || get(names),
        ..SEARCH
    },
    Route {
        path: "/api/v1/stories/{id}",
        id: "story",
        summary: "Everything connected with a record, an action or a session, across profiles",
        parameters: &[STORY_ID],
        answers: &[ok(JSON, "The story, open or closed")],
        handler: || get(story),
        ..SEARCH
    },
    Route {
        path: "/api/v1/lineages/{id}",
        id: "lineage",
        summary: "The ancestors of a causal record, nearest first, and each effect compared with its causes, as far as the limits go",
        parameters: &[CAUSAL_ID],
        answers: &[ok(
            JSON,
            "Names, comparisons by overlap, what is not logged, the limit that was hit, and where",
        )],
        handler: || get(lineage),
        ..SEARCH
    },
    Route {
        path: "/api/v1/lineages/{id}/to/{other}",
        id: "order",
        summary: "How two causal records are ordered: before, after or concurrent; and compared by overlap",
        parameters: &[CAUSAL_ID, OTHER_ID],
        answers: &[ok(JSON, "The order, or why it is not known")],
        handler: || get(order),
        ..SEARCH
    },
    Route {
        path: "/api/v1/lineages/{id}/prov",
        id: "prov",
        summary: "A causal record and its ancestors as PROV-JSON, a page of them",
        parameters: &[CAUSAL_ID, CURSOR],
        answers: &[ok(JSON, "The document; capstan:cut and capstan:cursor if there is more")],
        handler: || get(prov),
        ..SEARCH
    },
    Route {
        path: "/api/v1/open-items",
        id: "openItems",
        summary: "Records that are still open, newest first",
        parameters: &[ISSUER, OPERATOR, DEVELOPER, ACTION_ID, SINCE, UNTIL, LIMIT, CURSOR],
        answers: &[ok(JSON, "A page; not a proof of absence")],
        problems: &[400, 429, 503],
        handler: || get(open_items),
        ..SEARCH
    },
    Route {
        path: "/api/v1/bundles/{id}",
        id: "bundle",
        summary: "A statement with policy, trust, chain and checkpoint, to be verified offline",
        parameters: &[ENTRY_ID],
        answers: &[ok(CBOR, "The bundle; header capstan-cut if its chain is not whole")],
        handler: || get(bundle),
        ..SEARCH
    },
];

const SEARCH: Route = Route { problems: &[400, 404, 429, 503], cost: Cost::Search, ..GET };

/// The pairs of a query string.
type Pairs = Vec<(String, String)>;

/// `GET /api/v1/statements`
async fn search(
    State(app): State<App>,
    Extension(client): Extension<Client>,
    Query(pairs): Query<Pairs>,
) -> Result<Response, Problem> {
    let query = search_query(&pairs, &Field::SEARCHED)?;
    read(app, client, move |reader| Ok(json(&reader.search(&query)?))).await
}

/// `GET /api/v1/statements/{id}`
async fn show(
    State(app): State<App>,
    Extension(client): Extension<Client>,
    Path(name): Path<String>,
    Query(pairs): Query<Pairs>,
) -> Result<Response, Problem> {
    no_parameters(&pairs)?;
    let entry = locate(&app, &name)?.ok_or_else(|| unknown(&name))?;
    read(app, client, move |reader| Ok(json(&reader.show(entry.index)?))).await
}

/// `GET /api/v1/names/{name}`
async fn names(
    State(app): State<App>,
    Extension(client): Extension<Client>,
    Path(name): Path<String>,
    Query(pairs): Query<Pairs>,
) -> Result<Response, Problem> {
    no_parameters(&pairs)?;
    read(app, client, move |reader| Ok(json(&reader.names(&name)?))).await
}

/// `GET /api/v1/stories/{id}`
async fn story(
    State(app): State<App>,
    Extension(client): Extension<Client>,
    Path(name): Path<String>,
    Query(pairs): Query<Pairs>,
) -> Result<Response, Problem> {
    no_parameters(&pairs)?;
    let asked = name.clone();
    let answer =
        read(app, client, move |reader| Ok(reader.story(&asked)?.as_ref().map(json))).await?;
    answer.ok_or_else(|| unknown(&name))
}

/// `GET /api/v1/lineages/{id}`
async fn lineage(
    State(app): State<App>,
    Extension(client): Extension<Client>,
    Path(id): Path<String>,
    Query(pairs): Query<Pairs>,
) -> Result<Response, Problem> {
    no_parameters(&pairs)?;
    let asked = id.clone();
    let answer =
        read(app, client, move |reader| Ok(reader.lineage(&asked)?.as_ref().map(json))).await?;
    answer.ok_or_else(|| unknown(&id))
}

/// `GET /api/v1/lineages/{id}/to/{other}`
async fn order(
    State(app): State<App>,
    Extension(client): Extension<Client>,
    Path((id, other)): Path<(String, String)>,
    Query(pairs): Query<Pairs>,
) -> Result<Response, Problem> {
    no_parameters(&pairs)?;
    let names = format!("{id} or {other}");
    let answer =
        read(app, client, move |reader| Ok(reader.order(&id, &other)?.as_ref().map(json))).await?;
    answer.ok_or_else(|| unknown(&names))
}

/// `GET /api/v1/lineages/{id}/prov`
async fn prov(
    State(app): State<App>,
    Extension(client): Extension<Client>,
    Path(id): Path<String>,
    Query(pairs): Query<Pairs>,
) -> Result<Response, Problem> {
    let from = cursor(&pairs)?;
    let asked = id.clone();
    let answer =
        read(app, client, move |reader| Ok(reader.prov(&asked, from)?.as_ref().map(json))).await?;
    answer.ok_or_else(|| unknown(&id))
}

/// `GET /api/v1/open-items`
async fn open_items(
    State(app): State<App>,
    Extension(client): Extension<Client>,
    Query(pairs): Query<Pairs>,
) -> Result<Response, Problem> {
    let fields = [Field::Operator, Field::Developer, Field::Issuer, Field::ActionId];
    let query = search_query(&pairs, &fields)?;
    read(app, client, move |reader| Ok(json(&reader.open_items(&query)?))).await
}

/// `GET /api/v1/bundles/{id}`
async fn bundle(
    State(app): State<App>,
    Extension(client): Extension<Client>,
    Path(name): Path<String>,
) -> Result<Response, Problem> {
    let entry = locate(&app, &name)?.ok_or_else(|| unknown(&name))?;
    let made = move |reader: &mut Reader<'_>| {
        let bytes = reader.bundle(&entry)?;
        let limit = reader.exhausted().map_or("chain", BudgetExhausted::code);
        Ok((bytes, reader.is_cut().then_some(limit)))
    };
    let (bytes, cut) = read(app, client, made).await?;
    let mut response = ([(CONTENT_TYPE, "application/cbor")], bytes).into_response();
    if let Some(cut) = cut {
        response.headers_mut().insert("capstan-cut", HeaderValue::from_static(cut));
    }
    Ok(response)
}

/// Runs a read in a read slot.
async fn read<T: Send + 'static>(
    app: App,
    Client(client): Client,
    read: impl FnOnce(&mut Reader<'_>) -> Result<T, Fault> + Send + 'static,
) -> Result<T, Problem> {
    app.read_slots.run(app.service, client, read).await
}

fn unknown(name: &str) -> Problem {
    let detail = format!("nothing here is called {name}");
    Problem::new(StatusCode::NOT_FOUND, "story-unknown", "Not Found", detail)
}

fn no_parameters(pairs: &Pairs) -> Result<(), Problem> {
    search_query(pairs, &[]).map(drop)
}

/// The cursor of a PROV page, and no other parameter.
fn cursor(pairs: &Pairs) -> Result<usize, Problem> {
    match pairs.as_slice() {
        [(name, value)] if name == "cursor" => value.parse().map_err(|_| {
            let detail = format!("cursor is {value:?}; it wants the cursor of a page");
            Problem::malformed("query-value", detail)
        }),
        pairs => no_parameters(&pairs.to_vec()).map(|()| 0),
    }
}

/// Reads the pairs. An unknown name is an error, because a misspelt filter
/// would match everything.
fn search_query(pairs: &Pairs, fields: &[Field]) -> Result<store::Query, Problem> {
    let mut query = store::Query { limit: PAGE, ..store::Query::default() };
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
                let limit = value.parse().ok().filter(|n| (1..=PAGE_MAX).contains(n));
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
        Some(near) if !fields.is_empty() => {
            format!("there is no parameter {name}; did you mean {near}?")
        }
        _ => format!("there is no parameter {name} here"),
    };
    Problem::malformed("query-parameter", detail)
}
