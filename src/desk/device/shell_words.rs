//! Arguments of commands as the device's shell takes them.

/// The arguments as one command line, of which every POSIX shell makes the same arguments again: mksh, dash
/// and busybox. Nothing in an argument is expanded.
///
/// A NUL byte cannot be part of an argument. It is left out.
pub fn command_line<S: AsRef<str>>(args: &[S]) -> String {
    args.iter().map(|arg| quoted(arg.as_ref())).collect::<Vec<_>>().join(" ")
}

/// One word, in single quotes.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\0', "").replace('\'', r"'\''"))
}

/// A text as one word of letters, digits, `.`, `_`, `-` and `%`, for a shell whose `echo` expands
/// backslashes, and that has no `printf` (Android 5).
pub fn encoded(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    text.bytes()
        .map(|byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02x}") })
        .collect()
}

/// The text that [`encoded`] has made this word of. A `%` without two digits stays what it is.
pub fn decoded(word: &str) -> String {
    let mut parts = word.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let byte = part.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match byte {
            Some(byte) => bytes.extend([&[byte], &part.as_bytes()[2..]].concat()),
            None => bytes.extend([b"%", part.as_bytes()].concat()),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn an_encoded_name_is_one_plain_word() {
        let name = "it's $(x)\n%41 ä.dat";
        assert_eq!(encoded(name), "it%27s%20%24%28x%29%0a%2541%20%c3%a4.dat");
        assert_eq!(decoded(&encoded(name)), name);
        assert_eq!(decoded("50%"), "50%");
    }

    #[test]
    fn a_shell_makes_the_same_words_again() {
        let words = [
            "",
            "plain",
            "it's",
            "a b",
            "$(id)",
            "`id`",
            "\"x\"",
            "a\nb",
            "ärger 漢字",
            "\\",
            "*",
            "~",
            "#x",
            "-n",
        ];
        assert_eq!(command_line(&["echo", "it's"]), r"echo 'it'\''s'");
        let printed = std::process::Command::new("sh")
            .args(["-c", &format!("printf '%s|' {}", command_line(&words))])
            .output()
            .unwrap();
        assert_eq!(String::from_utf8(printed.stdout).unwrap(), words.map(|word| format!("{word}|")).concat());
    }
}
