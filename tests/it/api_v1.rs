//! Search, stories and open items, asked over HTTP without a socket.

use std::path::PathBuf;
use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::http::Request;
use capstan::config::Config;
use capstan::envelope::{Draft, RulesVersion, SignedStatement, StatementId, seal_with_claims};
use capstan::http::{HttpOptions, app};
use capstan::key::{Algorithm, PublicKey, SigningKey};
use capstan::log::LeafIndex;
use capstan::metrics::Metrics;
use capstan::policy::{Facts, Memory};
use capstan::profile::capsule::{
    Action, ActionKind, Attested, CONTENT_TYPE, Disposer, Disposition, Effect, EffectState,
    LedgerMode, OUTCOME_CONTENT_TYPE, OnExpiry,
};
use capstan::profile::read_payload;
use capstan::service::{self, Options, Service};
use capstan::store::{Backend, Store};
use capstan::trust::{TrustAnchors, TrustedLog};
use capstan::verify::{Bundle, Demand, Evidence, Outcome, Report, verify};
use capstan::wire::budget::{Allowance, Budget};
use capstan::wire::cbor::Value;
use capstan::wire::jcs::Suite;
use capstan::wire::json::Json as Text;
use capstan::wire::time::UnixSeconds;
use serde_json::Value as Json;
use tower::ServiceExt as _;

const AGENT: &str = "https://agent.example";
const TIME: UnixSeconds = UnixSeconds::new(1_780_000_000);

pub(crate) struct Log {
    _dir: tempfile::TempDir,
    data: PathBuf,
    service: Arc<Service>,
    key: SigningKey,
}

impl Log {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        let policy = include_str!("../../policy/open.toml");
        service::init(&data, "search.invalid", policy, Algorithm::Es256).unwrap();
        let key = SigningKey::generate(Algorithm::EdDsa).unwrap();
        Self { service: open(&data), _dir: dir, data, key }
    }

    /// Closes the log; the directory stays as long as the answer.
    pub(crate) fn close(self) -> (tempfile::TempDir, PathBuf) {
        self.service.shut_down().unwrap();
        (self._dir, self.data)
    }

    /// Registers a capsule; its id.
    pub(crate) async fn act(&self, action: &Action) -> String {
        let made = action.produce().unwrap();
        self.register(CONTENT_TYPE, &made.subject, &made.claims, &made.payload).await;
        made.capsule_id
    }

    async fn register(
        &self,
        content_type: &str,
        subject: &str,
        claims: &[(&str, String)],
        payload: &[u8],
    ) {
        let draft = Draft { content_type, issuer: AGENT, subject, issued_at: None, payload };
        let bytes = seal_with_claims(&draft, claims, &self.key).unwrap();
        self.service.register(bytes).await.unwrap();
    }

    async fn get(&self, path: &str) -> (u16, Json) {
        let options = HttpOptions::from_config(&Config::default()).unwrap();
        let request = Request::get(path).header("accept", "application/json");
        let request = request.body(Body::empty()).unwrap();
        let response = app(self.service.clone(), options).oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let body = to_bytes(response.into_body(), 1 << 24).await.unwrap();
        (status, serde_json::from_slice(&body).unwrap())
    }

    /// What a bundle shows to somebody who trusts the log's keys.
    fn judge(&self, bundle: &[u8], keys: Vec<PublicKey>) -> Report {
        let checkpoint = Some(self.service.checkpoint_key().unwrap().to_string());
        let log = TrustedLog { name: "*".to_owned(), keys, checkpoint };
        let trust = TrustAnchors::default().with_log(log);
        let trust = trust.with_issuer(AGENT, std::slice::from_ref(self.key.public()));
        let demand = Demand { allow_development: true, ..Demand::default() };
        verify(bundle, &Evidence { demand: &demand, ..Evidence::new(&trust, TIME) })
    }

    /// Indices found, newest first.
    async fn found(&self, query: &str) -> Vec<u64> {
        let (status, page) = self.get(&format!("/api/v1/statements?{query}")).await;
        assert_eq!(status, 200, "{query}: {page}");
        indices(&page["statements"])
    }
}

fn open(data: &std::path::Path) -> Arc<Service> {
    let options = Options::from_config(&Config::default());
    service::open(data, options, Metrics::new("test")).unwrap()
}

