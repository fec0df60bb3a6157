//! Which source wins, what every mistake says, and that secrets stay secret.

mod wrong;

use std::io;

use super::settings::{SETTINGS, Setting};
use super::value::Kind;
use super::*;

fn no_files(path: &str) -> io::Result<String> {
    Err(io::Error::new(io::ErrorKind::NotFound, format!("no {path} here")))
}

fn secret_files(path: &str) -> io::Result<String> {
    match path {
        "/run/token" => Ok("from-a-file\n".to_owned()),
        "/run/empty" => Ok("\n".to_owned()),
        "/run/spaced" => Ok("two words".to_owned()),
        other => no_files(other),
    }
}

fn load(
    file: &str,
    env: &[(&str, &str)],
    flags: &[(&'static str, &str)],
) -> Result<Loaded, Mistakes> {
    Config::load(LoadFrom {
        file: Some(("capstan.toml".to_owned(), file.to_owned())),
        env: env.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect(),
        flags: flags.iter().map(|(k, v)| (*k, v.to_string())).collect(),
        read_file: &secret_files,
    })
}

/// The mistakes of a configuration that must be wrong.
fn mistakes(file: &str, env: &[(&str, &str)], flags: &[(&'static str, &str)]) -> Mistakes {
    load(file, env, flags).expect_err("something is wrong")
}

#[test]
fn defaults() {
    let read_file = &no_files;
    let loaded = Config::load(LoadFrom { file: None, env: vec![], flags: vec![], read_file });
    let loaded = loaded.unwrap();
    assert_eq!(loaded.config, Config::default());
    assert!(loaded.sources.iter().all(|(_, _, source)| *source == Source::Default));
    assert_eq!(loaded.config.listen.to_string(), "127.0.0.1:8787");
    assert_eq!(loaded.config.limits.statement_bytes, 61_440);
    assert!(loaded.warnings.is_empty());
}

/// Every subset of sources, so every pair: the strongest of it holds.
#[test]
fn source_precedence() {
    for set in 0..8 {
        let (in_file, in_env, in_flag) = (set & 1 > 0, set & 2 > 0, set & 4 > 0);
        let file = if in_file { "\n[limits]\nrequest_seconds = 11\n" } else { "" };
        let env: &[_] = if in_env { &[("CAPSTAN_LIMITS__REQUEST_SECONDS", "12")] } else { &[] };
        let flags: &[_] = if in_flag { &[("limits.request_seconds", "13")] } else { &[] };
        let (expected, from) = match (in_flag, in_env, in_file) {
            (true, _, _) => (13, "flag limits.request_seconds"),
            (_, true, _) => (12, "CAPSTAN_LIMITS__REQUEST_SECONDS"),
            (_, _, true) => (11, "capstan.toml:3"),
            _ => (5, "default"),
        };
        let loaded = load(file, env, flags).unwrap();
        assert_eq!(loaded.config.limits.request_seconds, expected);
        let row = loaded.sources.iter().find(|(name, ..)| *name == "limits.request_seconds");
        let (_, shown, source) = row.unwrap();
        assert_eq!((shown.as_str(), source.to_string().as_str()), (&*expected.to_string(), from));
    }
}

/// A value that fits the setting and is not its default.
fn other_value(setting: &Setting) -> String {
    match (setting.kind, (setting.range)()) {
        (Kind::Address, _) => "[::1]:1".to_owned(),
        (Kind::Boolean, _) => ((setting.show)(&Config::default()) == "false").to_string(),
        (Kind::Path | Kind::Secret, _) => "/run/token".to_owned(),
        (Kind::Url, _) => "https://log.example/a".to_owned(),
        (Kind::Whole, range) => {
            let (low, high) = range.expect("every number has a range");
            let default = (setting.show)(&Config::default());
            if default == high { low } else { high }
        }
        (Kind::Word(words), _) => words.last().unwrap().to_string(),
    }
}

/// Each row reaches its own field, from each source, and only that one.
#[test]
fn every_source_sets_every_setting() {
    for setting in SETTINGS {
        let text = other_value(setting);
        let quoted = match setting.kind {
            Kind::Boolean | Kind::Whole => text.clone(),
            _ => format!("{text:?}"),
        };
        let mut expected = Config::default();
        (setting.set)(&mut expected, &text).unwrap();
        let paired = |config: &Config| {
            let mut config = config.clone();
            config.auth.token = None;
            config
        };
        let variable = setting.variable();
        let file = format!("{} = {quoted}", setting.name);
        for (file, env, flags) in [
            (file.as_str(), vec![], vec![]),
            ("", vec![(variable.as_str(), text.as_str())], vec![]),
            ("", vec![], vec![(setting.name, text.as_str())]),
        ] {
            match load(file, &env, &flags) {
                Ok(loaded) => assert_eq!(paired(&loaded.config), paired(&expected)),
                Err(Mistakes(found)) => {
                    assert!(matches!(found[..], [Mistake { wrong: Wrong::Alone { .. }, .. }]));
                }
            }
        }
        assert_ne!(expected, Config::default(), "{} has no effect", setting.name);
    }
}

#[test]
fn booleans_in_every_spelling() {
    let cases = [
        ("true", Some(true)),
        ("1", Some(true)),
        ("yes", Some(true)),
        ("false", Some(false)),
        ("0", Some(false)),
        ("no", Some(false)),
        ("", None),
        ("on", None),
        ("TRUE", None),
        ("2", None),
    ];
    for (text, expected) in cases {
        let loaded = load("", &[("CAPSTAN_DID_WEB__ENABLED", text)], &[]);
        assert_eq!(loaded.ok().map(|l| l.config.did_web.enabled), expected, "{text:?}");
    }
    for (text, expected) in [("true", true), ("1", true), ("\"yes\"", true), ("0", false)] {
        let loaded = load(&format!("[did_web]\nenabled = {text}"), &[], &[]).unwrap();
        assert_eq!(loaded.config.did_web.enabled, expected);
    }
    let said = mistakes("", &[("CAPSTAN_DID_WEB__ENABLED", "on")], &[]).to_string();
    assert_eq!(
        said,
        "CAPSTAN_DID_WEB__ENABLED: did_web.enabled: \"on\" is not true, false, 1, 0, yes or no\n"
    );
}

#[test]
fn all_errors_are_reported_in_order() {
    let file = "\
        listne = \"x\"\n\
        zeta = 1\n\
        [limits]\n\
        connections = 0\n\
        body_seconds = = 3\n\
        batch_bytes = true\n\
        [tls]\n\
        key = \"k\"\n";
    let env = [("CAPSTAN_LOG__LEVEL", "loud"), ("CAPSTAN_DAAT", "x"), ("HOME", "/root")];
    let said = mistakes(file, &env, &[("queue.bytes", "lots")]).to_string();
    let places: Vec<&str> = said.lines().filter_map(|line| line.split(": ").next()).collect();
    let expected = [
        "capstan.toml:1",
        "capstan.toml:2",
        "capstan.toml:4",
        "capstan.toml:5",
        "capstan.toml:6",
        "capstan.toml:8",
        "CAPSTAN_DAAT",
        "CAPSTAN_LOG__LEVEL",
        "flag queue.bytes",
    ];
    assert_eq!(places, expected, "{said}");
    assert!(said.contains("did you mean listen?") && said.contains("did you mean CAPSTAN_DATA?"));
}

#[test]
fn overridden_values_are_checked() {
    let Mistakes(found) = mistakes("log.level = \"loud\"", &[], &[("log.level", "warn")]);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].at, Source::File { label: "capstan.toml".to_owned(), line: 1 });
}

/// A broken certificate setting is one mistake, not also a lonely key.
#[test]
fn dependent_error_is_reported_once() {
    let cases: [(&str, &[(&str, &str)]); 2] = [
        ("tls.certificate = 1\ntls.key = \"k\"", &[]),
        ("tls.key = \"k\"", &[("CAPSTAN_TLS__CERTIFICATE", "\0")]),
    ];
    for (file, env) in cases {
        let Mistakes(found) = mistakes(file, env, &[]);
        assert_eq!(found.len(), 1, "{found:?}");
    }
}

/// Variables that a cluster sets for a service of our name are ignored.
#[test]
fn service_links_are_ignored() {
    let env = [
        ("CAPSTAN_SERVICE_HOST", "10.0.0.1"),
        ("CAPSTAN_SERVICE_PORT_HTTP", "8787"),
        ("CAPSTAN_PORT", "tcp://10.0.0.1:8787"),
        ("CAPSTAN_PORT_8787_TCP_ADDR", "10.0.0.1"),
        ("CAPSTAN_LOG_PORT_8787_TCP", "tcp://10.0.0.1:8787"),
        ("CAPSTAN_CONFIG", "capstan.toml"),
        ("CAPSTAN_INIT", "1"),
        ("XCAPSTAN_LISTEN", "nowhere"),
    ];
    assert_eq!(load("", &env, &[]).unwrap().config, Config::default());
}

/// Which token holds, and whether a warning is due.
#[test]
fn secret_by_value_or_file() {
    type Case<'a> = (&'a str, Vec<(&'a str, &'a str)>, Option<&'a str>, usize);
    let by_file = ("CAPSTAN_AUTH__TOKEN_FILE", "/run/token");
    let cases: [Case<'_>; 8] = [
        ("", vec![], None, 0),
        ("auth.token = \"plain\"", vec![], Some("plain"), 0),
        ("auth.token = \"\"", vec![], None, 0),
        ("auth.token_file = \"/run/token\"", vec![], Some("from-a-file"), 0),
        ("", vec![("CAPSTAN_AUTH__TOKEN", "env")], Some("env"), 1),
        ("", vec![by_file], Some("from-a-file"), 0),
        ("auth.token = \"plain\"", vec![by_file], Some("from-a-file"), 0),
        ("auth.token_file = \"/gone\"", vec![("CAPSTAN_AUTH__TOKEN", "env")], Some("env"), 1),
    ];
    for (file, env, expected, warnings) in cases {
        let loaded = load(file, &env, &[]).unwrap();
        let token = &loaded.config.auth.token;
        assert_eq!(token.is_some(), expected.is_some(), "{file} {env:?}");
        if let (Some(token), Some(expected)) = (token, expected) {
            assert!(token.is(expected.as_bytes()) && !token.is(b"other") && !token.is(b""));
        }
        assert_eq!(loaded.warnings.len(), warnings, "{file} {env:?}");
    }
}

#[test]
fn secrets_are_redacted() {
    let env = [("CAPSTAN_AUTH__TOKEN", "s3cret")];
    let loaded = load("", &env, &[]).unwrap();
    let print = loaded.print();
    assert!(!format!("{loaded:?}{print}").contains("s3cret"));
    assert!(print.contains("# auth.token (set)  # CAPSTAN_AUTH__TOKEN\n"), "{print}");
    assert!(loaded.warnings[0].contains("CAPSTAN_AUTH__TOKEN_FILE is safer"));

    let wrong = [("CAPSTAN_AUTH__TOKEN", "s3cret\n"), ("CAPSTAN_DATA", "\0")];
    let found = mistakes("", &wrong, &[]);
    assert!(!format!("{found}{found:?}").contains("s3cret"));
    for line in ["token = \"s3cret", "token = s3cret", "token = 's3cret\"", "token \"s3cret\""] {
        let found = mistakes(&format!("[auth]\n{line}\n"), &[], &[]);
        assert!(!format!("{found}{found:?}").contains("s3cret"), "{line}: {found}");
    }
}

/// The comparison takes the same time wherever two texts differ; that it
/// takes all of them into account is seen here.
#[test]
fn token_comparison_is_exact() {
    let loaded = load("auth.token = \"correct-horse\"", &[], &[]).unwrap();
    let token = loaded.config.auth.token.unwrap();
    assert!(token.is(b"correct-horse"));
    let others: [&[u8]; 8] = [
        b"",
        b"c",
        b"correct-hors",
        b"correct-horse ",
        b"correct-horse\0",
        b"Correct-horse",
        b"correct-hors\xe5",
        b"correct-horsecorrect-horse",
    ];
    for other in others {
        assert!(!token.is(other), "{other:?}");
    }
    for at in 0.."correct-horse".len() {
        let mut other = b"correct-horse".to_vec();
        other[at] ^= 1;
        assert!(!token.is(&other), "byte {at}");
    }
}

#[test]
fn printed_config_is_readable() {
    let file = "data = 'C:\\log \"a\"'\n[limits]\nconnections = 0x10\n";
    let loaded = load(file, &[("CAPSTAN_GUARD__EVERY_BATCH", "yes")], &[]).unwrap();
    assert_eq!(loaded.config.limits.connections, 16);
    let print = loaded.print();
    assert!(print.contains("# capstan.toml:3\n") && print.contains("# default\n"));
    assert_eq!(load(&print, &[], &[]).unwrap().config, loaded.config);
}

#[test]
fn default_file_has_every_default() {
    let file = default_file();
    assert_eq!(load(&file, &[], &[]).unwrap().config, Config::default());

    let values = |line: &str| match line.strip_prefix('#') {
        Some(rest) if rest.starts_with(|c: char| c.is_ascii_lowercase()) => format!("{rest}\n"),
        _ => format!("{line}\n"),
    };
    let all: String = file.lines().map(values).collect();
    let loaded = load(&all, &[], &[]).unwrap();
    assert_eq!(loaded.config, Config::default());
    for (name, _, source) in &loaded.sources {
        assert!(matches!(source, Source::File { .. }), "{name} is not in the file");
    }
    assert!(file.lines().all(|line| line.len() <= 100), "a line is too long");
}

#[test]
fn default_file_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/capstan.toml");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(path, default_file()).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(committed, default_file(), "UPDATE_EXPECT=1 rewrites docs/capstan.toml");
}
