#!/bin/sh
# Prints a pattern for the tests of a package's folders that make test leaves out or makes shorter: those that call
# ephemeral.Slow or testing.Short, or a function of the tests that does.
#
#	go test ./subscriptions -run "$(sh deploy/slow.sh subscriptions)"
set -eu
direct='ephemeral\.Slow|testing\.Short'
calls=$direct
while :; do
	found=$(cd "$(dirname "$0")/.." && find "$@" -name '*_test.go' -exec awk -v "calls=[^a-zA-Z.](${calls})[(]" '
		/^func / { name = $0; sub(/^func (\([^)]*\) )?/, "", name); sub(/[^a-zA-Z0-9_].*/, "", name); next }
		$0 ~ calls { print name }' {} + | sort -u)
	more=$direct
	for helper in $(echo "$found" | grep -v '^Test'); do more="$more|$helper"; done
	[ "$more" != "$calls" ] || break
	calls=$more
done
echo "^($(echo "$found" | grep '^Test' | tr '\n' '|' | sed 's/|$//'))\$"
