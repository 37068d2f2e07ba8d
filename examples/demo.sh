#!/bin/sh
# Run real commands through mcp-sandbox-exec, in the sandbox of a tool call that
# was recorded from Codex 0.171.0. The paths in the call are set to a scratch
# project; everything is below .demo/ at the top of the repository.
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
codex=${CODEX:-$("$top/e2e/codex.sh" 0.171.0)} || {
	echo "demo: there is no Codex; CODEX=/path/to/codex names one that is here already" >&2
	exit 1
}
demo=$top/.demo
project=$demo/project

rm -rf "$demo"
mkdir -p "$project" "$demo/codex-home" "$demo/cache"
cd "$demo"
PATH=$top:$PATH
CODEX_HOME=$demo/codex-home
XDG_CACHE_HOME=$demo/cache
export PATH CODEX_HOME XDG_CACHE_HOME

# set_path RECORDED NEW: a sed command that replaces a path in the request.
set_path() {
	printf 's|%s|%s|g\n' "$1" "$(printf '%s' "$2" | sed 's/[\\|&]/\\&/g')"
}

# The helper that the recorded session had for itself is gone; null means that
# the launcher brings its own. The temporary folders are taken off the policy, as
# this repository may be in one.
{
	for kind in slash_tmp tmpdir; do
		echo 's|{"path":{"type":"special","value":{"kind":"'$kind'"}},"access":"write"},||g'
	done
	set_path /home/dev/project "$project"
	set_path /opt/codex/bin/codex "$codex"
	echo 's|"codexLinuxSandboxExe":"[^"]*"|"codexLinuxSandboxExe":null|g'
} >request.sed
sed -f request.sed "$top/testdata/requests/tools-call-codex-0.171.0-workspace-write.json" >request.json
sed 's|,"codex/sandbox-launcher":{[^}]*}||' request.json >request-without-launcher.json

# show WANTED REQUEST COMMAND: print and run it; the status must be the wanted
# one, or "denied", which is any but 0 and 125.
show() {
	printf '\n  $ mcp-sandbox-exec --request %s -- sh -c '\''%s'\''\n' "$2" "$3"
	status=0
	mcp-sandbox-exec --request "$2" -- sh -c "$3" </dev/null >output 2>&1 || status=$?
	sed 's/^/  /' output
	echo "  exit status $status"
	case $1/$status in
	denied/0 | denied/125) ;;
	denied/* | "$status/$status") return ;;
	esac
	echo "demo: expected $1; can this host set up a sandbox at all?" >&2
	exit 1
}

cat <<END

A tool call that Codex 0.171.0 sent to an MCP server carries the policy of its
session: read everything, write only the project, no network.

  project    $project
  launcher   $codex
  request    $demo/request.json

1. A command that writes inside the project does.
END
show 0 request.json 'echo hello >inside.txt && cat inside.txt'
[ -f "$project/inside.txt" ]

cat <<END

2. One that writes outside is denied by the sandbox.
END
show denied request.json "echo hello >$demo/outside.txt"
[ ! -e "$demo/outside.txt" ]

cat <<END

3. The same request without its launcher is refused. Nothing is looked up on
   PATH, and nothing runs.
END
show 125 request-without-launcher.json 'echo hello >never.txt'
[ ! -e "$project/never.txt" ]
echo
