//! A real skill: `wallet_screening` of skillware, unchanged but for its policy, against fakes of the two
//! services that it asks.

use crate::network::{cell, network, venv};
use serde_json::{Value, json};
use skillcell_tests::{Cell, Child, Outcome, User, copy_tree, shared};
use std::fs;
use std::path::PathBuf;

/// On no list, so that the verdict hangs on what the services say.
const WALLET: &str = "0x00000000000000000000000000000000000000aa";

const NETWORK: &str =
    "network: {egress: [{domains: [api.etherscan.io, api.coingecko.com], ports: [443]}]}";

fn skill() -> PathBuf {
    let lib = venv().join("lib");
    fs::read_dir(&lib)
        .unwrap_or_else(|e| panic!("{}: {e}", lib.display()))
        .flatten()
        .map(|entry| {
            entry
                .path()
                .join("site-packages/skills/finance/wallet_screening")
        })
        .find(|path| path.is_dir())
        .unwrap_or_else(|| {
            panic!(
                "{} has no skillware: pip install skillware==0.6.0",
                lib.display()
            )
        })
}

fn screen(cell: &Cell, key: &str, operator: &str) -> Outcome {
    let bundle = cell.folder("bundles").join("wallet_screening");
    if !bundle.exists() {
        copy_tree(&skill(), &bundle);
    }
    let manifest = bundle.join("manifest.yaml");
    let original =
        fs::read_to_string(skill().join("manifest.yaml")).expect("the skill has a manifest");
    let policy = format!(
        "\nsecurity_policy:\n  version: 1\n  {NETWORK}\n  secrets: [{{env: ETHERSCAN_API_KEY, hosts: [api.etherscan.io], in: [header, query]}}]\n"
    );
    fs::write(&manifest, original + &policy).expect("own folder");
    let operator = cell.file("work/operator.yaml", operator);
    cell.call(&bundle)
        .params(&json!({"address": WALLET}))
        .flags(["--env", &format!("ETHERSCAN_API_KEY={key}"), "--policy"])
        .flag(operator)
        .flag("--deps")
        .flag(venv())
        .host_env("SSL_CERT_FILE", network().authority())
        .run()
}

#[test]
fn allowed_it_answers_from_the_services_with_a_key_that_it_never_saw() {
    let _shared = shared();
    let cell = cell(User::Caller);
    let key = format!("REALKEY{}", cell.mark());
    let outcome = screen(
        &cell,
        &key,
        &format!("version: 1\ndefaults: {{{NETWORK}}}\n"),
    );
    let report = outcome.assert_ok();
    assert_eq!(report["summary"]["balance_eth"], 3.0, "{}", outcome.show());
    assert_eq!(
        report["summary"]["balance_usd"],
        6000.0,
        "{}",
        outcome.show()
    );
    assert_eq!(
        report["summary"]["total_transactions"],
        1,
        "{}",
        outcome.show()
    );
    assert!(outcome.denials().is_empty(), "{}", outcome.show());
    // Upstream: the key, and nothing in its place.
    let arrived = network().arrived(&key);
    assert!(arrived.len() >= 4, "{arrived:#?}");
    let asked = |a: &Value| {
        a["host"] == "api.etherscan.io"
            && a["target"]
                .as_str()
                .is_some_and(|t| t.contains(&format!("apikey={key}")))
    };
    assert!(arrived.iter().all(asked), "{arrived:#?}");
    // Inside: neither in its answer nor in what it printed.
    assert!(
        !outcome.stdout.contains(&key) && !outcome.stderr.contains(&key),
        "{}",
        outcome.show()
    );
}

#[test]
fn denied_its_clean_answer_stands_beside_what_it_could_not_ask() {
    let _shared = shared();
    let cell = cell(User::Caller);
    let key = format!("REALKEY{}", cell.mark());
    let outcome = screen(&cell, &key, "version: 1\n");
    assert_eq!(
        outcome.assert_ok()["verdict"]["reason_code"],
        "CLEAN_RECORD",
        "{}",
        outcome.show()
    );
    outcome.assert_denial("network", "api.etherscan.io");
    outcome.assert_denial("network", "api.coingecko.com");
    assert!(network().arrived(&key).is_empty());
}

/// The counter-proof: as a plain program it asks the same fakes, and gets the same answers.
#[test]
fn outside_of_a_cell_it_has_the_same_answers() {
    let _shared = shared();
    let cell = cell(User::Caller);
    let program = "
import json, os, sys
sys.path.insert(0, sys.argv[1])
from skill import WalletScreeningSkill
json.dump(WalletScreeningSkill().execute({'address': sys.argv[2]}), sys.stdout)
";
    let mut command = cell.command(venv().join("bin/python"));
    command
        .args(["-B", "-c", program])
        .arg(skill())
        .arg(WALLET)
        .env("ETHERSCAN_API_KEY", "plain")
        .env("REQUESTS_CA_BUNDLE", network().authority());
    let finished = Child::spawn(command, None)
        .finish()
        .expect_success("the skill as a program");
    let report: Value = serde_json::from_str(&finished.stdout).expect("a report");
    assert_eq!(report["summary"]["balance_usd"], 6000.0, "{report:#}");
    assert_eq!(report["summary"]["total_transactions"], 1, "{report:#}");
    assert_eq!(
        report["verdict"]["reason_code"], "CLEAN_RECORD",
        "{report:#}"
    );
}
