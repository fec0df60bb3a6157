//! What is asked of every request before and after its handler.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{AUTHORIZATION, EXPECT};
use axum::http::{HeaderMap, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use hyper::body::Body as _;

use super::admission::Place;
use super::negotiate::prefers_json;
use super::network::{Network, Seat};
use super::problem::{self, Problem, RequestId};
use super::routes::Demand;
use super::{App, body, routes};

/// What a request costs beside the bytes of its head: a task, its buffers.
const REQUEST_BYTES: usize = 4096;
/// What a read that looks through the log counts as, among reads.
const WALK_COST: u32 = 10;

/// Whom a request comes from; none without a connection.
#[derive(Clone, Copy)]
pub(super) struct Client(pub(super) Option<Network>);

/// What a request holds until the last byte of its answer has left.
pub(super) struct Holding {
    place: Place,
    _seat: Option<Seat>,
}

/// Token, rates and room. Who may not is told so from the head of the request.
/// Only questions about health pass in any case.
pub(super) async fn admit(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let client = Client(Network::of(&request, app.options.trust_forwarded_for));
    request.extensions_mut().insert(client);
    let demand = demand(&request);
    if demand != Demand::Write {
        // Nobody reads it, so nobody keeps it.
        request = request.map(|_| Body::empty());
    }
    if demand == Demand::Always {
        return next.run(request).await;
    }
    let mut holding = match admitted(&app, &request, client, demand) {
        Ok(holding) => holding,
        Err(problem) => {
            // Who asks before sending the body does not send it now.
            if demand == Demand::Write && !request.headers().contains_key(EXPECT) {
                let version = request.version();
                body::discard(request.into_body(), version);
            }
            return problem.into_response();
        }
    };
    let mut response = next.run(request).await;
    let answer = usize::try_from(response.body().size_hint().lower()).unwrap_or(usize::MAX);
    if let Err(busy) = holding.place.hold_answer(answer) {
        return Problem::from(busy).into_response();
    }
    response.extensions_mut().insert(Arc::new(holding));
    response
}

fn demand(request: &Request) -> Demand {
    if request.method() == Method::POST {
        return Demand::Write;
    }
    let path = request.extensions().get::<MatchedPath>();
    let row = path.and_then(|path| routes::row(path.as_str()));
    match row.map(|row| row.demand) {
        None | Some(Demand::Write) => Demand::Point,
        Some(demand) => demand,
    }
}

fn admitted(
    app: &App,
    request: &Request,
    Client(client): Client,
    demand: Demand,
) -> Result<Holding, Problem> {
    let seat = match client.map(|network| app.requests.user(network).sit()) {
        Some(None) => {
            app.service.metrics().rate_limited();
            return Err(Problem::too_many_at_once(app.options.requests_per_address));
        }
        seat => seat.flatten(),
    };
    if demand == Demand::Write {
        may_write(app, request, client)?;
    } else {
        may_read(app, demand, client)?;
    }
    let mut place = app.admission.place();
    place.hold(head_bytes(request))?;
    Ok(Holding { place, _seat: seat })
}

fn may_write(app: &App, request: &Request, client: Option<Network>) -> Result<(), Problem> {
    if let Some(token) = &app.options.token
        && !bearer(request.headers()).is_some_and(|given| token.is(given))
    {
        return Err(Problem::unauthorized());
    }
    if let (Some(rate), Some(client)) = (app.options.rate, client)
        && let Err(seconds) = app.write_rate.take(&client, 1, rate.pace())
    {
        app.service.metrics().rate_limited();
        return Err(Problem::too_often("requests", rate.per_second, seconds));
    }
    Ok(app.admission.room()?)
}

fn may_read(app: &App, demand: Demand, client: Option<Network>) -> Result<(), Problem> {
    let cost = if demand == Demand::Walk { WALK_COST } else { 1 };
    if let (Some(rate), Some(client)) = (app.options.read_rate, client)
        && let Err(seconds) = app.read_rate.take(&client, cost, rate.pace())
    {
        app.service.metrics().rate_limited();
        return Err(Problem::too_often("reads", rate.per_second, seconds));
    }
    Ok(())
}

/// A batch costs its address as many registrations as it holds statements. One
/// was paid for at its head; the others are owed, and the next one waits.
pub(super) fn charge_rest(app: &App, client: Option<Network>, statements: usize) {
    let rest = u32::try_from(statements.saturating_sub(1)).unwrap_or(u32::MAX);
    if let (Some(rate), Some(client)) = (app.options.rate, client) {
        app.write_rate.owe(&client, rest, rate.pace());
    }
}

/// What is held for a request before its body comes.
fn head_bytes(request: &Request) -> usize {
    let headers = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len());
    let path = request.uri().path_and_query().map_or(0, |path| path.as_str().len());
    REQUEST_BYTES + path + headers.sum::<usize>()
}

/// The token of an Authorization header.
pub(super) fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    headers.get(AUTHORIZATION)?.as_bytes().strip_prefix(b"Bearer ")
}

/// Names the request, counts the answer, and spells it for the client. One
/// layer, because each costs every request a copy of those inside it.
pub(super) async fn observe(State(app): State<App>, mut request: Request, next: Next) -> Response {
    static COUNTER: AtomicU64 = AtomicU64::new(1);
    let id = format!("{:x}-{:x}", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed));
    let json = prefers_json(request.headers());
    let id = RequestId(id);
    let method = request.method().clone();
    let path = request.extensions().get::<MatchedPath>().map(|m| m.as_str().to_owned());
    request.extensions_mut().insert(id.clone());
    let response = next.run(request).await;
    let route = path.and_then(|p| routes::row(&p)).map_or("other", |row| row.path);
    app.service.metrics().answered(route, method.as_str(), response.status().as_u16());
    let mut response = problem::render(response, json, &id);
    if let Ok(value) = HeaderValue::from_str(&id.0) {
        response.headers_mut().insert("x-request-id", value);
    }
    response
}
