-- How much people write to each number, counted by whoever applies the webhooks, read by whoever owns the number: what
-- comes in counts against the same limit of the provider as what goes out.
CREATE TABLE inbound_count (
  number text PRIMARY KEY,  -- Meta's phone number id
  n bigint NOT NULL         -- messages counted so far; its growth is what matters
) WITH (fillfactor = 50);
