package jsonlog_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"commerce/cmd/internal/jsonlog"
)

// Any record has the same line as with slog.JSONHandler.
func TestHandler_WritesTheLinesOfSlog(t *testing.T) {
	t.Parallel()
	values := rapid.OneOf(
		rapid.Map(rapid.String(), slog.StringValue),
		rapid.Map(rapid.StringMatching(`[ -~]*`), slog.StringValue),
		rapid.Map(rapid.Int64(), slog.Int64Value),
		rapid.Map(rapid.Uint64(), slog.Uint64Value),
		rapid.Map(rapid.Float64(), slog.Float64Value),
		rapid.Map(rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 1e-6, 9.99e-7, 1e20, 1e21, 0.1, 1.234}), slog.Float64Value),
		rapid.Map(rapid.Bool(), slog.BoolValue),
		rapid.Map(rapid.Int64(), func(n int64) slog.Value { return slog.DurationValue(time.Duration(n)) }),
		rapid.SampledFrom([]slog.Value{
			slog.AnyValue(nil), slog.AnyValue(errors.New("failed")), slog.AnyValue([]int{1}),
			{},
			slog.GroupValue(), slog.GroupValue(slog.Int("a", 1)), slog.TimeValue(time.Unix(1, 2)),
		}),
	)
	keys := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"route", "ms", ""}))
	texts := rapid.OneOf(rapid.Just("request"), rapid.String())
	times := rapid.SampledFrom([]time.Time{
		{}, time.Now(), time.Unix(1_800_000_000, 0).UTC(), time.Unix(1<<40, 0), time.Unix(-1<<40, 0), time.Unix(-62135596801, 0).UTC(),
	})
	derive := rapid.SampledFrom([]func(slog.Handler) slog.Handler{
		func(h slog.Handler) slog.Handler { return h },
		func(h slog.Handler) slog.Handler { return h },
		func(h slog.Handler) slog.Handler { return h.WithAttrs([]slog.Attr{slog.Int("n", 1)}) },
		func(h slog.Handler) slog.Handler { return h.WithGroup("g") },
	})
	check := func(t *rapid.T) {
		record := slog.NewRecord(times.Draw(t, "time"), slog.Level(rapid.IntRange(-10, 12).Draw(t, "level")), texts.Draw(t, "message"), 0)
		for range rapid.IntRange(0, 8).Draw(t, "attributes") {
			record.AddAttrs(slog.Attr{Key: keys.Draw(t, "key"), Value: values.Draw(t, "value")})
		}
		derived := derive.Draw(t, "derived")
		var got, want bytes.Buffer
		gotErr := derived(jsonlog.New(&got, slog.LevelInfo)).Handle(t.Context(), record.Clone())
		wantErr := derived(slog.NewJSONHandler(&want, nil)).Handle(t.Context(), record.Clone())
		if got.String() != want.String() || (gotErr == nil) != (wantErr == nil) {
			t.Fatalf("got %q, %v\nwant %q, %v", got.String(), gotErr, want.String(), wantErr)
		}
	}
	for range 20 {
		rapid.Check(t, check)
	}
}

func TestHandler_HandlesItsLevels(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := slog.New(jsonlog.New(&out, slog.LevelWarn))
	log.Info("info")
	log.Warn("warning")
	if got := out.String(); strings.Contains(got, `"info"`) || !strings.Contains(got, `"warning"`) {
		t.Errorf("got %s", got)
	}
}

// Lines of both kinds are written whole.
func TestHandler_KeepsLinesApart(t *testing.T) {
	t.Parallel()
	var out oneByOne
	log := slog.New(jsonlog.New(&out, slog.LevelInfo))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 1000 {
				log.Info("plain", "n", 1)
				log.Info("other", "err", io.EOF)
			}
		})
	}
	wg.Wait()
	for line := range bytes.Lines(out.all.Bytes()) {
		if !bytes.HasPrefix(line, []byte(`{"time":"`)) || !bytes.HasSuffix(line, []byte("}\n")) {
			t.Fatalf("got %q", line)
		}
	}
	if got := bytes.Count(out.all.Bytes(), []byte("\n")); got != 8000 {
		t.Errorf("%d lines, want 8000", got)
	}
}

// oneByOne takes bytes one by one, so that two writes at a time would mix.
type oneByOne struct{ all bytes.Buffer }

func (o *oneByOne) Write(p []byte) (int, error) {
	for _, b := range p {
		o.all.WriteByte(b)
	}
	return len(p), nil
}

// BenchmarkHandler writes the line of a request.
func BenchmarkHandler(b *testing.B) {
	for name, h := range map[string]slog.Handler{
		"this": jsonlog.New(io.Discard, slog.LevelInfo),
		"slog": slog.NewJSONHandler(io.Discard, nil),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r := slog.NewRecord(time.Now(), slog.LevelInfo, "request", 0)
				r.AddAttrs(slog.String("method", "GET"), slog.String("route", "/cart"), slog.Int("status", 200),
					slog.Float64("ms", 1.234), slog.Int("bytes", 6099), slog.String("request_id", "VCY7GDDRGMWLXFDR6OCMU5ZQ4T"))
				_ = h.Handle(b.Context(), r)
			}
		})
	}
}
