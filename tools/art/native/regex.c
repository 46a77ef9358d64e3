// The native methods of java.util.regex, over PCRE2, whose expressions are nearly those of Java.
#include <dlfcn.h>
#include <jni.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define PATTERN(type, name) JNIEXPORT type JNICALL Java_java_util_regex_Pattern_##name
#define MATCHER(type, name) JNIEXPORT type JNICALL Java_java_util_regex_Matcher_##name

// Of pcre2.h.
enum { CASELESS = 0x8, DOTALL = 0x20, EXTENDED = 0x80, MULTILINE = 0x400, UTF = 0x80000, LITERAL = 0x2000000 };
enum { ENDANCHORED = 0x20000000 };
static const uint32_t ANCHORED = 0x80000000u;
enum { INFO_CAPTURE_COUNT = 4 };

static struct {
    void *(*compile)(const jchar *, size_t, uint32_t, int *, size_t *, void *);
    void *(*match_data)(void *code, void *context);
    int (*match)(void *code, const jchar *, size_t length, size_t start, uint32_t options, void *data, void *context);
    size_t *(*offsets)(void *data);
    int (*info)(void *code, uint32_t what, void *where);
    int (*number_of_name)(void *code, const jchar *name);
    int (*message)(int error, jchar *buffer, size_t length);
    void (*free_data)(void *data);
} pcre;

typedef struct {
    void *code, *data;
    jchar *text;
    // The region that is searched, and where in it the next search begins.
    size_t start, length, next;
    int hit_end;
} Matcher;

static int load(JNIEnv *env) {
    if (pcre.compile) return 1;
    void *library = dlopen("libpcre2-16.so.0", RTLD_NOW);
    if (!library) {
        (*env)->ThrowNew(env, (*env)->FindClass(env, "java/lang/UnsupportedOperationException"), dlerror());
        return 0;
    }
#define FUNCTION(member, name) *(void **)&pcre.member = dlsym(library, "pcre2_" name "_16")
    FUNCTION(match_data, "match_data_create_from_pattern");
    FUNCTION(match, "match");
    FUNCTION(offsets, "get_ovector_pointer");
    FUNCTION(info, "pattern_info");
    FUNCTION(number_of_name, "substring_number_from_name");
    FUNCTION(message, "get_error_message");
    FUNCTION(free_data, "match_data_free");
    FUNCTION(compile, "compile");
    return 1;
}

PATTERN(jlong, compileImpl)(JNIEnv *env, jclass class, jstring expression, jint flags) {
    (void)class;
    static const struct {
        jint java;
        uint32_t pcre;
    } both[] = {{2, CASELESS}, {4, EXTENDED}, {8, MULTILINE}, {16, LITERAL}, {32, DOTALL}};
    if (!load(env)) return 0;
    uint32_t options = UTF;
    for (size_t i = 0; i < sizeof both / sizeof *both; i++) options |= flags & both[i].java ? both[i].pcre : 0;
    int error;
    size_t at;
    const jchar *text = (*env)->GetStringChars(env, expression, NULL);
    void *code = pcre.compile(text, (size_t)(*env)->GetStringLength(env, expression), options, &error, &at, NULL);
    (*env)->ReleaseStringChars(env, expression, text);
    if (code) return (jlong)(intptr_t)code;
    jchar message[256];
    int length = pcre.message(error, message, 256);
    jclass failure = (*env)->FindClass(env, "java/util/regex/PatternSyntaxException");
    jmethodID init = (*env)->GetMethodID(env, failure, "<init>", "(Ljava/lang/String;Ljava/lang/String;I)V");
    jstring reason = (*env)->NewString(env, message, length > 0 ? length : 0);
    (*env)->Throw(env, (*env)->NewObject(env, failure, init, reason, expression, (jint)at));
    return 0;
}
// Expressions live as long as the program: few programs here have more than some.
static void keep(void *code) { (void)code; }
PATTERN(jlong, getNativeFinalizer)(JNIEnv *env, jclass class) {
    (void)env, (void)class;
    return (jlong)(intptr_t)keep;
}

static void free_matcher(void *pointer) {
    Matcher *matcher = pointer;
    pcre.free_data(matcher->data);
    free(matcher->text);
    free(matcher);
}
MATCHER(jlong, getNativeFinalizer)(JNIEnv *env, jclass class) {
    (void)env, (void)class;
    return (jlong)(intptr_t)free_matcher;
}
#define OF(address) ((Matcher *)(intptr_t)(address))

