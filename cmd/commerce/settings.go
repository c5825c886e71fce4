package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/auth/quota"
	"commerce/cart"
	"commerce/cart/redisstore"
	"commerce/cmd/internal/jsonlog"
	"commerce/cmd/internal/server"
	"commerce/cmd/internal/telemetry"
	"commerce/cmd/internal/tracing"
	"commerce/deploy/connect"
	"commerce/deploy/heap"
)

// settings are the settings of both demo and serve. A new one needs a field here, its
// check in faults, its use in parts, and a row in docs/operations.md.
type settings struct {
	Addr      string `env:"ADDR" default:":8080" help:"Address of the public API."`
	AdminAddr string `env:"ADMIN_ADDR" default:"127.0.0.1:9090" help:"Address of health checks, metrics and profiles. Must not be public."`
	Pprof     string `name:"pprof" env:"PPROF" placeholder:"on|off" help:"on or off: serve profiles at /debug/pprof/ of ADMIN_ADDR. Default: on if that is a loopback address, otherwise off."`

	JWT jwtSettings `embed:""`

	GuestCartTTL    time.Duration `name:"guest-cart-ttl" env:"GUEST_CART_TTL" default:"720h" help:"How long a guest's cart is kept after its last use."`
	CustomerCartTTL time.Duration `name:"customer-cart-ttl" env:"CUSTOMER_CART_TTL" default:"2160h" help:"How long a customer's cart is kept after its last use."`
	MergeStrategy   string        `env:"MERGE_STRATEGY" default:"sum" help:"Quantity of a line that is in both the guest's and the customer's cart: sum, max, guest or customer."`
	DefaultStore    int64         `env:"DEFAULT_STORE" placeholder:"ID" help:"Store of cart calls that name no store. Default: 1 in the demo, otherwise the only store if there is just one."`

	RedisMinReplicas int64  `name:"redis-min-replicas" env:"REDIS_MIN_REPLICAS" default:"0" help:"Minimum number of replicas of each Redis master, at most ${max_replicas}. A merge on login waits for this many, connected or not."`
	RedisBatchReads  string `name:"redis-batch-reads" env:"REDIS_BATCH_READS" default:"on" help:"on or off: concurrent reads of carts share round trips to Redis."`
	Durability       string `env:"DURABILITY" default:"memory" help:"memory or replica. With replica, each change waits up to half a second for all replicas, and the response says whether they have it."`

	MaxLines    int64 `env:"MAX_LINES" default:"${lines}" help:"Maximum lines of a cart; at most ${max_lines}."`
	MaxQuantity int64 `env:"MAX_QUANTITY" default:"${quantity}" help:"Maximum quantity of a line; at most ${max_quantity}."`
	MaxLineText int64 `env:"MAX_LINE_TEXT" default:"${line_text}" help:"Maximum bytes of text (fields and notice) of a line; at most ${max_text}."`
	MaxCartText int64 `env:"MAX_CART_TEXT" default:"${cart_text}" help:"Maximum bytes of text of a cart; at most ${max_text}."`

	BasePath       string   `env:"BASE_PATH" placeholder:"PATH" help:"Path in front of every route, such as /api."`
	PublicURL      string   `name:"public-url" env:"PUBLIC_URL" placeholder:"URL" help:"URL that clients use, for page links. Default: taken from the request, or from a proxy in TRUSTED_PROXIES."`
	CORSOrigins    []string `name:"cors-origins" env:"CORS_ORIGINS" placeholder:"ORIGIN" help:"Browser origins to allow, or * for all. Default: * in the demo, otherwise none."`
	RateLimit      string   `env:"RATE_LIMIT" default:"on" help:"on or off. Turn it off if a gateway limits requests."`
	CreateLimit    string   `env:"CREATE_LIMIT" default:"200/s,20000/h" help:"Carts that the guests of one address (IPv6: /64 network) may create, as rates per s, m or h, or off. No limit if RATE_LIMIT is off."`
	MaxInFlight    int64    `env:"MAX_IN_FLIGHT" placeholder:"N" help:"Requests of carts, and of subscriptions, that are worked on at the same time; at most ${max_in_flight}. Further ones get a 503. Default: ${in_flight_per_cpu} for each CPU."`
	H2C            string   `name:"h2c" env:"H2C" default:"off" help:"on or off: also accept HTTP/2 without TLS, for a proxy that uses it."`
	TrustedProxies []string `env:"TRUSTED_PROXIES" placeholder:"NETWORK" help:"Addresses or networks of proxies whose X-Forwarded-For, X-Forwarded-Proto and X-Forwarded-Host headers are trusted. Default: none."`
	Playground     string   `env:"PLAYGROUND" placeholder:"on|off" help:"on or off: serve a page at / to try the API. Default: on in the demo, otherwise off."`
	Docs           string   `env:"DOCS" placeholder:"on|off" help:"on or off: serve the API reference at /docs. Default: on in the demo, otherwise off."`

	MemoryLimit string `env:"MEMORY_LIMIT" placeholder:"SIZE" help:"Soft limit of the process's memory, in bytes or with a suffix, such as 512MiB. Default: 90 % of the cgroup's limit, if it has one."`

	LogLevel  string `env:"LOG_LEVEL" default:"info" help:"debug, info, warn or error."`
	LogFormat string `env:"LOG_FORMAT" placeholder:"json|text" help:"json or text. Default: text in the demo, otherwise json."`
}

