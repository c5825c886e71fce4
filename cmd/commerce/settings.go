package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/net/http/httpguts"

	"commerce/auth/limit"
	"commerce/auth/sealed"
	"commerce/cart"
	"commerce/cart/redisstore"
	"commerce/cart/transfer"
	"commerce/cmd/internal/cli"
	"commerce/cmd/internal/logbuffer"
	"commerce/cmd/internal/server"
	"commerce/cmd/internal/tracing"
	"commerce/deploy/connect"
)

// settings are the settings of both demo and serve. A new one needs a field here, its
// declaration in declare, its use, such as in begin, and an entry in docs/operations.md.
type settings struct {
	server.Parts // those that are settings themselves

	Addr, AdminAddr       string
	JWT                   jwtSettings
	CreateLimit           []limit.Rate
	HandoverKey, Previous string // HANDOVER_KEY and HANDOVER_KEY_PREVIOUS
	UCP                   string
	Playground            string
	LogLevel              slog.Leveler // nil: info
	LogFormat             string

	logLines *logbuffer.Writer // set by openLog
}

// The highest MAX_IN_FLIGHT and REDIS_MIN_REPLICAS. They catch typing errors.
const (
	maxInFlight = 100_000
	maxReplicas = 100
)

func (s *settings) declare() []cli.Setting {
	limits := &s.Carts.Limits
	limits.LineText, limits.CartText = cart.MaxLineText, cart.MaxCartText
	atMost := func(help string, maximum int64) string { return fmt.Sprintf("%s; at most %d.", help, maximum) }
	return slices.Concat([]cli.Setting{
		{Name: "ADDR", Default: ":8080", Help: "Address of the public API.", Value: cli.Parsed(&s.Addr, parseAddr)},
		{Name: "ADMIN_ADDR", Default: "127.0.0.1:9090", Help: "Address of health checks and metrics, and of profiles if it is a loopback address. Must not be public.", Value: cli.Parsed(&s.AdminAddr, parseAddr)},
	}, s.JWT.settings(), ttlSettings(&s.Redis.TTL), []cli.Setting{
		{Name: "MERGE_STRATEGY", Default: "sum", Help: "Quantity of a line that is in both the guest's and the customer's cart: sum, max, guest or customer.", Value: cli.Parsed(&s.Carts.Strategy, transfer.ParseStrategy)},
		{Name: "DEFAULT_STORE", Hint: "ID", Help: "Store of cart calls that name no store. Default: 1 in the demo, otherwise the only store if there is just one.", Value: cli.Parsed(&s.DefaultStore, parseStore)},
		minReplicasSetting(&s.Redis.MinReplicas, fmt.Sprintf("Minimum number of replicas of each Redis master, at most %d. A merge on login waits for this many, connected or not.", maxReplicas)),
		durabilitySetting(&s.Redis.Durable, "memory or replica. With replica, each change waits up to half a second for all replicas, and the response says whether they have it."),
		{Name: "MAX_LINES", Default: "100", Help: atMost("Maximum lines of a cart", cart.MaxLines), Value: cli.Number(&limits.Lines, 1, cart.MaxLines)},
		{Name: "MAX_QUANTITY", Default: "999", Help: atMost("Maximum quantity of a line", cart.MaxQuantity), Value: cli.Number(&limits.Quantity, 1, cart.MaxQuantity)},

		{Name: "BASE_PATH", Hint: "PATH", Help: "Path in front of every route, such as /api.", Value: cli.Text(&s.BasePath, checkPath)},
		{Name: "PUBLIC_URL", Hint: "URL", Help: "URL that clients use, for links. Default: taken from the request, or from a proxy in TRUSTED_PROXIES.", Value: cli.Text(&s.PublicURL, checkURL)},
		{Name: "CORS_ORIGINS", Hint: "ORIGIN,...", Help: "Browser origins to allow, or * for all. Default: * in the demo, otherwise none.", Value: cli.List(&s.CORSOrigins, checkOrigin)},
		{Name: "RATE_LIMIT", Default: "on", Help: "on or off. Turn it off if a gateway limits requests.", Value: cli.OnOff(&s.RateLimit)},
		{Name: "CREATE_LIMIT", Default: "200/s,20000/h", Help: "Carts that the guests of one address (IPv6: /64 network) may create, as rates per s, m or h, or off; a /48 network 3 times as many. Also limits their text to 20 MB an hour, unless off. No limit if RATE_LIMIT is off.", Value: cli.Parsed(&s.CreateLimit, limit.Parse)},
		{Name: "MAX_IN_FLIGHT", Hint: "N", Default: "0", Help: fmt.Sprintf("Requests of carts, and of subscriptions, that are worked on at the same time; at most %d. Further ones get a 503. 0: %d for each CPU.", maxInFlight, server.InFlightPerCPU), Value: cli.Number(&s.MaxInFlight, 0, maxInFlight)},
		{Name: "HANDOVER_KEY", Secret: true, Help: "Key of codes that hand carts over, and of agents' ids, at least 32 bytes. Default: random in the demo, otherwise none: carts cannot be handed over.", Value: cli.Text(&s.HandoverKey, sealed.Check)},
		{Name: "HANDOVER_KEY_PREVIOUS", Secret: true, Help: "Previous key, still accepted during a rotation.", Value: cli.Text(&s.Previous, sealed.Check)},
		{Name: "UCP", Help: "on or off: serve carts to AI agents, over the Universal Commerce Protocol. Requires HANDOVER_KEY and PUBLIC_URL. Default: on in the demo, otherwise off.", Value: cli.Word(&s.UCP, "", "on", "off")},
		{Name: "UCP_PROFILES", Default: "fetch", Help: "fetch or trust: fetch the profile of each agent, or assume that it supports what the service does.", Value: cli.Either(&s.TrustProfiles, "trust", "fetch", "trust")},
		{Name: "TRUSTED_PROXIES", Hint: "NETWORK,...", Help: "Addresses or networks of proxies whose X-Forwarded-For, X-Forwarded-Proto, X-Forwarded-Host and traceparent headers are trusted. Default: none.", Value: cli.List(&s.TrustedProxies, checkNetwork)},
		{Name: "COUNTRY_HEADER", Hint: "NAME", Help: "Header in which TRUSTED_PROXIES say the country of the client, such as CF-IPCountry. They must set or delete it. Default: none.", Value: cli.Text(&s.CountryHeader, checkHeaderName)},
		{Name: "PLAYGROUND", Help: "on or off: serve a page at / to try the API, and its reference at /docs. Default: on in the demo, otherwise off.", Value: cli.Word(&s.Playground, "", "on", "off")},

		{Name: "LOG_LEVEL", Help: "debug, info, warn or error. Default: warn in the demo, otherwise info.", Value: cli.Parsed(&s.LogLevel, parseLevel)},
		{Name: "LOG_FORMAT", Help: "json or text. Default: text in the demo, otherwise json.", Value: cli.Word(&s.LogFormat, "", "json", "text")},
	})
}

