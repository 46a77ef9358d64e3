/* Preloaded into tracebridge by scripts/faults: makes one call of the C library fail, do half of its work, or
 * raise a signal.
 *
 *   FAULTS_RULE    CALL:N:ACTION[:on]  the N-th such call of the process does ACTION; with `on` every later
 *                  one too. CALL is a name of the list `names` below, or `any`. ACTION is an errno (a number),
 *                  `short` (half of the bytes are moved), or `signal` and a number (`signal9`).
 *   FAULTS_DONE    a file that is created when the fault happens. Where it exists, nothing happens: a fault
 *                  happens in one process only.
 *   FAULTS_COUNTS  a file to which the process writes at its end how often it has made each call.
 *
 * Only a program called tracebridge is meddled with: not the programs that it starts. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/vfs.h>
#include <sys/uio.h>
#include <unistd.h>

enum call { OPEN, READ, PREAD, MMAP, WRITE, PWRITE, PRINT, FSYNC, RENAME, TRUNCATE, FALLOCATE, COPY, UNLINK,
            MKDIR, CHMOD, POLL, CALLS };
static const char *const names[CALLS] = { "open", "read", "pread", "mmap", "write", "pwrite", "print", "fsync",
    "rename", "truncate", "fallocate", "copy", "unlink", "mkdir", "chmod", "poll" };

/* tracefs takes or gives whole values: moving half of one would be no fault of any kernel. */
#define TRACEFS_MAGIC 0x74726163

enum action { NOTHING, FAIL, HALF };

static atomic_long counts[CALLS], rule_calls;
static int is_active, rule_call = -1, rule_errno, rule_signal, rule_short, rule_on;
static long rule_at;

static void count_at_end(void) {
    const char *path = getenv("FAULTS_COUNTS");
    char text[1024];
    int len = 0;
    for (int call = 0; call < CALLS; call++)
        len += snprintf(text + len, sizeof text - len, "%s %ld\n", names[call], atomic_load(&counts[call]));
    int fd = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd >= 0) {
        syscall(SYS_write, fd, text, len);
        syscall(SYS_close, fd);
    }
}

__attribute__((constructor)) static void begin(void) {
    const char *rule = getenv("FAULTS_RULE");
    char call[16], action[16], on[4] = "";
    if (strcmp(program_invocation_short_name, "tracebridge") != 0)
        return;
    is_active = 1;
    if (getenv("FAULTS_COUNTS"))
        atexit(count_at_end);
    if (!rule || sscanf(rule, "%15[^:]:%ld:%15[^:]:%3s", call, &rule_at, action, on) < 3)
        return;
    rule_call = CALLS;
    for (int n = 0; n < CALLS; n++)
        if (strcmp(names[n], call) == 0)
            rule_call = n;
    rule_on = on[0] != 0;
    if (strcmp(action, "short") == 0)
        rule_short = 1;
    else if (strncmp(action, "signal", 6) == 0)
        rule_signal = atoi(action + 6);
    else
        rule_errno = atoi(action);
}

