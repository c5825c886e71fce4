package main

import (
	"context"
	"errors"
	"net/http"
	"time"

	"commerce/cmd/bench/results"
)

// benchStart measures the time from the start of a process until it shows a cart, with
// its lines and prices. Redis and Postgres are running, and the schema is up to date.
func benchStart(ctx context.Context, s *stage) (results.Benchmark, error) {
	shops, err := openShops(ctx, s)
	if err != nil {
		return results.Benchmark{}, err
	}
	bar := progress("start", s.rounds*len(shops))
	took, size := make([][]float64, len(shops)), make([][]float64, len(shops))
	for range s.rounds {
		for i, shop := range shops {
			d, bytes, err := shop.restart(ctx)
			if err != nil {
				return results.Benchmark{}, err
			}
			took[i], size[i] = append(took[i], milliseconds(d)), append(size[i], megabytes(bytes))
			_ = bar.Add(1)
		}
	}
	b := results.Benchmark{Name: "start"}
	for i, shop := range shops {
		b.Values = append(b.Values,
			results.Value{Name: "start to first answer" + shop.label, Unit: "ms", Figure: results.FigureOf(took[i]...), AtMost: new(300.0)},
			results.Value{Name: "resident memory after the start" + shop.label, Unit: "MB", Figure: results.FigureOf(size[i]...)})
	}
	return b, nil
}

// restart starts another process of the service, and returns how long it takes to answer
// and its resident memory then.
func (s *shop) restart(ctx context.Context) (time.Duration, int64, error) {
	guest, err := s.newGuest(ctx, fewLines)
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	p, err := startHTTP(ctx, s.settings, shows(guest), s.binary, "serve")
	took := time.Since(began)
	if err != nil {
		return 0, 0, err
	}
	defer p.stop()
	size, err := resident(p.pid())
	return took, size, err
}

// shows is ready when GET /cart has a good answer.
func shows(guest http.Header) probe {
	return func(ctx context.Context, url string) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/cart", nil)
		if err != nil {
			return err
		}
		r.Header = guest
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		if response.StatusCode != http.StatusOK {
			err = errors.New(response.Status)
		}
		return errors.Join(err, discard(response.Body))
	}
}
