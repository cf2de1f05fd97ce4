//! Users besides its owner who may write to a file whose mode lets its group write.

use std::fs;
use std::path::Path;

use rustix::fs::lgetxattr_query;
use rustix::io::Errno;

/// Folders of user records, by which there are users and members that are in neither /etc/passwd nor /etc/group
/// (nss-systemd(8)).
const USER_RECORDS: [&str; 5] =
    ["/etc/userdb", "/run/userdb", "/run/host/userdb", "/usr/local/lib/userdb", "/usr/lib/userdb"];

/// Returns true if a file has an access control list (acl(5)), or nobody can tell. The group's bits of its mode are
/// then the most that any user of the list may do.
pub(crate) fn has_access_list(path: &Path) -> bool {
    let length = lgetxattr_query(path, "system.posix_acl_access");
    !matches!(length, Err(Errno::NODATA | Errno::NOTSUP))
}

/// Returns true if nobody but the user with the group's number can be in a group. Many systems give each user such a
/// group, and let it write by umask 002.
pub(crate) fn is_group_of_one_user(group: u32) -> bool {
    if USER_RECORDS.iter().any(|folder| holds_something(folder)) {
        return false;
    }
    let files = ["/etc/passwd", "/etc/group", "/etc/nsswitch.conf"].map(fs::read);
    let [Ok(users), Ok(groups), Ok(services)] = files else {
        return false;
    };
    let [users, groups, services] =
        [&users, &groups, &services].map(|bytes| String::from_utf8_lossy(bytes));
    is_of_files_alone(&services) && has_one_user(group, &users, &groups)
}

fn holds_something(folder: &str) -> bool {
    fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some())
}

/// Returns true if all users and groups are known here (nsswitch.conf(5)): nobody can list the members of a group of
/// LDAP.
fn is_of_files_alone(services: &str) -> bool {
    let databases = services.lines().filter_map(|line| {
        let (name, words) = line.split('#').next()?.split_once(':')?;
        let has_members = ["passwd", "group", "initgroups"].contains(&name.trim());
        has_members.then_some(words)
    });
    let mut words = databases.flat_map(str::split_ascii_whitespace);
    // `[SUCCESS=merge]` says what becomes of an answer.
    words.all(|word| ["files", "systemd"].contains(&word) || word.starts_with('['))
}

/// Returns true if a group has no members, and is the first group of no other user. A line that is not understood may
/// mean anything.
fn has_one_user(group: u32, users: &str, groups: &str) -> bool {
    // NAME:PASSWORD:USER:GROUP:… (passwd(5)).
    let no_other_user = entries(users).all(|user| {
        let first_group = number(&user, 3);
        first_group.is_some_and(|first| first != group || number(&user, 2) == Some(group))
    });
    // NAME:PASSWORD:GROUP:MEMBERS (group(5)).
    let no_member = entries(groups).all(|entry| {
        number(&entry, 2).is_some_and(|number| number != group || entry.get(3) == Some(&""))
    });
    let is_known = entries(groups).any(|entry| number(&entry, 2) == Some(group));
    is_known && no_other_user && no_member
}

/// Fields of the lines of a database that are no comments.
fn entries(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.split(':').collect())
}

fn number(fields: &[&str], at: usize) -> Option<u32> {
    fields.get(at)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_line(text: &str, line: &str) -> String {
        format!("{text}{line}\n")
    }

    #[test]
    fn a_group_has_one_user_only_where_nobody_else_can_be_in_it() {
        let ann = "root:x:0:0::/root:/bin/sh\nann:x:1234:1234::/home/ann:/bin/sh\n";
        let (group, files) = ("root:x:0:\nann:x:1234:\n", "passwd: files systemd\n");
        #[rustfmt::skip]
        let rows = [
            ("alone", ann.to_owned(), group.to_owned(), files.to_owned(), true),
            ("another name", with_line(ann, "toor:x:1234:1234::/:/bin/sh"), group.to_owned(), files.to_owned(), true),
            ("first group of another", with_line(ann, "bob:x:2000:1234::/:/bin/sh"), group.to_owned(), files.to_owned(), false),
            ("a member", ann.to_owned(), group.replace("1234:", "1234:bob"), files.to_owned(), false),
            ("a second line with a member", ann.to_owned(), with_line(group, "friends:x:1234:bob"), files.to_owned(), false),
            ("no such group", ann.to_owned(), "root:x:0:\n".to_owned(), files.to_owned(), false),
            ("users of NIS", with_line(ann, "+::::::"), group.to_owned(), files.to_owned(), false),
            ("groups of NIS", ann.to_owned(), with_line(group, "+:::"), files.to_owned(), false),
            ("a comment", with_line(ann, "# bob:x:2000:1234"), with_line(group, ""), with_line(files, "# group: ldap"), true),
            ("users of LDAP", ann.to_owned(), group.to_owned(), "passwd:files ldap".to_owned(), false),
            ("groups of sssd", ann.to_owned(), group.to_owned(), with_line(files, "group: sss [SUCCESS=merge] files"), false),
            ("groups of files", ann.to_owned(), group.to_owned(), with_line(files, "group: files [SUCCESS=merge] systemd"), true),
            ("other databases", ann.to_owned(), group.to_owned(), with_line(files, "hosts: files dns"), true),
        ];
        for (name, users, groups, services, expected) in rows {
            let has_one = is_of_files_alone(&services) && has_one_user(1234, &users, &groups);
            assert_eq!(has_one, expected, "{name}");
        }
    }
}
