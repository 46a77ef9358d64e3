// The kernel's trace_marker, into which the runtime and its programs write their markers.
#pragma once
#include <stdint.h>

// Opens trace_marker, the first time; whether it can be written.
int trace_is_open(void);
// Writes one marker, of the letters of atrace: B begins a section, E ends it, C counts, S and F are asynchronous.
void trace_begin(const char *name);
void trace_end(void);
void trace_counter(const char *name, int64_t value);
void trace_async(char letter, const char *name, int cookie);
// Lets the runtime's own markers arrive there: those of its packages are written for a system without any.
void trace_redirect(void *libart);
