//! The name of a file without its directories.

/// The last part of a path of any system. People send traces and pages to each other, and the directories say
/// who they are.
pub fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().filter(|name| !name.is_empty()).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_left_out() {
        assert_eq!(file_name("/home/me/a.trace"), "a.trace");
        assert_eq!(file_name("C:\\me\\a.trace"), "a.trace");
        assert_eq!(file_name("a.trace"), "a.trace");
        assert_eq!(file_name("-"), "-");
        assert_eq!(file_name("/tmp/"), "/tmp/");
    }
}
