package android.view;

import android.os.SystemClock;
import android.os.Trace;
import com.android.internal.os.ZygoteInit;

/** Draws what the main thread has laid out. */
final class RenderThread extends Thread {
    private final long[] ends;
    private int drawn;
    private String wanted;
    private boolean isSynced, quits;
    private int work;

    RenderThread(int frames) {
        super("RenderThread");
        ends = new long[frames];
        start();
    }

    /** Gives it a frame, and waits until it has taken what it needs of the views. */
    synchronized void syncAndDrawFrame(String name, int work) throws InterruptedException {
        while (wanted != null) wait();
        wanted = name;
        this.work = work;
        isSynced = false;
        notifyAll();
        while (!isSynced) wait();
    }

    /** Waits for the last frame; the moments at which each frame was drawn, in ns. */
    long[] finish() throws InterruptedException {
        synchronized (this) {
            quits = true;
            notifyAll();
        }
        join();
        return ends;
    }

    private synchronized String nextFrame() throws InterruptedException {
        while (wanted == null && !quits) wait();
        return wanted;
    }

    private synchronized void synced() {
        isSynced = true;
        wanted = null;
        notifyAll();
    }

    @Override
    public void run() {
        try {
            for (String name; (name = nextFrame()) != null; ) drawFrame(name);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private void drawFrame(String name) {
        int work = this.work;
        Trace.beginSection(name);
        Trace.beginSection("syncFrameState");
        compute(work / 8);
        Trace.endSection();
        synced();
        Trace.beginSection("flush commands");
        compute(work);
        Trace.endSection();
        Trace.beginSection("eglSwapBuffersWithDamageKHR");
        compute(work / 8);
        Trace.endSection();
        Trace.endSection();
        ends[drawn++] = SystemClock.elapsedRealtimeNanos();
        if (drawn == 1) ZygoteInit.say("drawn");
    }

    private static int compute(int steps) {
        int sum = steps;
        for (int i = 0; i < steps; i++) sum = sum * 31 + i;
        return sum;
    }
}
