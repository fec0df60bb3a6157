//! Settings for the verbs that need them: file, variables, flags.

use std::path::{Path, PathBuf};

use super::{CliError, files};
use crate::config::{Config, LoadFrom, Loaded};
use crate::wire::printable::{Printable, printable};

/// Variables with our prefix that belong to other verbs.
const NOT_SETTINGS: [&str; 5] =
    ["CAPSTAN_TRUST", "CAPSTAN_TOKEN", "CAPSTAN_OUTBOX", "CAPSTAN_URL", "CAPSTAN_CA"];

/// The code of settings that cannot be used.
pub(super) const INVALID: &str = "config";

/// What the command line says about settings.
#[derive(Default)]
pub(super) struct Given<'a> {
    pub(super) data: Option<&'a Path>,
    pub(super) config: Option<&'a Path>,
    pub(super) listen: Option<String>,
}

/// Loads `--config`, or `capstan.toml` in the data directory; a file that
/// was asked for must be there.
pub(super) fn load(given: &Given<'_>) -> anyhow::Result<Loaded> {
    let mut flags = Vec::new();
    flags.extend(given.data.map(|data| ("data", data.display().to_string())));
    flags.extend(given.listen.clone().map(|listen| ("listen", listen)));
    let file = match config_path(given) {
        Some(path) => Some((path.display().to_string(), files::read_text(&path)?)),
        None => None,
    };
    let ours = |(name, _): &(String, String)| !NOT_SETTINGS.contains(&name.as_str());
    let env = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let env = env.filter(ours).collect();
    let read_file = |path: &str| std::fs::read_to_string(path);
    let loaded = Config::load(LoadFrom { file, env, flags, read_file: &read_file });
    loaded.map_err(|mistakes| {
        let mut lines = Printable::default();
        mistakes.0.iter().for_each(|mistake| lines.line(printable!("  {}", mistake)));
        CliError::failed(INVALID, "the settings have mistakes").details(lines).into()
    })
}

/// The settings of the user who runs a client verb: `$CAPSTAN_CONFIG`, or the
/// file in the user's own directory.
pub(super) fn of_the_user() -> Option<PathBuf> {
    let own = || Some(files::user_directory()?.join("capstan.toml"));
    files::variable("CAPSTAN_CONFIG").or_else(own)
}

fn config_path(given: &Given<'_>) -> Option<PathBuf> {
    let asked_for = given.config.map(Path::to_owned).or_else(|| files::variable("CAPSTAN_CONFIG"));
    asked_for.or_else(|| {
        let data = given.data.map(Path::to_owned).or_else(|| files::variable("CAPSTAN_DATA"))?;
        Some(data.join("capstan.toml")).filter(|path| path.exists())
    })
}
