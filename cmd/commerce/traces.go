package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"commerce/cmd/internal/tracing"
)

// flushPeriod is how long the process waits at its end until the collector has the last spans.
// With gracePeriod it must stay below 10 s.
const flushPeriod = 500 * time.Millisecond

// openTraces begins to record traces if the environment asks for them; otherwise traces is nil.
// The caller calls flush at the end, and openTraces before parts, which then passes the trace on
// to the issuer of tokens.
func (s *settings) openTraces(ctx context.Context, log *slog.Logger) (traces *tracing.Traces, flush func(), err error) {
	if !tracing.On(os.Getenv) {
		return nil, func() {}, nil
	}
	traces, err = tracing.New(ctx, tracing.Config{Version: version, Log: log})
	if err != nil {
		return nil, nil, fmt.Errorf("start traces: %w", err)
	}
	s.JWT.propagate = traces.Propagate
	return traces, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushPeriod)
		defer cancel()
		if err := traces.Close(ctx); err != nil {
			log.WarnContext(ctx, "the last traces were not sent in time", "err", err)
		}
	}, nil
}
