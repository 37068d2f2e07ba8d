// Package testprogram is for tests that need a native program to execute: a copy
// of their own, which they make before they start any process.
package testprogram

import "os"

// Own returns the content of the program that runs.
func Own() ([]byte, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}
