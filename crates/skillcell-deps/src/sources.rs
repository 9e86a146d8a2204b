//! Whom an installer will ask, as the user's own settings have it.

use crate::DepsError;
use crate::address::{Address, Scheme, shown};
use crate::installer::Tool;
use crate::pip_conf;
use crate::settings::Settings;
use ipnet::IpNet;
use skillcell_core::Host;

/// Addresses that the settings name, and whether the installer's own index is asked besides.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Sources {
    pub(crate) named: Vec<Address>,
    pub(crate) default_index: bool,
    pub(crate) proxies: Proxies,
}

/// The user's proxies, and for whom they are not.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Proxies {
    http: Option<Address>,
    https: Option<Address>,
    bypass: Vec<String>,
}

impl Sources {
    pub(crate) fn of(settings: &Settings, tool: &Tool) -> Result<Sources, DepsError> {
        match tool {
            Tool::Uv(_) => Sources::of_uv(settings),
            Tool::PipModule | Tool::PipWheel(_) => Sources::of_pip(settings),
        }
    }

    fn of_pip(settings: &Settings) -> Result<Sources, DepsError> {
        let options = settings.pip_options();
        let value = |name: &str| options.get(name).map_or("", String::as_str);
        let no_index = pip_conf::is_true(value("no-index"));
        let mut sources = Sources {
            default_index: !no_index && words(value("index-url")).next().is_none(),
            ..Sources::default()
        };
        for option in ["index-url", "extra-index-url", "find-links", "constraint"] {
            if !(no_index && option.ends_with("index-url")) {
                sources.add(option, words(value(option)))?;
            }
        }
        sources.proxies = match value("proxy") {
            "" => settings.proxies(None, None, &[])?,
            proxy => settings.proxies(Some(proxy), Some(proxy), &[])?,
        };
        Ok(sources)
    }

    fn of_uv(settings: &Settings) -> Result<Sources, DepsError> {
        let files = settings.uv_files()?;
        let value = |name: &str| settings.env.get(name).map_or("", String::as_str);
        let no_index = settings.uv_no_index() || files.iter().any(|f| f.no_index() == Some(true));
        let mut sources = Sources::default();
        for name in ["UV_FIND_LINKS", "UV_CONSTRAINT"] {
            sources.add(name, words(value(name)))?;
        }
        for file in &files {
            sources.add("find-links", file.links())?;
        }
        if !no_index {
            sources.default_index = true;
            for name in ["UV_DEFAULT_INDEX", "UV_INDEX_URL"] {
                sources.default_index &= words(value(name)).next().is_none();
                sources.add(name, words(value(name)))?;
            }
            for name in ["UV_INDEX", "UV_EXTRA_INDEX_URL"] {
                sources.add(name, words(value(name)))?;
            }
            for file in &files {
                sources.default_index &= file.default_index().next().is_none();
                sources.add("index", file.default_index().chain(file.more_indexes()))?;
            }
        }
        let from_files = |pick: fn(&crate::uv_toml::UvToml) -> Option<&String>| {
            files.iter().rev().find_map(pick).map(String::as_str)
        };
        let bypass: Vec<String> = files.iter().flat_map(|f| f.no_proxy.clone()).collect();
        sources.proxies = settings.proxies(
            from_files(|f| f.http_proxy.as_ref()),
            from_files(|f| f.https_proxy.as_ref()),
            &bypass,
        )?;
        Ok(sources)
    }

    fn add<'a>(
        &mut self,
        setting: &str,
        texts: impl Iterator<Item = &'a str>,
    ) -> Result<(), DepsError> {
        for text in texts {
            let found =
                Address::of_index(text).map_err(|problem| unreadable(setting, text, problem))?;
            if let Some(address) = found.filter(|address| !self.named.contains(address)) {
                self.named.push(address);
            }
        }
        Ok(())
    }
}

