#!/bin/sh
# Compares benchmarks of this tree with those of a commit, with benchstat.
#
#   deploy/compare.sh main ./cart/...                    # all of some packages
#   BENCH=Scripts ROUNDS=20 deploy/compare.sh main ./cart/redisstore
#
# Both take turns, so that other load on the machine affects them alike. Benchmarks that
# need servers find them in the environment (see deploy/ephemeral).
set -eu

commit=$1
shift
dir=$(mktemp -d)
trap 'git worktree remove --force "$dir/tree"; rm -rf "$dir"' EXIT
trap 'exit 130' HUP INT TERM # some shells run no EXIT trap when a signal ends them
git worktree add --quiet --detach "$dir/tree" "$commit"

bench() ( # tree, results, packages
	cd "$1"
	results=$2
	shift 2
	${GO:-go} test -run '^$' -bench "${BENCH:-.}" -benchtime "${BENCHTIME:-200ms}" "$@" >>"$results"
)

round=0
while [ "$round" -lt "${ROUNDS:-10}" ]; do
	bench "$dir/tree" "$dir/old" "$@"
	bench . "$dir/new" "$@"
	round=$((round + 1))
done
${GO:-go} tool benchstat "$commit=$dir/old" "this tree=$dir/new"