/// What any read of these tests may cost.
fn plenty() -> Budget {
    Budget::new(Allowance { nodes: 1000, edges: 10_000, bytes: 1_000_000 })
}

fn indices(list: &Json) -> Vec<u64> {
    list.as_array().unwrap().iter().map(|entry| entry["index"].as_u64().unwrap()).collect()
}

pub(crate) fn action(id: &str, verdict: &str, state: Option<EffectState>) -> Action {
    let by = match verdict {
        "hitl_dispatched" => Disposer::AwaitedHuman,
        "resolved" => Disposer::Human,
        _ => Disposer::Policy { authority: None },
    };
    let decision = if verdict == "executed" { "accept" } else { "needs_input" };
    let decision = if verdict == "resolved" { "reject" } else { decision };
    let decision = if verdict == "deferred" { "deferred" } else { decision };
    let expiry = (verdict == "deferred").then_some((60, OnExpiry::Expired));
    Action {
        action_id: id.to_owned(),
        kind: ActionKind::Decide,
        operator: "acme".to_owned(),
        developer: AGENT.to_owned(),
        timestamp: TIME,
        disposition: Some(Disposition {
            decision: decision.to_owned(),
            by,
            verdict: Some(verdict.to_owned()),
            reason: None,
            expiry,
        }),
        effect: state.map(|state| Effect {
            kind: Some("send_payment".to_owned()),
            external_ref: None,
            irreversibility: Some("two_way".to_owned()),
            state,
        }),
        constraints: Vec::new(),
        model_attestation: None,
        decision_id: None,
        supersedes: None,
    }
}

#[tokio::test]
async fn story_follows_an_action_from_plan_to_outcome() {
    let log = Log::new();
    let response = Suite::JcsN.digest(&Text::read(b"{\"ok\":true}").unwrap()).unwrap();
    let by = Attested::GateExecuted;
    let planned = log.act(&action("pay-1", "executed", Some(EffectState::Planned))).await;
    let state = EffectState::Dispatched { request: None, by };
    let dispatched = action("pay-1", "executed", Some(state));
    let dispatched = log.act(&Action { supersedes: Some(planned.clone()), ..dispatched }).await;
    let state = EffectState::Confirmed { request: None, response, by };
    let confirmed = action("pay-1", "executed", Some(state));
    log.act(&Action { supersedes: Some(dispatched), ..confirmed }).await;
    let claims = [
        ("capsule_statement_type", "outcome".to_owned()),
        ("capsule_decision_id", "pay-1".to_owned()),
    ];
    let subject = "urn:agent-action-capsule:acme:pay-1";
    log.register(OUTCOME_CONTENT_TYPE, subject, &claims, b"{\"action_id\":\"pay-1\"}").await;
    for name in ["pay-1", &planned] {
        let (status, story) = log.get(&format!("/api/v1/stories/{name}")).await;
        assert_eq!((status, &story["state"]), (200, &"closed".into()), "{story}");
        assert_eq!(indices(&story["chain"]), [2, 3, 4]);
        assert_eq!(indices(&story["outcomes"]), [5]);
        assert_eq!(story["outcomes"][0]["correlation"], "about");
        assert_eq!(story["findings"], Json::Array(Vec::new()), "{story}");
        assert!(story["note"].as_str().unwrap().contains("not proof of absence"));
    }
    let (_, one) = log.get("/api/v1/statements/1.2").await;
    assert_eq!(one["record"]["effect_status"], "planned");
    let id = one["id"].as_str().unwrap();
    assert_eq!(one["receipt"], format!("/entries/{id}"));
}