impl Settings {
    /// What was said of proxies: by options first, else by variables.
    fn proxies(
        &self,
        http: Option<&str>,
        https: Option<&str>,
        bypass: &[String],
    ) -> Result<Proxies, DepsError> {
        let variable = |names: [&str; 2]| {
            let mut set = names.iter().filter_map(|name| self.env.get(*name));
            set.find(|value| !value.trim().is_empty())
        };
        let all = variable(["all_proxy", "ALL_PROXY"]);
        let read = |option: Option<&str>, names: [&str; 2]| {
            let said = variable(names).or(all).map(String::as_str);
            let text = option.filter(|text| !text.trim().is_empty()).or(said);
            text.map(|text| {
                Address::of_proxy(text.trim()).map_err(|why| unreadable("proxy", text, why))
            })
            .transpose()
        };
        let mut entries = bypass.to_vec();
        if let Some(list) = variable(["no_proxy", "NO_PROXY"]) {
            entries.extend(words(list).map(str::to_owned));
        }
        Ok(Proxies {
            http: read(http, ["http_proxy", "HTTP_PROXY"])?,
            https: read(https, ["https_proxy", "HTTPS_PROXY"])?,
            bypass: entries,
        })
    }
}

impl Proxies {
    pub(crate) fn any(&self) -> bool {
        self.http.is_some() || self.https.is_some()
    }

    pub(crate) fn of(&self, scheme: Scheme) -> Option<&Address> {
        match scheme {
            Scheme::Http => self.http.as_ref(),
            Scheme::Https => self.https.as_ref(),
            Scheme::Socks => None,
        }
    }

    pub(crate) fn bypasses_nobody(&self) -> bool {
        self.bypass.is_empty()
    }

    /// Whether a host is asked directly. Installers differ in details; where one of them would go
    /// around the proxy, the answer is yes.
    pub(crate) fn bypass(&self, host: &Host) -> bool {
        self.bypass.iter().any(|entry| {
            let entry = entry.trim().to_ascii_lowercase();
            let bare = match entry.rsplit_once(':') {
                Some((name, port)) if port.parse::<u16>().is_ok() && !name.contains(':') => name,
                _ => entry.as_str(),
            };
            let base = bare.trim_start_matches('*').trim_start_matches('.');
            match host {
                _ if bare == "*" => true,
                Host::Name(name) => name.as_str().strip_suffix(base).is_some_and(|head| {
                    !base.is_empty() && (head.is_empty() || head.ends_with('.'))
                }),
                Host::Addr(address) => {
                    bare.parse::<IpNet>().is_ok_and(|net| net.contains(address))
                        || bare.trim_matches(['[', ']']) == address.to_string()
                }
            }
        })
    }
}

fn words(value: &str) -> impl Iterator<Item = &str> {
    value
        .split([' ', '\t', '\n', '\r', ','])
        .filter(|word| !word.is_empty())
}

