#!/bin/sh
# Builds a version of the service from the last commit for several platforms, into a folder:
#
#	deploy/release.sh 1.0.0 bin/release
#	PLATFORMS=linux/amd64 deploy/release.sh test /tmp/release
#
# For each platform, it writes an archive with the program and the license texts of its modules, and
# a list of these modules in the CycloneDX format (an SBOM). commerce-storefront_<version>.tgz is docs/storefront.js as an npm
# package, with its types. SHA256SUMS has the checksums of all files. They depend only on the commit, the version, Go and git,
# so anyone can build them again and compare.
# A release in the folder is replaced at the end, so a failure leaves it as it was.
#
# It needs git, jq and npm. cyclonedx-gomod takes 21 CPU seconds to compile, does not find the licenses of
# Go and of one module, and lists the checksum of itself, which differs between machines.
set -eu

version=$1 out=$2 go=${GO:-go}
root=$(cd "$(dirname "$0")/.." && pwd)

fail() {
	echo "release: $1" >&2
	exit 1
}

if [ -n "$(ls -A "$out" 2>/dev/null)" ] && [ ! -e "$out/SHA256SUMS" ]; then
	fail "$out is not empty and has no SHA256SUMS, so it is no release: remove it or name another folder"
fi
case $version in
'' | *[!A-Za-z0-9._+-]* | [!A-Za-z0-9]*) fail "version \"$version\": want A-Za-z0-9._+-, with a letter or digit first" ;;
esac
mkdir -p "$(dirname "$out")"
work=$(mktemp -d) files=$(mktemp -d "$(dirname "$out")/.release-XXXXXX")
trap 'rm -rf "$work" "$files"' EXIT
trap 'exit 130' HUP INT TERM # some shells run no EXIT trap when a signal ends them
tree=$work/commerce commit=$(git -C "$root" rev-parse HEAD)
mkdir "$tree"
git -C "$root" archive "$commit" | tar -xC "$tree" # without anything that is not committed

# A version such as 1.2.0 needs an entry in the changelog, and is the version of the OpenAPI document.
has() { # file, pattern
	grep -Eq "$2" "$tree/$1" || fail "version $version: no line in $1 matches $2"
}
if echo "$version" | grep -Eq '^[0-9]+\.[0-9]+\.[0-9]+$'; then
	escaped=$(echo "$version" | sed 's/\./\\./g')
	has docs/changelog.md "^## $escaped \([0-9]{4}-[0-9]{2}-[0-9]{2}\)$"
	has docs/openapi.yaml "^  version: $escaped$"
fi

# Prints the names, versions and folders of the modules in the program, and Go's library as "std".
modules() {
	echo "std $($go version "$program" | sed 's/.*: go//') $($go env GOROOT)"
	$go -C "$tree" list -m -f '{{.Path}} {{.Version}} {{.Dir}}' $($go version -m "$program" | awk '$1 == "dep" { print $2 }')
}

# Prints the files of a folder that must be passed on with a copy of it.
texts() { # whose, folder
	legal=$(ls "$2" | grep -Ei '^(licen[cs]e|copying|unlicense|notice|patents)([.-].*)?$') || fail "license of $1: no license file in $2"
	for file in $legal; do
		printf '%s, %s\n\n' "$1" "$file"
		cat "$2/$file"
		printf '\n%s\n\n' ------------------------------------------------------------------------
	done
}

