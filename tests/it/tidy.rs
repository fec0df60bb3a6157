//! What the compiler does not check about the source itself. Every check is a
//! function over paths and text, so that each is seen to fail on a bad sample.

use std::fs;
use std::path::Path;

/// Modules in the order a statement travels; each uses only those before it.
const ORDER: &[&str] = &[
    "wire",
    "key",
    "trust",
    "envelope",
    "profile",
    "story",
    "policy",
    "log",
    "checkpoint",
    "receipt",
    "verify",
    "config",
    "metrics",
    "store",
    "resolve",
    "service",
    "gate",
    "bridge",
    "http",
    "cli",
];

/// Words the pure half does not know.
const IMPURE: &[&str] = &[
    "std::fs",
    "std::net",
    "std::env",
    "std::process",
    "std::thread",
    "SystemTime",
    "Instant",
    "tokio",
    "axum",
    "reqwest",
    "fjall",
    "rustix",
    "getrandom",
    "fastrand",
    "rand_core",
];

struct Source {
    path: String,
    text: String,
}

impl Source {
    fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned() }
    }

    fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Tests may look anywhere, and so may what is made for them.
    fn is_test(&self) -> bool {
        let within = |part| self.path.starts_with(part) || self.path.contains(&format!("/{part}"));
        within("tests/") || within("benches/") || within("fuzz/") || {
            self.path.ends_with("/tests.rs") || self.path.ends_with("/fixture.rs")
        }
    }

    /// The top-level module of a file of the program or of the pure half.
    fn module(&self) -> Option<&str> {
        let path = self.path.strip_prefix("core/").unwrap_or(&self.path);
        let name = path.strip_prefix("src/")?.split('/').next()?;
        Some(name.strip_suffix(".rs").unwrap_or(name))
    }

    /// The text without comments and without tests at its end.
    fn code(&self) -> String {
        let body = self.text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        body.lines().map(without_comment).collect::<Vec<_>>().join("\n")
    }

    /// What only tests see.
    fn tests(&self) -> &str {
        if self.is_test() {
            return &self.text;
        }
        self.text.split_once("#[cfg(test)]\nmod tests {").map_or("", |(_, tests)| tests)
    }
}

fn without_comment(line: &str) -> &str {
    if line.trim_start().starts_with("//") { "" } else { line.split(" // ").next().unwrap_or("") }
}

fn place_of(module: &str) -> Option<usize> {
    ORDER.iter().position(|m| *m == module)
}

/// A module uses `crate::` only to its left.
fn looks_left(source: &Source) -> Vec<String> {
    let Some(here) = source.module().filter(|_| !source.is_test()).and_then(place_of) else {
        return Vec::new();
    };
    let used = crate_paths(&source.code());
    let wrong = used.iter().filter(|m| place_of(m).is_none_or(|there| there > here));
    wrong.map(|m| format!("{}: uses crate::{m}", source.path)).collect()
}

/// The first names after every `crate::`, groups included.
fn crate_paths(code: &str) -> Vec<String> {
    let name = |text: &str| -> String {
        text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        match rest.strip_prefix('{') {
            None => found.push(name(rest)),
            Some(group) => found.extend(group_members(group).iter().map(|m| name(m))),
        }
    }
    found.retain(|n| n.chars().next().is_some_and(char::is_lowercase));
    found
}

/// `a, b::{c, d}, e}` split at its own commas.
fn group_members(group: &str) -> Vec<&str> {
    let (mut depth, mut start, mut members) = (0, 0, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' if depth == 0 => {
                members.push(&group[start..at]);
                start = at + 1;
            }
            '}' => {
                members.push(&group[start..at]);
                break;
            }
            _ => {}
        }
    }
    members
}

/// Every module of the crate has a place in the order.
fn is_placed(source: &Source) -> Vec<String> {
    let known = |m: &str| place_of(m).is_some() || ["lib", "main"].contains(&m);
    let unplaced = source.module().filter(|m| !known(m));
    unplaced
        .map(|m| format!("{}: {m} has no place in the order", source.path))
        .into_iter()
        .collect()
}

