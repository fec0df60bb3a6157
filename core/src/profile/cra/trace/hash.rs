//! The hash of a TRACE event.
//!
//! In: an event whose members follow the grammar. Out: a digest under a named
//! form. Appendix B is normative; cra-core, the Rust implementation upstream,
//! hashes another text, and its exports are recognised.

use strum::IntoStaticStr;

use super::event::Event;
use crate::wire::digest::Digest;
use crate::wire::jcs;
use crate::wire::json::Json;

/// Which text is hashed.
#[derive(Clone, Copy, Debug, Eq, IntoStaticStr, PartialEq)]
pub enum Form {
    /// What cra-core hashes: the time with `+00:00`, the payload as serde_json
    /// writes it.
    #[strum(serialize = "cra-core")]
    CraCore,
    /// Appendix B: the time as received, the payload as Python's `json.dumps`
    /// with sorted names writes it.
    #[strum(serialize = "cra-trace-v1")]
    CraTraceV1,
}

impl Form {
    /// Its name beside a digest.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The digest of an event; none if the form cannot write its payload.
    pub fn digest(self, event: &Event) -> Option<Digest> {
        let payload = self.payload(&event.payload)?;
        let time = match self {
            Self::CraCore => core_time(&event.timestamp)?,
            Self::CraTraceV1 => event.timestamp.clone(),
        };
        let sequence = event.sequence.to_string();
        let parts = [
            "1.0",
            &event.event_id,
            &event.trace_id,
            &event.span_id,
            event.parent_span_id.as_deref().unwrap_or_default(),
            &event.session_id,
            &sequence,
            &time,
            &event.event_type,
            &payload,
            &event.previous,
        ];
        Some(Digest::of_parts(&parts.map(str::as_bytes)))
    }

    /// The text of a payload; none if it has a number beyond a double or, for
    /// cra-core, which does not escape names, a name that needs escapes.
    pub fn payload(self, payload: &Json) -> Option<String> {
        let mut out = String::new();
        self.write(&mut out, payload)?;
        Some(out)
    }

    fn write(self, out: &mut String, value: &Json) -> Option<()> {
        match value {
            Json::Null => out.push_str("null"),
            Json::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Json::Number(token) => out.push_str(&self.number(token)?),
            Json::Text(text) => self.write_text(out, text),
            Json::Array(items) => {
                out.push('[');
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    self.write(out, item)?;
                }
                out.push(']');
            }
            Json::Object(members) => {
                let mut sorted: Vec<&(String, Json)> = members.iter().collect();
                sorted.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
                out.push('{');
                for (i, (name, value)) in sorted.into_iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    if self == Self::CraCore && name.contains(needs_escape) {
                        return None;
                    }
                    self.write_text(out, name);
                    out.push(':');
                    self.write(out, value)?;
                }
                out.push('}');
            }
        }
        Some(())
    }

    fn write_text(self, out: &mut String, text: &str) {
        match self {
            Self::CraTraceV1 => jcs::write_ascii(out, text),
            Self::CraCore => jcs::write_text(out, text),
        }
    }

    /// A number as the form writes it; none beyond a double.
    pub(super) fn number(self, token: &str) -> Option<String> {
        let is_whole = !token.contains(['.', 'e', 'E']);
        match self {
            Self::CraTraceV1 if token == "-0" => Some("0".to_owned()),
            Self::CraTraceV1 if is_whole => Some(token.to_owned()),
            Self::CraCore if is_whole && token != "-0" && is_64_bit(token) => {
                Some(token.to_owned())
            }
            _ => self.float(token.parse().ok().filter(|number: &f64| number.is_finite())?),
        }
    }

    /// The shortest digits that read back as the same double, laid out as
    /// Python or serde_json do.
    fn float(self, number: f64) -> Option<String> {
        let shortest = serde_json::to_string(&number).ok()?;
        Some(match self {
            // `-0.0` and `0.0`, as serde_json and Python both write them.
            Self::CraTraceV1 if number == 0.0 => shortest,
            Self::CraTraceV1 => jcs::python(&shortest),
            Self::CraCore => shortest,
        })
    }
}

fn needs_escape(c: char) -> bool {
    c < ' ' || c == '"' || c == '\\'
}

fn is_64_bit(token: &str) -> bool {
    token.parse::<u64>().is_ok() || token.parse::<i64>().is_ok()
}

/// `2024-12-28T12:00:00.123+00:00`: in UTC, with as many groups of three
/// digits as the fraction needs. No time before 1970 has a fraction here.
fn core_time(timestamp: &str) -> Option<String> {
    let time: jiff::Timestamp = timestamp.parse().ok()?;
    let nanos = u32::try_from(time.subsec_nanosecond()).ok()?;
    let whole = jiff::Timestamp::from_second(time.as_second()).ok()?.to_string();
    let fraction = match nanos {
        0 => String::new(),
        n if n.is_multiple_of(1_000_000) => format!(".{:03}", n / 1_000_000),
        n if n.is_multiple_of(1_000) => format!(".{:06}", n / 1_000),
        n => format!(".{n:09}"),
    };
    Some(format!("{}{fraction}+00:00", whole.strip_suffix('Z')?))
}