# Prints the SBOM. Its serial number is made of the program's checksum, and its licenses are those of
# docs/licenses.md, where a line such as "- MIT:" is before the names.
sbom() {
	sum=$(sha256sum "$program" | cut -d ' ' -f 1)
	listed=$(awk -F '`' '/^- / { sub(/^- /, ""); sub(/:.*/, ""); license = $0 } /^  `/ { print $2, license }' "$tree/docs/licenses.md")
	cut -d ' ' -f 1,2 "$work/modules" | jq -Rn --arg version "$version" --arg commit "$commit" --arg sum "$sum" --arg listed "$listed" \
		--arg time "$(TZ=UTC git -C "$root" log -1 --format=%cd --date=format-local:%Y-%m-%dT%H:%M:%SZ "$commit")" \
		--arg serial "$(echo "$sum" | sed -E 's/(.{8})(.{4}).(.{3}).(.{3})(.{12}).*/\1-\2-8\3-8\4-\5/')" '
		($listed + "\nstd BSD-3-Clause" | split("\n") | map(capture("(?<key>[^ ]*) (?<value>.*)")) | from_entries) as $licenses
		| def component($name; $version): ("pkg:golang/\($name)@\($version)") as $url
			| {"bom-ref": $url, name: $name, version: $version, purl: $url};
		[inputs | split(" ") | component(.[0]; .[1]) + {type: "library", licenses:
			(($licenses[.[0]] // error("\(.[0]) is not in docs/licenses.md")) | split(", ") | map({license: {id: .}}))}] as $components
		| (component("commerce"; $version) + {type: "application", hashes: [{alg: "SHA-256", content: $sum}]}) as $program
		| {bomFormat: "CycloneDX", specVersion: "1.6", serialNumber: "urn:uuid:\($serial)", version: 1,
			metadata: {timestamp: $time, component: $program, properties: [{name: "commerce:commit", value: $commit}]},
			components: $components,
			dependencies: [{ref: $program["bom-ref"], dependsOn: [$components[]["bom-ref"]]}]}'
}

# Packs the client of storefronts. React Native cannot read import.meta, so the package leaves out the line with it.
pack() {
	echo "packing the npm package"
	client=$work/client
	cp -R "$tree/deploy/clients/testdata/npm" "$client"
	sed '/import\.meta/d' "$tree/docs/storefront.js" >"$client/storefront.js"
	echo "$version" | grep -Eq '^[0-9]+\.[0-9]+\.[0-9]+$' && number=$version || number=0.0.0
	jq -n --arg version "$number" '{name: "commerce-storefront", version: $version, license: "UNLICENSED", type: "module",
		description: "A client of the Merchant Commerce Service for storefronts", sideEffects: false,
		main: "storefront.js", types: "storefront.d.ts", exports: {types: "./storefront.d.ts", default: "./storefront.js"}}' >"$work/package.json"
	(
		cd "$client"
		npm ci --omit=dev --ignore-scripts --no-audit --no-fund --prefer-offline
		node_modules/.bin/openapi-typescript "$tree/docs/openapi.yaml" --output openapi.d.ts
		node_modules/.bin/tsc --project types.json
	) >"$work/log" 2>&1 || fail "the npm package: $(cat "$work/log")"
	git -C "$root" -c tar.umask=022 archive --format=tar.gz -o "$files/commerce-storefront_$version.tgz" --prefix=package/ \
		--add-file="$work/package.json" --add-file="$client/storefront.js" --add-file="$client/storefront.d.ts" \
		--add-file="$client/openapi.d.ts" "$commit" docs/storefront.md
}

for platform in ${PLATFORMS:-linux/amd64 linux/arm64 darwin/arm64}; do
	echo "building $platform"
	name=commerce_${version}_$(echo "$platform" | tr / _) program=$tree/bin/commerce
	# A C compiler, and settings of the machine's owner, would change the program.
	env GOOS="${platform%/*}" GOARCH="${platform#*/}" GOAMD64=v1 GOARM64=v8.0 CGO_ENABLED=0 GOFLAGS=-buildvcs=false GOEXPERIMENT= \
		GOFIPS140=off GOWORK=off MAKEFLAGS= MAKEOVERRIDES= make -C "$tree" --no-print-directory build VERSION="$version" >"$work/log" 2>&1 ||
		fail "$platform: $(cat "$work/log")"
	modules >"$work/modules"
	{
		while read -r module number folder; do texts "$module $number" "$folder"; done <"$work/modules"
		for folder in docs/playground/fonts docs/reference; do texts $folder "$tree/$folder"; done # others' works in the program
	} >"$work/LICENSES.txt"
	sbom >"$files/$name.cdx.json"
	git -C "$root" -c tar.umask=022 archive --format=tar.gz -o "$files/$name.tar.gz" --prefix="$name/" \
		--add-file="$program" --add-file="$work/LICENSES.txt" --add-file="$tree/docs/changelog.md" "$commit" README.md
done
pack
(cd "$files" && sha256sum -- * >"$work/SHA256SUMS" && mv "$work/SHA256SUMS" .)
chmod 755 "$files"
rm -rf "$out"
mv "$files" "$out"
