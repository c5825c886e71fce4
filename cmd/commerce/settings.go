package main

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/auth"
	"commerce/cart"
	"commerce/cart/redisstore"
	"commerce/cmd/internal/server"
	"commerce/deploy/connect"
)

// settings are what demo and serve have in common.
type settings struct {
	Addr      string `env:"ADDR" default:":8080" help:"Address of the public side."`
	AdminAddr string `env:"ADMIN_ADDR" default:"127.0.0.1:9090" help:"Address of health, metrics and profiles; never a public one."`
	Pprof     string `name:"pprof" env:"PPROF" help:"on or off: profiles at /debug/pprof/ of ADMIN_ADDR. Default: on if that is a loopback address, else off."`

	JWT jwtSettings `embed:""`

	GuestCartTTL    time.Duration `name:"guest-cart-ttl" env:"GUEST_CART_TTL" default:"720h" help:"How long a guest's cart lives after it was last used."`
	CustomerCartTTL time.Duration `name:"customer-cart-ttl" env:"CUSTOMER_CART_TTL" default:"2160h" help:"How long a customer's cart lives after it was last used."`
	MergeStrategy   string        `env:"MERGE_STRATEGY" default:"sum" help:"Quantity of a line that guest and customer both have: sum, max, guest or customer."`
	DefaultStore    int64         `env:"DEFAULT_STORE" help:"Store of cart calls that name none. Default: the only store, when there is one."`

	RedisMinReplicas int64 `name:"redis-min-replicas" env:"REDIS_MIN_REPLICAS" default:"0" help:"Minimum number of replicas of each Redis master. A merge on login waits for this many, connected or not."`

	Durability string `env:"DURABILITY" default:"memory" help:"memory, or replica: a change waits, for a bounded time, for every replica and says whether they have it."`

	MaxLines    int64 `env:"MAX_LINES" default:"100" help:"Lines of a cart, 500 at most."`
	MaxQuantity int64 `env:"MAX_QUANTITY" default:"999" help:"Quantity of one line, 10000 at most."`
	MaxLineText int64 `env:"MAX_LINE_TEXT" default:"4096" help:"Bytes of fields and notice of one line, 1000000 at most."`
	MaxCartText int64 `env:"MAX_CART_TEXT" default:"65536" help:"Bytes of fields and notices of a cart, 1000000 at most."`

	BasePath       string   `env:"BASE_PATH" help:"Path in front of every route, such as /api."`
	PublicURL      string   `name:"public-url" env:"PUBLIC_URL" help:"URL by which clients reach the service, for page links. Default: what the request says, or a proxy of TRUSTED_PROXIES."`
	CORSOrigins    []string `name:"cors-origins" env:"CORS_ORIGINS" help:"Browser origins to let in, or *. Default: * in the demo, else none."`
	RateLimit      string   `env:"RATE_LIMIT" default:"on" help:"on, or off where a gateway limits."`
	TrustedProxies []string `env:"TRUSTED_PROXIES" help:"Addresses or networks whose X-Forwarded-For, X-Forwarded-Proto and X-Forwarded-Host are believed. Default: none."`
	Playground     string   `env:"PLAYGROUND" help:"on or off: the page at / that tries the API. Default: on in the demo, else off."`

	LogLevel  string `env:"LOG_LEVEL" default:"info" help:"debug, info, warn or error."`
	LogFormat string `env:"LOG_FORMAT" help:"json or text. Default: text in the demo, else json."`
}

// jwtSettings are all that making and checking a customer's token takes.
type jwtSettings struct {
	Secret   string `name:"jwt-secret" env:"JWT_SECRET" secret:"" help:"Secret of customers' tokens (HS256), 32 bytes or more."`
	Previous string `name:"jwt-secret-previous" env:"JWT_SECRET_PREVIOUS" secret:"" help:"Secret that is still accepted while it is being replaced."`
	JWKSURL  string `name:"jwt-jwks-url" env:"JWT_JWKS_URL" help:"Where the issuer publishes its keys (RS256, ES256, EdDSA), in the place of a secret."`
	Issuer   string `name:"jwt-issuer" env:"JWT_ISSUER" help:"Issuer that tokens must name. Default: any."`
	Audience string `name:"jwt-audience" env:"JWT_AUDIENCE" help:"Audience that tokens must name. Default: any."`

	log *slog.Logger // of a service; nil in commands, which fetch no keys
}

// fault says what is wrong with the settings.
func (j jwtSettings) fault() error {
	_, err := j.verifier()
	return err
}

// verifier returns what checks and makes customers' tokens, or an error about
// JWT_SECRET that may name another of these settings in its place.
// name is the setting that a fault of these is about.
func (j jwtSettings) name() string {
	if j.Secret == "" && j.JWKSURL != "" {
		return "JWT_JWKS_URL"
	}
	return "JWT_SECRET"
}

func (j jwtSettings) verifier() (*auth.JWT, error) {
	config := auth.JWTConfig{
		Secret: []byte(j.Secret), PreviousSecret: []byte(j.Previous), Issuer: j.Issuer, Audience: j.Audience,
	}
	switch {
	case j.Secret == "" && j.JWKSURL == "":
		return nil, errors.New("is required, or JWT_JWKS_URL in its place")
	case j.Secret != "" && j.JWKSURL != "":
		return nil, errors.New("JWT_SECRET and JWT_JWKS_URL are both set; set only one")
	case j.JWKSURL != "":
		keys, err := auth.NewJWKS(auth.JWKSConfig{URL: j.JWKSURL, Log: j.log})
		if err != nil {
			return nil, err
		}
		config.JWKS = keys
	}
	return auth.NewJWT(config)
}

// parts returns the parts of the service that depend on these settings alone.
func (s *settings) parts(log *slog.Logger) (server.Parts, error) {
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

		BasePath:       strings.TrimSuffix(s.BasePath, "/"),
		PublicURL:      strings.TrimRight(s.PublicURL, "/"),
		CORSOrigins:    s.CORSOrigins,
		RateLimit:      s.RateLimit == "on",
		TrustedProxies: s.TrustedProxies,
		Log:            log,
		Metrics:        server.NewMetrics(),
		Playground:     playground,
	}, nil
}

// logger writes to standard error, so that standard output stays for people. What
// the settings make from then on logs there too.
func (s *settings) logger(out output) *slog.Logger {
	level, _ := parseLevel(s.LogLevel) // checked
	options := &slog.HandlerOptions{Level: level}
	var handler slog.Handler = slog.NewJSONHandler(out.errors, options)
	if s.LogFormat == "text" {
		handler = slog.NewTextHandler(out.errors, options)
	}
	log := slog.New(handler)
	redis.SetLogger(connect.RedisLog{Log: log}) // go-redis has one log for the process
	s.JWT.log = log
	return log
}

func parseLevel(s string) (level slog.Level, err error) {
	if level.UnmarshalText([]byte(s)) != nil {
		return 0, fmt.Errorf("%q is none of debug, info, warn, error", s)
	}
	return level, nil
}