fn unreadable(setting: &str, text: &str, problem: String) -> DepsError {
    DepsError::IndexAddress {
        setting: setting.to_owned(),
        text: shown(text),
        problem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::tests::gather;
    use crate::settings::{Place, SettingFile};

    fn hosts(addresses: &[Address]) -> Vec<String> {
        addresses
            .iter()
            .map(|a| format!("{}:{}", a.host, a.port))
            .collect()
    }

    fn uv() -> Tool {
        Tool::Uv("/uv".into())
    }

    #[track_caller]
    fn check(tool: &Tool, variables: &[(&str, &str)], named: &[&str], default_index: bool) {
        let sources = Sources::of(&gather(variables), tool).unwrap();
        assert_eq!(hosts(&sources.named), named);
        assert_eq!(sources.default_index, default_index);
    }

    #[test]
    fn without_settings_the_installer_s_own_index_is_asked() {
        check(&uv(), &[], &[], true);
        check(&Tool::PipModule, &[], &[], true);
        // An empty value says nothing.
        check(&Tool::PipModule, &[("PIP_INDEX_URL", "")], &[], true);
        check(&uv(), &[("UV_DEFAULT_INDEX", "")], &[], true);
    }

    #[test]
    fn an_index_takes_the_place_of_the_installer_s_own_and_an_extra_one_does_not() {
        let pip = Tool::PipModule;
        check(
            &pip,
            &[("PIP_INDEX_URL", "http://a.example:8080/")],
            &["a.example:8080"],
            false,
        );
        check(
            &pip,
            &[("PIP_EXTRA_INDEX_URL", "https://a.example https://b.example")],
            &["a.example:443", "b.example:443"],
            true,
        );
        check(
            &uv(),
            &[("UV_DEFAULT_INDEX", "mine=https://a.example")],
            &["a.example:443"],
            false,
        );
        check(
            &uv(),
            &[("UV_INDEX", "x=https://a.example https://b.example")],
            &["a.example:443", "b.example:443"],
            true,
        );
    }

    #[test]
    fn only_folders_of_wheels_need_no_network() {
        let pip = Tool::PipModule;
        check(
            &pip,
            &[("PIP_NO_INDEX", "1"), ("PIP_FIND_LINKS", "/wheels")],
            &[],
            false,
        );
        check(&pip, &[("PIP_INDEX_URL", "file:///index")], &[], false);
        check(
            &uv(),
            &[("UV_NO_INDEX", "1"), ("UV_FIND_LINKS", "/wheels")],
            &[],
            false,
        );
        check(&uv(), &[("UV_DEFAULT_INDEX", "/index")], &[], false);
        // Pages of links are asked all the same, and a folder alone turns no index off.
        check(
            &pip,
            &[
                ("PIP_NO_INDEX", "yes"),
                ("PIP_INDEX_URL", "https://b.example"),
                ("PIP_FIND_LINKS", "https://a.example/x"),
            ],
            &["a.example:443"],
            false,
        );
        check(&pip, &[("PIP_FIND_LINKS", "/wheels")], &[], true);
        check(&uv(), &[("UV_NO_INDEX", "0")], &[], true);
    }

    #[test]
    fn uv_s_file_is_read() {
        let mut settings = gather(&[]);
        settings.files.push(SettingFile {
            place: Place::Home(".config/uv/uv.toml"),
            content: b"https-proxy = \"http://p.example:3128\"\n[[index]]\nurl = \"https://a.example\"\ndefault = true\n".to_vec(),
        });
        let sources = Sources::of(&settings, &uv()).unwrap();
        assert_eq!(hosts(&sources.named), ["a.example:443"]);
        assert!(!sources.default_index && sources.proxies.of(Scheme::Https).is_some());
        settings.env.insert("UV_NO_CONFIG".into(), "1".into());
        assert!(Sources::of(&settings, &uv()).unwrap().default_index);
        settings.env.clear();
        settings.files[0].content = b"index = [".to_vec();
        assert!(Sources::of(&settings, &uv()).is_err());
    }

    #[test]
    fn proxies_are_by_scheme_and_options_are_stronger() {
        let of = |variables: &[(&str, &str)]| {
            Sources::of(&gather(variables), &Tool::PipModule)
                .unwrap()
                .proxies
        };
        let port = |proxies: &Proxies, scheme| proxies.of(scheme).map(|a| a.port);
        let proxies = of(&[("HTTPS_PROXY", "http://p.example:1"), ("no_proxy", "x")]);
        assert_eq!(port(&proxies, Scheme::Https), Some(1));
        assert_eq!(port(&proxies, Scheme::Http), None);
        let proxies = of(&[
            ("HTTPS_PROXY", "http://p.example:1"),
            ("PIP_PROXY", "p:2"),
            ("ALL_PROXY", "p:3"),
        ]);
        assert_eq!(port(&proxies, Scheme::Https), Some(2));
        assert_eq!(port(&proxies, Scheme::Http), Some(2));
        assert!(!of(&[]).any());
    }

    #[test]
    fn who_is_asked_without_the_proxy_is_known() {
        let bypass = |list: &str, host: &str| {
            let proxies = Proxies {
                bypass: words(list).map(str::to_owned).collect(),
                ..Proxies::default()
            };
            proxies.bypass(&Host::parse(host).unwrap())
        };
        for list in [
            "*",
            "a.example",
            ".example",
            "*.example",
            "EXAMPLE",
            "a.example:443",
        ] {
            assert!(bypass(list, "a.example"), "{list}");
        }
        for list in ["", "b.example", "ample", ".a.example.", "10.0.0.0/8"] {
            assert!(!bypass(list, "a.example"), "{list}");
        }
        assert!(bypass("10.0.0.0/8", "10.1.2.3") && bypass("::1", "::1"));
        assert!(!bypass("10.0.0.0/8", "192.0.2.1"));
    }

    #[test]
    fn an_address_that_can_t_be_read_is_an_error_without_its_password() {
        let error = Sources::of(
            &gather(&[("PIP_INDEX_URL", "https://me:secret@a.example:port/")]),
            &Tool::PipModule,
        )
        .unwrap_err()
        .to_string();
        assert!(
            error.contains("index-url") && error.contains("a.example"),
            "{error}"
        );
        assert!(!error.contains("secret"), "{error}");
    }
}