#[tokio::test]
async fn item_is_open_until_its_own_agent_closes_it() {
    let log = Log::new();
    let asked = log.act(&action("pay-2", "hitl_dispatched", None)).await;
    log.act(&action("pay-3", "deferred", None)).await;
    let (_, page) = log.get("/api/v1/open-items").await;
    assert_eq!(indices(&page["statements"]), [3, 2], "{page}");
    let expires = page["statements"][0]["expires_at_by_its_own_clock"].as_str().unwrap();
    assert_eq!(UnixSeconds::from_rfc3339(expires).unwrap().seconds(), TIME.seconds() + 60);
    let stranger = Action {
        operator: "evil".to_owned(),
        supersedes: Some(asked.clone()),
        ..action("x", "resolved", None)
    };
    log.act(&stranger).await;
    let (_, page) = log.get("/api/v1/open-items?operator=acme").await;
    assert_eq!(indices(&page["statements"]), [3, 2], "a stranger closes nothing");
    let resolved = action("pay-2", "resolved", None);
    log.act(&Action { supersedes: Some(asked.clone()), ..resolved }).await;
    let (_, page) = log.get("/api/v1/open-items").await;
    assert_eq!(indices(&page["statements"]), [3]);
    let by = Attested::GateExecuted;
    let sent = EffectState::Dispatched { request: None, by };
    log.act(&action("pay-4", "executed", Some(sent))).await;
    log.service.count_open_items(plenty()).unwrap();
    let text = log.service.metrics().encode();
    for line in ["capstan_open_items 1\n", "capstan_unconfirmed_effects 1\n"] {
        assert!(text.contains(line), "{line} in {text}");
    }
    let (_, story) = log.get(&format!("/api/v1/stories/{asked}")).await;
    assert_eq!(story["state"], "closed");
    assert_eq!(
        (&story["chain"][0]["state"], &story["chain"][0]["closed_by"]),
        (&"closed".into(), &5.into())
    );
    let codes: Vec<_> =
        story["findings"].as_array().unwrap().iter().map(|f| f["code"].clone()).collect();
    assert_eq!(codes, ["supersedes_not_authorised"]);
    assert_eq!(story["forks"][0]["children"], serde_json::json!([4, 5]));
}

#[tokio::test]
async fn search_terms_are_conjunctive_and_index_is_rebuilt() {
    let log = Log::new();
    for n in 0..5 {
        let verdict = if n % 2 == 0 { "blocked" } else { "executed" };
        let state = (n % 2 == 1).then_some(EffectState::Planned);
        log.act(&action(&format!("a-{n}"), verdict, state)).await;
    }
    let long = "x".repeat(300);
    log.register("text/plain", &long, &[], b"opaque").await;
    let questions = [
        ("operator=acme", vec![6, 5, 4, 3, 2]),
        ("operator=acme&verdict=blocked", vec![6, 4, 2]),
        ("verdict=executed&action_id=a-1", vec![3]),
        ("verdict=executed&action_id=a-2", vec![]),
        ("profile=control", vec![1, 0]),
        ("effect_type=send_payment&developer=https://agent.example", vec![5, 3]),
        ("any=acme&any=a-4", vec![6]),
        ("operator=acme&limit=2", vec![6, 5]),
        ("operator=acme&limit=2&cursor=5", vec![4, 3]),
        ("since=2999-01-01T00:00:00Z", vec![]),
        ("until=2000-01-01T00:00:00Z", vec![]),
        ("since=2000-01-01T00:00:00Z&until=2999-01-01T00:00:00Z&limit=1", vec![7]),
    ];
    for (query, expected) in &questions {
        assert_eq!(log.found(query).await, *expected, "{query}");
    }
    assert_eq!(log.found(&format!("subject={long}")).await, [7]);
    let Log { _dir, data, service, key } = log;
    service.shut_down().unwrap();
    drop(service);
    let (store, _) = Store::open_unchecked(Backend::open(&data).unwrap()).unwrap();
    store.drop_index().unwrap();
    drop(store);
    let log = Log { service: open(&data), _dir, data, key };
    for (query, expected) in &questions {
        assert_eq!(log.found(query).await, *expected, "{query}, after the index was lost");
    }
}

#[tokio::test]
async fn malformed_query_is_refused() {
    let log = Log::new();
    let wrong = [
        ("/api/v1/statements?verdikt=x", 400, "query-parameter"),
        ("/api/v1/statements?limit=0", 400, "query-value"),
        ("/api/v1/statements?limit=201", 400, "query-value"),
        ("/api/v1/statements?since=yesterday", 400, "query-value"),
        ("/api/v1/statements?cursor=x", 400, "query-value"),
        ("/api/v1/stories/x?limit=1", 400, "query-parameter"),
        ("/api/v1/open-items?any=x", 400, "query-parameter"),
        ("/api/v1/stories/unheard-of", 404, "story-unknown"),
        ("/api/v1/statements/1.99", 404, "entry-unknown"),
    ];
    for (path, status, code) in wrong {
        let (found, problem) = log.get(path).await;
        assert_eq!((found, &problem["code"]), (status, &code.into()), "{path}");
    }
}

