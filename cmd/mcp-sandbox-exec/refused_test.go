package main

import (
	"slices"
	"testing"

	"github.com/mcp-sandbox-exec/mcp-sandbox-exec/internal/testcorpus"
)

// The table of refused inputs has each code, and no other.
func TestRefusedInputsHaveTheCodes(t *testing.T) {
	cases, err := testcorpus.Read("../../verify/testdata/refused.txt")
	if err != nil {
		t.Fatal(err)
	}
	var table []string
	for _, c := range cases {
		table = append(table, c.Code)
	}
	slices.Sort(table)
	table = slices.Compact(table)
	source := slices.Sorted(slices.Values(sourceCodes(t)))
	if !slices.Equal(table, source) {
		t.Errorf("codes:\ntable  %q\nsource %q", table, source)
	}
}
