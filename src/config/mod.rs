//! Settings: flags override variables, variables the file, the file defaults.
//!
//! In: the text of a file, variables, flags, and a way to read secret files.
//! Out: a `Config` and the source of each value, or every mistake at once. The
//! table in `settings` is the only list of settings.

mod file;
mod load;
mod print;
mod settings;
#[cfg(test)]
mod tests;
mod value;

use std::{fmt, io};

use settings::Setting;
use value::Kind;

pub use print::default_file;
pub use settings::{
    Auth, Checkpoint, Client, Config, DidWeb, Disk, Guard, Limits, Log, MetricsAccess, Pacr, Queue,
    Rate, Scrub, Shutdown, Tls,
};
pub use value::{LogFormat, LogLevel, Secret, Url};

/// The sources of settings.
pub struct LoadFrom<'a> {
    /// The name of the file for messages, and its text.
    pub file: Option<(String, String)>,
    /// The environment; names without our prefix are ignored.
    pub env: Vec<(String, String)>,
    /// Setting names with their values, from the command line.
    pub flags: Vec<(&'static str, String)>,
    /// How to read the files that hold secrets.
    pub read_file: &'a dyn Fn(&str) -> io::Result<String>,
}

/// A valid configuration.
#[derive(Debug)]
pub struct Loaded {
    /// The values.
    pub config: Config,
    /// Name, displayed value and source of every setting.
    pub sources: Vec<(&'static str, String, Source)>,
    /// Valid settings that are not advisable.
    pub warnings: Vec<String>,
}

/// Where a value came from, lowest precedence first.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Source {
    /// Not set.
    Default,
    /// A line of the settings file.
    File { label: String, line: usize },
    /// An environment variable.
    Env { variable: String },
    /// The command line.
    Flag { name: &'static str },
}

impl Source {
    fn rank(&self) -> u8 {
        match self {
            Self::Default => 0,
            Self::File { .. } => 1,
            Self::Env { .. } => 2,
            Self::Flag { .. } => 3,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { label, line } => write!(f, "{label}:{line}"),
            Self::Env { variable } => f.write_str(variable),
            Self::Flag { name } => write!(f, "flag {name}"),
        }
    }
}

/// One value that one source gives to one setting.
struct Given {
    setting: &'static Setting,
    text: String,
    source: Source,
}

/// Everything that is wrong with a configuration, one line each.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Mistakes(pub Vec<Mistake>);

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|mistake| writeln!(f, "{mistake}"))
    }
}

impl std::error::Error for Mistakes {}

/// One mistake and its place.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{at}: {wrong}")]
pub struct Mistake {
    /// The line, variable or flag.
    pub at: Source,
    /// What is wrong there.
    pub wrong: Wrong,
}

fn suggest(suggestion: &Option<String>) -> String {
    suggestion.as_ref().map(|word| format!(", did you mean {word}?")).unwrap_or_default()
}

/// What can be wrong with a setting.
#[derive(Clone, Debug, Eq, PartialEq, strum::IntoStaticStr, thiserror::Error)]
#[non_exhaustive]
#[strum(serialize_all = "kebab-case", prefix = "config-")]
pub enum Wrong {
    /// A setting that needs another one beside it.
    #[error("{name} needs {needs} as well")]
    Alone { name: &'static str, needs: &'static str },
    /// An empty secret, which would disable a protection.
    #[error("{name} is empty; remove it if none is wanted")]
    SecretEmpty { name: &'static str },
    /// The file of a secret cannot be read.
    #[error("cannot read {path}: {reason}")]
    SecretFile { path: String, reason: String },
    /// A secret given both as a value and by file.
    #[error("{name} and {file} are both given; leave one out")]
    SecretTwice { name: &'static str, file: &'static str },
    /// The line is not TOML.
    #[error("not valid TOML: {message}")]
    Syntax { message: String },
    /// A TOML value of another type.
    #[error("{name}: expected {expected}, found {found}")]
    Type { name: String, expected: &'static str, found: &'static str },
    /// The value is not what the setting takes.
    #[error("{name}: {value} is not {expected}")]
    Unfit { name: &'static str, value: String, expected: String },
    /// No setting has this name.
    #[error("there is no setting {name}{}", suggest(suggestion))]
    Unknown { name: String, suggestion: Option<String> },
}

impl Wrong {
    fn unfit(setting: &'static Setting, text: &str) -> Self {
        let secret = setting.kind == Kind::Secret;
        let value = if secret { "the value".to_owned() } else { format!("{text:?}") };
        Self::Unfit { name: setting.name, value, expected: setting.expected() }
    }

    /// Whether this is about that setting.
    fn names(&self, setting: &str) -> bool {
        match self {
            Self::Type { name, .. } => name == setting,
            Self::Unfit { name, .. } => *name == setting,
            _ => false,
        }
    }

    /// The stable code of this mistake.
    pub fn code(&self) -> &'static str {
        self.into()
    }
}
