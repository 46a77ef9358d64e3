// The native methods of the core library that programs here need. The runtime looks them up by their names; what is
// missing throws UnsatisfiedLinkError in the program that calls it.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <jni.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>
#include <wctype.h>

#include "code_patch.h"
#include "trace.h"

#define NATIVE(type, class, name) JNIEXPORT type JNICALL Java_##class##_##name

static locale_t unicode;

JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM *vm, void *reserved) {
    (void)vm, (void)reserved;
    if (!unicode) unicode = newlocale(LC_CTYPE_MASK, "C.UTF-8", NULL);
    return JNI_VERSION_1_6;
}

// --- java.lang.System -------------------------------------------------------------------------------------------------

static void set_stream(JNIEnv *env, jclass class, const char *name, const char *type, jobject stream) {
    (*env)->SetStaticObjectField(env, class, (*env)->GetStaticFieldID(env, class, name, type), stream);
}
NATIVE(void, java_lang_System, setIn0)(JNIEnv *env, jclass class, jobject stream) {
    set_stream(env, class, "in", "Ljava/io/InputStream;", stream);
}
NATIVE(void, java_lang_System, setOut0)(JNIEnv *env, jclass class, jobject stream) {
    set_stream(env, class, "out", "Ljava/io/PrintStream;", stream);
}
NATIVE(void, java_lang_System, setErr0)(JNIEnv *env, jclass class, jobject stream) {
    set_stream(env, class, "err", "Ljava/io/PrintStream;", stream);
}
static jlong clock_in(clockid_t clock, jlong ticks_per_second) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * ticks_per_second + now.tv_nsec / (1000000000 / ticks_per_second);
}
NATIVE(jlong, java_lang_System, currentTimeMillis)(JNIEnv *env, jclass class) {
    (void)env, (void)class;
    return clock_in(CLOCK_REALTIME, 1000);
}
NATIVE(jlong, java_lang_System, nanoTime)(JNIEnv *env, jclass class) {
    (void)env, (void)class;
    return clock_in(CLOCK_MONOTONIC, 1000000000);
}
static jobjectArray strings(JNIEnv *env, int count, const char *const *texts) {
    jobjectArray array = (*env)->NewObjectArray(env, count, (*env)->FindClass(env, "java/lang/String"), NULL);
    for (int i = 0; array && i < count; i++) {
        jstring text = (*env)->NewStringUTF(env, texts[i]);
        (*env)->SetObjectArrayElement(env, array, i, text);
        (*env)->DeleteLocalRef(env, text);
    }
    return array;
}
NATIVE(jobjectArray, java_lang_System, specialProperties)(JNIEnv *env, jclass class) {
    (void)class;
    char here[PATH_MAX] = "/", directory[PATH_MAX + 16];
    if (!getcwd(here, sizeof here)) strcpy(here, "/");
    snprintf(directory, sizeof directory, "user.dir=%s", here);
    const char *properties[] = {directory, "java.library.path="};
    return strings(env, 2, properties);
}
NATIVE(jstring, java_lang_System, mapLibraryName)(JNIEnv *env, jclass class, jstring name) {
    (void)class;
    const char *text = (*env)->GetStringUTFChars(env, name, NULL);
    char mapped[PATH_MAX];
    snprintf(mapped, sizeof mapped, "lib%s.so", text);
    (*env)->ReleaseStringUTFChars(env, name, text);
    return (*env)->NewStringUTF(env, mapped);
}
NATIVE(void, java_lang_System, log)(JNIEnv *env, jclass class, jchar level, jstring message, jthrowable thrown) {
    (void)class, (void)thrown;
    const char *text = (*env)->GetStringUTFChars(env, message, NULL);
    fprintf(stderr, "%c System: %s\n", (char)level, text);
    (*env)->ReleaseStringUTFChars(env, message, text);
}

// --- java.lang.Runtime ------------------------------------------------------------------------------------------------

// The runtime's heap. Its library has functions of it, but none that finds it: it is what the first call of one of them
// is given.
static void *heap;
static void remember_heap(void *this) { heap = this; }

