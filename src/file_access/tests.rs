use std::fs;

use super::*;

fn kind(result: Result<impl Sized, PathError>) -> io::ErrorKind {
    result.err().expect("an error").source.kind()
}

#[test]
fn paths_stay_below_the_roots() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    fs::create_dir_all(root.join("in")).unwrap();
    fs::write(root.join("a.dat"), "x").unwrap();
    fs::write(dir.path().join("secret"), "x").unwrap();
    let roots = Roots::new(std::slice::from_ref(&root)).unwrap();
    for inside in ["a.dat", "in/../a.dat", "a.dat//member", "in", ".", "./in//../a.dat", ".//a.dat"] {
        assert!(roots.input(inside).is_ok(), "{inside}");
    }
    assert!(roots.input(root.join("a.dat").to_str().unwrap()).is_ok());
    let mut outside = ["/etc/passwd", "/none", "in/../../secret"].map(str::to_owned).to_vec();
    for name in ["secret", "none", "root2"] {
        for way in ["../", ".//../", "in//../../", "in/../../", "none//../../", "//../"] {
            outside.extend([format!("{way}{name}"), format!("{way}{name}//x"), format!("{way}{name}//x//y")]);
        }
    }
    let texts: Vec<String> =
        outside.iter().map(|path| roots.input(path).unwrap_err().source.to_string()).collect();
    // The answer does not depend on what is there.
    for (path, text) in outside.iter().zip(&texts) {
        let twin = path.replace("secret", "none").replace("passwd", "none");
        assert_eq!(*text, roots.input(&twin).unwrap_err().source.to_string(), "{path}");
    }
    assert_eq!(kind(roots.input("../secret")), io::ErrorKind::CrossesDevices);
    assert_eq!(kind(roots.input("none")), io::ErrorKind::NotFound);
    assert_eq!(kind(roots.input("in//a")), io::ErrorKind::NotFound);
    assert!(roots.output("in/new.html").is_ok());
    assert_eq!(kind(roots.output("a.dat")), io::ErrorKind::AlreadyExists);
    assert_eq!(kind(roots.output("../new.html")), io::ErrorKind::CrossesDevices);
    assert_eq!(kind(roots.output("..")), io::ErrorKind::InvalidInput);
}

#[cfg(unix)]
#[test]
fn links_lead_to_what_is_inside_and_tell_nothing_of_the_rest() {
    use std::os::unix::fs::symlink;

    let dir = tempfile::tempdir().unwrap();
    let [root, other] = ["root", "other"].map(|name| dir.path().join(name));
    for dir in [&root, &other] {
        fs::create_dir_all(dir.join("in/deep")).unwrap();
        fs::write(dir.join("a.dat"), "x").unwrap();
    }
    fs::write(dir.path().join("secret"), "x").unwrap();
    let link = |to: &str, name: &str| symlink(to, root.join(name)).unwrap();
    link("/etc", "etc");
    link("/nowhere/at/all", "gone");
    link("../secret", "near");
    link("../nothing", "near_gone");
    link(root.join("a.dat").to_str().unwrap(), "absolute");
    link("in/deep/../../a.dat", "around");
    link("../other/a.dat", "other");
    link("circle", "circle");
    let roots = Roots::new(&[root.clone(), other]).unwrap();
    for path in ["absolute", "around", "other", "../other/a.dat", "in/deep"] {
        assert!(roots.input(path).is_ok(), "{path}");
    }
    for path in
        ["etc/passwd", "etc/none", "etc", "gone", "near", "near_gone", "near//x", "../other/../secret"]
    {
        assert_eq!(kind(roots.input(path)), io::ErrorKind::CrossesDevices, "{path}");
    }
    assert!(roots.input("circle").is_err());
    assert_eq!(kind(roots.output("etc/new")), io::ErrorKind::CrossesDevices);
    assert_eq!(kind(roots.output("gone")), io::ErrorKind::AlreadyExists);
    let fifo = root.join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
    assert_eq!(kind(roots.input("fifo")), io::ErrorKind::InvalidInput);
    let names: Vec<_> = roots.entries(&root.join("in")).unwrap().map(Result::unwrap).collect();
    assert_eq!(names, [root.join("in/deep")]);
}

/// Whatever is made of these parts, no path leads to a file outside.
#[cfg(unix)]
#[test]
fn no_path_of_many_leads_out() {
    use std::os::unix::fs::symlink;

    const PARTS: [&str; 12] =
        ["..", ".", "", "in", "a.zip", "up", "out", "self", "secret.zip", "/", "//", "in/../.."];
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    fs::create_dir_all(root.join("in")).unwrap();
    fs::write(root.join("a.zip"), "x").unwrap();
    fs::write(dir.path().join("secret.zip"), "x").unwrap();
    for (to, name) in [("..", "up"), ("../secret.zip", "out"), (".", "self")] {
        symlink(to, root.join(name)).unwrap();
        symlink(Path::new("..").join(to), root.join("in").join(name)).unwrap();
    }
    let roots = Roots::new(std::slice::from_ref(&root)).unwrap();
    let canonical = root.canonicalize().unwrap();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut found = 0;
    for _ in 0..20_000 {
        let mut path = String::new();
        for _ in 0..state % 7 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            path += PARTS[(state >> 33) as usize % PARTS.len()];
            path += "/";
        }
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        if let Ok(input) = roots.find(&root.join(&path)) {
            assert!(input.path.starts_with(&canonical), "{path}: {}", input.path.display());
            found += 1;
        }
    }
    assert!(found > 100, "{found}");
}
