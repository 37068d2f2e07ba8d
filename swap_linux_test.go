package mcpsandboxexec_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// tokens are the variants of a launcher, each a file of its own: two that pass
// the probe, one that does not, and one that would, but that everybody can write.
var tokens = map[string]os.FileMode{
	"G-first-": 0o755, "G-second": 0o755, "bad-one-": 0o755, "G-writab": 0o777,
}

const untrustedToken = "G-writab"

// makeTokenLaunchers builds the launcher and writes its variants, before any
// test starts a process that could keep them open for writing.
func makeTokenLaunchers(folder string) error {
	program := filepath.Join(folder, "token-launcher")
	build := exec.Command("go", "build", "-o", program, "./testdata/token-launcher")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	text, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	for _, set := range []string{"link", "rename", "rewrite"} {
		if err := os.MkdirAll(filepath.Join(folder, set), 0o755); err != nil {
			return err
		}
		for token, mode := range tokens {
			path := filepath.Join(folder, set, token)
			err := errors.Join(os.WriteFile(path, append(text, token...), mode), os.Chmod(path, mode))
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// Somebody swaps the launcher all the time. What runs is what this run has
// checked and probed, or a file that is known from the cache, or nothing.
func TestLauncherIsSwapped(t *testing.T) {
	runs := 600
	if underRace {
		runs = 90
	}
	_, program, err := findPrograms()
	if err != nil {
		t.Fatal(err)
	}
	names := slices.Sorted(maps.Keys(tokens))
	// A file that is renamed or written has new times, and comes to rest only in
	// a pause.
	burst := map[string]int{"link": 2000, "rename": 5, "rewrite": 1}
	pause := map[string]time.Duration{"link": 6, "rename": 6, "rewrite": 20} // at most, in runs
	ran, changed := int64(0), int64(0)
	for how, swap := range map[string]func(t *testing.T, folder, path, name string){
		// The path is a symbolic link that is turned to another file.
		"link": func(t *testing.T, folder, path, name string) {
			if err := errors.Join(os.Symlink(filepath.Join(folder, name), path+".new"), os.Rename(path+".new", path)); err != nil {
				t.Error(err)
			}
		},
		// The path and another file exchange their names.
		"rename": func(t *testing.T, folder, path, name string) {
			other := filepath.Join(folder, name)
			if err := unix.Renameat2(unix.AT_FDCWD, other, unix.AT_FDCWD, path, unix.RENAME_EXCHANGE); err != nil {
				t.Error(err)
			}
		},
		// The file stays, and its content is changed in place.
		"rewrite": func(t *testing.T, folder, path, name string) {
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if errors.Is(err, unix.ETXTBSY) || name == untrustedToken {
				return
			}
			if err != nil {
				t.Error(err)
				return
			}
			defer f.Close()
			info, err := f.Stat()
			if err == nil {
				_, err = f.WriteAt([]byte(name), info.Size()-int64(len(name)))
			}
			if err != nil {
				t.Error(err)
			}
		},
	} {
		folder := filepath.Join(filepath.Dir(program), how)
		pin := folder + "=sha256:" + fileSum(t, filepath.Join(folder, names[0]))
		for check, options := range map[string][]string{
			"probed": {"--no-cache"},
			"cached": nil,
			"pinned": {"--allow-launcher", pin},
		} {
			t.Run(how+", "+check, func(t *testing.T) {
				path := filepath.Join(folder, names[0])
				if how == "link" {
					path = filepath.Join(t.TempDir(), "launcher")
					swap(t, folder, path, names[0])
				}
				cache, records := t.TempDir(), t.TempDir()
				run := func(record string) string {
					args := slices.Concat(options, []string{"--state", "env:STATE", "--default-launcher", path, "--", "command"})
					return runWhileSwapped(t, exec.Command(program, args...), cache, filepath.Join(records, record), check)
				}
				start := time.Now()
				run("alone")
				aRun := time.Since(start)

				var swaps atomic.Int64
				end := make(chan struct{})
				var swapper, runners sync.WaitGroup
				swapper.Go(func() {
					for {
						select {
						case <-end:
							return
						default:
						}
						swap(t, folder, path, names[rand.IntN(len(names))])
						swaps.Add(1)
						// Many times within a run, and then not for some runs.
						if rand.IntN(burst[how]) == 0 {
							time.Sleep(rand.N(pause[how] * aRun))
						}
					}
				})
				var ended sync.Map // how many runs ended in each way
				count := func(what string) {
					n, _ := ended.LoadOrStore(what, new(atomic.Int64))
					n.(*atomic.Int64).Add(1)
				}
				for worker := range 3 {
					runners.Go(func() {
						for i := range runs / 3 {
							count(run(fmt.Sprint(worker, "-", i)))
						}
					})
				}
				runners.Wait()
				close(end)
				swapper.Wait()
				summary := map[string]int64{}
				ended.Range(func(what, n any) bool { summary[what.(string)] = n.(*atomic.Int64).Load(); return true })
				t.Logf("%d swaps, %d runs: %v", swaps.Load(), runs, summary)
				ran += summary["ran"]
				changed += summary["launcher-changed"]
			})
		}
	}
	if ran == 0 || changed == 0 {
		t.Errorf("%d ran, and %d changed", ran, changed)
	}
}

func fileSum(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))
}

// runWhileSwapped runs the program once, checks what it has run, and returns "ran"
// or the code of the refusal.
func runWhileSwapped(t *testing.T, cmd *exec.Cmd, cache, record, check string) string {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+cache, "RECORD="+record, "STATE={}")
	err := cmd.Run()
	probed, _ := os.ReadFile(record)
	for token := range strings.Lines(string(probed)) {
		if token == untrustedToken+"\n" {
			t.Errorf("a file that everybody can write was run for a probe")
		}
	}
	var exit *exec.ExitError
	switch {
	case err == nil:
		ran, state, _ := strings.Cut(stdout.String(), " ")
		wasProbed := string(probed) == ran+"\n" || check != "probed" && len(probed) == 0
		isPinned := ran == "G-first-" || check != "pinned"
		if !wasProbed || !isPinned || ran[0] != 'G' || ran == untrustedToken || state != "{}\n" {
			t.Errorf("it ran %q, and had probed %q", stdout.String(), probed)
		}
		return "ran"
	case errors.As(err, &exit) && exit.ExitCode() == 125 && stdout.Len() == 0:
		for line := range strings.Lines(stderr.String()) {
			rest := strings.TrimPrefix(line, "mcp-sandbox-exec: ")
			if code, _, _ := strings.Cut(rest, ":"); code != "note" {
				expected := []string{"launcher-changed", "launcher-incapable", "launcher-untrusted"}
				if check == "pinned" {
					expected = append(expected, "launcher-not-allowed")
				}
				if !slices.Contains(expected, code) {
					t.Errorf("the refusal is %s", &stderr)
				}
				return code
			}
		}
		fallthrough
	default:
		t.Errorf("%v: stdout %q, stderr %q", err, &stdout, &stderr)
		return "failed"
	}
}