/// Up to `verify` there is no world outside.
fn is_pure(source: &Source) -> Vec<String> {
    let pure = source.module().and_then(place_of) <= place_of("verify");
    if source.is_test() || source.module().and_then(place_of).is_none() || !pure {
        return Vec::new();
    }
    let code = source.code();
    let found = IMPURE.iter().filter(|word| has_word(&code, word));
    found.map(|word| format!("{}: {word} in the pure half", source.path)).collect()
}

fn has_word(text: &str, word: &str) -> bool {
    let part_of_name = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        !text[..at].ends_with(part_of_name) && !text[at + word.len()..].starts_with(part_of_name)
    })
}

/// Up to the first line of the same indent that closes it.
fn function_length(lines: &[&str]) -> usize {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let own = indent(lines[0]);
    let closes = |line: &&str| indent(line) == own && (line.ends_with('}') || line.ends_with(';'));
    lines.iter().position(closes).map_or(lines.len(), |at| at + 1)
}

/// Words that mean "not finished" or "not here". Spelt in two halves, or this
/// file would find itself.
fn has_no_leftovers(source: &Source) -> Vec<String> {
    let words = [("TO", "DO"), ("FIX", "ME"), ("X", "XX")].map(|(a, b)| format!("{a}{b}"));
    let paths = [("/wo", "rk/"), ("/ro", "ot/")].map(|(a, b)| format!("{a}{b}"));
    let skipped = ["#[igno", "re"].concat();
    let mut found = Vec::new();
    for (number, line) in source.text.lines().enumerate() {
        let hit = words.iter().find(|w| has_word(line, w));
        let hit = hit.or(paths.iter().find(|p| line.contains(p.as_str())));
        let hit = hit.or(Some(&skipped).filter(|s| source.is_rust() && line.contains(s.as_str())));
        found.extend(hit.map(|hit| format!("{}:{}: {hit}", source.path, number + 1)));
    }
    found
}

/// Every dependency says why it is here.
fn has_reasons(manifest: &str) -> Vec<String> {
    let mut in_dependencies = false;
    let mut found = Vec::new();
    for line in manifest.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            in_dependencies = section.ends_with("dependencies]");
        } else if in_dependencies
            && line.contains('=')
            && !line.starts_with('#')
            && !line.contains("workspace = true")
        {
            let reason = line.rsplit_once('#').map(|(_, reason)| reason.trim());
            if reason.is_none_or(str::is_empty) {
                found.push(format!("Cargo.toml: no reason for {line}"));
            }
        }
    }
    found
}

/// The codes that `code()` functions return: literals in their bodies, and
/// names that strum derives for the enum they belong to.
fn codes(source: &Source) -> Vec<String> {
    let text = source.code();
    let lines: Vec<&str> = text.lines().collect();
    let starts = lines.iter().enumerate().filter(|(_, l)| l.trim().contains("fn code("));
    let mut found = Vec::new();
    for (start, _) in starts {
        let body = lines[start..][..function_length(&lines[start..])].join("\n");
        found.extend(body.split('"').skip(1).step_by(2).map(str::to_owned));
        let owner = lines[..start].iter().rev().find_map(|line| line.strip_prefix("impl "));
        if let Some(owner) = owner.filter(|_| body.contains("into()")) {
            let mut derived = derived_names(&lines, owner.trim_end_matches(" {"));
            // An arm of its own takes the place of the derived name.
            derived.retain(|(variant, _)| !has_word(&body, &format!("Self::{variant}")));
            found.extend(derived.into_iter().map(|(_, name)| name));
        }
    }
    let is_code =
        |c: &String| c.chars().all(|c| c.is_ascii_lowercase() || "-0123456789".contains(c));
    found.retain(is_code);
    found
}

