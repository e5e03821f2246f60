-- When a campaign may send, to whom first, and how many people an account may reach in a day.

ALTER TABLE campaign
  ADD COLUMN start_at timestamptz,         -- state scheduled until then; a standing job starts it
  ADD COLUMN quiet_from time,              -- nothing leaves from then to quiet_to, by the clocks of `zone`
  ADD COLUMN quiet_to time,
  ADD COLUMN zone text,                    -- an IANA zone, or `recipient`: each lane's own
  ADD COLUMN retry_marketing_limit boolean NOT NULL DEFAULT false,
  ADD COLUMN canary_rows int CHECK (canary_rows > 0),        -- so many first, and then the rest
  ADD COLUMN canary_share double precision CHECK (canary_share > 0 AND canary_share < 1),
  ADD COLUMN canary_max_failed double precision NOT NULL DEFAULT 0.1 CHECK (canary_max_failed BETWEEN 0 AND 1),
  ADD COLUMN canary_wait interval NOT NULL DEFAULT '1 minute',  -- after the last of them left, for what statuses tell
  ADD COLUMN canary text CHECK (canary IN ('sending', 'passed', 'failed')),
  ADD CONSTRAINT campaign_quiet_is_whole CHECK ((quiet_from IS NULL) = (quiet_to IS NULL)
                                            AND (quiet_from IS NULL) = (zone IS NULL));

-- Kept ahead of time by a standing job, so that the mark alone, by the database's clock, ends the day to the second.
ALTER TABLE lane ADD COLUMN closes_at timestamptz NOT NULL DEFAULT 'infinity';

-- `canary`: the first rows of an audience, beside the lane that they belong to; theirs is not held.
ALTER TABLE lane DROP CONSTRAINT lane_aside_is_held;
ALTER TABLE lane ADD CONSTRAINT lane_aside_is_held CHECK (aside IN ('', 'canary') OR hold IS NOT NULL);

-- How many different people an account may reach within any 24 hours, where somebody has said so.
CREATE TABLE account (
  account text PRIMARY KEY,                -- WABA id
  messaging_limit int NOT NULL CHECK (messaging_limit > 0)
);

-- The last template message to each person from such an account; kept for 24 hours.
CREATE TABLE contact (
  account text NOT NULL,
  phone text NOT NULL,
  at timestamptz NOT NULL,
  PRIMARY KEY (account, phone)
);
CREATE INDEX contact_at ON contact (account, at);
