# What the example servers have in common: MCP over stdio, one request at a time.
# It needs bash 4.4, jq and mcp-sandbox-exec, which MCP_SANDBOX_EXEC may name.
#
# A server has the JSON of its tools in $tools, and a function tool_NAME for each,
# which is given the line of a request and answers it. Then it calls serve.

shim=${MCP_SANDBOX_EXEC:-mcp-sandbox-exec}

# A client sends its policy only to a server that says it honours one.
experimental=$("$shim" capability) || exit 1

# Texts go from one program to the next through pipes. A here-string that is longer
# than a pipe is a file in TMPDIR, where a command may be able to replace it.

# answer REQUEST FILTER: an answer with the request's id and what a jq filter
# makes of the text on stdin and of $request: {"result": …} or {"error": …}.
answer() {
	jq -cRs --slurpfile requests <(printf '%s' "$1") --argjson experimental "$experimental" '
		$requests[0] as $request |
		def ended: if . == "" or endswith("\n") then . else . + "\n" end;
		def text_result($text; $is_error): {result: {isError: $is_error, content: [{type: "text", text: $text}]}};
		# A refusal of the shim is an object in the last line, and any text may stand
		# where one is expected.
		def refusal: split("\n") | map(select(. != ""))[-1] // "" | fromjson? | objects | select(.code);
		def refused: (refusal | "\(.code): \(.message)\n\(.hint)") // . | text_result("not run: \(.)"; true);
		{jsonrpc: "2.0", id: $request.id} + ('"$2"')'
}

# argument REQUEST NAME: the text of an argument of the tool, if there is one that a
# command line can hold.
argument() {
	printf '%s' "$1" | jq -r --arg name "$2" '.params.arguments[$name]? | strings | select(explode | all(. != 0))'
}

serve() {
	local request method name
	while IFS= read -r request || [[ $request ]]; do
		# Nothing for a notification or an answer, which get none.
		if ! method=$(printf '%s' "$request" | jq -r 'if has("id") then .method // "" else "" end' 2>/dev/null); then
			answer '{"id":null}' '{error: {code: -32700, message: "not a JSON-RPC request"}}' </dev/null
			continue
		fi
		case $method in
		'') ;;
		initialize)
			answer "$request" '{result: {
				protocolVersion: ($request.params.protocolVersion? // "2025-06-18"),
				capabilities: {tools: {}, experimental: $experimental},
				serverInfo: {name: "mcp-sandbox-exec-example", version: "1"}
			}}' </dev/null
			;;
		ping) answer "$request" '{result: {}}' </dev/null ;;
		tools/list) printf '%s' "$tools" | answer "$request" '{result: {tools: fromjson}}' ;;
		tools/call)
			name=$(printf '%s' "$request" | jq -r '.params.name? | strings')
			if [[ $name =~ ^[a-z_]+$ ]] && declare -F "tool_$name" >/dev/null; then
				"tool_$name" "$request"
			else
				answer "$request" '{error: {code: -32602, message: "there is no such tool"}}' </dev/null
			fi
			;;
		*) answer "$request" '{error: {code: -32601, message: "there is no method \($request.method)"}}' </dev/null ;;
		esac
	done
}
