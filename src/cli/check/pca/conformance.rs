//! `capstan pca conformance`: the evidence that PCA-SPEC 12 asks for.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::{Value, json};

use crate::cli::output::Out;
use crate::cli::{Answer, Stop, files};
use crate::profile::pca::{self, CaseResult};
use crate::wire::json::Json;
use crate::wire::printable::{Printable, printable};

#[derive(clap::Args)]
pub(in crate::cli) struct Args {
    /// Released vectors, T1 to T13, to be run beside our own
    #[arg(long, value_name = "DIR")]
    vectors: Option<PathBuf>,
}

pub(super) fn run(args: &Args, out: &Out) -> anyhow::Result<Answer> {
    let mut suites = vec![("built-in".to_owned(), pca::built_in())];
    if let Some(folder) = &args.vectors {
        suites.push((folder.display().to_string(), vectors(folder)?));
    }
    let (mut text, mut objects, mut all_pass) = (Printable::default(), Vec::new(), true);
    for (name, results) in &suites {
        text.line(printable!("PCA-TEST v1, {}", name));
        results.iter().for_each(|result| write_case(&mut text, result));
        let levels = pca::levels(results);
        for level in &levels {
            let lacking: Vec<String> = level.lacking.iter().map(|n| format!(" T{n}")).collect();
            let verdict = if level.is_passed { "pass" } else { "FAIL:" };
            let (name, lacking) = (level.level.name(), lacking.concat());
            text.line(printable!("  {:<6} {}{}", name, verdict, lacking));
        }
        all_pass &= levels.iter().all(|level| level.is_passed);
        let profiles: Vec<Value> = levels
            .iter()
            .map(
                |l| json!({ "profile": l.level.name(), "pass": l.is_passed, "lacking": l.lacking }),
            )
            .collect();
        let cases: Vec<Value> = results.iter().map(case).collect();
        objects.push(json!({ "vectors": name, "cases": cases, "profiles": profiles }));
    }
    out.answer(&json!({ "ok": all_pass, "test": "PCA-TEST v1", "suites": objects }), text)?;
    Ok(if all_pass { Answer::Yes } else { Answer::No })
}

fn case(result: &CaseResult) -> Value {
    json!({
        "test": format!("T{}", result.number),
        "name": result.name,
        "pass": result.is_passed,
        "expected": result.expected,
        "found": result.found,
        "notes": result.notes,
    })
}

fn write_case(text: &mut Printable, result: &CaseResult) {
    let (word, number) = (if result.is_passed { "pass" } else { "FAIL" }, result.number);
    text.line(printable!("  T{:<3} {}  {}: {}", number, word, result.name, result.found));
    if !result.is_passed {
        text.line(printable!("             expected {}", result.expected));
    }
    for note in &result.notes {
        text.line(printable!("             {}", note));
    }
}

fn vectors(folder: &Path) -> anyhow::Result<Vec<CaseResult>> {
    let entries = std::fs::read_dir(folder);
    let entries = entries.with_context(|| format!("cannot read {}", folder.display()))?;
    let mut results = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.starts_with('T') || !name.ends_with(".json") {
            continue;
        }
        let vector = Json::read(&files::read(&path)?);
        results.push(pca::released(&vector.with_context(|| format!("{}", path.display()))?));
    }
    if results.is_empty() {
        let what = format!("no vectors T*.json in {}", folder.display());
        return Err(Stop::failed("no-vectors", what).into());
    }
    results.sort_by_key(|result| result.number);
    Ok(results)
}
