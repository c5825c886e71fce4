# Everything here needs only Go and make. deploy/ephemeral/install.sh installs what the
# tests need in addition.

GO       ?= go
FUZZTIME ?= 5s

# The version of the program: the tag of a release, otherwise the commit.
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

PROGRAM = bin/commerce
BUILD   = $(GO) build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o $(PROGRAM) ./cmd/commerce

# All go commands leave out Gin's MessagePack codec, which the service does not use. It
# takes a quarter of the compile time and 9 MB of the program.
ifeq (,$(findstring nomsgpack,$(GOFLAGS)))
export GOFLAGS := $(GOFLAGS) -tags=nomsgpack
endif

# Runs a command with a Redis, a Redis Cluster and a Postgres server, whose URLs are in
# the command's environment.
WITH_SERVERS = sh $(CURDIR)/deploy/ephemeral/install.sh $(GO) run commerce/deploy/ephemeral/run --

# Separate modules, so that the service's module does not need their dependencies: benchmarks, the
# tests of the files in deploy with the mutants, and the generators of clients.
MODULES = cmd/bench deploy/check deploy/clients

.DEFAULT_GOAL := help
.PHONY: run test verify mutants race lint build release sign bench peers compare fuzz torture schedules histories examples screenshots help all-tests go-fuzz

run: ## run the demo with sample data, without Redis or Postgres
	@echo "Downloading modules and compiling the demo. The first time takes a few minutes; later it takes seconds."
	@$(BUILD) & build=$$!; while sleep 10; do echo "Still compiling."; done & wait $$build; status=$$?; kill $$!; exit $$status
	@$(PROGRAM) demo

test: ## run the tests on real servers (4 minutes); slow ones only in make verify
	@rm -rf bin/tests
	$(WITH_SERVERS) $(TESTS) ./... $(QUICK) -short
	@$(TESTS)

verify: ## run all other tests: races, failures, browsers, large tables, pages, fuzzing (25 minutes)
	$(WITH_SERVERS) $(MAKE) --no-print-directory all-tests go-fuzz
	sh deploy/pages.sh
	@$(TESTS) && rm -rf bin/tests

race: PACKAGES = ./...
race: ## run the tests of PACKAGES (all) with the race detector (needs a C compiler)
	CGO_ENABLED=1 $(WITH_SERVERS) $(TESTS) '$(PACKAGES)' -vet=off -race -timeout 40m

lint: ## run gofumpt, go vet and staticcheck
	@unformatted=$$($(GO) tool gofumpt -l .) && [ -z "$$unformatted" ] || { \
		echo "not formatted (go tool gofumpt -w .):" $$unformatted; exit 1; }
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	staticcheck=$$($(GO) tool -n staticcheck) && for module in $(MODULES); do \
		(cd $$module && $(GO) vet ./... && $$staticcheck ./...) || exit 1; done

build: ## build the service as bin/commerce
	$(BUILD)

release: OUT = bin/release
release: VERSION = $(shell git describe --tags --always)
release: ## build VERSION (the commit) for all platforms, with SBOMs and checksums, in OUT (bin/release)
	@GO=$(GO) sh deploy/release.sh "$(VERSION)" "$(abspath $(OUT))"
	@if [ -n "$(SIGNING_KEY)" ]; then $(MAKE) --no-print-directory sign OUT="$(OUT)"; else \
		echo "not signed: SIGNING_KEY names no file with an SSH key"; fi

sign: OUT = bin/release
sign: ## sign the checksums of the release in OUT (bin/release) with the SSH key in the file SIGNING_KEY
	ssh-keygen -q -Y sign -n commerce -f "$(SIGNING_KEY)" "$(abspath $(OUT))/SHA256SUMS"

bench: OUT = bin/bench
bench: ## compare the service to minimal programs; tables in OUT (bin/bench)
	$(WITH_SERVERS) $(GO) -C cmd/bench run . -out $(abspath $(OUT))

peers: OUT = bin/peers
peers: ## compare the service to Vendure, Medusa and a small cart on Node; tables in OUT (bin/peers)
	$(WITH_SERVERS) $(GO) -C cmd/bench run . peers -connections 16 -turn 8s -out $(abspath $(OUT))

mutants: ## check that the tests still kill the mutants of deploy/check/mutants (an hour)
	$(GO) -C deploy/check build -o $(CURDIR)/bin/mutants ./mutants
	$(WITH_SERVERS) bin/mutants

