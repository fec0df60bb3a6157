//! What a yes means for each kind of file, and what each flag changes. The
//! table of `docs/verify.md` is this one.

use super::*;
use crate::checkpoint::VerifierKey;
use crate::wire::text::Pattern;

const DEV: &str = "https://dev.invalid";

/// A log of eight leaves under a name, with a statement at 2.
struct Named {
    issuer: SigningKey,
    statement: Vec<u8>,
    log: SmallLog,
    checkpoints: SigningKey,
    name: &'static str,
}

impl Named {
    fn new(name: &'static str, sketch: impl Fn(&SigningKey) -> Sketch) -> Self {
        let issuer = ed25519();
        let statement = sketch(&issuer).sign(&issuer);
        let log = SmallLog::around(es256(), &statement, 2, 8).called(name);
        Self { issuer, statement, log, checkpoints: ed25519(), name }
    }

    fn origin(&self) -> &'static str {
        self.name.strip_prefix("https://").unwrap()
    }

    /// Believes the log, but not the issuer.
    fn log_trust(&self) -> TrustAnchors {
        let vkey = VerifierKey::new(self.origin(), self.checkpoints.public()).unwrap();
        let checkpoint = Some(vkey.to_string());
        let log = TrustedLog { checkpoint, ..trusted(self.name, &self.log.key) };
        TrustAnchors::default().with_log(log)
    }

    fn trust(&self) -> TrustAnchors {
        self.log_trust().with_issuer(ISSUER, std::slice::from_ref(self.issuer.public()))
    }

    fn transparent(&self) -> Vec<u8> {
        attach(&SignedStatement::parse(self.statement.clone()).unwrap(), &self.log.receipt(2))
            .unwrap()
    }

    fn checkpoint(&self) -> Vec<u8> {
        let origin = self.origin().to_owned();
        let checkpoint = Checkpoint { origin, size: TreeSize::new(8), root: self.log.root(8) };
        checkpoint.sign(self.origin(), &self.checkpoints).unwrap().into_bytes()
    }
}

fn ask(flags: &[&str]) -> Demand {
    let mut demand = Demand::default();
    for flag in flags {
        match flag.split_once('=').unwrap_or((*flag, "")) {
            ("signed-only", _) => demand.signed_only = true,
            ("allow-self-certified", _) => demand.allow_self_certified = true,
            ("allow-dev", _) => demand.allow_development = true,
            ("issuer", name) => demand.issuers.push(Pattern(name.to_owned())),
            ("subject", text) => demand.subjects.push(Pattern(text.to_owned())),
            ("log", name) => demand.logs.push(name.to_owned()),
            ("require", "receipt") => demand.required.push(Requirement::Receipt),
            ("require", "admitted") => demand.required.push(Requirement::Admitted),
            ("require", "witness") => demand.required.push(Requirement::Witness),
            other => panic!("{other:?}"),
        }
    }
    demand
}

type Row<'a> = (&'a [u8], &'a TrustAnchors, &'a [&'a str], &'a str);

