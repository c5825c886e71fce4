#!/bin/sh
# Runs every fuzz target for the given time, one after the other, because Go fuzzes only
# one target at a time. Prints a line for each target, and the totals.
#
#   deploy/fuzz.sh 5s
#
# If a target fails, Go prints the failing input and writes it to testdata. The other targets
# still run. Before version 1.27, Go sometimes fails with only "context deadline exceeded" when
# the time is over (go.dev/issue/75804). This script ignores that.
set -eu

time=$1
go=${GO:-go}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
log=$dir/log
cache=$($go env GOCACHE)/fuzz

# Compiles the tests of a package once for all of its targets. Only code that reads clients'
# input gets the counters that guide the fuzzer. `go test -fuzz` adds counters to all code, also
# to the checks of the responses and to the HTTP client of the tests. That misleads the fuzzer,
# makes each input take ten times as long, and compiles all dependencies again.
compile() { # package binary
	set -- -o "$2" "$1"
	for counted in commerce github.com/gin-gonic github.com/go-json-experiment github.com/golang-jwt github.com/MicahParks; do
		set -- "-gcflags=$counted/...=-d=libfuzzer" "$@"
	done
	$go test -c "$@"
}

# Fuzzes a target. Sets result to ok or FAIL, and count to the number of executions. count is
# empty if the time was over before the first execution.
fuzz() { # package binary target time
	result=ok
	(cd "$1" && "$2" -test.run '^$' -test.fuzz "^$3\$" -test.fuzztime "$4" -test.fuzzminimizetime 1x \
		-test.paniconexit0 -test.fuzzcachedir "$cache/commerce/$1") >"$log" 2>&1 || only_out_of_time || result=FAIL
	count=$(sed -n 's/.* execs: \([0-9]*\).*/\1/p' "$log" | tail -n 1)
}

only_out_of_time() {
	grep -q '^ *context deadline exceeded$' "$log" && ! grep -Eq 'Failing input|panic:|\.go:[0-9]+:' "$log"
}

targets=0 executions=0 failures=0
for found in $(grep -ro --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | sed 's|^\./||; s/func //' | sort); do
	package=${found%/*} target=${found##*:}
	binary=$dir/$(echo "$package" | tr / _)
	[ -e "$binary" ] || compile "./$package" "$binary"
	fuzz "$package" "$binary" "$target" "$time"
	[ -n "$count" ] || fuzz "$package" "$binary" "$target" 1m # a busy machine needs longer to start the servers
	[ -n "$count" ] || result=FAIL
	echo "$result  $package $target: ${count:=0} executions"
	[ $result = ok ] || {
		cat "$log"
		failures=$((failures + 1))
	}
	targets=$((targets + 1)) executions=$((executions + count))
done
echo "targets: $targets, executions: $executions, failures: $failures"
[ $targets -gt 0 ] && [ $failures = 0 ]
