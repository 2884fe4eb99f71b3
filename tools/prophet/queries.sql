-- Questions to a trace, for DuckDB. Make the tables once,
--   prophet export app.prophet --parquet app
-- start duckdb in the directory app, and paste what you need. `prophet export --schema` says what each column is.

-- name: views
CREATE OR REPLACE VIEW events AS FROM 'events.parquet';
CREATE OR REPLACE VIEW links AS FROM 'links.parquet';
CREATE OR REPLACE VIEW objects AS FROM 'objects.parquet';
CREATE OR REPLACE VIEW threads AS FROM 'threads.parquet';
CREATE OR REPLACE VIEW processes AS FROM 'processes.parquet';
CREATE OR REPLACE VIEW modules AS FROM 'modules.parquet';
CREATE OR REPLACE VIEW stacks AS FROM 'stacks.parquet';
CREATE OR REPLACE VIEW samples AS FROM 'samples.parquet';
CREATE OR REPLACE VIEW marks AS FROM 'marks.parquet';

-- name: classes
-- Where the time inside of calls goes, by class.
SELECT class, count(*) AS events, sum(duration_ns) / 1e6 AS ms, max(duration_ns) / 1e6 AS longest_ms
FROM events GROUP BY class ORDER BY ms DESC;

-- name: calls
-- The calls that take longest, with the latencies that half, 99% and all of them stay below.
SELECT call, count(*) AS n, sum(duration_ns) / 1e6 AS ms, quantile_cont(duration_ns, 0.5) / 1e3 AS p50_us,
       quantile_cont(duration_ns, 0.99) / 1e3 AS p99_us, max(duration_ns) / 1e3 AS max_us,
       count(*) FILTER (error != '') AS failed
FROM events GROUP BY call ORDER BY ms DESC LIMIT 20;

-- name: locks
-- The locks that threads waited for longest.
SELECT process, object, waits, wait_ns / 1e6 AS wait_ms, wait_max_ns / 1e6 AS longest_ms, place AS taken
FROM objects WHERE waits > 0 ORDER BY wait_ns DESC LIMIT 20;

-- name: holders
-- Who held a lock while others waited for it, and where it had been taken. A wait for a condition, which takes its mutex
-- again at its end, waited for the condition.
SELECT l.object, l.from_thread AS holder, l.held_at, count(*) AS times, sum(e.duration_ns) / 1e6 AS others_waited_ms,
       sum(l.cause_ns - l.held_ns) / 1e6 AS held_ms
FROM links l JOIN events e ON e.thread = l.to_thread AND e.event = l.to_event
WHERE l.kind = 'lock' AND e.object = l.object GROUP BY ALL ORDER BY others_waited_ms DESC LIMIT 20;

-- name: blockers
-- Which thread makes which other wait, over everything that lets another go on.
SELECT l.to_thread AS waiter, l.from_thread AS let_in_by, l.kind, count(*) AS times, sum(e.duration_ns) / 1e6 AS waited_ms
FROM links l JOIN events e ON e.thread = l.to_thread AND e.event = l.to_event
WHERE l.kind != 'start' AND (l.kind != 'lock' OR e.object = l.object) GROUP BY ALL ORDER BY waited_ms DESC LIMIT 20;

-- name: files
-- Files and connections by bytes and time.
SELECT target, count(*) AS calls, sum(bytes_in) AS was_read, sum(bytes_out) AS was_written,
       sum(duration_ns) / 1e6 AS ms, count(*) FILTER (call IN ('fsync', 'fdatasync', 'sync_file_range')) AS syncs
FROM events WHERE target != '' GROUP BY target ORDER BY was_read + was_written DESC, ms DESC LIMIT 20;

-- name: failures
-- Calls that fail, and on what.
SELECT call, error, count(*) AS n, max(path) AS for_example
FROM events WHERE error != '' GROUP BY ALL ORDER BY n DESC LIMIT 20;

-- name: sites
-- The call sites that spend most time inside of calls.
SELECT call_site, call, count(*) AS n, sum(duration_ns) / 1e6 AS ms
FROM events WHERE call_site != '' GROUP BY ALL ORDER BY ms DESC LIMIT 20;

-- name: slowest
-- The slowest calls, one by one.
SELECT begin_ns / 1e9 AS at_s, thread, call, object, target, duration_ns / 1e6 AS ms, arguments, call_site
FROM events ORDER BY duration_ns DESC LIMIT 20;

-- name: timeline
-- How busy the run was, in a hundred steps: events, time inside of calls, bytes.
WITH span AS (SELECT greatest(max(begin_ns), 1) AS last FROM events)
SELECT floor(begin_ns * 100 / (last + 1)) AS step, min(begin_ns) / 1e9 AS from_s, count(*) AS events, sum(duration_ns) / 1e6 AS in_calls_ms,
       sum(bytes_in) + sum(bytes_out) AS bytes
FROM events, span GROUP BY step ORDER BY step;

-- name: threads
-- Threads: how long each lived, computed and was inside of calls.
SELECT thread, name, (end_ns - begin_ns) / 1e6 AS lived_ms, cpu_ns / 1e6 AS cpu_ms, call_ns / 1e6 AS in_calls_ms, events
FROM threads ORDER BY lived_ms DESC LIMIT 50;

-- name: tree
-- The processes as a tree.
WITH RECURSIVE tree AS (
  SELECT process, command, exit, status, begin_ns, end_ns, process AS path, 0 AS depth FROM processes WHERE parent = ''
  UNION ALL
  SELECT p.process, p.command, p.exit, p.status, p.begin_ns, p.end_ns, t.path || ' ' || p.process, t.depth + 1
  FROM processes p JOIN tree t ON p.parent = t.process)
SELECT repeat('  ', depth) || process AS process, command, exit, status, (end_ns - begin_ns) / 1e6 AS ms FROM tree ORDER BY path;

-- name: chain
-- How the last thread to end came to go on, step by step back through what it had waited for.
WITH RECURSIVE chain AS (
  SELECT l.*, 0 AS step FROM links l WHERE l.kind != 'start' AND l.effect_ns = (SELECT max(effect_ns) FROM links WHERE kind != 'start')
  UNION ALL
  SELECT n.*, c.step + 1 FROM chain c, LATERAL (
    SELECT l.* FROM links l WHERE l.to_thread = c.from_thread AND l.kind != 'start' AND l.effect_ns < c.cause_ns ORDER BY l.effect_ns DESC LIMIT 1) n
  WHERE c.step < 50)
SELECT step, kind, from_thread, to_thread, cause_ns / 1e9 AS at_s, (effect_ns - cause_ns) / 1e3 AS us, object FROM chain ORDER BY step;

-- name: hot
-- Where CPU time was used, where samples were taken, by the innermost frame.
SELECT s.site, count(*) AS samples
FROM samples x JOIN stacks s ON s.stack = x.stack AND s.frame = 0 GROUP BY s.site ORDER BY samples DESC LIMIT 20;

-- name: marked
-- How long what the program marked took.
SELECT b.name, count(*) AS n, sum(e.at_ns - b.at_ns) / 1e6 AS ms
FROM marks b ASOF JOIN marks e ON b.thread = e.thread AND b.name = e.name AND b.at_ns <= e.at_ns
WHERE b.kind = 'begin' AND e.kind = 'end' GROUP BY b.name ORDER BY ms DESC;
