package cause_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"commerce/auth/cause"
	"commerce/deploy/assert"
)

type refusal string

func (r refusal) Error() string { return string(r) }
func (refusal) RedisError()     {}

func TestOf_SaysWhatHappenedInPlainWords(t *testing.T) {
	t.Parallel()
	opError := func(op string, err error) error { return &net.OpError{Op: op, Net: "tcp", Err: err} }
	for _, test := range []struct {
		err  error
		took time.Duration
		want string
	}{
		{opError("dial", os.NewSyscallError("connect", syscall.ECONNREFUSED)), 0, "connection refused"},
		{opError("dial", os.ErrDeadlineExceeded), 200 * time.Millisecond, "no connection after 200ms"},
		{opError("dial", &net.DNSError{Err: "no such host", Name: "cart-3"}), 0, "no connection: lookup cart-3: no such host"},
		{opError("read", os.ErrDeadlineExceeded), 200 * time.Millisecond, "no answer after 200ms"},
		{opError("read", os.ErrDeadlineExceeded), 0, "not called, because its time was over"},
		{opError("dial", os.ErrDeadlineExceeded), 0, "not called, because its time was over"},
		{opError("read", os.NewSyscallError("read", syscall.ECONNRESET)), 0, "connection reset by peer"},
		{fmt.Errorf("read: %w", io.EOF), 0, "it closed the connection"},
		{context.DeadlineExceeded, time.Second, "no answer after 1s"},
		{context.DeadlineExceeded, 0, "not called, because its time was over"},
		{context.Canceled, 20 * time.Millisecond, "canceled after 20ms"},
		{fmt.Errorf("failed to init: %w", refusal("LOADING Redis is loading")), 0, "LOADING Redis is loading"},
		{
			refusal("OOM command not allowed when used memory > 'maxmemory'. script: 8b6d2f1a0c, on @user_script:181."), 0,
			"OOM command not allowed when used memory > 'maxmemory'.",
		},
		{errors.New("some\n\tother  text"), 0, "some other text"},
	} {
		f := &cause.Failure{Server: "redis cart-3:6379", Took: test.took, Err: test.err}
		got, want := f.Error(), "redis cart-3:6379: "+test.want
		assert.That(t, got == want && errors.Is(f, test.err), "got %q, want %q", got, want)
	}
}

func TestFailure_SaysThatAnUnansweredCallOpenedAConnection(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]string{
		context.DeadlineExceeded: "redis a:1: no answer after 201ms, on a new connection",
		io.EOF:                   "redis a:1: it closed the connection",
	} {
		f := &cause.Failure{Server: "redis a:1", Took: 201 * time.Millisecond, Err: err, Connecting: true}
		assert.Equal(t, f.Error(), want, "f.Error()")
	}
}

func TestOf_DescribesAnErrorOnce(t *testing.T) {
	t.Parallel()
	assert.Succeeds(t, cause.Of("redis", time.Now(), nil), "no error became")
	inner := cause.Of("redis a:1", time.Now(), io.EOF)
	outer := fmt.Errorf("read cart: %w", inner)
	got := cause.Of("redis b:2", time.Now(), outer)
	assert.That(t, got == outer, "got %v, want %v", got, outer)
}

func TestFailure_TellsWhyACallWasRepeated(t *testing.T) {
	t.Parallel()
	first := &cause.Failure{Server: "redis a:1", Err: io.EOF}
	last := &cause.Failure{Server: "redis", Took: time.Second, Err: context.DeadlineExceeded}
	got := last.Because(first)
	if want := "redis a:1: it closed the connection"; got.Error() != want || !errors.Is(got, context.DeadlineExceeded) || errors.Is(got, io.EOF) {
		t.Errorf("got %v, want %s", got, want)
	}
	got = last.Because(nil)
	assert.That(t, got == last, "without an earlier one: %v", got)
}
