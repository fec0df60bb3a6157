//! Builds one `Config` from the values of all sources.
//!
//! Sources are applied in order of precedence, so the last value wins; mistakes
//! are collected.

use std::io;

use super::settings::{Config, SETTINGS, Setting};
use super::value::Kind;
use super::{Given, LoadFrom, Loaded, Mistake, Mistakes, Source, Wrong, file};
use crate::wire::text::did_you_mean;

impl Config {
    /// Reads every source; reports all mistakes if there are any. Overridden
    /// values must be valid too.
    pub fn load(from: LoadFrom<'_>) -> Result<Loaded, Mistakes> {
        let (mut given, mut mistakes) =
            from.file.map(|(label, text)| file::read(&label, &text)).unwrap_or_default();
        let (from_env, wrong_env) = read_env(from.env);
        given.extend(from_env);
        mistakes.extend(wrong_env);
        let (from_flags, wrong_flags) = read_flags(from.flags);
        given.extend(from_flags);
        mistakes.extend(wrong_flags);

        let mut draft = Draft::new();
        for value in &given {
            draft.take(value, &mut mistakes);
        }
        for secret in SETTINGS.iter().filter(|setting| setting.kind == Kind::Secret) {
            draft.take_secret_file(secret, from.read_file, &mut mistakes);
        }
        draft.check_pairs(&mut mistakes);
        mistakes.sort_by(|a, b| a.at.cmp(&b.at));
        if mistakes.is_empty() { Ok(draft.finish()) } else { Err(Mistakes(mistakes)) }
    }
}

