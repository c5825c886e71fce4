#!/bin/sh
# Runs every fuzz target for the given time, one after the other, because Go fuzzes only
# one target at a time.
#
#   deploy/fuzz.sh 5s
#
# A real failure prints the failing input and writes it to testdata. Before version 1.27,
# Go sometimes also fails with just "context deadline exceeded" when the time is over
# (go.dev/issue/75804). This script ignores that.
set -eu

time=$1
log=$(mktemp)
trap 'rm -f "$log"' EXIT

fuzz() { # file target
	${GO:-go} test -run '^$' -fuzz "^$2\$" -fuzztime "$time" -fuzzminimizetime 1x "${1%/*}"
}

only_out_of_time() {
	grep -q '^ *context deadline exceeded$' "$log" && ! grep -Eq 'Failing input|panic:|\.go:[0-9]+:' "$log"
}

grep -ro --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | sed 's/func //' | sort |
	while IFS=: read -r file target; do
		if fuzz "$file" "$target" >"$log" 2>&1; then
			echo "ok  $target  $(grep -o 'execs: [0-9]*' "$log" | tail -n 1)"
		elif only_out_of_time; then
			echo "ok  $target  (time over while an input was running)"
		else
			cat "$log"
			exit 1
		fi
	done
