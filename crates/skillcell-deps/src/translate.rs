//! Says to uv what the user has said only to pip. What was said to uv itself is stronger.

use crate::pip_conf;
use crate::settings::Settings;
use std::collections::BTreeMap;

impl Settings {
    /// What pip would use, from its files and variables.
    pub(crate) fn pip_options(&self) -> BTreeMap<String, String> {
        let mut options = BTreeMap::new();
        let silent = self
            .env
            .get("PIP_CONFIG_FILE")
            .is_some_and(|p| p == "/dev/null");
        for file in self
            .files
            .iter()
            .filter(|f| f.place.is("pip.conf") && !silent)
        {
            options.extend(pip_conf::parse(&String::from_utf8_lossy(&file.content)));
        }
        for (name, value) in &self.env {
            if let Some(name) = name.strip_prefix("PIP_") {
                options.insert(pip_conf::option_name(name), value.clone());
            }
        }
        options
    }

    /// Whether uv has been told of an index by its own means.
    fn uv_has_index(&self) -> bool {
        let names = [
            "UV_DEFAULT_INDEX",
            "UV_INDEX",
            "UV_INDEX_URL",
            "UV_EXTRA_INDEX_URL",
            "UV_FIND_LINKS",
            "UV_NO_INDEX",
        ];
        let said = |text: &str| {
            text.lines().any(|line| {
                let key = line.split(['=', '#']).next().unwrap_or_default();
                key.contains("index") || key.contains("find-links")
            })
        };
        names.iter().any(|name| self.env.contains_key(*name))
            || self
                .files
                .iter()
                .filter(|f| f.place.is("uv.toml"))
                .any(|f| said(&String::from_utf8_lossy(&f.content)))
    }

    /// Says to uv what the user has said only to pip.
    pub(crate) fn translate_for_uv(&mut self) {
        let options = self.pip_options();
        let own_index = self.uv_has_index();
        let mut set = |name: &str, value: String| {
            self.env.entry(name.to_owned()).or_insert(value);
        };
        let words =
            |value: &str, by: &str| value.split_ascii_whitespace().collect::<Vec<_>>().join(by);
        for (option, value) in &options {
            match option.as_str() {
                "index-url" if !own_index => set("UV_DEFAULT_INDEX", value.clone()),
                "extra-index-url" if !own_index => set("UV_INDEX", words(value, " ")),
                "find-links" if !own_index => set("UV_FIND_LINKS", words(value, ",")),
                "no-index" if !own_index && pip_conf::is_true(value) => {
                    set("UV_NO_INDEX", "1".into())
                }
                "trusted-host" => set("UV_INSECURE_HOST", words(value, " ")),
                "cert" => set("SSL_CERT_FILE", value.clone()),
                "client-cert" => set("SSL_CLIENT_CERT", value.clone()),
                "proxy" => set("ALL_PROXY", value.clone()),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::settings::tests::gather;
    use crate::settings::{Place, SettingFile};

    #[test]
    fn uv_hears_what_was_said_to_pip_alone() {
        let mut settings = gather(&[
            ("PIP_INDEX_URL", "https://a.example"),
            ("PIP_CERT", "/c.pem"),
            ("PIP_FIND_LINKS", "https://x.example/a https://x.example/b"),
        ]);
        settings.translate_for_uv();
        assert_eq!(settings.env["UV_DEFAULT_INDEX"], "https://a.example");
        assert_eq!(
            settings.env["UV_FIND_LINKS"],
            "https://x.example/a,https://x.example/b"
        );
        assert_eq!(settings.env["SSL_CERT_FILE"], "/c.pem");
    }

    #[test]
    fn what_was_said_to_uv_is_not_overruled_by_pips_settings() {
        let mut settings = gather(&[
            ("PIP_INDEX_URL", "https://a.example"),
            ("UV_DEFAULT_INDEX", "https://b.example"),
        ]);
        settings.translate_for_uv();
        assert_eq!(settings.env["UV_DEFAULT_INDEX"], "https://b.example");
        let mut settings = gather(&[("PIP_INDEX_URL", "https://a.example")]);
        settings.files.push(SettingFile {
            place: Place::Home(".config/uv/uv.toml"),
            content: b"[[index]]\nurl = \"https://b.example\"\n".to_vec(),
        });
        settings.translate_for_uv();
        assert!(!settings.env.contains_key("UV_DEFAULT_INDEX"));
    }
}
