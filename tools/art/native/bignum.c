// The native methods of java.math.NativeBN, over libcrypto, as on a phone: long numbers.
#include <dlfcn.h>
#include <jni.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BN(type, name) JNIEXPORT type JNICALL Java_java_math_NativeBN_##name
#define AT(address) ((void *)(intptr_t)(address))

static struct {
    void *(*new)(void);
    void (*free)(void *);
    int (*cmp)(void *, void *);
    void *(*copy)(void *, void *);
    int (*dec2bn)(void **, const char *);
    int (*hex2bn)(void **, const char *);
    void *(*bin2bn)(const unsigned char *, int, void *);
    void *(*lebin2bn)(const unsigned char *, int, void *);
    int (*bn2bin)(void *, unsigned char *);
    int (*bn2lebinpad)(void *, unsigned char *, int);
    char *(*bn2dec)(void *);
    char *(*bn2hex)(void *);
    void (*free_text)(void *, const char *, int);
    int (*is_zero)(void *);
    int (*is_negative)(void *);
    void (*set_negative)(void *, int);
    int (*num_bits)(void *);
    int (*is_bit_set)(void *, int);
    int (*lshift)(void *, void *, int);
    int (*rshift)(void *, void *, int);
    int (*add_word)(void *, unsigned long);
    int (*sub_word)(void *, unsigned long);
    int (*mul_word)(void *, unsigned long);
    unsigned long (*mod_word)(void *, unsigned long);
    int (*add)(void *, void *, void *);
    int (*sub)(void *, void *, void *);
    int (*gcd)(void *, void *, void *, void *);
    int (*mul)(void *, void *, void *, void *);
    int (*exp)(void *, void *, void *, void *);
    int (*div)(void *, void *, void *, void *, void *);
    int (*nnmod)(void *, void *, void *, void *);
    int (*mod_exp)(void *, void *, void *, void *, void *);
    void *(*mod_inverse)(void *, void *, void *, void *);
    int (*generate_prime)(void *, int, int, void *, void *, void *);
    int (*is_prime)(void *, void *, void *);
    void *(*context)(void);
} bn;
static __thread void *context;

static int load(JNIEnv *env) {
    if (bn.new) return 1;
    void *library = dlopen("libcrypto.so.3", RTLD_NOW);
    if (!library) {
        (*env)->ThrowNew(env, (*env)->FindClass(env, "java/lang/UnsupportedOperationException"), dlerror());
        return 0;
    }
    const struct {
        void *place;
        const char *name;
    } functions[] = {
        {&bn.free, "BN_free"}, {&bn.cmp, "BN_cmp"}, {&bn.copy, "BN_copy"}, {&bn.dec2bn, "BN_dec2bn"}, {&bn.hex2bn, "BN_hex2bn"},
        {&bn.bin2bn, "BN_bin2bn"}, {&bn.lebin2bn, "BN_lebin2bn"}, {&bn.bn2bin, "BN_bn2bin"}, {&bn.bn2lebinpad, "BN_bn2lebinpad"},
        {&bn.bn2dec, "BN_bn2dec"}, {&bn.bn2hex, "BN_bn2hex"}, {&bn.free_text, "CRYPTO_free"}, {&bn.is_zero, "BN_is_zero"},
        {&bn.is_negative, "BN_is_negative"}, {&bn.set_negative, "BN_set_negative"}, {&bn.num_bits, "BN_num_bits"},
        {&bn.is_bit_set, "BN_is_bit_set"}, {&bn.lshift, "BN_lshift"}, {&bn.rshift, "BN_rshift"}, {&bn.add_word, "BN_add_word"},
        {&bn.sub_word, "BN_sub_word"}, {&bn.mul_word, "BN_mul_word"}, {&bn.mod_word, "BN_mod_word"}, {&bn.add, "BN_add"},
        {&bn.sub, "BN_sub"}, {&bn.gcd, "BN_gcd"}, {&bn.mul, "BN_mul"}, {&bn.exp, "BN_exp"}, {&bn.div, "BN_div"}, {&bn.nnmod, "BN_nnmod"},
        {&bn.mod_exp, "BN_mod_exp"}, {&bn.mod_inverse, "BN_mod_inverse"}, {&bn.generate_prime, "BN_generate_prime_ex"},
        {&bn.is_prime, "BN_check_prime"}, {&bn.context, "BN_CTX_new"}, {&bn.new, "BN_new"},
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *function = dlsym(library, functions[i].name);
        memcpy(functions[i].place, &function, sizeof function);
    }
    return 1;
}
static void *in_context(void) {
    if (!context) context = bn.context();
    return context;
}
static void check(JNIEnv *env, int is_done) {
    if (!is_done) (*env)->ThrowNew(env, (*env)->FindClass(env, "java/lang/ArithmeticException"), "libcrypto refuses");
}
static void free_number(void *number) { bn.free(number); }