/// File, trust, flags, and the code; `ok` is a yes.
fn check(rows: &[Row<'_>], older: &SmallLog) {
    for (number, (bytes, trust, flags, expected)) in rows.iter().enumerate() {
        let demand = ask(flags);
        let older = Some(older.root(5));
        let report = verify(bytes, &Evidence { demand: &demand, older, ..evidence(trust) });
        assert_eq!(report.code(), *expected, "row {number}: {flags:?}: {report:?}");
        let is_yes = report.verdict() == Outcome::Yes;
        assert_eq!(is_yes, *expected == "ok", "row {number}");
        let reason = report.reason().map(|check| check.code);
        assert_eq!(reason.unwrap_or("ok"), *expected, "the reason is the code");
        let nos = ["issuer-other", "subject-other", "signature-invalid", "key-identifier-missing"];
        let is_no = report.verdict() == Outcome::No;
        assert_eq!(is_no, nos.contains(expected), "row {number}: {report:?}");
    }
}

#[test]
fn verdict_by_file_kind() {
    let good = Named::new(LOG, Sketch::new);
    let (trust, log_only, nobody) = (good.trust(), good.log_trust(), TrustAnchors::default());
    let pins = nobody.clone().with_issuer(ISSUER, std::slice::from_ref(good.issuer.public()));
    let (bare, whole) = (good.statement.as_slice(), &good.transparent());
    let (note, growth) = (&good.checkpoint(), &good.log.consistency(5));
    let subject = SignedStatement::parse(good.statement.clone()).unwrap();
    let subject = format!("subject={}", subject.header().claims.subject.as_deref().unwrap());
    let (issuer, log) = (format!("issuer={ISSUER}"), format!("log={LOG}"));
    let rows: &[Row<'_>] = &[
        // A statement without a receipt.
        (bare, &trust, &[], "receipt-missing"),
        (bare, &trust, &["signed-only"], "ok"),
        (bare, &trust, &["signed-only", "require=receipt"], "receipt-missing"),
        // A Transparent Statement.
        (whole, &trust, &[], "ok"),
        (whole, &pins, &[], "log-unknown"),
        (whole, &pins, &["signed-only"], "ok"),
        (whole, &nobody, &[], "signature-invalid"),
        (whole, &log_only, &[], "signature-invalid"),
        (whole, &trust, &["require=receipt"], "ok"),
        (whole, &trust, &["require=admitted"], "admission-not-shown"),
        (whole, &trust, &["require=witness"], "witness-unsupported"),
        (whole, &trust, &["require=receipt", "require=witness"], "witness-unsupported"),
        // Asked for by name.
        (whole, &trust, &[&issuer, &subject, &log], "ok"),
        (whole, &trust, &["issuer=https://*.example"], "ok"),
        (whole, &trust, &["issuer=https://other.example", &issuer], "ok"),
        (whole, &trust, &["issuer=https://other.example"], "issuer-other"),
        (whole, &trust, &["signed-only", "issuer=https://other.example"], "issuer-other"),
        (whole, &trust, &["subject=urn:other"], "subject-other"),
        (whole, &trust, &["signed-only", "subject=urn:other"], "subject-other"),
        (whole, &trust, &["log=https://other.example"], "log-other"),
        (whole, &trust, &["signed-only", "log=https://other.example"], "ok"),
        // A checkpoint and a consistency receipt: the word of a trusted log.
        (note, &trust, &[], "ok"),
        (note, &trust, &["log=log.example"], "ok"),
        (note, &trust, &[&log], "ok"),
        (note, &trust, &["log=https://other.example"], "log-other"),
        (note, &nobody, &[], "log-unknown"),
        (note, &trust, &["signed-only"], "ok"),
        (note, &trust, &["require=receipt"], "receipt-missing"),
        (note, &trust, &["require=witness"], "witness-unsupported"),
        (growth, &trust, &[], "ok"),
        (growth, &trust, &[&log], "ok"),
        (growth, &trust, &["log=https://other.example"], "log-other"),
        (growth, &nobody, &[], "log-unknown"),
    ];
    check(rows, &good.log);
}

#[test]
fn development_log_must_be_allowed() {
    let dev = Named::new(DEV, Sketch::new);
    let trust = dev.trust();
    // Under a key given by hand the log's own word is the only name there is.
    let pin = std::slice::from_ref(dev.issuer.public());
    let any = TrustedLog { name: ANY_LOG.to_owned(), ..trust.logs()[0].clone() };
    let any = TrustAnchors::default().with_issuer(ISSUER, pin).with_log(any);
    let (whole, note, growth) = (&dev.transparent(), &dev.checkpoint(), &dev.log.consistency(5));
    for file in [whole, note, growth] {
        let rows: &[Row<'_>] = &[
            (file, &trust, &[], "log-development"),
            (file, &any, &[], "log-development"),
            (file, &trust, &["allow-dev"], "ok"),
            (file, &any, &["allow-dev"], "ok"),
            (file, &trust, &["allow-dev", "log=https://log.example"], "log-other"),
        ];
        check(rows, &dev.log);
    }
    check(&[(whole, &trust, &["signed-only"], "ok")], &dev.log);
    let report = verify(whole, &evidence(&trust));
    assert!(report.warnings[0].contains("prove nothing"), "{:?}", report.warnings);
    // A receipt of a real log beside it is enough.
    let real = SmallLog::around(es256(), &dev.statement, 2, 8);
    let both = SignedStatement::parse_any_size(dev.transparent()).unwrap();
    let both = attach(&both, &real.receipt(2)).unwrap();
    let trust = trust.with_log(trusted(LOG, &real.key));
    check(&[(&both, &trust, &[], "ok")], &dev.log);
}

#[test]
fn names_of_development_logs() {
    for (name, expected) in [
        ("https://dev.invalid", true),
        ("https://DEV.INVALID", true),
        ("https://dev.invalid/", true),
        ("https://dev.invalid./log", true),
        ("https://dev.invalid:8787", true),
        ("http://dev.invalid:8787/a?b#c", true),
        ("https://log.example@dev.invalid", true),
        ("dev.capstan.invalid", true),
        ("invalid", true),
        ("https://invalid.example", false),
        ("https://log.example/dev.invalid", false),
        ("https://log.notinvalid", false),
        ("https://log.example", false),
        ("", false),
    ] {
        assert_eq!(demand::is_development(name), expected, "{name}");
    }
}

/// Possession of a key is not a name.
#[test]
fn self_certified_name_is_unproven() {
    let own = Named::new(LOG, Sketch::self_certified);
    let (log_only, pinned) = (own.log_trust(), own.trust());
    let (whole, bare) = (&own.transparent(), own.statement.as_slice());
    let issuer = format!("issuer={ISSUER}");
    let rows: &[Row<'_>] = &[
        (whole, &log_only, &[], "self-certified"),
        (whole, &log_only, &[&issuer], "self-certified"),
        (whole, &log_only, &["signed-only"], "self-certified"),
        (whole, &log_only, &["allow-self-certified"], "ok"),
        (bare, &log_only, &["allow-self-certified"], "receipt-missing"),
        (bare, &log_only, &["allow-self-certified", "signed-only"], "ok"),
        (whole, &pinned, &[], "ok"),
    ];
    check(rows, &own.log);
    let given = Evidence { issuer_key: Some(own.issuer.public()), ..evidence(&log_only) };
    let report = verify(whole, &given);
    assert_eq!(report.code(), "ok", "{report:?}");
    assert!(named(&report, "signed").detail.ends_with("given by hand"), "{report:?}");
    let other = ed25519();
    let given = Evidence { issuer_key: Some(other.public()), ..given };
    assert_eq!(verify(whole, &given).code(), "signature-invalid");
}

/// A did:key is its own key, which says nothing about who holds it. It is
/// enough for somebody who asks for this very name.
#[test]
fn self_contained_name_must_be_expected() {
    let key = ed25519();
    let name = crate::trust::did_key::did_key(key.public()).unwrap();
    let statement = Sketch::new(&key).claim(1, name.as_str()).sign(&key);
    let log = SmallLog::around(es256(), &statement, 2, 8);
    let parsed = SignedStatement::parse(statement).unwrap();
    let whole = attach(&parsed, &log.receipt(2)).unwrap();
    let trust = TrustAnchors::default().with_log(trusted(LOG, &log.key));
    let named = trust.clone().with_issuer(&name, std::slice::from_ref(key.public()));
    let issuer = format!("issuer={name}");
    let rows: &[Row<'_>] = &[
        (&whole, &trust, &[], "issuer-not-named"),
        (&whole, &trust, &["signed-only"], "issuer-not-named"),
        (&whole, &trust, &["allow-self-certified"], "issuer-not-named"),
        (&whole, &trust, &["issuer=did:key:*"], "issuer-not-named"),
        (&whole, &trust, &["issuer=*"], "issuer-not-named"),
        (&whole, &trust, &[&issuer], "ok"),
        (&whole, &named, &[], "ok"),
    ];
    check(rows, &log);
}

/// One good receipt is enough beside receipts of unknown logs; a wrong one is
/// still a no.
#[test]
fn unknown_log_receipts_beside_good_one() {
    let good = Named::new(LOG, Sketch::new);
    let stranger = SmallLog::around(es256(), &good.statement, 2, 8).called("https://other.example");
    let whole = SignedStatement::parse_any_size(good.transparent()).unwrap();
    let both = attach(&whole, &stranger.receipt(2)).unwrap();
    let trust = good.trust();
    check(&[(&both, &trust, &[], "ok"), (&both, &trust, &["require=receipt"], "ok")], &good.log);
    let wrong = attach(&whole, &good.log.receipt(3)).unwrap();
    assert_eq!(answer(&wrong, &trust), (Outcome::No, "head-signature"));
}

/// Only the keys of a trusted log may sign under its name.
#[test]
fn log_is_its_own_issuer() {
    let (key, other) = (es256(), es256());
    let signed_by = |key: &SigningKey| Sketch::self_certified(key).claim(1, LOG).sign(key);
    let statements = [signed_by(&key), signed_by(&other)];
    let log = SmallLog::of(key, &[&statements[0], &statements[1]]);
    let trust = TrustAnchors::default().with_log(trusted(LOG, &log.key));
    for (index, expected) in
        [(0, (Outcome::Yes, "ok")), (1, (Outcome::CannotTell, "name-needs-proof"))]
    {
        let statement = SignedStatement::parse(statements[index].clone()).unwrap();
        let receipt = log.receipt(u64::try_from(index).unwrap());
        assert_eq!(answer(&attach(&statement, &receipt).unwrap(), &trust), expected);
    }
}

/// The rows under a heading of a table, as file and words in backticks.
fn table(page: &str, heading: &str) -> Vec<(String, Vec<String>)> {
    let lines = page.lines().skip_while(|line| *line != heading).skip(2);
    let words = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    let row = |line: &str| {
        let mut cells = line.split('|').map(str::trim).skip(1);
        (cells.next().unwrap().to_owned(), words(cells.next().unwrap()))
    };
    lines.take_while(|line| line.starts_with('|')).map(row).collect()
}

/// `docs/verify.md` says what each yes rests on; here is one of each.
#[test]
fn verdict_table_matches_docs() {
    let good = Named::new(LOG, Sketch::new);
    let trust = good.trust();
    let usual = evidence(&trust);
    let signed_only = Evidence { demand: SIGNED_ONLY, ..usual };
    let with_statement = Evidence { statement: Some(&good.statement), ..usual };
    let older = Evidence { older: Some(good.log.root(5)), ..usual };
    let (bundle, bundle_trust) = super::bundle::sample();
    let found = [
        ("statement", verify(&good.statement, &usual)),
        ("statement, `--signed-only`", verify(&good.statement, &signed_only)),
        ("Transparent Statement", verify(&good.transparent(), &usual)),
        ("receipt, `--statement`", verify(&good.log.receipt(2), &with_statement)),
        ("checkpoint", verify(&good.checkpoint(), &usual)),
        ("consistency receipt, `--older`", verify(&good.log.consistency(5), &older)),
        ("bundle", verify(&bundle, &evidence(&bundle_trust))),
    ];
    let found: Vec<(String, Vec<String>)> = found
        .into_iter()
        .map(|(file, report)| {
            let is_yes = report.verdict() == Outcome::Yes;
            let counted = report.checks.iter().filter(|check| check.counts && is_yes);
            (file.to_owned(), counted.map(|check| check.name.to_owned()).collect())
        })
        .collect();
    let page = include_str!("../../../../docs/verify.md");
    assert_eq!(table(page, "| file | a yes rests on |"), found);
}
