//! What agents did, from description to proof, against a real process: each
//! way an action can end is registered over HTTP and verified offline.

use capstan::envelope::{Draft, SignedStatement, seal_with_claims};
use capstan::key::{Algorithm, SigningKey};
use capstan::profile::capsule::{
    Action, Attachments, AttestationMode, CONTENT_TYPE, OUTCOME_CONTENT_TYPE,
};
use capstan::receipt::{Proofs, Receipt, attach};
use capstan::service;
use capstan::trust::{TrustAnchors, TrustedLog};
use capstan::verify::{ANY_LOG, Demand, Evidence, Outcome, verify};
use capstan::wire::cbor::{Value as Cbor, split_sequence};
use capstan::wire::json::Json;
use capstan::wire::time::UnixSeconds;
use serde_json::{Value, json};

use crate::live::{Server, request, request_of};

const NOW: UnixSeconds = UnixSeconds::new(1_790_000_000);
const DEVELOPER: &str = "invoice-agent@1.4";

/// A log with a policy, and an agent it knows.
struct World {
    _dir: tempfile::TempDir,
    server: Server,
    key: SigningKey,
    trust: TrustAnchors,
}

/// A registered action.
struct Registered {
    capsule_id: String,
    transparent: Vec<u8>,
}

impl World {
    fn new(policy: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        service::init(&data, "actions.invalid", policy, Algorithm::Es256).unwrap();
        let key = SigningKey::generate(Algorithm::Es256).unwrap();
        let pem = key.public().to_pem().unwrap();
        let trust = format!("[[issuer]]\nname = {DEVELOPER:?}\nkeys = ['''\n{pem}''']\n");
        std::fs::write(data.join("trust.toml"), &trust).unwrap();
        let server = Server::start(&data);
        let (status, keys) = request(&server.address, "GET /.well-known/scitt-keys", b"").unwrap();
        assert_eq!(status, 200);
        let set = capstan::wire::cbor::Value::read(&keys).unwrap();
        let log_key = capstan::key::PublicKey::from_cose_value(&set.array().unwrap()[0]).unwrap();
        let log = TrustedLog { name: ANY_LOG.to_owned(), keys: vec![log_key], checkpoint: None };
        let trust = TrustAnchors::parse(&trust).unwrap().with_log(log);
        Self { _dir: dir, server, key, trust }
    }

    fn statement(&self, description: &Value, with: Attachments) -> (String, Vec<u8>) {
        let with = Attachments { now: NOW, action_id: "unnamed".to_owned(), ..with };
        let action = Action::describe(description.to_string().as_bytes(), &with).unwrap();
        let made = action.produce().unwrap();
        let draft = Draft {
            content_type: CONTENT_TYPE,
            issuer: &made.issuer,
            subject: &made.subject,
            issued_at: Some(NOW),
            payload: &made.payload,
        };
        (made.capsule_id, seal_with_claims(&draft, &made.claims, &self.key).unwrap())
    }

    fn register(&self, description: &Value, with: Attachments) -> Registered {
        let (capsule_id, statement) = self.statement(description, with);
        let (status, receipt) = self.post(&statement);
        assert_eq!(status, 201, "{}", String::from_utf8_lossy(&receipt));
        let parsed = SignedStatement::parse(statement).unwrap();
        Registered { capsule_id, transparent: attach(&parsed, &receipt).unwrap() }
    }

    fn post(&self, statement: &[u8]) -> (u16, Vec<u8>) {
        request(&self.server.address, "POST /entries", statement).unwrap()
    }

    /// Status of every statement of a batch, with the index of its leaf or the
    /// detail of its problem.
    fn post_batch(&self, statements: &[Vec<u8>]) -> Vec<(u16, Result<u64, String>)> {
        let body = ("application/cbor-seq", statements.concat());
        let (kind, bytes) = (body.0, body.1.as_slice());
        let answer = request_of(&self.server.address, "POST /entries/batch", (kind, bytes));
        let (status, answers) = answer.unwrap();
        assert_eq!(status, 200);
        let answers = split_sequence(&answers, statements.len()).unwrap();
        let read = |answer: &&[u8]| {
            let value = Cbor::read(answer).unwrap();
            let [status, body] = value.array().unwrap() else { panic!("{value:?}") };
            let place = match body.bytes() {
                Some(receipt) => {
                    let receipt = Receipt::parse(receipt.to_vec()).unwrap();
                    let Proofs::Inclusion(proofs) = receipt.proofs() else { panic!() };
                    Ok(proofs[0].index)
                }
                None => Err(body.get(-2).and_then(Cbor::text).unwrap().to_owned()),
            };
            (status.int().unwrap(), place)
        };
        answers.iter().map(read).collect()
    }

