package libcore.icu;

import java.nio.charset.Charset;
import java.nio.charset.PlainCharset;

/** Finds a charset by its name. */
public final class NativeConverter {
    private NativeConverter() {}

    public static Charset charsetForName(String name) { return PlainCharset.named(name); }

    public static String[] getAvailableCharsetNames() { return PlainCharset.names(); }

    public static boolean contains(String outer, String inner) {
        return outer.startsWith("UTF") || inner.equals("US-ASCII") || outer.equals(inner);
    }
}
