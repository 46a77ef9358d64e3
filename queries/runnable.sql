-- How long the main thread of a launched app was runnable and had no CPU during its launch, ms.
WITH waited AS (
  SELECT launch.trace_id, launch.app, launch.dur AS launch_dur,
         sum(least(state.ts + state.dur, launch.ts + launch.dur) - greatest(state.ts, launch.ts)) AS runnable_ns
  FROM launch
  JOIN thread_state AS state ON state.trace_id = launch.trace_id AND state.utid = launch.utid
  WHERE state.state LIKE 'Runnable%'
    AND state.ts < launch.ts + launch.dur AND state.ts + state.dur > launch.ts
  GROUP BY launch.trace_id, launch.app, launch.dur
)
SELECT trace.trace_id, trace.name, waited.app,
       waited.launch_dur / 1e6 AS launch_ms,
       waited.runnable_ns / 1e6 AS runnable_ms,
       100.0 * waited.runnable_ns / waited.launch_dur AS runnable_percent
FROM waited JOIN trace ON trace.trace_id = waited.trace_id
ORDER BY waited.runnable_ns DESC, trace.trace_id
LIMIT 40
