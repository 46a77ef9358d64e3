package com.example.feed;

import android.os.Trace;
import com.example.feed.image.ImageCache;
import com.example.feed.image.PngDecoder;

/** Fills the rows of the feed. */
final class FeedAdapter {
    private final ImageCache images;

    FeedAdapter(ImageCache images) { this.images = images; }

    String onBindViewHolder(int row) {
        Trace.beginSection("RV OnBindView type=0x0");
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < 12; i++) text.append(row * 31 + i).append(' ');
        String bound = text + Dates.relative(row * 90061L);
        if (row == 0) images.get(0);
        Trace.endSection();
        return bound;
    }

    /** A row whose image nobody has decoded before. */
    byte[] bindLate() { return new PngDecoder().decode(150); }
}
