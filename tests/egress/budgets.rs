//! Bytes, connections, requests and hosts, for the call as a whole.

use crate::claim;
use crate::trial::{Grants, Report, Trial};
use serde_json::json;
use skillcell_tests::Cell;

fn trial<'a>(cell: &'a Cell, budget: &str, http: &str) -> Trial<'a> {
    let rule = format!("{{domains: [api.example.com, other.example.com], ports: [443, 80]{http}}}");
    Trial::new(
        cell,
        Grants::network(&format!("egress: [{rule}], budget: {{{budget}}}")),
    )
}

#[track_caller]
fn assert_over(report: &Report) {
    report.denied_for_one_of("", &["network_budget_exceeded"]);
}

claim! {
    fn bytes_in_are_counted_over_all_connections(cell) {
        let ask = |bytes: u32| json!({"url": format!("https://api.example.com/big?bytes={bytes}")});
        let trial = trial(cell, "bytes_in: 4MiB", "")
            .step("first", "download", ask(3 << 20))
            .step("second", "download", ask(3 << 20))
            .step("after", "urllib", json!({"url": "https://api.example.com/hello"}));
        trial.prove();
        let report = trial.inside();
        report.ok("first");
        report.failed("second");
        report.failed("after");
        assert_over(&report);
    }
}

claim! {
    fn bytes_out_are_counted_over_all_connections(cell) {
        let ask = json!({"url": "https://api.example.com/upload", "bytes": 3 << 20});
        let trial = trial(cell, "bytes_out: 4MiB", "")
            .step("first", "upload", ask.clone())
            .step("second", "upload", ask);
        trial.prove();
        let report = trial.inside();
        report.ok("first");
        report.failed("second");
        assert_over(&report);
    }
}

claim! {
    fn connections_are_counted(cell) {
        let mut trial = trial(cell, "connections: 3", "");
        for number in 0..5 {
            trial = trial.step(&number.to_string(), "urllib", json!({"url": "https://api.example.com/hello"}));
        }
        trial.prove();
        let report = trial.inside();
        for number in 0..3 {
            report.ok(&number.to_string());
        }
        report.failed("3");
        report.failed("4");
        assert_over(&report);
    }
}

claim! {
    fn requests_are_counted_also_on_one_connection(cell) {
        let http = ", http: [{methods: [GET], paths: [\"/*\"]}]";
        let ask = |times: u32| json!({"url": "https://api.example.com/hello", "times": times, "trust": "default"});
        let report = trial(cell, "requests: 5", http)
            .step("within", "keep_alive", ask(4))
            .step("beyond", "keep_alive", ask(4))
            .inside();
        report.ok("within");
        report.failed("beyond");
        assert_over(&report);
    }
}

claim! {
    fn distinct_hosts_are_counted(cell) {
        let ask = |host: &str| json!({"url": format!("https://{host}/hello")});
        let trial = trial(cell, "hosts: 1", "")
            .step("first", "urllib", ask("api.example.com"))
            .step("second", "urllib", ask("other.example.com"))
            .step("first again", "urllib", ask("api.example.com"));
        trial.prove();
        let report = trial.inside();
        report.ok("first");
        report.failed("second");
        report.ok("first again");
        assert_over(&report);
    }
}

claim! {
    /// The operator's is a ceiling, as everywhere.
    fn the_operator_s_budget_is_a_ceiling(cell) {
        let rule = "egress: [{domains: [api.example.com], ports: [443]}]";
        let mut grants = Grants::network(&format!("{rule}, budget: {{connections: 100}}"));
        grants.operator = Grants::network(&format!("{rule}, budget: {{connections: 1}}")).operator;
        let trial = Trial::new(cell, grants)
            .step("first", "urllib", json!({"url": "https://api.example.com/hello"}))
            .step("second", "urllib", json!({"url": "https://api.example.com/hello"}));
        trial.prove();
        let report = trial.inside();
        report.ok("first");
        report.failed("second");
        assert_over(&report);
    }
}

claim! {
    fn what_passes_is_in_the_usage(cell) {
        let report = trial(cell, "bytes_in: 100MiB", "")
            .step("down", "download", json!({"url": "http://api.example.com/big?bytes=1000000"}))
            .step("up", "upload", json!({"url": "http://api.example.com/upload", "bytes": 320_000}))
            .inside();
        report.ok("down");
        report.ok("up");
        let usage = &report.outcome().envelope()["usage"];
        assert!(usage["bytes_in"].as_u64().is_some_and(|n| (1_000_000..1_100_000).contains(&n)), "{usage}");
        assert!(usage["bytes_out"].as_u64().is_some_and(|n| (320_000..340_000).contains(&n)), "{usage}");
    }
}