func ttlSettings(to *redisstore.TTLs) []cli.Setting {
	return []cli.Setting{
		{Name: "GUEST_CART_TTL", Default: "720h", Help: "How long a guest's cart is kept after its last use.", Value: cli.Duration(&to.Guest, time.Second, 0)},
		{Name: "CUSTOMER_CART_TTL", Default: "2160h", Help: "How long a customer's cart is kept after its last use.", Value: cli.Duration(&to.Customer, time.Second, 0)},
	}
}

func minReplicasSetting(to *int, help string) cli.Setting {
	return cli.Setting{Name: "REDIS_MIN_REPLICAS", Default: "0", Help: help, Value: cli.Number(to, 0, maxReplicas)}
}

func durabilitySetting(durable *bool, help string) cli.Setting {
	return cli.Setting{Name: "DURABILITY", Default: "memory", Help: help, Value: cli.Either(durable, "replica", "memory", "replica")}
}

// faults checks the settings that are not right or wrong alone.
func (s *settings) faults() cli.Faults {
	f := append(s.JWT.faults(), tracing.Faults(os.Getenv)...)
	switch {
	case s.HandoverKey != "":
	case s.UCP == "on":
		f.Add("HANDOVER_KEY", errors.New("is required with UCP=on"))
	case s.Previous != "":
		f.Add("HANDOVER_KEY", errors.New("is required with HANDOVER_KEY_PREVIOUS"))
	}
	return f
}

func settingsHelp(all []cli.Setting) string {
	var list strings.Builder
	list.WriteString("Settings of serve. Those of demo are the same, without DATABASE_URL, DATABASE_REPLICA_URL, REDIS_URL, DRAIN_DELAY and JWT_JWKS_URL:\n\n")
	for _, setting := range all {
		cli.PrintWrapped(&list, cli.Width, fmt.Sprintf("  %-20s  %-14s  ", setting.Name, cmp.Or(setting.Default, "–")), setting.Help)
	}
	return list.String()
}

