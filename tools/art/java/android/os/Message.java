package android.os;

/** One thing that a looper does, not before its time. */
final class Message {
    final Runnable callback;
    final long when;
    Message next;

    Message(Runnable callback, long when) {
        this.callback = callback;
        this.when = when;
    }
}
