package monitoring

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

type fault struct {
	name string
	staging
	begin  func(s *scene)
	alerts []string
	shows  string         // what the commands in the runbook's entry of the first alert print; "": not tested
	under  string         // the heading of these commands; "": the first alert
	heal   func(s *scene) // the remedy of the entry, which ends the first alert; nil: not tested
}

func faults() []fault {
	return []fault{
		{
			name:   "Redis stops",
			begin:  func(s *scene) { s.redis.Stop() },
			alerts: []string{"CommerceRedisUnreachable", "CommerceCartsFail", "CommerceCartsFailSlowly"},
		},
		{
			name:   "Redis hangs",
			begin:  func(s *scene) { s.redis.Freeze(); s.Cleanup(s.redis.Thaw) },
			alerts: []string{"CommerceCartsFail", "CommerceRedisUnreachable"},
			shows:  ": no answer",
			heal:   func(s *scene) { s.redis.Thaw() },
		},
		{
			name: "another client blocks Redis", // which answers PING between its commands
			begin: func(s *scene) {
				s.do(s.redis, "ACL", "SETUSER", "reports", "on", "nopass", "+@all", "~*")
				stranger := redis.NewClient(&redis.Options{
					Addr: s.redis.Admin().Options().Addr, Username: "reports", Password: "any", ClientName: "the_reports", ReadTimeout: 10 * time.Second,
				})
				s.Cleanup(func() { stranger.Close() })
				s.always(func() { // 300 ms or more
					_ = stranger.Do(context.Background(), "EVAL", "local x = 0 for i = 1, ARGV[1] do x = x + i end return x", 0, 40_000_000).Err()
				})
			},
			alerts: []string{"CommerceCartsFail", "CommerceCartsSlow"},
			under:  "## A slow Redis",
			shows:  "the_reports",
			heal:   func(s *scene) { s.do(s.redis, "ACL", "SETUSER", "reports", "-eval") },
		},
		{
			name:   "Redis is full",
			begin:  func(s *scene) { s.do(s.redis, "CONFIG", "SET", "maxmemory", "1") },
			alerts: []string{"CommerceRedisFull", "CommerceCartsFail"},
		},
		{
			name:   "Redis becomes a replica",
			begin:  func(s *scene) { s.do(s.redis, "REPLICAOF", "127.0.0.1", "1") },
			alerts: []string{"CommerceRedisErrors", "CommerceRedisRefuses", "CommerceCartsFail"},
		},
		{
			name:   "Redis refuses the service's user",
			begin:  func(s *scene) { s.do(s.redis, "ACL", "SETUSER", "default", "-@all", "+acl", "+shutdown") },
			alerts: []string{"CommerceRedisRefuses", "CommerceRedisErrors"},
		},
		{
			name:   "Redis evicts carts",
			begin:  func(s *scene) { s.do(s.redis, "CONFIG", "SET", "maxmemory-policy", "allkeys-lru") },
			alerts: []string{"CommerceCheckSerious"},
			shows:  "maxmemory-policy is allkeys-lru",
			heal:   func(s *scene) { s.do(s.redis, "CONFIG", "SET", "maxmemory-policy", "noeviction") },
		},
		{
			name: "Redis is almost full",
			begin: func(s *scene) {
				used := assert.Must(s.redis.Admin().InfoMap(s.Context(), "memory").Result())(s)["Memory"]["used_memory"]
				s.do(s.redis, "CONFIG", "SET", "maxmemory", assert.Must(strconv.Atoi(used))(s)*106/100)
			},
			alerts: []string{"CommerceCheckSerious"},
			shows:  "Redis uses 9",
			heal:   func(s *scene) { s.do(s.redis, "CONFIG", "SET", "maxmemory", "1gb") },
		},
		{
			name:    "the clock of one of two instances is ahead",
			staging: staging{instances: 2},
			begin: func(s *scene) {
				s.instances[0].program = assert.Must(ahead())(s)
				s.restart(0)
				s.always(func() {
					for _, instance := range s.instances {
						call{method: "GET", path: "/cart", bearer: shortToken(5 * time.Minute)}.send(s.client, instance.url())
					}
				})
			},
			alerts: []string{"CommerceCheckSerious", "CommerceTokensRefused"},
			shows:  "The clock is 600",
			heal: func(s *scene) {
				s.instances[0].program = assert.Must(program())(s)
				s.restart(0)
			},
		},
		{
			name: "all sentinels hang", // and Redis does not
			staging: staging{
				program:  hasty,
				prepare:  func(s *scene) { s.sentinels = ephemeral.StartSentinels(s) },
				settings: func(s *scene, _ int) []string { return []string{"REDIS_URL=" + s.sentinels.URL} },
			},
			begin: func(s *scene) {
				for _, sentinel := range s.sentinels.Sentinels {
					sentinel.Freeze()
					s.Cleanup(sentinel.Thaw)
				}
			},
			alerts: []string{"CommerceCheckSerious"},
			shows:  "Cart calls of an instance that starts now get a 503, and after a failover all",
			heal: func(s *scene) {
				status, body := s.send(call{method: "GET", path: "/cart", cart: cartToken})
				assert.Equal(s, status, http.StatusOK, "a cart meanwhile: %s", body)
				for _, sentinel := range s.sentinels.Sentinels {
					sentinel.Thaw()
				}
			},
		},
		{
			name:    "a transaction of the platform stays open", // which the service's role does not see
			staging: asShop(hasty),
			begin: func(s *scene) {
				conn := assert.Must(pgx.Connect(s.Context(), s.database))(s)
				s.Cleanup(func() { conn.Close(context.Background()) })
				assert.Must(conn.Exec(s.Context(), "BEGIN"))(s)
				assert.Must(conn.Exec(s.Context(), "SELECT pg_current_xact_id()"))(s)
			},
			alerts: []string{"CommerceCheckSerious"},
			shows:  "a writing transaction has been open",
			heal: func(s *scene) {
				s.statement("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_xid IS NOT NULL AND state = 'idle in transaction'")
			},
		},
		{
			name: "Redis refuses announcements",
			begin: func(s *scene) {
				s.do(s.redis, "ACL", "SETUSER", "default", "-spublish", "-publish")
				cart := rand.Text()
				s.always(func() { s.send(call{method: "GET", path: "/cart/events", cart: cart}) }) // until the client times out
				s.always(func() { s.send(call{method: "POST", path: "/cart/add", body: `{"product_id":1}`, cart: cart}) })
			},
			alerts: []string{"CommerceEventsLate"},
		},
		{
			name: "the reader of the log ends", // at the line about a path that no route matches
			staging: staging{wrapper: []string{
				"sh", "-c",
				`log=$(mktemp -u); mkfifo "$log"; sed -u /unmatched/q <"$log" >&2 & exec "$0" "$@" 2>"$log"`,
			}},
			begin:  func(s *scene) { s.always(func() { s.send(call{method: "GET", path: "/no-such-page"}) }) },
			alerts: []string{"CommerceLogLost"},
			shows:  `"log":"losing lines"`,
			heal:   func(s *scene) { s.instances[0].wrapper = nil; s.restart(0) },
		},
		{
			name:    "Redis loses its replica",
			staging: staging{prepare: (*scene).startReplica},
			begin:   func(s *scene) { s.replica.Stop() },
			alerts:  []string{"CommerceRedisReplicaLost"},
		},
		{
			name:    "Redis is slow", // so that no call fails yet
			staging: staging{settings: func(s *scene, _ int) []string { return []string{"REDIS_URL=" + s.through(s.redis.URL)} }},
			begin: func(s *scene) {
				toxic := `{"type":"latency","stream":"downstream","attributes":{"latency":120}}`
				assert.Must(s.wire.Toxics.AddToxicJson(strings.NewReader(toxic)))(s)
			},
			alerts: []string{"CommerceCartsSlow", "CommerceCartsSlowForDays"},
		},
		{
			name: "a replica hangs", // it stays connected and confirms nothing
			staging: staging{
				settings: func(*scene, int) []string { return []string{"DURABILITY=replica"} },
				prepare:  (*scene).startReplica,
			},
			begin: func(s *scene) {
				s.replica.Freeze()
				s.Cleanup(s.replica.Thaw)
				customer := 0
				s.always(func() { // logs in with a guest's cart
					guest := rand.Text()
					customer++
					for _, c := range []call{
						{method: "POST", path: "/cart/add", body: `{"product_id":1}`, cart: guest},
						{method: "GET", path: "/cart", cart: guest, bearer: customerToken(customer, jwtSecret)},
					} {
						s.send(c)
					}
				})
			},
			alerts: []string{"CommerceMergesPostponed", "CommerceChangesUnconfirmed", "CommerceRedisReplicaLost"},
		},
		{
			name:    "Postgres stops",
			staging: staging{ownPostgres: true},
			begin:   func(s *scene) { s.postgres.Stop() },
			alerts:  []string{"CommercePostgresUnreachable", "CommerceSubscriptionsFail", "CommerceSubscriptionsFailSlowly", "CommerceCatalogStale"},
		},
		{
			name:    "the role may not read subscriptions",
			staging: asShop(nil),
			begin:   func(s *scene) { s.statement("REVOKE SELECT ON subscriptions FROM shop") },
			alerts:  []string{"CommercePostgresErrors", "CommercePostgresUnfit", "CommerceSubscriptionsFail"},
		},
		{
			name:    "the role may not log in",
			staging: asShop(nil),
			begin: func(s *scene) {
				s.statement("ALTER ROLE shop NOLOGIN; SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'shop'")
			},
			alerts: []string{"CommercePostgresRefuses"},
		},
		{
			name: "a replica of Postgres stops", // the only one
			staging: staging{
				ownPostgres: true,
				prepare:     func(s *scene) { s.standby = ephemeral.StartStandby(s, s.postgres) },
				settings:    func(s *scene, _ int) []string { return []string{"DATABASE_REPLICA_URL=" + s.standby.URL} },
			},
			begin:  func(s *scene) { s.standby.Stop() },
			alerts: []string{"CommerceReplicasLeftOut", "CommerceReplicaLeftOut"},
		},
		{
			name: "the issuer stops",
			staging: staging{settings: func(s *scene, _ int) []string {
				s.issuer = startIssuer(s.T)
				return []string{"JWT_SECRET=", "JWT_JWKS_URL=" + s.issuer.URL, "JWT_AUDIENCE=shop"}
			}},
			begin: func(s *scene) {
				wait(s, "a token with a published key is accepted", func() string {
					if status, body := s.read(s.issuer.token("a")); status != http.StatusOK {
						return fmt.Sprintf("%d %s", status, body)
					}
					return ""
				})
				s.issuer.Close()
				s.read(s.issuer.token("b"))
			},
			alerts: []string{"CommerceIssuerUnreachable"},
		},
		{
			name: "tokens are signed with another secret",
			begin: func(s *scene) {
				token := customerToken(1, strings.ToUpper(jwtSecret))
				s.always(func() { s.read(token) })
			},
			alerts: []string{"CommerceTokensRefused"},
		},
		{
			name:    "a client creates too many carts",
			staging: staging{settings: func(*scene, int) []string { return []string{"CREATE_LIMIT=1/s"} }},
			begin: func(s *scene) {
				s.always(func() { s.send(call{method: "POST", path: "/cart/add", body: `{"product_id":1}`}) })
			},
			alerts: []string{"CommerceClientsLimited"},
		},
		{
			name:    "too many requests at the same time",
			staging: staging{settings: func(*scene, int) []string { return []string{"MAX_IN_FLIGHT=1", "RATE_LIMIT=off"} }},
			begin:   func(s *scene) { s.crowd(16, 0, func() { s.send(call{method: "GET", path: "/cart", cart: cartToken}) }) },
			alerts:  []string{"CommerceOverloaded"},
		},
		{
			name:    "a bug",
			staging: staging{program: buggy},
			begin:   func(s *scene) { s.send(call{method: "GET", path: "/cart/summary", cart: cartToken}) },
			alerts:  []string{"CommerceInternalError"},
		},
		{
			name:    "one of two instances ends",
			staging: staging{instances: 2},
			begin:   func(s *scene) { s.instances[1].kill() },
			alerts:  []string{"CommerceInstanceDown"},
		},
		{
			name:   "the only instance ends",
			begin:  func(s *scene) { s.instances[0].kill() },
			alerts: []string{"CommerceDown", "CommerceInstanceDown"},
		},
		{
			name: "one of two instances is cut off from Redis",
			staging: staging{instances: 2, settings: func(s *scene, i int) []string {
				if i == 0 {
					return nil
				}
				return []string{"REDIS_URL=" + s.through(s.redis.URL)}
			}},
			begin:  func(s *scene) { s.wire.Stop() },
			alerts: []string{"CommerceInstanceCutOff"},
		},
		{
			name: "an instance crashes again and again",
			begin: func(s *scene) {
				wait(s, "crashes are noticed", func() string {
					s.restart(0)
					time.Sleep(time.Second) // for two scrapes
					firing := s.prometheus.alerts(s, "firing")
					if slices.Contains(firing, "CommerceRestarts") {
						return ""
					}
					return fmt.Sprint(firing)
				})
			},
			alerts: []string{"CommerceRestarts"},
		},
		{
			name:   "a memory limit that is too low",
			begin:  func(s *scene) { s.restart(0, "GOMEMLIMIT=8MiB") },
			alerts: []string{"CommerceMemoryNearLimit"},
		},
		manyConnections(),
	}
}

