// The native methods of libcore.io.Linux, and the constants of android.system.OsConstants: the system's calls, as
// the core library's own classes for files and processes make them.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <jni.h>
#include <limits.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#define LINUX(type, name) JNIEXPORT type JNICALL Java_libcore_io_Linux_##name

static void throw_errno(JNIEnv *env, const char *call) {
    int error = errno;
    jclass class = (*env)->FindClass(env, "android/system/ErrnoException");
    jmethodID init = (*env)->GetMethodID(env, class, "<init>", "(Ljava/lang/String;I)V");
    jobject exception = (*env)->NewObject(env, class, init, (*env)->NewStringUTF(env, call), error);
    if (exception) (*env)->Throw(env, exception);
}
// Throws if a call failed; its value.
static long checked(JNIEnv *env, const char *call, long value) {
    if (value == -1) throw_errno(env, call);
    return value;
}
static jfieldID descriptor_field(JNIEnv *env, jclass class) { return (*env)->GetFieldID(env, class, "descriptor", "I"); }
static int fd_of(JNIEnv *env, jobject descriptor) {
    return (*env)->GetIntField(env, descriptor, descriptor_field(env, (*env)->GetObjectClass(env, descriptor)));
}
static jobject new_descriptor(JNIEnv *env, int fd) {
    if (fd < 0) return NULL;
    jclass class = (*env)->FindClass(env, "java/io/FileDescriptor");
    jobject descriptor = (*env)->NewObject(env, class, (*env)->GetMethodID(env, class, "<init>", "()V"));
    (*env)->SetIntField(env, descriptor, descriptor_field(env, class), fd);
    return descriptor;
}
#define WITH_PATH(string, statement)                                          \
    do {                                                                      \
        const char *path = (*env)->GetStringUTFChars(env, string, NULL);      \
        if (path) {                                                           \
            statement;                                                        \
            (*env)->ReleaseStringUTFChars(env, string, path);                 \
        }                                                                     \
    } while (0)

// --- descriptors ------------------------------------------------------------------------------------------------------

LINUX(jobject, open)(JNIEnv *env, jobject this, jstring string, jint flags, jint mode) {
    (void)this;
    int fd = -1;
    WITH_PATH(string, fd = open(path, flags | O_CLOEXEC, mode));
    return new_descriptor(env, (int)checked(env, "open", fd));
}
LINUX(void, close)(JNIEnv *env, jobject this, jobject descriptor) {
    (void)this;
    int fd = fd_of(env, descriptor);
    (*env)->SetIntField(env, descriptor, descriptor_field(env, (*env)->GetObjectClass(env, descriptor)), -1);
    checked(env, "close", close(fd));
}
LINUX(jobject, dup)(JNIEnv *env, jobject this, jobject descriptor) {
    (void)this;
    return new_descriptor(env, (int)checked(env, "dup", dup(fd_of(env, descriptor))));
}
LINUX(jobjectArray, pipe2)(JNIEnv *env, jobject this, jint flags) {
    (void)this;
    int ends[2];
    if (checked(env, "pipe2", pipe2(ends, flags)) < 0) return NULL;
    jobjectArray array = (*env)->NewObjectArray(env, 2, (*env)->FindClass(env, "java/io/FileDescriptor"), NULL);
    for (int i = 0; i < 2; i++) (*env)->SetObjectArrayElement(env, array, i, new_descriptor(env, ends[i]));
    return array;
}
LINUX(jint, fcntlInt)(JNIEnv *env, jobject this, jobject descriptor, jint command, jint argument) {
    (void)this;
    return (jint)checked(env, "fcntl", fcntl(fd_of(env, descriptor), command, argument));
}
LINUX(jint, fcntlVoid)(JNIEnv *env, jobject this, jobject descriptor, jint command) {
    (void)this;
    return (jint)checked(env, "fcntl", fcntl(fd_of(env, descriptor), command));
}
LINUX(jboolean, isatty)(JNIEnv *env, jobject this, jobject descriptor) {
    (void)this;
    return isatty(fd_of(env, descriptor)) == 1;
}
LINUX(jlong, lseek)(JNIEnv *env, jobject this, jobject descriptor, jlong offset, jint whence) {
    (void)this;
    return checked(env, "lseek", lseek(fd_of(env, descriptor), offset, whence));
}
LINUX(void, fsync)(JNIEnv *env, jobject this, jobject descriptor) {
    (void)this;
    checked(env, "fsync", fsync(fd_of(env, descriptor)));
}
LINUX(void, fdatasync)(JNIEnv *env, jobject this, jobject descriptor) {
    (void)this;
    checked(env, "fdatasync", fdatasync(fd_of(env, descriptor)));
}
LINUX(void, ftruncate)(JNIEnv *env, jobject this, jobject descriptor, jlong length) {
    (void)this;
    checked(env, "ftruncate", ftruncate(fd_of(env, descriptor), length));
}

