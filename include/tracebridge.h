/*
 * Markers for programs in C and C++: slices, async slices, tracks, instants and counters in Android's atrace
 * format, for tracebridge, Perfetto, systrace and every other tool that reads trace_marker.
 *
 * Link with libtracebridge_markers.a or .so (scripts/build-markers builds both). Any thread may call any
 * function at any time, in the child of a fork too. No function allocates memory or takes a lock, except for
 * the first call, which opens trace_marker.
 *
 * A marker is written while its tag is on: on Android as the properties debug.atrace.* say, elsewhere as the
 * environment variable TRACEBRIDGE_TAGS says (names of tags, "all", or a mask, separated by commas).
 * TRACEBRIDGE_TRACEFS names another directory than /sys/kernel/tracing.
 *
 * A marker has at most 1023 bytes; longer names are cut. In names '|' and line feeds become spaces. A name that
 * is NULL counts as "(null)".
 */
#ifndef TRACEBRIDGE_H
#define TRACEBRIDGE_H

#include <stdbool.h>
#include <stdint.h>

/* The tags, bit for bit those of Android's cutils/trace.h. */
#define ATRACE_TAG_NEVER 0
#define ATRACE_TAG_ALWAYS (UINT64_C(1) << 0)
#define ATRACE_TAG_GRAPHICS (UINT64_C(1) << 1)
#define ATRACE_TAG_INPUT (UINT64_C(1) << 2)
#define ATRACE_TAG_VIEW (UINT64_C(1) << 3)
#define ATRACE_TAG_WEBVIEW (UINT64_C(1) << 4)
#define ATRACE_TAG_WINDOW_MANAGER (UINT64_C(1) << 5)
#define ATRACE_TAG_ACTIVITY_MANAGER (UINT64_C(1) << 6)
#define ATRACE_TAG_SYNC_MANAGER (UINT64_C(1) << 7)
#define ATRACE_TAG_AUDIO (UINT64_C(1) << 8)
#define ATRACE_TAG_VIDEO (UINT64_C(1) << 9)
#define ATRACE_TAG_CAMERA (UINT64_C(1) << 10)
#define ATRACE_TAG_HAL (UINT64_C(1) << 11)
#define ATRACE_TAG_APP (UINT64_C(1) << 12)
#define ATRACE_TAG_RESOURCES (UINT64_C(1) << 13)
#define ATRACE_TAG_DALVIK (UINT64_C(1) << 14)
#define ATRACE_TAG_RS (UINT64_C(1) << 15)
#define ATRACE_TAG_BIONIC (UINT64_C(1) << 16)
#define ATRACE_TAG_POWER (UINT64_C(1) << 17)
#define ATRACE_TAG_PACKAGE_MANAGER (UINT64_C(1) << 18)
#define ATRACE_TAG_SYSTEM_SERVER (UINT64_C(1) << 19)
#define ATRACE_TAG_DATABASE (UINT64_C(1) << 20)
#define ATRACE_TAG_NETWORK (UINT64_C(1) << 21)
#define ATRACE_TAG_ADB (UINT64_C(1) << 22)
#define ATRACE_TAG_VIBRATOR (UINT64_C(1) << 23)
#define ATRACE_TAG_AIDL (UINT64_C(1) << 24)
#define ATRACE_TAG_NNAPI (UINT64_C(1) << 25)
#define ATRACE_TAG_RRO (UINT64_C(1) << 26)
#define ATRACE_TAG_THERMAL (UINT64_C(1) << 27)
#define ATRACE_TAG_LAST ATRACE_TAG_THERMAL
#define ATRACE_TAG_VALID_MASK ((ATRACE_TAG_LAST - 1) | ATRACE_TAG_LAST)

