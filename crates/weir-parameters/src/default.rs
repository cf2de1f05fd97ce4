//! Defaults of a program or the kernel, by version.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

/// The default since one version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DefaultLevel {
    /// The level. `None` if it is not a fixed one (an inherited limit, a share of the memory).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<String>,
    /// First version of the program or the kernel with this default, if its documentation or its history names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// A remark, such as the default on another system or what the level is computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Defaults of a parameter, oldest first; never empty. A file may give a single one without a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Defaults(Vec<DefaultLevel>);

impl Defaults {
    /// Returns all defaults, oldest first.
    pub fn all(&self) -> &[DefaultLevel] {
        &self.0
    }

    /// Returns the default of the newest version.
    pub fn newest(&self) -> &DefaultLevel {
        &self.0[self.0.len() - 1]
    }

    /// Returns the level that every version has. `None` if versions differ, or have no fixed level.
    pub fn always(&self) -> Option<&str> {
        let newest = self.newest().level.as_deref()?;
        self.0.iter().all(|default| default.level.as_deref() == Some(newest)).then_some(newest)
    }

    /// Returns the default of `version` alone.
    #[must_use]
    pub(crate) fn only(&self, version: &str) -> Defaults {
        Defaults(vec![self.at(version).clone()])
    }

    /// Returns the default of `version` (`6.1`, `6.18.4-1-amd64`): the newest that is not newer than it, or the oldest
    /// if all are newer.
    pub fn at(&self, version: &str) -> &DefaultLevel {
        self.0
            .iter()
            .rev()
            .find(|default| {
                is_version_at_least(version, default.since.as_deref().unwrap_or_default())
            })
            .unwrap_or(&self.0[0])
    }
}

/// Returns true if a version (`6.18.4-1-amd64`) is `since` or newer.
pub fn is_version_at_least(version: &str, since: &str) -> bool {
    numbers(since) <= numbers(version)
}

/// Parses `6.18.4-1-amd64` into 6, 18, 4: the numbers up to the first character that is neither a digit nor a dot.
fn numbers(version: &str) -> Vec<u64> {
    let end = version.find(|c: char| !c.is_ascii_digit() && c != '.');
    let numeric = &version[..end.unwrap_or(version.len())];
    numeric.split('.').map_while(|n| n.parse().ok()).collect()
}

impl<'de> Deserialize<'de> for Defaults {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Defaults, D::Error> {
        from.deserialize_any(OneOrMore)
    }
}

struct OneOrMore;

impl<'de> Visitor<'de> for OneOrMore {
    type Value = Defaults;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a default such as `{level: \"4096\", since: \"5.4\"}`, or a list of them")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Defaults, A::Error> {
        let level = DefaultLevel::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Defaults(vec![level]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Defaults, A::Error> {
        let mut all = Vec::new();
        while let Some(default) = list.next_element()? {
            all.push(default);
        }
        if all.is_empty() {
            Err(serde::de::Error::invalid_length(0, &self))
        } else {
            Ok(Defaults(all))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defaults(list: &[(&str, Option<&str>)]) -> Defaults {
        Defaults(
            list.iter()
                .map(|(level, since)| DefaultLevel {
                    level: Some((*level).to_owned()),
                    since: since.map(str::to_owned),
                    note: None,
                })
                .collect(),
        )
    }

    #[test]
    fn a_version_has_the_newest_default_that_is_not_newer() {
        let some = defaults(&[("128", None), ("4096", Some("5.4")), ("1", Some("5.10"))]);
        for (version, level) in [
            ("4.19.0", "128"),
            ("5.4.0-rc1", "4096"),
            ("5.4", "4096"),
            ("5.9.99", "4096"),
            ("5.10.1-amd64", "1"),
            ("6.18.44", "1"),
            ("", "128"),
            ("nonsense", "128"),
        ] {
            assert_eq!(some.at(version).level.as_deref().unwrap_or_default(), level, "{version}");
        }
        assert_eq!(some.newest().level.as_deref(), Some("1"));
        assert_eq!(some.only("5.9").newest().level.as_deref(), Some("4096"));
        assert_eq!(some.only("4.1").always(), Some("128"));
        assert_eq!(some.always(), None);
        let later = defaults(&[("2", Some("4.19")), ("3", Some("5"))]);
        assert_eq!(later.at("3.2").level.as_deref(), Some("2"));
    }

    #[test]
    fn a_file_gives_one_or_a_list() {
        let single: Defaults = serde_saphyr::from_str("{level: \"1\"}").expect("one default");
        assert_eq!(single, defaults(&[("1", None)]));
        let two: Defaults =
            serde_saphyr::from_str("[{level: \"1\"}, {level: \"2\", since: \"5.4\"}]")
                .expect("two defaults");
        assert_eq!(two, defaults(&[("1", None), ("2", Some("5.4"))]));
        for wrong in ["[]", "5", "{levle: \"1\"}"] {
            assert!(serde_saphyr::from_str::<Defaults>(wrong).is_err(), "{wrong}");
        }
    }
}
