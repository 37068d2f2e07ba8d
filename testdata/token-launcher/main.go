// Command token-launcher is a launcher whose file says who it is: its last eight
// bytes are a token, which can be changed in place. A token that begins with G
// is that of a launcher that passes the probe.
//
// It adds a line for each probe to the file that RECORD names, with its token,
// and otherwise prints its token and the state.
package main

import (
	"fmt"
	"os"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(99)
	}
}

func run() error {
	// The very file that is executed, and nobody can write it while it is.
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	info, err := self.Stat()
	if err != nil {
		return err
	}
	token := make([]byte, 8)
	if _, err := self.ReadAt(token, info.Size()-int64(len(token))); err != nil {
		return err
	}
	if os.Args[len(os.Args)-1] != "--help" {
		_, err := fmt.Printf("%s %s\n", token, os.Args[3])
		return err
	}
	if record := os.Getenv("RECORD"); record != "" {
		f, err := os.OpenFile(record, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(f, "%s\n", token); err != nil {
			return err
		}
	}
	if token[0] == 'G' {
		fmt.Println("      --sandbox-state-json <JSON>")
	}
	return nil
}