// asShop stages a service whose role in Postgres is shop.
func asShop(program func() (string, error)) staging {
	return staging{ownPostgres: true, program: program, settings: func(s *scene, _ int) []string {
		s.statement("CREATE ROLE shop LOGIN")
		commerce(s, s.database, "migrate", "up", "--service-role=shop")
		return []string{"DATABASE_URL=" + strings.Replace(s.database, "postgres@", "shop@", 1)}
	}}
}

func (s *scene) startReplica() {
	s.replica = ephemeral.StartRedis(s)
	host, port, err := net.SplitHostPort(s.redis.Admin().Options().Addr)
	if err != nil {
		s.Fatal(err)
	}
	s.do(s.replica, "REPLICAOF", host, port)
	master := s.redis.Admin()
	wait(s, "the replica follows", func() string {
		master.Set(s.Context(), "probe", 1, time.Second)
		if confirmed, err := master.Wait(s.Context(), 1, 100*time.Millisecond).Result(); confirmed == 0 {
			return fmt.Sprint("no replica confirms: ", err)
		}
		return ""
	})
}

func (s *scene) send(c call) (status int, body []byte) { return c.send(s.client, s.instances[0].url()) }

func (s *scene) read(token string) (status int, body []byte) {
	return s.send(call{method: "GET", path: "/cart", bearer: token})
}

