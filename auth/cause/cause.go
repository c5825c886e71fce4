// Package cause describes failed calls to other servers for the log: which server, what
// happened, and after how long. Readers need not know the client libraries.
package cause

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"syscall"
	"time"
)

// Failure is a failed call to a server. Its text contains no parameters of the call.
type Failure struct {
	Server string        // its kind and address, such as "redis 10.0.0.5:6379"
	What   string        // what happened; "": described from Err
	Took   time.Duration // until the call failed
	Err    error

	// Connecting is whether the call opened a connection first, which takes some of its time.
	Connecting bool

	// Earlier is the failure because of which the call was repeated until its time was over;
	// nil if it was not. Unwrap does not return it, since the last try had another failure.
	Earlier *Failure
}

// Of returns err as the Failure of a call that began at the given time. If err is nil or
// already contains a Failure, it returns err.
func Of(server string, began time.Time, err error) error {
	if err == nil || described(err) {
		return err
	}
	return &Failure{Server: server, Took: time.Since(began), Err: err}
}

// WithoutURL returns the error of an HTTP client without the URL, which may have a credential.
func WithoutURL(err error) error {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return failed.Err
	}
	return err
}

func described(err error) bool {
	_, is := errors.AsType[*Failure](err)
	return is
}

// Error returns the server and what happened, in one line.
func (f *Failure) Error() string { return f.Server + ": " + f.what() }

func (f *Failure) what() string {
	if f.What != "" {
		return f.What
	}
	text := describe(f.Err, f.Took)
	if f.Connecting && text == noAnswer(f.Took) {
		text += ", on a new connection"
	}
	return text
}

// Because returns f with the server and the text of an earlier failure, which caused the retry.
// If earlier is nil, it returns f.
func (f *Failure) Because(earlier *Failure) *Failure {
	if earlier == nil {
		return f
	}
	first := *earlier
	first.Connecting = earlier.Connecting || f.Connecting
	return &Failure{Server: earlier.Server, What: first.what(), Took: f.Took, Err: f.Err, Earlier: earlier}
}

// Root returns the error that tells best why a call failed: that of the earlier failure, if the
// call was repeated because of it, otherwise err.
func Root(err error) error {
	if f, ok := errors.AsType[*Failure](err); ok && f.Earlier != nil {
		return f.Earlier.Err
	}
	return err
}

func (f *Failure) Unwrap() error { return f.Err }

type reply interface {
	error
	RedisError()
}

// scriptPosition begins what Redis adds to an error in a script: its SHA-1 and the line.
const scriptPosition = " script: "

// describe returns what happened, without the library's terms.
func describe(err error, took time.Duration) string {
	if refused, ok := errors.AsType[reply](err); ok {
		text, _, _ := strings.Cut(refused.Error(), scriptPosition)
		return text
	}
	if failed, ok := errors.AsType[*net.OpError](err); ok {
		return describeNet(failed, took)
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return noAnswer(took)
	case errors.Is(err, context.Canceled):
		return "canceled after " + Text(took)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "it closed the connection"
	}
	return oneLine(err)
}

func describeNet(failed *net.OpError, took time.Duration) string {
	dial := failed.Op == "dial"
	errno, system := errors.AsType[syscall.Errno](failed.Err)
	switch {
	case failed.Timeout() && dial && took >= time.Millisecond:
		return "no connection after " + Text(took)
	case failed.Timeout():
		return noAnswer(took)
	case system:
		return errno.Error()
	case dial:
		return "no connection: " + oneLine(failed.Err)
	}
	return oneLine(failed.Err)
}

// noAnswer is for a call that failed after took; if that is no time, it was over before the call.
func noAnswer(took time.Duration) string {
	if took < time.Millisecond {
		return "not called, because its time was over"
	}
	return "no answer after " + Text(took)
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

func Text(d time.Duration) string { return d.Round(time.Millisecond).String() }
