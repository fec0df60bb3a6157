//! The README's walk-through works as it is printed.
//!
//! Every `console` block is run by a shell, in order, in one directory. Only
//! the port of the log differs. Output is compared line by line, with digests,
//! times and paths masked, because they differ in every run.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A command and the lines printed below it.
#[derive(Debug, PartialEq)]
struct Step {
    command: String,
    printed: Vec<String>,
}

fn steps(readme: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let blocks = readme.split("```console\n").skip(1).filter_map(|rest| rest.split("```").next());
    for line in blocks.flat_map(str::lines) {
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (Some(command), _) => {
                steps.push(Step { command: command.to_owned(), printed: Vec::new() });
            }
            (None, Some(step)) if !line.is_empty() => step.printed.push(line.to_owned()),
            _ => {}
        }
    }
    steps
}

/// What differs between two runs becomes one letter.
fn masked(line: &str, directory: &str) -> String {
    let line = line.replace(directory, "DIR");
    let is_digest = |word: &str| {
        let word = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        let shortened = word.split_once('…').is_some_and(|(a, b)| a.len() == 8 && b.len() == 4);
        shortened || (word.len() == 64 && word.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    let is_time =
        |word: &str| word.len() >= 20 && word.get(4..5) == Some("-") && word.contains('Z');
    let mask = |word: &str| {
        if is_digest(word) {
            "DIGEST".to_owned()
        } else if is_time(word) {
            "TIME".to_owned()
        } else if word.starts_with("dev.capstan.invalid+") {
            "VKEY".to_owned()
        } else {
            word.to_owned()
        }
    };
    line.split_whitespace().map(mask).collect::<Vec<_>>().join(" ")
}

/// A development log that ends with the test.
struct Dev(Child);

impl Drop for Dev {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _ended = self.0.wait();
    }
}

fn dev(home: &Path) -> (Dev, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_capstan"))
        .args(["dev", "--listen", "127.0.0.1:0"])
        .env("HOME", home)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let dev = Dev(child);
    for line in lines.map_while(Result::ok) {
        if let Some(url) = line.strip_prefix("listening on ") {
            return (dev, url.to_owned());
        }
    }
    panic!("the development log did not start");
}

#[test]
fn readme_commands_print_what_it_shows() {
    let readme = include_str!("../../README.md");
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let (_dev, url) = dev(directory);
    let program = Path::new(env!("CARGO_BIN_EXE_capstan")).parent().unwrap().to_owned();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let steps = steps(readme);
    assert!(steps.len() >= 9, "{steps:#?}");
    let mut script = String::from("set -e\n");
    for (number, step) in steps.iter().enumerate() {
        let command = step.command.replace("http://127.0.0.1:8787", &url);
        script.push_str(&format!("printf '== %d\\n' {number}\n{command}\n"));
    }
    let output = Command::new("bash")
        .args(["-c", &script])
        .current_dir(directory)
        .env("PATH", path)
        .env("HOME", directory)
        .env_remove("CAPSTAN_URL")
        .env_remove("CAPSTAN_TRUST")
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("XDG_STATE_HOME")
        .output()
        .unwrap();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{stdout}\n{stderr}");
    let mut seen: Vec<Vec<String>> = vec![Vec::new(); steps.len()];
    let mut at = 0;
    for line in stdout.lines().filter(|line| !line.is_empty()) {
        match line.strip_prefix("== ") {
            Some(number) => at = number.parse().unwrap(),
            None => seen[at].push(masked(line, &directory.display().to_string())),
        }
    }
    for (step, seen) in steps.iter().zip(seen) {
        let printed: Vec<String> = step.printed.iter().map(|line| masked(line, "~")).collect();
        assert_eq!(printed, seen, "$ {}\n{stdout}", step.command);
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
