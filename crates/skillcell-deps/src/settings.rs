//! The user's own index settings, and nothing else of the user's: variables by an allow list, and
//! the installers' configuration files as copies. The installer finds them where it looks anyway.

use crate::DepsError;
use crate::named_files::absolute_links;
use crate::pip_conf;
use crate::uv_toml::UvToml;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Configuration files are small; what isn't is something else.
pub(crate) const MAX_FILE: u64 = 1 << 20;

/// Which index, how to get there, and whom to trust. No keyring: it would be the host's.
const VARIABLES: &[&str] = &[
    "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL",
    "PIP_FIND_LINKS",
    "PIP_NO_INDEX",
    "PIP_TRUSTED_HOST",
    "PIP_CERT",
    "PIP_CLIENT_CERT",
    "PIP_PROXY",
    "PIP_DEFAULT_TIMEOUT",
    "PIP_RETRIES",
    "PIP_PRE",
    "PIP_CONSTRAINT",
    "UV_DEFAULT_INDEX",
    "UV_INDEX",
    "UV_INDEX_URL",
    "UV_EXTRA_INDEX_URL",
    "UV_FIND_LINKS",
    "UV_NO_INDEX",
    "UV_INDEX_STRATEGY",
    "UV_NATIVE_TLS",
    "UV_SYSTEM_CERTS",
    "UV_HTTP_TIMEOUT",
    "UV_INSECURE_HOST",
    "UV_NO_CONFIG",
    "UV_CONSTRAINT",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "SSL_CLIENT_CERT",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
];

