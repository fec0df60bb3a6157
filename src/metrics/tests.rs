//! The table, the scrape and the reference page say the same.

use super::*;

/// Everything that can happen, once.
fn busy() -> Metrics {
    let metrics = Metrics::new("9.8.7");
    let clone = metrics.clone();
    clone.registered(Outcome::Registered, "ok", 0.004);
    clone.registered(Outcome::Rejected, "signature-invalid", 0.001);
    clone.committed(2, 0.003, 12);
    clone.published(1_700_000_000);
    clone.queued(3, 4096);
    clone.disk_free(1 << 40);
    clone.waiting(5, 6);
    clone.read_only(true);
    clone.reload_failed(true);
    clone.self_audit_failed();
    clone.scrubbed(100);
    clone.scrub_found();
    clone.answered("/entries/{id}", "GET", 200);
    clone.answered("/entries/{id}", "BREW", 405);
    clone.rate_limited();
    clone.turned_away();
    clone.read_turned_away();
    clone.read_cut();
    clone.in_work(7);
    clone.held_bytes(9);
    clone.policy_in_force("aa");
    clone.policy_in_force("bb");
    metrics
}

#[test]
fn every_method_updates_its_metric() {
    let text = busy().encode();
    let expected = [
        "capstan_registrations_total{outcome=\"registered\",code=\"ok\"} 1",
        "capstan_registrations_total{outcome=\"rejected\",code=\"signature-invalid\"} 1",
        "capstan_register_duration_seconds_count 2",
        "capstan_register_duration_seconds_bucket{le=\"0.0005\"} 0",
        "capstan_register_duration_seconds_bucket{le=\"0.005\"} 2",
        "capstan_register_duration_seconds_bucket{le=\"10.0\"} 2",
        "capstan_batch_size_bucket{le=\"1.0\"} 0",
        "capstan_batch_size_bucket{le=\"1024.0\"} 1",
        "capstan_commit_duration_seconds_sum 0.003",
        "capstan_tree_size 12",
        "capstan_checkpoint_timestamp_seconds 1700000000",
        "capstan_queue_depth 3",
        "capstan_queue_bytes 4096",
        "capstan_disk_free_bytes 1099511627776",
        "capstan_open_items 5",
        "capstan_unconfirmed_effects 6",
        "capstan_read_only 1",
        "capstan_reload_failed 1",
        "capstan_self_audit_failures_total 1",
        "capstan_scrubbed_bytes_total 100",
        "capstan_scrub_findings_total 1",
        "capstan_http_requests_total{route=\"/entries/{id}\",method=\"GET\",status=\"200\"} 1",
        "capstan_http_requests_total{route=\"/entries/{id}\",method=\"other\",status=\"405\"} 1",
        "capstan_rate_limited_total 1",
        "capstan_turned_away_total 1",
        "capstan_reads_turned_away_total 1",
        "capstan_reads_cut_total 1",
        "capstan_in_work_statements 7",
        "capstan_held_bytes 9",
        "capstan_policy_info{digest=\"bb\"} 1",
        "capstan_build_info{version=\"9.8.7\"} 1",
    ];
    for line in expected {
        assert!(text.lines().any(|l| l == line), "no {line} in\n{text}");
    }
    assert!(!text.contains("digest=\"aa\""), "the old policy is still shown");
    assert!(!text.contains("total_total"));
    assert!(text.ends_with("# EOF\n"));
}

#[test]
fn opened_log_shows_its_size() {
    let metrics = Metrics::new("1");
    metrics.opened(77);
    assert!(metrics.encode().contains("\ncapstan_tree_size 77\n"));
}

/// Both ways: what is in the table is exported, what is exported is in it.
#[test]
fn table_matches_export() {
    let text = busy().encode();
    let mut exported: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    let mut table: Vec<String> =
        TABLE.iter().map(|row| format!("{} {}", row.name, row.kind)).collect();
    exported.sort_unstable();
    table.sort_unstable();
    assert_eq!(exported, table);
    for row in TABLE {
        assert!(text.contains(&format!("# HELP {} {}.\n", row.name, row.help)));
        let series = text.lines().find(|l| l.starts_with(row.name) && l.contains('{'));
        for label in row.labels {
            assert!(series.is_some_and(|l| l.contains(&format!("{label}="))), "{}", row.name);
        }
    }
}

#[test]
fn outcome_labels() {
    use Outcome::{Fault, Known, Refused, Registered, Rejected};
    let words = [Registered, Known, Rejected, Refused, Fault].map(Outcome::as_str);
    assert_eq!(words, ["registered", "known", "rejected", "refused", "fault"]);
    assert!(Metrics::content_type().starts_with("application/openmetrics-text"));
}

#[test]
fn reference_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/metrics.md");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(path, reference()).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(committed, reference(), "UPDATE_EXPECT=1 rewrites docs/metrics.md");
}
