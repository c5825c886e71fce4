package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/redis/go-redis/v9"

	"commerce/auth"
	"commerce/cart"
	"commerce/cmd/internal/server"
	"commerce/deploy/connect"
)

// settings are what demo and serve have in common.
type settings struct {
	Addr      string `env:"ADDR" default:":8080" help:"Address of the public side."`
	AdminAddr string `env:"ADMIN_ADDR" default:"127.0.0.1:9090" help:"Address of health, metrics and profiles; never a public one."`

	JWT jwtSettings `embed:""`

	GuestCartTTL    time.Duration `name:"guest-cart-ttl" env:"GUEST_CART_TTL" default:"720h" help:"How long a guest's cart lives after it was last used."`
	CustomerCartTTL time.Duration `name:"customer-cart-ttl" env:"CUSTOMER_CART_TTL" default:"2160h" help:"How long a customer's cart lives after it was last used."`
	MergeStrategy   string        `env:"MERGE_STRATEGY" default:"sum" help:"Quantity of a line that guest and customer both have: sum, max, guest or customer."`
	DefaultStore    int64         `env:"DEFAULT_STORE" help:"Store of cart calls that name none. Default: the only store, when there is one."`

	Durability string `env:"DURABILITY" default:"memory" help:"memory, or replica: a change waits, for a bounded time, for every replica and says whether they have it."`

	MaxLines    int64 `env:"MAX_LINES" default:"100" help:"Lines of a cart, 500 at most."`
	MaxQuantity int64 `env:"MAX_QUANTITY" default:"999" help:"Quantity of one line, 10000 at most."`
	MaxLineText int64 `env:"MAX_LINE_TEXT" default:"4096" help:"Bytes of fields and notice of one line, 1000000 at most."`
	MaxCartText int64 `env:"MAX_CART_TEXT" default:"65536" help:"Bytes of fields and notices of a cart, 1000000 at most."`

	BasePath       string   `env:"BASE_PATH" help:"Path before every route, such as /api."`
	PublicURL      string   `name:"public-url" env:"PUBLIC_URL" help:"Address by which clients reach the service. Default: as the request has it."`
	CORSOrigins    []string `name:"cors-origins" env:"CORS_ORIGINS" help:"Browser origins to let in, or *. Default: * in the demo, else none."`
	RateLimit      string   `env:"RATE_LIMIT" default:"on" help:"on, or off where a gateway limits."`
	TrustedProxies []string `env:"TRUSTED_PROXIES" help:"Addresses or networks whose X-Forwarded-For is believed. Default: none."`
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

// secretFiles reads NAME_FILE for a secret whose NAME is not set.
func secretFiles() kong.Resolver {
	return kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		if !flag.Tag.Has("secret") {
			return nil, nil
		}
		for _, name := range flag.Envs {
			path := os.Getenv(name + "_FILE")
			if path == "" || os.Getenv(name) != "" {
				continue
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return nil, &badSetting{name + "_FILE", err}
			}
			return strings.TrimRight(string(content), "\r\n"), nil
		}
		return nil, nil
	})
}

func (j jwtSettings) verifier() (*auth.JWT, error) {
	config := auth.JWTConfig{
		Secret: []byte(j.Secret), PreviousSecret: []byte(j.Previous), Issuer: j.Issuer, Audience: j.Audience,
	}
	switch {
	case j.Secret == "" && j.JWKSURL == "":
		return nil, &badSetting{"JWT_SECRET", errors.New("is required, or JWT_JWKS_URL in its place")}
	case j.Secret != "" && j.JWKSURL != "":
		return nil, &badSetting{"JWT_JWKS_URL", errors.New("cannot stand beside JWT_SECRET: one of them checks tokens")}
	case j.JWKSURL != "":
		keys, err := auth.NewJWKS(auth.JWKSConfig{URL: j.JWKSURL, Log: j.log})
		if err != nil {
			return nil, &badSetting{"", err}
		}
		config.JWKS = keys
	}
	tokens, err := auth.NewJWT(config)
	if err != nil {
		return nil, &badSetting{"", err}
	}
	return tokens, nil
}

