package server_test

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/cmd/internal/server"
	"commerce/deploy/assert"
	"commerce/deploy/ephemeral"
)

const addOne = `{"product_id":1}`

// A client that disconnects during a merge must not leave the merge unfinished.
func TestMerge_ContinuesWhenTheClientDisconnects(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan struct{})
	leave := sync.OnceFunc(func() {
		cancel()
		time.Sleep(50 * time.Millisecond) // until the server notices
		close(gone)
	})
	s := realShop(t, hooked(t, func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
		err := next(ctx, cmd)
		if slices.ContainsFunc(cmd.Args(), isNote) { // the merge
			leave()
		}
		return err
	}))
	guest := s.guest(t).fill("1×1")
	customer := guest.logIn("1")
	if response, err := http.DefaultTransport.RoundTrip(customer.request("GET", "/cart", nil).WithContext(ctx)); err == nil {
		response.Body.Close()
		t.Fatalf("the response arrived before the client disconnected: %d", response.StatusCode)
	}
	<-gone
	ephemeral.Eventually(t, "the merge comes to its end", func() bool {
		return !s.holdsClaim(t) && !s.Redis.HExists(t.Context(), s.guestKey(guest.Token), "i").Val()
	})
	customer.withoutToken().wantLines("1×1")
}

// isNote reports whether an argument is the name of a note of a merge.
func isNote(arg any) bool {
	name, ok := arg.(string)
	return ok && len(name) == 11 && name[0] == 'm'
}

// commandHook is called with each command that is not part of a pipeline.
type commandHook func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error

func hooked(t testing.TB, hook commandHook) func(*server.Parts) {
	return func(p *server.Parts) {
		dialed(t, ephemeral.Redis(t))(p)
		p.Redis.Client.AddHook(hook)
	}
}

func (commandHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h commandHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { return h(ctx, cmd, next) }
}

// ProcessPipelineHook makes a pipeline of several commands do what the hook does with one of them: they share a round trip.
func (h commandHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		sent := false
		var err error
		for _, cmd := range cmds {
			err = cmp.Or(err, h(ctx, cmd, func(ctx context.Context, _ redis.Cmder) error {
				if sent {
					return nil
				}
				sent = true
				return next(ctx, cmds)
			}))
		}
		return err
	}
}

func TestBudget_IsNotUsedUpByASlowBody(t *testing.T) {
	slow(t)
	budget := ephemeral.Patience(2 * time.Second)
	c := openShop(t, ephemeral.Redis(t), func(p *server.Parts) { p.Carts.Budget = budget }).visitor(t)
	body, writer := io.Pipe()
	go func() {
		time.Sleep(budget + 200*time.Millisecond)
		_, _ = io.WriteString(writer, `{"product_id":1}`)
		writer.Close()
	}()
	a := c.do(c.request("POST", "/cart/add", body))
	assert.That(t, a.Status == http.StatusOK, "a slow body: %d %s", a.Status, a.Raw)
}

// A merge has five times a request's budget, which a step that hangs must not use up.
func TestBudget_AStepOfAMergeThatHangsDoesNotDelayTheAnswer(t *testing.T) {
	budget := ephemeral.Patience(500 * time.Millisecond)
	var hang atomic.Bool
	scripts := func(ctx context.Context, cmd redis.Cmder, next redis.ProcessHook) error {
		if !hang.Load() || !strings.HasPrefix(cmd.Name(), "eval") {
			return next(ctx, cmd)
		}
		<-ctx.Done()
		cmd.SetErr(ctx.Err())
		return ctx.Err()
	}
	s := realShop(t, hooked(t, scripts), func(p *server.Parts) { p.Carts.Budget = budget })
	both := s.customer(t, "1001")
	guest := s.guest(t).fill("1×1")
	both.Token = guest.Token
	hang.Store(true)
	fastest := time.Hour
	for range 3 { // the machine may be busy
		began := time.Now()
		both.refused(503, "unavailable", "POST", "/cart/add", addOne, "Idempotency-Key", "k")
		fastest = min(fastest, time.Since(began))
	}
	assert.That(t, fastest <= 4*budget, "the answer took %v: one step of the merge and the change have %v each", fastest, budget)
}
