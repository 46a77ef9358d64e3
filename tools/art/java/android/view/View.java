package android.view;

import java.util.Arrays;

/** Something on the screen, with others inside. */
public class View {
    private final int size;
    private View parent;
    private View[] children = {};
    private int flags, measured, top;
    private boolean isLaidOut;

    public View(int size) {
        this.size = size;
        setFlags(size, 0xff);
    }

    public final void addView(View child) {
        children = Arrays.copyOf(children, children.length + 1);
        children[children.length - 1] = child;
        child.parent = this;
    }

    final void setFlags(int value, int mask) { flags = flags & ~mask | value & mask; }

    /** Has it measured and laid out anew in the next frame, and those around it. */
    public final void requestLayout() {
        for (View view = this; view != null; view = view.parent) view.isLaidOut = false;
    }

    public int measure() {
        if (isLaidOut) return measured;
        int sum = onMeasure();
        for (View child : children) sum += child.measure();
        measured = sum;
        return sum;
    }

    protected int onMeasure() {
        int sum = 0;
        for (int i = 0; i < size; i++) sum = sum * 31 + flags;
        return sum & 0xff;
    }

    public void layout(int from) {
        if (isLaidOut) return;
        top = from;
        for (View child : children) child.layout(top + child.measured);
        isLaidOut = true;
    }

    /** Records the view and those right inside of it; others have a list of their own, which is not recorded anew. */
    public int draw() {
        int sum = top;
        for (View child : children) sum += child.top + child.measured;
        return sum;
    }
}
