//! One-time links: each signs a browser in once, without a password. The file has hashes of their secrets only.

use crate::lists::{Entry, ListFile, check_name, push};
use crate::role::Role;
use crate::secrets;
use serde::{Deserialize, Serialize};

/// A link, of whose secret only the hash is known.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Link {
    /// Name of the sign-in that it makes. Several links may have the same.
    pub name: String,
    /// What the sign-in may do.
    pub role: Role,
    /// SHA-256 of the secret, in hexadecimal digits.
    sha256: String,
    /// When it expires, in seconds since 1970.
    expires: u64,
}

impl Entry for Link {
    const KIND: &'static str = "link";
    const MOST: usize = 64;

    fn name(&self) -> &str {
        &self.name
    }
}

/// Makes a link and returns its secret. Links that have expired are removed.
///
/// # Errors
/// The name cannot be used, there are too many links, or the file cannot be changed.
pub fn add(
    file: &ListFile<Link>,
    name: &str,
    role: Role,
    now: u64,
    expires: u64,
) -> Result<String, String> {
    check_name(name)?;
    let secret = secrets::generate();
    let link = Link {
        name: name.into(),
        role,
        sha256: secrets::digest(&secret),
        expires,
    };
    file.change(|links| {
        links.retain(|link| now < link.expires);
        push(links, link)
    })?;
    Ok(secret)
}

/// Where a browser signs in with a secret. The secret is in the fragment, which a browser sends to nobody (RFC 9110, sections 7.1 and
/// 10.1.3): it is in no log of a server or proxy, and in no `Referer`.
pub fn url(at: &str, secret: &str) -> String {
    format!("https://{at}/#/sign-in?link={secret}")
}

/// The link whose secret is presented; `None` if it is not in force.
pub fn find<'a>(links: &'a [Link], presented: &str, now: u64) -> Option<&'a Link> {
    let link = secrets::find(links, |link| &link.sha256, presented)?;
    (now < link.expires).then_some(link)
}

/// Takes the link whose secret is presented out of the file. Of several who present it at once exactly one gets it, because changes of the
/// file wait for each other.
///
/// # Errors
/// The file cannot be changed.
pub fn take(file: &ListFile<Link>, presented: &str, now: u64) -> Result<Option<Link>, String> {
    file.change(|links| {
        let taken = find(links, presented, now).cloned();
        if let Some(taken) = &taken {
            links.retain(|link| link.sha256 != taken.sha256);
        }
        Ok(taken)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn a_link_is_taken_once_and_before_it_expires() {
        let folder = tempfile::tempdir().unwrap();
        let file = ListFile::of(folder.path());
        let first = add(&file, "link", Role::View, 100, 200).unwrap();
        let second = add(&file, "link", Role::Configure, 100, 200).unwrap();
        let take = |secret: &str, now| {
            let taken = take(&file, secret, now).unwrap();
            taken.map(|link| link.role)
        };
        assert_eq!(take("", 100), None);
        assert_eq!(take(&first, 200), None, "it has expired");
        assert_eq!(take(&second, 199), Some(Role::Configure));
        assert_eq!(take(&second, 199), None, "it was used");
        assert_eq!(take(&first, 199), Some(Role::View));
    }

    #[test]
    fn of_many_who_use_a_link_at_once_one_gets_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = ListFile::of(folder.path());
        let secret = add(&file, "link", Role::View, 0, 10).unwrap();
        let got = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let taken = take(&file, &secret, 0).unwrap();
                    got.fetch_add(taken.iter().count(), Ordering::Relaxed);
                });
            }
        });
        assert_eq!(got.into_inner(), 1);
    }

    #[test]
    fn links_that_have_expired_make_room_and_no_secret_is_in_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = ListFile::of(folder.path());
        for _ in 0..Link::MOST {
            add(&file, "link", Role::View, 0, 10).unwrap();
        }
        let said = add(&file, "link", Role::View, 9, 20).unwrap_err();
        assert!(said.contains("64 links"), "{said}");
        let secret = add(&file, "link", Role::View, 10, 20).unwrap();
        assert_eq!(file.read().unwrap().len(), 1);
        let text = std::fs::read_to_string(folder.path().join("links.json")).unwrap();
        assert!(!text.contains(&secret), "{text}");
        let url = url("localhost:8443", &secret);
        let (before, _) = url.split_once('#').unwrap();
        assert!(!before.contains(&secret), "{url}");
    }
}
