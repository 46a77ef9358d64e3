package android.os;

/** Runs a thread's messages, one after the other. */
public final class Looper {
    private static final ThreadLocal<Looper> OF_THREAD = new ThreadLocal<>();
    private static Looper main;

    final MessageQueue queue = new MessageQueue();

    private Looper() {}

    public static void prepare() { OF_THREAD.set(new Looper()); }

    public static void prepareMainLooper() {
        prepare();
        main = myLooper();
    }

    public static Looper getMainLooper() { return main; }

    public static Looper myLooper() { return OF_THREAD.get(); }

    public static void loop() {
        Looper looper = myLooper();
        try {
            for (Message message; (message = looper.queue.next()) != null; ) Handler.dispatchMessage(message);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    public void quit() { queue.quit(); }
}