// parts checks the settings and turns them into the parts that they decide.
func (s *settings) parts(log *slog.Logger) (server.Parts, error) {
	if err := s.check(); err != nil {
		return server.Parts{}, err
	}
	strategy, err := cart.ParseStrategy(s.MergeStrategy)
	if err != nil {
		return server.Parts{}, &badSetting{"MERGE_STRATEGY", err}
	}
	var playground *server.Playground
	if s.Playground == "on" {
		playground = &server.Playground{}
	}
	return server.Parts{
		DefaultStore: s.DefaultStore,
		CartTTL:      cart.TTLs{Guest: s.GuestCartTTL, Customer: s.CustomerCartTTL},
		CartLimits: cart.Limits{
			Lines: s.MaxLines, Quantity: s.MaxQuantity, LineText: s.MaxLineText, CartText: s.MaxCartText,
		},
		Strategy:       strategy,
		Durable:        s.Durability == "replica",
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

// check names the first setting that cannot be used.
func (s *settings) check() error {
	for name, d := range map[string]time.Duration{"GUEST_CART_TTL": s.GuestCartTTL, "CUSTOMER_CART_TTL": s.CustomerCartTTL} {
		if d < time.Second {
			return &badSetting{name, errors.New("must be 1s or more")}
		}
	}
	for _, limit := range []struct {
		name         string
		set, highest int64
	}{
		{"MAX_CART_TEXT", s.MaxCartText, cart.MaxText},
		{"MAX_LINES", s.MaxLines, cart.MaxLines},
		{"MAX_LINE_TEXT", s.MaxLineText, cart.MaxText},
		{"MAX_QUANTITY", s.MaxQuantity, cart.MaxQuantity},
	} {
		if limit.set < 1 || limit.set > limit.highest {
			return &badSetting{limit.name, fmt.Errorf("must be from 1 to %d", limit.highest)}
		}
	}
	if s.DefaultStore < 0 {
		return &badSetting{"DEFAULT_STORE", errors.New("must be a store's id")}
	}
	if s.Durability != "memory" && s.Durability != "replica" {
		return &badSetting{"DURABILITY", fmt.Errorf("%q is neither memory nor replica", s.Durability)}
	}
	if s.RateLimit != "on" && s.RateLimit != "off" {
		return &badSetting{"RATE_LIMIT", fmt.Errorf("%q is neither on nor off", s.RateLimit)}
	}
	if s.Playground != "" && s.Playground != "on" && s.Playground != "off" {
		return &badSetting{"PLAYGROUND", fmt.Errorf("%q is neither on nor off", s.Playground)}
	}
	if p := s.BasePath; p != "" && (!strings.HasPrefix(p, "/") || strings.ContainsAny(p, "?#:* ")) {
		return &badSetting{"BASE_PATH", fmt.Errorf("%q is not a path such as /api", p)}
	}
	if err := checkURL(s.PublicURL); err != nil {
		return &badSetting{"PUBLIC_URL", err}
	}
	for _, origin := range s.CORSOrigins {
		if err := checkOrigin(origin); err != nil {
			return &badSetting{"CORS_ORIGINS", err}
		}
	}
	for _, proxy := range s.TrustedProxies {
		_, err := netip.ParseAddr(proxy)
		if _, _, netErr := net.ParseCIDR(proxy); err != nil && netErr != nil {
			return &badSetting{"TRUSTED_PROXIES", fmt.Errorf("%q is neither an address nor a network", proxy)}
		}
	}
	return nil
}

func checkURL(s string) error {
	if s == "" {
		return nil
	}
	u, err := url.Parse(s)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("%q is not an address such as https://shop.example.com", s)
	}
	return nil
}

func checkOrigin(origin string) error {
	if origin == "*" {
		return nil
	}
	u, err := url.Parse(origin)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.Path != "" || u.RawQuery != "" {
		return fmt.Errorf("%q is not an origin such as https://shop.example.com", origin)
	}
	return nil
}

// logger writes to standard error, so that standard output stays for people. What
// the settings make from then on logs there too.
func (s *settings) logger(out output) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(s.LogLevel)); err != nil {
		return nil, &badSetting{"LOG_LEVEL", fmt.Errorf("%q is none of debug, info, warn, error", s.LogLevel)}
	}
	options := &slog.HandlerOptions{Level: level}
	var log *slog.Logger
	switch s.LogFormat {
	case "json", "":
		log = slog.New(slog.NewJSONHandler(out.errors, options))
	case "text":
		log = slog.New(slog.NewTextHandler(out.errors, options))
	default:
		return nil, &badSetting{"LOG_FORMAT", fmt.Errorf("%q is neither json nor text", s.LogFormat)}
	}
	redis.SetLogger(connect.RedisLog{Log: log}) // go-redis has but one for the process
	s.JWT.log = log
	return log, nil
}
