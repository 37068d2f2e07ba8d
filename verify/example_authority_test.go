package verify_test

import (
	"context"

	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/verify"
)

// authorityOf returns the authority of a call with a state.
func authorityOf(state string) (*verify.Authority, error) {
	metadata, err := verify.ParseMeta(verify.MetaOfCall(state))
	if err != nil {
		return nil, err
	}
	return metadata.Authority(context.Background(), verify.Options{})
}

func exampleDir() string { return verify.RecordsDirOfExample() }
