// Package verify decides whether an MCP tool call may run commands, and under
// what policy.
//
// Codex sends its sandbox policy with each call, in the _meta of the request's
// params. The state is the policy itself, an opaque JSON value under
// "codex/sandbox-state"; the launcher, under "codex/sandbox-launcher", names the
// Codex CLI on this host that can apply it. Both together are the authority for
// what the call starts. It goes through three hands here:
//
//   - [ParseRequest], [ParseMeta] and [ParseState] read a text, strictly, into
//     [Metadata]. The state stays the bytes that it was.
//   - [Metadata.Authority] chooses the launcher, checks its file, and probes it:
//     the only program that this package starts.
//   - An [Authority] is what package exec makes a command of. It belongs to the
//     call that carried it.
//
// A server that stays can give [Options] a CacheDir, so that a launcher is probed
// once and not at each call, and can narrow what it accepts: AllowedLaunchers and
// RequireConfined.
//
// One that keeps a process for later calls writes its authority down in [Records],
// and lets a call use the process only if it has the same one. One that keeps
// results does so under the [Authority.Fingerprint] of the call.
//
// Whatever is missing or wrong is a [*Refusal] with a stable [Code]. Nothing is
// looked up, guessed or left out unless [Options] say so, which are the
// operator's. The arguments of a tool come from a model and are never read.
//
// [Source] is the notation in which the program mcp-sandbox-exec is told where a
// text is to be read.
package verify
