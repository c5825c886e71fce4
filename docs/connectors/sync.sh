# Copies the store's subscriptions at BASE into copy.db, with the API token in TOKEN. Run it again to apply what has
# changed since. Needs curl, jq, and sqlite3 3.38 or later.
set -eu
sqlite3 copy.db 'CREATE TABLE IF NOT EXISTS subscriptions (id INTEGER PRIMARY KEY, copy INTEGER, body TEXT);
  CREATE TABLE IF NOT EXISTS sync (copy INTEGER, after TEXT);
  INSERT INTO sync SELECT 1, NULL WHERE NOT EXISTS (SELECT * FROM sync)'
more=true
while [ "$more" = true ]; do
  after=$(sqlite3 copy.db 'SELECT after FROM sync')
  status=$(curl -sS --retry 5 --compressed -o page.json -w '%{http_code}' -H "Authorization: Bearer $TOKEN" \
    "$BASE/subscriptions/changes?limit=1000${after:+&after=$after}")
  case $status in
    200) ;;
    410) sqlite3 copy.db 'UPDATE sync SET copy = copy + 1, after = NULL'; continue ;; # start another copy
    *) cat page.json >&2; exit 1 ;;
  esac
  sqlite3 -bail copy.db <<'SQL'
    CREATE TEMP TABLE page AS SELECT CAST(readfile('page.json') AS TEXT) ->> '$.data' AS data;
    BEGIN;
    DELETE FROM subscriptions WHERE id IN (SELECT value ->> 'id' FROM page, json_each(data, '$.deleted'));
    INSERT OR REPLACE INTO subscriptions SELECT value ->> 'id', copy, value FROM sync, page, json_each(data, '$.data');
    DELETE FROM subscriptions WHERE copy < (SELECT copy FROM sync) AND (SELECT data ->> 'has_more' = 0 FROM page);
    UPDATE sync SET after = (SELECT data ->> 'next' FROM page);
    COMMIT;
SQL
  more=$(jq .data.has_more page.json)
done