// faults checks the settings of both demo and serve.
func (s *settings) faults() faults {
	var f faults
	f.add("ADDR", checkAddr(s.Addr))
	f.add("ADMIN_ADDR", checkAddr(s.AdminAddr))
	f.add("PPROF", oneOf(s.Pprof, "", "on", "off"))
	f.add(s.JWT.name(), s.JWT.fault())
	f.add("GUEST_CART_TTL", checkTTL(s.GuestCartTTL))
	f.add("CUSTOMER_CART_TTL", checkTTL(s.CustomerCartTTL))
	_, err := cart.ParseStrategy(s.MergeStrategy)
	f.add("MERGE_STRATEGY", err)
	if s.DefaultStore < 0 {
		f.add("DEFAULT_STORE", errors.New("must be a store's id"))
	}
	f.add("REDIS_MIN_REPLICAS", within(s.RedisMinReplicas, 0, maxReplicas))
	f.add("REDIS_BATCH_READS", oneOf(s.RedisBatchReads, "on", "off"))
	f.add("DURABILITY", oneOf(s.Durability, "memory", "replica"))
	f.add("MAX_LINES", within(s.MaxLines, 1, cart.MaxLines))
	f.add("MAX_QUANTITY", within(s.MaxQuantity, 1, cart.MaxQuantity))
	f.add("MAX_LINE_TEXT", within(s.MaxLineText, 1, cart.MaxText))
	f.add("MAX_CART_TEXT", within(s.MaxCartText, 1, cart.MaxText))
	f.add("BASE_PATH", checkPath(s.BasePath))
	f.add("PUBLIC_URL", checkURL(s.PublicURL))
	for _, origin := range s.CORSOrigins {
		f.add("CORS_ORIGINS", checkOrigin(origin))
	}
	f.add("RATE_LIMIT", oneOf(s.RateLimit, "on", "off"))
	_, err = quota.Parse(s.CreateLimit)
	f.add("CREATE_LIMIT", err)
	f.add("MAX_IN_FLIGHT", within(s.MaxInFlight, 0, maxInFlight))
	f.add("H2C", oneOf(s.H2C, "on", "off"))
	for _, proxy := range s.TrustedProxies {
		f.add("TRUSTED_PROXIES", checkNetwork(proxy))
	}
	f.add("PLAYGROUND", oneOf(s.Playground, "", "on", "off"))
	f.add("DOCS", oneOf(s.Docs, "", "on", "off"))
	_, err = heap.ParseSize(s.MemoryLimit)
	f.add("MEMORY_LIMIT", err)
	_, err = parseLevel(s.LogLevel)
	f.add("LOG_LEVEL", err)
	f.add("LOG_FORMAT", oneOf(s.LogFormat, "", "json", "text"))
	for name, err := range tracing.Faults(os.Getenv) {
		f.add(name, err)
	}
	return f
}

// parts returns the parts of the service that depend on these settings alone.
func (s *settings) parts(log *slog.Logger) (server.Parts, error) {
	metrics := telemetry.New(version)
	s.JWT.reachable = func(up bool) { metrics.DependencyUp("issuer", up) }
	tokens, err := s.JWT.verifier()
	if err != nil {
		return server.Parts{}, err
	}
	var playground *server.Playground
	if s.Playground == "on" {
		playground = &server.Playground{}
	}
	return server.Parts{
		JWT:          tokens,
		DefaultStore: s.DefaultStore,
		CartTTL:      redisstore.TTLs{Guest: s.GuestCartTTL, Customer: s.CustomerCartTTL},
		CartLimits: cart.Limits{
			Lines: s.MaxLines, Quantity: s.MaxQuantity, LineText: s.MaxLineText, CartText: s.MaxCartText,
		},
		Strategy: cart.Strategy(s.MergeStrategy),
		Durable:  s.Durability == "replica",

		RedisMinReplicas: int(s.RedisMinReplicas),
		RedisBatchReads:  s.RedisBatchReads == "on",

		BasePath:       strings.TrimSuffix(s.BasePath, "/"),
		PublicURL:      strings.TrimRight(s.PublicURL, "/"),
		CORSOrigins:    s.CORSOrigins,
		RateLimit:      s.RateLimit == "on",
		MaxInFlight:    int(s.MaxInFlight),
		TrustedProxies: s.TrustedProxies,
		Log:            log,
		Metrics:        metrics,
		Playground:     playground,
		Reference:      s.Docs == "on",
	}, nil
}

// limitMemory applies MEMORY_LIMIT. Without a limit the service still works, so a failure is
// only logged.
func (s *settings) limitMemory(log *slog.Logger) {
	limit, _ := heap.ParseSize(s.MemoryLimit) // faults has checked it
	if _, err := heap.Configure(limit); err != nil {
		log.Warn("starting without a memory limit", "err", err)
	}
}

// logger returns a logger that writes to standard error; standard output is for
// people. It also sets the logger of go-redis and of s.JWT.
func (s *settings) logger(out output) *slog.Logger {
	level, _ := parseLevel(s.LogLevel) // faults has checked it
	var handler slog.Handler = jsonlog.New(out.errors, level)
	if s.LogFormat == "text" {
		handler = slog.NewTextHandler(out.errors, &slog.HandlerOptions{Level: level})
	}
	log := slog.New(handler)
	redis.SetLogger(connect.RedisLog{Log: log}) // go-redis has one logger for the whole process
	s.JWT.log = log
	return log
}

func parseLevel(s string) (level slog.Level, err error) {
	if level.UnmarshalText([]byte(s)) != nil {
		return 0, fmt.Errorf("%q is not one of debug, info, warn, error", s)
	}
	return level, nil
}
