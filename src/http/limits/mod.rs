//! Limits on requests: token, rates, requests per client, and the capacity of
//! the whole log.

pub(super) mod body;
pub(super) mod capacity;
pub(super) mod client;
pub(super) mod read_slots;
mod runtime_lag;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{AUTHORIZATION, EXPECT};
use axum::http::{HeaderMap, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use hyper::body::Body as _;

use super::App;
use super::response::problem::Problem;
use super::routes::{self, Cost};
use capacity::Reservation;
use client::{ClientNetwork, ClientSlot};

/// Memory of a request besides the bytes of its head: a task, its buffers.
const REQUEST_BYTES: usize = 4096;
/// How many other reads a search counts as.
const SEARCH_COST: u32 = 10;

/// Who sent a request; none without a connection.
#[derive(Clone, Copy)]
pub(super) struct Client(pub(super) Option<ClientNetwork>);

/// What a request occupies until the last byte of its response has left. It
/// belongs to the response body of one request.
pub(super) struct RequestPermit {
    reservation: Reservation,
    _slot: Option<ClientSlot>,
}

/// Checks token, rates and capacity, all from the head of the request. Health
/// checks pass in any case.
pub(super) async fn admit(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let client = Client(ClientNetwork::of(&request, app.options.trust_forwarded_for));
    request.extensions_mut().insert(client);
    let cost = cost(&request);
    if cost != Cost::Registration {
        // No handler of a read looks at the body.
        request = request.map(|_| Body::empty());
    }
    if cost == Cost::Health {
        return next.run(request).await;
    }
    let mut permit = match permit(&app, &request, client, cost) {
        Ok(permit) => permit,
        Err(problem) => {
            // A client that waits for 100 Continue does not send its body now.
            if cost == Cost::Registration && !request.headers().contains_key(EXPECT) {
                let version = request.version();
                body::discard(request.into_body(), version);
            }
            return problem.into_response();
        }
    };
    let mut response = next.run(request).await;
    let bytes = usize::try_from(response.body().size_hint().lower()).unwrap_or(usize::MAX);
    if let Err(busy) = permit.reservation.reserve_response(bytes) {
        return Problem::from(busy).into_response();
    }
    response.extensions_mut().insert(Arc::new(permit));
    response
}

fn cost(request: &Request) -> Cost {
    if request.method() == Method::POST {
        return Cost::Registration;
    }
    let path = request.extensions().get::<MatchedPath>();
    let route = path.and_then(|path| routes::with_path(path.as_str()));
    match route.map(|route| route.cost) {
        None | Some(Cost::Registration) => Cost::Constant,
        Some(cost) => cost,
    }
}

fn permit(
    app: &App,
    request: &Request,
    Client(client): Client,
    cost: Cost,
) -> Result<RequestPermit, Problem> {
    let slot = match client.map(|client| app.client_slots.try_acquire(client)) {
        Some(None) => {
            app.service.metrics().rate_limited();
            return Err(Problem::too_many_at_once(app.options.requests_per_address));
        }
        slot => slot.flatten(),
    };
    if cost == Cost::Registration {
        check_registration(app, request, client)?;
    } else {
        check_read(app, cost, client)?;
    }
    let mut reservation = app.capacity.reservation();
    reservation.reserve(head_bytes(request))?;
    Ok(RequestPermit { reservation, _slot: slot })
}

fn check_registration(
    app: &App,
    request: &Request,
    client: Option<ClientNetwork>,
) -> Result<(), Problem> {
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
    Ok(app.capacity.check_registration()?)
}

fn check_read(app: &App, cost: Cost, client: Option<ClientNetwork>) -> Result<(), Problem> {
    let tokens = if cost == Cost::Search { SEARCH_COST } else { 1 };
    if let (Some(rate), Some(client)) = (app.options.read_rate, client)
        && let Err(seconds) = app.read_rate.take(&client, tokens, rate.pace())
    {
        app.service.metrics().rate_limited();
        return Err(Problem::too_often("reads", rate.per_second, seconds));
    }
    Ok(())
}

/// Charges a client for the statements of a batch beyond the first, which the
/// request itself was charged for. They become a debt: the next request waits
/// longer.
pub(super) fn charge_rest(app: &App, client: Option<ClientNetwork>, statements: usize) {
    let rest = u32::try_from(statements.saturating_sub(1)).unwrap_or(u32::MAX);
    if let (Some(rate), Some(client)) = (app.options.rate, client) {
        app.write_rate.owe(&client, rest, rate.pace());
    }
}

/// Memory of a request before its body arrives.
fn head_bytes(request: &Request) -> usize {
    let headers = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len());
    let path = request.uri().path_and_query().map_or(0, |path| path.as_str().len());
    REQUEST_BYTES + path + headers.sum::<usize>()
}

/// The token of an Authorization header.
pub(super) fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    headers.get(AUTHORIZATION)?.as_bytes().strip_prefix(b"Bearer ")
}