static void *find_heap(JNIEnv *env) {
    if (heap) return heap;
    void *function = dlsym(RTLD_DEFAULT, "_ZN3art2gc4Heap12ConcurrentGCEPNS_6ThreadENS0_7GcCauseEb");
    if (!function) return NULL;
    unsigned char saved[JUMP_BYTES];
    jclass runtime = (*env)->FindClass(env, "dalvik/system/VMRuntime");
    jobject only = (*env)->CallStaticObjectMethod(
        env, runtime, (*env)->GetStaticMethodID(env, runtime, "getRuntime", "()Ldalvik/system/VMRuntime;"));
    jmethodID collect = (*env)->GetMethodID(env, runtime, "concurrentGC", "()V");
    write_jump(function, (void *)remember_heap, saved);
    (*env)->CallVoidMethod(env, only, collect);
    remove_jump(function, saved);
    return heap;
}
// One of the runtime's own counts of bytes, since it began.
static jlong counted(JNIEnv *env, const char *name) {
    jclass debug = (*env)->FindClass(env, "dalvik/system/VMDebug");
    jmethodID stat = (*env)->GetStaticMethodID(env, debug, "getRuntimeStat", "(Ljava/lang/String;)Ljava/lang/String;");
    jstring text = (*env)->CallStaticObjectMethod(env, debug, stat, (*env)->NewStringUTF(env, name));
    if (!text) return 0;
    const char *digits = (*env)->GetStringUTFChars(env, text, NULL);
    jlong value = atoll(digits);
    (*env)->ReleaseStringUTFChars(env, text, digits);
    return value;
}
NATIVE(jlong, java_lang_Runtime, totalMemory)(JNIEnv *env, jobject this) {
    (void)this;
    size_t (*total)(void *) = (size_t(*)(void *))dlsym(RTLD_DEFAULT, "_ZNK3art2gc4Heap14GetTotalMemoryEv");
    return total && find_heap(env) ? (jlong)total(heap) : 0;
}
NATIVE(jlong, java_lang_Runtime, maxMemory)(JNIEnv *env, jobject this) {
    (void)env, (void)this;
    const char *named = getenv("ART_MAX_HEAP");
    return named ? atoll(named) : 256 << 20;
}
NATIVE(jlong, java_lang_Runtime, freeMemory)(JNIEnv *env, jobject this) {
    jlong used = counted(env, "art.gc.bytes-allocated") - counted(env, "art.gc.bytes-freed");
    jlong total = Java_java_lang_Runtime_totalMemory(env, this);
    return total > used ? total - used : 0;
}
NATIVE(void, java_lang_Runtime, nativeGc)(JNIEnv *env, jobject this) {
    (void)this;
    enum { EXPLICIT = 3 };
    void (*collect)(void *, int, int) = (void (*)(void *, int, int))dlsym(RTLD_DEFAULT, "_ZN3art2gc4Heap14CollectGarbageEbNS0_7GcCauseE");
    if (collect && find_heap(env)) collect(heap, 0, EXPLICIT);
}
NATIVE(void, java_lang_Runtime, runFinalization0)(JNIEnv *env, jclass class) { (void)env, (void)class; }
NATIVE(void, java_lang_Runtime, nativeExit)(JNIEnv *env, jclass class, jint status) {
    (void)env, (void)class;
    // As the runtime's own exit does: it finishes a method trace first.
    void *instance = *(void **)dlsym(RTLD_DEFAULT, "_ZN3art7Runtime9instance_E");
    void (*hook)(void *, int) = (void (*)(void *, int))dlsym(RTLD_DEFAULT, "_ZN3art7Runtime12CallExitHookEi");
    if (instance && hook) hook(instance, status);
    exit(status);
}
NATIVE(jstring, java_lang_Runtime, nativeLoad)(JNIEnv *env, jclass class, jstring path, jobject loader, jclass caller) {
    (void)class, (void)path, (void)loader, (void)caller;
    return (*env)->NewStringUTF(env, "native libraries of programs are not supported here");
}
NATIVE(jobjectArray, java_lang_ProcessEnvironment, environ)(JNIEnv *env, jclass class) {
    (void)class;
    int count = 0;
    while (environ[count]) count++;
    jobjectArray array = (*env)->NewObjectArray(env, 2 * count, (*env)->FindClass(env, "[B"), NULL);
    for (int i = 0; array && i < 2 * count; i++) {
        const char *equals = strchr(environ[i / 2], '=');
        const char *text = i % 2 ? (equals ? equals + 1 : "") : environ[i / 2];
        jsize length = i % 2 || !equals ? (jsize)strlen(text) : (jsize)(equals - text);
        jbyteArray bytes = (*env)->NewByteArray(env, length);
        (*env)->SetByteArrayRegion(env, bytes, 0, length, (const jbyte *)text);
        (*env)->SetObjectArrayElement(env, array, i, bytes);
        (*env)->DeleteLocalRef(env, bytes);
    }
    return array;
}