/// Where an installer looks for a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// At this very path, in every cell.
    System(&'static str),
    /// Below the home folder of the cell.
    Home(&'static str),
    /// Below the home folder of the cell, and named by this variable.
    Named(&'static str, &'static str),
}

#[derive(Debug, Clone)]
pub(crate) struct SettingFile {
    pub(crate) place: Place,
    pub(crate) content: Vec<u8>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    pub(crate) env: BTreeMap<String, String>,
    /// Weakest first.
    pub(crate) files: Vec<SettingFile>,
    /// pip's file in the interpreter's own tree, where pip finds it without a copy.
    pub(crate) site: Option<Vec<u8>>,
}

/// How variables are looked up; tests bring their own.
pub(crate) type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

impl Settings {
    pub(crate) fn gather(lookup: Lookup<'_>) -> Settings {
        let mut settings = Settings::default();
        for name in VARIABLES {
            if let Some(value) = lookup(name).filter(|v| !v.contains('\0')) {
                let value = if name.ends_with("FIND_LINKS") {
                    absolute_links(&value)
                } else {
                    value
                };
                settings.env.insert((*name).to_owned(), value);
            }
        }
        let home = lookup("HOME")
            .map(PathBuf::from)
            .filter(|p| p.is_absolute());
        let config = lookup("XDG_CONFIG_HOME")
            .map(PathBuf::from)
            .filter(|p| p.is_absolute());
        let config = config.or_else(|| Some(home.as_ref()?.join(".config")));
        let below = |base: &Option<PathBuf>, name: &str| base.as_ref().map(|b| b.join(name));
        for path in ["/etc/xdg/pip/pip.conf", "/etc/pip.conf", "/etc/uv/uv.toml"] {
            settings.copy(Some(path.into()), Place::System(path));
        }
        settings.copy(below(&home, ".pip/pip.conf"), Place::Home(".pip/pip.conf"));
        settings.copy(
            below(&config, "pip/pip.conf"),
            Place::Home(".config/pip/pip.conf"),
        );
        settings.copy(
            below(&config, "uv/uv.toml"),
            Place::Home(".config/uv/uv.toml"),
        );
        for (variable, file) in [
            ("PIP_CONFIG_FILE", "pip.conf"),
            ("UV_CONFIG_FILE", "uv.toml"),
            ("NETRC", ".netrc"),
        ] {
            match lookup(variable) {
                // pip's way to say: no configuration at all.
                Some(path) if path == "/dev/null" => {
                    settings.env.insert(variable.to_owned(), path);
                }
                path => settings.copy(path.map(PathBuf::from), Place::Named(file, variable)),
            }
        }
        settings
    }

    /// What uv's own files say, weakest first.
    pub(crate) fn uv_files(&self) -> Result<Vec<UvToml>, DepsError> {
        let silent = self
            .env
            .get("UV_NO_CONFIG")
            .is_some_and(|v| pip_conf::is_true(v));
        self.files
            .iter()
            .filter(|file| file.place.is("uv.toml") && !silent)
            .map(|file| {
                UvToml::parse(&String::from_utf8_lossy(&file.content))
                    .map_err(|message| DepsError::UvSettings { message })
            })
            .collect()
    }

    pub(crate) fn uv_no_index(&self) -> bool {
        self.env
            .get("UV_NO_INDEX")
            .is_some_and(|value| pip_conf::is_true(value))
    }

    /// With what the interpreter's own tree says to pip.
    pub(crate) fn of_interpreter(mut self, prefix: &Path) -> Settings {
        self.site = read_small(&prefix.join("pip.conf"));
        self
    }

    fn copy(&mut self, path: Option<PathBuf>, place: Place) {
        if let Some(content) = path.and_then(|p| read_small(&p)) {
            self.files.push(SettingFile { place, content });
        }
    }
}

impl Place {
    pub(crate) fn is(self, name: &str) -> bool {
        let (Place::System(path) | Place::Home(path) | Place::Named(path, _)) = self;
        path.rsplit('/').next() == Some(name)
    }
}

/// A regular file of at most `MAX_FILE` bytes, if it is there and may be read.
pub(crate) fn read_small(path: &Path) -> Option<Vec<u8>> {
    if !std::fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut content = Vec::new();
    File::open(path)
        .ok()?
        .take(MAX_FILE + 1)
        .read_to_end(&mut content)
        .ok()?;
    (content.len() as u64 <= MAX_FILE).then_some(content)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn gather(variables: &[(&str, &str)]) -> Settings {
        let owned: BTreeMap<String, String> = variables
            .iter()
            .map(|(k, v)| ((*k).into(), (*v).into()))
            .collect();
        let mut settings = Settings::gather(&|name| owned.get(name).cloned());
        // The machine's own settings are not this test's.
        settings
            .files
            .retain(|f| !matches!(f.place, Place::System(_)));
        settings
    }

    #[test]
    fn only_index_settings_pass() {
        let settings = gather(&[
            ("PIP_INDEX_URL", "https://a.example"),
            ("AWS_SECRET_ACCESS_KEY", "x"),
            ("UV_KEYRING_PROVIDER", "subprocess"),
            ("PIP_TARGET", "/x"),
        ]);
        assert_eq!(settings.env.keys().collect::<Vec<_>>(), ["PIP_INDEX_URL"]);
    }

    #[test]
    fn files_of_the_user_are_copied_to_where_installers_look() {
        let home = tempfile::tempdir().unwrap();
        for (path, text) in [
            (
                ".config/pip/pip.conf",
                "[global]\nindex-url = https://a.example\n",
            ),
            (".config/uv/uv.toml", ""),
            (".netrc", "secret"),
            (".ssh/id", "secret"),
        ] {
            let path = home.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let settings = gather(&[("HOME", home.path().to_str().unwrap())]);
        let places: Vec<Place> = settings.files.iter().map(|f| f.place).collect();
        assert_eq!(
            places,
            [
                Place::Home(".config/pip/pip.conf"),
                Place::Home(".config/uv/uv.toml")
            ]
        );
        assert_eq!(settings.pip_options()["index-url"], "https://a.example");
    }

    #[test]
    fn a_netrc_is_passed_only_when_it_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let settings = gather(&[("NETRC", file.path().to_str().unwrap())]);
        assert_eq!(settings.files[0].place, Place::Named(".netrc", "NETRC"));
    }
}
