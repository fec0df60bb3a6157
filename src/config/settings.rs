//! The table of settings: name, type, default, range and meaning, once.
//!
//! It generates the typed `Config`, the readers of every source, the variable
//! names, and the commented default file.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;

use super::value::{Kind, LogFormat, LogLevel, Secret, Url, Value};
use crate::profile::pacr::{PAYLOAD_BYTES_MAX, PREDECESSORS_MAX};
use crate::wire::limits::{
    BATCH_BYTES_MAX, BATCH_STATEMENTS_MAX, STATEMENT_BYTES_MAX, WORK_BYTES, WORK_BYTES_MIN,
    WORK_STATEMENTS,
};

/// One row of the table.
pub(super) struct Setting {
    pub(super) name: &'static str,
    pub(super) doc: &'static str,
    pub(super) kind: Kind,
    pub(super) range: fn() -> Option<(String, String)>,
    /// Sets the field; `None` when the text is not a valid value.
    pub(super) set: fn(&mut Config, &str) -> Option<()>,
    pub(super) show: fn(&Config) -> String,
}

fn bounds<T: ToString>(range: RangeInclusive<T>) -> (String, String) {
    (range.start().to_string(), range.end().to_string())
}

macro_rules! row {
    ($name:expr, $doc:expr, $($field:ident).+, $Type:ty $(, $range:expr)?) => {
        Setting {
            name: $name,
            doc: $doc.trim_ascii(),
            kind: <$Type as Value>::KIND,
            range: || None$(.or(Some(bounds::<$Type>($range))))?,
            set: |config, text| {
                let value = <$Type as Value>::read(text)?;
                $(if !RangeInclusive::<$Type>::contains(&$range, &value) {
                    return None;
                })?
                config.$($field).+ = value;
                Some(())
            },
            show: |config| Value::show(&config.$($field).+),
        }
    };
}

