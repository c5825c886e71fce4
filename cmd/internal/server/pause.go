package server

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"
)

// pause implements wire.Pause. Neither log nor metrics count the time of wait.
func (r *responder) pause(c *gin.Context, request *requestContext, wait func(context.Context) bool) error {
	place, conn, began := slotOf(c.Writer), http.NewResponseController(c.Writer), time.Now()
	place.leave()
	_ = conn.SetReadDeadline(time.Time{}) // it would end the context; a test's recorder has none
	_ = conn.SetWriteDeadline(time.Time{})
	client := request.withoutDeadline()
	ctx, cancel := context.WithCancel(client)
	defer cancel()
	defer context.AfterFunc(r.Ending, cancel)()
	works := wait(ctx)
	request.paused += time.Since(began)
	if err := client.Err(); err != nil {
		return fmt.Errorf("wait for the answer: %w", err)
	}
	request.restart(time.Now().Add(r.Deadline))
	_ = conn.SetWriteDeadline(time.Now().Add(r.Stall))
	if !works {
		return nil
	}
	return place.enter()
}

// slotOf returns the place of a request below its limit.
func slotOf(w http.ResponseWriter) *slot {
	for {
		if s, ok := w.(*slot); ok {
			return s
		}
		w = w.(interface{ Unwrap() http.ResponseWriter }).Unwrap() // all requests come through front
	}
}
