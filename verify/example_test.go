package verify_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/exec"
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

// A server that keeps a process for later calls writes down what it was started
// under, and lets a later call use it only if that call has the same authority.
func ExampleRecords() {
	records := verify.Records{Dir: exampleDir()} // or that of verify.DefaultRecordsDir
	server := verify.Server{Name: "repl", Environment: "laptop"}

	// One call starts the process.
	authority, err := authorityOf(`{"writable":["/project"]}`)
	if err != nil {
		fmt.Println(err)
		return
	}
	process, err := exec.Command(context.Background(), authority, exec.Options{}, "cat")
	if err != nil {
		fmt.Println(err)
		return
	}
	stdin, err := process.StdinPipe()
	if err == nil {
		err = process.Start()
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	defer process.Wait()
	defer stdin.Close()
	if _, err := records.Retain(authority, server, process.Process.Pid); err != nil {
		fmt.Println(err)
		return
	}

	// Other calls come later, for which another process may have to be started.
	for _, state := range []string{`{ "writable": ["/project"] }`, `{"writable":["/"]}`} {
		authority, err := authorityOf(state)
		if err != nil {
			fmt.Println(err)
			return
		}
		record, err := records.Compare(authority, server)
		var refusal *verify.Refusal
		switch {
		case err == nil:
			fmt.Println("the same authority; the process is", record.Liveness())
		case errors.As(err, &refusal) && refusal.Code == verify.CodeAuthorityChanged:
			fmt.Println("another authority")
		default:
			fmt.Println(err)
		}
	}
	// Output:
	// the same authority; the process is running
	// another authority
}
