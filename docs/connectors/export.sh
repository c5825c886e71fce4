# Downloads all of the store's subscriptions at BASE into export.ndjson, with the API token in TOKEN. Run it again to
# append what has changed since: the last line of each id counts. Needs curl and jq.
set -u
touch export.ndjson
while :; do
  after=$(grep '^{"next":' export.ndjson | tail -n 1 | jq -r .next)
  curl -sSf --retry 5 --compressed -H "Authorization: Bearer $TOKEN" -H 'Accept: application/x-ndjson' \
    "$BASE/subscriptions/changes${after:+?after=$after}" >part.ndjson
  result=$?
  whole=$(grep -n '^{"next":' part.ndjson | tail -n 1 | cut -d : -f 1)
  head -n "${whole:-0}" part.ndjson >>export.ndjson
  case $result in
    0) exit 0 ;;
    22) exit 22 ;; # an HTTP error. After a 410, delete export.ndjson and start again
  esac
  sleep 1
done
