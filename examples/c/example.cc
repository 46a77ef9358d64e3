// Markers from C++: slices that end with their block, by an exception too.
#define ATRACE_TAG ATRACE_TAG_VIEW
#include <tracebridge.h>

#include <stdexcept>
#include <thread>

static void load() {
    ATRACE_CALL();  // a slice under the function's name
    ATRACE_NAME("parse");
    throw std::runtime_error("on purpose");
}

int main() {
    try {
        load();
    } catch (const std::runtime_error&) {
        ATRACE_INSTANT("caught");
    }
    ATRACE_ASYNC_BEGIN("download", 1);
    std::thread([] { ATRACE_ASYNC_END("download", 1); }).join();
    return 0;
}