#ifdef __cplusplus
extern "C" {
#endif

/* The mask of the tags that are on. */
uint64_t tracebridge_enabled_tags(void);
/* Reads the tags again, after the program changed TRACEBRIDGE_TAGS in its own environment. A change of Android's
 * properties is noticed without this call. */
void tracebridge_update_tags(void);

/* Has all markers of this process go to a ring in its memory, which `tracebridge record` finds and reads: a marker is
 * then no system call. While no recorder reads the ring, markers go nowhere, or with `else_trace_marker` to
 * trace_marker. Call it before the first marker. Returns false where the process can have no ring (Linux before 3.17):
 * markers then go to trace_marker as before. The environment variable TRACEBRIDGE_RING has the same effect: "1" for
 * nowhere, "2" for trace_marker. */
bool tracebridge_use_ring(bool else_trace_marker);

/* Each of these writes one marker if one of the tags in the mask `tags` is on, and returns whether it was
 * written. While nobody records, the kernel refuses markers: that is no error, and returns false. */

/* A slice of the calling thread begins; the newest one ends. */
bool tracebridge_begin(uint64_t tags, const char* name);
bool tracebridge_end(uint64_t tags);
/* A moment on the calling thread; on a named track of the process. */
bool tracebridge_instant(uint64_t tags, const char* name);
bool tracebridge_track_instant(uint64_t tags, const char* track, const char* name);
/* A counter of the process takes a value. */
bool tracebridge_counter(uint64_t tags, const char* name, int64_t value);
/* An async slice of the process, which any thread may end with the same name and cookie. */
bool tracebridge_async_begin(uint64_t tags, const char* name, int32_t cookie);
bool tracebridge_async_end(uint64_t tags, const char* name, int32_t cookie);
/* An async slice on a named track of the process, which any thread may end with the same track and cookie. */
bool tracebridge_track_begin(uint64_t tags, const char* track, const char* name, int32_t cookie);
bool tracebridge_track_end(uint64_t tags, const char* track, int32_t cookie);

/* The calls of the NDK's android/trace.h, with the tag app. A program for Android that links with this library
 * too gets these instead of libandroid.so's; both write the same markers. */
bool ATrace_isEnabled(void);
void ATrace_beginSection(const char* sectionName);
void ATrace_endSection(void);
void ATrace_beginAsyncSection(const char* sectionName, int32_t cookie);
void ATrace_endAsyncSection(const char* sectionName, int32_t cookie);
void ATrace_setCounter(const char* counterName, int64_t counterValue);

#ifdef __cplusplus
} /* extern "C" */
#endif

/* The macros of libcutils's cutils/trace.h. Define ATRACE_TAG before the header is included; the default is
 * ATRACE_TAG_NEVER, as there. */
#ifndef ATRACE_TAG
#define ATRACE_TAG ATRACE_TAG_NEVER
#endif
#define ATRACE_INIT() ((void)tracebridge_enabled_tags())
#define ATRACE_GET_ENABLED_TAGS() tracebridge_enabled_tags()
#define ATRACE_ENABLED() ((tracebridge_enabled_tags() & (ATRACE_TAG)) != 0)
#define ATRACE_BEGIN(name) ((void)tracebridge_begin(ATRACE_TAG, name))
#define ATRACE_END() ((void)tracebridge_end(ATRACE_TAG))
#define ATRACE_ASYNC_BEGIN(name, cookie) ((void)tracebridge_async_begin(ATRACE_TAG, name, cookie))
#define ATRACE_ASYNC_END(name, cookie) ((void)tracebridge_async_end(ATRACE_TAG, name, cookie))
#define ATRACE_ASYNC_FOR_TRACK_BEGIN(track, name, cookie) \
    ((void)tracebridge_track_begin(ATRACE_TAG, track, name, cookie))
#define ATRACE_ASYNC_FOR_TRACK_END(track, cookie) ((void)tracebridge_track_end(ATRACE_TAG, track, cookie))
#define ATRACE_INSTANT(name) ((void)tracebridge_instant(ATRACE_TAG, name))
#define ATRACE_INSTANT_FOR_TRACK(track, name) ((void)tracebridge_track_instant(ATRACE_TAG, track, name))
#define ATRACE_INT(name, value) ((void)tracebridge_counter(ATRACE_TAG, name, (int32_t)(value)))
#define ATRACE_INT64(name, value) ((void)tracebridge_counter(ATRACE_TAG, name, value))

#ifdef __cplusplus
namespace tracebridge {

/* A slice of the calling thread that ends with the block. Where no begin was written, no end is. */
class ScopedTrace {
public:
    ScopedTrace(uint64_t tags, const char* name) : is_open_(tracebridge_begin(tags, name)) {}
    ~ScopedTrace() {
        /* Even if the tag was switched off since. */
        if (is_open_) (void)tracebridge_end(ATRACE_TAG_ALWAYS);
    }
    ScopedTrace(const ScopedTrace&) = delete;
    ScopedTrace& operator=(const ScopedTrace&) = delete;

private:
    bool is_open_;
};

}  // namespace tracebridge

#define TRACEBRIDGE_JOIN2(a, b) a##b
#define TRACEBRIDGE_JOIN(a, b) TRACEBRIDGE_JOIN2(a, b)
/* As in Android's utils/Trace.h: a slice until the end of the block, under this name or the function's. */
#define ATRACE_NAME(name) \
    ::tracebridge::ScopedTrace TRACEBRIDGE_JOIN(tracebridge_scope_, __LINE__)(ATRACE_TAG, name)
#define ATRACE_CALL() ATRACE_NAME(__FUNCTION__)
#endif

#endif /* TRACEBRIDGE_H */
