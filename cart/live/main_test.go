package live_test

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"commerce/auth"
	"commerce/auth/problem"
	"commerce/cart"
	"commerce/cart/carttest"
	"commerce/cart/live"
	"commerce/cart/redisstore"
	"commerce/deploy/assert"
	"commerce/deploy/connect"
	"commerce/deploy/ephemeral"
)

func TestMain(m *testing.M) {
	redis.SetLogger(connect.RedisLog{Log: slog.New(slog.DiscardHandler)}) // it reports every failed dial
	goleak.VerifyTestMain(m)
}

// carts are an instance's carts, which are listened to.
type carts struct {
	*redisstore.Store
	*live.Hub
	t      *testing.T
	client redis.UniversalClient // for the test itself
}

func open(t *testing.T, url string) carts {
	t.Helper()
	return openOn(t, redisstore.Config{Client: dial(t, url)}, dial(t, url))
}

func openOn(t *testing.T, c redisstore.Config, client redis.UniversalClient) carts {
	c.TTL = redisstore.TTLs{Guest: 720 * time.Hour, Customer: 2160 * time.Hour}
	s := redisstore.New(c)
	return carts{s, live.NewHub(s), t, client}
}

// dial returns a client that gives Redis more time than the service does: the machine may be busy.
func dial(t *testing.T, url string) redis.UniversalClient {
	t.Helper()
	client := assert.Must(connect.Redis(url, ephemeral.PatientRedis))(t)
	t.Cleanup(func() { client.Close() })
	return client
}

// asService returns a URL for a user with only the permissions that the service needs.
func asService(t *testing.T, url string) string {
	t.Helper()
	users := assert.Must(os.ReadFile("../../deploy/redis/users.conf"))(t)
	return ephemeral.AsUser(t, url, string(users), "commerce")
}

// newRef refers to a cart that nobody has.
func newRef() redisstore.Ref { return redisstore.GuestRef(1, auth.CartToken(rand.Text())) }

func (c carts) filled() redisstore.Ref {
	c.t.Helper()
	ref := newRef()
	c.add(ref)
	return ref
}

func (c carts) add(ref redisstore.Ref) redisstore.Outcome {
	c.t.Helper()
	line := cart.NewLine{ID: "1", Quantity: 1, Price: 100, Bounds: cart.BoundsOf(carttest.Sold(1, 100), carttest.Limits)}
	o, err := c.Change(c.t.Context(), ref, redisstore.Conditions{}, redisstore.Attempt{CartID: "ID", Limits: carttest.Limits}, redisstore.Change{Rule: cart.Add(line)})
	assert.Require(c.t, err == nil && o.Status == cart.Applied, "add: %v %v", o.Status, err)
	return o
}

func (c carts) load(ref redisstore.Ref) redisstore.Stored {
	c.t.Helper()
	return assert.Must(c.Load(c.t.Context(), ref))(c.t)
}

func isProblem(err error, code problem.Code) bool {
	p, ok := errors.AsType[*problem.Error](err)
	return ok && p.Code == code
}

// afterFirstRead runs a function before the reply of the first read of a cart is used. Other reads go on meanwhile.
func (c carts) afterFirstRead(run func()) { connect.AddHook(c.Client, &firstRead{run: run}) }

type firstRead struct {
	run func()
	ran atomic.Bool
}

func (*firstRead) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (*firstRead) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (h *firstRead) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		if slices.ContainsFunc(cmds, func(cmd redis.Cmder) bool { return cmd.Name() == "hgetall" }) && h.ran.CompareAndSwap(false, true) {
			h.run()
		}
		return err
	}
}

func keyOf(ref redisstore.Ref) string { return strings.TrimSuffix(ref.Channel(), ":live") }
