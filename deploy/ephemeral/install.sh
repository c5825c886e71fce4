#!/bin/sh
# Installs what the tests need, if it is missing, and then runs the given command, if any:
#
#	sh deploy/ephemeral/install.sh go run ./deploy/ephemeral/run -- go test ./...
#
# Installing needs apt-get, and root or sudo. If servers are still missing, the command
# runs in the "test" container of deploy/compose.yaml, provided that Docker is running.
# If something else is still missing, the tests that need it say so.
set -eu

has_postgres() {
	for dir in $(echo "$PATH" | tr ':' ' ') /usr/lib/postgresql/*/bin; do
		[ -x "$dir/initdb" ] && [ -x "$dir/postgres" ] && return 0
	done
	return 1
}

has_servers() {
	command -v redis-server >/dev/null && has_postgres
}

has() { # Debian has some of these programs in /usr/sbin, which is not in every PATH
	command -v "$1" || [ -x "/usr/sbin/$1" ]
} >/dev/null

# Prints the missing packages that only some tests need.
missing() {
	has chromium || has chromium-browser || has google-chrome || echo chromium
	has cc || echo gcc libc6-dev # for the race detector
	for program in haproxy pgbouncer prometheus curl jq sqlite3 npm python3 zsh fish; do
		has $program || echo $program
	done
	has node || echo nodejs
	has java || echo default-jre-headless # runs the compiler of Kotlin
	has script || echo bsdutils # a terminal
	has ssh-keygen || echo openssh-client
	has systemd-analyze || echo systemd # checks units
	[ -e /etc/ssl/certs/ca-certificates.crt ] || echo ca-certificates
	ls /usr/lib/*/faketime/libfaketime.so.1 >/dev/null 2>&1 || echo faketime # sets the clocks of servers ahead
}

as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo >/dev/null && { [ -t 0 ] || sudo -n true 2>/dev/null; }; then
		sudo "$@"
	else
		return 1
	fi
}

# Installs packages. By default Debian starts the services of new packages and creates a
# database cluster. This prevents both.
install_packages() {
	command -v apt-get >/dev/null || return 1
	as_root sh -eu -c '
		policy=/usr/sbin/policy-rc.d
		if [ ! -e "$policy" ]; then
			trap "rm -f $policy" EXIT
			printf "#!/bin/sh\nexit 101\n" >"$policy"
			chmod +x "$policy"
		fi
		conf=/etc/postgresql-common/createcluster.conf
		if [ ! -e "$conf" ]; then
			mkdir -p "${conf%/*}"
			echo "create_main_cluster = false" >"$conf"
		fi
		export DEBIAN_FRONTEND=noninteractive
		apt-get -qq update
		apt-get -qq -y --no-install-recommends -o Dpkg::Options::=--force-confold install "$@"
	' sh "$@" >&2
}

# Installs Valkey, which make verify tests. Debian 12 has it only in its backports.
install_valkey() {
	command -v apt-get >/dev/null || return 1
	as_root sh -eu -c '
		. /etc/os-release
		sources=/etc/apt/sources.list.d
		[ "$VERSION_CODENAME" != bookworm ] || sed "/^$/,\$d; s/^Suites:.*/Suites: bookworm-backports/" \
			$sources/debian.sources >$sources/valkey.sources'
	install_packages valkey-server || true
	as_root rm -f /etc/apt/sources.list.d/valkey.sources
}

if has_servers || { install_packages redis-server postgresql && has_servers; }; then
	packages=$(missing)
	# shellcheck disable=SC2086 # the names are separate arguments
	[ -z "$packages" ] || install_packages $packages || true
	has valkey-server || install_valkey || true
	[ $# = 0 ] || exec "$@"
	exit 0
fi
if [ $# != 0 ] && command -v docker >/dev/null && docker info >/dev/null 2>&1; then
	exec docker compose -f "$(dirname "$0")/../compose.yaml" run --rm test "$@"
fi
echo "Please install redis-server (7.0 or later) and PostgreSQL (15 or later, with postgres and initdb)." >&2
exit 1