    /// How the Capsule in `bytes` is attested, offline, under `trust`.
    fn attested(&self, bytes: &[u8], trust: &TrustAnchors) -> AttestationMode {
        let demand = Demand { allow_development: true, ..Demand::default() };
        let report = verify(bytes, &Evidence { demand: &demand, ..Evidence::new(trust, NOW) });
        assert_ne!(report.verdict(), Outcome::No, "{report:?}");
        let capsule = report.capsule.expect("a Capsule");
        assert_eq!(capsule.class1.ok, Some(true), "{:?}", capsule.class1.findings);
        capsule.class1.derived.expect("derived modes").attestation
    }

    /// Anchored with its receipt, self-attested without it and under a trust
    /// that does not know the log.
    fn check_attestation(&self, registered: &Registered) {
        let bytes = &registered.transparent;
        assert_eq!(self.attested(bytes, &self.trust), AttestationMode::Anchored);
        let bare = SignedStatement::parse_any_size(bytes.clone()).unwrap().canonical().into_owned();
        assert_eq!(self.attested(&bare, &self.trust), AttestationMode::SelfAttested);
        let stranger = SigningKey::generate(Algorithm::Es256).unwrap();
        let nobody = TrustAnchors::default()
            .with_issuer(DEVELOPER, &[self.key.public().clone()])
            .with_log(TrustedLog {
                name: "https://other.invalid".to_owned(),
                keys: vec![stranger.public().clone()],
                checkpoint: None,
            });
        assert_eq!(self.attested(bytes, &nobody), AttestationMode::SelfAttested);
    }

    /// The story of a Capsule, as the API tells it.
    fn story(&self, capsule_id: &str) -> Value {
        let (status, body) =
            request(&self.server.address, &format!("GET /api/v1/stories/{capsule_id}"), b"")
                .unwrap();
        assert_eq!(status, 200);
        serde_json::from_slice(&body).unwrap()
    }
}

fn described(action: &str, disposition: Value, effect: Option<Value>) -> Value {
    let mut value = json!({
        "action_id": action,
        "action_type": "decide",
        "operator": "acme",
        "developer": DEVELOPER,
        "disposition": disposition,
    });
    if let Some(effect) = effect {
        value["effect"] = effect;
    }
    value
}

fn accepted(verdict: Option<&str>) -> Value {
    let mut value = json!({"decision": "accept", "approver": "policy", "human_disposed": false});
    if let Some(verdict) = verdict {
        value["verdict_class"] = json!(verdict);
    }
    value
}

