package com.example.feed.image;

import android.os.Trace;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** Decodes images on a thread of its own. It holds the cache's monitor for as long as it decodes one. */
public final class ImageLoader {
    public final ImageCache cache = new ImageCache();
    private final ExecutorService pool = Executors.newFixedThreadPool(1);
    private final PngDecoder decoder = new PngDecoder();

    public void request(int image) { pool.execute(() -> load(image)); }

    private void load(int image) {
        synchronized (cache) {
            Trace.beginSection("decodeBitmap");
            // The first image is the large one on top of the feed.
            cache.put(image, decoder.decode(image == 0 ? 160 : 40));
            Trace.endSection();
        }
        write();
    }

    /** The copy on the disk, which is never made: what a thread waits for it. */
    private static void write() {
        try {
            Thread.sleep(1);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    public void shutdown() { pool.shutdown(); }
}
