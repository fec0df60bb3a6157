//! The rows of the route table that search.

use axum::routing::get;

use super::routes::{CBOR, Demand, ENTRY, JSON, NOTHING, Parameter, Route};
use super::statements;

const fn query(name: &'static str, about: &'static str) -> Parameter {
    Parameter { name, place: "query", required: false, pattern: None, about }
}

const ISSUER: Parameter = query("issuer", "Claim `iss` of the statement");
const SUBJECT: Parameter = query("subject", "Claim `sub` of the statement");
const OPERATOR: Parameter = query("operator", "The tenant who answers for the action");
const DEVELOPER: Parameter = query("developer", "The agent that acted");
const ACTION_ID: Parameter = query("action_id", "The name of the action");
const DECISION_ID: Parameter =
    query("decision_id", "What ties the statements of one decision together");
const RECORD_ID: Parameter = query("record_id", "The record's content address");
const PARENT_ID: Parameter = query("parent_id", "The record it refers to");
const VERDICT: Parameter = query("verdict", "Why it ended as it did");
const EFFECT_TYPE: Parameter = query("effect_type", "The kind of effect");
const PROFILE: Parameter = query("profile", "The profile of the payload");
const ANY: Parameter = query("any", "A value of any of these fields; may be repeated");
const SINCE: Parameter = query("since", "Registered at or after this RFC 3339 time");
const UNTIL: Parameter = query("until", "Registered at or before this RFC 3339 time");
const LIMIT: Parameter = query("limit", "How many, 1 to 200; 50 when absent");
const CURSOR: Parameter = query("cursor", "Where the page before ended, as its answer says");
const NAME: Parameter = Parameter {
    name: "id",
    place: "path",
    required: true,
    pattern: None,
    about: "A record id, a statement id, an action id or a session",
};

const CAUSAL: Parameter = Parameter {
    name: "id",
    place: "path",
    required: true,
    pattern: None,
    about: "The identity of a causal record, 32 uppercase hex digits",
};
const OTHER: Parameter = Parameter { name: "other", ..CAUSAL };
const SESSION: Parameter = query("session", "The session whose events it holds");
const EXTERNAL_REF: Parameter = query("external_ref", "What it refers to outside itself");

pub(super) const STATEMENTS: Route = Route {
    method: "get",
    path: "/api/v1/statements",
    id: "searchStatements",
    summary: "Statements that have everything asked for, newest first",
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
    takes: NOTHING,
    answers: &[(200, JSON, "A page; not a proof of absence")],
    problems: &[400, 429, 503],
    demand: Demand::Walk,
    handler: || get(statements::search),
};

pub(super) const STATEMENT: Route = Route {
    method: "get",
    path: "/api/v1/statements/{id}",
    id: "showStatement",
    summary: "What one statement says, and what we noticed about it",
    parameters: &[ENTRY],
    takes: NOTHING,
    answers: &[(200, JSON, "Place, facts, findings and receipt link")],
    problems: &[400, 404, 429, 503],
    demand: Demand::Walk,
    handler: || get(statements::one),
};

const ANY_NAME: Parameter = Parameter {
    name: "name",
    place: "path",
    required: true,
    pattern: None,
    about: "A statement id or its first 8 digits, `#6`, `6`, a capsule, action, decision, session or subject",
};

pub(super) const NAMES: Route = Route {
    method: "get",
    path: "/api/v1/names/{name}",
    id: "names",
    summary: "The statements that a name can mean, in the order of the log",
    parameters: &[ANY_NAME],
    takes: NOTHING,
    answers: &[(200, JSON, "None, one, or those to choose from")],
    problems: &[400, 429, 503],
    demand: Demand::Walk,
    handler: || get(statements::names),
};

pub(super) const STORY: Route = Route {
    method: "get",
    path: "/api/v1/stories/{id}",
    id: "story",
    summary: "Everything connected with a record, an action or a session, across profiles",
    parameters: &[NAME],
    takes: NOTHING,
    answers: &[(200, JSON, "The story, open or closed")],
    problems: &[400, 404, 429, 503],
    demand: Demand::Walk,
    handler: || get(statements::story),
};

pub(super) const LINEAGE: Route = Route {
    method: "get",
    path: "/api/v1/lineages/{id}",
    id: "lineage",
    summary: "The ancestors of a causal record, nearest first, and each effect compared with its causes, as far as the limits go",
    parameters: &[CAUSAL],
    takes: NOTHING,
    answers: &[(
        200,
        JSON,
        "Names, comparisons by overlap, what is not logged, the limit that was hit, and where",
    )],
    problems: &[400, 404, 429, 503],
    demand: Demand::Walk,
    handler: || get(statements::lineage),
};

pub(super) const ORDER: Route = Route {
    method: "get",
    path: "/api/v1/lineages/{id}/to/{other}",
    id: "order",
    summary: "How two causal records are ordered: before, after or concurrent; and compared by overlap",
    parameters: &[CAUSAL, OTHER],
    takes: NOTHING,
    answers: &[(200, JSON, "The order, or what stood in the way")],
    problems: &[400, 404, 429, 503],
    demand: Demand::Walk,
    handler: || get(statements::order),
};

pub(super) const PROV: Route = Route {
    method: "get",
    path: "/api/v1/lineages/{id}/prov",
    id: "prov",
    summary: "A causal record and its ancestors as PROV-JSON, a page of them",
    parameters: &[CAUSAL, CURSOR],
    takes: NOTHING,
    answers: &[(200, JSON, "The document; capstan:cut and capstan:cursor if there is more")],
    problems: &[400, 404, 429, 503],
    demand: Demand::Walk,
    handler: || get(statements::prov),
};

pub(super) const OPEN_ITEMS: Route = Route {
    method: "get",
    path: "/api/v1/open-items",
    id: "openItems",
    summary: "Records that wait for somebody, newest first",
    parameters: &[ISSUER, OPERATOR, DEVELOPER, ACTION_ID, SINCE, UNTIL, LIMIT, CURSOR],
    takes: NOTHING,
    answers: &[(200, JSON, "A page; not a proof of absence")],
    problems: &[400, 429, 503],
    demand: Demand::Walk,
    handler: || get(statements::open_items),
};

pub(super) const BUNDLE: Route = Route {
    method: "get",
    path: "/api/v1/bundles/{id}",
    id: "bundle",
    summary: "A statement with policy, trust, chain and checkpoint, to be verified offline",
    parameters: &[ENTRY],
    takes: NOTHING,
    answers: &[(200, CBOR, "The bundle; header capstan-cut if its chain is not whole")],
    problems: &[400, 404, 429, 503],
    demand: Demand::Walk,
    handler: || get(statements::bundle),
};
