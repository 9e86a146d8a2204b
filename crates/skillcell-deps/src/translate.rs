//! Says to uv what the user has said only to pip. What was said to uv itself is stronger.

use crate::pip_conf;
use crate::settings::{Place, Settings};
use crate::uv_toml::UvToml;
use std::collections::BTreeMap;

impl Settings {
    /// What pip would use, from its files and variables.
    pub(crate) fn pip_options(&self) -> BTreeMap<String, String> {
        let mut options = BTreeMap::new();
        let silent = self
            .env
            .get("PIP_CONFIG_FILE")
            .is_some_and(|p| p == "/dev/null");
        let files = self.files.iter().filter(|f| f.place.is("pip.conf"));
        let (named, found): (Vec<_>, Vec<_>) =
            files.partition(|f| matches!(f.place, Place::Named(..)));
        let found = found.into_iter().map(|f| &f.content);
        let named = named.into_iter().map(|f| &f.content);
        for content in found.chain(&self.site).chain(named).filter(|_| !silent) {
            options.extend(pip_conf::parse(&String::from_utf8_lossy(content)));
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
        // A file that can't be read is refused before anything is installed.
        let files = self.uv_files().unwrap_or_default();
        names.iter().any(|name| self.env.contains_key(*name))
            || files.iter().any(UvToml::names_sources)
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
    fn the_file_in_the_interpreter_s_tree_is_heard_and_a_named_one_is_stronger() {
        let prefix = tempfile::tempdir().unwrap();
        let conf = "[global]\nindex-url = https://site.example\n";
        std::fs::write(prefix.path().join("pip.conf"), conf).unwrap();
        let mut settings = gather(&[]).of_interpreter(prefix.path());
        assert_eq!(settings.pip_options()["index-url"], "https://site.example");
        settings.files.push(SettingFile {
            place: Place::Named("pip.conf", "PIP_CONFIG_FILE"),
            content: b"[install]\nindex-url = https://named.example\n".to_vec(),
        });
        assert_eq!(settings.pip_options()["index-url"], "https://named.example");
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
