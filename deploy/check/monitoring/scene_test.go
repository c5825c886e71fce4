package monitoring

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/golang-jwt/jwt/v5"
	"github.com/rs/zerolog"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

// scene is a running service whose shoppers and merchants are served well, and a Prometheus
// that watches it.
type scene struct {
	*testing.T
	redis      *ephemeral.Server
	postgres   *ephemeral.Server // nil: the shared server
	database   string            // URL
	instances  []*service
	prometheus *prometheus
	client     *http.Client
	apiToken   string
	wire       *toxiproxy.Proxy          // to Redis, of instances that are given a URL through it
	replica    *ephemeral.Server         // of Redis, if the staging starts one
	sentinels  *ephemeral.RedisSentinels // likewise
	standby    *ephemeral.Standby        // likewise
	issuer     *issuer                   // likewise
}

type staging struct {
	instances   int                            // 0: 1
	ownPostgres bool                           // the fault concerns the server
	program     func() (string, error)         // nil: the service without a bug
	wrapper     []string                       // command that runs the service; nil: none
	settings    func(s *scene, i int) []string // of instance i, "NAME=value"; nil: none
	prepare     func(s *scene)                 // before the service starts; nil: nothing
}

func (st staging) open(t *testing.T) *scene {
	t.Helper()
	s := &scene{T: t, redis: ephemeral.StartRedis(t), client: &http.Client{
		Timeout: 2 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 64},
	}}
	t.Cleanup(s.client.CloseIdleConnections)
	if st.ownPostgres {
		s.postgres = ephemeral.StartPostgres(t)
		s.database = s.postgres.URL
		commerce(t, s.database, "migrate", "up")
		commerce(t, s.database, "seed")
	} else {
		s.database = sharedDatabase(t)
	}
	s.apiToken = commerce(t, s.database, "token", "store", "--store", "1", "--name", "test")
	if st.prepare != nil {
		st.prepare(s)
	}
	if st.program == nil {
		st.program = program
	}
	var targets []string
	for i := range max(st.instances, 1) {
		settings := []string{"DATABASE_URL=" + s.database, "REDIS_URL=" + s.redis.URL}
		if st.settings != nil {
			settings = append(settings, st.settings(s, i)...)
		}
		instance := startService(t, assert.Must(st.program())(t), st.wrapper, settings...)
		s.instances = append(s.instances, instance)
		targets = append(targets, instance.admin)
	}
	s.prometheus = startPrometheus(t, targets)
	s.always(s.trade)
	return s
}

// always repeats do until the test ends, at most ten times a second. Failing requests are part
// of the test.
func (s *scene) always(do func()) { s.crowd(1, 100*time.Millisecond, do) }

// crowd lets n callers repeat do, with pauses, until the test ends.
func (s *scene) crowd(n int, pause time.Duration, do func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for ctx.Err() == nil {
				do()
				select {
				case <-ctx.Done():
				case <-time.After(pause):
				}
			}
		})
	}
	s.Cleanup(func() { cancel(); all.Wait() })
}

// trade makes the calls of a shopper and a merchant to each instance, one after the other.
func (s *scene) trade() {
	for _, instance := range s.instances {
		for _, c := range []call{
			{method: "GET", path: "/cart", cart: cartToken},
			{method: "POST", path: "/cart/add", body: `{"product_id":1}`, cart: cartToken},
			{method: "DELETE", path: "/cart/clear", cart: cartToken},
			{method: "GET", path: "/subscriptions", bearer: s.apiToken},
		} {
			c.send(s.client, instance.url())
		}
	}
}

var commands = regexp.MustCompile("(?s)\n```sh\n(.*?)```")

// wantShown runs the commands under a heading of the runbook on the first instance, until they print a text.
func (s *scene) wantShown(heading, text string) {
	s.Helper()
	var script strings.Builder
	for _, block := range commands.FindAllStringSubmatch(section(s, heading, "\n##"), -1) {
		script.WriteString(block[1])
	}
	assert.Require(s, script.Len() > 0, "%s has no commands", heading)
	wait(s, "the commands of "+heading+" print "+text, func() string {
		cmd := exec.CommandContext(s.Context(), "sh", "-c", script.String())
		cmd.Dir = filepath.Dir(s.instances[0].log)
		cmd.Env = append(os.Environ(), "ADMIN=http://"+s.instances[0].admin, "SHOP="+s.instances[0].url(),
			"REDIS_ADMIN_URL="+s.redis.URL, "OWNER_URL="+s.database)
		printed, err := cmd.CombinedOutput()
		if strings.Contains(string(printed), text) {
			return ""
		}
		return fmt.Sprintf("%s\nends with %v after printing\n%s", &script, err, printed)
	})
}

const cartToken = "a-guest-of-the-tests-00"

func (s *scene) do(server *ephemeral.Server, arguments ...any) {
	s.Helper()
	if err := server.Admin().Do(s.Context(), arguments...).Err(); err != nil {
		s.Fatal(err)
	}
}

// through starts a proxy to the server of a URL, and returns the URL through the proxy.
func (s *scene) through(rawURL string) string {
	s.Helper()
	u := assert.Must(url.Parse(rawURL))(s)
	api := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	s.wire = toxiproxy.NewProxy(api, "wire", "127.0.0.1:0", u.Host)
	if err := s.wire.Start(); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(s.wire.Stop)
	u.Host = s.wire.Listen
	return u.String()
}

func customerToken(customer int, secret string) string {
	return signed(jwt.SigningMethodHS256, customer, time.Hour, "", []byte(secret))
}

func shortToken(valid time.Duration) string {
	return signed(jwt.SigningMethodHS256, 1, valid, "", []byte(jwtSecret))
}

// signed returns a JWT of a customer. keyID may be empty.
func signed(method jwt.SigningMethod, customer int, valid time.Duration, keyID string, key any) string {
	token := jwt.NewWithClaims(method, jwt.MapClaims{"aud": "shop", "sub": fmt.Sprint(customer), "store_id": 1, "exp": time.Now().Add(valid).Unix()})
	if keyID != "" {
		token.Header["kid"] = keyID
	}
	text, _ := token.SignedString(key) // the key fits the method
	return text
}

// issuer publishes the key "a", and signs tokens with keys that it publishes or not.
type issuer struct {
	*httptest.Server
	private ed25519.PrivateKey
}

func startIssuer(t *testing.T) *issuer {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	assert.NoError(t, err)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"a","x":%q}]}`, base64.RawURLEncoding.EncodeToString(public))
	}))
	t.Cleanup(server.Close)
	return &issuer{server, private}
}

// token returns a JWT of a customer with a key of this ID.
func (i *issuer) token(keyID string) string {
	return signed(jwt.SigningMethodEdDSA, 1, time.Hour, keyID, i.private)
}
