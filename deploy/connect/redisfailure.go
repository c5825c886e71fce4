package connect

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"commerce/auth/cause"
)

// failures is a hook that describes errors of commands as a cause.Failure, which names the server.
// redis.Nil, which is no failure, and redis.ErrClosed, which go-redis compares, stay as they are.
type failures struct{ *tries }

func (failures) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook describes the error of a command.
func (f failures) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		ctx, c := f.callOf(ctx, cmd)
		err := next(ctx, cmd)
		err = f.describe(c, err, cmd.Err())
		cmd.SetErr(err)
		return err
	}
}

// ProcessPipelineHook describes the errors of commands, and the error of the pipeline.
func (f failures) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		ctx, c := f.callOf(ctx, cmds[0])
		err := next(ctx, cmds)
		for _, cmd := range cmds {
			cmd.SetErr(f.describe(c, cmd.Err(), nil))
		}
		return f.describe(c, err, nil)
	}
}

// call is a command or a pipeline of a caller. go-redis also calls hooks for the commands with
// which it sets up a connection. Their failures are those of the call that needs it.
type call struct {
	began    time.Time
	first    redis.Cmder
	connects atomic.Bool // it opened a connection, or tries to
}

// callOf returns the call of cmd, or of the pipeline it begins, and a context that holds it.
func (f failures) callOf(ctx context.Context, cmd redis.Cmder) (context.Context, *call) {
	if c, inside := ctx.Value(f).(*call); inside {
		if c.first != cmd { // otherwise another hook of this client has the same command
			c.connects.Store(true)
		}
		return ctx, c
	}
	c := &call{began: time.Now(), first: cmd}
	return context.WithValue(ctx, f, c), c
}

// describe returns err as a Failure, if it is one. If it says only that the time of the command was over,
// the text is that of an earlier try: of previous, or of one that the client has recorded.
func (f failures) describe(c *call, err, previous error) error {
	if err == nil || err == redis.Nil || err == redis.ErrClosed {
		return err
	}
	described := cause.Of(*f.server.Load(), c.began, err)
	failure, ok := described.(*cause.Failure)
	if !ok || described == err {
		return err
	}
	failure.Connecting = c.connects.Load()
	if errors.Is(err, redis.ErrPoolTimeout) {
		failure.What = "no connection became free within " + cause.Text(failure.Took)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		earlier, _ := errors.AsType[*cause.Failure](cmp.Or(f.failedSince(c.began), previous))
		return failure.Because(earlier)
	}
	return failure
}

// tries records the last failure of a client. go-redis repeats a command until its time is
// over, and then returns only that. It implements redis.Limiter to see each try.
type tries struct {
	server atomic.Pointer[string] // its name, never nil
	last   atomic.Pointer[failedTry]
}

func newTries(server string) *tries {
	t := &tries{}
	t.server.Store(&server)
	return t
}

type failedTry struct {
	at  time.Time
	err error
}

func (*tries) Allow() error { return nil }

func (t *tries) ReportResult(err error) {
	if err != nil && err != redis.Nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		t.last.Store(&failedTry{time.Now(), err})
	}
}

// failedSince returns the last failure as a Failure; nil if it was before began.
func (t *tries) failedSince(began time.Time) error {
	last := t.last.Load()
	if last == nil || last.at.Before(began) {
		return nil
	}
	return cause.Of(*t.server.Load(), began, last.err)
}

func newServerClient(o *redis.Options) *redis.Client {
	tries := newTries("redis " + o.Addr)
	o.Limiter = tries
	client := redis.NewClient(o)
	client.AddHook(failures{tries})
	return client
}

// AddHook adds a hook to a client that is not used yet. On a cluster, the hook is called for
// each attempt at a node, otherwise once for each command. If Redis returned the client, the hook
// gets errors as a cause.Failure.
func AddHook(client redis.UniversalClient, hook redis.Hook) {
	switch client := client.(type) {
	case *redis.ClusterClient:
		client.OnNewNode(func(node *redis.Client) { addHook(node, hook) })
	case *redis.Client:
		addHook(client, hook)
	}
}

// addHook adds failures again, because the hook that was added last gets an error first.
func addHook(client *redis.Client, hook redis.Hook) {
	client.AddHook(hook)
	if tries, ours := client.Options().Limiter.(*tries); ours {
		client.AddHook(failures{tries})
	}
}
