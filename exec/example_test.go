package exec_test

import (
	"context"
	"fmt"

	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/exec"
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
	cmd, err := exec.Command(ctx, authority, exec.Options{}, "echo", "hello from the sandbox")
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
	argv, err := exec.Argv(authority, exec.Options{DisableNetwork: true}, "make", "test")
	fmt.Printf("%q\n%v\n", argv[1:], err)
	// Output:
	// ["sandbox" "--sandbox-state-json" "{\"permissionProfile\":{\"type\":\"managed\"},\"sandboxCwd\":\"file:///\"}" "--sandbox-state-disable-network" "--" "make" "test"]
	// <nil>
}
