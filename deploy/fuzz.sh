#!/bin/sh
# Runs every fuzz target for the given time, with one process each and as many targets at once
# as there are CPUs. Prints a line for each target, and the totals.
#
#   deploy/fuzz.sh 5s
#   deploy/fuzz.sh 10m 'FuzzRequest|FuzzRawRequest'   # only the targets whose names match
#
# If a target fails, Go prints the failing input and writes it to testdata. The other targets
# still run. Before version 1.27, Go sometimes fails with only "context deadline exceeded" when
# the time is over (go.dev/issue/75804). This script ignores that.
set -eu

time=$1
names=${2:-.}
go=${GO:-go}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' HUP INT TERM # some shells run no EXIT trap when a signal ends them
cache=$($go env GOCACHE)/fuzz
cpus=$(getconf _NPROCESSORS_ONLN)

binary() { # package
	echo "$dir/$(echo "$1" | tr / _)"
}

# Compiles the tests of a package once for all of its targets. Only code that reads clients'
# input gets the counters that guide the fuzzer. `go test -fuzz` adds counters to all code, also
# to the checks of the responses and to the HTTP client of the tests. That misleads the fuzzer,
# makes each input take ten times as long, and compiles all dependencies again.
compile() { # package
	set -- -o "$(binary "$1")" "./$1"
	for counted in commerce github.com/gin-gonic github.com/go-json-experiment github.com/golang-jwt github.com/MicahParks; do
		set -- "-gcflags=$counted/...=-d=libfuzzer" "$@"
	done
	$go test -c "$@"
}

# Fuzzes a target. Sets result to ok or FAIL, and count to the number of executions. count is
# empty if the time was over before the first execution.
fuzz() { # package target log time
	result=ok
	(cd "$1" && "$(binary "$1")" -test.run '^$' -test.fuzz "^$2\$" -test.fuzztime "$4" -test.parallel 1 -test.fuzzminimizetime 1x \
		-test.paniconexit0 -test.fuzzcachedir "$cache/commerce/$1") >"$3" 2>&1 || only_out_of_time "$3" || result=FAIL
	count=$(sed -n 's/.* execs: \([0-9]*\).*/\1/p' "$3" | tail -n 1)
}

only_out_of_time() { # log
	grep -q '^ *context deadline exceeded$' "$1" && ! grep -Eq 'Failing input|panic:|\.go:[0-9]+:' "$1"
}

# Fuzzes every nth target from the given one on, where n is the number of CPUs.
fuzz_share() { # first
	awk "NR % $cpus == $1 % $cpus" "$dir/targets" | while IFS=: read -r file target; do
		package=${file%/*} log=$dir/$target.log
		fuzz "$package" "$target" "$log" "$time"
		[ -n "$count" ] || fuzz "$package" "$target" "$log" 1m # a busy machine needs longer to start the servers
		[ -n "$count" ] || result=FAIL
		echo "$result  $package $target: ${count:-0} executions"
		[ $result = ok ] || cat "$log"
		echo "$result ${count:-0}" >>"$dir/results"
	done
}

grep -ro --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | sed 's|^\./||; s/func //' | grep -E "$names" | sort >"$dir/targets"
for package in $(sed 's|/[^/]*$||' "$dir/targets" | sort -u); do
	compile "$package"
done
for first in $(seq "$cpus"); do
	fuzz_share "$first" &
done
wait
awk '{ executions += $2; failures += $1 != "ok" }
	END { print "targets: " NR ", executions: " executions ", failures: " failures + 0; exit NR == 0 || failures > 0 }' "$dir/results"