// Many runs start at once, without a cache that they could use. Each has its own
// state, all of them share the cache.
func TestManyRunsFromAColdCache(t *testing.T) {
	runs := 500
	if underRace {
		runs = 100
	}
	_, program, err := findPrograms()
	if err != nil {
		t.Fatal(err)
	}
	launcher := filepath.Join(filepath.Dir(program), "link", "G-first-")
	cache, records := t.TempDir(), t.TempDir()
	outputs := make([]struct {
		cmd            *exec.Cmd
		stdout, stderr bytes.Buffer
	}, runs)
	for i := range outputs {
		o := &outputs[i]
		// The limit is for a launcher that hangs, not for a machine that is busy.
		o.cmd = exec.Command(program, "--probe-timeout", "10m", "--state", "env:STATE", "--default-launcher", launcher, "--", "command")
		o.cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+cache, "RECORD="+filepath.Join(records, "probes"), fmt.Sprintf("STATE={\"run\":%d}", i))
		o.cmd.Stdout, o.cmd.Stderr = &o.stdout, &o.stderr
	}
	for i := range outputs {
		if err := outputs[i].cmd.Start(); err != nil {
			t.Fatal(err)
		}
	}
	for i := range outputs {
		o := &outputs[i]
		err := o.cmd.Wait()
		if want := fmt.Sprintf("G-first- {\"run\":%d}\n", i); err != nil || o.stdout.String() != want {
			t.Errorf("run %d: %v, %q, %q", i, err, &o.stdout, &o.stderr)
		}
	}
	probes, err := os.ReadFile(filepath.Join(records, "probes"))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d runs, %d of them probed", runs, bytes.Count(probes, []byte("\n")))
	left, err := os.ReadDir(filepath.Join(cache, "mcp-sandbox-exec"))
	if err != nil || len(left) != 1 || strings.HasPrefix(left[0].Name(), "new-") {
		t.Errorf("the cache holds %v, %v", left, err)
	}
	if left, err := os.ReadDir(cache); err != nil || len(left) != 1 {
		t.Errorf("beside the cache there is %v, %v", left, err)
	}
}
