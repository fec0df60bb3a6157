//! Every kind of mistake, with its place and its words.

use std::collections::BTreeSet;

use super::*;

/// One mistake, as `place: message` with its code.
struct Case {
    file: &'static str,
    env: &'static [(&'static str, &'static str)],
    flags: &'static [(&'static str, &'static str)],
    code: &'static str,
    says: &'static str,
}

const fn in_file(file: &'static str, code: &'static str, says: &'static str) -> Case {
    Case { file, env: &[], flags: &[], code, says }
}

const fn in_env(
    env: &'static [(&'static str, &'static str)],
    code: &'static str,
    says: &'static str,
) -> Case {
    Case { file: "", env, flags: &[], code, says }
}

const CASES: &[Case] = &[
    in_file(
        "\n\n[tls]\nkey = \"k\"",
        "config-alone",
        "capstan.toml:4: tls.key needs tls.certificate as well",
    ),
    in_env(
        &[("CAPSTAN_TLS__CERTIFICATE", "c")],
        "config-alone",
        "CAPSTAN_TLS__CERTIFICATE: tls.certificate needs tls.key as well",
    ),
    in_file(
        "rate.burst = 5",
        "config-alone",
        "capstan.toml:1: rate.burst needs rate.per_second as well",
    ),
    in_env(
        &[("CAPSTAN_AUTH__TOKEN", "")],
        "config-secret-empty",
        "CAPSTAN_AUTH__TOKEN: auth.token is empty; remove it if none is wanted",
    ),
    in_env(
        &[("CAPSTAN_AUTH__TOKEN_FILE", "")],
        "config-secret-empty",
        "CAPSTAN_AUTH__TOKEN_FILE: auth.token_file is empty; remove it if none is wanted",
    ),
    in_env(
        &[("CAPSTAN_AUTH__TOKEN_FILE", "/run/empty")],
        "config-secret-empty",
        "CAPSTAN_AUTH__TOKEN_FILE: auth.token is empty; remove it if none is wanted",
    ),
    in_file(
        "[auth]\ntoken_file = \"/gone\"",
        "config-secret-file",
        "capstan.toml:2: cannot read /gone: no /gone here",
    ),
    in_file(
        "[auth]\ntoken = \"t\"\ntoken_file = \"/run/token\"",
        "config-secret-twice",
        "capstan.toml:3: auth.token and auth.token_file are both given; leave one out",
    ),
    in_env(
        &[("CAPSTAN_AUTH__TOKEN", "t"), ("CAPSTAN_AUTH__TOKEN_FILE", "/run/token")],
        "config-secret-twice",
        "CAPSTAN_AUTH__TOKEN_FILE: auth.token and auth.token_file are both given; leave one out",
    ),
    in_file("listen = \"[::1]:1\"\ndata = \n", "config-syntax", "capstan.toml:2: not valid TOML: "),
    in_file(
        "data = \"a\"\ndata = \"b\"",
        "config-syntax",
        "capstan.toml:2: not valid TOML: duplicate key",
    ),
    in_file(
        "listen = 8787",
        "config-type",
        "capstan.toml:1: listen: expected string, found integer",
    ),
    in_file("limits = 3", "config-type", "capstan.toml:1: limits: expected table, found integer"),
    in_file("[[limits]]", "config-type", "capstan.toml:1: limits: expected table, found array"),
    in_file(
        "[listen]\nport = 1",
        "config-type",
        "capstan.toml:1: listen: expected string, found table",
    ),
    in_file(
        "limits.connections = \"9\"",
        "config-type",
        "capstan.toml:1: limits.connections: expected integer, found string",
    ),
    in_file(
        "limits.connections = 1.5",
        "config-type",
        "capstan.toml:1: limits.connections: expected integer, found float",
    ),
    in_file(
        "metrics.public = []",
        "config-type",
        "capstan.toml:1: metrics.public: expected boolean, found array",
    ),
    in_file(
        "listen = \"localhost\"",
        "config-unfit",
        "capstan.toml:1: listen: \"localhost\" is not an address with a port, such as 127.0.0.1:8787",
    ),
    in_file(
        "public_url = \"javascript:x\"",
        "config-unfit",
        "capstan.toml:1: public_url: \"javascript:x\" is not an address that begins with https:// or http://",
    ),
    in_file(
        "limits.statement_bytes = 61_441",
        "config-unfit",
        "capstan.toml:1: limits.statement_bytes: \"61441\" is not a whole number from 1024 to 61440",
    ),
    in_file("limits.statement_bytes = -0x1", "config-syntax", "capstan.toml:1: not valid TOML: "),
    in_file(
        "limits.statement_bytes = -1",
        "config-unfit",
        "capstan.toml:1: limits.statement_bytes: \"-1\" is not a whole number from 1024 to 61440",
    ),
    in_env(
        &[("CAPSTAN_LIMITS__CONNECTIONS", "many")],
        "config-unfit",
        "CAPSTAN_LIMITS__CONNECTIONS: limits.connections: \"many\" is not a whole number from 1 to 1000000",
    ),
    in_env(
        &[("CAPSTAN_QUEUE__BATCH_MAX", "0")],
        "config-unfit",
        "CAPSTAN_QUEUE__BATCH_MAX: queue.batch_max: \"0\" is not a whole number from 1 to 16384",
    ),
    in_env(
        &[("CAPSTAN_DATA", "a\0b")],
        "config-unfit",
        "CAPSTAN_DATA: data: \"a\\0b\" is not a path",
    ),
    in_file(
        "log.format = \"xml\"",
        "config-unfit",
        "capstan.toml:1: log.format: \"xml\" is not one of text, json",
    ),
    in_env(
        &[("CAPSTAN_AUTH__TOKEN", "s3cret word")],
        "config-unfit",
        "CAPSTAN_AUTH__TOKEN: auth.token: the value is not printable ASCII without spaces",
    ),
    in_env(
        &[("CAPSTAN_AUTH__TOKEN_FILE", "/run/spaced")],
        "config-unfit",
        "CAPSTAN_AUTH__TOKEN_FILE: auth.token: the value is not printable ASCII without spaces",
    ),
    Case {
        file: "",
        env: &[],
        flags: &[("log.level", "loud")],
        code: "config-unfit",
        says: "flag log.level: log.level: \"loud\" is not one of error, warn, info, debug, trace",
    },
    in_file(
        "\n[limits]\nstatment_bytes = 1",
        "config-unknown",
        "capstan.toml:3: there is no setting limits.statment_bytes, did you mean limits.statement_bytes?",
    ),
    in_file(
        "statement_bytes = 1",
        "config-unknown",
        "capstan.toml:1: there is no setting statement_bytes, did you mean limits.statement_bytes?",
    ),
    in_file(
        "[limit]\nstatement_bytes = 1\nconnections = 2",
        "config-unknown",
        "capstan.toml:1: there is no setting limit, did you mean limits?",
    ),
    in_file("[xyzzy]\nplugh = 1", "config-unknown", "capstan.toml:1: there is no setting xyzzy"),
    in_file(
        "\"limits.connections\" = 1",
        "config-unknown",
        "capstan.toml:1: there is no setting \"limits.connections\", did you mean limits.connections?",
    ),
    in_env(
        &[("CAPSTAN_LIMITS_STATEMENT_BYTES", "1")],
        "config-unknown",
        "CAPSTAN_LIMITS_STATEMENT_BYTES: there is no setting CAPSTAN_LIMITS_STATEMENT_BYTES, did you mean CAPSTAN_LIMITS__STATEMENT_BYTES?",
    ),
    in_env(
        &[("CAPSTAN_INTERVAL_MS", "1")],
        "config-unknown",
        "CAPSTAN_INTERVAL_MS: there is no setting CAPSTAN_INTERVAL_MS, did you mean CAPSTAN_CHECKPOINT__INTERVAL_MS?",
    ),
    in_env(
        &[("CAPSTAN_PORT", "8080")],
        "config-unknown",
        "CAPSTAN_PORT: there is no setting CAPSTAN_PORT",
    ),
    Case {
        file: "",
        env: &[],
        flags: &[("limits.nothing", "1")],
        code: "config-unknown",
        says: "flag limits.nothing: there is no setting limits.nothing",
    },
];

#[test]
fn errors_name_source_and_problem() {
    for case in CASES {
        let Mistakes(found) = mistakes(case.file, case.env, case.flags);
        let [mistake] = &found[..] else { panic!("{}: {found:?}", case.says) };
        let said = mistake.to_string();
        assert_eq!(mistake.wrong.code(), case.code, "{said}");
        let prefix_only = case.code == "config-syntax";
        assert!(said == case.says || prefix_only && said.starts_with(case.says), "{said}");
    }
    let codes: BTreeSet<_> = CASES.iter().map(|case| case.code).collect();
    assert_eq!(codes.len(), 8, "a kind of mistake has no case: {codes:?}");
}
