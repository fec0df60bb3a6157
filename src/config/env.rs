//! Reads `CAPSTAN_*` variables.
//!
//! In: the environment as pairs. Out: what it sets, and every variable that
//! looks like ours and is not.

use super::settings::{SETTINGS, Setting};
use super::{Given, Mistake, Source, Wrong};
use crate::wire::text::did_you_mean;

const PREFIX: &str = "CAPSTAN_";

/// Variables of the command line that are no settings: the path of the file,
/// and the wish of a container to create its log.
const ELSEWHERE: &[&str] = &["CAPSTAN_CONFIG", "CAPSTAN_INIT"];

/// What the environment sets, and what is wrong with it.
pub(super) fn read(env: Vec<(String, String)>) -> (Vec<Given>, Vec<Mistake>) {
    let (mut given, mut mistakes) = (Vec::new(), Vec::new());
    for (variable, text) in env {
        let Some(rest) = variable.strip_prefix(PREFIX) else { continue };
        if ELSEWHERE.contains(&variable.as_str()) || is_service_link(&variable, &text) {
            continue;
        }
        let setting = SETTINGS.iter().find(|setting| setting.variable() == variable);
        let suggestion = setting.is_none().then(|| suggestion(rest)).flatten();
        let source = Source::Env { variable: variable.clone() };
        match setting {
            Some(setting) => given.push(Given { setting, text, source }),
            None => {
                let wrong = Wrong::Unknown { name: variable, suggestion };
                mistakes.push(Mistake { at: source, wrong });
            }
        }
    }
    (given, mistakes)
}

/// Kubernetes and Docker tell a container about a service named "capstan" in
/// variables with our prefix: `CAPSTAN_SERVICE_HOST`, `CAPSTAN_PORT`
/// (`tcp://…`), `CAPSTAN_PORT_8787_TCP_ADDR`. Nobody mistyped those.
fn is_service_link(variable: &str, text: &str) -> bool {
    let numbered = |(_, rest): (&str, &str)| rest.starts_with(|c: char| c.is_ascii_digit());
    variable.contains("_SERVICE_HOST")
        || variable.contains("_SERVICE_PORT")
        || variable.split_once("_PORT_").is_some_and(numbered)
        || (variable.ends_with("_PORT") && text.contains("://"))
}

/// Without the prefix, which would make everything look alike.
fn suggestion(rest: &str) -> Option<String> {
    let known: Vec<String> = SETTINGS.iter().map(Setting::variable).collect();
    let known = || known.iter().filter_map(|variable| variable.strip_prefix(PREFIX));
    let last = |path: &str| path.rsplit("__").next().map(str::to_owned);
    let elsewhere = || known().find(|path| last(path) == last(rest));
    did_you_mean(rest, known()).or_else(elsewhere).map(|path| format!("{PREFIX}{path}"))
}