/// The variants of an enum with the names strum derives for them. A variant
/// that is `transparent` has the name of what it holds.
fn derived_names(lines: &[&str], name: &str) -> Vec<(String, String)> {
    let is_enum = |line: &&str| line.split("enum ").nth(1) == Some(&format!("{name} {{"));
    let Some(start) = lines.iter().position(is_enum) else { return Vec::new() };
    let attributes = lines[..start].iter().rev().take_while(|l| !l.is_empty() && **l != "}");
    let attributes: String = attributes.copied().collect();
    let argument = |text: &str, name: &str| {
        let (_, rest) = text.split_once(&format!("{name} = \""))?;
        rest.split('"').next().map(str::to_owned)
    };
    let prefix = argument(&attributes, "prefix").unwrap_or_default();
    let mut names = Vec::new();
    let mut own = String::new();
    for line in &lines[start + 1..][..function_length(&lines[start..]) - 1] {
        let variant: String = line
            .strip_prefix("    ")
            .map(|line| line.chars().take_while(char::is_ascii_alphanumeric).collect())
            .unwrap_or_default();
        if line.trim_start().starts_with("#[strum(") {
            own = (*line).to_owned();
        } else if variant.starts_with(|c: char| c.is_ascii_uppercase()) {
            let own = std::mem::take(&mut own);
            let name = argument(&own, "serialize").unwrap_or_else(|| kebab(&variant));
            if !own.contains("transparent") {
                names.push((variant, format!("{prefix}{name}")));
            }
        }
    }
    names
}

/// `NotSign1` as `not-sign1`.
fn kebab(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !out.is_empty() {
            out.push('-');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// Every error code appears, quoted, in some test.
fn untested_codes(sources: &[Source]) -> Vec<String> {
    let tests: Vec<&str> = sources.iter().filter(|s| s.is_rust()).map(Source::tests).collect();
    let tested = |code: &String| tests.iter().any(|t| t.contains(&format!("\"{code}\"")));
    let mut missing = Vec::new();
    for source in sources.iter().filter(|s| s.is_rust() && !s.is_test()) {
        let untested = codes(source).into_iter().filter(|c| !tested(c));
        missing.extend(untested.map(|c| format!("{}: {c} is in no test", source.path)));
    }
    missing.sort();
    missing.dedup();
    missing
}

/// What a page says was tested can be found: a test, a module of tests, a
/// fuzz target.
fn unknown_tests(page: &Source, sources: &[Source]) -> Vec<String> {
    let is_name = |word: &&str| {
        word.contains('_') && word.chars().all(|c| c == '_' || c.is_ascii_alphanumeric())
    };
    let exists = |name: &str| {
        let (function, file) = (format!("fn {name}("), format!("/{name}.rs"));
        sources.iter().any(|s| s.path.ends_with(&file) || s.tests().contains(&function))
    };
    let words = page.text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    let unknown = words.filter(is_name).filter(|name| !exists(name));
    unknown.map(|name| format!("{}: there is no test {name}", page.path)).collect()
}

fn read_tree(root: &Path, under: &str, into: &mut Vec<Source>) {
    let skipped = ["node_modules", "target", "corpus", "artifacts"];
    let Ok(entries) = fs::read_dir(root.join(under)) else { return };
    for entry in entries.map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        let path = if under.is_empty() { name.clone() } else { format!("{under}/{name}") };
        if entry.file_type().unwrap().is_dir() {
            if !name.starts_with('.') && !skipped.contains(&name.as_str()) {
                read_tree(root, &path, into);
            }
        } else if let Ok(text) = fs::read_to_string(entry.path()) {
            into.push(Source { path, text });
        }
    }
}

/// Everything we wrote; lock files were written by tools.
fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = Vec::new();
    for part in ["src", "core", "tests", "benches", "fuzz", "policy", "docs", "deploy", "openapi"] {
        read_tree(root, part, &mut all);
    }
    for name in [
        "Cargo.toml",
        "README.md",
        "CHANGELOG.md",
        "SECURITY.md",
        "CONTRIBUTING.md",
        "Dockerfile",
        "test",
    ] {
        all.extend(fs::read_to_string(root.join(name)).map(|text| Source::new(name, &text)));
    }
    all.retain(|s| !s.path.ends_with("package-lock.json") && !s.path.ends_with("Cargo.lock"));
    all.sort_by(|a, b| a.path.cmp(&b.path));
    all
}

