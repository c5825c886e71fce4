// Package problem has the one error that callers are told about: a stable code for
// programs, a sentence for people in every language, and the members at fault.
//
// The server turns it into a response. Any other error becomes a 500 without detail.
package problem

import (
	"fmt"
	"slices"
	"time"

	"commerce/auth/locale"
)

// Error is a call that was refused or that failed. A refusal changed nothing. Neither
// did a call that was Unavailable, unless it carried an idempotency key, with which it
// is safe to repeat. After OutcomeUnknown the change may have been made.
type Error struct {
	Code   Code
	Faults []Fault // at least one; the first one gives the message
	Data   any     // what the answer carries beside the error; nil for nothing
	Cause  error   // for the log, without tokens or bodies; nil where the caller is at fault
	Kind   string  // finer than Code, for operators: a fixed word that callers are not told; "" for none

	Status     int           // of a code that a protocol defines; 0: that of Statuses
	RetryAfter time.Duration // when a repeat may succeed; 0: in a moment, or never
	Budget     Budget        // that a RateLimited call has used up
}

// Budget is a limit of what one client may do.
type Budget struct {
	Name string // for metrics
	Uses int64  // in one period
}

// Fault is one thing that is wrong: the member, parameter or header of the request
// that it is about, "" for none, and what to tell a person.
type Fault struct {
	Member   string
	Sentence locale.Sentence
}

// New makes an error with one fault.
func New(code Code, member string, text locale.Text, args ...any) *Error {
	return &Error{Code: code, Faults: []Fault{{member, text.With(args...)}}}
}

// Because returns a copy of the error with a cause.
func (e *Error) Because(cause error) *Error {
	caused := *e
	caused.Cause = cause
	return &caused
}

// WithData returns a copy of the error with data.
func (e *Error) WithData(data any) *Error {
	informed := *e
	informed.Data = data
	return &informed
}

// After returns a copy of the error that may be repeated after a while.
func (e *Error) After(wait time.Duration) *Error {
	later := *e
	later.RetryAfter = wait
	return &later
}

// RetrySeconds returns RetryAfter in whole seconds, at least 1.
func (e *Error) RetrySeconds() int64 {
	return int64(max((e.RetryAfter+time.Second-1)/time.Second, 1))
}

// KindCurrency is the Kind of UnknownCurrency. It lasts until a row or the release changes, so the
// server logs its cause once a minute, and not with each request.
const KindCurrency = "currency"

// KindAgent is the Kind of an error because of the profile that an agent names, or of its own calls with one
// key. Any client can cause it, so it is no failure of the service in the log.
const KindAgent = "agent"

// UnknownCurrency returns the error of a call that would show amounts in a currency whose decimals
// are not known: each could be wrong by a factor of a hundred. of says what has the currency.
func UnknownCurrency(of, currency string) *Error {
	e := New(Unavailable, "", locale.Text{
		locale.En: "This store uses a currency that the service does not support yet.",
		locale.Ar: "يستخدم هذا المتجر عملة لا تدعمها الخدمة بعد.",
	})
	e.Cause, e.Kind, e.RetryAfter = fmt.Errorf("%s: unknown currency %q", of, currency), KindCurrency, time.Minute
	return e
}

// MaxFaults is how many faults an error names at most.
const MaxFaults = 50

// Full reports whether an error names as many faults as one may: what looks for more can stop. It is
// false for nil.
func (e *Error) Full() bool { return e != nil && len(e.Faults) >= MaxFaults }

// First returns a copy of the error with its first n faults; n is at least 1.
func (e *Error) First(n int) *Error {
	short := *e
	short.Faults = e.Faults[:min(n, len(e.Faults))]
	return &short
}

// Excerpt returns the start of a text that a client chose, as an error repeats it. Otherwise a response could be
// larger than its request.
func Excerpt(text string) string {
	const longest = 48 // characters
	n := 0
	for i := range text {
		if n++; n > longest {
			return text[:i] + "…"
		}
	}
	return text
}

// Join makes one error of several. It has the code of the first one and the first MaxFaults
// faults of all. It ignores nil errors and returns nil when all are nil.
func Join(errs ...*Error) *Error {
	var joined *Error
	for _, e := range errs {
		switch {
		case e == nil:
		case joined == nil:
			joined = new(*e)
			joined.Faults = slices.Clip(e.Faults)
		default:
			room := max(MaxFaults-len(joined.Faults), 0)
			joined.Faults = append(joined.Faults, e.Faults[:min(room, len(e.Faults))]...)
		}
	}
	if joined != nil {
		joined.Faults = joined.Faults[:min(len(joined.Faults), MaxFaults)]
	}
	return joined
}

// Within returns a copy about members of an object in the request, such as "ops.2"; nil for nil.
func (e *Error) Within(object string) *Error {
	if e == nil {
		return nil
	}
	inner := *e
	inner.Faults = slices.Clone(e.Faults)
	for i := range inner.Faults {
		if f := &inner.Faults[i]; f.Member != "" {
			f.Member = object + "." + f.Member
		}
	}
	return &inner
}

// Names reports whether a member is at fault; false for a nil error.
func (e *Error) Names(member string) bool {
	return e != nil && slices.ContainsFunc(e.Faults, func(f Fault) bool { return f.Member == member })
}

// Error is for logs: the cause, or the code and the English sentence if the caller is at
// fault.
func (e *Error) Error() string {
	if e.Cause != nil {
		return e.Cause.Error()
	}
	return string(e.Code) + ": " + e.Message(locale.En)
}

func (e *Error) Unwrap() error { return e.Cause }

// Message is a sentence that a shopper or a developer can act on.
func (e *Error) Message(l locale.Locale) string { return e.Faults[0].Sentence.In(l) }

// Members maps each member at fault to its sentences; nil for a refusal of the whole request.
func (e *Error) Members(l locale.Locale) map[string][]string {
	var members map[string][]string
	for _, f := range e.Faults {
		if f.Member == "" {
			continue
		}
		if members == nil {
			members = map[string][]string{}
		}
		members[f.Member] = append(members[f.Member], f.Sentence.In(l))
	}
	return members
}
