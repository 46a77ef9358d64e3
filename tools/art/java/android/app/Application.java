package android.app;

/** The object of an app that lives as long as its process. */
public class Application {
    public void onCreate() {}
}
