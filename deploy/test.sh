#!/bin/sh
# Runs tests with gotestsum, which prints the output of what failed at the end:
#
#	sh deploy/test.sh ./... -short                            # the packages in one argument, then flags of go test
#	sh deploy/test.sh './auth/... ./cart/...' -race -skip Slow
#
# A test that failed runs once more, alone. If it passes then, it is flaky, and the run goes on. Without
# arguments, this script prints what was flaky since bin/tests was removed, and the number of all tests.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
results=$root/bin/tests
gotestsum=$(${GO:-go} -C "$root" tool -n gotestsum)

summary() { # command that prints events
	"$gotestsum" --format none --hide-summary skipped --raw-command -- "$@"
}

if [ $# = 0 ]; then
	! cat "$results"/*.flaky 2>/dev/null | grep . || echo "FLAKY: these tests passed when they ran once more, alone. Find out why they failed:"
	summary cat "$results"/*.json
	exit
fi
packages=$1 run=$results/$$
shift
mkdir -p "$results"
"$gotestsum" --format-hide-empty-pkg --hide-summary skipped \
	--rerun-fails=1 --rerun-fails-max-failures=30 --rerun-fails-run-root-test --rerun-fails-abort-on-data-race --rerun-fails-report "$run.flaky" \
	--jsonfile "$run.json" --packages "$packages" -- "$@"

# A package can also fail without a failed test, such as by a leaked goroutine, or before all of its
# tests have ended, such as by a signal. gotestsum would repeat only what it knows, and pass.
awk -F '"' '
	$8 == "start" { failed[$12] = running[$12] = events[$12] = 0 }
	{ event[$12, events[$12]++] = $0 }
	$14 == "Test" && $8 == "run" { running[$12]++ }
	$14 == "Test" && $8 ~ /^(pass|skip|fail)$/ { running[$12]--; failed[$12] += $8 == "fail" }
	$14 != "Test" && $8 == "fail" && (!failed[$12] || running[$12]) {
		for (i = 0; i < events[$12]; i++) print event[$12, i]
	}' "$run.json" >"$run"
if [ -s "$run" ]; then
	summary cat "$run"
	echo "These packages failed outside of their tests, or before all of them had run."
	exit 1
fi