// The bytes of an array or of a direct buffer; those of an array are a copy.
static char *bytes_of(JNIEnv *env, jobject buffer, jboolean *is_array) {
    *is_array = (*env)->IsInstanceOf(env, buffer, (*env)->FindClass(env, "[B"));
    return *is_array ? (char *)(*env)->GetByteArrayElements(env, buffer, NULL) : (char *)(*env)->GetDirectBufferAddress(env, buffer);
}
static jint transfer(JNIEnv *env, const char *call, jobject descriptor, jobject buffer, jint offset, jint count, jlong at, int writes) {
    jboolean is_array;
    int fd = fd_of(env, descriptor);
    char *bytes = bytes_of(env, buffer, &is_array);
    if (!bytes) return -1;
    long done;
    do {
        if (writes) {
            done = at < 0 ? write(fd, bytes + offset, (size_t)count) : pwrite(fd, bytes + offset, (size_t)count, at);
        } else {
            done = at < 0 ? read(fd, bytes + offset, (size_t)count) : pread(fd, bytes + offset, (size_t)count, at);
        }
    } while (done < 0 && errno == EINTR);
    int error = errno;
    if (is_array) (*env)->ReleaseByteArrayElements(env, buffer, (jbyte *)bytes, writes ? JNI_ABORT : 0);
    errno = error;
    return (jint)checked(env, call, done);
}
LINUX(jint, readBytes)(JNIEnv *env, jobject this, jobject descriptor, jobject buffer, jint offset, jint count) {
    (void)this;
    return transfer(env, "read", descriptor, buffer, offset, count, -1, 0);
}
LINUX(jint, writeBytes)(JNIEnv *env, jobject this, jobject descriptor, jobject buffer, jint offset, jint count) {
    (void)this;
    return transfer(env, "write", descriptor, buffer, offset, count, -1, 1);
}
LINUX(jint, preadBytes)(JNIEnv *env, jobject this, jobject descriptor, jobject buffer, jint offset, jint count, jlong at) {
    (void)this;
    return transfer(env, "pread", descriptor, buffer, offset, count, at, 0);
}
LINUX(jint, pwriteBytes)(JNIEnv *env, jobject this, jobject descriptor, jobject buffer, jint offset, jint count, jlong at) {
    (void)this;
    return transfer(env, "pwrite", descriptor, buffer, offset, count, at, 1);
}
JNIEXPORT jint JNICALL Java_java_io_FileInputStream_available0(JNIEnv *env, jobject this) {
    jfieldID field = (*env)->GetFieldID(env, (*env)->GetObjectClass(env, this), "fd", "Ljava/io/FileDescriptor;");
    int waiting = 0;
    if (ioctl(fd_of(env, (*env)->GetObjectField(env, this, field)), FIONREAD, &waiting) < 0) waiting = 0;
    return waiting;
}
JNIEXPORT jlong JNICALL Java_java_io_FileInputStream_skip0(JNIEnv *env, jobject this, jlong count) {
    jfieldID field = (*env)->GetFieldID(env, (*env)->GetObjectClass(env, this), "fd", "Ljava/io/FileDescriptor;");
    int fd = fd_of(env, (*env)->GetObjectField(env, this, field));
    off_t before = lseek(fd, 0, SEEK_CUR), after = before < 0 ? -1 : lseek(fd, count, SEEK_CUR);
    if (after < 0) {
        (*env)->ThrowNew(env, (*env)->FindClass(env, "java/io/FileInputStream$UseManualSkipException"), "");
        return 0;
    }
    return after - before;
}
JNIEXPORT void JNICALL Java_java_io_FileDescriptor_sync(JNIEnv *env, jobject this) { fsync(fd_of(env, this)); }
JNIEXPORT jboolean JNICALL Java_java_io_FileDescriptor_isSocket(JNIEnv *env, jclass class, jint fd) {
    (void)env, (void)class;
    struct stat status;
    return !fstat(fd, &status) && S_ISSOCK(status.st_mode);
}
JNIEXPORT void JNICALL Java_libcore_io_AsynchronousCloseMonitor_signalBlockedThreads(JNIEnv *env, jclass class, jobject descriptor) {
    (void)env, (void)class, (void)descriptor;
}
// Owners of descriptors are what only Android's C library keeps.
LINUX(void, android_1fdsan_1exchange_1owner_1tag)(JNIEnv *env, jobject this, jobject descriptor, jlong before, jlong after) {
    (void)env, (void)this, (void)descriptor, (void)before, (void)after;
}
LINUX(jlong, android_1fdsan_1get_1owner_1tag)(JNIEnv *env, jobject this, jobject descriptor) {
    (void)env, (void)this, (void)descriptor;
    return 0;
}