#[test]
fn the_source_is_tidy() {
    let sources = sources();
    assert!(sources.len() > 100, "found only {} files", sources.len());
    let mut findings = Vec::new();
    for source in &sources {
        findings.extend(has_no_leftovers(source));
        if source.is_rust() {
            for check in [looks_left, is_placed, is_pure] {
                findings.extend(check(source));
            }
        }
        if source.path.ends_with("Cargo.toml") {
            findings.extend(has_reasons(&source.text));
        }
        if ["docs/threat-model.md", "docs/fuzzing.md"].contains(&source.path.as_str()) {
            findings.extend(unknown_tests(source, &sources));
        }
    }
    findings.extend(untested_codes(&sources));
    assert!(findings.is_empty(), "{} findings:\n{}", findings.len(), findings.join("\n"));
}

type Check = fn(&Source) -> Vec<String>;

#[test]
fn every_check_can_fail() {
    let mark = ["// TO", "DO: later"].concat();
    let cases: &[(Check, &str, &str, usize)] = &[
        (looks_left, "core/src/key/mod.rs", "use crate::wire::cbor;", 0),
        (looks_left, "core/src/wire/mod.rs", "use crate::wire::cbor;", 0),
        (looks_left, "core/src/wire/mod.rs", "use crate::key::KeyId;", 1),
        (looks_left, "core/src/wire.rs", "use crate::key::KeyId;", 1),
        (looks_left, "core/src/log/mod.rs", "use crate::{key, receipt::{Head, Proofs}, wire};", 1),
        (looks_left, "core/src/log/mod.rs", "fn f(x: crate::store::Store) {}", 1),
        (looks_left, "core/src/log/mod.rs", "/// See `crate::store`.", 0),
        (looks_left, "core/src/log/mod.rs", "use crate::elsewhere;", 1),
        (looks_left, "core/src/wire/tests.rs", "use crate::key::KeyId;", 0),
        (looks_left, "src/http/mod.rs", "use crate::cli;", 1),
        (is_placed, "src/util.rs", "", 1),
        (is_placed, "src/lib.rs", "", 0),
        (is_pure, "core/src/log/mod.rs", "use std::fs;", 1),
        (is_pure, "core/src/verify/mod.rs", "let now = std::time::SystemTime::now();", 1),
        (is_pure, "core/src/verify/mod.rs", "// tokio is elsewhere", 0),
        (is_pure, "core/src/verify/mod.rs", "let instantiated = 1;", 0),
        (is_pure, "src/store/mod.rs", "use std::fs;", 0),
        (is_pure, "core/src/log/tests.rs", "use std::fs;", 0),
        (has_no_leftovers, "README.md", &mark, 1),
        (has_no_leftovers, "README.md", &["AUTO", "TO", "DOS"].concat(), 0),
        (has_no_leftovers, "src/a.rs", &["#[igno", "re]"].concat(), 1),
        (has_no_leftovers, "Dockerfile", &["/ro", "ot/x"].concat(), 1),
    ];
    for (number, (check, path, text, expected)) in cases.iter().enumerate() {
        let found = check(&Source::new(path, text));
        assert_eq!(found.len(), *expected, "case {number}: {path}: {text}: {found:?}");
    }
}

#[test]
fn tests_can_be_missing() {
    let tests = || Source::new("core/src/key/tests.rs", "fn at_the_edge() {}");
    let target = || Source::new("fuzz/fuzz_targets/tile_path.rs", "");
    let page = |text: &str| Source::new("docs/fuzzing.md", text);
    let found = |text: &str| unknown_tests(&page(text), &[tests(), target()]);
    assert_eq!(found("`at_the_edge`, target `tile_path`, `did_web.enabled`, at_the_age"), [""; 0]);
    assert_eq!(
        found("| `at_the_edge`, `at_the_age` |"),
        ["docs/fuzzing.md: there is no test at_the_age"]
    );
}

