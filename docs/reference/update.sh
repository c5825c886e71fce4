#!/bin/sh
# Downloads the viewer of the API reference, checks it and compresses it for the binary:
#
#	sh docs/reference/update.sh
#
# To update it, set version, integrity to what this prints, and digest to what the script then says:
#
#	npm view @scalar/api-reference@VERSION dist.integrity
#
# Then read LICENSE in the viewer's repository, and run the tests TestReference.
set -eu

version=1.72.1
integrity=sha512-XpEJ0rfc/cXbCrR+iC4kK0o/WwX2dTtGQbT049OlPKAHD6IMIFdTeGz2r+M27P2EDWKyUITRm/NzlP8z2pw/Ow==
digest=bf091006bdc3af6067af77c2f534812e3e633e94a94e87138069f570f33b762c # SHA-256 of viewer.js

here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT
cd "$work"
archive=$(npm pack --silent "@scalar/api-reference@$version")
found=sha512-$(openssl dgst -sha512 -binary "$archive" | base64 | tr -d '\n')
if [ "$found" != "$integrity" ]; then
	echo "@scalar/api-reference $version has the integrity $found, not $integrity" >&2
	exit 1
fi
tar -xzf "$archive" package/dist/browser/standalone.js
found=$(sha256sum package/dist/browser/standalone.js | cut -d ' ' -f 1)
if [ "$found" != "$digest" ]; then
	echo "viewer.js has the digest $found, not $digest" >&2
	exit 1
fi
gzip -9n <package/dist/browser/standalone.js >"$here/viewer.js.gz"
