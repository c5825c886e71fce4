# Everything here needs Go and make alone; what tests need besides is installed
# by deploy/ephemeral/install.sh.

GO       ?= go
FUZZTIME ?= 5s

# What the program calls itself: the release's tag, or else the commit.
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

# Every go command leaves out Gin's MessagePack codec, which the service does not
# use. It is a quarter of the compiler's work and 9 MB of the program.
ifeq (,$(findstring nomsgpack,$(GOFLAGS)))
export GOFLAGS := $(GOFLAGS) -tags=nomsgpack
endif

# A command given to this one finds Redis, a Redis Cluster and Postgres by its
# environment.
WITH_SERVERS = sh deploy/ephemeral/install.sh $(GO) run ./deploy/ephemeral/run --

.DEFAULT_GOAL := help
.PHONY: run test race lint build bench fuzz torture schedules help go-test go-fuzz

run: ## the demo: no services, sample data, playground at its root
	@echo "Compiling the demo. The first time takes a minute or two; later it takes seconds."
	@$(GO) run ./cmd/commerce demo

test: ## every test, on real servers, and a few seconds of each fuzz target
	$(WITH_SERVERS) $(MAKE) --no-print-directory go-test go-fuzz

race: ## every test under the race detector (needs a C compiler)
	CGO_ENABLED=1 $(WITH_SERVERS) $(GO) test -race -timeout 20m ./...

lint: ## gofumpt, go vet, staticcheck
	@unformatted=$$($(GO) tool gofumpt -l .) && [ -z "$$unformatted" ] || { \
		echo "not formatted (go tool gofumpt -w .):" $$unformatted; exit 1; }
	$(GO) vet ./...
	$(GO) tool staticcheck ./...

build: ## the service, as bin/commerce
	$(GO) build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/commerce ./cmd/commerce

bench: ## CPU per request of lists and carts, compared to floor programs
	$(WITH_SERVERS) $(GO) run ./cmd/bench

fuzz: FUZZTIME = 10m
fuzz: ## each fuzz target for FUZZTIME (10m)
	$(WITH_SERVERS) $(MAKE) --no-print-directory go-fuzz FUZZTIME=$(FUZZTIME)

torture: TORTURE = 10m
torture: ## retries across logins while Redis nodes freeze and die, for TORTURE (10m)
	$(WITH_SERVERS) $(GO) test -timeout 2h -count 1 -v -run TestTorture ./cmd/internal/server -torture $(TORTURE)

schedules: SCHEDULES = 1000000
schedules: SEED = 1
schedules: ## SCHEDULES (1000000) orders of the steps of requests, from SEED on
	$(GO) test -c -o bin/redisstore.test ./cart/redisstore
	sh deploy/ephemeral/install.sh bin/redisstore.test -test.run 'TestSchedules$$' -test.timeout 0 \
		-schedules $(SCHEDULES) -seed $(SEED)

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' Makefile

# Packages whose tests load the machine run alone, one after the other: others look at
# how the service behaves in time.
LOADS = ./cart/redisstore ./cmd/bench

go-test:
	$(GO) test -timeout 6m $$($(GO) list ./... | grep -vx $(patsubst ./%,-e commerce/%,$(LOADS)))
	$(GO) test -timeout 6m -p 1 $(LOADS)

go-fuzz:
	GO=$(GO) sh deploy/fuzz.sh $(FUZZTIME)
