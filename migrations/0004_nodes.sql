-- The nodes that are alive, so that numbers can be spread over them. A hint for balance and for screens: what a node
-- may do is decided by its leases alone.
CREATE TABLE node (
  id uuid PRIMARY KEY,                     -- random, new at each start
  name text NOT NULL,                      -- two nodes by the same name are two nodes
  host text NOT NULL,
  pid int NOT NULL,
  advertise text,
  started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  draining boolean NOT NULL DEFAULT false,
  snapshot bytea,                          -- what its screen would show, for `tidegate attach`
  snapshot_at timestamptz
);

-- Standing jobs run once in the cluster: whoever holds the row does the work. They are safe to run twice, too.
CREATE TABLE job_lease (
  name text PRIMARY KEY,
  owner uuid NOT NULL,
  until timestamptz NOT NULL
);
