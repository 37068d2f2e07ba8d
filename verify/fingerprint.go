package verify

import (
	"crypto/sha256"
	"encoding/hex"
)

// Fingerprint returns a key for what depends on the authority, such as a cached
// result: 64 hexadecimal digits. Two authorities have the same fingerprint if and
// only if they are the same: the same launcher path, byte for byte, and the same
// value of the state. White space, the order of members and the spelling of strings
// do not count in that, while number literals count as they are written, as where
// the two names of the state are compared.
//
// It is the SHA-256 of both, in a form of this package's own, and does not change
// from one release to the next. The options of a command are no part of it.
func (a *Authority) Fingerprint() string { return fingerprint(a.metadata.state, a.Launcher()) }

func fingerprint(state []byte, launcher string) string {
	hash := sha256.New()
	// A path has no NUL, so that where it ends is certain.
	hash.Write([]byte("mcp-sandbox-exec authority 1\x00" + launcher + "\x00"))
	hash.Write(canonical(state))
	return hex.EncodeToString(hash.Sum(nil))
}

// sameAuthority reports whether two calls have the same authority, without a hash.
func sameAuthority(stateA []byte, launcherA string, stateB []byte, launcherB string) bool {
	return launcherA == launcherB && sameValue(stateA, stateB)
}
