package libcore.util;

/** Half-precision numbers: the runtime looks these methods up when it starts. Nothing here calls them. */
public final class FP16 {
    private FP16() {}

    public static float toFloat(short half) {
        int sign = (half & 0x8000) << 16, exponent = half >> 10 & 0x1f, fraction = half & 0x3ff;
        if (exponent == 0x1f) return Float.intBitsToFloat(sign | 0x7f800000 | fraction << 13);
        float magnitude = exponent == 0 ? fraction / 16777216f : Float.intBitsToFloat(exponent + 112 << 23 | fraction << 13);
        return sign == 0 ? magnitude : -magnitude;
    }

    public static short toHalf(float value) {
        int bits = Float.floatToRawIntBits(value), sign = bits >>> 16 & 0x8000;
        float magnitude = Math.abs(value);
        if (value != value) return (short) (sign | 0x7e00);
        if (magnitude >= 65520f) return (short) (sign | 0x7c00);
        if (magnitude < 6.1035156e-5f) return (short) (sign | (int) Math.rint(magnitude * 16777216.0));
        int scaled = bits & 0x7fffffff;
        int rounded = scaled + 0xfff + (scaled >> 13 & 1);
        return (short) (sign | (rounded >> 13) - (112 << 10));
    }

    public static short ceil(short half) { return toHalf((float) Math.ceil(toFloat(half))); }

    public static short floor(short half) { return toHalf((float) Math.floor(toFloat(half))); }

    public static short rint(short half) { return toHalf((float) Math.rint(toFloat(half))); }

    public static boolean greater(short a, short b) { return toFloat(a) > toFloat(b); }

    public static boolean greaterEquals(short a, short b) { return toFloat(a) >= toFloat(b); }

    public static boolean less(short a, short b) { return toFloat(a) < toFloat(b); }

    public static boolean lessEquals(short a, short b) { return toFloat(a) <= toFloat(b); }
}
