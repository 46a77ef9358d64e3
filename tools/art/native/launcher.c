// art: runs a Java program on the runtime that stands beside this file. `scripts/art --help` says how.
//
// art [RUNTIME OPTION...] CLASSPATH MAIN-CLASS [ARGUMENT...]
#define _GNU_SOURCE
#include <dlfcn.h>
#include <jni.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "trace.h"

enum { MOST_OPTIONS = 64 };

// What libart uses without naming it, in the order in which each finds what it needs.
static const char *const libraries[] = {
    "liblz4.so.1",       "libz.so.1", "liblog.so.0",       "libbase.so.0",         "libutils.so.0",       "libcutils.so.0",         "libziparchive.so.0",
    "libunwind.so.0",    "libbacktrace.so.0",    "libsigchain.so.0",    "libnativebridge.so.0",   "libnativehelper.so.0",
    "libnativeloader.so.0",
};

// The runtime gives some threads stacks of 64 KB, which the C library takes for too small on some processors: those get
// one of the library's own.
int pthread_attr_setstack(pthread_attr_t *attributes, void *stack, size_t size) {
    if (size < (size_t)PTHREAD_STACK_MIN) return pthread_attr_setstacksize(attributes, (size_t)PTHREAD_STACK_MIN);
    int (*usual)(pthread_attr_t *, void *, size_t) =
        (int (*)(pthread_attr_t *, void *, size_t))dlsym(RTLD_NEXT, "pthread_attr_setstack");
    return usual(attributes, stack, size);
}

static void fail(const char *what, const char *why) {
    fprintf(stderr, "art: %s: %s\n", what, why ? why : "unknown");
    exit(1);
}

static char *joined(const char *directory, const char *name) {
    char *path;
    if (asprintf(&path, "%s/%s", directory, name) < 0) fail("asprintf", "no memory");
    return path;
}

// The runtime loads libraries by their names alone, which only the loader's own variable finds. It is read when a
// program starts.
static void start_with_libraries(const char *home, char **arguments) {
    char *wanted = joined(home, "lib");
    const char *now = getenv("LD_LIBRARY_PATH");
    if (now && !strncmp(now, wanted, strlen(wanted))) return;
    char *path = wanted;
    if (now && asprintf(&path, "%s:%s", wanted, now) < 0) fail("asprintf", "no memory");
    setenv("LD_LIBRARY_PATH", path, 1);
    execv("/proc/self/exe", arguments);
    perror("art: cannot start itself with its libraries");
    exit(1);
}

static void *load_runtime(void) {
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        if (!dlopen(libraries[i], RTLD_LAZY | RTLD_GLOBAL)) fail(libraries[i], dlerror());
    }
    void *runtime = dlopen("libart.so.0", RTLD_LAZY | RTLD_GLOBAL);
    if (!runtime) fail("libart.so.0", dlerror());
    return runtime;
}

static JNIEnv *start(void *runtime, const char *home, int count, char **given, const char *class_path) {
    static JavaVMOption options[MOST_OPTIONS + 8];
    int n = 0;
    char *text;
    if (asprintf(&text, "-Xbootclasspath:%s/core.jar", home) < 0) fail("asprintf", "no memory");
    options[n++].optionString = text;
    if (asprintf(&text, "-Djava.class.path=%s", class_path) < 0) fail("asprintf", "no memory");
    options[n++].optionString = text;
    // There is no image of compiled classes, no compiler, and none will be looked for.
    options[n++].optionString = "-Xnoimage-dex2oat";
    options[n++].optionString = "-Xint";
    options[n++].optionString = "-Xusejit:false";
    for (int i = 0; i < count; i++) options[n++].optionString = strdup(given[i]);
    JavaVMInitArgs arguments = {JNI_VERSION_1_6, n, options, JNI_FALSE};
    jint (*create)(JavaVM **, JNIEnv **, void *) = (jint(*)(JavaVM **, JNIEnv **, void *))dlsym(runtime, "JNI_CreateJavaVM");
    JavaVM *vm;
    JNIEnv *env;
    if (!create || create(&vm, &env, &arguments) != JNI_OK) fail("the runtime does not start", "see above");
    return env;
}

// Runs the class's main; the program's exit status.
static int run(JNIEnv *env, const char *name, int count, char **arguments) {
    char *path = strdup(name);
    for (char *c = path; *c; c++) {
        if (*c == '.') *c = '/';
    }
    jclass main_class = (*env)->FindClass(env, path);
    jmethodID method = main_class ? (*env)->GetStaticMethodID(env, main_class, "main", "([Ljava/lang/String;)V") : NULL;
    if (method) {
        jobjectArray array = (*env)->NewObjectArray(env, count, (*env)->FindClass(env, "java/lang/String"), NULL);
        for (int i = 0; i < count; i++) (*env)->SetObjectArrayElement(env, array, i, (*env)->NewStringUTF(env, arguments[i]));
        (*env)->CallStaticVoidMethod(env, main_class, method, array);
    }
    JavaVM *vm;
    // Detaching the thread has its handler print an exception; destroying the runtime waits for the program's other
    // threads, and finishes a method trace.
    int failed = (*env)->ExceptionCheck(env);
    (*env)->GetJavaVM(env, &vm);
    (*vm)->DetachCurrentThread(vm);
    (*vm)->DestroyJavaVM(vm);
    return failed ? 1 : 0;
}

// The command line in memory, over which a process writes the name of the app that it becomes.
char *art_command_line;
size_t art_command_line_bytes;

int main(int count, char **arguments) {
    art_command_line = arguments[0];
    art_command_line_bytes = (size_t)(arguments[count - 1] + strlen(arguments[count - 1]) + 1 - arguments[0]);
    char self[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length < 0) fail("/proc/self/exe", "cannot be read");
    self[length] = 0;
    const char *home = dirname(self);
    int first = 1;
    while (first < count && arguments[first][0] == '-') first++;
    if (count - first < 2 || first - 1 > MOST_OPTIONS) {
        fprintf(stderr, "usage: art [RUNTIME OPTION...] CLASSPATH MAIN-CLASS [ARGUMENT...]\n");
        return 2;
    }
    start_with_libraries(home, arguments);
    const char *places[] = {"ANDROID_ROOT", "ANDROID_DATA", "ANDROID_ART_ROOT", "ANDROID_I18N_ROOT", "ANDROID_TZDATA_ROOT",
                            "ANDROID_RUNTIME_ROOT"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) setenv(places[i], home, 0);
    // The runtime complains that it has no image. Its log is shown where it is asked for.
    setenv("ANDROID_LOG_TAGS", "*:f", 0);
    void *runtime = load_runtime();
    trace_redirect(runtime);
    JNIEnv *env = start(runtime, home, first - 1, arguments + 1, arguments[first]);
    return run(env, arguments[first + 1], count - first - 2, arguments + first + 2);
}