BN(jlong, getNativeFinalizer)(JNIEnv *env, jclass class) {
    (void)env, (void)class;
    return (jlong)(intptr_t)free_number;
}
BN(jlong, BN_1new)(JNIEnv *env, jclass class) {
    (void)class;
    return load(env) ? (jlong)(intptr_t)bn.new() : 0;
}
BN(void, BN_1free)(JNIEnv *env, jclass class, jlong a) {
    (void)env, (void)class;
    bn.free(AT(a));
}
BN(jint, BN_1cmp)(JNIEnv *env, jclass class, jlong a, jlong b) {
    (void)env, (void)class;
    return bn.cmp(AT(a), AT(b));
}
BN(void, BN_1copy)(JNIEnv *env, jclass class, jlong to, jlong from) {
    (void)env, (void)class;
    bn.copy(AT(to), AT(from));
}

// --- to and from other forms ------------------------------------------------------------------------------------------

BN(void, putULongInt)(JNIEnv *env, jclass class, jlong a, jlong value, jboolean negative) {
    (void)env, (void)class;
    bn.lebin2bn((unsigned char *)&value, sizeof value, AT(a));
    bn.set_negative(AT(a), negative);
}
BN(void, putLongInt)(JNIEnv *env, jclass class, jlong a, jlong value) {
    uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    Java_java_math_NativeBN_putULongInt(env, class, a, (jlong)magnitude, value < 0);
}
static jint parsed(JNIEnv *env, jlong a, jstring string, int (*parse)(void **, const char *)) {
    const char *text = (*env)->GetStringUTFChars(env, string, NULL);
    void *number = AT(a);
    jint length = parse(&number, text);
    (*env)->ReleaseStringUTFChars(env, string, text);
    return length;
}
BN(jint, BN_1dec2bn)(JNIEnv *env, jclass class, jlong a, jstring text) {
    (void)class;
    return parsed(env, a, text, bn.dec2bn);
}
BN(jint, BN_1hex2bn)(JNIEnv *env, jclass class, jlong a, jstring text) {
    (void)class;
    return parsed(env, a, text, bn.hex2bn);
}
BN(void, BN_1bin2bn)(JNIEnv *env, jclass class, jbyteArray array, jint length, jboolean negative, jlong a) {
    (void)class;
    jbyte *bytes = (*env)->GetByteArrayElements(env, array, NULL);
    bn.bin2bn((unsigned char *)bytes, length, AT(a));
    bn.set_negative(AT(a), negative);
    (*env)->ReleaseByteArrayElements(env, array, bytes, JNI_ABORT);
}
BN(void, litEndInts2bn)(JNIEnv *env, jclass class, jintArray array, jint length, jboolean negative, jlong a) {
    (void)class;
    jint *ints = (*env)->GetIntArrayElements(env, array, NULL);
    bn.lebin2bn((unsigned char *)ints, length * 4, AT(a));
    bn.set_negative(AT(a), negative);
    (*env)->ReleaseIntArrayElements(env, array, ints, JNI_ABORT);
}
BN(void, twosComp2bn)(JNIEnv *env, jclass class, jbyteArray array, jint length, jlong a) {
    (void)class;
    jbyte *bytes = (*env)->GetByteArrayElements(env, array, NULL);
    int negative = length > 0 && bytes[0] < 0;
    // -x is the complement of x - 1.
    for (jint i = 0; negative && i < length; i++) bytes[i] = (jbyte)~bytes[i];
    bn.bin2bn((unsigned char *)bytes, length, AT(a));
    if (negative) bn.add_word(AT(a), 1);
    bn.set_negative(AT(a), negative);
    (*env)->ReleaseByteArrayElements(env, array, bytes, JNI_ABORT);
}
static int bytes_in(jlong a) { return (bn.num_bits(AT(a)) + 7) / 8; }
BN(jlong, longInt)(JNIEnv *env, jclass class, jlong a) {
    (void)env, (void)class;
    unsigned char *bytes = calloc(1, (size_t)bytes_in(a) + 8);
    if (!bytes) return -1;
    bn.bn2lebinpad(AT(a), bytes, bytes_in(a) + 7);
    uint64_t low;
    memcpy(&low, bytes, sizeof low);
    free(bytes);
    return (jlong)(bn.is_negative(AT(a)) ? 0 - low : low);
}
static jstring text_of(JNIEnv *env, char *text) {
    jstring string = (*env)->NewStringUTF(env, text);
    bn.free_text(text, "", 0);
    return string;
}
BN(jstring, BN_1bn2dec)(JNIEnv *env, jclass class, jlong a) {
    (void)class;
    return text_of(env, bn.bn2dec(AT(a)));
}
BN(jstring, BN_1bn2hex)(JNIEnv *env, jclass class, jlong a) {
    (void)class;
    return text_of(env, bn.bn2hex(AT(a)));
}
BN(jbyteArray, BN_1bn2bin)(JNIEnv *env, jclass class, jlong a) {
    (void)class;
    jbyteArray array = (*env)->NewByteArray(env, bytes_in(a));
    jbyte *bytes = (*env)->GetByteArrayElements(env, array, NULL);
    bn.bn2bin(AT(a), (unsigned char *)bytes);
    (*env)->ReleaseByteArrayElements(env, array, bytes, 0);
    return array;
}
BN(jintArray, bn2litEndInts)(JNIEnv *env, jclass class, jlong a) {
    (void)class;
    int words = (bytes_in(a) + 3) / 4;
    jintArray array = (*env)->NewIntArray(env, words);
    jint *ints = (*env)->GetIntArrayElements(env, array, NULL);
    bn.bn2lebinpad(AT(a), (unsigned char *)ints, words * 4);
    (*env)->ReleaseIntArrayElements(env, array, ints, 0);
    return array;
}

