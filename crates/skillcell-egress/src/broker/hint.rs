//! The line that would allow what was denied, or why no line can.

use super::AllowLine;
use super::meter::Spent;
use skillcell_core::{Host, Reason, embedded_ipv4};
use std::net::IpAddr;

/// For a denial of a destination.
pub(crate) fn destination(
    allow_line: AllowLine,
    reason: Reason,
    host: &Host,
    port: Option<u16>,
    rule: Option<&str>,
) -> String {
    match reason {
        Reason::HostNotAllowed | Reason::PortNotAllowed | Reason::NetworkNotAllowed => {
            allow_line(host, port.unwrap_or(443))
        }
        Reason::DeniedByRule => format!(
            "a `deny` entry forbids it{}; only taking that entry away allows it",
            rule.map(|r| format!(" ({r})")).unwrap_or_default()
        ),
        Reason::AddressNotPublic => match host {
            Host::Addr(address) => not_public(allow_line, *address, port.unwrap_or(443), rule),
            Host::Name(_) => "it leads to an address that is not public; a rule by `cidrs` that names the address allows it".into(),
        },
        Reason::TlsNoServerName => "the TLS client must say the name that it connects to (SNI); a rule by address (`cidrs`) asks for no name".into(),
        Reason::TlsServerNameMismatch => "the name in TLS (SNI) must be the name that was connected to; allow the other name by a rule of its own".into(),
        Reason::TlsEncryptedHello => "an encrypted ClientHello hides the name; turn ECH off in the client".into(),
        Reason::TlsMalformed => "the first bytes are no TLS ClientHello that can be read".into(),
        Reason::HttpHostMismatch => "each request must name the host that was connected to; allow the other host by a rule of its own".into(),
        Reason::HttpMalformed => "the request can be read in two ways; no policy allows that".into(),
        Reason::ProtocolNotAllowed => "a rule by name takes TLS with SNI, or HTTP/1; for other protocols name another port than 80 and 443, or the address (`cidrs`)".into(),
        Reason::DnsTypeNotAllowed => "only A and AAAA questions are answered in a cell".into(),
        Reason::DnsBudgetExceeded => "too many or too long names were asked for; name the host exactly instead of by wildcard, or raise `network: {budget: {hosts: N}}`".into(),
        Reason::UpstreamTls => "the server's certificate doesn't hold for this name with the host's roots; set SSL_CERT_FILE for skillcell to add a root".into(),
        Reason::SecretLeak => "a secret or its placeholder was on its way to a host that it isn't bound to; bind it: `secrets: [{env: NAME, hosts: [HOST], in: [header, query]}]`".into(),
        Reason::HostLoopbackUnreachable => "loopback is the cell's own; services of the host are not reachable".into(),
        _ => String::new(),
    }
}

/// For an address that is dialled only by a rule that names it. What it stands for must be named as
/// well.
pub(crate) fn not_public(
    allow_line: AllowLine,
    address: IpAddr,
    port: u16,
    kind: Option<&str>,
) -> String {
    let kind = kind.unwrap_or("special address");
    let lines: Vec<String> = std::iter::once(address)
        .chain(embedded_ipv4(address).map(IpAddr::V4))
        .map(|address| allow_line(&Host::Addr(address), port))
        .collect();
    format!(
        "it leads to an address that is not public ({address}, {kind}); naming it allows it: {}",
        lines.join("; and ")
    )
}

/// In the skill's security_policy and in the operator's policy.
pub fn allow_line(host: &Host, port: u16) -> String {
    let hosts = match host {
        Host::Name(name) => format!("domains: [{name}]"),
        Host::Addr(address) => format!("cidrs: [{}]", cidr(*address)),
    };
    format!(
        "policy line: `network: {{egress: [{{{hosts}, ports: [{port}]}}]}}`, in the skill's security_policy and in the operator's policy"
    )
}

fn cidr(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => format!("{address}/32"),
        IpAddr::V6(address) => format!("\"{address}/128\""),
    }
}

pub(crate) fn request_line(host: &Host, port: u16, method: &str, path: &str) -> String {
    let hosts = match host {
        Host::Name(name) => format!("domains: [{name}]"),
        Host::Addr(address) => format!("cidrs: [\"{address}\"]"),
    };
    format!(
        "policy line: `network: {{egress: [{{{hosts}, ports: [{port}], http: [{{methods: [{method}], paths: [\"{path}\"]}}]}}]}}`"
    )
}

pub(crate) fn budget(spent: Spent) -> String {
    format!(
        "raise `network: {{budget: {{{}: N}}}}` in the skill's security_policy, within the operator's",
        spent.field()
    )
}