// --- numbers ----------------------------------------------------------------------------------------------------------

// Math's methods are called without an environment, StrictMath's with one.
#define MATH_1(name, function)                                                                  \
    NATIVE(jdouble, java_lang_Math, name)(jdouble a) { return function(a); }                    \
    NATIVE(jdouble, java_lang_StrictMath, name)(JNIEnv * env, jclass class, jdouble a) {        \
        (void)env, (void)class;                                                                 \
        return function(a);                                                                     \
    }
#define MATH_2(name, function)                                                                        \
    NATIVE(jdouble, java_lang_Math, name)(jdouble a, jdouble b) { return function(a, b); }            \
    NATIVE(jdouble, java_lang_StrictMath, name)(JNIEnv * env, jclass class, jdouble a, jdouble b) {   \
        (void)env, (void)class;                                                                       \
        return function(a, b);                                                                        \
    }
MATH_1(sin, sin)
MATH_1(cos, cos)
MATH_1(tan, tan)
MATH_1(asin, asin)
MATH_1(acos, acos)
MATH_1(atan, atan)
MATH_1(exp, exp)
MATH_1(log, log)
MATH_1(log10, log10)
MATH_1(sqrt, sqrt)
MATH_1(cbrt, cbrt)
MATH_1(ceil, ceil)
MATH_1(floor, floor)
MATH_1(rint, rint)
MATH_1(sinh, sinh)
MATH_1(cosh, cosh)
MATH_1(tanh, tanh)
MATH_1(expm1, expm1)
MATH_1(log1p, log1p)
MATH_2(IEEEremainder, remainder)
MATH_2(atan2, atan2)
MATH_2(pow, pow)
MATH_2(hypot, hypot)

#define BITS(class, name, to, from)                                          \
    NATIVE(to, java_lang_##class, name)(JNIEnv * env, jclass c, from value) { \
        (void)env, (void)c;                                                  \
        to bits;                                                             \
        memcpy(&bits, &value, sizeof bits);                                  \
        return bits;                                                         \
    }
BITS(Float, floatToRawIntBits, jint, jfloat)
BITS(Float, intBitsToFloat, jfloat, jint)
BITS(Double, doubleToRawLongBits, jlong, jdouble)
BITS(Double, longBitsToDouble, jdouble, jlong)

// --- java.lang.Character ----------------------------------------------------------------------------------------------

#define OF_CHARACTER(type, name, expression)                                    \
    NATIVE(type, java_lang_Character, name)(JNIEnv * env, jclass class, jint c) { \
        (void)env, (void)class;                                                 \
        return (type)(expression);                                              \
    }
