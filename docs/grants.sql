-- Two roles: `tidegate_owner` migrates, `tidegate_engine` runs everything else. As a superuser, once:
--   CREATE ROLE tidegate_owner LOGIN; CREATE ROLE tidegate_engine LOGIN; CREATE DATABASE tidegate OWNER tidegate_owner;
-- Then `tidegate migrate` and this file, both as tidegate_owner, again after every migration; it may be run at any time.
GRANT USAGE ON SCHEMA public TO tidegate_engine;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO tidegate_engine;
GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO tidegate_engine;
-- What a migration did is for its owner alone to write.
REVOKE INSERT, UPDATE, DELETE ON schema_migration FROM tidegate_engine;
-- Webhook bodies are trimmed by the day, by emptying a whole table.
GRANT TRUNCATE ON inbox_0, inbox_1, inbox_2, inbox_3, inbox_4, inbox_5, inbox_6, inbox_7, inbox_8 TO tidegate_engine;
-- Imports stage their rows in temporary tables. (Every role may, unless it was taken from PUBLIC.)
DO $$ BEGIN EXECUTE format('GRANT TEMPORARY ON DATABASE %I TO tidegate_engine', current_database()); END $$;
-- A day's partition can only be made by the owner of the table. With this the engine's standing job makes them ahead
-- in the owner's name; the function takes a number of days, and nothing of it can be steered from outside.
ALTER FUNCTION ensure_try_partitions(int) SECURITY DEFINER SET search_path = public, pg_temp;
REVOKE EXECUTE ON FUNCTION ensure_try_partitions(int) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION ensure_try_partitions(int) TO tidegate_engine;
-- And what it makes is the engine's to use.
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO tidegate_engine;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT USAGE, SELECT ON SEQUENCES TO tidegate_engine;
