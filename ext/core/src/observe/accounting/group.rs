//! The name under which a fiber is counted: the same for all requests of a kind.

use std::borrow::Cow;

/// How many bytes of a name count.
pub const LONGEST: usize = 120;
/// What stands for an id within a path.
const ID: &str = ":id";
/// A shorter word of hexadecimal digits may be a word.
const SHORTEST_HEX: usize = 12;

/// `GET /users/7/posts` becomes `GET /users/:id/posts`, and `Report 8f0c4c5a9b3d` becomes `Report`. A name of more than
/// [`LONGEST`] bytes is cut, and so is the query of a path.
pub fn of(name: &str) -> Cow<'_, str> {
    let name = cut(name);
    let query = name.find('/').and_then(|path| name[path..].find('?').map(|query| path + query));
    let name = &name[..query.unwrap_or(name.len())];
    if !name.bytes().any(|byte| byte.is_ascii_digit()) {
        return Cow::Borrowed(name);
    }
    let mut group = String::with_capacity(name.len());
    for part in name.split_inclusive(['/', ' ']) {
        let word = part.trim_end_matches(['/', ' ']);
        let in_path = group.ends_with('/');
        let stem = if in_path { word.split('.').next().unwrap_or(word) } else { word };
        if !is_id(stem) {
            group.push_str(part);
            continue;
        }
        if in_path {
            group.push_str(ID);
        } else {
            // A job's id follows its class.
            group.truncate(group.trim_end_matches(' ').len());
        }
        group.push_str(&part[stem.len()..]);
    }
    if group.is_empty() { Cow::Borrowed(name) } else { Cow::Owned(group) }
}

fn cut(name: &str) -> &str {
    let mut end = name.len().min(LONGEST);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    &name[..end]
}

/// Whether it is a number, a UUID, or a long hexadecimal number.
fn is_id(word: &str) -> bool {
    let is_hex = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
    let has_digit = word.bytes().any(|byte| byte.is_ascii_digit());
    let is_number = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    is_number || word.len() >= SHORTEST_HEX && has_digit && word.bytes().all(is_hex)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_in_a_path_are_left_out() {
        assert_eq!(of("GET /users/7/posts/12"), "GET /users/:id/posts/:id");
        assert_eq!(of("GET /f/3c0c9f5e-8b1a-4e0e-9d3e-1f0a2b3c4d5e/raw"), "GET /f/:id/raw");
        assert_eq!(of("GET /users/7.json?page=2"), "GET /users/:id.json");
        assert_eq!(of("GET /v1/users"), "GET /v1/users", "a word with a digit is no id");
    }

    #[test]
    fn a_jobs_id_is_left_out() {
        assert_eq!(of("Report::Monthly 3f2504e04f8941d39a0c0305"), "Report::Monthly");
        assert_eq!(of("worker 12"), "worker");
        assert_eq!(of("worker 12 of 20"), "worker of");
    }

    #[test]
    fn a_name_that_is_only_an_id_stays() {
        assert_eq!(of("12"), "12");
        assert_eq!(of(""), "");
        assert_eq!(of("/ / 1"), "/ /");
    }

    #[test]
    fn words_of_hexadecimal_letters_stay() {
        assert_eq!(of("GET /facade/deadbeefdeadbeef/v2"), "GET /facade/deadbeefdeadbeef/v2");
    }

    #[test]
    fn a_long_name_is_cut_between_characters() {
        let name = "é".repeat(LONGEST);
        assert_eq!(of(&name), "é".repeat(LONGEST / 2));
        let odd = format!("x{name}");
        assert_eq!(of(&odd).len(), LONGEST - 1);
    }
}
