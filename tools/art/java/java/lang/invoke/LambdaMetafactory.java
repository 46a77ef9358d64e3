package java.lang.invoke;

/** What compilers want to see where there are lambda expressions: those have classes of their own before they run. */
public final class LambdaMetafactory {
    private LambdaMetafactory() {}

    public static CallSite metafactory(MethodHandles.Lookup caller, String name, MethodType factory, MethodType signature, MethodHandle body, MethodType instantiated) {
        throw new UnsupportedOperationException(name);
    }

    public static CallSite altMetafactory(MethodHandles.Lookup caller, String name, MethodType factory, Object... arguments) {
        throw new UnsupportedOperationException(name);
    }
}
