package com.example.feed;

/** Times, as people say them. */
final class Dates {
    private static final String[] UNITS = {"day", "hour", "minute", "second"};
    private static final long[] SECONDS = {86400, 3600, 60, 1};

    private Dates() {}

    static String relative(long seconds) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < UNITS.length; i++) {
            long count = seconds / SECONDS[i];
            seconds %= SECONDS[i];
            if (count > 0) text.append(String.format("%d %s%s ", count, UNITS[i], count > 1 ? "s" : ""));
        }
        return text.append("ago").toString();
    }
}