#[test]
fn reasons_and_codes_can_be_missing() {
    assert_eq!(has_reasons("[dependencies]\na = \"1\" # why\n# a remark\n"), [""; 0]);
    assert_eq!(has_reasons("[dev-dependencies]\na = \"1\"\nb = \"1\" #\n").len(), 2);
    assert_eq!(has_reasons("[dependencies]\na.workspace = true\n"), [""; 0]);
    assert_eq!(has_reasons("[package]\nname = \"a\"\n"), [""; 0]);
    let error = "    pub fn code(&self) -> &str {\n        match self {\n            \
                 Self::A => \"a-b\",\n            Self::B(_) => \"c\",\n        }\n    }\n";
    let source = || Source::new("core/src/key/mod.rs", error);
    assert_eq!(codes(&source()), ["a-b", "c"]);
    assert_eq!(untested_codes(&[source()]).len(), 2);
    let test = |text: &str| Source::new("core/src/key/tests.rs", text);
    assert_eq!(
        untested_codes(&[source(), test("\"a-b\"")]),
        ["core/src/key/mod.rs: c is in no test"]
    );
    assert_eq!(untested_codes(&[source(), test("\"a-b\", \"c\"")]), [""; 0]);
    assert_eq!(untested_codes(&[source(), test("\"a-b-c\"")]).len(), 2);
    let inline = "#[cfg(test)]\nmod tests {\n    \"a-b\" \"c\"\n}\n";
    let inline = Source::new("core/src/key/mod.rs", &format!("{error}{inline}"));
    assert_eq!(untested_codes(&[inline]), [""; 0]);
}

#[test]
fn derived_codes_can_be_missing() {
    let error = "/// Why not.\n#[derive(strum::IntoStaticStr)]\n\
        #[strum(serialize_all = \"kebab-case\", prefix = \"log-\")]\npub enum Error {\n    \
        #[error(\"a {x}\")]\n    NotSign1 { x: u8 },\n    #[strum(serialize = \"odd\")]\n    Named,\n    \
        #[strum(transparent)]\n    Inner(Other),\n    Own,\n    Own2 {\n        field: u8,\n    },\n}\n\n";
    let code =
        "impl Error {\n    pub fn code(&self) -> &'static str {\n        self.into()\n    }\n}\n";
    let arm = "impl Error {\n    pub fn code(&self) -> &'static str {\n        match self {\n            \
        Self::Own => \"mine\",\n            other => other.into(),\n        }\n    }\n}\n";
    let source = |code: &str| Source::new("core/src/log/mod.rs", &format!("{error}{code}"));
    let derived = ["log-not-sign1", "log-odd", "log-own", "log-own2"];
    assert_eq!(codes(&source(code)), derived);
    assert_eq!(codes(&source(arm)), ["mine", "log-not-sign1", "log-odd", "log-own2"]);
    assert_eq!(codes(&source("")), [""; 0], "names that are no codes");
    assert_eq!(untested_codes(&[source(code)]).len(), 4);
    let tests = Source::new("core/src/log/tests.rs", &derived.map(|c| format!("{c:?}")).concat());
    assert_eq!(untested_codes(&[source(code), tests]), [""; 0]);
}

/// The names computed here are those that strum derives.
#[test]
fn derived_codes_are_read_right() {
    let error = include_str!("../../core/src/trust/did_document.rs");
    let found = codes(&Source::new("core/src/trust/did_document.rs", error));
    assert!(found.contains(&"did-document-unreadable".to_owned()), "{found:?}");
    let cbor = include_str!("../../core/src/wire/cbor/error.rs");
    let found = codes(&Source::new("core/src/wire/cbor/error.rs", cbor));
    assert_eq!(found, capstan::wire::cbor::CODES);
}
