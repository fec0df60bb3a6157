//! `capstan-pca-conformance`: the evidence that PCA-SPEC 12 asks for.

mod cases;
mod fixture;
mod suite;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use capstan::cli::output::{Out, OutputArgs};
use capstan::cli::{self, CliError, Exit, files};
use capstan::wire::json::Json;
use capstan::wire::printable::{Printable, printable};
use clap::Parser;
use serde_json::{Value, json};

use suite::CaseResult;

/// Run the PCA conformance tests and print the evidence for each profile
#[derive(Parser)]
#[command(name = "capstan-pca-conformance", version, after_help = HELP, max_term_width = 100)]
struct Cli {
    /// Released vectors, T1 to T13, to be run beside our own
    #[arg(long, value_name = "DIR")]
    vectors: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
}

const HELP: &str = "Example: capstan-pca-conformance --vectors vectors-v1\n\n\
    Exit codes: 0 yes, 1 no, 2 could not answer, 3 cannot tell.";

fn main() -> ExitCode {
    ExitCode::from(cli::run_program(
        "capstan-pca-conformance",
        std::env::args_os(),
        |cli: &Cli| cli.output,
        |cli, out| run(cli.vectors.as_deref(), out),
    ))
}

fn run(released: Option<&Path>, out: &Out) -> anyhow::Result<Exit> {
    let mut suites = vec![("built-in".to_owned(), cases::built_in())];
    if let Some(folder) = released {
        suites.push((folder.display().to_string(), vectors(folder)?));
    }
    let (mut text, mut objects, mut all_pass) = (Printable::default(), Vec::new(), true);
    for (name, results) in &suites {
        text.line(printable!("PCA-TEST v1, {}", name));
        results.iter().for_each(|result| write_case(&mut text, result));
        let levels = suite::levels(results);
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
    Ok(if all_pass { Exit::Yes } else { Exit::No })
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
        results.push(suite::released(&vector.with_context(|| format!("{}", path.display()))?));
    }
    if results.is_empty() {
        let what = format!("no vectors T*.json in {}", folder.display());
        return Err(CliError::failed("no-vectors", what).into());
    }
    results.sort_by_key(|result| result.number);
    Ok(results)
}
