package verify

// A Code names the reason of a refusal. Codes are stable: programs may compare
// them, and a release never changes the meaning of one.
type Code string

// The codes, in the order of the steps that a call passes through.
const (
	// CodeUsage: the command line is wrong.
	CodeUsage Code = "usage"
	// CodeCommandMalformed: the command is empty, or not UTF-8.
	CodeCommandMalformed Code = "command-malformed"
	// CodeMetadataUnreadable: a source cannot be opened or read, or is too large.
	CodeMetadataUnreadable Code = "metadata-unreadable"
	// CodeMetadataMalformed: a source is not one UTF-8 JSON value, or a member
	// that is read stands twice or has the wrong type.
	CodeMetadataMalformed Code = "metadata-malformed"
	// CodeMetadataMissing: the call carries no sandbox metadata at all.
	CodeMetadataMissing Code = "metadata-missing"
	// CodeStateMissing: there is a launcher, but no state.
	CodeStateMissing Code = "state-missing"
	// CodeStateMalformed: the state is null.
	CodeStateMalformed Code = "state-malformed"
	// CodeStateConflict: the two names of the state hold different values.
	CodeStateConflict Code = "state-conflict"
	// CodeStateTooLarge: the state does not fit into one argument.
	CodeStateTooLarge Code = "state-too-large"
	// CodeStateUnconfined: the state lets commands run unconfined, which
	// [Options.RequireConfined] forbids.
	CodeStateUnconfined Code = "state-unconfined"
	// CodeLauncherMissing: there is a state, but no launcher was named.
	CodeLauncherMissing Code = "launcher-missing"
	// CodeLauncherMalformed: codexExecutable is not a usable path.
	CodeLauncherMalformed Code = "launcher-malformed"
	// CodeLauncherNotFound: there is no file at the launcher's path.
	CodeLauncherNotFound Code = "launcher-not-found"
	// CodeLauncherNotExecutable: the launcher is not a file that this user can run.
	CodeLauncherNotExecutable Code = "launcher-not-executable"
	// CodeLauncherUntrusted: everybody can write the launcher's file or replace
	// it, or it is this program itself.
	CodeLauncherUntrusted Code = "launcher-untrusted"
	// CodeLauncherNotAllowed: the launcher is none of
	// [Options.AllowedLaunchers].
	CodeLauncherNotAllowed Code = "launcher-not-allowed"
	// CodeLauncherIncapable: the probe found no --sandbox-state-json, or not
	// an option that the call needs.
	CodeLauncherIncapable Code = "launcher-incapable"
	// CodeLauncherProbeTimeout: the probe did not end in time.
	CodeLauncherProbeTimeout Code = "launcher-probe-timeout"
	// CodeLauncherChanged: the launcher's file changed between the check and
	// the hand-over, or is open for writing.
	CodeLauncherChanged Code = "launcher-changed"
	// CodeAuthorityChanged: the call has another authority than the one that was
	// retained; see [Records.Compare].
	CodeAuthorityChanged Code = "authority-changed"
	// CodeAuthorityUnknown: no authority is retained for that server, or several
	// are and the environment is not named.
	CodeAuthorityUnknown Code = "authority-unknown"
	// CodeRecordUnusable: the folder of retained authorities or a record in it
	// cannot be read, written or trusted.
	CodeRecordUnusable Code = "record-unusable"
	// CodeExecFailed: the system refused the hand-over.
	CodeExecFailed Code = "exec-failed"
	// CodeOutputFailed: what the program was asked to print could not be written.
	CodeOutputFailed Code = "output-failed"
)

// A Refusal is the one error that this module's packages return when they
// decide against running a command. It never contains the state.
//
// Use [errors.As] to get at it:
//
//	var refusal *verify.Refusal
//	if errors.As(err, &refusal) && refusal.Code == verify.CodeLauncherMissing {
type Refusal struct {
	Code    Code
	Message string // one line, lower case, without the code and a full stop
	Hint    string // what a person can do about it, one line; may be empty
	Err     error  // the system's error behind it; may be nil
}

// Error returns the code and the message, without the hint.
func (r *Refusal) Error() string { return string(r.Code) + ": " + r.Message }

// Unwrap returns the system's error behind the refusal, or nil.
func (r *Refusal) Unwrap() error { return r.Err }