#[tokio::test]
async fn bundle_verifies_offline() {
    let log = Log::new();
    let asked = log.act(&action("pay-2", "hitl_dispatched", None)).await;
    let resolved = action("pay-2", "resolved", None);
    log.act(&Action { supersedes: Some(asked), ..resolved }).await;
    log.service.publish().unwrap();
    let entry = log.service.entry_at(LeafIndex::new(3)).unwrap().unwrap();
    let bundle = log.service.reader(plenty()).bundle(&entry).unwrap();
    let keys = log.service.keys().to_vec();
    let report = log.judge(&bundle, keys.clone());
    assert_eq!((report.artefact, report.verdict()), ("bundle", Outcome::Yes), "{report:?}");
    let names: Vec<_> = report.checks.iter().map(|check| check.name).collect();
    for name in [
        "signed",
        "issuer",
        "logged",
        "policy",
        "trust",
        "chain",
        "admitted",
        "published",
        "one-log",
        "covered",
    ] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
    assert_eq!(log.judge(&bundle, Vec::new()).verdict(), Outcome::CannotTell);
    let ledger = |bytes: &[u8], keys: &[PublicKey]| {
        let report = log.judge(bytes, keys.to_vec());
        report.capsule.unwrap().class1.derived.unwrap().ledger
    };
    assert_eq!(ledger(&bundle, &keys), LedgerMode::Anchored);
    assert_eq!(ledger(&bundle, &[]), LedgerMode::Chained, "a receipt nobody vouches for");
    let alone = log.service.transparent_statement(&entry).unwrap();
    assert_eq!(ledger(&alone, &keys), LedgerMode::Chained, "its own receipt is not its chain's");
    nothing_signed_changes(&bundle, |bytes| log.judge(bytes, keys.clone()).verdict());
    let value = Value::read(&bundle).unwrap();
    let part = |label: i64| value.get(label).unwrap().bytes().unwrap().to_vec();
    let whole = Bundle {
        statement: part(1),
        policy: part(2),
        trust: part(3),
        chain: Vec::new(),
        checkpoint: value.get(5).unwrap().text().unwrap().to_owned(),
        collateral: part(6),
        time: TIME,
    };
    assert_eq!(ledger(&whole.encode(), &keys), LedgerMode::Chained, "the chain is not there");
    let swaps = [
        (Bundle { policy: part(3), ..whole.clone() }, "bundle-other-control"),
        (Bundle { chain: vec![part(1)], ..whole.clone() }, "bundle-order"),
        (Bundle { chain: vec![entry_without_receipt(&part(1))], ..whole }, "receipt-missing"),
    ];
    for (bundle, code) in swaps {
        assert_eq!(log.judge(&bundle.encode(), keys.clone()).code(), code);
    }
    let lacking = b"\xa1\x00\x70capstan-bundle-1";
    assert_eq!(log.judge(lacking, keys).code(), "bundle-incomplete");
}

/// Every byte changed once, and pieces put elsewhere: a yes means that
/// statements and checkpoint are as they were. What nobody signed (the time it
/// says) may differ.
fn nothing_signed_changes(bundle: &[u8], judge: impl Fn(&[u8]) -> Outcome) {
    let signed = |bytes: &[u8]| {
        let value = Value::read(bytes).unwrap();
        let chain = value.get(4).unwrap().array().unwrap().iter();
        let parts = [1, 2, 3].map(|label: i64| value.get(label).unwrap());
        let parts = parts.into_iter().chain(chain).map(|part| part.bytes().unwrap());
        let checkpoint = value.get(5).unwrap().text().unwrap().to_owned();
        (parts.map(entry_without_receipt).collect::<Vec<_>>(), checkpoint)
    };
    let original = signed(bundle);
    let mut survivors = 0;
    for at in 0..bundle.len() {
        let mut bent = bundle.to_vec();
        bent[at] ^= 1 << (at % 8);
        if judge(&bent) == Outcome::Yes {
            assert_eq!(signed(&bent), original, "byte {at}");
            survivors += 1;
        }
    }
    assert!(survivors < 20, "{survivors} of {} bytes do not matter", bundle.len());
    let mut seed = 1_u64;
    let mut roll = |sides: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(seed >> 33).unwrap() % sides
    };
    for nth in 0..1000 {
        let mut bent = bundle.to_vec();
        let length = 1 + roll(80);
        let (from, to) = (roll(bundle.len() - length), roll(bundle.len() - length));
        bent.copy_within(from..from + length, to);
        if judge(&bent) == Outcome::Yes {
            assert_eq!(signed(&bent), original, "splice {nth}");
        }
    }
}

