-- What a campaign says beyond its body's columns, and what an import leaves to be known before a start.

-- The template's parameters: header, body, buttons; each from a column or a constant. engine/domain/content.py
-- draws the shape. NULL: only the columns in `body`, in order.
ALTER TABLE campaign ADD COLUMN content jsonb;

-- Rows are checked against it when they are imported, so it may never change behind them.
CREATE FUNCTION keep_content() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.content IS DISTINCT FROM OLD.content THEN
    RAISE EXCEPTION 'the content of campaign % was frozen when it was created', OLD.name
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER campaign_keeps_content BEFORE UPDATE OF content ON campaign
  FOR EACH ROW EXECUTE FUNCTION keep_content();

-- Rows that wait for a person's word stand in a lane of their own beside the one that they would belong to. It is
-- always held, so that no claim takes them by accident; a release moves the rows and leaves the lane held.
ALTER TABLE lane ADD COLUMN aside text NOT NULL DEFAULT '';  -- twins: another spelling of a number in the campaign
ALTER TABLE lane ADD CONSTRAINT lane_aside_is_held CHECK (aside = '' OR hold IS NOT NULL);
ALTER TABLE lane ADD CONSTRAINT lane_key UNIQUE (campaign_id, country, zone, deadline, aside);
ALTER TABLE lane DROP CONSTRAINT lane_campaign_id_country_zone_deadline_key;

-- One row for each import that was kept. Counts are lines of its file.
CREATE TABLE audience_import (
  import_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  campaign_id int NOT NULL REFERENCES campaign ON DELETE CASCADE,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  author text NOT NULL,
  file text NOT NULL,                      -- its name alone
  lines int NOT NULL,
  taken int NOT NULL,                      -- of these `aside` wait for a person
  aside int NOT NULL,
  refused int NOT NULL,
  folded int NOT NULL,
  already int NOT NULL,
  blank int NOT NULL,
  doubt text,                              -- why a person should look before the campaign starts
  confirmed_at timestamptz,
  confirmed_by text,
  CHECK ((confirmed_at IS NULL) = (confirmed_by IS NULL))
);
CREATE INDEX audience_import_campaign ON audience_import (campaign_id, import_id);