// openLog returns the log of the process. A log whose reader stalls or ends neither blocks nor ends the
// process.
func (s *settings) openLog(to io.Writer) io.WriteCloser {
	signal.Ignore(syscall.SIGPIPE)
	s.logLines = logbuffer.New(to, func(to io.Writer, lost uint64) {
		slog.New(s.logHandler(to)).Warn("the log has a gap: its reader was too slow or had ended", "lines", lost)
	})
	return s.logLines
}

// fail writes why the process ends. A log in JSON has no other line, so that programs can read all of it.
func (s *settings) fail(to io.Writer, why string) {
	if s.LogFormat == "text" {
		fmt.Fprintln(to, "commerce: "+why)
		return
	}
	slog.New(s.logHandler(to)).Error("the process ends", "err", why)
}

func (s *settings) logHandler(to io.Writer) slog.Handler {
	options := &slog.HandlerOptions{Level: s.LogLevel}
	if s.LogFormat == "text" {
		return slog.NewTextHandler(to, options)
	}
	return slog.NewJSONHandler(to, options)
}

// logger returns a logger that writes to standard error; standard output is for people. It is also
// the logger of s.JWT, and that of go-redis and the standard library for the whole process.
func (s *settings) logger(out cli.Output) *slog.Logger {
	log := slog.New(s.logHandler(out.Errors))
	redis.SetLogger(connect.RedisLog{Log: log})
	slog.SetDefault(log)
	s.JWT.Keys.Log = log
	return log
}

func parseLevel(s string) (slog.Leveler, error) {
	var level slog.Level
	if level.UnmarshalText([]byte(s)) != nil {
		return nil, fmt.Errorf("%q is not one of debug, info, warn, error", s)
	}
	return level, nil
}

// parseAddr rejects the empty address, which would mean a random port on every
// interface. Whether the address is free shows only when it is opened.
func parseAddr(addr string) (string, error) {
	if addr == "" {
		return "", errors.New("must be an address such as :8080 or 127.0.0.1:9090")
	}
	_, err := net.ResolveTCPAddr("tcp", addr)
	return addr, err
}

func parseStore(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 0 {
		return 0, fmt.Errorf("%q is not a store's id", text)
	}
	return id, nil
}

// plainPath matches paths without empty segments and without need for encoding.
var plainPath = regexp.MustCompile(`^(/[A-Za-z0-9._~-]+)*/?$`)

func checkPath(path string) error {
	if !plainPath.MatchString(path) || strings.Contains(path+"/", "/./") || strings.Contains(path+"/", "/../") {
		return fmt.Errorf("%q is not a path such as /api", path)
	}
	return nil
}

// checkURL returns an error that quotes the URL unless it has credentials.
func checkURL(s string) error {
	u, err := url.Parse(s)
	switch {
	case err == nil && u.User != nil || strings.Contains(s, "@"):
		return errors.New("must not contain credentials")
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" ||
		strings.ContainsAny(s, "?#") || checkPath(u.EscapedPath()) != nil:
		return fmt.Errorf("%q is not a URL such as https://shop.example.com or https://example.com/shop", s)
	}
	return nil
}

func checkOrigin(origin string) error {
	if origin == "*" {
		return nil
	}
	u, err := url.Parse(origin)
	switch {
	case err == nil && u.User != nil || strings.Contains(origin, "@"):
		return errors.New("must not contain credentials")
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || u.Path != "" || strings.ContainsAny(origin, "?#"):
		return fmt.Errorf("%q is not an origin such as https://shop.example.com", origin)
	case strings.Contains(origin, "*"): // a browser sends no such origin
		return fmt.Errorf("%q has a wildcard: list each origin, or allow all with *", origin)
	}
	return nil
}

func checkHeaderName(s string) error {
	if !httpguts.ValidHeaderFieldName(s) {
		return fmt.Errorf("%q is not the name of a header", s)
	}
	return nil
}

func checkNetwork(s string) error {
	addr, err := netip.ParseAddr(s)
	if _, _, netErr := net.ParseCIDR(s); (err != nil || addr.Zone() != "") && netErr != nil {
		return fmt.Errorf("%q is not an IP address or a network such as 10.0.0.0/8", s)
	}
	return nil
}