/// Generates the structs with their defaults, and `SETTINGS`.
macro_rules! settings {
    (
        $(#[doc = $config_doc:literal])+
        Config { $($(#[doc = $top_doc:literal])+
            $top:ident: $Top:ty = $top_default:expr $(, in $top_range:expr)?;)+ }
        $($(#[doc = $section_doc:literal])+
        $section:ident: $Section:ident { $($(#[doc = $doc:literal])+
            $field:ident: $Type:ty = $default:expr $(, in $range:expr)?;)+ })+
    ) => {
        $(#[doc = $config_doc])+
        #[derive(Clone, Debug, PartialEq)]
        pub struct Config {
            $($(#[doc = $top_doc])+ pub $top: $Top,)+
            $($(#[doc = $section_doc])+ pub $section: $Section,)+
        }

        impl Default for Config {
            fn default() -> Self {
                Self { $($top: $top_default,)+ $($section: $Section::default(),)+ }
            }
        }

        $($(#[doc = $section_doc])+
        #[derive(Clone, Debug, PartialEq)]
        pub struct $Section { $($(#[doc = $doc])+ pub $field: $Type,)+ }

        impl Default for $Section {
            fn default() -> Self {
                Self { $($field: $default,)+ }
            }
        })+

        /// The sections with their descriptions, in the order of the file.
        pub(super) static SECTIONS: &[(&str, &str)] =
            &[$((stringify!($section), concat!($($section_doc),+).trim_ascii())),+];

        /// Every setting, in the order of the file.
        pub(super) static SETTINGS: &[Setting] = &[
            $(row!(stringify!($top), concat!($($top_doc),+), $top, $Top $(, $top_range)?),)+
            $($(row!(
                concat!(stringify!($section), ".", stringify!($field)),
                concat!($($doc),+), $section.$field, $Type $(, $range)?
            ),)+)+
        ];
    };
}

settings! {
    /// All settings. `Config::default()` is a log on loopback without a data
    /// directory.
    Config {
        /// Address and port to listen on.
        listen: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8787);
        /// Directory that holds the log.
        data: Option<PathBuf> = None;
        /// Public address of this log, for links.
        public_url: Option<Url> = None;
    }
    /// Log output of the process.
    log: Log {
        /// Lowest severity that is written.
        level: LogLevel = LogLevel::Info;
        /// Format of a line: text or json.
        format: LogFormat = LogFormat::Text;
    }
    /// Limits for one client.
    limits: Limits {
        /// Largest Signed Statement accepted, in bytes.
        statement_bytes: usize = STATEMENT_BYTES_MAX, in 1024..=STATEMENT_BYTES_MAX;
        /// Seconds a registration may wait for its receipt before it is answered with 202.
        request_seconds: u64 = 5, in 1..=300;
        /// Largest request head accepted, in bytes.
        header_bytes: usize = 16_384, in 8192..=1_048_576;
        /// Seconds a client may take to send the request head.
        header_seconds: u64 = 10, in 1..=300;
        /// Seconds a client may take to send the body.
        body_seconds: u64 = 30, in 1..=3600;
        /// Seconds a client may stop reading its response.
        answer_seconds: u64 = 30, in 1..=3600;
        /// Most open connections.
        connections: usize = 12_000, in 1..=1_000_000;
        /// Most concurrent requests on one HTTP/2 connection.
        streams_per_connection: u32 = 100, in 1..=1000;
        /// Most concurrent requests of one address, over all its connections.
        requests_per_address: usize = 1024, in 1..=1_000_000;
        /// Most statements in one batch request.
        batch_statements: usize = BATCH_STATEMENTS_MAX, in 1..=BATCH_STATEMENTS_MAX;
        /// Largest batch request accepted, in bytes.
        batch_bytes: usize = BATCH_BYTES_MAX, in 1024..=BATCH_BYTES_MAX;
    }
    /// Size limits of new causal records; records in the log are not affected.
    pacr: Pacr {
        /// Most predecessors of one record.
        predecessors: usize = PREDECESSORS_MAX, in 1..=PREDECESSORS_MAX;
        /// Largest payload of one record, in bytes, with its intervention tag.
        payload_bytes: usize = PAYLOAD_BYTES_MAX, in 64..=PAYLOAD_BYTES_MAX;
    }
    /// Work in progress; beyond these limits requests get 503 without being read.
    work: Work {
        /// Most statements between arrival and response.
        statements: usize = WORK_STATEMENTS, in 1..=1_048_576;
        /// Most bytes of requests and responses in memory, over all clients.
        bytes: usize = WORK_BYTES, in WORK_BYTES_MIN..=4_294_967_295;
    }
    /// Cost limits of one search, story, lineage or bundle.
    reads: Reads {
        /// Most statements it reads; beyond that the response is marked as truncated.
        nodes: usize = 10_000, in 256..=10_000_000;
        /// Most links it follows and index entries it examines.
        edges: usize = 50_000, in 8192..=100_000_000;
        /// Most bytes of statements it reads, and of a PROV document it writes.
        bytes: usize = 8_388_608, in 4_194_304..=1_073_741_824;
        /// Most of these reads at once.
        at_once: usize = 4, in 1..=256;
        /// Most of these reads at once for one address.
        per_address: usize = 2, in 1..=256;
        /// Milliseconds one may wait for a free slot before it gets 503.
        wait_ms: u64 = 1000, in 0..=60_000;
    }
    /// Statements waiting for the next commit; beyond these limits requests get 503.
    queue: Queue {
        /// Most waiting statements.
        statements: usize = 8192, in 1..=1_048_576;
        /// Most waiting bytes.
        bytes: usize = 67_108_864, in 1024..=4_294_967_295;
        /// Most statements in one commit.
        batch_max: usize = 1024, in 1..=16_384;
    }
    /// Rate limits per address; IPv6 clients are counted by their /64 network.
    rate: Rate {
        /// Registrations per second for one address; 0 is no limit.
        per_second: u32 = 0, in 0..=1_000_000;
        /// Registrations one address may make at once; 0 is the same as per_second.
        burst: u32 = 0, in 0..=1_000_000;
        /// Reads per second for one address, a search counts as ten; 0 is no limit.
        reads_per_second: u32 = 0, in 0..=1_000_000;
        /// Reads one address may make at once; 0 is the same as reads_per_second.
        reads_burst: u32 = 0, in 0..=1_000_000;
        /// Whether X-Forwarded-For names the client; only behind a proxy that sets it.
        trust_forwarded_for: bool = false;
    }
    /// Who may write.
    auth: Auth {
        /// Bearer token that writes must carry; without one, policy alone decides.
        token: Option<Secret> = None;
        /// File that holds the bearer token; give this or the token, not both.
        token_file: Option<PathBuf> = None;
    }
    /// Serving HTTPS without a proxy; needs both files.
    tls: Tls {
        /// PEM file with the certificate chain, leaf first.
        certificate: Option<PathBuf> = None;
        /// PEM file with the private key of the certificate.
        key: Option<PathBuf> = None;
    }
    /// Publication of the signed tree head.
    checkpoint: Checkpoint {
        /// Milliseconds between checkpoints, if the tree has grown.
        interval_ms: u64 = 1000, in 10..=3_600_000;
    }
    /// The record of the last signed head, which detects a restored old copy.
    guard: Guard {
        /// Guard file, best on another disk; by default beside the data directory.
        path: Option<PathBuf> = None;
        /// Whether the guard is written at every commit instead of every checkpoint.
        every_batch: bool = false;
    }
    /// Rereading the log in the background, to find damage early.
    scrub: Scrub {
        /// Bytes read per second, on average; 0 disables it.
        bytes_per_second: u64 = 1_048_576, in 0..=1_073_741_824;
    }
    /// When the disk counts as full.
    disk: Disk {
        /// Free bytes below which the log is read-only.
        min_free_bytes: u64 = 268_435_456, in 0..=1_125_899_906_842_624;
    }
    /// Fetching issuer keys for did:web, the only outgoing requests of the log.
    did_web: DidWeb {
        /// Whether did:web issuers are resolved.
        enabled: bool = false;
        /// Milliseconds one fetch may take.
        timeout_ms: u64 = 2000, in 10..=60_000;
        /// Seconds a fetched document is cached.
        cache_seconds: u64 = 300, in 0..=86_400;
        /// Whether private addresses are allowed; for tests and closed networks.
        allow_private: bool = false;
    }
    /// Who may read the metrics.
    metrics: MetricsAccess {
        /// Whether /metrics answers without the bearer token.
        public: bool = true;
    }
    /// The log that client commands use, in the settings of a user.
    client: Client {
        /// Address of the log.
        url: Option<Url> = None;
        /// PEM file with the only CA certificates to trust for its TLS.
        ca: Option<PathBuf> = None;
    }
    /// Graceful shutdown.
    shutdown: Shutdown {
        /// Seconds for open requests to finish.
        grace_seconds: u64 = 10, in 0..=3600;
    }
}

impl Setting {
    /// The row of that name.
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        SETTINGS.iter().find(|setting| setting.name == name)
    }

    /// The environment variable: `CAPSTAN_LIMITS__STATEMENT_BYTES`.
    pub(super) fn variable(&self) -> String {
        format!("CAPSTAN_{}", self.name.replace('.', "__").to_uppercase())
    }

    /// The row of the file that may hold this secret, for secrets.
    pub(super) fn secret_file(&self) -> Option<&'static Self> {
        (self.kind == Kind::Secret).then(|| Self::named(&format!("{}_file", self.name)))?
    }

    /// Whether an empty value would silently disable a protection.
    pub(super) fn guards_a_secret(&self) -> bool {
        let names_it = |s: &Self| s.secret_file().is_some_and(|file| file.name == self.name);
        self.kind == Kind::Secret || SETTINGS.iter().any(names_it)
    }

    /// The valid values, to follow "is not" in a message.
    pub(super) fn expected(&self) -> String {
        match (self.kind, (self.range)()) {
            (Kind::Whole, Some((low, high))) => format!("a whole number from {low} to {high}"),
            (Kind::Whole, None) => "a whole number".to_owned(),
            (Kind::Address, _) => "an address with a port, such as 127.0.0.1:8787".to_owned(),
            (Kind::Boolean, _) => "true, false, 1, 0, yes or no".to_owned(),
            (Kind::Path, _) => "a path".to_owned(),
            (Kind::Secret, _) => "printable ASCII without spaces".to_owned(),
            (Kind::Url, _) => "an address that begins with https:// or http://".to_owned(),
            (Kind::Word(words), _) => format!("one of {}", words.join(", ")),
        }
    }
}
