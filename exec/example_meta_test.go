package exec_test

import "github.com/mcp-sandbox-exec/mcp-sandbox-exec/exec"

// metaOfCall is what the examples find in a request.
func metaOfCall() []byte { return exec.MetaOfCall() }
