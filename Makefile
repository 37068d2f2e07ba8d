GO ?= go
PROGRAM = mcp-sandbox-exec
PREFIX ?= /usr/local
DESTDIR ?=
# A number of inputs: at the end of a time, Go 1.26 now and then fails a target that
# found nothing (golang/go#75804).
FUZZTIME ?= 100000x
RACE ?=

# No cgo, which only the race detector needs: the program is static. -w leaves the
# symbols, which a vulnerability scanner reads. The tag leaves out a part of the
# library for options that would cost half a millisecond at each start.
BUILD = CGO_ENABLED=$(if $(RACE),1,0) $(GO) build $(RACE) -trimpath -tags urfave_cli_no_docs -ldflags -w
TOOL = $(GO) tool -modfile=tools/go.mod

.PHONY: help build demo test race fuzz e2e lint vulncheck install clean

help: ## list these targets
	@sed -n 's/^\([a-z0-9]*\):.*## \(.*\)/  make \1	\2/p' Makefile | expand -t 20

build: ## build ./mcp-sandbox-exec
	$(BUILD) -o "$(PROGRAM)" ./cmd/mcp-sandbox-exec

demo: build ## run real commands in the sandbox of a recorded tool call (needs npm, or CODEX=/path)
	@examples/demo.sh

# Never from the cache: the scripts run the program that they build, and Go does
# not know that they depend on it.
test: ## run the unit tests and the scripts
	$(GO) test -count=1 ./...

# At its end a program would wait for a second, for races that are yet to come.
race: ## run them with the race detector in the tests and in the program (needs a C compiler)
	CGO_ENABLED=1 RACE=-race GORACE=atexit_sleep_ms=0 $(GO) test -race -count=1 ./...

fuzz: ## run each fuzz target for FUZZTIME, a number of inputs
	@for file in $$(grep -rl --include='*_test.go' '^func Fuzz' .); do \
		for target in $$(sed -n 's/^func \(Fuzz[A-Za-z]*\).*/\1/p' $$file); do \
			echo "$$target" && \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x "$$(dirname $$file)" || exit 1; \
		done; \
	done

e2e: ## run the whole with real Codex versions (needs bash, jq and npm)
	$(GO) test -tags e2e -count=1 -v ./e2e

lint: ## run gofumpt, go vet, staticcheck and mandoc
	@files=$$($(TOOL) gofumpt -l .); [ -z "$$files" ] || { echo "gofumpt would change:"; echo "$$files"; exit 1; }
	$(GO) vet ./...
	$(GO) vet -tags e2e ./e2e
	$(TOOL) staticcheck ./...
	$(TOOL) staticcheck -tags e2e ./e2e
	for t in linux/arm64 darwin/arm64 darwin/amd64; do \
		GOOS=$${t%/*} GOARCH=$${t#*/} $(GO) build ./... && \
		GOOS=$${t%/*} GOARCH=$${t#*/} $(GO) vet -tags e2e ./... || exit 1; \
	done
	mandoc -T lint man/mcp-sandbox-exec.1

vulncheck: ## look for known vulnerabilities (needs the vulnerability database)
	@said=$$($(TOOL) govulncheck ./... 2>&1); status=$$?; echo "$$said"; \
	case $$said in *"fetching vulnerabilities"*) \
		echo "the vulnerability database is out of reach: nothing was checked" ;; \
	esac; exit $$status

install: build ## install the program and its manual below $(DESTDIR)$(PREFIX)
	install -d "$(DESTDIR)$(PREFIX)/bin" "$(DESTDIR)$(PREFIX)/share/man/man1"
	install -m 755 "$(PROGRAM)" "$(DESTDIR)$(PREFIX)/bin/mcp-sandbox-exec"
	install -m 644 man/mcp-sandbox-exec.1 "$(DESTDIR)$(PREFIX)/share/man/man1/"

clean: ## remove what was built, fetched and tried out
	rm -rf mcp-sandbox-exec .codex .demo
