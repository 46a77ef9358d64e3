package java.lang;

import dalvik.annotation.optimization.FastNative;
import java.net.URL;
import java.util.Collections;
import java.util.List;

/** What the boot class loader asks of the runtime. Its jar holds classes only: there are no resources. */
class VMClassLoader {
    private VMClassLoader() {}

    static URL getResource(String name) { return null; }

    static List<URL> getResources(String name) { return Collections.emptyList(); }

    @FastNative
    native static Class findLoadedClass(ClassLoader loader, String name);

    native private static String[] getBootClassPathEntries();
}