/* Counts a call, and decides what becomes of it. */
static enum action decide_for(enum call call, int fd) {
    struct statfs place;
    static atomic_int has_begun;
    if (!is_active)
        return NOTHING;
    atomic_fetch_add(&counts[call], 1);
    if (rule_call != CALLS && rule_call != (int)call)
        return NOTHING;
    long number = atomic_fetch_add(&rule_calls, 1) + 1;
    if (number < rule_at || (number > rule_at && !(rule_on && atomic_load(&has_begun))))
        return NOTHING;
    if (rule_short && fd >= 0 && fstatfs(fd, &place) == 0 && place.f_type == TRACEFS_MAGIC)
        return NOTHING;
    if (number == rule_at) {
        int done = syscall(SYS_openat, AT_FDCWD, getenv("FAULTS_DONE"), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (done < 0)
            return NOTHING;
        syscall(SYS_close, done);
        atomic_store(&has_begun, 1);
    }
    if (rule_signal) {
        syscall(SYS_kill, getpid(), rule_signal);
        return NOTHING;
    }
    if (rule_short)
        return HALF;
    errno = rule_errno;
    return FAIL;
}

static enum action decide(enum call call) { return decide_for(call, -1); }

#define NEXT(name) \
    static __typeof__(name) *next; \
    if (!next) next = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

/* A call without a length: it fails or not. Where `counts` is false the call is left alone. */
#define WHOLE_IF(counts, call, type, name, params, args, failed) \
    type name params { \
        NEXT(name); \
        return (counts) && decide(call) == FAIL ? failed : next args; \
    }
#define WHOLE(...) WHOLE_IF(1, __VA_ARGS__)
/* A call that moves `len` bytes. */
#define MOVES(call, name, params, args) \
    ssize_t name params { \
        NEXT(name); \
        switch (decide_for(call, fd)) { \
        case FAIL: return -1; \
        case HALF: len = len > 1 ? len / 2 : len; break; \
        case NOTHING: break; \
        } \
        return next args; \
    }

MOVES(READ, read, (int fd, void *buf, size_t len), (fd, buf, len))
MOVES(PREAD, pread, (int fd, void *buf, size_t len, off_t at), (fd, buf, len, at))
MOVES(PREAD, pread64, (int fd, void *buf, size_t len, off64_t at), (fd, buf, len, at))
MOVES(fd > 2 ? WRITE : PRINT, write, (int fd, const void *buf, size_t len), (fd, buf, len))
MOVES(PWRITE, pwrite, (int fd, const void *buf, size_t len, off_t at), (fd, buf, len, at))
MOVES(PWRITE, pwrite64, (int fd, const void *buf, size_t len, off64_t at), (fd, buf, len, at))
MOVES(COPY, copy_file_range, (int fd, off64_t *in_at, int out, off64_t *out_at, size_t len, unsigned flags),
      (fd, in_at, out, out_at, len, flags))
/* Memory that is no file is the allocator's affair; RLIMIT_AS makes that fail. */
WHOLE_IF(fd >= 0, MMAP, void *, mmap, (void *at, size_t len, int prot, int flags, int fd, off_t off),
      (at, len, prot, flags, fd, off), MAP_FAILED)
WHOLE_IF(fd >= 0, MMAP, void *, mmap64, (void *at, size_t len, int prot, int flags, int fd, off64_t off),
      (at, len, prot, flags, fd, off), MAP_FAILED)
WHOLE(FSYNC, int, fsync, (int fd), (fd), -1)
WHOLE(FSYNC, int, fdatasync, (int fd), (fd), -1)
WHOLE(RENAME, int, rename, (const char *from, const char *to), (from, to), -1)
WHOLE(RENAME, int, renameat, (int a, const char *from, int b, const char *to), (a, from, b, to), -1)
WHOLE(RENAME, int, renameat2, (int a, const char *from, int b, const char *to, unsigned f), (a, from, b, to, f), -1)
WHOLE(TRUNCATE, int, ftruncate, (int fd, off_t len), (fd, len), -1)
WHOLE(TRUNCATE, int, ftruncate64, (int fd, off64_t len), (fd, len), -1)
WHOLE(FALLOCATE, int, fallocate, (int fd, int mode, off_t at, off_t len), (fd, mode, at, len), -1)
WHOLE(FALLOCATE, int, fallocate64, (int fd, int mode, off64_t at, off64_t len), (fd, mode, at, len), -1)
WHOLE(UNLINK, int, unlink, (const char *path), (path), -1)
WHOLE(UNLINK, int, unlinkat, (int dir, const char *path, int flags), (dir, path, flags), -1)
WHOLE(MKDIR, int, mkdir, (const char *path, mode_t mode), (path, mode), -1)
WHOLE(MKDIR, int, mkdirat, (int dir, const char *path, mode_t mode), (dir, path, mode), -1)
WHOLE(CHMOD, int, fchmod, (int fd, mode_t mode), (fd, mode), -1)
/* Rust's runtime polls once without waiting before `main`, and aborts if that fails. */
WHOLE_IF(timeout != 0, POLL, int, poll, (struct pollfd *fds, nfds_t n, int timeout), (fds, n, timeout), -1)

ssize_t writev(int fd, const struct iovec *parts, int n) {
    NEXT(writev);
    switch (decide(fd > 2 ? WRITE : PRINT)) {
    case FAIL: return -1;
    case HALF: n = n > 1 ? n / 2 : n; break;
    case NOTHING: break;
    }
    return next(fd, parts, n);
}

/* The mode of a file that is created is an argument more. */
#define OPENS(name, params, args, flags) \
    int name params { \
        NEXT(name); \
        va_list list; \
        va_start(list, flags); \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0; \
        va_end(list); \
        return decide(OPEN) == FAIL ? -1 : next args; \
    }
OPENS(open, (const char *path, int flags, ...), (path, flags, mode), flags)
OPENS(open64, (const char *path, int flags, ...), (path, flags, mode), flags)
OPENS(openat, (int dir, const char *path, int flags, ...), (dir, path, flags, mode), flags)
OPENS(openat64, (int dir, const char *path, int flags, ...), (dir, path, flags, mode), flags)
