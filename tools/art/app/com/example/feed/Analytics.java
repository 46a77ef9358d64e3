package com.example.feed;

import java.util.HashMap;
import java.util.Map;
import java.util.UUID;

/** Counts what the user does. */
final class Analytics {
    private final Map<String, Integer> counts = new HashMap<>();
    private final String session = UUID.randomUUID().toString();

    void track(String event) {
        for (int i = 0; i < 40; i++) counts.merge(event + i % 8, 1, Integer::sum);
    }

    @Override
    public String toString() { return session + counts; }
}
