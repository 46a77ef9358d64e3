#include "trace.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "code_patch.h"

static int marker = -1;

__attribute__((constructor)) static void open_marker(void) {
    const char *named = getenv("ART_TRACE_MARKER");
    static const char *usual[] = {"/sys/kernel/tracing/trace_marker", "/sys/kernel/debug/tracing/trace_marker"};
    if (named) {
        marker = open(named, O_WRONLY | O_CLOEXEC);
        return;
    }
    for (size_t i = 0; marker < 0 && i < sizeof usual / sizeof *usual; i++) marker = open(usual[i], O_WRONLY | O_CLOEXEC);
}

int trace_is_open(void) { return marker >= 0; }

static void put(const char *text, int length) {
    // The kernel takes a marker of 1024 bytes; a lost one is not worth the end of a program.
    if (marker < 0 || length <= 0) return;
    if (write(marker, text, length > 1023 ? 1023 : (size_t)length) < 0) return;
}

void trace_begin(const char *name) {
    char text[1100];
    put(text, snprintf(text, sizeof text, "B|%d|%.1000s", getpid(), name));
}

void trace_end(void) {
    char text[32];
    put(text, snprintf(text, sizeof text, "E|%d", getpid()));
}

void trace_counter(const char *name, int64_t value) {
    char text[1100];
    put(text, snprintf(text, sizeof text, "C|%d|%.960s|%lld", getpid(), name, (long long)value));
}

void trace_async(char letter, const char *name, int cookie) {
    char text[1100];
    put(text, snprintf(text, sizeof text, "%c|%d|%.960s|%d", letter, getpid(), name, cookie));
}

// The functions by which the runtime writes markers, as its library declares them: they return 0.
static int palette_enabled(int32_t *enabled) {
    *enabled = trace_is_open();
    return 0;
}
static int palette_begin(const char *name) {
    trace_begin(name);
    return 0;
}
static int palette_end(void) {
    trace_end();
    return 0;
}
static int palette_counter(const char *name, int32_t value) {
    trace_counter(name, value);
    return 0;
}

// The stacks of all threads, which the runtime prints at SIGQUIT, as a phone does when an app does not respond: to the
// file that ART_ANR names, or to the standard error.
static int palette_stacks(const char *stacks, size_t length) {
    const char *named = getenv("ART_ANR");
    int file = named ? open(named, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : STDERR_FILENO;
    if (file < 0) return 0;
    while (length > 0) {
        ssize_t written = write(file, stacks, length);
        if (written <= 0) break;
        stacks += written;
        length -= (size_t)written;
    }
    if (file != STDERR_FILENO) close(file);
    return 0;
}

void trace_redirect(void *libart) {
    const struct {
        const char *name;
        void *function;
    } functions[] = {
        {"PaletteTraceEnabled", (void *)palette_enabled},
        {"PaletteTraceBegin", (void *)palette_begin},
        {"PaletteTraceEnd", (void *)palette_end},
        {"PaletteTraceIntegerValue", (void *)palette_counter},
        {"PaletteWriteCrashThreadStacks", (void *)palette_stacks},
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *function = dlsym(libart, functions[i].name);
        if (!function) {
            fprintf(stderr, "art: the runtime has no %s: its own markers will be missing\n", functions[i].name);
            continue;
        }
        write_jump(function, functions[i].function, NULL);
    }
}
