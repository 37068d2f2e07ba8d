package verify_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/verify"
)

// The state is what stood in the request, byte for byte.
func ExampleParseRequest() {
	request := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run","arguments":{},
		"_meta":{"codex/sandbox-state":{"n": 1.0, "unknown":[ ]},"codex/sandbox-launcher":{"codexExecutable":"/opt/codex"}}}}`)

	metadata, err := verify.ParseRequest(request)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s\n%s\n", metadata.State(), metadata.Launcher())
	// Output:
	// {"n": 1.0, "unknown":[ ]}
	// /opt/codex
}

// A text that two readers could understand in two ways is refused.
func ExampleParseMeta() {
	_, err := verify.ParseMeta([]byte(`{"codex/sandbox-state":{"a":1},"codex/sandbox-state":{"a":2}}`))
	fmt.Println(err)
	// Output:
	// metadata-malformed: _meta: "codex/sandbox-state" stands twice in the value
}

// A client that is too old to name a launcher is refused, with a hint for the
// operator.
func ExampleMetadata_Authority() {
	metadata, err := verify.ParseMeta([]byte(`{"codex/sandbox-state-meta":{"sandboxCwd":"file:///"}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = metadata.Authority(context.Background(), verify.Options{})
	var refusal *verify.Refusal
	if errors.As(err, &refusal) {
		fmt.Println(refusal.Code)
		fmt.Println(refusal.Hint)
	}
	// Output:
	// launcher-missing
	// use a newer client, or decide for --default-launcher PATH or --allow-path-launcher
}

// A server answers initialize with the capability, so that a client sends its
// metadata.
func ExampleCapability() {
	fmt.Printf(`{"capabilities":{"tools":{},"experimental":%s}}`, verify.Capability)
	// Output:
	// {"capabilities":{"tools":{},"experimental":{"codex/sandbox-state":{},"codex/sandbox-state-meta":{}}}}
}
