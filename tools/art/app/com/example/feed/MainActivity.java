package com.example.feed;

import android.app.Activity;
import android.app.ActivityThread;
import android.os.Trace;
import android.view.View;
import java.util.ArrayList;
import java.util.List;

/**
 * The first screen. Half of its launch is the settings, which it reads and parses on the main thread; then the first
 * row waits for a monitor that a worker holds while it decodes an image. Later one frame decodes an image on the main
 * thread, and is late.
 */
public final class MainActivity extends Activity {
    private static final int VIEWS = 48, ROWS = 8, IMAGES = 12, FULLY_DRAWN_AT = 24, LATE_FRAME = 40;

    private final SettingsStore settings = new SettingsStore();
    private final List<String> rows = new ArrayList<>();
    private final int frames = Integer.parseInt(ActivityThread.option("frames"));
    private FeedAdapter adapter;

    @Override
    public void onCreate() {
        setContentView(inflate());
        settings.load();
        int more = Integer.parseInt(ActivityThread.option("more_calls"));
        for (int i = 0; i < more; i++) rows.size();
    }

    private static View inflate() {
        Trace.beginSection("inflate");
        View content = new View(8);
        for (int i = 0; i < VIEWS; i++) content.addView(createView(i));
        Trace.endSection();
        return content;
    }

    private static View createView(int number) {
        View view = new View(40 + number % 4 * 20);
        for (int i = 0; i < number % 5; i++) view.addView(new View(10));
        return view;
    }

    @Override
    public void onResume() {
        for (int image = 0; image < IMAGES; image++) FeedApp.instance.images.request(image);
        FeedApp.instance.analytics.track("resume");
        adapter = new FeedAdapter(FeedApp.instance.images.cache);
    }

    @Override
    public void onBeforeFrame(long number) {
        if (number == FULLY_DRAWN_AT) reportFullyDrawn();
    }

    @Override
    public boolean onFrame(long number) {
        if (number == 0) {
            for (int row = 0; row < ROWS; row++) rows.add(adapter.onBindViewHolder(row));
        }
        if (number == LATE_FRAME) adapter.bindLate();
        boolean more = number + 1 < frames;
        if (!more) FeedApp.instance.images.shutdown();
        return more;
    }

    @Override
    public long lateFrame() { return frames > LATE_FRAME ? LATE_FRAME : -1; }
}
