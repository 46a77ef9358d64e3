//! The origin of a method: the app, a library in the app, or Android's framework and runtime.

/// Packages of Android's framework and of its runtime.
const FRAMEWORK: [&str; 14] = [
    "android",
    "com.android",
    "com.google.android.collect",
    "com.google.android.gles_jni",
    "dalvik",
    "java",
    "javax",
    "jdk",
    "libcore",
    "org.apache.harmony",
    "org.json",
    "org.xml.sax",
    "org.xmlpull",
    "sun",
];

/// Packages of libraries that apps carry. They are asked before [`FRAMEWORK`].
const LIBRARIES: [&str; 35] = [
    "android.arch",
    "android.support",
    "androidx",
    "arrow",
    "butterknife",
    "coil",
    "com.airbnb",
    "com.bumptech",
    "com.caverock",
    "com.facebook",
    "com.fasterxml",
    "com.google",
    "com.jakewharton",
    "com.squareup",
    "com.sun.jna",
    "dagger",
    "io.grpc",
    "io.ktor",
    "io.netty",
    "io.reactivex",
    "javax.inject",
    "junit",
    "kotlin",
    "kotlinx",
    "leakcanary",
    "okhttp3",
    "okio",
    "org.apache",
    "org.greenrobot",
    "org.jetbrains",
    "org.junit",
    "org.koin",
    "org.slf4j",
    "retrofit2",
    "rx",
];

/// The origin of a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CodeOrigin {
    App,
    Library,
    Framework,
}

impl CodeOrigin {
    /// The origin of the method with this full name. What begins with one of the packages `app` is the app's,
    /// and what does not is not. Without any such package all that is neither the framework nor a known
    /// library counts as the app's.
    pub(super) fn of(method: &str, app: &[String]) -> CodeOrigin {
        let within = |package: &&str| is_within(method, package);
        if app.iter().any(|package| is_within(method, package)) {
            return CodeOrigin::App;
        }
        // The longest package that fits decides: org.apache.harmony before org.apache.
        let longest = |packages: &[&str]| {
            packages.iter().copied().filter(|package| within(package)).map(str::len).max().unwrap_or(0)
        };
        match (longest(&FRAMEWORK), longest(&LIBRARIES)) {
            (0, 0) if app.is_empty() => CodeOrigin::App,
            (framework, library) if framework > library => CodeOrigin::Framework,
            _ => CodeOrigin::Library,
        }
    }
}

/// Whether `name` is `package`, or lies in it.
fn is_within(name: &str, package: &str) -> bool {
    name.strip_prefix(package)
        .is_some_and(|rest| rest.is_empty() || package.ends_with('.') || rest.starts_with(['.', '$']))
}

#[cfg(test)]
mod tests {
    use super::CodeOrigin::{App, Framework, Library};
    use super::*;

    #[test]
    fn packages_tell_the_app_from_libraries_and_the_framework() {
        let guess = |method| CodeOrigin::of(method, &[]);
        assert_eq!(guess("com.example.Main.run"), App);
        assert_eq!(guess("androids.Main.run"), App);
        assert_eq!(guess("a.a"), App);
        assert_eq!(guess("android.os.Looper.loop"), Framework);
        assert_eq!(guess("android.support.v4.app.Fragment.show"), Library);
        assert_eq!(guess("kotlin.text.Regex.find"), Library);
        assert_eq!(guess("org.apache.http.Client.run"), Library);
        assert_eq!(guess("org.apache.harmony.Luni.run"), Framework);
        assert_eq!(guess("com.google.android.collect.Maps.newMap"), Framework);
    }

    #[test]
    fn with_the_app_s_packages_the_rest_is_a_library() {
        let app = ["com.example".to_owned(), "kotlin.mine.".to_owned()];
        let told = |method| CodeOrigin::of(method, &app);
        assert_eq!(told("com.example.Main.run"), App);
        assert_eq!(told("com.example$Main.run"), App);
        assert_eq!(told("com.examples.Main.run"), Library);
        assert_eq!(told("kotlin.mine.Regex.find"), App);
        assert_eq!(told("org.other.Main.run"), Library);
        assert_eq!(told("java.lang.Object.wait"), Framework);
    }
}