// --- what a number is -------------------------------------------------------------------------------------------------

BN(jint, sign)(JNIEnv *env, jclass class, jlong a) {
    (void)env, (void)class;
    return bn.is_zero(AT(a)) ? 0 : bn.is_negative(AT(a)) ? -1 : 1;
}
BN(void, BN_1set_1negative)(JNIEnv *env, jclass class, jlong a, jint negative) {
    (void)env, (void)class;
    bn.set_negative(AT(a), negative);
}
BN(jint, bitLength)(JNIEnv *env, jclass class, jlong a) {
    (void)env, (void)class;
    int bits = bn.num_bits(AT(a));
    if (!bn.is_negative(AT(a))) return bits;
    // Of a negative power of two, the complement has one bit less.
    for (int bit = 0; bit < bits - 1; bit++) {
        if (bn.is_bit_set(AT(a), bit)) return bits;
    }
    return bits - 1;
}
BN(jboolean, BN_1is_1bit_1set)(JNIEnv *env, jclass class, jlong a, jint bit) {
    (void)env, (void)class;
    return (jboolean)bn.is_bit_set(AT(a), bit);
}

// --- arithmetic -------------------------------------------------------------------------------------------------------

BN(void, BN_1shift)(JNIEnv *env, jclass class, jlong result, jlong a, jint by) {
    (void)class;
    check(env, by >= 0 ? bn.lshift(AT(result), AT(a), by) : bn.rshift(AT(result), AT(a), -by));
}
BN(void, BN_1add_1word)(JNIEnv *env, jclass class, jlong a, jint word) {
    (void)class;
    check(env, word < 0 ? bn.sub_word(AT(a), 0 - (unsigned long)word) : bn.add_word(AT(a), (unsigned long)word));
}
BN(void, BN_1mul_1word)(JNIEnv *env, jclass class, jlong a, jint word) {
    (void)class;
    check(env, bn.mul_word(AT(a), (uint32_t)word));
}
BN(jint, BN_1mod_1word)(JNIEnv *env, jclass class, jlong a, jint word) {
    (void)env, (void)class;
    return (jint)bn.mod_word(AT(a), (uint32_t)word);
}
#define OF_TWO(java, call)                                                                  \
    BN(void, java)(JNIEnv * env, jclass class, jlong result, jlong a, jlong b) {            \
        (void)class;                                                                        \
        check(env, call);                                                                   \
    }
OF_TWO(BN_1add, bn.add(AT(result), AT(a), AT(b)))
OF_TWO(BN_1sub, bn.sub(AT(result), AT(a), AT(b)))
OF_TWO(BN_1gcd, bn.gcd(AT(result), AT(a), AT(b), in_context()))
OF_TWO(BN_1mul, bn.mul(AT(result), AT(a), AT(b), in_context()))
OF_TWO(BN_1exp, bn.exp(AT(result), AT(a), AT(b), in_context()))
OF_TWO(BN_1nnmod, bn.nnmod(AT(result), AT(a), AT(b), in_context()))
OF_TWO(BN_1mod_1inverse, bn.mod_inverse(AT(result), AT(a), AT(b), in_context()) != NULL)
BN(void, BN_1div)(JNIEnv *env, jclass class, jlong quotient, jlong rest, jlong a, jlong b) {
    (void)class;
    check(env, bn.div(AT(quotient), AT(rest), AT(a), AT(b), in_context()));
}
BN(void, BN_1mod_1exp)(JNIEnv *env, jclass class, jlong result, jlong a, jlong power, jlong modulus) {
    (void)class;
    check(env, bn.mod_exp(AT(result), AT(a), AT(power), AT(modulus), in_context()));
}
BN(void, BN_1generate_1prime_1ex)(JNIEnv *env, jclass class, jlong result, jint bits, jboolean safe, jlong add, jlong rest) {
    (void)class, (void)add, (void)rest;
    check(env, bn.generate_prime(AT(result), bits, safe, NULL, NULL, NULL));
}
BN(jboolean, BN_1primality_1test)(JNIEnv *env, jclass class, jlong a, jint checks, jboolean trial) {
    (void)env, (void)class, (void)checks, (void)trial;
    return bn.is_prime(AT(a), in_context(), NULL) == 1;
}