MATCHER(jlong, openImpl)(JNIEnv *env, jclass class, jlong pattern) {
    (void)class, (void)env;
    Matcher *matcher = calloc(1, sizeof *matcher);
    if (!matcher) abort();
    matcher->code = (void *)(intptr_t)pattern;
    matcher->data = pcre.match_data(matcher->code, NULL);
    return (jlong)(intptr_t)matcher;
}
MATCHER(void, setInputImpl)(JNIEnv *env, jclass class, jlong address, jstring text, jint start, jint end) {
    (void)class;
    Matcher *matcher = OF(address);
    jsize length = (*env)->GetStringLength(env, text);
    free(matcher->text);
    matcher->text = malloc(sizeof(jchar) * (size_t)(length + 1));
    if (!matcher->text) abort();
    (*env)->GetStringRegion(env, text, 0, length, matcher->text);
    matcher->start = (size_t)start;
    matcher->length = (size_t)(end - start);
    matcher->next = 0;
}
MATCHER(jint, groupCountImpl)(JNIEnv *env, jclass class, jlong address) {
    (void)env, (void)class;
    uint32_t count = 0;
    pcre.info(OF(address)->code, INFO_CAPTURE_COUNT, &count);
    return (jint)count;
}
MATCHER(jint, getMatchedGroupIndex0)(JNIEnv *env, jclass class, jlong pattern, jstring name) {
    (void)class;
    jchar text[64] = {0};
    jsize length = (*env)->GetStringLength(env, name);
    if (length > 63) return -1;
    (*env)->GetStringRegion(env, name, 0, length, text);
    int number = pcre.number_of_name((void *)(intptr_t)pattern, text);
    return number > 0 ? number : -1;
}

static jboolean search(JNIEnv *env, Matcher *matcher, size_t from, uint32_t options, jintArray array) {
    int count = from > matcher->length ? -1 : pcre.match(matcher->code, matcher->text + matcher->start, matcher->length, from, options, matcher->data, NULL);
    matcher->hit_end = count <= 0;
    if (count <= 0) return JNI_FALSE;
    const size_t *offsets = pcre.offsets(matcher->data);
    jsize wanted = (*env)->GetArrayLength(env, array);
    for (jsize i = 0; i < wanted; i++) {
        jint offset = i < 2 * count && offsets[i] != (size_t)-1 ? (jint)(offsets[i] + matcher->start) : -1;
        (*env)->SetIntArrayRegion(env, array, i, 1, &offset);
    }
    matcher->next = offsets[1] + (offsets[1] == offsets[0]);
    matcher->hit_end = offsets[1] == matcher->length;
    return JNI_TRUE;
}
MATCHER(jboolean, findImpl)(JNIEnv *env, jclass class, jlong address, jint start, jintArray offsets) {
    (void)class;
    Matcher *matcher = OF(address);
    size_t from = (size_t)start > matcher->start ? (size_t)start - matcher->start : 0;
    return search(env, matcher, from, 0, offsets);
}
MATCHER(jboolean, findNextImpl)(JNIEnv *env, jclass class, jlong address, jintArray offsets) {
    (void)class;
    return search(env, OF(address), OF(address)->next, 0, offsets);
}
MATCHER(jboolean, matchesImpl)(JNIEnv *env, jclass class, jlong address, jintArray offsets) {
    (void)class;
    return search(env, OF(address), 0, ANCHORED | ENDANCHORED, offsets);
}
MATCHER(jboolean, lookingAtImpl)(JNIEnv *env, jclass class, jlong address, jintArray offsets) {
    (void)class;
    return search(env, OF(address), 0, ANCHORED, offsets);
}
MATCHER(jboolean, hitEndImpl)(JNIEnv *env, jclass class, jlong address) {
    (void)env, (void)class;
    return (jboolean)OF(address)->hit_end;
}
MATCHER(jboolean, requireEndImpl)(JNIEnv *env, jclass class, jlong address) {
    (void)env, (void)class, (void)address;
    return JNI_FALSE;
}
// A region's ends are those of what is searched: the default in Java, and the only way here.
MATCHER(void, useAnchoringBoundsImpl)(JNIEnv *env, jclass class, jlong address, jboolean value) { (void)env, (void)class, (void)address, (void)value; }
MATCHER(void, useTransparentBoundsImpl)(JNIEnv *env, jclass class, jlong address, jboolean value) { (void)env, (void)class, (void)address, (void)value; }
