-- What stops wider than a row, and who must not be written to.

-- A breaker stands between a scope and its sends. Kept when closed: reset_at says from when on evidence counts again,
-- so that a redelivered old refusal never holds a mended account.
CREATE TABLE breaker (
  breaker_id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  scope text NOT NULL CHECK (scope IN ('number', 'account', 'credential', 'template', 'country')),
  key text NOT NULL,                       -- number: Meta's id; account: WABA id; credential: the token's reference;
                                           -- template: account/name/language; country: account/alpha-2
  state text NOT NULL CHECK (state IN ('closed', 'waiting', 'held')),
  code int,
  reason text,
  tripped_at timestamptz,
  until timestamptz,                       -- waiting: when it closes by itself; held: when it is probed, if it heals
  reset_at timestamptz NOT NULL DEFAULT '-infinity',
  probe_token uuid,                        -- one node probes with one request at a time
  probe_until timestamptz,
  UNIQUE (scope, key),
  CHECK (state <> 'waiting' OR until IS NOT NULL)
);

-- Which campaigns the engine held, and why, so that lifting the cause resumes exactly those.
ALTER TABLE campaign ADD COLUMN held_by text;  -- stops, failures, budget; NULL: a person

CREATE TABLE suppression (
  phone text NOT NULL,                     -- E.164 with +
  scope text NOT NULL CHECK (scope IN ('marketing', 'all')),
  source text NOT NULL CHECK (source IN ('person', 'import', 'stop', 'user_preferences', '131050')),
  detail text,                             -- the word that was written, the file, who
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (phone, scope)
);

-- Inbound messages and management events come at least once; remembered for eight days by a standing job.
CREATE TABLE webhook_once (
  key text PRIMARY KEY,                    -- wamid of an inbound message, or a hash of a management event
  at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX webhook_once_at ON webhook_once (at);

-- What the provider said of numbers, accounts and templates, newest last; shown, and acted on where it must be.
CREATE TABLE provider_event (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  field text NOT NULL,                     -- message_template_status_update, account_update, …
  target text NOT NULL,                    -- number, account or template
  event text NOT NULL,
  detail text
);

-- Bodies to be posted on to TIDEGATE_FORWARD_URL; a queue of its own, that never slows the inbox.
CREATE TABLE forward_work (
  id bigint PRIMARY KEY,                   -- of the inbox
  slot smallint NOT NULL,
  signature text NOT NULL,                 -- as it came
  attempts int NOT NULL DEFAULT 0,
  next_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX forward_work_next ON forward_work (next_at);