compare: COMMIT = main
compare: PACKAGES = ./...
compare: ## compare microbenchmarks of PACKAGES (all) with those of COMMIT (main)
	$(WITH_SERVERS) env GO=$(GO) sh deploy/compare.sh $(COMMIT) $(PACKAGES)

fuzz: FUZZTIME = 10m
fuzz: ## run each fuzz target for FUZZTIME (10m)
	$(WITH_SERVERS) $(MAKE) --no-print-directory go-fuzz FUZZTIME=$(FUZZTIME)

torture: PROMISE = ..
torture: LONG = true
torture: OUT = bin/torture
torture: ## test docs/guarantees.md while servers fail; PROMISE=07 tests one promise
	$(GO) test -c -o bin/torture.test ./cmd/internal/torture
	cd cmd/internal/torture && $(WITH_SERVERS) ../../../bin/torture.test -test.run '^TestPromise$(PROMISE)_' \
		-test.parallel 1 -test.timeout 0 -long=$(LONG) -out $(abspath $(OUT))

schedules: SCHEDULES = 1000000
schedules: SEED = 1
schedules: ## test SCHEDULES (1000000) request interleavings from SEED (1) on
	$(GO) test -c -o bin/redisstore.test ./cart/redisstore
	GOGC=600 bin/redisstore.test -test.run 'TestSchedules$$' -test.v -test.timeout 0 \
		-schedules $(SCHEDULES) -seed $(SEED)

examples: ## write the service's answers to the examples in docs/openapi.yaml
	$(GO) test ./cmd/internal/server -run '^TestExamples' -count 1 -update

screenshots: ## take the README's moving picture anew (needs Chromium and img2webp)
	$(GO) test ./docs/e2e -run '^TestReadme_ShowsThePlayground$$' -count 1 -update

histories: HISTORIES = 100
histories: ## test HISTORIES (100) random histories of changes and their followers
	$(WITH_SERVERS) $(GO) test -timeout 2h -count 1 -run TestFollower ./subscriptions/feed/follower -histories $(HISTORIES)

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

# Without vet, because make lint runs it. Tests mostly wait for servers, so more of them run at
# the same time than there are CPUs.
QUICK = -vet=off -timeout 40m -parallel 6

# Runs tests. Each that fails runs once more, alone. Without arguments, it lists those that passed then.
# Benchmarks run without it, because gotestsum counts each as failed.
TESTS = sh $(CURDIR)/deploy/test.sh

# Packages whose tests also run on Valkey.
VALKEY = ./auth/limit ./cart/redisstore ./cart/service ./deploy/connect ./deploy/inspect

# Packages with tests that make test leaves out or makes shorter.
SLOW = $(shell grep -rlE 'ephemeral\.Slow|testing\.Short' --include '*_test.go' $(foreach other,$(ALONE) $(MODULES),--exclude-dir $(notdir $(other))) . \
	| xargs -n 1 dirname | sort -u)

# Packages whose quick tests also run with the race detector, which makes the slow ones take half an
# hour (make race), and those whose tests load the machine or measure time, which run alone. Each
# benchmark runs once, so that it stays correct.
RACE  = ./auth/... ./cart/... ./subscriptions/...
ALONE = ./cmd/internal/torture
ONCE  = -run '^$$' -bench . -benchtime 1x

all-tests: export PLAYGROUND_SCREENSHOTS = $(CURDIR)/bin/screenshots
all-tests:
	CGO_ENABLED=1 $(TESTS) '$(RACE)' $(QUICK) -race -short
	$(TESTS) "$(SLOW)" $(QUICK) -run "$$(sh deploy/slow.sh $(SLOW))"
	TEST_REDIS_URL= TEST_REDIS_CLUSTER_URL= TEST_REDIS_SERVER=valkey-server $(GO) run ./deploy/ephemeral/run -- \
		$(TESTS) '$(VALKEY)' $(QUICK) -short
	$(TESTS) $(ALONE) $(QUICK) -p 1
	$(GO) test $(QUICK) -p 1 $(ONCE) $$(grep -rl '^func Benchmark' --include '*_test.go' . | xargs -n 1 dirname | sort -u)
	failed=; for module in $(MODULES); do (cd $$module && $(TESTS) ./... $(QUICK) -p 1) || failed="$$failed $$module"; done; \
		[ -z "$$failed" ] || { echo "failed:$$failed"; exit 1; }

go-fuzz:
	GO=$(GO) sh deploy/fuzz.sh $(FUZZTIME)