fn response() -> Attachments {
    Attachments {
        response: Some(Json::read(br#"{"paid":true}"#).unwrap()),
        ..Attachments::default()
    }
}

/// Every way an action ends, in one log: registered, anchored, explained.
#[test]
fn every_verdict_is_recorded() {
    let world = World::new(include_str!("../../policy/agents.toml"));
    let payment = |status: &str| json!({"type": "send_payment", "status": status, "external_ref": "po-7781", "irreversibility_class": "one_way_recoverable"});
    let mut planned = payment("planned");
    planned.as_object_mut().unwrap().remove("effect_attestation");
    let refused = |verdict: &str| json!({"decision": "reject", "approver": "policy", "human_disposed": false, "verdict_class": verdict});
    let none = Attachments::default;
    let endings = [
        world.register(&described("pay-1", accepted(None), Some(planned)), none()),
        world.register(
            &described("pay-1", accepted(Some("executed")), Some(payment("dispatched"))),
            none(),
        ),
        world.register(
            &described("pay-1", accepted(Some("executed")), Some(payment("confirmed"))),
            response(),
        ),
        world.register(&described("pay-2", refused("blocked"), None), none()),
        world.register(&described("pay-3", refused("denied"), None), none()),
    ];
    for registered in &endings {
        world.check_attestation(registered);
    }
}

/// A decision handed to a human stays open until a later Capsule closes it.
#[test]
fn superseding_record_closes_open_item() {
    let world = World::new(include_str!("../../policy/agents.toml"));
    let waiting = json!({"decision": "needs_input", "approver": "human", "human_disposed": false, "verdict_class": "hitl_dispatched"});
    let open = world.register(&described("pay-4", waiting, None), Attachments::default());
    assert_eq!(world.story(&open.capsule_id)["state"], json!("open"));
    let decided = json!({"decision": "reject", "approver": "human", "human_disposed": true, "verdict_class": "resolved"});
    let supersedes = Some(open.capsule_id.clone());
    let closed = world.register(
        &described("pay-4", decided, None),
        Attachments { supersedes, ..Attachments::default() },
    );
    world.check_attestation(&closed);
    assert_eq!(world.story(&open.capsule_id)["state"], json!("closed"));
    let deferred = json!({"decision": "deferred", "approver": "human", "human_disposed": true, "verdict_class": "deferred", "expiry_policy": {"ttl_seconds": 60, "on_expiry": "expired"}});
    let later = world.register(&described("pay-5", deferred, None), Attachments::default());
    assert_eq!(world.story(&later.capsule_id)["state"], json!("open"));
    let expired = json!({"decision": "reject", "approver": "policy", "human_disposed": false, "verdict_class": "expired"});
    let supersedes = Some(later.capsule_id.clone());
    world.register(
        &described("pay-5", expired, None),
        Attachments { supersedes, ..Attachments::default() },
    );
    assert_eq!(world.story(&later.capsule_id)["state"], json!("closed"));
}

/// Parents and children in one request, under a policy that wants to know
/// every parent: a statement is decided after those before it.
#[test]
fn chain_registers_in_one_batch() {
    let world = World::new(include_str!("../../policy/agents-strict.toml"));
    let chain = |action: &str| {
        let mut parent = None;
        let link = |status: &str| {
            let mut effect = json!({"type": "send_payment", "status": status});
            effect["external_ref"] = json!("po-7781");
            let with = if status == "confirmed" { response() } else { Attachments::default() };
            let with = Attachments { supersedes: parent.take(), ..with };
            let action = described(action, accepted(Some("executed")), Some(effect));
            let (id, bytes) = world.statement(&action, with);
            parent = Some(id);
            bytes
        };
        ["planned", "dispatched", "confirmed"].map(link).to_vec()
    };
    let answers = world.post_batch(&chain("one"));
    let expected = [3, 4, 5].map(|index| (201, Ok(index)));
    assert_eq!(answers, expected);

    // Long enough for several tasks, with the links far from each other.
    let chains: Vec<_> = (0..20).map(|n| chain(&format!("many-{n}"))).collect();
    let column = |n: usize| chains.iter().map(move |chain| chain[n].clone());
    let answers =
        world.post_batch(&column(0).chain(column(1)).chain(column(2)).collect::<Vec<_>>());
    assert!(answers.iter().all(|(status, _)| *status == 201), "{answers:?}");
    for n in 0..20 {
        let places = [n, n + 20, n + 40].map(|at| answers[at].1.clone().unwrap());
        assert!(places.is_sorted(), "{places:?}");
    }

    let mut reversed = chain("reversed");
    reversed.reverse();
    let answers = world.post_batch(&reversed);
    let statuses: Vec<u16> = answers.iter().map(|(status, _)| *status).collect();
    assert_eq!(statuses, [400, 400, 201], "{answers:?}");
    assert!(answers[0].1.as_ref().is_err_and(|why| why.contains("parent")), "{answers:?}");
    let answers = world.post_batch(&reversed);
    let statuses: Vec<u16> = answers.iter().map(|(status, _)| *status).collect();
    assert_eq!(statuses, [400, 201, 201], "its parent is logged by now: {answers:?}");
}

/// A reversal is a statement of its own; the original is not touched.
#[test]
fn outcome_joins_action_by_subject() {
    let world = World::new(include_str!("../../policy/agents.toml"));
    let effect = json!({"type": "send_payment", "status": "confirmed", "external_ref": "po-9"});
    let paid =
        world.register(&described("pay-9", accepted(Some("executed")), Some(effect)), response());
    let draft = Draft {
        content_type: OUTCOME_CONTENT_TYPE,
        issuer: DEVELOPER,
        subject: "urn:agent-action-capsule:acme:pay-9",
        issued_at: Some(NOW),
        payload: br#"{"status":"reverted","external_ref":"po-9"}"#,
    };
    let claims = [
        ("capsule_statement_type", "outcome".to_owned()),
        ("capsule_decision_id", "pay-9".to_owned()),
    ];
    let (status, body) = world.post(&seal_with_claims(&draft, &claims, &world.key).unwrap());
    assert_eq!(status, 201, "{}", String::from_utf8_lossy(&body));
    let story = world.story(&paid.capsule_id);
    assert_eq!(story["outcomes"].as_array().map(Vec::len), Some(1), "{story}");
    let (paid, taken_back) = (&story["chain"][0], &story["outcomes"][0]["index"]);
    assert_eq!(
        (&paid["record"]["effect_status"], &paid["reverted_by"]),
        (&json!("confirmed"), taken_back)
    );
    assert_eq!(story["reversals"][0]["correlation"], "about", "{story}");
    // The same by a Capsule of its own, which only the reference ties to it.
    let effect = json!({"type": "send_payment", "status": "reverted", "external_ref": "po-9"});
    let again =
        world.register(&described("undo-9", accepted(Some("executed")), Some(effect)), response());
    let story = world.story(&again.capsule_id);
    assert_eq!(story["reversals"].as_array().map(Vec::len), Some(2), "{story}");
    assert_eq!(story["findings"][0]["code"], "reverted_again", "{story}");
}

/// A log that takes outcomes from anybody says who told each, and how they
/// were known; what calls itself an action is joined to nothing.
#[test]
fn foreign_reversal_is_flagged() {
    let policy = "name = \"any\"\n[[allow]]\nprofile = [\"capsule\", \"capsule-outcome\"]\n";
    let world = World::new(policy);
    let effect = json!({"type": "send_payment", "status": "confirmed", "external_ref": "po-9"});
    let paid =
        world.register(&described("pay-9", accepted(Some("executed")), Some(effect)), response());
    let tell = |kind: &str| {
        let key = SigningKey::generate(Algorithm::Es256).unwrap();
        let draft = Draft {
            content_type: OUTCOME_CONTENT_TYPE,
            issuer: "https://stranger.example",
            subject: "urn:agent-action-capsule:acme:pay-9",
            issued_at: Some(NOW),
            payload: br#"{"status":"reverted","external_ref":"po-9"}"#,
        };
        let claims = [("capsule_statement_type", kind.to_owned())];
        let (status, body) = world.post(&seal_with_claims(&draft, &claims, &key).unwrap());
        assert_eq!(status, 201, "{}", String::from_utf8_lossy(&body));
        world.story(&paid.capsule_id)
    };
    let codes = |story: &Value| -> Vec<String> {
        let findings = story["findings"].as_array().unwrap();
        findings.iter().map(|f| f["code"].as_str().unwrap().to_owned()).collect()
    };
    let story = tell("agent_action");
    assert_eq!(story["outcomes"][0]["correlation"], "nothing", "{story}");
    assert_eq!(story["chain"][0]["reverted_by"], Value::Null, "{story}");
    assert_eq!(codes(&story), ["outcome_misdeclared"]);
    let story = tell("outcome");
    let whom = json!({"issuer": "https://stranger.example", "binding": "self-certified"});
    assert_eq!(story["chain"][0]["reverted_says"], whom, "{story}");
    assert_eq!((&story["outcomes"][1]["says"], &story["reversals"][0]["says"]), (&whom, &whom));
    assert_eq!(codes(&story), ["outcome_misdeclared", "reverted_by_other"]);
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_capstan"));
    let url = format!("http://{}", world.server.address);
    let output = command.args(["story", "pay-9", "--url", &url]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let said = "reverted by #5, says https://stranger.example (self-certified),";
    let line = text.lines().find(|line| line.contains("reverted by")).unwrap_or_default();
    assert!(line.contains(said) && line.contains("executed"), "{text}");
}

/// Payloads no producer makes: a finding or a 400, never a 5xx, never a word
/// about a panic.
#[test]
fn hostile_payloads_are_refused() {
    let world = World::new(include_str!("../../policy/agents.toml"));
    let deep = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000));
    let brackets = "[".repeat(59 * 1024);
    let payloads: [&[u8]; 8] = [
        br#"{"a":1,"a":2}"#,
        br#"{"amount":1e3}"#,
        br#"{"amount":-0}"#,
        br#"{"name":"\ud800"}"#,
        deep.as_bytes(),
        brackets.as_bytes(),
        b"\xff\xfe",
        b"",
    ];
    for payload in payloads {
        let draft = Draft {
            content_type: CONTENT_TYPE,
            issuer: DEVELOPER,
            subject: "urn:agent-action-capsule:acme:x",
            issued_at: None,
            payload,
        };
        let claims = [("capsule_statement_type", "agent_action".to_owned())];
        let (status, _) = world.post(&seal_with_claims(&draft, &claims, &world.key).unwrap());
        let shown = String::from_utf8_lossy(&payload[..payload.len().min(20)]).into_owned();
        assert_eq!(status, 400, "{shown}");
    }
    let (status, _) = request(&world.server.address, "GET /health", b"").unwrap();
    assert_eq!(status, 200);
}
