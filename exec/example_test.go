package exec

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/verify"
)

// A server runs what a tool call asks for, in the sandbox of that call.
func Example() {
	ctx := context.Background()
	rawMeta := metaOfCall() // params._meta of the request, as it came

	metadata, err := verify.ParseMeta(rawMeta)
	if err != nil {
		fmt.Println(err)
		return
	}
	authority, err := metadata.Authority(ctx, verify.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	cmd, err := Command(ctx, authority, Options{}, "echo", "hello from the sandbox")
	if err != nil {
		fmt.Println(err)
		return
	}
	output, err := cmd.CombinedOutput()
	fmt.Printf("%s%v\n", output, err)
	// Output:
	// hello from the sandbox
	// <nil>
}

// A refusal has a code for programs, and a message and a hint for people.
func Example_refused() {
	metadata, err := verify.ParseMeta([]byte(`{"codex/sandbox-state-meta":{"sandboxCwd":"file:///"}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = metadata.Authority(context.Background(), verify.Options{})
	var refusal *verify.Refusal
	if errors.As(err, &refusal) {
		fmt.Println(refusal.Code)
		fmt.Println(refusal.Message)
	}
	// Output:
	// launcher-missing
	// the call names no launcher: the client is older than Codex 0.163, or not on this host
}

// The arguments of the launcher, for a server that starts processes in a way of
// its own.
func ExampleArgv() {
	metadata, err := verify.ParseMeta(metaOfCall())
	if err != nil {
		fmt.Println(err)
		return
	}
	authority, err := metadata.Authority(context.Background(), verify.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	argv, err := Argv(authority, Options{DisableNetwork: true}, "make", "test")
	fmt.Printf("%q\n%v\n", argv[1:], err)
	// Output:
	// ["sandbox" "--sandbox-state-json" "{\"permissionProfile\":{\"type\":\"managed\"},\"sandboxCwd\":\"file:///\"}" "--sandbox-state-disable-network" "--" "make" "test"]
	// <nil>
}