OF_CHARACTER(jboolean, isLowerCaseImpl, iswlower_l((wint_t)c, unicode) != 0)
OF_CHARACTER(jboolean, isUpperCaseImpl, iswupper_l((wint_t)c, unicode) != 0)
OF_CHARACTER(jboolean, isTitleCaseImpl, c == 0x1c5)
OF_CHARACTER(jboolean, isDigitImpl, c >= '0' && c <= '9')
OF_CHARACTER(jboolean, isDefinedImpl, c <= 0x10ffff)
OF_CHARACTER(jboolean, isLetterImpl, iswalpha_l((wint_t)c, unicode) != 0)
OF_CHARACTER(jboolean, isLetterOrDigitImpl, iswalnum_l((wint_t)c, unicode) != 0)
OF_CHARACTER(jboolean, isAlphabeticImpl, iswalpha_l((wint_t)c, unicode) != 0)
OF_CHARACTER(jboolean, isIdeographicImpl, c >= 0x4e00 && c <= 0x9fff)
OF_CHARACTER(jboolean, isUnicodeIdentifierStartImpl, iswalpha_l((wint_t)c, unicode) != 0)
OF_CHARACTER(jboolean, isUnicodeIdentifierPartImpl, iswalnum_l((wint_t)c, unicode) != 0 || c == '_')
OF_CHARACTER(jboolean, isIdentifierIgnorableImpl, c < 9 || (c >= 14 && c < 28))
OF_CHARACTER(jboolean, isSpaceCharImpl, c == ' ' || c == 0xa0 || (c > 0xff && iswspace_l((wint_t)c, unicode)))
OF_CHARACTER(jboolean, isWhitespaceImpl, (c >= 9 && c <= 13) || (c >= 28 && c <= 32) || (c > 0xff && iswspace_l((wint_t)c, unicode)))
OF_CHARACTER(jboolean, isMirroredImpl, c == '(' || c == ')' || c == '<' || c == '>' || c == '[' || c == ']' || c == '{' || c == '}')
OF_CHARACTER(jint, toLowerCaseImpl, towlower_l((wint_t)c, unicode))
OF_CHARACTER(jint, toUpperCaseImpl, towupper_l((wint_t)c, unicode))
OF_CHARACTER(jint, toTitleCaseImpl, towupper_l((wint_t)c, unicode))
OF_CHARACTER(jbyte, getDirectionalityImpl, c < 0)
static jint digit_of(jint c, jint radix) {
    jint value = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'z' ? c - 'a' + 10 : c >= 'A' && c <= 'Z' ? c - 'A' + 10 : -1;
    return value < radix ? value : -1;
}
OF_CHARACTER(jint, getNumericValueImpl, digit_of(c, 36))
NATIVE(jint, java_lang_Character, digitImpl)(JNIEnv *env, jclass class, jint c, jint radix) {
    (void)env, (void)class;
    return digit_of(c, radix);
}
static jint type_of(jint c) {
    enum { UPPERCASE = 1, LOWERCASE = 2, OTHER_LETTER = 5, DIGIT = 9, SPACE = 12, CONTROL = 15, DASH = 20, PUNCTUATION = 24 };
    if (c < 32 || (c >= 0x7f && c < 0xa0)) return CONTROL;
    if (iswupper_l((wint_t)c, unicode)) return UPPERCASE;
    if (iswlower_l((wint_t)c, unicode)) return LOWERCASE;
    if (iswalpha_l((wint_t)c, unicode)) return OTHER_LETTER;
    return c >= '0' && c <= '9' ? DIGIT : c == ' ' ? SPACE : c == '-' ? DASH : PUNCTUATION;
}
OF_CHARACTER(jint, getTypeImpl, type_of(c))

// --- locales ----------------------------------------------------------------------------------------------------------

static jstring constant(JNIEnv *env, const char *text) { return (*env)->NewStringUTF(env, text); }
#define CONSTANT(name, text)                                                        \
    NATIVE(jstring, libcore_icu_ICU, name)(JNIEnv * env, jclass class) {            \
        (void)class;                                                                \
        return constant(env, text);                                                 \
    }
