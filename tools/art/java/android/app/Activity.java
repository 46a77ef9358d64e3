package android.app;

import android.os.Trace;
import android.view.Choreographer;
import android.view.View;

/** One screen of an app. */
public class Activity {
    private View content;

    public void onCreate() {}

    public void onResume() {}

    /** Called before each frame, counted from 0. */
    public void onBeforeFrame(long number) {}

    /** Lays out what has changed; whether it wants a frame more after this one. */
    public boolean onFrame(long number) { return false; }

    /** The frame that it knows to be late, counted from 0; -1 if there is none. */
    public long lateFrame() { return -1; }

    public final void setContentView(View view) { content = view; }

    public final View getContentView() { return content; }

    public final void reportFullyDrawn() {
        String component = ActivityThread.packageName() + "/" + ActivityThread.packageName() + ".MainActivity";
        Trace.beginSection("reportFullyDrawn() for ComponentInfo{" + component + "}");
        Choreographer.getInstance().drawsFully();
        Trace.endSection();
    }
}
