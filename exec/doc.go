// Package exec runs commands under an authority that package verify has
// checked: in the place of this process, as the program mcp-sandbox-exec does
// it, or as a child of a Go MCP server.
//
// A server that handles a tool call has the raw _meta of the request, and makes
// a command of it in three steps:
//
//	metadata, err := verify.ParseMeta(rawMeta)
//	authority, err := metadata.Authority(ctx, verify.Options{})
//	cmd, err := exec.Command(ctx, authority, exec.Options{}, "make", "test")
//
// Each step refuses with a [*verify.Refusal], and no step before the last one
// starts anything but the probe of the launcher.
//
// What is started is always
//
//	LAUNCHER sandbox --sandbox-state-json STATE [options] -- COMMAND [ARG...]
//
// with the state as it came. The launcher, a full Codex CLI, sets up the sandbox
// and runs COMMAND in the folder that the state names; the working folder of
// the caller plays no part in it.
//
// A process that is kept for later calls is written down with [verify.Records], by
// the id in the command's Process, as soon as it has been started.
package exec