CONSTANT(getCldrVersion, "0")
CONSTANT(getIcuVersion, "0")
CONSTANT(getUnicodeVersion, "0")
CONSTANT(getTZDataVersion, "0")
CONSTANT(getDefaultLocale, "en-US")
#define NO_STRINGS(name)                                                            \
    NATIVE(jobjectArray, libcore_icu_ICU, name)(JNIEnv * env, jclass class) {       \
        (void)class;                                                                \
        return strings(env, 0, NULL);                                               \
    }
NO_STRINGS(getAvailableLocalesNative)
NO_STRINGS(getAvailableCurrencyCodes)
NO_STRINGS(getISOLanguagesNative)
NO_STRINGS(getISOCountriesNative)
NATIVE(void, libcore_icu_ICU, setDefaultLocale)(JNIEnv *env, jclass class, jstring tag) { (void)env, (void)class, (void)tag; }
static jstring in_case(JNIEnv *env, jstring text, wint_t (*change)(wint_t, locale_t)) {
    jsize length = (*env)->GetStringLength(env, text);
    jchar *chars = malloc(sizeof(jchar) * (size_t)(length + 1));
    if (!chars) return text;
    (*env)->GetStringRegion(env, text, 0, length, chars);
    for (jsize i = 0; i < length; i++) chars[i] = (jchar)change(chars[i], unicode);
    jstring changed = (*env)->NewString(env, chars, length);
    free(chars);
    return changed;
}
NATIVE(jstring, libcore_icu_ICU, toLowerCase)(JNIEnv *env, jclass class, jstring text, jstring locale) {
    (void)class, (void)locale;
    return in_case(env, text, towlower_l);
}
NATIVE(jstring, libcore_icu_ICU, toUpperCase)(JNIEnv *env, jclass class, jstring text, jstring locale) {
    (void)class, (void)locale;
    return in_case(env, text, towupper_l);
}

// --- checksums --------------------------------------------------------------------------------------------------------

static jint crc32_of(jint before, const unsigned char *bytes, jint length) {
    uint32_t crc = ~(uint32_t)before;
    for (jint i = 0; i < length; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
    }
    return (jint)~crc;
}
NATIVE(jint, java_util_zip_CRC32, update)(JNIEnv *env, jclass class, jint before, jint value) {
    (void)env, (void)class;
    unsigned char byte = (unsigned char)value;
    return crc32_of(before, &byte, 1);
}
NATIVE(jint, java_util_zip_CRC32, updateBytes)(JNIEnv *env, jclass class, jint before, jbyteArray array, jint offset, jint length) {
    (void)class;
    jbyte *bytes = (*env)->GetByteArrayElements(env, array, NULL);
    jint after = crc32_of(before, (unsigned char *)bytes + offset, length);
    (*env)->ReleaseByteArrayElements(env, array, bytes, JNI_ABORT);
    return after;
}

// --- libcore.io.Memory, sun.misc.Unsafe -------------------------------------------------------------------------------

#define PEEK_POKE(peek, poke, type)                                                                   \
    NATIVE(type, libcore_io_Memory, peek)(JNIEnv * env, jclass class, jlong address) {                \
        (void)env, (void)class;                                                                       \
        type value;                                                                                   \
        memcpy(&value, (void *)(intptr_t)address, sizeof value);                                      \
        return value;                                                                                 \
    }                                                                                                 \
    NATIVE(void, libcore_io_Memory, poke)(JNIEnv * env, jclass class, jlong address, type value) {    \
        (void)env, (void)class;                                                                       \
        memcpy((void *)(intptr_t)address, &value, sizeof value);                                      \
    }
