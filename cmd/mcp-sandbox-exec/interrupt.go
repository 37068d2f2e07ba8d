package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// untilInterrupted returns a context that is done with a signal which asks this
// program to end, so that a probe is ended with all of its processes. The
// function ends that again, and this program too if there was such a signal.
func untilInterrupted() (ctx context.Context, end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	caught := make(chan os.Signal, 1)
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM} {
		if !signal.Ignored(s) { // what the caller ignores stays ignored
			signal.Notify(caught, s)
		}
	}
	interrupted := make(chan os.Signal, 1)
	go func() {
		s := <-caught
		cancel()
		interrupted <- s
	}()
	return ctx, func() {
		signal.Stop(caught)
		close(caught)
		if s, ok := (<-interrupted).(syscall.Signal); ok {
			dieBy(s)
		}
		cancel()
	}
}

// dieBy ends this program as the signal would have ended it.
func dieBy(s syscall.Signal) {
	if s != syscall.SIGQUIT { // for which Go would print all of its goroutines
		syscall.Kill(os.Getpid(), s)
	}
	os.Exit(128 + int(s))
}