// statement runs SQL as the owner of the database.
func (s *scene) statement(sql string) {
	s.Helper()
	conn := assert.Must(pgx.Connect(s.Context(), s.database))(s)
	defer conn.Close(context.Background())
	if _, err := conn.Exec(s.Context(), sql); err != nil {
		s.Fatal(err)
	}
}

// manyConnections are more clients than the process may have files. Metrics, and so alerts, must still be served.
func manyConnections() fault {
	return fault{
		name: "almost no file descriptors are left",
		staging: staging{
			wrapper:  []string{"sh", "-c", `ulimit -n 256; exec "$0" "$@"`},
			settings: func(*scene, int) []string { return []string{"GOMAXPROCS=2"} },
		},
		begin: func(s *scene) {
			s.crowd(300, 0, func() { // closing idle connections does not end these
				conn, err := net.Dial("tcp", strings.TrimPrefix(s.instances[0].url(), "http://"))
				if err != nil {
					return
				}
				defer conn.Close()
				fmt.Fprint(conn, "GET / HTTP/1.1\r\n")
				time.Sleep(time.Second)
			})
		},
		alerts: []string{"CommerceFilesNearLimit"},
		shows:  `"streams":32,"instead_of":10000,"file_descriptors":256`,
		heal: func(s *scene) {
			for _, path := range []string{"/readyz", "/healthz"} {
				response := assert.Must(http.Get("http://" + s.instances[0].admin + path))(s)
				response.Body.Close()
				assert.Equal(s, response.StatusCode, http.StatusOK, "%s", path)
			}
			s.instances[0].wrapper = nil
			s.restart(0)
		},
	}
}