fn read_flags(flags: Vec<(&'static str, String)>) -> (Vec<Given>, Vec<Mistake>) {
    let (mut given, mut mistakes) = (Vec::new(), Vec::new());
    for (name, text) in flags {
        let source = Source::Flag { name };
        match Setting::named(name) {
            Some(setting) => given.push(Given { setting, text, source }),
            None => {
                let wrong = Wrong::Unknown { name: name.to_owned(), suggestion: None };
                mistakes.push(Mistake { at: source, wrong });
            }
        }
    }
    (given, mistakes)
}

const PREFIX: &str = "CAPSTAN_";

/// Variables read elsewhere: the path of the settings file, and whether a
/// container creates its log.
const ELSEWHERE: &[&str] = &["CAPSTAN_CONFIG", "CAPSTAN_INIT"];

/// Reads `CAPSTAN_*` variables; unknown ones are mistakes.
fn read_env(env: Vec<(String, String)>) -> (Vec<Given>, Vec<Mistake>) {
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

/// Kubernetes and Docker set variables with our prefix for a service named
/// "capstan": `CAPSTAN_SERVICE_HOST`, `CAPSTAN_PORT` (`tcp://…`),
/// `CAPSTAN_PORT_8787_TCP_ADDR`. Those are not misspelt settings.
fn is_service_link(variable: &str, text: &str) -> bool {
    let numbered = |(_, rest): (&str, &str)| rest.starts_with(|c: char| c.is_ascii_digit());
    variable.contains("_SERVICE_HOST")
        || variable.contains("_SERVICE_PORT")
        || variable.split_once("_PORT_").is_some_and(numbered)
        || (variable.ends_with("_PORT") && text.contains("://"))
}

/// Compared without the prefix, which all names share.
fn suggestion(rest: &str) -> Option<String> {
    let known: Vec<String> = SETTINGS.iter().map(Setting::variable).collect();
    let known = || known.iter().filter_map(|variable| variable.strip_prefix(PREFIX));
    let last = |path: &str| path.rsplit("__").next().map(str::to_owned);
    let elsewhere = || known().find(|path| last(path) == last(rest));
    did_you_mean(rest, known()).or_else(elsewhere).map(|path| format!("{PREFIX}{path}"))
}

/// A configuration under construction, with the source of each value.
struct Draft {
    config: Config,
    sources: Vec<(&'static Setting, Source)>,
    warnings: Vec<String>,
}

impl Draft {
    fn new() -> Self {
        let sources = SETTINGS.iter().map(|setting| (setting, Source::Default)).collect();
        Self { config: Config::default(), sources, warnings: Vec::new() }
    }

    fn take(&mut self, given: &Given, mistakes: &mut Vec<Mistake>) {
        let Given { setting, text, source } = given;
        let strong = matches!(source, Source::Env { .. } | Source::Flag { .. });
        let wrong = if text.is_empty() && strong && setting.guards_a_secret() {
            Some(Wrong::SecretEmpty { name: setting.name })
        } else {
            (setting.set)(&mut self.config, text).is_none().then(|| Wrong::unfit(setting, text))
        };
        if let Some(wrong) = wrong {
            mistakes.push(Mistake { at: source.clone(), wrong });
        } else if setting.kind == Kind::Secret && strong {
            let hint = setting.secret_file().map(Setting::variable).unwrap_or_default();
            self.warnings.push(format!(
                "{source}: other processes may be able to read this secret; {hint} is safer"
            ));
        }
        self.came_from(setting, source);
    }

    fn came_from(&mut self, setting: &Setting, source: &Source) {
        for (row, place) in &mut self.sources {
            if row.name == setting.name {
                *place = source.clone();
            }
        }
    }

    fn source_of(&self, name: &str) -> Source {
        let found = self.sources.iter().find(|(setting, _)| setting.name == name);
        found.map_or(Source::Default, |(_, source)| source.clone())
    }

    /// A secret and its file are two forms of one setting: the source with
    /// higher precedence wins, and one source must not give both.
    fn take_secret_file(
        &mut self,
        secret: &'static Setting,
        read_file: &dyn Fn(&str) -> io::Result<String>,
        mistakes: &mut Vec<Mistake>,
    ) {
        let Some(file) = secret.secret_file() else { return };
        let path = (file.show)(&self.config);
        let (plain, source) = (self.source_of(secret.name), self.source_of(file.name));
        if path.is_empty() || plain.rank() > source.rank() {
            return;
        }
        let is_set = !(secret.show)(&self.config).is_empty();
        let wrong = if is_set && plain.rank() == source.rank() {
            Some(Wrong::SecretTwice { name: secret.name, file: file.name })
        } else {
            self.read_secret(secret, &path, read_file).err()
        };
        match wrong {
            Some(wrong) => mistakes.push(Mistake { at: source, wrong }),
            None => self.came_from(secret, &source),
        }
    }

    fn read_secret(
        &mut self,
        secret: &'static Setting,
        path: &str,
        read_file: &dyn Fn(&str) -> io::Result<String>,
    ) -> Result<(), Wrong> {
        let text = read_file(path).map_err(|error| Wrong::SecretFile {
            path: path.to_owned(),
            reason: error.to_string(),
        })?;
        // Editors and `echo` end a file with a newline.
        let text = text.trim_end_matches(['\r', '\n']);
        if text.is_empty() {
            return Err(Wrong::SecretEmpty { name: secret.name });
        }
        (secret.set)(&mut self.config, text).ok_or_else(|| Wrong::unfit(secret, text))
    }

    /// Settings that require another one.
    fn check_pairs(&self, mistakes: &mut Vec<Mistake>) {
        let Config { tls, rate, .. } = &self.config;
        let pairs = [
            ("tls.certificate", tls.certificate.is_some(), "tls.key", tls.key.is_some()),
            ("tls.key", tls.key.is_some(), "tls.certificate", tls.certificate.is_some()),
            ("rate.burst", rate.burst > 0, "rate.per_second", rate.per_second > 0),
        ];
        for (name, given, needs, there) in pairs {
            // If the other one is invalid, that is already reported.
            if given && !there && !mistakes.iter().any(|mistake| mistake.wrong.names(needs)) {
                let wrong = Wrong::Alone { name, needs };
                mistakes.push(Mistake { at: self.source_of(name), wrong });
            }
        }
    }

    fn finish(self) -> Loaded {
        let Self { config, sources, warnings } = self;
        let shown = |(setting, source): (&'static Setting, Source)| {
            (setting.name, (setting.show)(&config), source)
        };
        let sources = sources.into_iter().map(shown).collect();
        Loaded { config, sources, warnings }
    }
}
