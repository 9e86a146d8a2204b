//! Whom the build cell may reach: the next hop of everything that the installer will ask, and what
//! the operator lists besides. Nothing of it comes from a bundle or a package.

use crate::DepsError;
use crate::address::{Address, Scheme};
use crate::default_index::DefaultIndex;
use crate::sources::Sources;
use ipnet::IpNet;
use skillcell_core::{DomainName, Host, HostPattern};
use skillcell_policy::EgressRule;

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Reach {
    pub(crate) rules: Vec<EgressRule>,
    /// Names that the user's own settings give, which may lead to this host or the user's network.
    pub(crate) near: Vec<DomainName>,
    /// The user's proxies.
    pub(crate) proxies: Vec<(Host, u16)>,
    /// Whether the installer has a proxy of the user's own.
    pub(crate) proxied: bool,
}

impl Reach {
    /// `default`: finds the installer's own index. `operator`: whom else an install may reach.
    pub(crate) fn of(
        sources: &Sources,
        default: &dyn Fn() -> Option<DefaultIndex>,
        operator: &[EgressRule],
    ) -> Result<Reach, DepsError> {
        let mut reach = Reach {
            proxied: sources.proxies.any(),
            ..Reach::default()
        };
        for address in &sources.named {
            reach.ask(address, true, sources)?;
        }
        let proxies = &sources.proxies;
        match proxies.of(Scheme::Https) {
            // Whose names they are is the proxy's to find out.
            Some(proxy) if sources.default_index && proxies.bypasses_nobody() => {
                reach.pass_by(proxy)?;
            }
            _ => {
                let named = |index: &DefaultIndex| {
                    sources
                        .named
                        .iter()
                        .any(|address| address.host == index.index.host)
                };
                let own = (sources.default_index || !sources.named.is_empty())
                    .then(default)
                    .flatten();
                match own {
                    None if sources.default_index => return Err(DepsError::NoDefaultIndex),
                    Some(index) if sources.default_index => {
                        reach.ask(&index.index, false, sources)?;
                        reach.ask(&index.files, false, sources)?;
                    }
                    // It was named in so many words; its files lie where they always do.
                    Some(index) if named(&index) => reach.ask(&index.files, false, sources)?,
                    _ => {}
                }
            }
        }
        if !reach.rules.is_empty() {
            reach.rules.extend_from_slice(operator);
        }
        Ok(reach)
    }

    /// Without any, the cell has no network.
    pub(crate) fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Everybody who may be reached, as people write it.
    pub(crate) fn hosts(&self) -> Vec<String> {
        self.rules
            .iter()
            .flat_map(|rule| {
                let domains = rule.domains.iter().map(|d| d.as_str().to_owned());
                domains.chain(rule.cidrs.iter().map(|net| match net.max_prefix_len() {
                    all if all == net.prefix_len() => net.addr().to_string(),
                    _ => net.to_string(),
                }))
            })
            .collect()
    }

    fn ask(&mut self, address: &Address, named: bool, sources: &Sources) -> Result<(), DepsError> {
        let proxies = &sources.proxies;
        let proxy = proxies.of(address.scheme);
        if let Some(proxy) = proxy {
            self.pass_by(proxy)?;
        }
        if proxy.is_none() || proxies.bypass(&address.host) {
            self.allow(address)?;
            if let (true, Host::Name(name)) = (named, &address.host) {
                self.near.push(name.clone());
            }
        }
        Ok(())
    }

    fn pass_by(&mut self, proxy: &Address) -> Result<(), DepsError> {
        self.allow(proxy)?;
        self.proxies.push((proxy.host.clone(), proxy.port));
        if let Host::Name(name) = &proxy.host {
            self.near.push(name.clone());
        }
        Ok(())
    }

