package android.view;

import java.util.ArrayList;
import java.util.List;

/** Something on the screen, with others inside. */
public class View {
    private final List<View> children = new ArrayList<>();
    private final int size;
    private int flags, measured, top;

    public View(int size) {
        this.size = size;
        setFlags(size, 0xff);
    }

    public final void addView(View child) { children.add(child); }

    public final List<View> children() { return children; }

    final void setFlags(int value, int mask) {
        for (int bit = 0; bit < 32; bit++) {
            if ((mask >> bit & 1) != 0) flags = flags & ~(1 << bit) | value & 1 << bit;
        }
    }

    public int measure() {
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
        top = from;
        for (View child : children) child.layout(top + child.measured);
    }

    public int draw() {
        int sum = top;
        for (View child : children) sum += child.draw();
        return sum;
    }
}
