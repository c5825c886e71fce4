#!/bin/sh
# Makes a new clone of this repository, and runs there the commands that its pages mark with
# "run-by: make verify", as pasted. `make run` must start a demo that answers; it is then stopped.
# The last commit is what is tested.
set -eu
export GOFLAGS="${GOFLAGS:-} -vet=off" # make lint runs go vet

clone=$(mktemp -d)
demo=
clean() {
	[ -z "$demo" ] || kill -TERM "-$demo" 2>/dev/null || true
	rm -rf "$clone"
}
trap clean EXIT
trap 'exit 130' HUP INT TERM # some shells run no EXIT trap when a signal ends them
git clone -q "$(dirname "$0")/.." "$clone"
cd "$clone"

# Prints the commands of a page, one a line, without their comments.
commands() { # page
	awk '/^<!-- run-by: make verify -->$/ { marked = 1 }
		/^```$/ { marked = inside = 0 }
		inside { sub(/ +# .*/, ""); print }
		marked && /^```sh$/ { inside = 1 }' "$1"
}

# Starts a demo, and stops it when it answers.
try_demo() { # command
	case $1 in *ADDR=*) ;; *) set -- "ADDR=:8081 ADMIN_ADDR=127.0.0.1:9091 $1" ;; esac # 8080 may be taken
	setsid sh -euc "$1" >"$clone/printed" 2>&1 &
	demo=$!
	tries=0
	until curl -fsSo /dev/null http://127.0.0.1:8081/openapi.yaml 2>/dev/null; do
		tries=$((tries + 1))
		if [ $tries -gt 600 ] || ! kill -0 "$demo" 2>/dev/null; then
			cat "$clone/printed"
			exit 1
		fi
		sleep 0.5
	done
	kill -TERM "-$demo"
	{ wait "$demo"; } 2>/dev/null || true
	demo=
	grep -q 'Customer JWT' "$clone/printed"
}

# The program knows its commit, and leaves out the codec that Gin does not need.
check_build() {
	bin/commerce version | grep -q "$(git describe --tags --always)"
	go version -m bin/commerce | grep -q 'tags=nomsgpack'
}

count=0
for page in README.md .github/CONTRIBUTING.md docs/*.md; do
	commands "$page" >"$clone/commands"
	while IFS= read -r command <&3; do
		echo "$page: $command"
		case $command in
		*'make run') try_demo "$command" ;;
		*) sh -euc "$command" >"$clone/printed" 2>&1 </dev/null || { cat "$clone/printed"; exit 1; } ;;
		esac
		! grep -q 'no tests to run' "$clone/printed" || { echo "it runs no test"; exit 1; }
		[ "$command" != "make build" ] || check_build
		count=$((count + 1))
	done 3<"$clone/commands"
done
echo "$count commands of the pages run in a new clone"
[ "$count" -gt 0 ]
