package com.example.feed;

import android.app.Application;
import com.example.feed.di.Graph;
import com.example.feed.image.ImageLoader;
import com.example.feed.net.HttpClient;

/** The app: a feed of rows with images. */
public final class FeedApp extends Application {
    static FeedApp instance;

    Graph graph;
    HttpClient client;
    Analytics analytics;
    ImageLoader images;

    @Override
    public void onCreate() {
        instance = this;
        graph = Graph.build();
        client = new HttpClient();
        analytics = new Analytics();
        images = new ImageLoader();
    }
}
