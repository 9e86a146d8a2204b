//! Arbitrary policies over a vocabulary that is small enough for them to overlap.

use proptest::prelude::*;
use proptest::sample::{select, subsequence};

pub(crate) const DOMAINS: [&str; 5] = [
    "*.example.com",
    "a.example.com",
    "b.example.com",
    "*.a.example.com",
    "x.a.example.com",
];
pub(crate) const PORTS: [u16; 3] = [80, 443, 8443];
pub(crate) const VARIABLES: [&str; 4] = ["A", "B", "C", "D"];
pub(crate) const ROOTS: [&str; 6] = ["/", "/data", "/data/a", "/data/a/b", "/database", "/srv"];
const CIDRS: [&str; 4] = ["10.0.0.0/8", "10.1.0.0/16", "10.1.2.3/32", "2001:db8::/32"];

fn list(items: &[&str]) -> String {
    let quoted: Vec<_> = items.iter().map(|item| format!("'{item}'")).collect();
    format!("[{}]", quoted.join(", "))
}

fn some_of(items: &'static [&'static str]) -> impl Strategy<Value = String> {
    subsequence(items, 0..=items.len()).prop_map(|items| list(&items))
}

/// Boxed: a section is many of these, and as one nested type it outgrows a test's stack.
fn field(
    name: &'static str,
    value: impl Strategy<Value = String> + 'static,
) -> BoxedStrategy<String> {
    prop_oneof![
        1 => Just(String::new()),
        3 => value.prop_map(move |value| format!("{name}: {value}, ")),
    ]
    .boxed()
}

pub(crate) fn egress_rule() -> impl Strategy<Value = String> {
    let http = prop_oneof![
        2 => Just(String::new()),
        1 => (subsequence(vec!["GET", "POST"], 1..=2), subsequence(vec!["/x/*", "/x/a", "/y"], 1..=3))
            .prop_map(|(methods, paths)| {
                format!(", http: [{{methods: {}, paths: {}}}]", list(&methods), list(&paths))
            }),
    ];
    let domains = subsequence(DOMAINS.to_vec(), 1..=DOMAINS.len());
    (
        domains,
        some_of(&CIDRS),
        subsequence(PORTS.to_vec(), 1..=PORTS.len()),
        http,
    )
        .prop_map(|(domains, cidrs, ports, http)| {
            format!(
                "{{domains: {}, cidrs: {cidrs}, ports: {ports:?}{http}}}",
                list(&domains)
            )
        })
}

fn secret() -> impl Strategy<Value = String> {
    let places = field(
        "in",
        subsequence(vec!["header", "query"], 0..=2).prop_map(|p| list(&p)),
    );
    let hosts = subsequence(DOMAINS.to_vec(), 0..3);
    (select(VARIABLES.to_vec()), hosts, places).prop_map(|(name, hosts, places)| {
        format!("{{env: {name}, hosts: {}, {places}}}", list(&hosts))
    })
}

/// The body of a section, in flow style.
pub(crate) fn section() -> impl Strategy<Value = String> {
    let egress = proptest::collection::vec(egress_rule(), 0..4);
    let size = || select(vec!["1MiB", "64MiB", "1GiB", "16GiB"]).prop_map(str::to_owned);
    let count = || select(vec!["0", "3", "500", "5000"]).prop_map(str::to_owned);
    let budget = (
        field("bytes_out", size()),
        field("connections", count()),
        field("hosts", count()),
    )
        .prop_map(|(a, b, c)| format!("{{{a}{b}{c}}}"));
    let deny = subsequence(DOMAINS.to_vec(), 1..3)
        .prop_map(|domains| format!("[{{domains: {}}}]", list(&domains)));
    let network = (
        field(
            "egress",
            egress.prop_map(|rules| format!("[{}]", rules.join(", "))),
        ),
        field("deny", deny),
        field("budget", budget),
        field(
            "resolver",
            select(vec!["192.0.2.53", "'192.0.2.54:5353'"]).prop_map(str::to_owned),
        ),
    );
    let caller = (some_of(&ROOTS), some_of(&ROOTS))
        .prop_map(|(read, write)| format!("{{read: {read}, write: {write}}}"));
    let filesystem = (
        field("read", some_of(&ROOTS)),
        field("write", some_of(&ROOTS)),
        field("scratch", size()),
        field("caller", caller),
    );
    let resources = (
        field(
            "timeout",
            select(vec!["1s", "30s", "20m"]).prop_map(str::to_owned),
        ),
        field("cpu", select(vec!["0.5", "1", "8"]).prop_map(str::to_owned)),
        field("memory", size()),
        field(
            "processes",
            select(vec!["1", "32", "5000"]).prop_map(str::to_owned),
        ),
        field("output", size()),
    );
    let index_host = (
        subsequence(DOMAINS.to_vec(), 1..=DOMAINS.len()),
        some_of(&CIDRS),
        subsequence(PORTS.to_vec(), 1..=PORTS.len()),
    )
        .prop_map(|(domains, cidrs, ports)| {
            format!(
                "{{domains: {}, cidrs: {cidrs}, ports: {ports:?}}}",
                list(&domains)
            )
        });
    let dependencies = (
        field(
            "source_builds",
            any::<bool>().prop_map(|yes| yes.to_string()),
        ),
        field(
            "index_hosts",
            proptest::collection::vec(index_host, 0..3)
                .prop_map(|hosts| format!("[{}]", hosts.join(", "))),
        ),
    );
    let levels = vec![
        "process", "process", "process", "sandbox", "sandbox", "wasm",
    ];
    (
        field(
            "isolation",
            select(levels).prop_map(|level| format!("{{minimum: {level}}}")),
        ),
        field(
            "trust",
            select(vec!["allow", "deny"]).prop_map(str::to_owned),
        ),
        field(
            "network",
            network.prop_map(|(a, b, c, d)| format!("{{{a}{b}{c}{d}}}")),
        ),
        field(
            "filesystem",
            filesystem.prop_map(|(a, b, c, d)| format!("{{{a}{b}{c}{d}}}")),
        ),
        field("env", some_of(&VARIABLES)),
        field(
            "secrets",
            proptest::collection::vec(secret(), 0..3)
                .prop_map(|secrets| format!("[{}]", secrets.join(", "))),
        ),
        field(
            "resources",
            resources.prop_map(|(a, b, c, d, e)| format!("{{{a}{b}{c}{d}{e}}}")),
        ),
        field(
            "dependencies",
            dependencies.prop_map(|(a, b)| format!("{{{a}{b}}}")),
        ),
        field(
            "audit",
            proptest::sample::select(vec!["decisions", "security", "full"])
                .prop_map(|level| format!("{{level: {level}, keep: 1GiB}}")),
        ),
    )
        .prop_map(|(a, b, c, d, e, f, g, h, i)| format!("{{{a}{b}{c}{d}{e}{f}{g}{h}{i}}}"))
}

/// A whole policy that has something to say about `office/pdf`.
pub(crate) fn policy() -> impl Strategy<Value = String> {
    (section(), section(), section()).prop_map(|(defaults, tier, category)| {
        format!(
            "version: 1\ndefaults: {defaults}\ntiers: {{external: {tier}}}\n\
             categories: {{'office/*': {category}}}\n"
        )
    })
}
