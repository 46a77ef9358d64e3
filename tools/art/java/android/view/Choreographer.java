package android.view;

import android.app.Activity;
import android.os.Handler;
import android.os.Looper;
import android.os.Trace;

/** Draws frames, 60 a second, as long as the activity wants one more. */
public final class Choreographer {
    /** The number of the first frame, as they are counted since the system was started. */
    public static final long FIRST_FRAME = 4711;
    private static final long FRAME_NANOS = 16666667;
    private static Choreographer instance;

    private final Handler handler = new Handler(Looper.getMainLooper());
    private final Activity activity;
    private final RenderThread renderer;
    private final boolean numbered;
    private final long begun = System.nanoTime();
    private long frames;
    private long fullyDrawn = -1;

    public Choreographer(Activity activity, int frames, boolean numbered) {
        this.activity = activity;
        this.numbered = numbered;
        renderer = new RenderThread(frames);
        instance = this;
    }

    public static Choreographer getInstance() { return instance; }

    public void scheduleFrame() { handler.postAtNanos(this::doFrame, begun + FRAME_NANOS * frames); }

    /** The next frame shows all that there is. */
    public void drawsFully() { fullyDrawn = frames; }

    /** The number of the frame, from 0, that was the first to show all; -1 if none was. */
    public long fullyDrawn() { return fullyDrawn; }

    /** The moments at which each frame was drawn, in ns. */
    public long[] finish() throws InterruptedException { return renderer.finish(); }

    void doFrame() {
        activity.onBeforeFrame(frames);
        String number = numbered ? " " + (FIRST_FRAME + frames) : "";
        Trace.beginSection("Choreographer#doFrame" + number);
        Trace.beginSection("traversal");
        boolean more = performTraversals();
        Trace.endSection();
        try {
            renderer.syncAndDrawFrame((numbered ? "DrawFrames" : "DrawFrame") + number, frames == 0 ? 60000 : 15000);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
        Trace.endSection();
        frames++;
        if (more) {
            scheduleFrame();
        } else {
            Looper.getMainLooper().quit();
        }
    }

    private boolean performTraversals() {
        View content = activity.getContentView();
        Trace.beginSection("measure");
        content.measure();
        Trace.endSection();
        Trace.beginSection("layout");
        content.layout(0);
        boolean more = activity.onFrame(frames);
        Trace.endSection();
        Trace.beginSection("draw");
        content.draw();
        Trace.endSection();
        return more;
    }
}
