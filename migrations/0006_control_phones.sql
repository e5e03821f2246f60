-- Control phones: people of the house, who get a campaign's message before its audience, and again while it runs.
-- Each round of them is a small campaign of its own beside the one that it controls. So a control message passes every
-- gate that any message passes, a person is still in a campaign once, and the audience's books hold the audience alone.
ALTER TABLE campaign
  ADD COLUMN control_phones text[] NOT NULL DEFAULT '{}',        -- E.164 with +
  ADD COLUMN control_values jsonb NOT NULL DEFAULT '{}',         -- what stands for the template's columns
  ADD COLUMN control_every interval CHECK (control_every > interval '0'),  -- NULL: once, at the start
  ADD COLUMN control text CHECK (control IN ('first', 'passed')),  -- first: the audience waits for the first round
  ADD COLUMN control_of int REFERENCES campaign ON DELETE CASCADE,  -- this is a round of that campaign's control phones
  ADD COLUMN control_round int,
  ADD CONSTRAINT campaign_round_is_whole CHECK ((control_of IS NULL) = (control_round IS NULL)),
  ADD CONSTRAINT campaign_round_once UNIQUE (control_of, control_round);