// restart ends an instance and starts it again, without the settings of the staging.
func (s *scene) restart(i int, settings ...string) {
	s.instances[i].kill()
	s.instances[i].start(append([]string{"DATABASE_URL=" + s.database, "REDIS_URL=" + s.redis.URL}, settings...)...)
}

// Each fault happens to a real service. A real Prometheus evaluates the real rules, with shorter
// durations. No alert may fire before the fault, and none outlasts the remedy.
func TestAlerts_FireOnTheirFaultsAndNotBefore(t *testing.T) {
	const most = 8 // faults at the same time: more would keep each other from being on time
	var all sync.WaitGroup
	running := make(chan struct{}, most)
	for _, f := range faults() {
		all.Go(func() { // not t.Parallel, which runs only as many tests as there are CPUs
			running <- struct{}{}
			defer func() { <-running }()
			t.Run(f.name, func(t *testing.T) {
				s := f.open(t)
				s.prometheus.wantQuiet(t)
				f.begin(s)
				s.prometheus.wantFiring(t, f.alerts)
				if f.shows != "" {
					s.wantShown(cmp.Or(f.under, "### "+f.alerts[0]), f.shows)
				}
				if f.heal != nil {
					f.heal(s)
					s.prometheus.wantEnded(t, f.alerts[0])
				}
			})
		})
	}
	all.Wait()
}

func TestAlerts_AllHaveAFault(t *testing.T) {
	t.Parallel()
	var fired []string
	for _, f := range faults() {
		fired = append(fired, f.alerts...)
	}
	slices.Sort(fired)
	assert.Equal(t, slices.Compact(fired), alertNames(t), "-rules +faults")
}