PEEK_POKE(peekByte, pokeByte, jbyte)
PEEK_POKE(peekShortNative, pokeShortNative, jshort)
PEEK_POKE(peekIntNative, pokeIntNative, jint)
PEEK_POKE(peekLongNative, pokeLongNative, jlong)
NATIVE(void, libcore_io_Memory, peekByteArray)(JNIEnv *env, jclass class, jlong address, jbyteArray array, jint offset, jint count) {
    (void)class;
    (*env)->SetByteArrayRegion(env, array, offset, count, (const jbyte *)(intptr_t)address);
}
NATIVE(void, libcore_io_Memory, pokeByteArray)(JNIEnv *env, jclass class, jlong address, jbyteArray array, jint offset, jint count) {
    (void)class;
    (*env)->GetByteArrayRegion(env, array, offset, count, (jbyte *)(intptr_t)address);
}
NATIVE(jobject, sun_misc_Unsafe, allocateInstance)(JNIEnv *env, jobject this, jclass class) {
    (void)this;
    return (*env)->AllocObject(env, class);
}
NATIVE(void, libcore_util_NativeAllocationRegistry, applyFreeFunction)(JNIEnv *env, jclass class, jlong function, jlong pointer) {
    (void)env, (void)class;
    ((void (*)(void *))(intptr_t)function)((void *)(intptr_t)pointer);
}

// --- files, as java.io.File sees them ---------------------------------------------------------------------------------

// Calls `statement` with the path as `path`.
#define WITH_PATH(string, statement)                                          \
    do {                                                                      \
        const char *path = (*env)->GetStringUTFChars(env, string, NULL);      \
        if (path) {                                                           \
            statement;                                                        \
            (*env)->ReleaseStringUTFChars(env, string, path);                 \
        }                                                                     \
    } while (0)
static jstring path_of(JNIEnv *env, jobject file) {
    jclass class = (*env)->GetObjectClass(env, file);
    return (*env)->CallObjectMethod(env, file, (*env)->GetMethodID(env, class, "getPath", "()Ljava/lang/String;"));
}
NATIVE(void, java_io_UnixFileSystem, initIDs)(JNIEnv *env, jclass class) { (void)env, (void)class; }
NATIVE(jstring, java_io_UnixFileSystem, canonicalize0)(JNIEnv *env, jobject this, jstring string) {
    (void)this;
    char resolved[PATH_MAX];
    jstring canonical = string;
    WITH_PATH(string, if (realpath(path, resolved)) canonical = (*env)->NewStringUTF(env, resolved));
    return canonical;
}
NATIVE(jint, java_io_UnixFileSystem, getBooleanAttributes0)(JNIEnv *env, jobject this, jstring string) {
    (void)this;
    enum { EXISTS = 1, REGULAR = 2, DIRECTORY = 4 };
    struct stat status;
    jint attributes = 0;
    WITH_PATH(string, if (!stat(path, &status)) attributes =
                          EXISTS | (S_ISREG(status.st_mode) ? REGULAR : 0) | (S_ISDIR(status.st_mode) ? DIRECTORY : 0));
    return attributes;
}
NATIVE(jlong, java_io_UnixFileSystem, getLastModifiedTime0)(JNIEnv *env, jobject this, jobject file) {
    (void)this;
    struct stat status;
    jlong time = 0;
    WITH_PATH(path_of(env, file), if (!stat(path, &status)) time = status.st_mtim.tv_sec * 1000LL + status.st_mtim.tv_nsec / 1000000);
    return time;
}
NATIVE(jboolean, java_io_UnixFileSystem, createFileExclusively0)(JNIEnv *env, jobject this, jstring string) {
    (void)this;
    FILE *file = NULL;
    WITH_PATH(string, file = fopen(path, "wx"));
    if (file) fclose(file);
    return file != NULL;
}
NATIVE(jboolean, java_io_UnixFileSystem, createDirectory0)(JNIEnv *env, jobject this, jobject file) {
    (void)this;
    int failed = 1;
    WITH_PATH(path_of(env, file), failed = mkdir(path, 0777));
    return !failed;
}
NATIVE(jobjectArray, java_io_UnixFileSystem, list0)(JNIEnv *env, jobject this, jobject file) {
    (void)this;
    DIR *directory = NULL;
    WITH_PATH(path_of(env, file), directory = opendir(path));
    if (!directory) return NULL;
    char **names = NULL;
    int count = 0;
    for (struct dirent *entry; (entry = readdir(directory));) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        char **more = realloc(names, sizeof *names * (size_t)(count + 1));
        if (!more) break;
        names = more;
        names[count++] = strdup(entry->d_name);
    }
    closedir(directory);
    jobjectArray array = strings(env, count, (const char *const *)names);
    for (int i = 0; i < count; i++) free(names[i]);
    free(names);
    return array;
}
NATIVE(jlong, java_io_UnixFileSystem, getSpace0)(JNIEnv *env, jobject this, jobject file, jint which) {
    (void)this;
    struct statvfs status;
    jlong blocks = 0;
    WITH_PATH(path_of(env, file), if (!statvfs(path, &status)) blocks =
                                      (jlong)(which == 0 ? status.f_blocks : which == 1 ? status.f_bfree : status.f_bavail) * (jlong)status.f_frsize);
    return blocks;
}

