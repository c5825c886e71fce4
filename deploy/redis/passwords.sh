#!/bin/sh
# Creates passwords for the users of users.conf, and the files that contain them:
#
#   sh deploy/redis/passwords.sh secrets/redis
#
# | in the folder | |
# |---|---|
# | <user>.password | the password of a user, for REDIS_URL |
# | users.acl | the users, with hashes of the passwords. For all servers: /etc/redis |
# | replication.conf | how servers log in to each other. For all servers: /etc/redis |
# | sentinel.conf | sentinel.conf with passwords. For all sentinels: /etc/redis |
#
# Passwords that the folder already has stay the same.
set -eu
umask 077
here=$(dirname "$0")
to=${1:?usage: sh passwords.sh FOLDER}
mkdir -p "$to"

grep '^user ' "$here/users.conf" >"$to/users.acl"
for user in $(sed -n 's/^user \([a-z]*\) on .*/\1/p' "$here/users.conf"); do
	file=$to/$user.password
	[ -s "$file" ] || LC_ALL=C tr -dc A-Za-z0-9 </dev/urandom | head -c 40 >"$file"
	hash=$(sha256sum <"$file" | cut -d ' ' -f 1)
	sed -i "s/^user $user on /user $user on #$hash /" "$to/users.acl"
done

cat >"$to/replication.conf" <<EOF
masteruser replica
masterauth $(cat "$to/replica.password")
EOF

cat "$here/sentinel.conf" - >"$to/sentinel.conf" <<EOF
sentinel auth-pass commerce $(cat "$to/sentinel.password")
# For clients of the sentinels, and among them: sentinel_password= of REDIS_URL.
requirepass $(cat "$to/sentinel.password")
EOF
