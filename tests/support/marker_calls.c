/* Makes the calls that its standard input lists, one a line, through tracebridge.h; a test compares what arrives in
 * the trace. A line is a call and its arguments, separated by spaces; names are hexadecimal digits, "-" if empty.
 * `fork NAME` has a child write an instant and end. Prints its process id first, and that of each child. */
#define ATRACE_TAG ATRACE_TAG_VIEW
#include "tracebridge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char line[1 << 16];

/* Takes the next word of the line. */
static char* word(void) {
    char* found = strtok(NULL, " \n");
    if (!found) exit(2);
    return found;
}

/* Takes the next word as a name, which takes the place of its digits. */
static const char* name(void) {
    char* text = word();
    size_t length = text[0] == '-' ? 0 : strlen(text) / 2;
    for (size_t i = 0; i < length; i++) {
        char digits[3] = {text[2 * i], text[2 * i + 1], 0};
        text[i] = (char)strtol(digits, NULL, 16);
    }
    text[length] = 0;
    return text;
}

static int64_t number(void) {
    return strtoll(word(), NULL, 10);
}

/* Has a child of a fork write an instant. */
static void in_child(const char* text) {
    pid_t child = fork();
    if (child == 0) {
        ATRACE_INSTANT(text);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    printf("%d\n", (int)child);
    fflush(stdout);
}

int main(void) {
    printf("%d\n", (int)getpid());
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        const char* call = strtok(line, " \n");
        const char *first = NULL, *second = NULL;
        if (!call) return 2;
        if (!strcmp(call, "end")) {
            ATRACE_END();
            continue;
        }
        first = name();
        if (!strncmp(call, "track_", 6) && strcmp(call, "track_end")) second = name();
        if (!strcmp(call, "fork")) {
            in_child(first);
        } else if (!strcmp(call, "begin")) {
            ATRACE_BEGIN(first);
        } else if (!strcmp(call, "instant")) {
            ATRACE_INSTANT(first);
        } else if (!strcmp(call, "track_instant")) {
            ATRACE_INSTANT_FOR_TRACK(first, second);
        } else if (!strcmp(call, "counter")) {
            ATRACE_INT64(first, number());
        } else if (!strcmp(call, "async_begin")) {
            ATRACE_ASYNC_BEGIN(first, (int32_t)number());
        } else if (!strcmp(call, "async_end")) {
            ATRACE_ASYNC_END(first, (int32_t)number());
        } else if (!strcmp(call, "track_begin")) {
            ATRACE_ASYNC_FOR_TRACK_BEGIN(first, second, (int32_t)number());
        } else if (!strcmp(call, "track_end")) {
            ATRACE_ASYNC_FOR_TRACK_END(first, (int32_t)number());
        } else {
            return 2;
        }
    }
    return 0;
}