// --- an app's process --------------------------------------------------------------------------------------------------

NATIVE(jlong, android_os_SystemClock, elapsedRealtimeNanos)(JNIEnv *env, jclass class) {
    (void)env, (void)class;
    return clock_in(CLOCK_BOOTTIME, 1000000000);
}
NATIVE(jlong, android_os_SystemClock, currentThreadTimeMicro)(JNIEnv *env, jclass class) {
    (void)env, (void)class;
    return clock_in(CLOCK_THREAD_CPUTIME_ID, 1000000);
}
NATIVE(jint, android_os_Process, myPid)(JNIEnv *env, jclass class) {
    (void)env, (void)class;
    return getpid();
}
NATIVE(jint, android_os_Process, fork)(JNIEnv *env, jclass class) {
    (void)env, (void)class;
    return fork();
}
NATIVE(void, android_os_Process, setArgV0)(JNIEnv *env, jclass class, jstring string) {
    (void)class;
    char **line = (char **)dlsym(RTLD_DEFAULT, "art_command_line");
    size_t *bytes = (size_t *)dlsym(RTLD_DEFAULT, "art_command_line_bytes");
    const char *name = (*env)->GetStringUTFChars(env, string, NULL);
    if (line && bytes) {
        memset(*line, 0, *bytes);
        memcpy(*line, name, strlen(name) < *bytes ? strlen(name) : *bytes - 1);
    }
    // The kernel keeps 15 characters: of a name with dots, the last ones.
    size_t length = strlen(name);
    prctl(PR_SET_NAME, length > 15 && strchr(name, '.') ? name + length - 15 : name);
    (*env)->ReleaseStringUTFChars(env, string, name);
}

// --- markers ----------------------------------------------------------------------------------------------------------

// Calls `statement` with a marker's name as `text`.
#define WITH_NAME(string, statement)                                          \
    do {                                                                      \
        const char *text = (*env)->GetStringUTFChars(env, string, NULL);      \
        if (text) {                                                           \
            statement;                                                        \
            (*env)->ReleaseStringUTFChars(env, string, text);                 \
        }                                                                     \
    } while (0)
NATIVE(jboolean, android_os_Trace, isEnabled)(JNIEnv *env, jclass class) {
    (void)env, (void)class;
    return (jboolean)trace_is_open();
}
NATIVE(void, android_os_Trace, beginSection)(JNIEnv *env, jclass class, jstring name) {
    (void)class;
    WITH_NAME(name, trace_begin(text));
}
NATIVE(void, android_os_Trace, endSection)(JNIEnv *env, jclass class) {
    (void)env, (void)class;
    trace_end();
}
NATIVE(void, android_os_Trace, setCounter)(JNIEnv *env, jclass class, jstring name, jlong value) {
    (void)class;
    WITH_NAME(name, trace_counter(text, value));
}
NATIVE(void, android_os_Trace, beginAsyncSection)(JNIEnv *env, jclass class, jstring name, jint cookie) {
    (void)class;
    WITH_NAME(name, trace_async('S', text, cookie));
}
NATIVE(void, android_os_Trace, endAsyncSection)(JNIEnv *env, jclass class, jstring name, jint cookie) {
    (void)class;
    WITH_NAME(name, trace_async('F', text, cookie));
}
