//! The network of one call, from its plan: the broker that serves it, what the cell must trust for
//! that, and the placeholders that stand in it for secrets.

use crate::CallError;
use crate::door_journal::DoorJournal;
use rustix::fd::OwnedFd;
use skillcell_audit::Recorder;
use skillcell_backend::{Facts, Layout, Network, Running, TRUST_BUNDLE, Trust};
use skillcell_core::Isolation;
use skillcell_egress::{
    Broker, Budget, Closed, Doors, Loopback, Names, Place, Placeholder, Secret, Terms, hint,
};
use skillcell_manifest::SecretPlace;
use skillcell_plan::{Plan, PlanNetwork};
use skillcell_policy::Egress;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where distributions keep their roots in one file.
const SYSTEM_BUNDLES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// Variables by which clients are told of a file with roots.
const TRUST_VARIABLES: [&str; 4] = [
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
];

/// Variables and their values.
type Hidden = Vec<(String, String)>;

/// A door that is ready to be opened, or none.
pub(crate) struct Door {
    pub(crate) network: Network,
    /// Values that only the broker knows, by the variable that they belong to: never recorded.
    pub(crate) hidden: Hidden,
    ports: Vec<u16>,
    closed: Option<Closed>,
}

/// Makes everything that can fail, before anything of the skill runs. Values of bound variables
/// are replaced in `env` whether or not anything can be reached.
pub(crate) fn prepare(
    plan: &Plan,
    env: &mut BTreeMap<String, String>,
    facts: &Facts<'_>,
    layout: &Layout,
) -> Result<Door, CallError> {
    let (secrets, hidden) = hide_secrets(&plan.network, env)?;
    if plan.network.is_closed() || plan.isolation != Isolation::Sandbox {
        return Ok(Door {
            network: Network::Closed,
            hidden,
            ports: Vec::new(),
            closed: None,
        });
    }
    let egress = Egress::compile(&plan.network.egress, &plan.network.deny);
    let ports = egress.ports().to_vec();
    let budget = &plan.network.budget;
    let closed = Closed::new(Terms {
        egress,
        budget: Budget {
            bytes_out: budget.bytes_out.bytes(),
            bytes_in: budget.bytes_in.bytes(),
            connections: budget.connections,
            requests: budget.requests,
            hosts: budget.hosts,
        },
        secrets,
        resolver: plan.network.resolver,
        loopback: Loopback::Own,
        proxies: Vec::new(),
        allow_line: hint::allow_line,
    })?;
    let trust = closed.certificate_pem().map(|pem| {
        for name in TRUST_VARIABLES {
            env.insert(name.to_owned(), TRUST_BUNDLE.to_owned());
        }
        trust(pem, facts, layout)
    });
    Ok(Door {
        network: Network::Brokered {
            ports: ports.clone(),
            trust,
        },
        hidden,
        ports,
        closed: Some(closed),
    })
}

/// Puts a placeholder in the place of each value that only the broker may know.
fn hide_secrets(
    network: &PlanNetwork,
    env: &mut BTreeMap<String, String>,
) -> Result<(Vec<Secret>, Hidden), CallError> {
    let (mut secrets, mut hidden) = (Vec::new(), Vec::new());
    for binding in &network.secrets {
        let Some(value) = env.get_mut(binding.env.as_str()) else {
            continue; // not required, and not given
        };
        if value.is_empty() {
            continue; // nothing to keep, and a placeholder would pass for a value
        }
        let mut random = [0u8; 16];
        getrandom::fill(&mut random).map_err(|e| CallError::Random(e.into()))?;
        let placeholder = Placeholder::new(random);
        let value = std::mem::replace(value, placeholder.as_str().to_owned());
        hidden.push((binding.env.to_string(), value.clone()));
        secrets.push(Secret {
            placeholder,
            value,
            hosts: binding.hosts.clone(),
            places: binding
                .places
                .iter()
                .map(|place| match place {
                    SecretPlace::Header => Place::Header,
                    SecretPlace::Query => Place::Query,
                })
                .collect(),
        });
    }
    Ok((secrets, hidden))
}

/// The host's roots with the call's own, and the stores inside the cell that they belong into.
fn trust(pem: &str, facts: &Facts<'_>, layout: &Layout) -> Trust {
    let mut bundle = SYSTEM_BUNDLES
        .iter()
        .find_map(|path| std::fs::read(path).ok())
        .unwrap_or_default();
    if !bundle.ends_with(b"\n") {
        bundle.push(b'\n');
    }
    bundle.extend_from_slice(pem.as_bytes());
    let system = SYSTEM_BUNDLES
        .iter()
        .map(PathBuf::from)
        .filter(|path| skillcell_linux::system::shows(path) && is_plain_file(path));
    let certifi = facts
        .deps
        .iter()
        .zip(&layout.deps)
        .filter(|(source, _)| is_plain_file(&source.join(CERTIFI)))
        .map(|(_, inside)| inside.join(CERTIFI));
    Trust {
        stores: system.chain(certifi).collect(),
        bundle,
    }
}

/// Python's usual store, in a folder of packages.
const CERTIFI: &str = "certifi/cacert.pem";

/// A file without a link anywhere in its path, so that covering it covers just that.
fn is_plain_file(path: &Path) -> bool {
    path.is_file() && std::fs::canonicalize(path).is_ok_and(|real| real == path)
}

/// What the watch has to know of an open door.
pub(crate) struct View {
    pub(crate) ports: Vec<u16>,
    pub(crate) names: Arc<Names>,
}

impl Door {
    /// Serves the cell's listeners from now on.
    pub(crate) fn open(
        self,
        running: &mut Running,
        recorder: &Arc<Recorder>,
    ) -> Result<Option<(Broker, View)>, CallError> {
        let Some(closed) = self.closed else {
            return Ok(None);
        };
        let (dns_udp, dns_tcp) = running.cell.dns.take().ok_or(CallError::NoDoor)?;
        let listeners: Vec<OwnedFd> = std::mem::take(&mut running.cell.doors);
        let doors = Doors {
            dns_udp,
            dns_tcp,
            listeners,
        };
        let journal = Arc::new(DoorJournal(Arc::clone(recorder)));
        let broker = closed.open(doors, journal)?;
        let view = View {
            ports: self.ports,
            names: broker.names(),
        };
        Ok(Some((broker, view)))
    }
}
