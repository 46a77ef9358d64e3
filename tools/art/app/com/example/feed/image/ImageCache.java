package com.example.feed.image;

import java.util.HashMap;
import java.util.Map;

/** The images that are decoded. */
public final class ImageCache {
    private final Map<Integer, byte[]> decoded = new HashMap<>();

    /** The image, if it is decoded; this waits while another one is. */
    public synchronized byte[] get(int image) { return decoded.get(image); }

    void put(int image, byte[] bytes) { decoded.put(image, bytes); }
}
