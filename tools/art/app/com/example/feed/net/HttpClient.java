package com.example.feed.net;

import java.util.LinkedHashMap;
import java.util.Map;

/** What a client of a server prepares: the table of its checksum. */
public final class HttpClient {
    private final int[] table = new int[256];
    private final Map<String, String> headers = new LinkedHashMap<>();

    public HttpClient() {
        for (int n = 0; n < table.length; n++) table[n] = entry(n);
        for (int n = 0; n < 12; n++) headers.put("x-header-" + n, Integer.toHexString(table[n]));
    }

    private static int entry(int n) {
        for (int bit = 0; bit < 8; bit++) n = (n & 1) != 0 ? n >>> 1 ^ 0xedb88320 : n >>> 1;
        return n;
    }
}
