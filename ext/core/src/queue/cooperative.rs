//! Code that relies on running alone between two waits: its fibers are not preempted while it runs.
//!
//! Libraries for fibers are written so. What is asked is whose code runs, and not what it does: that of the innermost
//! frame, where a library's frames that serve any caller (Ruby's own, and this project's) count as their caller's.

/// Whose code is cooperative.
#[derive(Debug, Default)]
pub struct Cooperative {
    /// How the paths of files begin.
    folders: Vec<String>,
    /// The names of gems.
    gems: Vec<Gem>,
    /// How the paths of files begin that count as their caller's.
    transparent: Vec<String>,
}

/// The name of a gem, or how the names of several begin.
#[derive(Debug)]
struct Gem {
    name: String,
    is_prefix: bool,
}

impl Gem {
    /// Whether this is the gem's folder: its name, and a version, or the commit of a checkout.
    fn has_folder(&self, folder: &str) -> bool {
        let Some(rest) = folder.strip_prefix(self.name.as_str()) else { return false };
        let is_commit = |text: &str| text.len() >= 7 && text.chars().all(|digit| digit.is_ascii_hexdigit());
        let is_version = |text: &str| text.starts_with(|first: char| first.is_ascii_digit()) || is_commit(text);
        self.is_prefix || rest.strip_prefix('-').is_some_and(is_version)
    }
}

impl Cooperative {
    /// `given` are absolute paths of folders, names of gems, and beginnings of names, which end with `*`. `transparent`
    /// are beginnings of paths.
    pub fn new(given: impl IntoIterator<Item = String>, transparent: Vec<String>) -> Self {
        let mut cooperative = Cooperative { transparent, ..Cooperative::default() };
        for entry in given {
            if entry.starts_with('/') {
                cooperative.folders.push(entry);
            } else {
                let is_prefix = entry.ends_with('*');
                cooperative.gems.push(Gem { name: entry.trim_end_matches('*').to_owned(), is_prefix });
            }
        }
        cooperative
    }

    /// Whose code the frame with this path runs: cooperative code (`Some(true)`), other code (`Some(false)`), or its
    /// caller's (`None`).
    pub fn judge(&self, path: &str) -> Option<bool> {
        if self.folders.iter().any(|folder| is_within(path, folder)) || self.is_gem(path) {
            return Some(true);
        }
        if self.transparent.iter().any(|start| path.starts_with(start.as_str())) { None } else { Some(false) }
    }

    fn is_gem(&self, path: &str) -> bool {
        let mut folders =
            path.split("/gems/").skip(1).map(|rest| rest.split_once('/').map_or(rest, |(folder, _)| folder));
        folders.any(|folder| self.gems.iter().any(|gem| gem.has_folder(folder)))
    }
}

/// Whether the path is the folder, or is in it.
fn is_within(path: &str, folder: &str) -> bool {
    let folder = folder.trim_end_matches('/');
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(given: &[&str], path: &str) -> Option<bool> {
        let given = given.iter().map(|entry| (*entry).to_owned());
        Cooperative::new(given, vec!["/usr/lib/ruby/3.4.0/".to_owned(), "<internal:".to_owned()]).judge(path)
    }

    #[test]
    fn a_file_in_a_folder_is_cooperative() {
        for (path, expected) in [
            ("/app/lib/peer.rb", true),
            ("/app/lib/peer/frame.rb", true),
            ("/app/library/peer.rb", false),
            ("/app/other.rb", false),
        ] {
            assert_eq!(judge(&["/app/lib"], path), Some(expected), "{path}");
            assert_eq!(judge(&["/app/lib/"], path), Some(expected), "{path}");
        }
    }

    #[test]
    fn a_file_of_a_gem_is_cooperative_whatever_its_version() {
        for (path, expected) in [
            ("/var/gems/async-2.46.0/lib/async.rb", true),
            ("/usr/share/rubygems-integration/all/gems/async-2.46.0/lib/async/task.rb", true),
            ("/app/vendor/bundle/ruby/3.4.0/bundler/gems/async-0a1b2c3d4e5f/lib/async.rb", true),
            ("/var/gems/async-http-0.105.0/lib/async/http.rb", false),
            ("/var/gems/async-bus-0.3.0/lib/async/bus.rb", false),
            ("/var/gems/asyncish-1.0/lib/a.rb", false),
            ("/app/gems/async/lib/async.rb", false),
            ("/app/async-2.46.0/lib/async.rb", false),
        ] {
            assert_eq!(judge(&["async"], path), Some(expected), "{path}");
        }
    }

    #[test]
    fn a_name_with_an_asterisk_is_that_of_several_gems() {
        for (path, expected) in [
            ("/var/gems/async-2.46.0/lib/async.rb", true),
            ("/var/gems/async-http-0.105.0/lib/async/http.rb", true),
            ("/var/gems/rack-3.1.0/lib/rack.rb", false),
        ] {
            assert_eq!(judge(&["async*"], path), Some(expected), "{path}");
        }
    }

    #[test]
    fn rubys_own_files_count_as_their_callers() {
        for path in ["<internal:kernel>", "/usr/lib/ruby/3.4.0/set.rb"] {
            assert_eq!(judge(&["async"], path), None, "{path}");
        }
    }

    #[test]
    fn a_gem_within_a_transparent_folder_is_what_it_is_said_to_be() {
        assert_eq!(judge(&["async"], "/usr/lib/ruby/3.4.0/gems/async-2.46.0/lib/async.rb"), Some(true));
    }
}
