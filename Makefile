GO ?= go
PROGRAM = mcp-sandbox-exec
PREFIX ?= /usr/local
DESTDIR ?=

# No cgo: the program is static. -w leaves the symbols, which a vulnerability
# scanner reads. The tag leaves out a part of the library for options that would
# cost half a millisecond at each start.
BUILD = CGO_ENABLED=0 $(GO) build -trimpath -tags urfave_cli_no_docs -ldflags -w
TOOL = $(GO) tool -modfile=tools/go.mod

.PHONY: help build demo test e2e lint install clean

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

install: build ## install the program and its manual below $(DESTDIR)$(PREFIX)
	install -d "$(DESTDIR)$(PREFIX)/bin" "$(DESTDIR)$(PREFIX)/share/man/man1"
	install -m 755 mcp-sandbox-exec "$(DESTDIR)$(PREFIX)/bin/"
	install -m 644 man/mcp-sandbox-exec.1 "$(DESTDIR)$(PREFIX)/share/man/man1/"

clean: ## remove what was built, fetched and tried out
	rm -rf mcp-sandbox-exec .codex .demo