fn entry_without_receipt(transparent: &[u8]) -> Vec<u8> {
    SignedStatement::parse_any_size(transparent.to_vec()).unwrap().canonical().into_owned()
}

/// The store's lookups and a walk from the first entry agree about every
/// statement, whatever came after it.
#[tokio::test]
async fn facts_agree_between_index_and_replay() {
    let log = Log::new();
    let asked = log.act(&action("a", "hitl_dispatched", None)).await;
    let closing = |parent: &str, id: &str| Action {
        supersedes: Some(parent.to_owned()),
        ..action(id, "resolved", None)
    };
    let stranger = Action { operator: "evil".to_owned(), ..closing(&asked, "b") };
    let unknown = "f".repeat(64);
    let acts = [
        stranger,
        closing(&asked, "c"),
        closing(&asked, "d"),
        closing(&unknown, "d"),
        closing(&asked, "e"),
    ];
    for act in &acts {
        log.act(act).await;
    }
    let Log { _dir, data, service, .. } = log;
    service.shut_down().unwrap();
    drop(service);
    let (store, head) = Store::open_unchecked(Backend::open(&data).unwrap()).unwrap();
    let mut memory = Memory::default();
    let mut told = Vec::new();
    for index in 0..head.size().get() {
        let stored = store.statement(LeafIndex::new(index)).unwrap().unwrap();
        let statement = SignedStatement::parse_any_size(stored.canonical.clone()).unwrap();
        let header = statement.header();
        let summary = read_payload(header, statement.payload().unwrap()).summary;
        let issuer = header.claims.issuer.as_deref().unwrap();
        let Ok(walked) = Facts::look_up(issuer, &summary, &memory, RulesVersion::CURRENT);
        let id = StatementId::of_canonical(&stored.canonical);
        let asked =
            service::look_up_facts(&store, issuer, &summary, &id, RulesVersion::CURRENT).unwrap();
        assert_eq!(asked, walked, "#{index}");
        memory.add(issuer, &summary);
        told.push(walked);
    }
    let parent = |same, superseded| Facts {
        parent_known: Some(true),
        parent_same_operator: Some(same),
        parent_superseded: Some(superseded),
        ..Facts::default()
    };
    let twin = Facts { record_id_known: true, record_id_other_chain: true, ..Facts::default() };
    let expected = [
        Facts::default(),
        parent(false, false),
        parent(true, false),
        parent(true, true),
        Facts { parent_known: Some(false), ..twin },
        parent(true, true),
    ];
    assert_eq!(told[2..], expected);
}

/// Parent and child sent at once: whichever comes first, both are logged and
/// the log explains itself.
#[tokio::test(flavor = "multi_thread")]
async fn chain_in_one_batch_is_decided_in_order() {
    let log = Log::new();
    let mut tasks = Vec::new();
    for n in 0..40 {
        let first = action(&format!("x-{n}"), "hitl_dispatched", None);
        let parent = first.produce().unwrap().capsule_id;
        let second =
            Action { supersedes: Some(parent), ..action(&format!("x-{n}"), "resolved", None) };
        for made in [first.produce().unwrap(), second.produce().unwrap()] {
            let draft = Draft {
                content_type: CONTENT_TYPE,
                issuer: AGENT,
                subject: &made.subject,
                issued_at: None,
                payload: &made.payload,
            };
            let bytes = seal_with_claims(&draft, &made.claims, &log.key).unwrap();
            let service = log.service.clone();
            tasks.push(tokio::spawn(async move { service.register(bytes).await.map(drop) }));
        }
    }
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    assert_eq!(log.service.head().size.get(), 82);
    let Log { _dir, data, service, .. } = log;
    service.shut_down().unwrap();
    drop(service);
    let checked = service::fsck(&data, None, &mut |_, _| {}).unwrap();
    assert_eq!(checked.findings, []);
}
