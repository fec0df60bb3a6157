//! Settings as text: the commented default file, and the effective values.

use super::settings::{Config, SECTIONS, SETTINGS, Setting};
use super::value::Kind;
use super::{Loaded, Source};

const HEAD: &str = "\
# Settings of Capstan. Every value below is the default; remove the # to change
# one. Flags override environment variables, and variables override this file.
# `capstan config print` shows the effective values and their sources.
";

/// `capstan.toml` with every setting, its meaning and its default, all values
/// commented out so that an old file does not override new defaults.
pub fn default_file() -> String {
    let top = SETTINGS.iter().filter(|setting| !setting.name.contains('.'));
    let mut out = HEAD.to_owned();
    out.extend(top.map(entry));
    for (section, doc) in SECTIONS {
        out.push_str(&format!("\n# {doc}\n[{section}]\n"));
        let here =
            |s: &&Setting| s.name.split_once('.').is_some_and(|(first, _)| first == *section);
        out.extend(SETTINGS.iter().filter(here).map(entry));
    }
    out
}

fn entry(setting: &Setting) -> String {
    let key = setting.name.rsplit('.').next().unwrap_or(setting.name);
    let value = (setting.show)(&Config::default());
    let takes = match (setting.kind, (setting.range)()) {
        (Kind::Word(words), _) => format!("; {}", words.join(", ")),
        (_, Some((low, high))) => format!("; {low} to {high}"),
        _ => String::new(),
    };
    let (doc, variable) = (setting.doc, setting.variable());
    format!("\n# {doc}\n# ({variable}{takes})\n#{key} = {}\n", literal(setting, &value))
}

/// The value as TOML spells it.
fn literal(setting: &Setting, value: &str) -> String {
    match setting.kind {
        Kind::Whole | Kind::Boolean => value.to_owned(),
        _ => toml::Value::from(value).to_string(),
    }
}

impl Loaded {
    /// Every setting with its value and source, as TOML. A secret is shown as
    /// `(set)` in a comment, so that the output is valid input.
    pub fn print(&self) -> String {
        let line = |(name, value, source): &(&'static str, String, Source)| {
            let setting = Setting::named(name)?;
            let text = format!("{name} = {}", literal(setting, value));
            Some(match setting.kind {
                Kind::Secret if !value.is_empty() => format!("# {name} {value}  # {source}\n"),
                _ => format!("{text:<48}  # {source}\n"),
            })
        };
        self.sources.iter().filter_map(line).collect()
    }
}
