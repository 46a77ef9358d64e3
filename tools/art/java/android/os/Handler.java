package android.os;

/** Gives a looper something to do. */
public final class Handler {
    private final Looper looper;

    public Handler(Looper looper) { this.looper = looper; }

    public void post(Runnable callback) { postAtNanos(callback, 0); }

    /** At this moment of CLOCK_MONOTONIC, or later. */
    public void postAtNanos(Runnable callback, long when) { looper.queue.enqueueMessage(new Message(callback, when)); }

    static void dispatchMessage(Message message) { message.callback.run(); }
}