    fn allow(&mut self, address: &Address) -> Result<(), DepsError> {
        let mut rule = EgressRule {
            domains: Vec::new(),
            cidrs: Vec::new(),
            ports: vec![address.port],
            http: Vec::new(),
        };
        match &address.host {
            // By address: a rule that names it opens it, also where it isn't public.
            Host::Addr(ip) => rule.cidrs.push(IpNet::from(*ip)),
            Host::Name(name) => {
                let pattern = HostPattern::parse(name.as_str());
                rule.domains
                    .push(pattern.map_err(|e| DepsError::IndexAddress {
                        setting: "index".to_owned(),
                        text: name.to_string(),
                        problem: e.to_string(),
                    })?);
            }
        }
        if !self.rules.contains(&rule) {
            self.rules.push(rule);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::installer::Tool;
    use crate::settings::tests::gather;

    fn default() -> Option<DefaultIndex> {
        let at = |text| Address::of_index(text).unwrap().unwrap();
        Some(DefaultIndex {
            index: at("https://default.example/"),
            files: at("https://files.default.example/"),
        })
    }

    fn of(variables: &[(&str, &str)], operator: &[EgressRule]) -> Reach {
        let sources = Sources::of(&gather(variables), &Tool::PipModule).unwrap();
        Reach::of(&sources, &default, operator).unwrap()
    }

    fn listed() -> Vec<EgressRule> {
        vec![EgressRule {
            domains: vec![HostPattern::parse("*.cdn.example").unwrap()],
            cidrs: Vec::new(),
            ports: vec![443],
            http: Vec::new(),
        }]
    }

    #[test]
    fn an_index_is_all_that_is_reached_besides_what_the_operator_lists() {
        let own = [("PIP_INDEX_URL", "http://a.example:8080/")];
        let reach = of(&own, &[]);
        assert_eq!(reach.hosts(), ["a.example"]);
        assert_eq!(reach.rules[0].ports, [8080]);
        assert_eq!(reach.near.len(), 1);
        assert_eq!(of(&own, &listed()).hosts(), ["a.example", "*.cdn.example"]);
    }

    #[test]
    fn the_installer_s_own_index_comes_with_its_files_and_is_not_trusted_to_lead_home() {
        let reach = of(&[], &[]);
        assert_eq!(reach.hosts(), ["default.example", "files.default.example"]);
        assert!(reach.near.is_empty());
        let named = of(&[("PIP_INDEX_URL", "https://default.example/simple")], &[]);
        assert_eq!(named.hosts(), reach.hosts());
    }

    #[test]
    fn without_an_index_nobody_is_reached_not_even_whom_the_operator_lists() {
        let reach = of(&[("PIP_NO_INDEX", "1")], &listed());
        assert!(reach.is_empty() && reach.hosts().is_empty());
    }

    #[test]
    fn an_index_that_nobody_knows_is_an_error_and_not_an_open_network() {
        let sources = Sources::of(&gather(&[]), &Tool::PipModule).unwrap();
        assert!(matches!(
            Reach::of(&sources, &|| None, &[]),
            Err(DepsError::NoDefaultIndex)
        ));
        let sources = Sources::of(
            &gather(&[("PIP_INDEX_URL", "https://a.example")]),
            &Tool::PipModule,
        );
        assert_eq!(
            Reach::of(&sources.unwrap(), &|| None, &[]).unwrap().hosts(),
            ["a.example"]
        );
    }

    #[test]
    fn an_address_is_named_by_itself() {
        let reach = of(&[("PIP_INDEX_URL", "http://127.0.0.1:8080/")], &[]);
        assert_eq!(reach.rules[0].cidrs[0].to_string(), "127.0.0.1/32");
        assert!(reach.near.is_empty());
    }

    #[test]
    fn behind_a_proxy_the_proxy_is_all_that_is_reached() {
        let proxy = ("HTTPS_PROXY", "http://p.example:3128");
        let reach = of(&[proxy], &[]);
        assert_eq!(reach.hosts(), ["p.example"]);
        assert_eq!(reach.proxies.len(), 1);
        let index = ("PIP_INDEX_URL", "https://a.example/");
        assert_eq!(of(&[proxy, index], &[]).hosts(), ["p.example"]);
        let around = ("NO_PROXY", "a.example");
        let both = of(&[proxy, index, around], &[]).hosts();
        assert_eq!(both, ["p.example", "a.example"]);
        // A proxy for the other scheme is none for this index.
        let plain = ("PIP_INDEX_URL", "http://a.example/");
        assert_eq!(of(&[proxy, plain], &[]).hosts(), ["a.example"]);
    }
}
