-- Traces that lack something: events that were lost, damaged places, ends without a begin.
SELECT trace_id, name, device, events, lost_events,
       CASE WHEN events + lost_events > 0 THEN 100.0 * lost_events / (events + lost_events) END AS lost_percent,
       loss_gaps, damaged_places, unmatched_ends, damage
FROM trace
WHERE lost_events > 0 OR loss_gaps > 0 OR damaged_places > 0 OR unmatched_ends > 0
ORDER BY lost_events DESC, trace_id
