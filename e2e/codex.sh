#!/bin/sh
# Print the path of the native Codex CLI of a version for this machine. It is
# got from npm unless it is there already, in .codex/ at the top of the
# repository, with everything that belongs to it.
#
# usage: e2e/codex.sh VERSION
set -eu

version=$1
top=$(cd "$(dirname "$0")/.." && pwd)
folder=$top/.codex/$version

case $(uname -s)/$(uname -m) in
Linux/x86_64) platform=linux-x64 ;;
Linux/aarch64 | Linux/arm64) platform=linux-arm64 ;;
Darwin/x86_64) platform=darwin-x64 ;;
Darwin/arm64) platform=darwin-arm64 ;;
*)
	echo "there is no Codex for $(uname -s) on $(uname -m)" >&2
	exit 1
	;;
esac

if [ ! -d "$folder" ]; then
	command -v npm >/dev/null || {
		echo "npm is needed to get Codex $version; it comes with Node.js" >&2
		exit 1
	}
	echo "getting Codex $version from npm" >&2
	mkdir -p "$top/.codex"
	# Unpacked beside its place and moved there whole, so that a broken
	# download is never taken for a Codex.
	scratch=$(mktemp -d "$top/.codex/tmp.XXXXXX")
	trap 'rm -rf "$scratch"' EXIT
	(cd "$scratch" && npm pack --silent "@openai/codex@$version-$platform" >/dev/null && tar -xzf ./*.tgz)
	[ -d "$folder" ] || mv "$scratch/package" "$folder"
fi

set -- "$folder"/vendor/*/bin/codex
[ -x "$1" ] || {
	echo "no Codex in $folder; remove the folder to get it again" >&2
	exit 1
}
echo "$1"
