//! As much of `uv.toml` as says whom uv will ask.

use serde::Deserialize;

/// Everything else in the file is uv's business.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(crate) struct UvToml {
    index: Vec<Index>,
    #[serde(flatten)]
    top: Indexes,
    /// For the interface that installs are made with; stronger than what stands at the top.
    pip: Indexes,
    pub(crate) http_proxy: Option<String>,
    pub(crate) https_proxy: Option<String>,
    pub(crate) no_proxy: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Index {
    url: String,
    default: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Indexes {
    index_url: Option<String>,
    extra_index_url: Vec<String>,
    find_links: Vec<String>,
    no_index: Option<bool>,
}

impl UvToml {
    pub(crate) fn parse(text: &str) -> Result<UvToml, String> {
        toml::from_str(text).map_err(|error| error.message().to_owned())
    }

    /// Takes the place of uv's own index.
    pub(crate) fn default_index(&self) -> impl Iterator<Item = &str> {
        let named = self.index.iter().filter(|index| index.default);
        named
            .map(|index| index.url.as_str())
            .chain(self.top.index_url.as_deref())
            .chain(self.pip.index_url.as_deref())
    }

    /// Asked besides.
    pub(crate) fn more_indexes(&self) -> impl Iterator<Item = &str> {
        let named = self.index.iter().filter(|index| !index.default);
        named.map(|index| index.url.as_str()).chain(
            [&self.top, &self.pip]
                .into_iter()
                .flat_map(|part| part.extra_index_url.iter().map(String::as_str)),
        )
    }

    pub(crate) fn links(&self) -> impl Iterator<Item = &str> {
        [&self.top, &self.pip]
            .into_iter()
            .flat_map(|part| part.find_links.iter().map(String::as_str))
    }

    pub(crate) fn no_index(&self) -> Option<bool> {
        self.pip.no_index.or(self.top.no_index)
    }

    /// Whether it says anything about where packages come from.
    pub(crate) fn names_sources(&self) -> bool {
        self.default_index()
            .chain(self.more_indexes())
            .next()
            .is_some()
            || self.links().next().is_some()
            || self.no_index().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_found_wherever_uv_takes_them_from() {
        let read = UvToml::parse(
            "index-url = \"https://a.example\"\nextra-index-url = [\"https://b.example\"]\n\
             native-tls = true\nhttps-proxy = \"http://p.example\"\n\
             [pip]\nindex-url = \"https://c.example\"\nfind-links = [\"/wheels\"]\nno-index = false\n\
             [[index]]\nname = \"d\"\nurl = \"https://d.example\"\n\
             [[index]]\nurl = \"https://e.example\"\ndefault = true\n",
        )
        .unwrap();
        let own: Vec<_> = read.default_index().collect();
        assert_eq!(
            own,
            [
                "https://e.example",
                "https://a.example",
                "https://c.example"
            ]
        );
        let more: Vec<_> = read.more_indexes().collect();
        assert_eq!(more, ["https://d.example", "https://b.example"]);
        assert_eq!(read.links().collect::<Vec<_>>(), ["/wheels"]);
        assert_eq!(read.no_index(), Some(false));
        assert_eq!(read.https_proxy.as_deref(), Some("http://p.example"));
        assert!(read.names_sources());
    }

    #[test]
    fn other_settings_name_no_source() {
        let read = UvToml::parse("index-strategy = \"first-index\"\n[pip]\nno-cache = true\n");
        assert!(!read.unwrap().names_sources());
        assert!(UvToml::parse("index = 5").is_err());
    }
}
