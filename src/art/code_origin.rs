//! The owner of a method's code: the app, a library that it carries, or Android.
//!
//! The packages of the framework are those of AOSP's `frameworks/base` and `libcore` (boot class path); the
//! packages of libraries are the roots of the groups that apps use most, as Maven's repositories name them.

/// Packages of Android's framework and of its runtime.
const FRAMEWORK: [&str; 16] = [
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
    "org.ccil.cowan",
    "org.json",
    "org.w3c.dom",
    "org.xml.sax",
    "org.xmlpull",
    "sun",
];

/// Packages of libraries that apps carry. They are asked before [`FRAMEWORK`].
const LIBRARIES: [&str; 55] = [
    "android.arch",
    "android.support",
    "androidx",
    "arrow",
    "bolts",
    "butterknife",
    "coil",
    "coil3",
    "com.airbnb",
    "com.amazonaws",
    "com.android.volley",
    "com.appsflyer",
    "com.bugsnag",
    "com.bumptech",
    "com.caverock",
    "com.facebook",
    "com.fasterxml",
    "com.github.mikephil",
    "com.google",
    "com.jakewharton",
    "com.mixpanel",
    "com.nostra13",
    "com.squareup",
    "com.sun.jna",
    "com.tencent.mmkv",
    "com.uber.autodispose",
    "dagger",
    "io.coil_kt",
    "io.grpc",
    "io.ktor",
    "io.netty",
    "io.objectbox",
    "io.reactivex",
    "io.realm",
    "io.sentry",
    "javax.inject",
    "junit",
    "kotlin",
    "kotlinx",
    "leakcanary",
    "okhttp3",
    "okio",
    "org.apache",
    "org.bouncycastle",
    "org.greenrobot",
    "org.jetbrains",
    "org.joda",
    "org.junit",
    "org.koin",
    "org.reactivestreams",
    "org.slf4j",
    "org.threeten",
    "retrofit2",
    "rx",
    "timber.log",
];

/// The origin of a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CodeOrigin {
    App,
    Library,
    Framework,
}

impl CodeOrigin {
    /// The origin of the method with this full name. A method in one of the packages `app` is the app's,
    /// and no other one is. Without any such package all methods that are neither the framework's nor a
    /// known library's count as the app's.
    pub fn from_method_name(method: &str, app: &[String]) -> CodeOrigin {
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

    /// The packages of Android, and those of libraries.
    #[cfg(test)]
    pub fn known_packages() -> (&'static [&'static str], &'static [&'static str]) {
        (&FRAMEWORK, &LIBRARIES)
    }

    /// A known package of Android or of a library is this one, or lies in it: `com.google`.
    pub fn has_packages_within(package: &str) -> bool {
        let known = || FRAMEWORK.iter().chain(&LIBRARIES);
        known().any(|known| is_within(known, package))
    }
}

/// Whether `name` is `package`, or lies in it.
pub(crate) fn is_within(name: &str, package: &str) -> bool {
    name.strip_prefix(package)
        .is_some_and(|rest| rest.is_empty() || package.ends_with('.') || rest.starts_with(['.', '$']))
}

#[cfg(test)]
mod tests {
    use super::*;

    use super::CodeOrigin::{App, Framework, Library};
    #[test]
    fn packages_tell_the_app_from_libraries_and_the_framework() {
        let guess = |method| CodeOrigin::from_method_name(method, &[]);
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
        let told = |method| CodeOrigin::from_method_name(method, &app);
        assert_eq!(told("com.example.Main.run"), App);
        assert_eq!(told("com.example$Main.run"), App);
        assert_eq!(told("com.examples.Main.run"), Library);
        assert_eq!(told("kotlin.mine.Regex.find"), App);
        assert_eq!(told("org.other.Main.run"), Library);
        assert_eq!(told("java.lang.Object.wait"), Framework);
    }
}