// --- files ------------------------------------------------------------------------------------------------------------

static jobject new_stat(JNIEnv *env, const char *call, int failed, const struct stat *status) {
    if (checked(env, call, failed) < 0) return NULL;
    jclass class = (*env)->FindClass(env, "android/system/StructStat");
    jmethodID init = (*env)->GetMethodID(env, class, "<init>", "(JJIJIIJJJJJJJ)V");
    return (*env)->NewObject(env, class, init, (jlong)status->st_dev, (jlong)status->st_ino, (jint)status->st_mode,
                             (jlong)status->st_nlink, (jint)status->st_uid, (jint)status->st_gid, (jlong)status->st_rdev,
                             (jlong)status->st_size, (jlong)status->st_atime, (jlong)status->st_mtime, (jlong)status->st_ctime,
                             (jlong)status->st_blksize, (jlong)status->st_blocks);
}
LINUX(jobject, stat)(JNIEnv *env, jobject this, jstring string) {
    (void)this;
    struct stat status;
    int failed = -1;
    WITH_PATH(string, failed = stat(path, &status));
    return new_stat(env, "stat", failed, &status);
}
LINUX(jobject, lstat)(JNIEnv *env, jobject this, jstring string) {
    (void)this;
    struct stat status;
    int failed = -1;
    WITH_PATH(string, failed = lstat(path, &status));
    return new_stat(env, "lstat", failed, &status);
}
LINUX(jobject, fstat)(JNIEnv *env, jobject this, jobject descriptor) {
    (void)this;
    struct stat status;
    int failed = fstat(fd_of(env, descriptor), &status);
    return new_stat(env, "fstat", failed, &status);
}
LINUX(jboolean, access)(JNIEnv *env, jobject this, jstring string, jint mode) {
    (void)this;
    long failed = -1;
    WITH_PATH(string, failed = access(path, mode));
    checked(env, "access", failed);
    return !failed;
}
#define OF_PATH(name, expression)                                    \
    LINUX(void, name)(JNIEnv * env, jobject this, jstring string) {  \
        (void)this;                                                  \
        long failed = -1;                                            \
        WITH_PATH(string, failed = (expression));                    \
        checked(env, #name, failed);                                 \
    }
OF_PATH(remove, remove(path))
OF_PATH(unlink, unlink(path))
LINUX(void, mkdir)(JNIEnv *env, jobject this, jstring string, jint mode) {
    (void)this;
    long failed = -1;
    WITH_PATH(string, failed = mkdir(path, (mode_t)mode));
    checked(env, "mkdir", failed);
}
LINUX(void, chmod)(JNIEnv *env, jobject this, jstring string, jint mode) {
    (void)this;
    long failed = -1;
    WITH_PATH(string, failed = chmod(path, (mode_t)mode));
    checked(env, "chmod", failed);
}
LINUX(void, rename)(JNIEnv *env, jobject this, jstring from, jstring to) {
    (void)this;
    long failed = -1;
    const char *target = (*env)->GetStringUTFChars(env, to, NULL);
    WITH_PATH(from, failed = rename(path, target));
    (*env)->ReleaseStringUTFChars(env, to, target);
    checked(env, "rename", failed);
}
LINUX(jstring, realpath)(JNIEnv *env, jobject this, jstring string) {
    (void)this;
    char resolved[PATH_MAX];
    long failed = -1;
    WITH_PATH(string, failed = realpath(path, resolved) ? 0 : -1);
    return checked(env, "realpath", failed) < 0 ? NULL : (*env)->NewStringUTF(env, resolved);
}
LINUX(jlong, mmap)(JNIEnv *env, jobject this, jlong address, jlong length, jint protection, jint flags, jobject descriptor, jlong offset) {
    (void)this;
    void *mapped = mmap((void *)(intptr_t)address, (size_t)length, protection, flags, fd_of(env, descriptor), offset);
    return checked(env, "mmap", (long)(intptr_t)mapped);
}
LINUX(void, munmap)(JNIEnv *env, jobject this, jlong address, jlong length) {
    (void)this;
    checked(env, "munmap", munmap((void *)(intptr_t)address, (size_t)length));
}

// --- processes --------------------------------------------------------------------------------------------------------

#define NUMBER(type, name, expression)                       \
    LINUX(type, name)(JNIEnv * env, jobject this) {          \
        (void)env, (void)this;                               \
        return (type)(expression);                           \
    }
NUMBER(jint, getpid, getpid())
NUMBER(jint, getppid, getppid())
NUMBER(jint, getuid, getuid())
NUMBER(jint, geteuid, geteuid())
NUMBER(jint, getgid, getgid())
NUMBER(jint, getegid, getegid())
NUMBER(jint, gettid, syscall(SYS_gettid))
LINUX(jlong, sysconf)(JNIEnv *env, jobject this, jint name) {
    (void)env, (void)this;
    return sysconf(name);
}
LINUX(void, kill)(JNIEnv *env, jobject this, jint process, jint signal) {
    (void)this;
    checked(env, "kill", kill(process, signal));
}
LINUX(jint, prctl)(JNIEnv *env, jobject this, jint option, jlong a, jlong b, jlong c, jlong d) {
    (void)this;
    return (jint)checked(env, "prctl", prctl(option, a, b, c, d));
}
LINUX(jint, waitpid)(JNIEnv *env, jobject this, jint process, jobject status, jint options) {
    (void)this;
    int value = 0;
    jint ended = (jint)checked(env, "waitpid", waitpid(process, &value, options));
    if (status) (*env)->SetIntField(env, status, (*env)->GetFieldID(env, (*env)->GetObjectClass(env, status), "value", "I"), value);
    return ended;
}
LINUX(jstring, getenv)(JNIEnv *env, jobject this, jstring name) {
    (void)this;
    const char *value = NULL;
    WITH_PATH(name, value = getenv(path));
    return value ? (*env)->NewStringUTF(env, value) : NULL;
}
LINUX(jstring, strerror)(JNIEnv *env, jobject this, jint error) {
    (void)this;
    return (*env)->NewStringUTF(env, strerror(error));
}
LINUX(jobject, uname)(JNIEnv *env, jobject this) {
    (void)this;
    struct utsname names;
    if (checked(env, "uname", uname(&names)) < 0) return NULL;
    jclass class = (*env)->FindClass(env, "android/system/StructUtsname");
    jmethodID init = (*env)->GetMethodID(
        env, class, "<init>", "(Ljava/lang/String;Ljava/lang/String;Ljava/lang/String;Ljava/lang/String;Ljava/lang/String;)V");
    return (*env)->NewObject(env, class, init, (*env)->NewStringUTF(env, names.sysname), (*env)->NewStringUTF(env, names.nodename),
                             (*env)->NewStringUTF(env, names.release), (*env)->NewStringUTF(env, names.version),
                             (*env)->NewStringUTF(env, names.machine));
}
LINUX(jobject, getpwuid)(JNIEnv *env, jobject this, jint user) {
    (void)this;
    // A user without an entry has a number all the same.
    jclass class = (*env)->FindClass(env, "android/system/StructPasswd");
    jmethodID init = (*env)->GetMethodID(env, class, "<init>", "(Ljava/lang/String;IILjava/lang/String;Ljava/lang/String;)V");
    return (*env)->NewObject(env, class, init, (*env)->NewStringUTF(env, user ? "user" : "root"), user, (jint)getgid(),
                             (*env)->NewStringUTF(env, "/"), (*env)->NewStringUTF(env, "/bin/sh"));
}

// --- constants --------------------------------------------------------------------------------------------------------

#define CONSTANT(name) {#name, name}
static const struct {
    const char *name;
    int value;
} constants[] = {
    CONSTANT(E2BIG), CONSTANT(EACCES), CONSTANT(EAGAIN), CONSTANT(EBADF), CONSTANT(EBUSY), CONSTANT(ECHILD), CONSTANT(ECONNREFUSED),
    CONSTANT(ECONNRESET), CONSTANT(EEXIST), CONSTANT(EFAULT), CONSTANT(EFBIG), CONSTANT(EINTR), CONSTANT(EINVAL), CONSTANT(EIO),
    CONSTANT(EISDIR), CONSTANT(ELOOP), CONSTANT(EMFILE), CONSTANT(ENAMETOOLONG), CONSTANT(ENFILE), CONSTANT(ENODEV), CONSTANT(ENOENT),
    CONSTANT(ENOMEM), CONSTANT(ENOSPC), CONSTANT(ENOSYS), CONSTANT(ENOTDIR), CONSTANT(ENOTEMPTY), CONSTANT(ENOTSUP), CONSTANT(ENOTTY),
    CONSTANT(EPERM), CONSTANT(EPIPE), CONSTANT(ERANGE), CONSTANT(EROFS), CONSTANT(ESPIPE), CONSTANT(ESRCH), CONSTANT(ETIMEDOUT),
    CONSTANT(EXDEV), CONSTANT(EXIT_FAILURE), CONSTANT(EXIT_SUCCESS), CONSTANT(FD_CLOEXEC), CONSTANT(F_DUPFD), CONSTANT(F_DUPFD_CLOEXEC),
    CONSTANT(F_GETFD), CONSTANT(F_GETFL), CONSTANT(F_OK), CONSTANT(F_SETFD), CONSTANT(F_SETFL), CONSTANT(MAP_PRIVATE), CONSTANT(MAP_SHARED),
    CONSTANT(MAP_FIXED), CONSTANT(MAP_POPULATE), CONSTANT(MS_SYNC), CONSTANT(O_ACCMODE), CONSTANT(O_APPEND), CONSTANT(O_CLOEXEC),
    CONSTANT(O_CREAT), CONSTANT(O_DSYNC), CONSTANT(O_EXCL), CONSTANT(O_NOCTTY), CONSTANT(O_NOFOLLOW), CONSTANT(O_NONBLOCK),
    CONSTANT(O_RDONLY), CONSTANT(O_RDWR), CONSTANT(O_SYNC), CONSTANT(O_TRUNC), CONSTANT(O_WRONLY), CONSTANT(POLLERR), CONSTANT(POLLHUP),
    CONSTANT(POLLIN), CONSTANT(POLLOUT), CONSTANT(PROT_EXEC), CONSTANT(PROT_NONE), CONSTANT(PROT_READ), CONSTANT(PROT_WRITE),
    CONSTANT(R_OK), CONSTANT(SEEK_CUR), CONSTANT(SEEK_END), CONSTANT(SEEK_SET), CONSTANT(SIGABRT), CONSTANT(SIGCHLD), CONSTANT(SIGINT),
    CONSTANT(SIGKILL), CONSTANT(SIGPIPE), CONSTANT(SIGQUIT), CONSTANT(SIGTERM), CONSTANT(SIGUSR1), CONSTANT(STDERR_FILENO),
    CONSTANT(STDIN_FILENO), CONSTANT(STDOUT_FILENO), CONSTANT(S_IFDIR), CONSTANT(S_IFLNK), CONSTANT(S_IFMT), CONSTANT(S_IFREG),
    CONSTANT(S_IFSOCK), CONSTANT(S_IFIFO), CONSTANT(S_IFCHR), CONSTANT(S_IRUSR), CONSTANT(S_IWUSR), CONSTANT(S_IXUSR), CONSTANT(S_IRWXU),
    CONSTANT(S_IRGRP), CONSTANT(S_IWGRP), CONSTANT(S_IRWXG), CONSTANT(S_IROTH), CONSTANT(S_IWOTH), CONSTANT(S_IRWXO), CONSTANT(WNOHANG),
    CONSTANT(W_OK), CONSTANT(X_OK), CONSTANT(_SC_CLK_TCK), CONSTANT(_SC_NPROCESSORS_CONF), CONSTANT(_SC_NPROCESSORS_ONLN),
    CONSTANT(_SC_PAGESIZE), CONSTANT(_SC_PAGE_SIZE), CONSTANT(_SC_PHYS_PAGES),
};
JNIEXPORT void JNICALL Java_android_system_OsConstants_initConstants(JNIEnv *env, jclass class) {
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++) {
        (*env)->SetStaticIntField(env, class, (*env)->GetStaticFieldID(env, class, constants[i].name, "I"), constants[i].value);
    }
}
