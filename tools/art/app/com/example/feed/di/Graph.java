package com.example.feed.di;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** The objects of an app, each made by reflection when it is wanted first. */
public final class Graph {
    private static final Class<?>[] PARTS = {ArrayList.class, HashMap.class, StringBuilder.class, Object.class};
    private final Map<String, Object> made = new HashMap<>();

    private Graph() {}

    public static Graph build() {
        Graph graph = new Graph();
        List<Provider> providers = new ArrayList<>();
        for (int n = 0; n < 60; n++) providers.add(new Provider("part" + n % 24, PARTS[n % PARTS.length]));
        for (Provider provider : providers) provider.get(graph.made);
        return graph;
    }
}
