/* Markers from C, in the two ways that Android has: the macros of cutils/trace.h with a tag, and the NDK's calls. */
#define ATRACE_TAG ATRACE_TAG_GRAPHICS
#include <tracebridge.h>

static void draw(int frame) {
    ATRACE_BEGIN("draw");
    ATRACE_INT("frame", frame);
    ATRACE_END();
}

int main(void) {
    ATrace_beginSection("frames"); /* tag app */
    for (int frame = 0; frame < 3; frame++) draw(frame);
    ATrace_endSection();

    ATRACE_ASYNC_FOR_TRACK_BEGIN("network", "GET /", 7);
    ATRACE_INSTANT_FOR_TRACK("network", "retry");
    ATRACE_ASYNC_FOR_TRACK_END("network", 7);
    return 0;
}
